"""What a picture of a node has to show, most important first: one rule for page, still picture and terminal.

First what pods were killed or evicted for, then what ran short or nearly so. Where nothing did, what changed; where
nothing changed, memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.agent.reasons import LocalStorageExceeded, OOMKill, UnderPressure
from podqos.eviction.signals import SIGNALS, Signal
from podqos.report.simulation.view import Kill, NodeView

MEMORY = "memory"
CPU = "cpu"
LEFT = Signal.MEMORY.value


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
    marks = [each.amount for each in node.thresholds if each.signal is Signal.MEMORY]
    if min(node.available_bytes, default=node.memory_bytes) < 2 * max(node.kernel_min_bytes, *marks, 0):
        yield from (MEMORY, LEFT)
    for series in node.signals:
        if any(min(series.left) < 2 * each.amount for each in node.thresholds if each.signal is series.signal):
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
