"""Draws the curves of ``bench/advise.py`` as SVG: a panel for each family of traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT, COLUMNS = 990, 560, 4
PANEL_WIDTH, PANEL_HEIGHT = 196, 176
LEFT, TOP, STEP_X, STEP_Y = 52, 92, 238, 236
COLOURS = {"krr": "#c05621", "VPA": "#6b46c1", "podqos": "#2f855a", "giving up": "#2f855a"}
INK, PALE = "#1f2933", "#616e7c"
MOST_OF_BASELINE = 2.2
"""The axes end at so many times the baselines' points."""

LABELLED = 'role="img" aria-labelledby="title desc"'
DESCRIPTION = (
    "For each family of traces: the share of containers that are OOM-killed in the second week, over the memory that "
    "is reserved beyond need, as curves of krr, VPA and podqos for different margins. Lower left is better."
)


class Curve(NamedTuple):
    """A method: what it reserves and kills for every margin, and with its defaults."""

    name: str
    points: list[tuple[float, float]]
    default: tuple[float, float] | None


class Panel(NamedTuple):
    """A family of traces."""

    name: str
    curves: list[Curve]


def picture(panels: Sequence[Panel]) -> str:
    """Return the picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {LABELLED}>',
        '<title id="title">OOM-killed containers over memory reserved beyond need</title>',
        f'<desc id="desc">{DESCRIPTION}</desc>',
        '<style>text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }</style>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#ffffff"/>',
        _text(24, 34, "OOM-killed containers over memory reserved beyond need: lower left is better", 16, weight="600"),
    ]
    parts += _legend()
    for index, panel in enumerate(panels):
        x, y = LEFT + index % COLUMNS * STEP_X, TOP + index // COLUMNS * STEP_Y
        parts += _panel(panel, x, y)
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> list[str]:
    entries = [
        ("krr", "krr simple"),
        ("VPA", "VPA target"),
        ("podqos", "podqos"),
        ("giving up", "the same rule, were it allowed to give up rare peaks (never advised)"),
    ]
    parts, x = [], 24
    for name, label in entries:
        parts.append(f'<path d="M{x} 58 h26" fill="none" {_stroke(name)}/>')
        if name != "giving up":
            parts.append(f'<circle cx="{x + 13}" cy="58" r="4" fill="{COLOURS[name]}"/>')
        parts.append(_text(x + 33, 62, label, 12))
        x += 56 + 7 * len(label)
    return parts


def _stroke(name: str) -> str:
    dashes = ' stroke-dasharray="4 3"' if name == "giving up" else ""
    width = 2.2 if name == "podqos" else 1.5
    return f'stroke="{COLOURS[name]}" stroke-width="{width}"{dashes}'


def _panel(panel: Panel, x: int, y: int) -> list[str]:
    defaults = [curve.default for curve in panel.curves if curve.default is not None]
    most_x = MOST_OF_BASELINE * max(point[0] for point in defaults)
    most_y = MOST_OF_BASELINE * max(point[1] for point in defaults) or 1.0

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return x + point[0] / most_x * PANEL_WIDTH, y + PANEL_HEIGHT - point[1] / most_y * PANEL_HEIGHT

    frame = f'x="{x}" y="{y}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}"'
    clip = f"clip-{panel.name}"
    parts = [
        f'<clipPath id="{clip}"><rect {frame}/></clipPath>',
        f'<rect {frame} fill="#f5f7fa" stroke="#cbd2d9"/>',
        _text(x, y - 8, "all traces" if panel.name == "all" else panel.name, 13, weight="600"),
        _text(x, y + PANEL_HEIGHT + 15, "0", 10, colour=PALE),
        _text(x + PANEL_WIDTH, y + PANEL_HEIGHT + 15, f"{most_x:.0f} % of need", 10, colour=PALE, anchor="end"),
        _text(x - 5, y + 9, f"{most_y:.0f} %", 10, colour=PALE, anchor="end"),
        _text(x - 5, y + PANEL_HEIGHT, "0", 10, colour=PALE, anchor="end"),
    ]
    for curve in panel.curves:
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(at, sorted(curve.points)))
        parts.append(f'<polyline points="{line}" fill="none" clip-path="url(#{clip})" {_stroke(curve.name)}/>')
    for curve in panel.curves:
        if curve.default is not None:
            cx, cy = at(curve.default)
            parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="{COLOURS[curve.name]}"/>')
    return parts


def _text(x: float, y: float, text: str, size: int, **style: str) -> str:
    colour, weight, anchor = style.get("colour", INK), style.get("weight", "400"), style.get("anchor", "start")
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{text}</text>"
    )
