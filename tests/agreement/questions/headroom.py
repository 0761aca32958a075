"""How much memory is left until the kubelet evicts, and by which signal: the least of both counts."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from agreement.asking import Asking
from agreement.printed import Rounded, amount, table
from agreement.question import Answers, Question, Reader
from agreement.questions.growth import growth
from agreement.questions.orders import is_told_by_files
from agreement.questions.pods import has_cgroup_v2
from agreement.settings import NODE, PAGE_BYTES, Setting, key, running, share_of
from podqos.manifest.encoding import json_line
from podqos.page.what_if import ForecastRequest, WhatIf

LEFT, SIGNAL, TYPE = "bytes before eviction", "the signal that decides", "hard or soft"
MACHINE, PODS = "memory.available", "allocatableMemory.available"
_BRIEF = {"": (MACHINE, "hard"), "allocatable": (PODS, "hard"), "soft": (MACHINE, "soft")}


class _Watched(NamedTuple):
    left: int
    grace_seconds: int
    signal: str
    type: str


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def _least(setting: Setting) -> _Watched | None:
    """Return the threshold with the least headroom, as the kubelet's source has it; None without any.

    Every threshold of memory.available counts, and its hard one once more for all pods if their limit is enforced:
    makeSignalObservations and addAllocatableThresholds in pkg/kubelet/eviction/helpers.go.
    """
    of_pods = sum(setting.usage_of_assumed_pods.values())
    kubelet = setting.kubelet
    hard = kubelet.get("evictionHard", {MACHINE: "100Mi"}).get(MACHINE)
    soft = kubelet.get("evictionSoft", {}).get(MACHINE)
    of_machine = setting.memory_bytes - setting.system_bytes - of_pods
    found = []
    if hard is not None:
        found.append(_Watched(of_machine - share_of(hard, setting.memory_bytes), 0, MACHINE, "hard"))
        if setting.is_enforced:
            limit = setting.pods_limit_bytes
            found.append(_Watched(limit - of_pods - share_of(hard, limit), 0, PODS, "hard"))
    if soft is not None:
        grace = _seconds(kubelet["evictionSoftGracePeriod"][MACHINE])
        found.append(_Watched(of_machine - share_of(soft, setting.memory_bytes), grace, MACHINE, "soft"))
    # At a tie the machine's signal, which the kubelet handles first.
    return min(found, key=lambda each: (each.left, each.grace_seconds, each.signal == PODS), default=None)


def _formula(asking: Asking) -> Answers:
    least = _least(asking.setting)
    return {} if least is None else {LEFT: least.left, SIGNAL: least.signal, TYPE: least.type}


def _stated(headroom: Any) -> Answers:
    if headroom is None:
        return {}
    return {LEFT: headroom["headroomBytes"], SIGNAL: headroom["signal"], TYPE: headroom["type"]}


def _rank(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.node, *asking.cgroup


_SENTENCE = re.compile(r"(\S+) (headroom before eviction|past the eviction threshold) \((\S+) < \S+( for)?")


def _rank_text(text: str) -> Answers:
    found = _SENTENCE.search(text.replace("\n", " "))
    if found is None:
        return {}
    left = amount(found[1])
    left = Rounded(-left.high, -left.low) if found[2].startswith("past") else left
    return {LEFT: left, SIGNAL: found[3], TYPE: "soft" if found[4] else "hard"}


def _overview(asking: Asking, *snapshot: str) -> Answers:
    (node,) = asking.json("overview", *snapshot)["nodes"]
    stated = _stated(node["headroom"])
    assert not stated or stated[LEFT] == node["headroomBytes"]
    return stated


def _overview_text(asking: Asking) -> Answers:
    text = asking.text("overview", *asking.snapshot)
    (row,) = table(text, "NODE", "HEADROOM")
    if _least(asking.setting) is None:
        return {}
    left, _, remarks = row["HEADROOM"].partition(" (")
    first = remarks.rstrip(")").partition(", ")[0]
    signal, kind = _BRIEF["" if first.startswith("OOM kill") else first]
    headline = text.partition("\n")[0]
    qualified = next((name for name in ("allocatable", "soft") if f"({name})" in headline), "")
    assert _BRIEF[qualified] == (signal, kind), headline
    return {LEFT: amount(left), SIGNAL: signal, TYPE: kind}


def _exporter(asking: Asking) -> Answers:
    by = asking.metrics["podqos_node_memory_headroom_threshold_bytes"]
    if not by:
        return {}
    ((labels, _),) = by
    ((_, left),) = asking.metrics["podqos_node_memory_headroom_bytes"]
    return {LEFT: int(left), SIGNAL: labels["signal"], TYPE: labels["type"]}


def _is_plain(setting: Setting) -> bool:
    """Whether nothing is reclaimed while it grows, nor stopped by a limit: what is left can be used then."""
    pod = next(each for each in setting.pods if key(each) == setting.growing[0])
    is_free = all("memory" not in each.get("resources", {}).get("limits", {}) for each in running(pod))
    has_no_cache = not any(used.inactive_bytes for used in setting.usage.values())
    return setting.is_measured and has_cgroup_v2(setting) and has_no_cache and is_free


def _crossed(asking: Asking, found: Any) -> Answers:
    """Return what grows until a threshold is crossed; by how much one is crossed already is not said."""
    least = _least(asking.setting)
    nearest = min(found["thresholds"], key=lambda each: each["crossedAfterSeconds"], default=None)
    if least is None or nearest is None or least.left <= 0:
        return {}
    left = nearest["crossedAfterSeconds"] * asking.setting.rate
    # Seconds are to the microsecond, so bytes are as exact as the growth of one.
    within = asking.setting.rate / 1_000_000 + 1
    return {LEFT: Rounded(left - within, left + within), SIGNAL: nearest["signal"], TYPE: nearest["type"]}


def _what_if(asking: Asking) -> Answers:
    """Return what is left as it is, on the page where edits are made."""
    view = asking.page.what_if(WhatIf(node=NODE))
    assert view.headroom_before_bytes == view.headroom_after_bytes
    return {} if view.headroom_signal is None else {LEFT: view.headroom_before_bytes, SIGNAL: view.headroom_signal}


def _page_forecast(asking: Asking) -> Answers:
    growing, rate = ":".join(asking.setting.growing), asking.setting.rate
    view = asking.page.forecast(ForecastRequest(growing, rate_bytes_per_second=rate))
    return _crossed(asking, json.loads(json_line(view.report.growths[0])))


def _forecast_snapshot(asking: Asking, *snapshot: str) -> Answers:
    return _crossed(asking, asking.json("forecast", *snapshot, *asking.growth)["growths"][0])


# ---- where the kubelet does not report its settings ------------------------------------------------------------------


def _is_implied(setting: Setting) -> bool:
    """Whether Node and statistics tell the hard threshold: it is there, pods are limited, and nothing is soft."""
    hard = setting.kubelet.get("evictionHard", {MACHINE: "100Mi"}).get(MACHINE, "0")
    has_threshold = share_of(hard, setting.memory_bytes) > 0
    return setting.is_enforced and has_threshold and "evictionSoft" not in setting.kubelet


def _in_pages(asking: Asking, answers: Answers) -> Answers:
    """Return answers as exact as they can be: a limit is in whole pages, and of pods a percentage is another amount."""
    least = _least(asking.setting)
    if least is None or not answers:
        return {}
    hard = asking.setting.kubelet.get("evictionHard", {MACHINE: "100Mi"})[MACHINE]
    limit = asking.setting.pods_limit_bytes
    within = PAGE_BYTES + abs(share_of(hard, asking.setting.memory_bytes) - share_of(hard, limit))
    found = answers[LEFT]
    low, high = (found.low, found.high) if isinstance(found, Rounded) else (found, found)
    return {LEFT: Rounded(low - within, high + within)}


def _rank_unstated(asking: Asking) -> Answers:
    return _in_pages(asking, _stated(asking.json("rank", *asking.unstated)["node"]["headroom"]))


HEADROOM = Question(
    "how much memory is left until the kubelet evicts",
    (
        Reader("(the kubelet's formula)", _formula),
        Reader(
            "rank",
            lambda asking: _stated(asking.json(*_rank(asking))["node"]["headroom"]),
            lambda asking: _rank_text(asking.text(*_rank(asking))),
        ),
        Reader(
            "rank --snapshot",
            lambda asking: _stated(asking.json("rank", *asking.snapshot)["node"]["headroom"]),
            lambda asking: _rank_text(asking.text("rank", *asking.snapshot)),
        ),
        Reader("overview", lambda asking: _overview(asking, *asking.snapshot), _overview_text),
        Reader("exporter", _exporter),
        Reader("ui", lambda asking: _stated(asking.cluster["nodes"][0]["headroom"])),
        Reader("ui FILES", lambda asking: _stated(asking.files["nodes"][0]["headroom"]), when=is_told_by_files),
        Reader(
            "ui SCENARIO",
            lambda asking: _stated(asking.scenario["nodes"][0]["headroom"]),
            when=lambda setting: setting.is_measured,
        ),
        Reader("ui what if", _what_if),
        Reader("ui forecast", _page_forecast, when=_is_plain),
        Reader("forecast", lambda asking: _crossed(asking, growth(asking)), when=_is_plain),
        Reader("forecast --snapshot", lambda asking: _forecast_snapshot(asking, *asking.snapshot), when=_is_plain),
        Reader("rank, settings not reported", _rank_unstated, when=_is_implied),
        Reader(
            "overview, settings not reported",
            lambda asking: _in_pages(asking, _overview(asking, *asking.unstated)),
            when=_is_implied,
        ),
        Reader(
            "forecast, settings not reported",
            lambda asking: _in_pages(asking, _forecast_snapshot(asking, *asking.unstated)),
            when=lambda setting: _is_implied(setting) and _is_plain(setting),
        ),
    ),
)
