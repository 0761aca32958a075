"""The services of a scenario file: what a container answers, and which other workloads it calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath, Plain
from podqos.model.quantity import Quantity
from podqos.sim.scenario.scenario import ScenarioWorkload
from podqos.sim.scenario.service import ServiceCall, ServiceDemand
from podqos.sim.scenario_format.parts import Part
from podqos.sim.scenario_format.shape_document import CpuTime, CurveSettings, Duration, Report, Shape, curves
from podqos.sim.scenario_format.shape_text import Unit

if TYPE_CHECKING:
    from podqos.manifest.examine import Examination

_DEFAULT_WORKERS = 8
_DEFAULT_QUEUE = 100
_MOST = 1_000_000
_ONE = Quantity.of_units(1)
_PERCENT = re.compile(r"(\d{1,6}) ?%", re.ASCII)


class Percent(int):
    """A share, written as ``20 %``."""


class CallPart(Part, frozen=True):
    """Calls to another workload for each request, one after the other."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of a workload with a service."""
    per_request: Quantity = _ONE
    """How many calls a request makes; 100m: every tenth makes one."""
    timeout: Duration | None = None
    """Absent: it waits for as long as it takes."""
    retries: int = 0
    """How often a failed call is repeated."""
    retry_budget: Percent | None = None
    """Retries, at most, as a share of first attempts, such as 20 %; absent: no budget."""


class ServicePart(Part, frozen=True):
    """Requests that a workload answers. Its CPU demand follows from them. All figures are those of a model."""

    requests_per_second: Shape = Shape()
    """From outside, for the whole workload: divided evenly among its ready pods. Absent: only other services call."""
    cost: CpuTime | None = None
    """The CPU time of a request, on one core at most."""
    workers: int = _DEFAULT_WORKERS
    """How many requests a pod answers at a time."""
    queue: int = _DEFAULT_QUEUE
    """How many more wait in a pod; further ones are refused."""
    timeout: Duration | None = None
    """After which an answer comes too late for the client. Absent: never."""
    calls: tuple[CallPart, ...] = ()


def read_percent(examination: Examination, value: Plain, path: FieldPath) -> Percent:
    """Read a share, or report that it is invalid."""
    written = " ".join(str(getattr(value, "text", value)).split())
    matched = None if isinstance(value, (bool, dict, list)) else _PERCENT.fullmatch(written)
    if matched is None:
        examination.report(path, f'"{written}" is not a share in percent', "such as 20 %")
        return Percent(0)
    return Percent(int(matched[1]))


def service_demand(part: ServicePart, setting: CurveSettings, name: str, path: FieldPath) -> ServiceDemand:
    """Return what a container answers, after reporting what is wrong with it; calls are as written."""
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
        calls=tuple(_call(call, report, (*path, "calls", index)) for index, call in enumerate(part.calls)),
    )


def _call(part: CallPart, report: Report, path: FieldPath) -> ServiceCall:
    if part.per_request.sign <= 0:
        report((*path, "perRequest"), "must be positive", "such as 1, or 100m for every tenth request")
    if part.timeout == 0:
        report((*path, "timeout"), "must be positive", "such as 500ms, or leave it out")
    if not 0 <= part.retries <= 100:
        report((*path, "retries"), "must be between 0 and 100", "such as 2")
    if part.retry_budget is not None and not part.retries:
        report((*path, "retryBudget"), "is a budget for retries, but there are none", "write retries: 2, or remove it")
    return ServiceCall(
        workload=part.workload,
        per_request_milli=max(1, part.per_request.milli_value),
        timeout_us=None if part.timeout is None else int(part.timeout),
        retries=part.retries,
        retry_budget_percent=None if part.retry_budget is None else int(part.retry_budget),
    )


def connected(
    workloads: Sequence[ScenarioWorkload], places: dict[int, FieldPath], report: Report
) -> tuple[ScenarioWorkload, ...]:
    """Return the workloads with calls that name others in full; ``places`` is where each has its service."""
    full: dict[str, list[str]] = {}
    for workload in workloads:
        name = f"{workload.namespace}/{workload.name}"
        for written in (workload.name, name, f"{workload.kind}/{name}"):
            full.setdefault(written, []).append(name)
    serving = {f"{workload.namespace}/{workload.name}" for workload in workloads if workload.service is not None}
    made = list(workloads)
    for index, path in places.items():
        workload = workloads[index]
        service = workload.service
        assert service is not None
        calls = []
        for number, call in enumerate(service.calls):
            place = (*path, "calls", number, "workload")
            known = full.get(call.workload, [])
            if not call.workload:
                report(place, "Required value", "name a workload with a service")
            elif not known:
                report(place, f'no manifest has a workload "{call.workload}"', suggestion(call.workload, sorted(full)))
            elif len(known) > 1:
                report(place, f'"{call.workload}" is ambiguous', f"use one of {', '.join(known)}")
            elif known[0] not in serving:
                report(place, f"{known[0]} answers no requests", "give it a demand: {service: …}")
            elif known[0] == f"{workload.namespace}/{workload.name}":
                report(place, "a workload cannot call itself", "remove the call")
            else:
                calls.append(replace(call, workload=known[0]))
        made[index] = workload.with_service(replace(service, calls=tuple(calls)))
    return tuple(made)
