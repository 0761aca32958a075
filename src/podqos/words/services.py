"""What became of requests, in words. All figures are those of a model."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.agent.reasons import OverloadCause
from podqos.sim.services.outcome import ServiceOutcome
from podqos.words.durations import span, two_units
from podqos.words.journal import overload_cause


def services_headline(services: Sequence[ServiceOutcome]) -> str:
    """Return the worst service in one sentence; empty if none was overloaded."""
    overloaded = [service for service in services if service.first_overloaded_us is not None]
    if not overloaded:
        return ""
    worst = max(overloaded, key=lambda service: (service.errors, service.worst_p99_us or 0))
    figures = [f"{share(worst.errors, worst.requests)} errors"]
    if worst.worst_p99_us is not None:
        figures.append(f"p99 {span(worst.worst_p99_us)} at {two_units(worst.worst_p99_at_us)}")
    others = f" and {len(overloaded) - 1} more" if len(overloaded) > 1 else ""
    return f"{short(worst.workload)}{others}: {', '.join(figures)}{_began(worst)}."


def _began(service: ServiceOutcome) -> str:
    if service.cause is None:
        return ""
    if service.began_with:
        return f"; began with {short(service.began_with)}, {overload_cause(service.cause)}"
    return "" if service.cause is OverloadCause.CALLS else f"; {overload_cause(service.cause)}"


def share(part: int, whole: int) -> str:
    """Return a share in percent: ``31 %``, ``0.4 %``, ``no``."""
    if not part or not whole:
        return "no"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %" if percent >= 0.01 else "< 0.01 %"


def short(workload: str) -> str:
    """Return the name of a workload without its namespace."""
    return workload.partition("/")[2]
