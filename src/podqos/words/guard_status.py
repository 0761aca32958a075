"""How a guard is."""

from __future__ import annotations

from collections import Counter

from podqos.agent.guard_status import GuardStatus
from podqos.model.time_units import SECOND_US
from podqos.naming import stated_with
from podqos.wording import counted, mebibytes
from podqos.words.durations import span, two_units

API = "API server"


_SWITCHES = {
    "shadow": f"shadow: it decides and logs, but evicts nothing ({stated_with('enforce')})",
    "stop file": "evicts nothing: the stop file exists",
    "node annotation": "evicts nothing: the node has the annotation podqos.dev/guard: off",
    "rate limit": "evicts nothing: the rate limit is reached",
    "cool-down": "evicts nothing for a moment: cooling down after an eviction",
}


def status_facts(status: GuardStatus, now_us: int) -> list[tuple[str, str]]:
    """Return what a guard is about, knows and may do, each under its name."""
    return [
        ("guard", f"node {status.node}, podqos {status.version}, pid {status.pid}, up {_up(status)}"),
        ("mode", mode(status)),
        ("kill switch", _switch(status)),
        ("watches", f"{status.kubepods} (cgroup {status.cgroup})"),
        ("settings", status.kubelet_settings or "the kubelet's own answer (/configz)"),
        ("pods", _pods(status)),
        (API, _api(status, now_us)),
        ("evictions", _evictions(status)),
        ("rate limit", _limit(status, now_us)),
        ("protection", f"not protected: {'; '.join(status.unprotected)}" if status.unprotected else "complete"),
        ("uses", f"{_share(status)} of a core since it started, {mebibytes(status.rss_bytes)} of memory"),
    ]


def mode(status: GuardStatus) -> str:
    """Return whether a guard evicts, and what keeps it from that."""
    return _SWITCHES.get(status.held_back, f"evicts nothing: {status.held_back}") if status.held_back else "enforces"


def is_away(status: GuardStatus) -> bool:
    """Whether a guard knows less than it should: of no pod yet, or only what it knew before."""
    return status.api.synced_us is None or bool(status.api.trouble)


def _up(status: GuardStatus) -> str:
    return two_units(status.updated_us - status.started_us)


def _pods(status: GuardStatus) -> str:
    why = Counter(pod.why for pod in status.excluded)
    spared = [f"{count} excluded: {reason}" for reason, count in sorted(why.items())]
    parts = [f"{status.known} known", f"{status.candidates} may be evicted", *spared]
    if status.unknown_cgroups:
        parts.append(f"{counted(status.unknown_cgroups, 'cgroup')} of pods unknown to the API server, left alone")
    return "; ".join(parts)


def _api(status: GuardStatus, now_us: int) -> str:
    api = status.api
    if api.synced_us is None:
        return f"no pods known yet{f': {api.trouble}' if api.trouble else ''}"
    age = two_units(now_us - api.synced_us)
    whose = " by an earlier guard" if api.from_disk else ""
    if api.trouble:
        return f"away: {api.trouble}; using state saved{whose} {age} ago"
    return f"from disk{whose}, {age} old" if api.from_disk else f"watching; last change {age} ago"


def _evictions(status: GuardStatus) -> str:
    taken = sorted(status.reactions_us)
    if not taken:
        return f"{status.evictions} since it started"
    median, slowest = span(taken[len(taken) // 2]), span(taken[min(len(taken) - 1, len(taken) * 99 // 100)])
    return f"{status.evictions} since it started; crossing to kill: median {median}, p99 {slowest}"


def _switch(status: GuardStatus) -> str:
    on = [*(["the stop file"] * status.stop_file), *(["the node's annotation"] * status.node_annotation)]
    return f"on: {' and '.join(on)}" if on else "off"


def _limit(status: GuardStatus, now_us: int) -> str:
    limit = status.limit
    if limit is None:
        return "none"
    until_us = limit.cool_down_until_us or 0
    rest = f"; cool-down for {span(until_us - now_us)} more" if until_us > now_us else ""
    return f"{limit.recent} of {limit.most} evictions within {two_units(limit.within_us)}{rest}"


def _share(status: GuardStatus) -> str:
    up = max(1, status.updated_us - status.started_us) / SECOND_US
    return f"{status.cpu_seconds / up * 100:.2f} %"
