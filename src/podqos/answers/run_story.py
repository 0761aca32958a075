"""What a picture of a node has to show, most important first, and until when: one rule for page, picture and terminal.

First what pods were killed or evicted for, then what ran short or nearly so. Where nothing did, what changed; where
nothing changed, memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def story(node: NodeView, kills: Sequence[Kill]) -> tuple[str, ...]:
    """Return the panels worth drawing of a node, of which ``kills`` are the victims."""
    there = {MEMORY, LEFT, *(series.signal.value for series in node.signals)}
    needed = [panel for kill in kills for panel in _fatal(kill)] + [*_short(node)]
    found = [panel for panel in dict.fromkeys(needed) if panel in there or panel == CPU]
    return tuple(found or _moving(node))


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


def _short(node: NodeView) -> Iterator[str]:
    """Yield what ran short, or came within twice a threshold of it."""
    marks = [threshold.amount for threshold in node.thresholds if threshold.signal is Signal.MEMORY]
    if min(node.available_bytes, default=node.memory_bytes) < 2 * max(node.kernel_min_bytes, *marks, 0):
        yield from (MEMORY, LEFT)
    for series in node.signals:
        if any(
            min(series.left) < 2 * threshold.amount
            for threshold in node.thresholds
            if threshold.signal is series.signal
        ):
            yield series.signal.value
    for pod in node.pods:
        both = zip(pod.cpu_wanted_milli, pod.cpu_granted_milli, strict=True)
        if any((wanted or 0) > (granted or 0) for wanted, granted in both):
            yield CPU
            return


def _moving(node: NodeView) -> Iterator[str]:
    left = node.available_bytes or (0,)
    if not node.signals or 10 * (max(left) - min(left)) > node.memory_bytes:
        yield MEMORY
    yield from (series.signal.value for series in node.signals)
