"""Colours and elements of still pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict, Unpack
from xml.sax.saxutils import escape

from podqos.agent.journal import By
from podqos.model.pod import QOSClass

# fmt: off
SHADES = {
    QOSClass.GUARANTEED: (
        "#026d8e", "#1666aa", "#3a84ca", "#0b8db6", "#4a5bac", "#6679cd",
        "#11a7d7", "#549de5", "#7d92e8", "#43c4f5", "#76bafe", "#9bb0fe",
    ),
    QOSClass.BURSTABLE: (
        "#9a4900", "#8b5505", "#b36e00", "#c3610d", "#7d5e01", "#a17a00",
        "#df7a32", "#d2840b", "#be9106", "#fe9652", "#f2a036", "#deac22",
    ),
    QOSClass.BEST_EFFORT: (
        "#7d45a2", "#8d3e90", "#ad5cb0", "#9c63c2", "#99387b", "#ba5799",
        "#b57bdd", "#c775c9", "#d56fb2", "#d197fb", "#e590e7", "#f48bcf",
    ),
}
# fmt: on
SYSTEM = "#aab3bf"
KERNEL = "#c62828"
KUBELET = "#00695c"

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_REPLICA = re.compile(rf"(?:-(?:{_RANDOM}{{6,10}}-{_RANDOM}{{5}}|{_RANDOM}{{5}}|[0-9]+))?(?:-r[0-9]+)?$")
"""What controllers add to the name of a replica, and a simulation to that of its replacement."""
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def shade(qos_class: QOSClass, pod: str) -> str:
    """Return the colour of a pod, named ``namespace/name``; replicas of a workload share it."""
    shades = SHADES[qos_class]
    return shades[_hash(_REPLICA.sub("", pod)) % len(shades)]


def _hash(text: str) -> int:
    """Return the FNV-1a hash of a text, the same in every process and in the page."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value >> 16 ^ value & 0xFFFF


def class_colour(qos_class: QOSClass) -> str:
    """Return the colour that stands for a class as a whole."""
    return SHADES[qos_class][2]


def is_dark(colour: str) -> bool:
    """Whether white text is easier to read on a colour than black text."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 299 * red + 587 * green + 114 * blue < 140_000


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
        return f'<path d="{path(points)}Z" fill="{KERNEL}"/>'
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(size)}" fill="{KUBELET}"/>'
