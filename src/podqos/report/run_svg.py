"""A run as one still picture, for documents and slides: memory by pod, what was left, and who ran when.

The layout is that of the page, the drawing is plain SVG without script or style sheet, and the same run gives the same
bytes. A picture shows one node.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log2
from xml.sax.saxutils import escape

from msgspec import Struct

from podqos.agent.journal import By
from podqos.model.pod import QOSClass
from podqos.report import palette
from podqos.report.run_view import Kill, NodeView, RunView
from podqos.report.timeline import headline, seconds
from podqos.report.words import mebibytes

WIDTH = 1200
_LEFT, _RIGHT = 70, WIDTH - 24
_MEMORY_HEIGHT, _LEFT_HEIGHT, _ROW = 300, 110, 17
_MOST_POINTS = 2000
_MOST_ROWS = 24
_INK, _QUIET, _GRID, _PAPER = "#1b2430", "#5c6877", "#e9edf2", "#ffffff"
_SOFT = "#b26a00"
_FONT = f'font-family="system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" font-size="11.5" fill="{_QUIET}"'
_TIME_STEPS_US = tuple(
    step * 1000
    for step in (
        *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000),
        *(600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000),
    )
)

Scale = Callable[[float], float]


class _Plot(Struct, frozen=True):
    view: RunView
    node: NodeView
    from_us: int
    to_us: int

    def x(self, time_us: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (time_us - self.from_us) / (self.to_us - self.from_us)

    @property
    def kills(self) -> list[Kill]:
        return [
            kill
            for kill in self.view.kills
            if kill.node == self.node.name and self.from_us <= kill.time_us <= self.to_us
        ]

    @property
    def indices(self) -> Sequence[int]:
        """The points to draw: those in sight and one on either side, thinned where they are too many."""
        times = self.node.times_us
        first = max(0, bisect_left(times, self.from_us) - 1)
        last = min(len(times), bisect_right(times, self.to_us) + 1)
        every = range(first, last)
        most = max(12, _MOST_POINTS // (len(self.node.pods) + 2))
        if len(every) <= most:
            return every
        kept = {first, last - 1, *range(first, last, ceil(len(every) / most))}
        for kill in self.kills:
            kept.update(range(bisect_left(times, kill.time_us), min(last, bisect_right(times, kill.time_us))))
        return sorted(kept)


def run_svg(view: RunView, node: NodeView) -> str:
    """Draw a node of a run."""
    from_us, to_us = _in_sight(view, node)
    plot = _Plot(view, node, from_us, to_us)
    rows = min(len(node.pods), _MOST_ROWS)
    memory_top, left_top = 118, 118 + _MEMORY_HEIGHT + 44
    pods_top = left_top + _LEFT_HEIGHT + 44
    bottom = pods_top + rows * _ROW
    height = bottom + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" {_FONT}>',
        f"<title>{escape(view.name)}: {escape(headline(view.summary))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="{_PAPER}"/>',
        f'<clipPath id="c">{_rect(_LEFT, 0, _RIGHT - _LEFT, height)}/></clipPath>',
        *_head(plot),
        *_times(plot, memory_top, bottom),
        *_memory(plot, memory_top),
        *_memory_left(plot, left_top),
        *_pods(plot, pods_top, rows),
        *_marks(plot, memory_top, bottom),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _in_sight(view: RunView, node: NodeView) -> tuple[int, int]:
    """Return the part of the run that is drawn: all of it, or less if everything happens early."""
    times = [kill.time_us for kill in view.kills if kill.node == node.name]
    if not times:
        return 0, view.end_us
    first, last = times[0], times[-1]
    end_us = last + max((last - first) * 3 // 5, first * 3 // 5, view.end_us // 20)
    return 0, end_us if end_us < view.end_us // 2 else view.end_us


# ---- panels ----------------------------------------------------------------------------------------------------------


def _head(plot: _Plot) -> Iterator[str]:
    view = plot.view
    facts = f"{seconds(view.end_us, 0)}, Kubernetes {view.kubernetes_version}"
    node = f", {plot.node.name}" if view.summary.nodes > 1 else ""
    yield _text(_LEFT, 32, view.name, size=20, weight=650, fill=_INK)
    yield _text(_RIGHT, 32, f"podqos simulate: {facts}{node}", anchor="end")
    yield _text(_LEFT, 53, headline(view.summary), size=13, fill=_INK)
    x = _LEFT
    for qos_class in QOSClass:
        colour = palette.SHADES[qos_class][2]
        yield f'{_rect(x, 64, 11, 11)} rx="3" fill="{colour}"/>'
        yield _text(x + 16, 74, qos_class.value)
        x += 100
    yield _shape(By.KERNEL, x + 6, 70, 5)
    yield _text(x + 16, 74, "killed by the kernel")
    yield _shape(By.KUBELET, x + 152, 70, 5)
    yield _text(x + 162, 74, "evicted by the kubelet")


def _times(plot: _Plot, top: float, bottom: float) -> Iterator[str]:
    rough = (plot.to_us - plot.from_us) / 9
    step = next(
        (each for each in _TIME_STEPS_US if each >= rough), _TIME_STEPS_US[-1] * ceil(rough / _TIME_STEPS_US[-1])
    )
    digits = 0 if step >= 1_000_000 else 1 if step >= 100_000 else 3
    for time_us in range(plot.from_us, plot.to_us + 1, step):
        x = plot.x(time_us)
        yield _line(x, top, x, bottom, _GRID)
        yield _text(min(x, _RIGHT - 14), bottom + 18, seconds(time_us, digits), anchor="middle")


def _memory(plot: _Plot, top: float) -> Iterator[str]:
    node = plot.node

    def y(size: float) -> float:
        return top + _MEMORY_HEIGHT * (1 - size / node.memory_bytes)

    yield _title(top, "Memory by pod", f"working sets, stacked; the node has {mebibytes(node.memory_bytes)}")
    step = 2 ** ceil(log2(node.memory_bytes / 5))
    for size in range(0, node.memory_bytes + 1, step):
        yield _line(_LEFT, y(size), _RIGHT, y(size), _GRID)
        yield _text(_LEFT - 8, y(size) + 4, mebibytes(size) if size else "0", anchor="end")
    indices = plot.indices
    base = [0] * len(node.times_us)
    names: list[str] = []
    for name, colour, values in _layers(plot):
        upper = [base[index] + values[index] for index in range(len(base))]
        points = [(plot.x(node.times_us[index]), y(upper[index])) for index in indices]
        points += [(plot.x(node.times_us[index]), y(base[index])) for index in reversed(indices)]
        yield f'<path clip-path="url(#c)" d="{_path(points)}Z" fill="{colour}" stroke="{_PAPER}" stroke-width=".6"/>'
        names += _name(plot, name, colour, [(index, y(base[index]), y(upper[index])) for index in indices])
        base = upper
    yield from names
    for threshold in node.thresholds:
        if threshold.signal == "memory.available":
            at = y(node.memory_bytes - threshold.amount)
            yield _line(_LEFT, at, _RIGHT, at, palette.KERNEL if threshold.hard else _SOFT, dash="6 4")
    yield _line(_LEFT, top, _RIGHT, top, _INK)


def _layers(plot: _Plot) -> Iterator[tuple[str, str, Sequence[int]]]:
    node = plot.node
    yield "system", palette.SYSTEM, node.system_bytes
    for series in node.pods:
        pod = plot.view.pods[series.pod]
        both = zip(series.anon_bytes, series.active_file_bytes, strict=True)
        yield pod.key.partition("/")[2], pod.colour, [(anon or 0) + (file or 0) for anon, file in both]


def _name(plot: _Plot, name: str, colour: str, bands: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    """Yield the name of a band at the first place where it fits into it."""
    width = 6.8 * len(name) + 12
    spans = [(plot.x(plot.node.times_us[index]), low, high) for index, low, high in bands]
    for at, (start, _, _) in enumerate(spans):
        x = max(_LEFT, start)
        if x + width > _RIGHT or (at + 1 < len(spans) and spans[at + 1][0] <= x):
            continue
        low, high = _narrowest(spans[at:], x + width)
        if low - high >= 13:
            fill = "#fff" if palette.is_dark(colour) else _INK
            yield _text(x + 8, (low + high) / 2 + 4, name, weight=550, fill=fill)
            return


def _narrowest(spans: Sequence[tuple[float, float, float]], end: float) -> tuple[float, float]:
    """Return what is inside of a band all the way from its first point to ``end``: below the one, above the other."""
    _, low, high = spans[0]
    for (x, x_low, x_high), (next_x, next_low, next_high) in pairwise(spans):
        share = (end - x) / (next_x - x) if next_x > end else 1.0
        low = min(low, x_low + (next_low - x_low) * share)
        high = max(high, x_high + (next_high - x_high) * share)
        if share < 1:
            break
    return low, high


def _memory_left(plot: _Plot, top: float) -> Iterator[str]:
    node = plot.node
    thresholds = [each for each in node.thresholds if each.signal == "memory.available"]
    lowest = min([node.kernel_min_bytes or 64 << 20, *(each.amount for each in thresholds)]) / 2
    low = floor(log2(max(1 << 20, lowest)))
    high = max(low + 2.0, log2(max(*node.available_bytes, *node.free_bytes, 1)))

    def y(size: float) -> float:
        power = log2(size) if size > 0 else low
        return top + _LEFT_HEIGHT * (1 - (min(high, max(low, power)) - low) / (high - low))

    yield _title(
        top, "Memory left", "logarithmic; line: memory.available as the kubelet counts, dots: free as the kernel counts"
    )
    for power in range(low, floor(high) + 1, max(1, round((high - low) / 5))):
        yield _line(_LEFT, y(2**power), _RIGHT, y(2**power), _GRID)
        yield _text(_LEFT - 8, y(2**power) + 4, mebibytes(2**power), anchor="end")
    if node.kernel_min_bytes:
        at = y(node.kernel_min_bytes)
        yield f'{_rect(_LEFT, at, _RIGHT - _LEFT, top + _LEFT_HEIGHT - at)} fill="{palette.KERNEL}" opacity=".13"/>'
        text = f"the kernel kills at {mebibytes(node.kernel_min_bytes)}"
        yield _text(_RIGHT - 6, min(top + _LEFT_HEIGHT - 4, at + 12), text, anchor="end", fill=palette.KERNEL)
    for threshold in thresholds:
        at, colour = y(threshold.amount), palette.KERNEL if threshold.hard else _SOFT
        yield _line(_LEFT, at, _RIGHT, at, colour, dash="6 4")
        yield _text(
            _RIGHT - 6,
            at - 4,
            f"{'hard' if threshold.hard else 'soft'}: {threshold.statement}",
            anchor="end",
            fill=colour,
        )
    for values, colour, dash in (
        (node.free_bytes, _QUIET, ' stroke-dasharray="2 3"'),
        (node.available_bytes, "#2456c7", ""),
    ):
        path = _path([(plot.x(node.times_us[index]), y(values[index])) for index in plot.indices])
        yield f'<path clip-path="url(#c)" d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'


def _pods(plot: _Plot, top: float, rows: int) -> Iterator[str]:
    node = plot.node
    hidden = len(node.pods) - rows
    yield _title(top, "Pods", "while they ran" + (f"; {hidden} more are not drawn" if hidden else ""))
    for row, series in enumerate(node.pods[:rows]):
        pod = plot.view.pods[series.pod]
        at = top + row * _ROW
        spans = list(_running(node.times_us, series.anon_bytes))
        for start_us, end_us in spans:
            start, end = max(_LEFT, plot.x(start_us)), min(_RIGHT, plot.x(end_us))
            if end > _LEFT and start < _RIGHT:
                yield f'{_rect(start, at + 1, max(1.5, end - start), _ROW - 4)} rx="3" fill="{pod.colour}"/>'
        name = pod.key.partition("/")[2]
        start, end = (max(_LEFT, plot.x(spans[0][0])), min(_RIGHT, plot.x(spans[0][1]))) if spans else (_LEFT, _LEFT)
        inside = end - start > 6.8 * len(name) + 14
        fill = "#fff" if inside and palette.is_dark(pod.colour) else _INK
        yield _text((start if inside else end + 8) + 6, at + 12, name, weight=550, fill=fill, size=11)


def _running(times_us: Sequence[int], values: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for time_us, value in zip(times_us, values, strict=True):
        if value is not None and start is None:
            start = time_us
        elif value is None and start is not None:
            yield start, time_us
            start = None
    if start is not None:
        yield start, times_us[-1]


def _marks(plot: _Plot, top: float, bottom: float) -> Iterator[str]:
    """Yield a mark per kill; those too close to tell apart share one."""
    groups: list[list[Kill]] = []
    for kill in plot.kills:
        if groups and plot.x(kill.time_us) - plot.x(groups[-1][0].time_us) < 17:
            groups[-1].append(kill)
        else:
            groups.append([kill])
    number = 0
    for group in groups:
        x = plot.x(group[0].time_us)
        colour = palette.KERNEL if group[0].by is By.KERNEL else palette.KUBELET
        yield _line(x, top - 22, x, bottom, colour, dash="3 3")
        yield _shape(group[0].by, x, top - 30, 10)
        number += 1
        text = str(number) if len(group) == 1 else f"{len(group)}×"
        number += len(group) - 1
        yield _text(x, top - 26, text, anchor="middle", weight=700, fill="#fff", size=11)


# ---- elements --------------------------------------------------------------------------------------------------------


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return straight lines through points; of points on one level only the ends."""
    kept: list[tuple[str, str]] = []
    for x, y in points:
        point = (_n(min(9999.0, max(-999.0, x))), _n(y))
        if len(kept) > 1 and kept[-1][1] == kept[-2][1] == point[1]:
            kept[-1] = point
        elif not kept or kept[-1] != point:
            kept.append(point)
    return "M" + "L".join(f"{x} {y}" for x, y in kept)


def _rect(x: float, y: float, width: float, height: float) -> str:
    """Return the beginning of a rectangle."""
    return f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "", size: float = 0, weight: int = 0, fill: str = "") -> str:
    attributes = {"text-anchor": anchor, "font-size": size, "font-weight": weight, "fill": fill}
    given = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f'<text x="{_n(x)}" y="{_n(y)}"{given}>{escape(text)}</text>'


def _title(top: float, text: str, note: str) -> str:
    start = f'<text x="{_LEFT}" y="{_n(top - 9)}" font-size="13" font-weight="650" fill="{_INK}">{escape(text)}'
    return f'{start}<tspan dx="8" font-size="11.5" font-weight="400" fill="{_QUIET}">{escape(note)}</tspan></text>'


def _shape(by: By, x: float, y: float, size: float) -> str:
    if by is By.KERNEL:
        points = ((x, y - size - 1), (x + size + 1, y), (x, y + size + 1), (x - size - 1, y))
        return f'<path d="{_path(points)}Z" fill="{palette.KERNEL}"/>'
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(size)}" fill="{palette.KUBELET}"/>'
