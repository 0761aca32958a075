"""The services of a scenario file: what a container answers."""

from __future__ import annotations

import re

from podqos.manifest.plain import FieldPath
from podqos.model.quantity import Quantity
from podqos.sim.scenario.scenario import ServiceDemand
from podqos.sim.scenario_format.shape_document import CpuTime, CurveSettings, Duration, Part, Shape, curves
from podqos.sim.scenario_format.shape_text import Unit

_DEFAULT_WORKERS = 8
_DEFAULT_QUEUE = 100
_MOST = 1_000_000
_ONE = Quantity.of_units(1)
_PERCENT = re.compile(r"(\d{1,6}) ?%", re.ASCII)


class ServicePart(Part, frozen=True):
    """Requests that a workload answers. Its CPU demand follows from them. All figures are those of a model."""

    requests_per_second: Shape = Shape()
    """For the whole workload: divided evenly among its ready pods."""
    cost: CpuTime | None = None
    """The CPU time of a request, on one core at most."""
    workers: int = _DEFAULT_WORKERS
    """How many requests a pod answers at a time."""
    queue: int = _DEFAULT_QUEUE
    """How many more wait in a pod; further ones are refused."""
    timeout: Duration | None = None
    """After which an answer comes too late for the client. Absent: never."""


def service_demand(part: ServicePart, setting: CurveSettings, name: str, path: FieldPath) -> ServiceDemand:
    """Return what a container answers, after reporting what is wrong with it."""
    report = setting.report
    if part.cost is None:
        report((*path, "cost"), "Required value", "the CPU time of a request, such as 20 cpu-ms")
    for field, value, least in (("workers", part.workers, 1), ("queue", part.queue, 0)):
        if not least <= value <= _MOST:
            report((*path, field), f"must be between {least} and {_MOST:,}", "write another number")
    if part.timeout == 0:
        report((*path, "timeout"), "must be positive", "such as 1s, or leave it out")
    requests = curves(part.requests_per_second, Unit.MILLI, setting, name, (*path, "requestsPerSecond"))[0]
    return ServiceDemand(
        requests_milli=requests,
        cost_us=int(part.cost or 1),
        workers=part.workers,
        queue=part.queue,
        timeout_us=None if part.timeout is None else int(part.timeout),
    )
