"""What a picture of a node has to show, most important first, and until when: one rule for page, picture and terminal.

First what pods were killed or evicted for, then what ran short or nearly so. Where nothing did, what changed; where
nothing changed, memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.reasons import LocalStorageExceeded, OOMKill, UnderPressure
from podqos.answers.run_view import Kill, NodeView
from podqos.eviction.signals import SIGNALS, Signal

MEMORY = "memory"
CPU = "cpu"
LEFT = Signal.MEMORY.value


class RunSpan(Struct, frozen=True):
    """How long a run is, and when pods of a node were killed or evicted in it."""

    end_us: int
    kills_us: tuple[int, ...]


def drawn_until_us(run: RunSpan, story_ends_us: int) -> int:
    """Return until when a node is drawn: all of the run, or less if its story ends early, so that kills lie apart."""
    if not run.kills_us:
        return run.end_us
    first, last = run.kills_us[0], run.kills_us[-1]
    margin_us = max((last - first) * 3 // 5, first * 3 // 5, run.end_us // 20)
    close_us = max(last + margin_us, story_ends_us + run.end_us // 20)
    return close_us if close_us < run.end_us // 2 else run.end_us


class Reach(Struct, frozen=True):
    """How far a node got."""

    available_bytes: tuple[int, int]
    """The least and the most memory that was available."""
    least_left: Mapping[Signal, int]
    """The least that was left of what else ran short or changed noticeably."""
    is_cpu_short: bool
    """Whether a pod got less CPU than it wanted."""


def story(node: NodeView, kills: Sequence[Kill], reach: Reach | None = None) -> tuple[str, ...]:
    """Return the panels worth drawing of a node, of which ``kills`` are the victims.

    ``reach`` is how far it got, where its series do not say so.
    """
    reach = reach or _reach(node)
    there = {MEMORY, LEFT, *(signal.value for signal in reach.least_left)}
    needed = [panel for kill in kills for panel in _fatal(kill)] + [*_short(node, reach)]
    panels = [panel for panel in dict.fromkeys(needed) if panel in there or panel == CPU]
    return tuple(panels or _moving(node, reach))


def _reach(node: NodeView) -> Reach:
    left = node.available_bytes
    return Reach(
        (min(left, default=node.memory_bytes), max(left, default=node.memory_bytes)),
        {series.signal: min(series.left) for series in node.signals},
        any(
            (wanted or 0) > (granted or 0)
            for pod in node.pods
            for wanted, granted in zip(pod.cpu_wanted_milli, pod.cpu_granted_milli, strict=True)
        ),
    )


def _fatal(kill: Kill) -> tuple[str, ...]:
    """Return where to see what a pod was killed or evicted for."""
    match kill.because:
        case OOMKill():
            return (MEMORY,)
        case UnderPressure(signal=signal):
            return (MEMORY, LEFT) if SIGNALS[signal].is_memory else (signal.value,)
        case LocalStorageExceeded():
            return (Signal.NODEFS.value,)
        case _:
            return ()


def _short(node: NodeView, reach: Reach) -> Iterator[str]:
    """Yield what ran short, or came within twice a threshold of it."""
    marks = [threshold.amount for threshold in node.thresholds if threshold.signal is Signal.MEMORY]
    if reach.available_bytes[0] < 2 * max(node.kernel_min_bytes, *marks, 0):
        yield from (MEMORY, LEFT)
    for signal, least in reach.least_left.items():
        if any(least < 2 * threshold.amount for threshold in node.thresholds if threshold.signal is signal):
            yield signal.value
    if reach.is_cpu_short:
        yield CPU


def _moving(node: NodeView, reach: Reach) -> Iterator[str]:
    least, most = reach.available_bytes
    if not reach.least_left or 10 * (most - least) > node.memory_bytes:
        yield MEMORY
    yield from (signal.value for signal in reach.least_left)
