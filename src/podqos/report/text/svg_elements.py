"""Elements of a still picture, as text: numbers to a tenth of a pixel, and nothing superfluous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack
from xml.sax.saxutils import escape

from podqos.agent.journal import By
from podqos.answers import palette

INK, QUIET, GRID, PAPER, SOFT, ACCENT = "#1b2430", "#5c6877", "#e9edf2", "#ffffff", "#b26a00", "#2456c7"

LETTER = 6.8
"""Width of a letter, about."""


def fitted(words: str, width: float) -> str:
    """Return the text, or as much of its beginning and end as fits: what tells pods apart is at the end."""
    most = int(width / LETTER)
    if len(words) <= most:
        return words
    end = max(0, most - 1) // 3
    return f"{words[: most - 1 - end]}…{words[len(words) - end :]}" if most > 3 else ""


def number(value: float) -> str:
    """Return a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def path(points: Sequence[tuple[float, float]]) -> str:
    """Return straight lines through points; of points on one level only the ends."""
    kept: list[tuple[str, str]] = []
    for x, y in points:
        point = (number(min(9999.0, max(-999.0, x))), number(y))
        if len(kept) > 1 and kept[-1][1] == kept[-2][1] == point[1]:
            kept[-1] = point
        elif not kept or kept[-1] != point:
            kept.append(point)
    return "M" + "L".join(f"{x} {y}" for x, y in kept)


def rect(x: float, y: float, width: float, height: float) -> str:
    """Return the beginning of a rectangle."""
    return f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: str = "") -> str:
    """Return a straight line."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}" stroke="{colour}"{dashes}/>'


def through(x: float, panels: Sequence[tuple[float, float]], colour: str, *, dash: str = "") -> str:
    """Return an upright line through panels, given from top to bottom."""
    parts = "".join(f"M{number(x)} {number(top)}V{number(bottom)}" for top, bottom in panels)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{parts}" stroke="{colour}"{dashes}/>'


class Appearance(TypedDict, total=False):
    """How a line of text looks where it is not like the others."""

    anchor: str
    size: float
    weight: int
    fill: str


_ATTRIBUTES = {"anchor": "text-anchor", "size": "font-size", "weight": "font-weight", "fill": "fill"}


def text(x: float, y: float, words: str, **look: Unpack[Appearance]) -> str:
    """Return a line of text."""
    attributes = ((attribute, look.get(name)) for name, attribute in _ATTRIBUTES.items())
    given = "".join(f' {name}="{value}"' for name, value in attributes if value)
    return f'<text x="{number(x)}" y="{number(y)}"{given}>{escape(words)}</text>'


def halo(x: float, y: float, words: str, *, anchor: str = "", fill: str = "") -> str:
    """Return a line of text that can be read on top of curves."""
    shine = f' paint-order="stroke" stroke="{PAPER}" stroke-width="3.5" stroke-linejoin="round"'
    return text(x, y, words, anchor=anchor, fill=fill).replace(">", f"{shine}>", 1)


def heading(x: float, y: float, words: str, note: str) -> str:
    """Return the title of a panel with a note behind it."""
    start = f'<text x="{number(x)}" y="{number(y)}" font-size="13" font-weight="650" fill="{INK}">{escape(words)}'
    return f'{start}<tspan dx="8" font-size="11.5" font-weight="400" fill="{QUIET}">{escape(note)}</tspan></text>'


def sign(by: By, x: float, y: float, size: float) -> str:
    """Return the sign of a killer: a diamond for the kernel, a circle for the kubelet."""
    if by is By.KERNEL:
        points = ((x, y - size - 1), (x + size + 1, y), (x, y + size + 1), (x - size - 1, y))
        return f'<path d="{path(points)}Z" fill="{palette.KERNEL}"/>'
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(size)}" fill="{palette.KUBELET}"/>'
