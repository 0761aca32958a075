"""The same pods on the same nodes: ``podqos place`` and ``podqos simulate`` say the same of where they are."""

from __future__ import annotations

import json

import pytest
import yaml

from podqos.cli.main import main

ZONE = "topology.kubernetes.io/zone"


def pod(name: str, memory: str = "100Mi", namespace: str = "default", labels=None, **spec) -> dict[str, object]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"memory": memory}}}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def other(kind: str, name: str, version: str = "v1", **fields) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def near(how: str, selector: object, key: str = "kubernetes.io/hostname") -> dict[str, object]:
    """Return an affinity to the pods of app ``first`` in the selected namespaces, or one against them."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "first"}}, "namespaceSelector": selector}
    return {"affinity": {how: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def budget(label: str, available: int) -> dict[str, object]:
    spec = {"minAvailable": available, "selector": {"matchLabels": {label: "yes"}}}
    return other("PodDisruptionBudget", label, "policy/v1", spec=spec)


def ranked(name: str, priority: int, memory: str = "300Mi", **fields) -> list[dict[str, object]]:
    """Return a pod that is on a node, or must go there, and its class."""
    priority_class = other("PriorityClass", f"of-{name}", "scheduling.k8s.io/v1", value=priority)
    return [priority_class, pod(name, memory, priorityClassName=f"of-{name}", **{"nodeName": "n-0", **fields})]


TEAM = [other("Namespace", "teamed", metadata={"labels": {"team": "x"}}), other("Namespace", "plain")]
FIRST = [pod("first", namespace="teamed", nodeName="n-1")]
SERVICE = other("Service", "web", spec={"selector": {"tier": "web"}})
WEBS = [pod(name, labels={"tier": "web"}) for name in ("web-a", "web-b")]
BUDGETS = [
    budget("web", 1),
    budget("tier", 1),
    *ranked("early", 9, labels={"web": "yes", "tier": "yes"}),
    *ranked("late", 5, labels={"tier": "yes"}),
    *ranked("plain", 7),
    *ranked("high", 1000, "400Mi", nodeName="", nodeSelector={"kubernetes.io/hostname": "n-0"}),
]
"""Which pod must go for ``high`` differs between versions: it is 1.37 that does not count early towards both."""

CASES = {
    "affinity to a namespace by its label": (
        "1.36",
        [*TEAM, *FIRST, pod("second", **near("podAffinity", {"matchLabels": {"team": "x"}}))],
    ),
    "affinity to no namespace": (
        "1.36",
        [*TEAM, *FIRST, pod("second", **near("podAffinity", {"matchLabels": {"team": "z"}}))],
    ),
    "affinity to all but the labelled, where selectors leak": (
        "1.36",
        [
            *TEAM,
            *FIRST,
            pod("second", **near("podAffinity", {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})),
        ],
    ),
    "affinity to all but the labelled, where they do not": (
        "1.37",
        [
            *TEAM,
            *FIRST,
            pod("second", **near("podAffinity", {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})),
        ],
    ),
    "anti-affinity to a namespace by its label": (
        "1.36",
        [
            *TEAM,
            pod("first", namespace="teamed", nodeName="n-0"),
            pod("second", **near("podAntiAffinity", {"matchLabels": {"team": "x"}})),
        ],
    ),
    "the same, of the pod that is there": (
        "1.36",
        [
            *TEAM,
            pod("there", nodeName="n-0", **near("podAntiAffinity", {"matchLabels": {"team": "x"}})),
            pod("first", namespace="teamed"),
        ],
    ),
    "spread by default, as a Service selects them": (
        "1.36",
        [SERVICE, pod("web", "1Mi", labels={"tier": "web"}, nodeName="n-0"), pod("x", "300Mi", nodeName="n-1"), *WEBS],
    ),
    "budgets, where a victim that breaks one counts towards the next": ("1.36", BUDGETS),
    "budgets, where it does not": ("1.37", BUDGETS),
    "a pod with a scheduling gate": ("1.36", [pod("gated", schedulingGates=[{"name": "quota"}]), pod("other")]),
    "not spread without the Service": (
        "1.36",
        [pod("web", "1Mi", labels={"tier": "web"}, nodeName="n-0"), pod("x", "300Mi", nodeName="n-1"), *WEBS],
    ),
}


def placed(capsys, tmp_path, version: str, objects: list[dict[str, object]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return where the pods are that have a place: as placed, and at the end of a run."""
    nodes = {f"n-{number}": f"zone-{number % 2}" for number in range(3)}
    capacity = {"cpu": "4", "memory": "1100Mi"}
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "nodes.yaml").write_text(
        yaml.safe_dump_all(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name}},
                "status": {"capacity": {**capacity, "pods": "110"}},
            }
            for name, zone in nodes.items()
        )
    )
    spec = {
        "duration": "60s",
        "kubernetesVersion": version,
        "manifests": ["pods.yaml"],
        "nodes": [{"name": name, "labels": {ZONE: zone}, "capacity": capacity} for name, zone in nodes.items()],
    }
    document = {"apiVersion": "podqos.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "alike"}, "spec": spec}
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(document))
    files = ["-f", str(tmp_path / "nodes.yaml"), "-f", str(tmp_path / "pods.yaml")]
    assert main(["place", *files, "--kubernetes-version", version, "-o", "json"]) in {0, 1}
    report = json.loads(capsys.readouterr().out)
    by_place = {f"{each['namespace']}/{each['name']}": each["node"] for each in report["pods"] if each.get("node")}
    assert main(["simulate", str(tmp_path / "scenario.yaml"), "-o", "jsonl"]) in {0, 1}
    run: dict[str, str] = {}
    for line in capsys.readouterr().out.splitlines():
        entry = json.loads(line)
        if entry["kind"] in {"Placed", "Admitted"}:
            run[entry["pod"]] = entry["node"]
        elif entry["kind"] in {"Preempted", "Removed"}:
            run.pop(entry["pod"], None)
    return by_place, run


@pytest.mark.parametrize(("version", "objects"), CASES.values(), ids=CASES)
def test_place_and_simulate_agree(capsys, tmp_path, version, objects):
    by_place, run = placed(capsys, tmp_path, version, objects)
    assert run == by_place
    assert by_place


def test_a_pod_waits_for_one_that_it_must_be_near_to_and_that_comes_later(capsys, tmp_path):
    second = pod("second", **near("podAffinity", {"matchLabels": {"team": "x"}}))
    by_place, run = placed(capsys, tmp_path, "1.36", [*TEAM, second, pod("first", namespace="teamed")])
    assert run == by_place == {"teamed/first": "n-0", "default/second": "n-0"}


@pytest.mark.parametrize("at", [12, 18], ids=["its init container runs", "its container is starting"])
def test_a_pod_is_pending_for_a_budget_until_its_containers_have_been_started(capsys, tmp_path, at):
    """As for a rollout. The budget would keep one of the two: pods that are Pending need none."""
    (tmp_path / "pods.yaml").write_text(
        """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {initContainers: [{name: before, image: i}], containers: [{name: main, image: i}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""
    )
    (tmp_path / "scenario.yaml").write_text(
        f"""
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: drained}}
spec:
  duration: 40s
  manifests: [pods.yaml]
  timing: {{containerStart: 5s}}
  nodes: [{{name: worker, capacity: {{cpu: 4, memory: 4Gi}}}}]
  workloads: [{{workload: web, arrives: 5s, containers: {{before: {{exits: {{after: 5s}}}}}}}}]
  events: [{{at: {at}s, drain: {{node: worker}}}}]
"""
    )
    assert main(["simulate", str(tmp_path / "scenario.yaml"), "-o", "jsonl"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    evicted = [entry["time_us"] for entry in entries if entry["kind"] == "Drained" and "pod" in entry]
    assert evicted == [at * 1_000_000] * 2
