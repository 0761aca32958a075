"""Public API usage that must type-check (mypy reads this file; nothing runs it)."""

from __future__ import annotations

from podqos import Pod, Profile, Quantity, classify, defaulted, oom_scores, parse_version, read


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
