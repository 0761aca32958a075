"""The curve of a forecast as a picture: how likely the kubelet is first, by growth."""

from __future__ import annotations

from html import escape
from math import log2

from podqos.answers.forecast import ForecastReport
from podqos.model.resources import MEMORY
from podqos.words.ranking import amount

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 20, 44, 48
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.title{font-size:14px;font-weight:600;fill:#222}"
    ".grid{stroke:#ddd}.curve{fill:none;stroke:#0072b2;stroke-width:2.5}.area{fill:#0072b2;opacity:.12}"
)


def curve_svg(report: ForecastReport) -> str:
    """Draw the curve; the growth rates are on a logarithmic scale."""
    points = report.curve
    low, high = log2(points[0].rate_bytes_per_second), log2(points[-1].rate_bytes_per_second)
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(rate: int) -> float:
        return _LEFT + wide * (log2(rate) - low) / ((high - low) or 1)

    def up(share: float) -> float:
        return _TOP + tall * (1 - share)

    line = " ".join(
        f"{across(point.rate_bytes_per_second):.1f},{up(float(point.kubelet_first)):.1f}" for point in points
    )
    first = report.growths[0]
    name = first.pod if first.container else "system daemons"
    title = f"{name}: chance that the kubelet acts before the kernel"
    who = f"growth of {first.pod} ({first.container})" if first.container else f"growth of {name}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
    ]
    for percent in (0, 25, 50, 75, 100):
        y = up(percent / 100)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for point in points[::2]:
        label = f"{amount(point.rate_bytes_per_second, MEMORY)}/s"
        x = across(point.rate_bytes_per_second)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 26}" text-anchor="middle">{escape(label)}</text>')
    parts += [
        f'<polygon class="area" points="{_LEFT},{up(0):.1f} {line} {_WIDTH - _RIGHT},{up(0):.1f}"/>',
        f'<polyline class="curve" points="{line}"/>',
        f'<text x="{_LEFT + wide / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(who)}</text>',
        "</svg>\n",
    ]
    return "\n".join(parts)
