"""Every kind of source that the page shows, small: what visitors upload, by name."""

from __future__ import annotations

import json

from tests.library.clusters import lines

from podqos.manifest.encoding import json_line
from podqos.reading.scenario_files import load_scenario
from podqos.runs.run import simulate

_SCENARIO = b"""apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 1m
  manifests: [pods.yaml]
  nodes:
  - {name: one, capacity: {cpu: 4, memory: 8Gi}, kubelet: {evictionHard: {memory.available: 1Gi}}}
  - {name: two, capacity: {cpu: 4, memory: 4Gi}}
  workloads:
  - {workload: a, demand: {memory: 100Mi}}
  - {workload: b, demand: {memory: 200Mi}}
"""
KUBELET = b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
LOG = b"[1.0] a invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0\n[1.1] Out of memory: Killed process 1 (a)\n"
JOURNAL = b'{"time_us":1,"node":"one","kind":"PodStarted","pod":"default/a"}\n'
USAGE = b"pod,memory\na,100Mi\nb,200Mi\nc,300Mi\n"
TOP = (
    b"NAMESPACE  NAME   CPU(cores)  MEMORY(bytes)\n"
    b"default    a      1m          100Mi\n"
    b"default    b      1m          200Mi\n"
    b"default    c      1m          300Mi\n"
    b"other      alien  1m          50Mi\n"
)


def pod(name: str, node: str = "", memory: str = "64Mi", **more: str) -> bytes:
    """Return a pod that requests memory."""
    at = f"nodeName: {node}, " if node else ""
    of = ", ".join(f"{key}: {value}" for key, value in {"name": name, **more}.items())
    requests = f"{{requests: {{memory: {memory}}}}}"
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{{of}}}\n"
        f"spec: {{{at}containers: [{{name: c, image: i, resources: {requests}}}]}}\n"
    ).encode()


def deployment(name: str, node: str = "", replicas: int = 2, memory: str = "64Mi") -> bytes:
    """Return a Deployment."""
    template = pod(name, node, memory).split(b"\n")[3].decode()
    labels = f"{{app: {name}}}"
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n"
        f"  selector: {{matchLabels: {labels}}}\n  template:\n    metadata: {{labels: {labels}}}\n    {template}\n"
    ).encode()


def node(name: str, memory: str = "4Gi", **more: str) -> bytes:
    """Return a Node; one of no stated memory has no capacity."""
    amounts = {**({"cpu": '"4"', "memory": memory} if memory else {}), **more}
    capacity = ", ".join(f"{key}: {value}" for key, value in amounts.items())
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{capacity: {{{capacity}}}}}\n".encode()


def _file(*objects: bytes) -> bytes:
    return b"---\n".join(objects)


def _live(name: str, at: str, phase: str, **status: object) -> dict[str, object]:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}"},
        "spec": {"nodeName": at, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase, "qosClass": "BestEffort", **status},
    }


def _list(kind: str, *items: object) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": items}).encode()


_PODS = _file(pod("a", "one"), pod("b", "two"), pod("c", "two"))
_NODES = _file(node("one"), node("two", "16Gi", **{"hugepages-2Mi": "1Gi"}))
_TWO = {"pods.yaml": _PODS, "nodes.yaml": _NODES}
_JOB = b"""apiVersion: batch/v1
kind: Job
metadata: {name: done}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""


def sources() -> dict[str, dict[str, bytes]]:
    """Return the files of each source."""
    unbound = _file(pod("a"), pod("b", memory="128Mi"), pod("c"))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    crashing = _live("crashing", "one", "Running", containerStatuses=[{"name": "c", "state": waiting}])
    scenario = {"small.yaml": _SCENARIO, "pods.yaml": _file(pod("a"), pod("b"))}
    return {
        "pods that name no node": {"pods.yaml": unbound},
        "pods that name no node, with usage": {"pods.yaml": unbound, "usage.csv": USAGE},
        "pods that name no node, with kubectl top": {"pods.yaml": unbound, "top.txt": TOP},
        "pods that name no node, larger than usual": {"pods.yaml": _file(unbound, pod("large", memory="100Gi"))},
        "pods that name no node, beside a Node": {"pods.yaml": unbound, "node.yaml": node("one")},
        "pods that name no node, beside several": {"pods.yaml": unbound, "nodes.yaml": _NODES},
        "pods of one node": {"pods.yaml": _file(pod("a", "one"), pod("b", "one"), pod("c"))},
        "pods of one node, with its Node": {"pods.yaml": _file(pod("a", "one"), pod("b", "one")), "n.yaml": _NODES},
        "pods of one node, with usage": {"pods.yaml": _file(pod("a", "one"), pod("b"), pod("c")), "usage.csv": USAGE},
        "pods of a node that is too small": {"pods.yaml": pod("a", "one", "2Gi"), "node.yaml": node("one", "1Gi")},
        "pods of several nodes": {"pods.yaml": _PODS},
        "pods of several nodes, with Nodes": _TWO,
        "pods of several nodes, with usage": {**_TWO, "usage.csv": USAGE},
        "pods of several nodes, with kubectl top": {**_TWO, "top.txt": TOP},
        "pods of several nodes, and one without": {**_TWO, "more.yaml": pod("d")},
        "pods of several nodes, and an empty one": {**_TWO, "more.yaml": _file(node("three"), node("four", ""))},
        "pods of several nodes, one without a Node": {"pods.yaml": _PODS, "nodes.yaml": node("one")},
        "pods of several nodes, usage of strangers": {**_TWO, "usage.csv": USAGE + b"a-alien,1Gi\n"},
        "Deployments of several nodes, with usage": {
            "workloads.yaml": _file(deployment("web", "one"), deployment("db", "two")),
            "usage.csv": b"pod,memory\nweb-x1,100Mi\nweb-x2,150Mi\ndefault/db,200Mi\n",
        },
        "usage above a limit": {
            "pods.yaml": pod("a").replace(b"requests", b"limits"),
            "usage.csv": b"pod,memory\na,100Mi\n",
        },
        "two pods of one bare name": {
            "pods.yaml": _file(pod("a", "one", namespace="shop"), pod("a", "two", namespace="bank")),
            "usage.csv": b"pod,memory\nshop/a,100Mi\nbank/a,200Mi\n",
        },
        "a KubeletConfiguration": {**_TWO, "kubelet.yaml": KUBELET + b"evictionHard: {memory.available: 1Gi}\n"},
        "several KubeletConfigurations": {
            **_TWO,
            "kubelet-1.yaml": KUBELET + b"evictionHard: {memory.available: 1Gi}\n",
            "kubelet-2.yaml": KUBELET + b"evictionHard: {memory.available: 2Gi}\n",
        },
        "a KubeletConfiguration that starts no kubelet": {
            **_TWO,
            "kubelet.yaml": KUBELET + b"evictionHard: {memory.available: much}\n",
        },
        "a KubeletConfiguration alone": {"kubelet.yaml": KUBELET},
        "only refused pods": {"pods.yaml": pod("a").replace(b"64Mi", b"-1")},
        "refused pods of several nodes": {"pods.yaml": _PODS.replace(b"64Mi", b"-1")},
        "only a Job": {"job.yaml": _JOB},
        "only pods that ended": {"pods.json": _list("PodList", _live("done", "one", "Succeeded"))},
        "pods that ended on several nodes": {
            "pods.json": _list("PodList", _live("done", "one", "Failed"), _live("runs", "two", "Running"))
        },
        "a pod that has not started": {"pods.json": _list("PodList", _live("begins", "one", "Pending"))},
        "a container in CrashLoopBackOff": {"pods.json": _list("PodList", crashing, _live("runs", "one", "Running"))},
        "a list of pods without items": {"pods.json": _list("PodList")},
        "a list of namespaces": {"list.json": _list("NamespaceList", {"metadata": {"name": "shop", "uid": "u"}})},
        "Nodes alone": {"nodes.yaml": _NODES},
        "a Deployment without replicas": {"workload.yaml": deployment("web", replicas=0)},
        "a snapshot": {"cluster.json": b"\n".join(lines())},
        "a snapshot and a log": {"cluster.json": b"\n".join(lines()), "kern.log": LOG},
        "manifests and a log": {**_TWO, "kern.log": LOG},
        "a scenario": scenario,
        "a scenario without room": {**scenario, "pods.yaml": _file(pod("a", memory="64Gi"), pod("b", memory="64Gi"))},
        "a kernel log": {"kern.log": LOG},
        "a journal": {"journal.jsonl": JOURNAL},
    }


def run_file(folder: str) -> bytes:
    """Return the run of the scenario, whose files are in a folder."""
    return json_line(simulate(load_scenario(f"{folder}/small.yaml")).report)
