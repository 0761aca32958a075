"""Public API usage that must type-check (mypy reads this file; nothing runs it)."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from podqos import (
    AdmissionList,
    Assumption,
    CpuReport,
    Explanation,
    Kubelet,
    Objects,
    PlacementReport,
    Pod,
    PolicyReport,
    Problem,
    Profile,
    Quantity,
    admit,
    classify,
    cpu,
    defaulted,
    explain,
    judge_policies,
    load,
    load_kubelet,
    oom_scores,
    parse_version,
    place,
    read,
)


def larger(a: Quantity, b: Quantity) -> Quantity:
    """Quantities compare and add."""
    return max(a, b) if a != b else a + b


def name(pod: Pod, profile: Profile) -> str:
    """Values are plain attributes."""
    return f"{pod.key} under {profile.version}"


def classes(manifest: bytes) -> dict[str, str]:
    """Read, default, classify: the three steps of most uses."""
    return {
        workload.pod.key: classify(defaulted(workload.pod)).qos_class.value
        for workload in read("manifest.yaml", manifest).workloads
    }


def scores(pod: Pod, node_memory_bytes: int) -> dict[str, int]:
    """Scores depend on the class, the node and the version."""
    profile = parse_version("1.29")
    decided = classify(pod, profile)
    return {score.container: score.value for score in oom_scores(pod, decided.qos_class, node_memory_bytes, profile)}


def objects(*paths: str) -> tuple[Objects, list[Problem]]:
    """Files become objects, and what is wrong with them is data."""
    found = load(*paths, namespace="shop", progress=print)
    return found, sorted(found.problems)


def explained(found: Objects, kubelet: Kubelet) -> tuple[tuple[Explanation, ...], tuple[Assumption, ...]]:
    """Options are keywords; answers carry what they assume."""
    answer = explain(found, node_memory_bytes=64 << 30, kubelet=kubelet, profile=parse_version("1.30"))
    return answer.items, answer.assumptions


def listed(found: Objects) -> tuple[Explanation, tuple[Explanation, ...], list[str], int]:
    """Answers that are lists read like lists."""
    answer = explain(found)
    return answer[0], answer[1:], [each.qos_class for each in answer], len(answer)


def judged(found: Objects) -> tuple[PolicyReport, list[str]]:
    """Policies are among the objects; an answer says which of them are refused, and why."""
    report = judge_policies(found, today=date(2026, 11, 16))
    return report, [each.message for item in report.items for each in item.violations if each.exemption is None]


def admitted(found: Objects) -> AdmissionList:
    """Resizes are objects too."""
    return admit(found, resizes=load("resized.yaml"), override_profile="current")


def placed(found: Objects) -> PlacementReport:
    """Nodes are counted, or among the objects."""
    capacity = {"cpu": Quantity.parse("8"), "memory": Quantity.parse("32Gi")}
    return place(found, node_count=3, node_capacity=capacity, budgets={"cpu": Fraction(3)})


def divided(found: Objects) -> CpuReport:
    """Kubelets are read from files."""
    return cpu(found, cores=8, kubelet=load_kubelet("kubelet.yaml"))
