"""A run as one still picture, for documents and slides.

The layout is that of the page, the drawing is plain SVG without script or style sheet, and the same run gives the same
bytes. Several nodes lie below each other, over the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from xml.sax.saxutils import escape

from podqos.agent.journal import By
from podqos.answers import palette
from podqos.answers.run_view import NodeView, RunView
from podqos.model.pod import QOSClass
from podqos.model.time_units import DAY_US, SECOND_US
from podqos.report.simulation.marks import rail
from podqos.report.simulation.panels import draw_panel
from podqos.report.simulation.plot import LEFT, RIGHT, WIDTH, Plot, plots_of
from podqos.report.simulation.timeline import seconds
from podqos.report.text.svg_elements import ACCENT, GRID, INK, PAPER, QUIET, heading, rect, sign, text, through

# Headlines with more letters are written smaller.
_LONG = 150
_TOP = 92
_NODE = 22
_NEXT_NODE = 58
_FONT = f'font-family="system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" font-size="11.5" fill="{QUIET}"'
_TIME_STEPS_US = tuple(
    step * 1000
    for step in (
        *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000),
        *(600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000),
    )
)


def run_svg(view: RunView, *nodes: NodeView) -> str:
    """Draw nodes of a run below each other, over the same time."""
    plots = plots_of(view, nodes)
    body: list[str] = []
    top: float = _TOP
    for plot in plots:
        if len(plots) > 1:
            body.append(text(LEFT, top + 12, plot.node.name, size=15, weight=650, fill=INK))
            top += _NODE
        drawn, top = _node(plot, top)
        body += drawn
    height = round(top - _NEXT_NODE + 34)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" {_FONT}>',
        f"<title>{escape(view.name)}: {escape(view.headline)}</title>",
        f'{rect(0, 0, WIDTH, height)} fill="{PAPER}"/>',
        f'<clipPath id="c">{rect(LEFT, 0, RIGHT - LEFT, height)}/></clipPath>',
        *_head(plots),
        *body,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _node(plot: Plot, start: float) -> tuple[list[str], float]:
    """Draw one node from a height on; return where the next one begins, too."""
    victims, measures = rail(plot), plot.measures
    body: list[str] = []
    bottom = start + victims.height
    drawn: list[tuple[float, float]] = []
    for panel in plot.picture.panels:
        if panel.is_hidden:
            continue
        top = bottom + (measures.gap if drawn else 0) + measures.title
        bottom = top + panel.height
        body += [heading(LEFT, top - 9, panel.title, panel.note), *draw_panel(plot, panel, top)]
        drawn.append((top, bottom))
    return [*_times(plot, drawn), *body, *victims.draw(plot, start, drawn)], bottom + _NEXT_NODE


def _head(plots: Sequence[Plot]) -> Iterator[str]:
    plot, view = plots[0], plots[0].view
    facts = f"podqos simulate: {seconds(view.end_us, 0)}, Kubernetes {view.kubernetes_version}"
    node = f", {plot.node.name}" if len(plots) == 1 < view.summary.nodes else ""
    yield text(LEFT, 32, view.name, size=20, weight=650, fill=INK)
    yield text(RIGHT, 32, f"{facts}{node}", anchor="end")
    size = 13 if len(view.headline) <= _LONG else round(13 * _LONG / len(view.headline), 1)
    yield text(LEFT, 53, view.headline, size=size, fill=INK)
    x = LEFT
    for qos_class in QOSClass:
        yield f'{rect(x, 64, 11, 11)} rx="3" fill="{palette.class_colour(qos_class)}"/>'
        yield text(x + 16, 74, qos_class.value)
        x += 100
    for by, words in ((By.KERNEL, "OOM-killed by the kernel"), (By.KUBELET, "evicted by the kubelet")):
        yield sign(by, x + 6, 70, 5)
        yield text(x + 16, 74, words)
        x += 164
    untold = sum(plot.untold for plot in plots)
    if untold:
        words = f"later victims not marked: {untold:,}"
        yield text(RIGHT, 74, words, anchor="end", size=13, weight=600, fill=ACCENT)
    if not plot.is_whole:
        part = f"only the first {seconds(plot.to_us, 1)} of {seconds(view.end_us, 0)} are shown"
        yield text(RIGHT, 53, part, anchor="end", size=13, weight=600, fill=ACCENT)


def _times(plot: Plot, panels: Sequence[tuple[float, float]]) -> Iterator[str]:
    rough = (plot.to_us - plot.from_us) / 9
    step = next((each for each in _TIME_STEPS_US if each >= rough), DAY_US * ceil(rough / DAY_US))
    digits = 0 if step >= SECOND_US else 1 if step >= 100_000 else 3
    for time_us in range(plot.from_us, plot.to_us + 1, step):
        x = plot.x(time_us)
        yield through(x, panels, GRID)
        yield text(min(x, RIGHT - 14), panels[-1][1] + 18, seconds(time_us, digits), anchor="middle")
