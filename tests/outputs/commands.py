"""Every command with every machine-readable output, over all shipped scenarios and examples; and as people see it.

A command line here is run from the repository's root. What it prints (``recorded.jsonl.gz``) is a promise to other
programs. What it shows on a terminal (``terminal-80.txt``, ``terminal-120.txt``) is recorded to be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from podqos.cli.command_list import COMMANDS
from scenarios.runs import NAMES

ROOT = Path(__file__).resolve().parents[2]

PLATFORM = "scenarios/content-platform/platform"
ACCIDENTAL = "scenarios/content-platform/accidental"
POLICY_TEST = ("policy", "test", "-f", "scenarios/policy/policy.yaml", "-f", "scenarios/policy/pods")
KUBELET = "scenarios/content-platform/node/kubelet.yaml"
NODES = "scenarios/content-platform/node/nodes.yaml"
INCIDENT = "scenarios/content-platform/incident"
NODE_MEMORY = ("--node-memory", "64Gi")
_LIVE = ("-f", PLATFORM, "--usage", "scenarios/content-platform/usage.csv", *NODE_MEMORY)

# Directories of manifests that stand for themselves.
EXAMPLES = (
    PLATFORM,
    ACCIDENTAL,
    "scenarios/accidental-burstable",
    "scenarios/cpu-burst",
    "scenarios/disk-pressure",
    "scenarios/limitrange-trap",
    "scenarios/node/pods",
    "scenarios/page-cache",
    "scenarios/pid-exhaustion",
    "scenarios/oom-loop",
    "scenarios/oom-by-request",
    "scenarios/slow-leak",
    "scenarios/soft-eviction/pods.yaml",
    "scenarios/three-pods",
)
KUBELETS = (
    KUBELET,
    "scenarios/node/kubelet.yaml",
    "scenarios/accidental-burstable/kubelet/config.yaml",
    "scenarios/soft-eviction/kubelet-flapping.yaml",
    "scenarios/soft-eviction/kubelet-steady.yaml",
)

Line = tuple[str, ...]


def command_lines() -> Iterator[Line]:
    """Yield all of them, each once, in a fixed order."""
    for path in EXAMPLES:
        yield from _each(("explain", "-f", path, *NODE_MEMORY), "json", "yaml", "csv")
        yield from _each(("admit", "-f", path), "json", "yaml", "csv")
        yield from _each(("check", "-f", path, *NODE_MEMORY), "json", "yaml", "sarif", "junit")
        yield from _each(("cpu", "-f", path, "--cores", "14"), "json", "yaml", "csv")
        place = ("place", "-f", path, "--nodes", "2", "--node-capacity", "cpu=16,memory=64Gi,pods=110")
        yield from _each(place, "json", "yaml", "csv")
    for version in ("1.8", "1.19", "1.28", "1.32"):
        yield ("explain", "-f", PLATFORM, *NODE_MEMORY, "--kubernetes-version", version, "-o", "json")
    for cgroup, driver in product(("v1", "v2"), ("systemd", "cgroupfs")):
        yield ("explain", "-f", ACCIDENTAL, *NODE_MEMORY, "--cgroup", cgroup, "--driver", driver, "-o", "json")
    yield from _each(("admit", "-f", ACCIDENTAL, "--policies", PLATFORM), "json", "yaml", "csv")
    yield from _each(("place", "-f", PLATFORM, "-f", NODES, "--kubelet-config", KUBELET), "json", "yaml", "csv")
    yield from _each(("rank", *_LIVE), "json", "yaml", "csv")
    for policy in ("qos-tiers", "qos-usage"):
        yield ("rank", *_LIVE, "--policy", policy, "-o", "json")
    for signal in ("nodefs.available", "pid.available"):
        yield ("rank", *_LIVE, "--signal", signal, "-o", "json")
    for path in KUBELETS:
        yield from _each(("thresholds", "-f", path, *NODE_MEMORY), "json", "yaml", "csv")
    fixed = f"{ACCIDENTAL}/article-service-fixed.yaml"
    yield from _each(("drift", fixed, f"{ACCIDENTAL}/article-service.yaml", *NODE_MEMORY), "json", "yaml", "markdown")
    yield from _each(("drift", PLATFORM, PLATFORM, "--inject", "istio", *NODE_MEMORY), "json", "yaml", "markdown")
    advise = ("advise", "-f", PLATFORM, "--usage", f"{INCIDENT}/samples.csv", *NODE_MEMORY)
    yield from _each(advise, "json", "yaml", "csv")
    for tool in ("kubectl", "kustomize", "json"):
        yield (*advise, "--patch", tool)
    yield from _each(("advise", "--describe", f"{INCIDENT}/descriptions.yaml", *NODE_MEMORY), "json", "yaml")
    yield from _each(("thresholds", "--advise", *NODE_MEMORY, "--node-cpu", "16"), "json", "yaml")
    yield from _each(("forecast", *_LIVE, "--growing", "log-collector"), "json", "yaml", "csv")
    yield from _each(("blast", *_LIVE), "json", "yaml", "csv")
    for name in NAMES:
        yield from _each(("simulate", name), "json", "jsonl", "csv")
    for name in ("race", "oom-by-class", "accidental-burstable"):
        yield from _each(("blast", name), "json", "csv")
    varied = ("simulate", "race", "--vary", "phase=0s,4s,8s")
    yield from _each(varied, "json", "csv")
    yield ("check", "--list", "-o", "json")
    yield from _each(POLICY_TEST, "json", "yaml", "junit")


def shown_lines() -> Iterator[Line]:
    """Yield a command line for every text that people see, each once, in a fixed order."""
    for path in EXAMPLES:
        yield ("check", "-f", path, *NODE_MEMORY)
    yield ("check", "-f", PLATFORM, "-v")
    yield ("check", "--kubelet-config", KUBELET)
    yield ("check", "-f", f"{ACCIDENTAL}/article-service.yaml", "--diff")
    yield ("check", "--list")
    yield POLICY_TEST
    yield ("check", "--explain", "PQ404")
    for path in (PLATFORM, ACCIDENTAL, "scenarios/limitrange-trap"):
        yield ("explain", "-f", path)
        yield ("admit", "-f", path)
    for output in ("table", "wide"):
        yield ("explain", "-f", PLATFORM, "-o", output)
    yield ("explain", "-f", f"{ACCIDENTAL}/article-service.yaml", "-v")
    yield ("admit", "-f", PLATFORM, "-o", "table")
    yield ("admit", "-f", f"{PLATFORM}/log-collector.yaml", "--policies", f"{ACCIDENTAL}/limit-range.yaml")
    yield ("drift", f"{ACCIDENTAL}/article-service-fixed.yaml", f"{ACCIDENTAL}/article-service.yaml")
    yield ("drift", PLATFORM, ACCIDENTAL)
    yield ("advise", "-f", PLATFORM, "--usage", f"{INCIDENT}/samples.csv")
    yield (
        "advise",
        "-f",
        PLATFORM,
        "--describe",
        f"{INCIDENT}/descriptions.yaml",
        "--usage",
        f"{INCIDENT}/samples.csv",
    )
    yield ("thresholds", "--advise", *NODE_MEMORY, "--node-cpu", "16")
    yield ("rank", *_LIVE)
    yield ("place", "-f", PLATFORM, "-f", NODES, "--kubelet-config", KUBELET)
    yield ("place", "-f", PLATFORM, "--nodes", "2", "--node-capacity", "cpu=4,memory=16Gi,pods=110")
    yield ("cpu", "-f", PLATFORM, "--cores", "14")
    yield ("thresholds",)
    for path in KUBELETS:
        yield ("thresholds", "-f", path, *NODE_MEMORY)
    yield ("forecast", *_LIVE, "--growing", "log-collector")
    yield ("forecast", *_LIVE, "--kubelet-config", KUBELET, "--growing", "log-collector", "--rate", "2Mi/s")
    yield ("blast", *_LIVE)
    yield ("blast", "race")
    for name in ("race", "accidental-burstable", "soft-eviction", "disk-pressure", "slow-leak"):
        yield ("simulate", name)
    yield ("simulate", "race", "--vary", "phase=0s,4s,8s")
    yield ("scenario", "list")
    yield ("help",)
    for name in COMMANDS:
        yield ("help", name)


def _each(line: Line, *outputs: str) -> Iterator[Line]:
    for output in outputs:
        yield (*line, "-o", output)
