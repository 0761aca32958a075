"""Journals of guards, for tests."""

from __future__ import annotations

from podqos.agent.journal import By, Entry, Kind, encode
from podqos.agent.reasons import (
    EvictionReport,
    GuardMode,
    OOMKill,
    OOMLevel,
    PodSaving,
    SeenEvicted,
    ThresholdFigures,
    ThresholdsMet,
    UnderPressure,
    WouldHaveSaved,
)
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import RankKey, Signal
from podqos.orders.counterfactual import PodChange

MIB = 1 << 20
START_US = 1_794_858_366_000_000
"""2026-11-16 19:46:06 UTC."""
NODE = "worker-1"


def at(seconds):
    return START_US + round(seconds * 1_000_000)


def watching(seconds=0.0, *, enforce=False, ended=False, node=NODE):
    mode = GuardMode(enforce, "" if enforce else "shadow", ended)
    return Entry(at(seconds), node, Kind.WATCHING, by=By.GUARD, because=mode)


def met(seconds, *signals, node=NODE):
    figures = tuple(ThresholdFigures(each, 300 * MIB, 280 * MIB, 2048 * MIB) for each in signals)
    return Entry(at(seconds), node, Kind.OBSERVED, because=ThresholdsMet(figures))


def cleared(seconds, node=NODE):
    return met(seconds, node=node)


def pressure(*, held_back="shadow", signal=Signal.ALLOCATABLE_MEMORY, **more):
    fields = {
        "signal": signal,
        "threshold": 300 * MIB,
        "available": 280 * MIB,
        "hard": True,
        "policy": Policy.KUBELET,
        "usage": 512 * MIB,
        "request": 100 * MIB,
        "over_request": True,
        "priority": 0,
        "has_statistics": True,
        "candidates": 12,
        "next_pod": "shop/web-2",
        "before_next_by": RankKey.EXCESS,
        "message": "The node was low on resource: memory.",
        "held_back": held_back,
    }
    return UnderPressure(**fields | more)


def chose(seconds, pod, *, enforced=False, node=NODE, **more):
    kind = Kind.EVICTED if enforced else Kind.WOULD_EVICT
    because = pressure(held_back="" if enforced else "shadow", **more)
    return Entry(at(seconds), node, kind, pod, by=By.GUARD, because=because)


def explained(seconds, pod, *savings, node=NODE):
    return Entry(at(seconds), node, Kind.EXPLAINED, pod, by=By.GUARD, because=WouldHaveSaved(savings))


REQUEST_MORE = PodSaving(PodChange.REQUEST.value, "memory", 512 * MIB, "main", "shop/web-2")
PRIORITY = PodSaving(PodChange.PRIORITY.value, "memory", 1000)


def reported(seconds, pod, *, noticed, killed, outcome="Evicted", faults=0, node=NODE):
    report = EvictionReport(
        outcome,
        noticed_us=at(noticed),
        decided_us=at(noticed) + 1000,
        held_us=at(noticed) + 2000,
        killed_us=at(killed),
        gone_us=at(killed) + 5000,
        answered_us=at(killed) + 8000,
        major_faults=faults,
    )
    return Entry(at(seconds), node, Kind.REPORTED, pod, by=By.GUARD, because=report)


def killed(seconds, pod, level=OOMLevel.KUBEPODS, node=NODE):
    because = None
    if level is not None:
        because = OOMKill(level, "/kubepods", 2048 * MIB, 1, 900, 1, 1, 1, as_group=False)
    return Entry(at(seconds), node, Kind.OOM_KILLED, pod, "main", By.KERNEL, because)


def evicted(seconds, pod, node=NODE):
    because = SeenEvicted("Evicted", "The node was low on resource: memory.")
    return Entry(at(seconds), node, Kind.EVICTED, pod, by=By.KUBELET, because=because)


def written(folder, *entries):
    """Write a journal into a state directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "journal.jsonl").write_bytes(encode(entries))
    return folder
