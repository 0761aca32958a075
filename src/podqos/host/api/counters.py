"""Counters of a node since its start, for its metrics and status.

They are updated from journal entries and evictions for memory; the node itself is never queried.
"""

from __future__ import annotations

import time
from collections import Counter

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import ConditionStatus, ExitedWith, LocalStorageExceeded, UnderPressure
from podqos.eviction.signals import NodeCondition
from podqos.exposition import Histogram
from podqos.host.node.world import Reaction

_STAGES = ("held", "terminated", "killed")
_REACTION_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)
"""Upper bounds in seconds: from the latency with SCHED_FIFO to that of the kubelet's loop."""


class Counters:
    """Counts journal entries and reactions."""

    def __init__(self) -> None:
        self.start_us = self.now_us()
        self.evictions: Counter[str] = Counter()
        """By signal, or by the limit of local storage."""
        self.oom_kills: Counter[tuple[str, str]] = Counter()
        """By pod and container."""
        self.entries: Counter[Kind] = Counter()
        self.transitions_us: dict[NodeCondition, int] = {}
        self.reactions = 0
        self.last_reaction_seconds: float | None = None
        self.reaction_seconds = Histogram(
            "podqos_reaction_seconds",
            "Time from the kernel's notification to each stage of an eviction for memory",
            _REACTION_BOUNDS,
            [(("stage", stage),) for stage in _STAGES],
        )

    @staticmethod
    def now_us() -> int:
        """Return the current time."""
        return time.time_ns() // 1000

    def heard(self, entry: Entry) -> None:
        """Count a journal entry."""
        self.entries[entry.kind] += 1
        match entry.kind, entry.because:
            case Kind.EVICTED, UnderPressure(signal=signal):
                self.evictions[signal.value] += 1
            case Kind.EVICTED, LocalStorageExceeded(limit_kind=kind):
                self.evictions[kind.value] += 1
            case Kind.EXITED, ExitedWith(oom_killed=True):
                self.oom_kills[entry.pod or "", entry.container or ""] += 1
            case Kind.CONDITION_CHANGED, ConditionStatus(condition=condition):
                self.transitions_us[condition] = entry.time_us

    def reacted(self, reaction: Reaction) -> None:
        """Count an eviction for memory; its reaction time is known if the kernel's signal triggered it."""
        self.reactions += 1
        if reaction.noticed is None:
            return
        self.last_reaction_seconds = reaction.held - reaction.noticed
        for stage in _STAGES:
            when: float | None = getattr(reaction, stage)
            if when is not None:
                self.reaction_seconds.add(when - reaction.noticed, (("stage", stage),))
