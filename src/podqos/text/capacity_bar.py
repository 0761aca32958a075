"""A node's memory as a bar: what is reserved for whom, what pods may request, and who acts in the last part of it.

Memory in use grows from left to right, daemons first; at the right end nothing is available. Thresholds are small
against the machine, so that the last part is drawn a second time, enlarged. The same parts and marks are text in
``podqos thresholds`` and a picture with ``--svg``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from podqos.amounts import amount
from podqos.eviction.signals import Signal
from podqos.model.resources import MEMORY
from podqos.orders.exhaustion import Actor, ActorLevel
from podqos.placement.allocatable import Division
from podqos.text import svg as palette
from podqos.text.style import Style, wrapped
from podqos.text.svg import INK, LETTER, PAPER, QUIET, SOFT, heading, line, path, rect, text


class BarPart(Struct, frozen=True, gc=False):
    """A part of the machine's memory."""

    name: str
    size_bytes: int
    glyph: str
    colour: str


class BarMark(Struct, frozen=True, gc=False):
    """What acts when this much is available."""

    left_bytes: int
    letter: str
    name: str
    colour: str


_MARKS = {
    Actor.SOFT_THRESHOLD: ("S", "soft threshold", SOFT),
    Actor.KSWAPD: ("R", "the kernel reclaims page cache", QUIET),
    Actor.OOM_KILLER: ("K", "the kernel kills", palette.KERNEL),
    Actor.HARD_THRESHOLD: ("H", "hard threshold", palette.KUBELET),
}

# ---- what there is -----------------------------------------------------------------------------------------------


def parts_of(memory: Division) -> tuple[BarPart, ...]:
    """Return the parts from the first used to the last; none is empty."""
    parts = (
        BarPart("kube-reserved", memory.kube_reserved.value, "█", "#5c6877"),
        BarPart("system-reserved", memory.system_reserved.value, "▓", palette.SYSTEM),
        BarPart("huge pages", memory.hugepages.value, "▚", "#d5dae1"),
        BarPart("allocatable", memory.allocatable.value, "░", "#cfe0fb"),
        BarPart("hard eviction", memory.hard_eviction.value, "▒", palette.KUBELET),
    )
    return tuple(part for part in parts if part.size_bytes > 0)


def marks_of(steps: Sequence[ActorLevel]) -> tuple[BarMark, ...]:
    """Return who acts as ``memory.available`` falls, first to last."""
    return tuple(BarMark(step.left, *_MARKS[step.actor]) for step in steps if step.signal is Signal.MEMORY)


def letter_of(step: ActorLevel) -> str:
    """Return the letter that stands for who acts on the ruler."""
    return _MARKS[step.actor][0]


def last_part_bytes(marks: Sequence[BarMark], capacity_bytes: int) -> int:
    """Return how much of the memory is enlarged: twice the largest mark."""
    return min(capacity_bytes, max(mark.left_bytes for mark in marks) * 2)


def _named(name: str, size_bytes: int) -> str:
    return f"{name} {amount(size_bytes, MEMORY)}"


# ---- text --------------------------------------------------------------------------------------------------------

_TITLE = "Memory"
_WIDEST = 100


def bar_lines(memory: Division | None, steps: Sequence[ActorLevel], style: Style) -> list[str]:
    """Return the bar, what its signs mean, and the ruler of its last part; ``letter_of`` says who acts there."""
    if memory is None or not memory.capacity.value:
        return []
    capacity, indent = memory.capacity.value, " " * (len(_TITLE) + 2)
    room = min(style.width or 80, _WIDEST) - len(indent) - 15
    parts, marks = parts_of(memory), marks_of(steps)
    cells = _cells([part.size_bytes for part in parts], room)
    bar = "".join(part.glyph * count for part, count in zip(parts, cells, strict=True))
    lines = [
        f"{style.strong(_TITLE)}  {bar}  {amount(capacity, MEMORY)}",
        *wrapped("  ".join(f"{part.glyph} {part.name}" for part in parts), style, indent),
    ]
    if marks:
        last = last_part_bytes(marks, capacity)
        lines.append(f"{indent}{_ruler(marks, last, room)}  last {amount(last, MEMORY)}")
    return lines


def _cells(sizes: Sequence[int], room: int) -> list[int]:
    """Return how many letters each part is wide: at least one, and together all there are."""
    total = sum(sizes)
    cells = [max(1, room * size // total) for size in sizes]
    cells[max(range(len(sizes)), key=lambda index: sizes[index])] += room - sum(cells)
    return cells


def _ruler(marks: Sequence[BarMark], last_bytes: int, room: int) -> str:
    """Return a line with a letter where each mark is; marks at one place stand side by side, in their order."""
    letters, free = ["─"] * room, room
    for mark in reversed(marks):
        free = min(free - 1, round((room - 1) * (1 - mark.left_bytes / last_bytes)))
        letters[free] = mark.letter
    return "".join(letters)


# ---- picture -----------------------------------------------------------------------------------------------------

_WIDTH, _LEFT, _RIGHT = 900, 40, 860
_BAR_TOP, _BAR_HEIGHT = 78, 46
_LAST_TOP = _BAR_TOP + _BAR_HEIGHT + 72
_ROW = 20
_FONT = f'font-family="system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" font-size="12" fill="{QUIET}"'


def bar_svg(memory: Division, steps: Sequence[ActorLevel]) -> str:
    """Draw the bar, and its last part enlarged below it."""
    capacity, parts, marks = memory.capacity.value, parts_of(memory), marks_of(steps)
    title = f"Memory of a {amount(capacity, MEMORY)} node: who may use it, and who acts when it runs out"
    height = _LAST_TOP + _BAR_HEIGHT + _ROW * len(marks) + 24 if marks else _BAR_TOP + _BAR_HEIGHT + 24
    note = f"{amount(capacity, MEMORY)}, in use from left to right; at the right end nothing is available"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" {_FONT}>',
            f"<title>{title}</title>",
            f'{rect(0, 0, _WIDTH, height)} fill="{PAPER}"/>',
            heading(_LEFT, 34, "Memory of the node", note),
            *_legend(parts, _BAR_TOP - 14),
            *(_enlarged(marks, capacity) if marks else ()),
            *_bar(parts, capacity),
            "</svg>\n",
        ]
    )


def _bar(parts: Sequence[BarPart], capacity_bytes: int) -> Iterator[str]:
    """Yield the parts to scale; one that would not be seen is a pixel and a half wide."""
    at = float(_LEFT)
    for part in parts:
        width = max(1.5, (_RIGHT - _LEFT) * part.size_bytes / capacity_bytes)
        start = min(at, _RIGHT - width)
        yield f'{rect(start, _BAR_TOP, width, _BAR_HEIGHT)} fill="{part.colour}"/>'
        words = _named(part.name, part.size_bytes)
        if LETTER * len(words) < width:
            fill = PAPER if palette.is_dark(part.colour) else INK
            yield text(start + width / 2, _BAR_TOP + _BAR_HEIGHT / 2 + 4, words, anchor="middle", fill=fill)
        at = start + width
    yield f'{rect(_LEFT, _BAR_TOP, _RIGHT - _LEFT, _BAR_HEIGHT)} fill="none" stroke="{QUIET}"/>'


def _legend(parts: Sequence[BarPart], y: float) -> Iterator[str]:
    at = float(_LEFT)
    for part in parts:
        words = _named(part.name, part.size_bytes)
        yield f'{rect(at, y - 10, 11, 11)} rx="2" fill="{part.colour}" stroke="{QUIET}" stroke-width=".5"/>'
        yield text(at + 17, y, words)
        at += 17 + LETTER * len(words) + 18


def _enlarged(marks: Sequence[BarMark], capacity_bytes: int) -> Iterator[str]:
    """Yield the last part: from each mark on its colour, up to the kernel's, and a label for each in a row of its own.

    Labels are left of their marks and the later ones lower, so that no line crosses a label.
    """
    last = last_part_bytes(marks, capacity_bytes)
    top, bottom = _LAST_TOP, _LAST_TOP + _BAR_HEIGHT

    def across(left_bytes: int) -> float:
        return _RIGHT - (_RIGHT - _LEFT) * left_bytes / last

    begins = _RIGHT - max(1.5, (_RIGHT - _LEFT) * last / capacity_bytes)
    corners = ((begins, _BAR_TOP + _BAR_HEIGHT), (_RIGHT, _BAR_TOP + _BAR_HEIGHT), (_RIGHT, top), (_LEFT, top))
    yield f'<path d="{path(corners)}Z" fill="#f3f5f8"/>'
    yield heading(_LEFT, top - 14, f"The last {amount(last, MEMORY)}", "enlarged: what is still available")
    yield f'{rect(_LEFT, top, _RIGHT - _LEFT, _BAR_HEIGHT)} fill="{PAPER}"/>'
    for mark, after in pairwise((*marks, None)):
        assert mark is not None
        is_kernel = mark.colour == palette.KERNEL
        end = _RIGHT if after is None or is_kernel else across(after.left_bytes)
        start = across(mark.left_bytes)
        yield f'{rect(start, top, end - start, _BAR_HEIGHT)} fill="{mark.colour}" opacity=".22"/>'
        if is_kernel:
            break
    yield f'{rect(_LEFT, top, _RIGHT - _LEFT, _BAR_HEIGHT)} fill="none" stroke="{QUIET}"/>'
    yield text(_LEFT + 8, top + _BAR_HEIGHT / 2 + 4, f"{amount(last, MEMORY)} left")
    yield text(_RIGHT - 8, top + _BAR_HEIGHT / 2 + 4, "0", anchor="end", fill=INK)
    for number, mark in enumerate(marks, start=1):
        x, y = across(mark.left_bytes), bottom + _ROW * number
        yield line(x, top - 4, x, y, mark.colour).replace("/>", ' stroke-width="2"/>')
        words = f"{amount(mark.left_bytes, MEMORY)}: {mark.name}"
        yield text(x - 7, y, words, anchor="end", weight=600, fill=INK if mark.colour == QUIET else mark.colour)
