"""Who goes first: the kubelet's eviction order and the kernel's kill order at this moment."""

from __future__ import annotations

import re
from typing import Any

from agreement.asking import Asking
from agreement.printed import table
from agreement.question import Answers, Question, Reader
from agreement.questions.pods import drift, has_cgroup_v2
from agreement.settings import Setting, amount, key, of_containers, running, stored

FIRST, ORDER = "first", "order"


def _rank(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.node, *asking.cgroup


def _rank_snapshot(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.snapshot


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
    first: list[Any] = [
        {**each, "pod": run["pods"][each["pod"]]["key"]} for each in node["orders"][0][order]
    ]
    return first


def _page_order(asking: Asking, place: str) -> list[Any]:
    own = [each for each in asking.cluster["pods"] if each[place] is not None]
    return sorted(own, key=lambda each: each[place])


def _page_name(block: Any) -> str:
    return f"{block['namespace']}/{block['name']}"


def _next(asking: Asking, which: str) -> Answers:
    (node,) = asking.json("overview", *asking.snapshot)["nodes"]
    return {FIRST: node[which] and node[which]["pod"]}


def _next_text(asking: Asking, column: str) -> Answers:
    (row,) = table(asking.text("overview", *asking.snapshot), "NODE", "HEADROOM")
    return {FIRST: row[column] if row[column] not in {"", "–"} else None}


def _exported(asking: Asking, order: str) -> Answers:
    found = [labels for labels, _ in asking.metrics["podqos_node_next_victim_info"] if labels["order"] == order]
    return {FIRST: f"{found[0]['namespace']}/{found[0]['pod']}" if found else None}


def _drifted(asking: Asking, place: str) -> list[str]:
    own = asking.json(*drift(asking))["workloads"]
    return [f"{each['namespace']}/{each['name']}" for each in sorted(own, key=lambda each: each["after"][place])]


def _evaluated(asking: Asking) -> Answers:
    setting = asking.setting
    pods = [stored(each) for each in setting.pods]
    stats = {
        key(each): {"memory": {"workingSetBytes": setting.usage_of_pods[key(each)]}} for each in setting.pods
    }
    (found,) = asking.evaluated("eviction_rank", {"signal": "memory.available", "pods": pods, "stats": stats})
    return {ORDER: tuple(found)}


EVICTION = Question(
    "the kubelet's eviction order",
    (
        Reader("rank", lambda asking: _ranked(asking.json(*_rank(asking))), lambda asking: _ranked_text(asking.text(*_rank(asking)))),
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
            lambda asking: _evicted(
                [_page_name(each) for each in _page_order(asking, "evictionPlace") if each["spared"] is None]
            ),
        ),
        Reader("overview", lambda asking: _next(asking, "nextEvicted"), lambda asking: _next_text(asking, "EVICTED NEXT")),
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
        Reader("rank", lambda asking: _kill_order(asking.json(*_rank(asking))), lambda asking: _kill_order_text(asking.text(*_rank(asking)))),
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
            lambda asking: {FIRST: next((_page_name(each) for each in _page_order(asking, "killPlace")), None)},
            when=has_cgroup_v2,
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
