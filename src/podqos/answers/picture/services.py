"""The panels of services: how long answers took, and how many requests failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from podqos.answers.picture.axes import apart, height_of, linear_axis
from podqos.answers.picture.cpu import MOST_LINES
from podqos.answers.run_picture import Curve, Label, LineKind, Panel
from podqos.answers.run_view import RunView
from podqos.sim.services.outcome import ServiceOutcome, ServiceSample
from podqos.words.outcome import share_words
from podqos.words.services import latency

_HEIGHT = 110
# The worst first.
_COLOURS = ("#b3261e", "#1f6feb", "#9a6700", "#8250df", "#1a7f37", "#57606a")


class _Figure(Struct, frozen=True):
    """A number that is drawn of each service."""

    name: str
    title: str
    note: str
    value: Callable[[ServiceSample], int | None]
    words: Callable[[int], str]


_LATENCY = _Figure("latency", "Latency of services", "p99, a model", lambda sample: sample.p99_us, latency)
_ERRORS = _Figure(
    "errors",
    "Errors of services",
    "requests refused, late or failed, a model",
    lambda sample: sample.errors_permille,
    lambda permille: share_words(permille / 1000),
)


def service_panels(view: RunView) -> Iterator[Panel]:
    """Yield how services answered, and how often not."""
    services = sorted(view.summary.services, key=lambda service: (-service.errors, -(service.worst_p99_us or 0)))
    shown = services[:MOST_LINES]
    more = f"; the worst {MOST_LINES} of {len(services)}" if len(services) > MOST_LINES else ""
    if any(service.worst_p99_us is not None for service in shown):
        yield _panel(_LATENCY, shown, more)
    if any(service.worst_errors_permille for service in shown):
        yield _panel(_ERRORS, shown, more)


def _panel(figure: _Figure, services: Sequence[ServiceOutcome], more: str) -> Panel:
    curves = []
    for service, colour in zip(services, _COLOURS, strict=False):
        values = tuple(map(figure.value, service.samples))
        times_us = tuple(sample.time_us for sample in service.samples)
        curves.append(Curve(LineKind.SHARE, values, colour, times_us))
    highest = [max((round(value) for value in curve.values if value is not None), default=0) for curve in curves]
    most = max(1, *highest)
    axis = linear_axis(most * 1.08, figure.words, wanted=3)
    labels = [
        Label(
            LineKind.PODS,
            height_of(axis, _HEIGHT, value),
            f"{service.workload.partition('/')[2]}: {figure.words(value)} at most",
            curve.colour,
        )
        for service, curve, value in zip(services, curves, highest, strict=True)
    ]
    return Panel(
        figure.name,
        figure.title,
        f"{figure.note}{more}",
        _HEIGHT,
        _HEIGHT,
        axis,
        curves=tuple(curves),
        labels=apart(labels, _HEIGHT),
    )
