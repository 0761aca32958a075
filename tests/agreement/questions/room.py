"""What a node leaves to pods, and which pods it has room for."""

from __future__ import annotations

import re

from agreement.asking import Asking
from agreement.printed import Rounded, amount, rounded, table
from agreement.question import Answers, Question, Reader
from agreement.settings import NODE, key
from agreement.settings import amount as exact

MEMORY, CPU = "memory", "cpu"


def thresholds(asking: Asking) -> tuple[str, ...]:
    """Return how thresholds is asked."""
    cores = "--node-cpu", f"{asking.setting.cpu_milli}m"
    return "thresholds", "-f", asking.file("kubelet.yaml"), *asking.memory, *cores, *asking.version


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else int(float(text) * 1000)


def _quantity(resource: str, text: str) -> int:
    return exact(text) if resource == MEMORY else _milli(text)


def _divided(asking: Asking) -> Answers:
    found = asking.json(*thresholds(asking))["allocatable"]
    return {each["resource"]: _quantity(each["resource"], each["allocatable"]) for each in found}


def _divided_text(asking: Asking) -> Answers:
    rows = re.findall(r"^(memory|cpu) +(\S+) = ", asking.text(*thresholds(asking)), re.MULTILINE)
    return {name: _printed(name, text) for name, text in rows}


def _printed(resource: str, text: str) -> Rounded:
    if resource == MEMORY:
        return amount(text)
    return Rounded(_milli(text), _milli(text)) if text.endswith("m") else rounded(text, 1000)


def place(asking: Asking) -> tuple[str, ...]:
    """Return how place is asked: some pods run, others wait."""
    files = "-f", asking.file("waiting.yaml"), "-f", asking.file("node.yaml")
    return "place", *files, *asking.kubelet, *asking.version


def _placed(asking: Asking) -> Answers:
    (node,) = asking.json(*place(asking))["nodes"]
    return {name: _quantity(name, text) for name, text in node["allocatable"].items() if name in {MEMORY, CPU}}


def _placed_text(asking: Asking) -> Answers:
    row = next(each for each in table(asking.text(*place(asking)), "NODE", "PODS") if each["NODE"] == NODE)
    found = {name: re.search(r" of (\S+)", row[name.upper()]) for name in (MEMORY, CPU)}
    return {name: _printed(name, each[1]) for name, each in found.items() if each}


def _overview(asking: Asking) -> Answers:
    (node,) = asking.json("overview", *asking.snapshot)["nodes"]
    return {name: node[name]["allocatable"] for name in (MEMORY, CPU)}


def _panel(asking: Asking) -> Answers:
    (node,) = asking.cluster["nodes"]
    return {name: node[name]["allocatable"] for name in (MEMORY, CPU)}


def _evaluated(asking: Asking) -> Answers:
    setting = asking.setting
    hard = setting.kubelet.get("evictionHard", {"memory.available": "100Mi"})
    (found,) = asking.evaluated(
        "allocatable",
        {
            "capacity": {"cpu": f"{setting.cpu_milli}m", "memory": str(setting.memory_bytes)},
            "maxPods": 110,
            "podsPerCore": 0,
            "kubeReserved": setting.kubelet.get("kubeReserved", {}),
            "systemReserved": setting.kubelet.get("systemReserved", {}),
            "evictionHard": {name: text for name, text in hard.items() if name.startswith("memory")},
        },
    )
    status = found["nodeStatusAllocatable"]
    return {name: _quantity(name, status[name]) for name in (MEMORY, CPU)}


ALLOCATABLE = Question(
    "what a node leaves to pods",
    (
        Reader("thresholds", _divided, _divided_text),
        Reader(
            "(the kubelet's formula)", lambda asking: {name: asking.setting.allocatable(name) for name in (MEMORY, CPU)}
        ),
        Reader("place", _placed, _placed_text),
        Reader("overview", _overview),
        Reader("ui", _panel),
        Reader("eval", _evaluated),
    ),
)


# ---- what fits -------------------------------------------------------------------------------------------------------


def _everywhere(asking: Asking, found: dict[str, str]) -> Answers:
    """Return where every pod is, also those without a node."""
    return {key(each): found.get(key(each)) for each in (*asking.setting.pods, *asking.setting.waiting)}


def _whereabouts(asking: Asking) -> Answers:
    report = asking.json(*place(asking))
    return _everywhere(asking, {f"{each['namespace']}/{each['name']}": each["node"] for each in report["pods"]})


def _whereabouts_text(asking: Asking) -> Answers:
    rows = table(asking.text(*place(asking)), "NAMESPACE", "WORKLOAD", "PODS")
    found = {f"{row['NAMESPACE']}/{row['WORKLOAD'].partition('/')[2]}": row["WHERE"] for row in rows}
    return _everywhere(asking, {pod: node for pod, node in found.items() if node == NODE})


def _arrived(asking: Asking) -> Answers:
    run = asking.json("simulate", asking.file("placement.yaml"))
    return _everywhere(asking, {each["key"]: each["node"] for each in run["pods"]})


def _too_large(asking: Asking) -> Answers:
    """Return the pods that check says fit no node, not even an empty one."""
    files = map(asking.file, ("waiting.yaml", "node.yaml", "kubelet.yaml"))
    items = asking.json("check", *files, "--config-file", "none", *asking.version)["items"]
    return {f"{each['namespace']}/{each['name']}": None for each in items if each["check"] == "PQ504"}


FITS = Question(
    "which pods a node has room for",
    (
        Reader("place", _whereabouts, _whereabouts_text),
        Reader("simulate", _arrived),
        Reader("check", _too_large),
    ),
)


# ---- why not ---------------------------------------------------------------------------------------------------------


def _waits_for(asking: Asking) -> Answers:
    return {
        pod: frozenset((reason["kind"], reason.get("resource", "")) for reason in each["nodes"][0]["reasons"])
        for each in asking.json(*place(asking))["pending"]
        for pod in each["pods"]
    }


def _waits_for_text(asking: Asking) -> Answers:
    found = re.findall(r"^  (\S+?)/Pod/(\S+): 1 pod\n.*\n      n1: (.*)$", asking.text(*place(asking)), re.MULTILINE)
    return {
        f"{namespace}/{name}": frozenset(("Insufficient", each) for each in re.findall(r"(\w+): requests", reasons))
        for namespace, name, reasons in found
    }


def _noted(asking: Asking) -> Answers:
    """Return the reasons of pods that never get a node: others wait for those that are removed for them."""
    pending = _waits_for(asking)
    return {
        each["pod"]: frozenset((one["reason"], one.get("what", "")) for one in each["because"].get("refusing", ()))
        for each in asking.journal("simulate", asking.file("placement.yaml"))
        if each["kind"] == "Pending" and each["pod"] in pending
    }


PENDING = Question(
    "why a pod stays pending",
    (
        Reader("place", _waits_for, _waits_for_text),
        Reader("simulate", _noted),
    ),
)
