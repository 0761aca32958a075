"""The live view of a node: one screen of text per status."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.host.api.status_document import NodeStatus, PodRow
from podqos.report.node.lines import (
    NextVictims,
    by_class,
    conditions,
    memory,
    next_evicted,
    next_killed,
    pod_counts,
    pressure,
    shown_bytes,
    shown_phase,
)
from podqos.report.text.style import Style, columns, windowed
from podqos.words.durations import two_units

_BAR_COLUMNS = 24
_NODE_BAR_COLUMNS = 48
# On a narrower terminal pods have no bar.
_WIDE = 110


def screen(
    status: NodeStatus, victims: NextVictims, cpu_milli: Mapping[str, int], style: Style, height: int | None = None
) -> list[str]:
    """Return the lines of the view; ``cpu_milli`` is recent CPU usage by uid."""
    up = two_units(status.now_us - status.start_us)
    lines = [
        f"{style.strong(status.node)}  up {up}, {pod_counts(status)}, {conditions(status, style)}",
        f"memory        {_node_bar(status)}  {memory(status)}",
        f"waiting       {pressure(status)}",
        f"next evicted  {next_evicted(victims, style)}",
        f"next killed   {next_killed(victims, style)}",
        "",
        *_table(status, cpu_milli, style),
    ]
    return windowed(lines, style, height)


def _table(status: NodeStatus, cpu_milli: Mapping[str, int], style: Style) -> list[str]:
    capacity = (status.memory.working_set_bytes or 0) + (status.memory.available_bytes or 0)
    is_wide = style.width is None or style.width >= _WIDE
    rows = [
        (
            style.qos_class(pod.qos_class),
            pod.key,
            str(pod.priority),
            shown_phase(pod),
            str(pod.restarts),
            f"{cpu_milli[pod.uid]}m" if pod.uid in cpu_milli else "–",
            shown_bytes(pod.memory_bytes),
            *((_bar(pod, capacity, style),) if is_wide else ()),
            _request(pod),
            shown_bytes(pod.memory_limit_bytes),
        )
        for pod in by_class(status.pods)
    ]
    bars = ("",) if is_wide else ()
    headers = ("CLASS", "POD", "PRIORITY", "PHASE", "RESTARTS", "CPU", "MEMORY", *bars, "REQUEST", "LIMIT")
    return columns(headers, rows, style) if rows else ["no pods"]


def _bar(pod: PodRow, capacity_bytes: int, style: Style) -> str:
    """Return usage as a bar up to the limit or the node's memory, with a mark at the request."""
    if pod.memory_bytes is None:
        return ""
    full = pod.memory_limit_bytes or capacity_bytes or 1
    request = pod.memory_request_bytes
    text = bar(pod.memory_bytes, full, _BAR_COLUMNS, mark=request if 0 < request < full else None)
    return style.alarm(text) if pod.memory_bytes > 0.9 * full else text


def _request(pod: PodRow) -> str:
    is_over = pod.memory_bytes is not None and pod.memory_bytes > pod.memory_request_bytes > 0
    return shown_bytes(pod.memory_request_bytes or None) + (" (above)" if is_over else "")


def _node_bar(status: NodeStatus) -> str:
    """Return the node's memory as a bar, with a mark at the first hard threshold for memory."""
    used, left = status.memory.working_set_bytes or 0, status.memory.available_bytes or 0
    hard = [
        row.threshold for row in status.thresholds if row.signal == "memory.available" and row.hard and row.threshold
    ]
    return bar(used, used + left or 1, _NODE_BAR_COLUMNS, mark=used + left - max(hard) if hard else None)


def bar(value: int, full: int, width: int, mark: int | None = None) -> str:
    """Return a fraction as a bar in brackets."""
    filled = min(width, max(0, round(value * width / full)))
    cells = ["█"] * filled + ["·"] * (width - filled)
    if mark is not None:
        cells[min(width - 1, max(0, mark * width // full))] = "|"
    return f"[{''.join(cells)}]"
