"""Draws policies, namespaces, and objects that an API server accepts; and says what ``judge`` makes of them.

Amounts come from few values, so that what is equal, missing or zero is drawn often.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from podqos.admission.defaulting import defaulted, rounded_list
from podqos.admission.pod_validation import validate_pod
from podqos.manifest.decode import convert
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.objects import workload_in
from podqos.model.effective import pod_requests
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.profile import LATEST, Profile
from podqos.policy.judge import judge
from podqos.policy.model import Policy
from podqos.policy.reading import read_policy
from podqos.policy.subject import Subject
from podqos.policy.violation import Violation

Value = dict[str, Any]
CLASSES = ("Guaranteed", "Burstable", "BestEffort")
_CPU = ("100m", "0.1", "250m", "1", "1000m", "1500m", "2")
_MEMORY = ("64Mi", "67108864", "100M", "128Mi", "1Gi", "1024Mi", "1500m", "2Gi")
_OTHER = ("1", "2", "4")
_RESOURCES = {"cpu": _CPU, "memory": _MEMORY, "ephemeral-storage": _MEMORY, "example.com/dongle": _OTHER}
_NAMES = ("web", "web-2", "db", "cni-node", "batch", "istio-proxy", "vault-agent")
_KEYS = ("app", "tier", "team")
_VALUES = ("web", "db", "gold", "silver")
TEMPLATES = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def seeded(seed: int) -> Random:
    """Return what draws the same every time."""
    return Random(seed)  # noqa: S311 - repeatable on purpose


# ---- objects ---------------------------------------------------------------------------------------------------------


def resources(draw: Random, *names: str) -> Value:
    """Draw requests and limits, mostly such that a pod with them is valid."""
    found: Value = {"requests": {}, "limits": {}}
    style = draw.choice(("none", "equal", "equal", "limits", "requests", "any", "any"))
    for name in names:
        if style == "none" or (style == "any" and draw.random() < 0.3):
            continue
        amount = draw.choice((*_RESOURCES[name], "0") if draw.random() < 0.2 else _RESOURCES[name])
        is_extended = "/" in name
        if is_extended or style in {"equal", "limits"}:
            found["limits"][name] = amount
        if style in {"equal", "requests"} or (style == "any" and not is_extended and draw.random() < 0.8):
            found["requests"][name] = amount
        if style == "any" and not is_extended and draw.random() < 0.7:
            found["limits"][name] = draw.choice(_RESOURCES[name])
    return {side: amounts for side, amounts in found.items() if amounts or draw.random() < 0.05}


def pod_spec(draw: Random, *, pod_level: bool = True) -> Value:
    """Draw a pod's spec; ``pod_level``: maybe with resources of its own."""
    names = draw.sample(_NAMES, draw.randint(1, 4))
    split = draw.randint(1, len(names))
    wanted = ["cpu", "memory", *draw.sample(("ephemeral-storage", "example.com/dongle"), draw.choice((0, 0, 1)))]
    alike = resources(draw, *wanted) if draw.random() < 0.5 else None

    def container(name: str) -> Value:
        stated = copy.deepcopy(alike) if alike is not None and draw.random() < 0.8 else resources(draw, *wanted)
        return {"name": name, "image": "app", **({"resources": stated} if stated or draw.random() < 0.3 else {})}

    spec: Value = {"containers": [container(name) for name in names[:split]]}
    if names[split:]:
        spec["initContainers"] = [
            container(name) | ({"restartPolicy": "Always"} if draw.random() < 0.5 else {}) for name in names[split:]
        ]
    if pod_level and draw.random() < 0.3:
        spec["resources"] = _pod_level(draw, spec)
    if draw.random() < 0.3:
        spec["priorityClassName"] = draw.choice(("web", "batch-low", "system-node-critical"))
    return spec


def _pod_level(draw: Random, spec: Value) -> Value:
    """Draw a pod's own resources; half of them such that the pod is limited to what its containers request."""
    if draw.random() < 0.5:
        return resources(draw, "cpu", "memory")
    together = pod_requests(defaulted(convert({"metadata": {}, "spec": spec}, Pod)))
    return {"limits": {name: together[name].canonical() for name in ("cpu", "memory") if name in together}}


def metadata(draw: Random) -> Value:
    """Draw labels and annotations."""
    found: Value = {}
    for field in ("labels", "annotations"):
        stated = {key: draw.choice(_VALUES) for key in _KEYS if draw.random() < 0.4}
        if draw.random() < 0.2:
            stated["podqos.dev/class"] = draw.choice((*CLASSES, "Garanteed"))
        if stated:
            found[field] = stated
    return found


def namespace(draw: Random, name: str) -> Value:
    """Draw a namespace."""
    found = metadata(draw)
    labels = {"kubernetes.io/metadata.name": name, **found.get("labels", {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**found, "name": name, "labels": labels}}


def pod(draw: Random, namespace_name: str, *, pod_level: bool = True) -> Value:
    """Draw a pod, alone or made by a controller."""
    spec = pod_spec(draw, pod_level=pod_level)
    found: Value = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(draw), "spec": spec}
    found["metadata"] |= {"name": draw.choice(_NAMES), "namespace": namespace_name}
    if draw.random() < 0.3:
        kind, name = draw.choice((("ReplicaSet", "web-5d4f"), ("Job", "batch-29384756"), ("DaemonSet", "cni-node")))
        owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "1", "controller": draw.random() < 0.9}
        found["metadata"]["ownerReferences"] = [owner]
        if draw.random() < 0.8:
            found["metadata"].setdefault("labels", {})["pod-template-hash"] = "5d4f"
    return found


def workload(draw: Random, namespace_name: str, *, pod_level: bool = True) -> Value:
    """Draw an object with a template."""
    kind = draw.choice(list(TEMPLATES))
    template: Value = {"metadata": metadata(draw), "spec": pod_spec(draw, pod_level=pod_level)}
    template["metadata"].setdefault("labels", {})["run"] = "drawn"
    spec: Value = {"template": template}
    if kind in {"Job", "CronJob"}:
        template["spec"]["restartPolicy"] = "Never"
    elif kind == "ReplicationController":
        spec["selector"] = {"run": "drawn"}
    else:
        spec["selector"] = {"matchLabels": {"run": "drawn"}}
    if kind == "CronJob":
        spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
    named = metadata(draw) | {"name": draw.choice(_NAMES), "namespace": namespace_name}
    return {"apiVersion": TEMPLATES[kind], "kind": kind, "metadata": named, "spec": spec}


def template_of(value: Value) -> Value:
    """Return the pod or template of an object."""
    for field in POD_HOLDERS[value["kind"]].pod_path:
        value = value[field]
    return value


def is_valid(value: Value, profile: Profile = LATEST) -> bool:
    """Whether the API server accepts the pods of an object."""
    spec = template_of(value)["spec"]
    named = {"name": "p", "namespace": "default"}
    return not any(validate_pod(defaulted(convert({"metadata": named, "spec": spec}, Pod), profile)))


def as_stored(value: Value, profile: Profile = LATEST) -> Value:
    """Return an object as policies see it: a pod is filled in; of a template, amounts are only written as they are."""
    found = copy.deepcopy(value)
    given = workload_of(found).pod
    stored = defaulted(given, profile) if found["kind"] == "Pod" else given
    spec = template_of(found)["spec"]
    for field, containers in (("containers", stored.spec.containers), ("initContainers", stored.spec.init_containers)):
        for written, container in zip(spec.get(field, ()), containers, strict=True):
            if "resources" in written or container.resources.requests or container.resources.limits:
                written["resources"] = _written(container.resources)
    if stored.spec.resources is not None:
        spec["resources"] = _written(stored.spec.resources)
    if found["kind"] == "Pod":
        spec["priority"] = PRIORITIES[spec.get("priorityClassName", "")]
    return found


def _written(stated: Any) -> Value:
    sides = (("requests", stated.requests), ("limits", stated.limits))
    return {
        side: {name: amount.canonical() for name, amount in rounded_list(amounts).items()}
        for side, amounts in sides
        if amounts
    }


# ---- policies --------------------------------------------------------------------------------------------------------


PRIORITIES = {"": 0, "web": 1000, "batch-low": -10, "system-node-critical": 2_000_001_000}


def policy(draw: Random, name: str, namespaces: tuple[str, ...]) -> Value:
    """Draw a policy of a few rules, each about few things."""
    rules = [
        {
            "name": f"rule-{index}",
            "match": _match(draw, namespaces),
            "require": _require(draw),
            "action": draw.choice(("Deny", "Deny", "Warn", "Audit")),
        }
        for index in range(draw.randint(1, 3))
    ]
    exemptions = [_exemption(draw) for _ in range(draw.choice((0, 0, 1, 2)))]
    spec = {"rules": rules, "exemptions": exemptions}
    return {"apiVersion": "podqos.dev/v1alpha1", "kind": "Policy", "metadata": {"name": name}, "spec": spec}


def _match(draw: Random, namespaces: tuple[str, ...]) -> Value:
    found: Value = {}
    if draw.random() < 0.3:
        found["namespaces"] = [draw.choice((*namespaces, f"{namespaces[0][:-1]}*", f"{namespaces[0][:-1]}?", "*-[!a]"))]
    if draw.random() < 0.2:
        found["namespaceSelector"] = _selector(draw)
    if draw.random() < 0.2:
        found["objectSelector"] = _selector(draw)
    if draw.random() < 0.2:
        found["annotations"] = {draw.choice(_KEYS): draw.choice((*_VALUES, "g*", "*d*", "[a-g]?*"))}
    if draw.random() < 0.2:
        found["kinds"] = draw.sample(("Pod", "Deployment", "CronJob", "*Set"), 2)
    if draw.random() < 0.2:
        found["names"] = [draw.choice(("web", "web*", "*b*", "c?i-*"))]
    return found


def _selector(draw: Random) -> Value:
    if draw.random() < 0.4:
        return {"matchLabels": {draw.choice(_KEYS): draw.choice(_VALUES)}}
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = {"values": draw.sample(_VALUES, 2)} if operator in {"In", "NotIn"} else {}
    return {"matchExpressions": [{"key": draw.choice(_KEYS), "operator": operator, **values}]}


def _require(draw: Random) -> Value:
    match draw.choice(("class", "class", "label", "both", "most", "requests", "limits", "ratio", "ratio", "priority")):
        case "class":
            return {"minClass": draw.choice(("Guaranteed", "Guaranteed", "Burstable"))}
        case "label":
            return {"classLabel": "podqos.dev/class"}
        case "both":
            return {"minClass": "Burstable", "classLabel": "podqos.dev/class"}
        case "most":
            return {"maxClass": draw.choice(("Burstable", "BestEffort"))}
        case "requests":
            return {"requests": draw.sample(list(_RESOURCES), draw.randint(1, 2))}
        case "limits":
            return {"limits": draw.sample(list(_RESOURCES), draw.randint(1, 2))}
        case "ratio":
            return {"maxLimitRequestRatio": {draw.choice(("cpu", "memory")): draw.choice((1, 1.25, 1.5, 2, 12.5, 20))}}
        case _:
            return {
                "priority": draw.choice(
                    (
                        {"required": True},
                        {"classes": ["web", "batch-*"]},
                        {"forbiddenClasses": ["system-*"]},
                        {"min": 0},
                        {"max": 1000},
                    )
                )
            }


def _exemption(draw: Random) -> Value:
    found: Value = {"reason": "drawn"}
    match draw.choice(("containers", "containers", "objects", "users", "groups", "namespaceSelector")):
        case "containers":
            found["containers"] = [draw.choice(("istio-*", "vault-agent", "web*", "*"))]
        case "objects":
            found["objects"] = [draw.choice(("DaemonSet/cni-*", "Deployment/web", "CronJob/*", "Pod/db", "*/web"))]
        case "users":
            found["users"] = [draw.choice(("admin", "a*", "someone"))]
        case "groups":
            found["groups"] = [draw.choice(("system:masters", "system:auth*"))]
        case _:
            found["namespaceSelector"] = _selector(draw)
    if draw.random() < 0.3:
        found["rules"] = ["rule-0"]
    return found


# ---- judgement -------------------------------------------------------------------------------------------------------


def read(value: Value) -> Policy:
    """Return a policy, which has to be right."""
    reading = read_policy(value)
    assert reading.policy is not None, reading.findings
    return reading.policy


def workload_of(value: Value) -> Workload:
    """Return an object as podqos reads it."""
    found = workload_in(POD_HOLDERS[value["kind"]], value).workload
    assert found is not None
    return found


def judged(
    policy: Policy, value: Value, namespace: Value, who: tuple[str, tuple[str, ...]], profile: Profile = LATEST
) -> list[Violation]:
    """Return what an object violates, as far as an API server's expressions can know."""
    written = workload_of(value)
    stored: Pod = defaulted(written.pod, profile)
    is_pod = value["kind"] == "Pod"
    priority = PRIORITIES[stored.spec.priority_class_name or ""] if is_pod else None
    found = namespace["metadata"]
    about = ObjectMeta(labels=found.get("labels", {}), annotations=found.get("annotations", {}))
    subject = Subject(written, stored, priority, about, *who)
    violations = judge((policy,), subject, profile=profile).violations
    return [each for each in violations if is_pod or each.why != "NoPriorityClass"]
