"""What a pod is: its class, the oom_score_adj of its containers, its priority."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agreement.asking import Asking
from agreement.printed import table
from agreement.question import Answers, Question, Reader
from agreement.settings import Setting, key, stored

CLASSES = "Guaranteed|Burstable|BestEffort"


def _key(item: Mapping[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}"


def _explained(asking: Asking) -> list[Any]:
    items: list[Any] = asking.json("explain", *asking.pods)["items"]
    return items


def _explain_blocks(asking: Asking) -> list[tuple[str, str, str]]:
    """Return pod, class and the lines below it."""
    text = asking.text("explain", *asking.pods)
    return re.findall(rf"^Pod (\S+)  ({CLASSES})\n((?:(?!Pod ).*\n)*)", text, re.MULTILINE)


def _rank(asking: Asking, *words: str) -> Any:
    return asking.json("rank", *(words or (*asking.node, *asking.cgroup)))


def _rank_text(asking: Asking, *words: str) -> str:
    return asking.text("rank", "-v", *(words or (*asking.node, *asking.cgroup)))


def _points(text: str) -> int:
    """Return the oom_score_adj of a sum such as ``34.7 − 997 = −962.3``."""
    _, sign, adjustment, *_ = text.split()
    return int(adjustment) * (-1 if sign == "−" else 1)


def drift(asking: Asking) -> tuple[str, ...]:
    """Return how drift is asked: all pods are new."""
    files = asking.file("none.yaml"), asking.file("pods.yaml")
    return "drift", *files, "--usage", asking.file("usage.csv"), *asking.memory, *asking.kubelet, *asking.version


def _drifted(asking: Asking) -> dict[str, Any]:
    return {_key(each): each["after"] for each in asking.json(*drift(asking))["workloads"]}


def _drift_column(asking: Asking, name: str) -> Answers:
    rows = table(asking.text(*drift(asking)), "WORKLOAD")
    return {row["WORKLOAD"].split()[1]: row[name].removeprefix("– → ") for row in rows}


def check(asking: Asking) -> tuple[str, ...]:
    """Return how check is asked."""
    files = map(asking.file, ("pods.yaml", "node.yaml", "kubelet.yaml"))
    return "check", *files, "-v", "--config-file", "none", *asking.version


def _check_standings(asking: Asking) -> dict[str, Any]:
    items = asking.json(*check(asking))["items"]
    return {_key(each): each["effects"]["now"] for each in items if each["effects"]["now"] is not None}


def _check_texts(asking: Asking) -> list[tuple[str, str, str, str]]:
    """Return pod, class, score and container of every finding that has a line about them."""
    found = []
    pod = ""
    for line in asking.text(*check(asking)).splitlines():
        if line.startswith("Pod "):
            pod = line.split()[1]
        elif not line.startswith(" "):
            pod = ""
        said = re.match(rf"    so   (?:.*; )?({CLASSES}), oom_score_adj (-?\d+) \((\S+?)\)", line)
        if said and pod:
            found.append((pod, *said.groups()))
    return found


def cpu(asking: Asking) -> tuple[str, ...]:
    """Return how cpu is asked."""
    return "cpu", "-f", asking.file("pods.yaml"), "--cores", "8", *asking.cgroup, *asking.kubelet, *asking.version


def _simulate(asking: Asking) -> tuple[str, ...]:
    """Return the growth's first second, before anything happens."""
    return "simulate", asking.file("phase-1.yaml"), "--until", "1ms"


def _simulated(asking: Asking) -> list[Any]:
    pods: list[Any] = asking.json(*_simulate(asking))["pods"]
    return pods


def _simulate_rows(asking: Asking) -> list[dict[str, str]]:
    return table(asking.text(*_simulate(asking)), "WORKLOAD", "CLASS")


def _page_pods(asking: Asking) -> dict[str, Any]:
    return {_key(each): each for each in asking.cluster["pods"]}


def _leaks(asking: Asking) -> list[Any]:
    leaks: list[Any] = asking.json("blast", *asking.node)["leaks"]
    return leaks


def _advised(asking: Asking) -> dict[str, Any]:
    words = "advise", "-f", asking.file("pods.yaml"), "--usage", asking.file("limits.csv")
    found = asking.json(*words, *asking.memory, *asking.kubelet, *asking.version)["workloads"]
    return {each["workload"].split()[1]: each["before"] for each in found}


def prints_blast(setting: Setting) -> bool:
    """Whether to have the leaks printed as well: every run simulates all of them."""
    return setting.seed % 4 == 0


def _dangerous(asking: Asking) -> list[dict[str, str]]:
    if not prints_blast(asking.setting):
        return []
    return table(asking.text("blast", *asking.node), "POD", "NODE", "CLASS")


def has_cgroup_v2(setting: Setting) -> bool:
    """Whether commands without an option for the version of cgroups can be asked."""
    return setting.cgroup == "v2"


CLASS = Question(
    "the class of a pod",
    (
        Reader(
            "explain",
            lambda asking: {_key(each): each["qosClass"] for each in _explained(asking)},
            lambda asking: {pod: name for pod, name, _ in _explain_blocks(asking)},
        ),
        Reader(
            "rank",
            lambda asking: (
                {each["pod"]: each["qosClass"] for each in _rank(asking)["evictionOrder"]}
                | {each["pod"]: each["qosClass"] for each in _rank(asking)["killOrder"]}
            ),
            lambda asking: {
                row["POD"]: row["CLASS"]
                for heading in (("#", "POD", "CLASS"), ("#", "POD", "CONTAINER"))
                for row in table(_rank_text(asking), *heading)
            },
        ),
        Reader(
            "rank --snapshot",
            lambda asking: {each["pod"]: each["qosClass"] for each in _rank(asking, *asking.snapshot)["evictionOrder"]},
        ),
        Reader(
            "cpu",
            lambda asking: {each["pod"]: each["qosClass"] for each in asking.json(*cpu(asking))["pods"]},
            lambda asking: {
                row["POD"]: row["CLASS"]
                for row in table(
                    asking.text(*cpu(asking)),
                    "POD",
                    "CLASS",
                )
                if "/" in row["POD"]
            },
        ),
        Reader(
            "admit",
            lambda asking: {
                _key(each): each["qosClass"]
                for each in asking.json("admit", "-f", asking.file("pods.yaml"), *asking.version)["items"]
                if each["kind"] == "Pod"
            },
            lambda asking: dict(
                re.findall(
                    rf"^Pod (\S+)  (?:(?:{CLASSES}) → )*({CLASSES})$",
                    asking.text("admit", "-f", asking.file("pods.yaml"), *asking.version),
                    re.MULTILINE,
                )
            ),
        ),
        Reader(
            "drift",
            lambda asking: {pod: each["qosClass"] for pod, each in _drifted(asking).items()},
            lambda asking: _drift_column(asking, "CLASS"),
        ),
        Reader(
            "check",
            lambda asking: {pod: each["qosClass"] for pod, each in _check_standings(asking).items()},
            lambda asking: {pod: name for pod, name, _, _ in _check_texts(asking)},
        ),
        Reader(
            "simulate",
            lambda asking: {each["key"]: each["qosClass"] for each in _simulated(asking)},
            lambda asking: {row["WORKLOAD"]: row["CLASS"] for row in _simulate_rows(asking)},
        ),
        Reader(
            "blast",
            lambda asking: {each["pod"]: each["qosClass"] for each in _leaks(asking)},
            lambda asking: {row["POD"]: row["CLASS"] for row in _dangerous(asking)},
            has_cgroup_v2,
        ),
        Reader(
            "ui", lambda asking: {pod: each["qosClass"] for pod, each in _page_pods(asking).items() if each["node"]}
        ),
        Reader("advise", lambda asking: {pod: each["qosClass"] for pod, each in _advised(asking).items()}),
        Reader(
            "eval",
            lambda asking: {
                key(pod): found["qosClassAfterDefaulting"]
                for pod, found in zip(
                    asking.setting.pods,
                    asking.evaluated("qos", *({"pod": pod} for pod in asking.setting.pods)),
                    strict=True,
                )
            },
        ),
    ),
)

COUNTS = Question(
    "how many pods of each class there are",
    (
        Reader(
            "explain",
            lambda asking: Counter(
                each["qosClass"]
                for each in asking.json("explain", "-f", asking.file("waiting.yaml"), *asking.version)["items"]
            ),
        ),
        Reader(
            "overview",
            lambda asking: asking.json("overview", *asking.snapshot)["classes"],
            lambda asking: {
                name: int(count)
                for count, name in re.findall(
                    rf"(\d+) ({CLASSES})", asking.text("overview", *asking.snapshot).partition("\n\n")[0]
                )
            },
        ),
        Reader("exporter", lambda asking: asking.summed("podqos_pods", "qos_class")),
        Reader("ui", lambda asking: asking.cluster["classes"]),
    ),
)

SCORE = Question(
    "the oom_score_adj of a container",
    (
        Reader(
            "explain",
            lambda asking: {
                (_key(each), own["name"]): own["oomScoreAdj"]
                for each in _explained(asking)
                for own in each["containers"]
            },
            lambda asking: {
                (pod, row["CONTAINER"].removesuffix(" (sidecar)")): int(row["OOM_SCORE_ADJ"])
                for pod, _, lines in _explain_blocks(asking)
                for row in table(lines, "CONTAINER", "CPU")
            },
        ),
        Reader(
            "rank",
            lambda asking: {
                (each["pod"], each["container"]): each["oomScoreAdj"] for each in _rank(asking)["killOrder"]
            },
            lambda asking: {
                (row["POD"], row["CONTAINER"]): _points(row["SHARE + ADJ = POINTS"])
                for row in table(_rank_text(asking), "#", "POD", "CONTAINER")
            },
        ),
        Reader(
            "rank --snapshot",
            lambda asking: {
                (each["pod"], each["container"]): each["oomScoreAdj"]
                for each in _rank(asking, *asking.snapshot)["killOrder"]
            },
        ),
        Reader(
            "drift",
            lambda asking: {
                (pod, own["container"]): own["oomScoreAdj"]
                for pod, each in _drifted(asking).items()
                for own in each["scores"]
            },
        ),
        Reader(
            "check",
            lambda asking: {
                (pod, each["container"]): each["oomScoreAdj"] for pod, each in _check_standings(asking).items()
            },
            lambda asking: {(pod, container): int(score) for pod, _, score, container in _check_texts(asking)},
        ),
        Reader(
            "simulate",
            lambda asking: {
                (each["key"], own["name"]): own["oomScoreAdj"]
                for each in _simulated(asking)
                for own in each["containers"]
            },
        ),
        Reader(
            "ui",
            lambda asking: {
                (pod, own["name"]): own["oomScoreAdj"]
                for pod in map(key, asking.setting.pods)
                for own in asking.pod_page(pod)["explanation"]["containers"]
            },
        ),
        Reader(
            "advise",
            lambda asking: {
                (pod, own["container"]): own["oomScoreAdj"]
                for pod, each in _advised(asking).items()
                for own in each["scores"]
            },
        ),
        Reader(
            "eval",
            lambda asking: {
                (key(pod), container): score
                for pod, found in zip(
                    asking.setting.pods,
                    asking.evaluated(
                        "oom",
                        *(
                            {
                                "pod": stored(pod),
                                "nodeMemoryCapacity": asking.setting.memory_bytes,
                                "applyDefaults": True,
                            }
                            for pod in asking.setting.pods
                        ),
                    ),
                    strict=True,
                )
                for container, score in found["oomScoreAdj"].items()
            },
            when=lambda setting: setting.version == "1.36",
        ),
    ),
)

PRIORITY = Question(
    "the priority of a pod",
    (
        Reader("explain", lambda asking: {_key(each): each["priority"] for each in _explained(asking)}),
        Reader(
            "rank",
            lambda asking: {each["pod"]: each["priority"] for each in _rank(asking)["evictionOrder"]},
            lambda asking: {row["POD"]: int(row["PRIORITY"]) for row in table(_rank_text(asking), "#", "POD", "CLASS")},
        ),
        Reader(
            "admit",
            lambda asking: {
                _key(each): each["priority"]
                for each in asking.json("admit", "-f", asking.file("pods.yaml"), *asking.version)["items"]
                if each["kind"] == "Pod"
            },
        ),
        Reader(
            "drift",
            lambda asking: {pod: each["priority"] for pod, each in _drifted(asking).items()},
            lambda asking: {pod: int(str(each)) for pod, each in _drift_column(asking, "PRIORITY").items()},
        ),
        Reader("check", lambda asking: {pod: each["priority"] for pod, each in _check_standings(asking).items()}),
        Reader(
            "simulate",
            lambda asking: {each["key"]: each["priority"] for each in _simulated(asking)},
            lambda asking: {row["WORKLOAD"]: int(row["PRIORITY"]) for row in _simulate_rows(asking)},
        ),
        Reader("advise", lambda asking: {pod: each["priority"] for pod, each in _advised(asking).items()}),
        Reader("blast", lambda asking: {each["pod"]: each["priority"] for each in _leaks(asking)}, when=has_cgroup_v2),
        Reader(
            "ui", lambda asking: {pod: each["priority"] for pod, each in _page_pods(asking).items() if each["node"]}
        ),
    ),
)
