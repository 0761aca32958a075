"""Who goes first: the kubelet's eviction order and the kernel's kill order at this moment."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from agreement.asking import Asking
from agreement.printed import table
from agreement.question import Answers, Question, Reader
from agreement.questions.pods import check, has_cgroup_v2
from agreement.settings import NEWEST, Setting, assumed_bytes, running

FIRST, ORDER = "first", "order"


def _rank(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.node, *asking.cgroup, "-v"


def _rank_snapshot(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.snapshot, "-v"


# ---- the kubelet's ---------------------------------------------------------------------------------------------------


def _evicted(pods: list[str]) -> Answers:
    return {FIRST: pods[0] if pods else None, ORDER: tuple(pods)}


def _ranked(report: Any) -> Answers:
    return _evicted([each["pod"] for each in report["evictionOrder"] if each["spared"] is None])


def _ranked_text(text: str) -> Answers:
    rows = table(text, "#", "POD", "CLASS")
    return _evicted([row["POD"] for row in rows if not row[list(row)[-1]].startswith("spared")])


def _simulated(asking: Asking, order: str) -> list[Any]:
    run = asking.json("simulate", asking.file("phase-1.yaml"), "--until", "1ms")
    (node,) = run["nodes"]
    first: list[Any] = [{**each, "pod": run["pods"][each["pod"]]["key"]} for each in node["orders"][0][order]]
    return first


def _page_order(cluster: Any, place: str) -> list[str]:
    own = [each for each in cluster["pods"] if each[place] is not None and (place == "killPlace" or not each["spared"])]
    return [_page_name(each) for each in sorted(own, key=lambda each: each[place])]


def _page_name(block: Any) -> str:
    return f"{block['namespace']}/{block['name']}"


def _first_killed(cluster: Any) -> Answers:
    return {FIRST: next(iter(_page_order(cluster, "killPlace")), None)}


def is_told_by_files(setting: Setting) -> bool:
    """Whether files say all that options say to commands: they have no version, and nothing of the system's memory."""
    return setting.version == NEWEST and not setting.system_bytes and has_cgroup_v2(setting)


def _next(asking: Asking, which: str) -> Answers:
    (node,) = asking.json("overview", *asking.snapshot)["nodes"]
    return {FIRST: node[which] and node[which]["pod"]}


def _next_text(asking: Asking, column: str) -> Answers:
    (row,) = table(asking.text("overview", *asking.snapshot), "NODE", "HEADROOM")
    return {FIRST: row[column] if row[column] not in {"", "–"} else None}


def _exported(asking: Asking, order: str) -> Answers:
    found = [labels for labels, _ in asking.metrics["podqos_node_next_victim_info"] if labels["order"] == order]
    return {FIRST: f"{found[0]['namespace']}/{found[0]['pod']}" if found else None}


EVICTION = Question(
    "the kubelet's eviction order",
    (
        Reader(
            "rank",
            lambda asking: _ranked(asking.json(*_rank(asking))),
            lambda asking: _ranked_text(asking.text(*_rank(asking))),
        ),
        Reader(
            "rank --snapshot",
            lambda asking: _ranked(asking.json(*_rank_snapshot(asking))),
            lambda asking: _ranked_text(asking.text(*_rank_snapshot(asking))),
        ),
        Reader(
            "simulate",
            lambda asking: _evicted([each["pod"] for each in _simulated(asking, "kubelet") if each["spared"] is None]),
            when=lambda setting: setting.is_measured,
        ),
        Reader(
            "ui",
            lambda asking: _evicted(_page_order(asking.cluster, "evictionPlace")),
        ),
        Reader("ui FILES", lambda asking: _evicted(_page_order(asking.files, "evictionPlace")), when=is_told_by_files),
        Reader(
            "ui SCENARIO",
            lambda asking: _evicted(_page_order(asking.scenario, "evictionPlace")),
            when=lambda setting: setting.is_measured,
        ),
        Reader(
            "overview", lambda asking: _next(asking, "nextEvicted"), lambda asking: _next_text(asking, "EVICTED NEXT")
        ),
        Reader("exporter", lambda asking: _exported(asking, "eviction")),
    ),
)


# ---- the kernel's ----------------------------------------------------------------------------------------------------


def _killed(order: list[tuple[str, str]]) -> Answers:
    return {FIRST: order[0][0] if order else None, ORDER: tuple(order)}


def _kill_order(report: Any) -> Answers:
    return _killed([(each["pod"], each["container"]) for each in report["killOrder"]])


def _kill_order_text(text: str) -> Answers:
    return _killed([(row["POD"], row["CONTAINER"]) for row in table(text, "#", "POD", "CONTAINER")])


KILLS = Question(
    "the kernel's kill order",
    (
        Reader(
            "rank",
            lambda asking: _kill_order(asking.json(*_rank(asking))),
            lambda asking: _kill_order_text(asking.text(*_rank(asking))),
        ),
        Reader(
            "rank --snapshot",
            lambda asking: _kill_order(asking.json(*_rank_snapshot(asking))),
            lambda asking: _kill_order_text(asking.text(*_rank_snapshot(asking))),
            has_cgroup_v2,
        ),
        Reader(
            "simulate",
            lambda asking: _killed([(each["pod"], each["container"]) for each in _simulated(asking, "kernel")]),
            when=lambda setting: setting.is_measured,
        ),
        Reader(
            "ui",
            lambda asking: _first_killed(asking.cluster),
            when=has_cgroup_v2,
        ),
        Reader("ui FILES", lambda asking: _first_killed(asking.files), when=is_told_by_files),
        Reader(
            "ui SCENARIO",
            lambda asking: _first_killed(asking.scenario),
            when=lambda setting: setting.is_measured and has_cgroup_v2(setting),
        ),
        Reader(
            "overview",
            lambda asking: _next(asking, "nextKilled"),
            lambda asking: _next_text(asking, "KILLED NEXT"),
            has_cgroup_v2,
        ),
        Reader("exporter", lambda asking: _exported(asking, "kill"), when=has_cgroup_v2),
    ),
)


# ---- if all pods use what they may -----------------------------------------------------------------------------------

EVICTED, KILLED = "evictedBefore", "killedBefore"


def _rank_limits(asking: Asking) -> Answers:
    """Return who is before whom, in both orders."""
    setting = asking.setting
    used = sum(assumed_bytes(each) for pod in setting.pods for each in running(pod))
    if used >= setting.memory_bytes:
        return {}  # rank refuses it, and rightly
    report = asking.json("rank", *asking.pods, "--usage", asking.file("limits.csv"), "--cgroup", "v2")
    orders = {
        EVICTED: [each["pod"] for each in sorted(report["evictionOrder"], key=lambda each: bool(each["spared"]))],
        KILLED: [*dict.fromkeys(each["pod"] for each in report["killOrder"])],
    }
    return {
        (way, one, other): order.index(one) < order.index(other)
        for way, order in orders.items()
        for one, other in permutations(order, 2)
    }


def _check_limits(asking: Asking) -> Answers:
    known = _rank_limits(asking)
    found: dict[object, object] = {}
    for item in asking.json(*check(asking))["items"]:
        for way in (EVICTED, KILLED):
            about = way, f"{item['namespace']}/{item['name']}", item["effects"][way]
            if about in known:
                found[about] = True
    return found


IF_ALL_USE_THEIR_LIMITS = Question(
    "who goes before whom if all pods use what they may",
    (Reader("rank", _rank_limits), Reader("check", _check_limits)),
)
