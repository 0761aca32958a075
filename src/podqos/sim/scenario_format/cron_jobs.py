"""CronJobs in a scenario file: whether their schedules come up during the run, and what if they do not."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.manifest.plain import FieldPath
from podqos.sim.scenario.due import is_due
from podqos.sim.scenario.scenario import DEFAULT_START_US, ScenarioWorkload
from podqos.sim.scenario_format.document import ScenarioSpec
from podqos.sim.scenario_format.shape_document import Report


def with_active_jobs(
    workloads: Sequence[ScenarioWorkload], spec: ScenarioSpec, start_us: int, duration_us: int, warn: Report
) -> tuple[ScenarioWorkload, ...]:
    """Return the workloads, with a Job from the start for CronJobs whose schedules do not come up without a clock."""
    made = []
    for workload in workloads:
        if workload.cron is None or workload.active or is_due(workload, start_us, duration_us):
            made.append(workload)
            continue
        path = _place(workload, spec)
        what = f"the schedule of CronJob {workload.namespace}/{workload.name}, {workload.cron.schedule}, does not come"
        if workload.cron.suspend:
            warn(path, f"CronJob {workload.namespace}/{workload.name} is suspended: it has no pods", "")
        elif spec.start or start_us != DEFAULT_START_US:
            warn(path, f"{what} up during the run", "change spec.start or spec.duration")
        else:
            what = f"{what} up during the run, so one Job of it runs from the start"
            warn(path, what, "set active: true for that, or spec.start to run it by its schedule")
            workload = replace(workload, active=True)  # noqa: PLW2901 - the same, with a Job
        made.append(workload)
    return tuple(made)


def _place(workload: ScenarioWorkload, spec: ScenarioSpec) -> FieldPath:
    full = f"{workload.namespace}/{workload.name}"
    for index, part in enumerate(spec.workloads):
        if part.workload in {workload.name, full, f"{workload.kind}/{full}"}:
            return ("spec", "workloads", index)
    return ("spec", "manifests")
