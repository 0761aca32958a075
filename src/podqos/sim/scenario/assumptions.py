"""What a scenario does not state and a run assumes."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.manifest.times import date_text
from podqos.model.assumption import Assumption, of_version
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.scenario import DEFAULT_START_US, IDLE, ContainerDemand, Scenario, ScenarioWorkload

_MOST_NAMED = 3


def assumptions_of(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return all assumptions of a run."""
    return (*of_version(scenario.profile), *_of_clocks(scenario), *_of_ends(scenario), *_of_actors(scenario))


def _of_clocks(scenario: Scenario) -> Iterator[Assumption]:
    """Yield what the schedules of CronJobs that come up go by."""
    crons = [workload for workload in scenario.workloads if workload.cron is not None]
    if not crons:
        return
    from podqos.sim.scenario.due import is_due

    due = [workload.cron for workload in crons if is_due(workload, scenario.start_us, scenario.duration_us)]
    if due and scenario.start_us == DEFAULT_START_US:
        yield Assumption("start of the run", date_text(scenario.start_us), "spec.start")
    if any(cron is not None and cron.time_zone is None for cron in due):
        yield Assumption("time zone of CronJobs", "UTC", "spec.timeZone of the CronJob")


def _of_ends(scenario: Scenario) -> Iterator[Assumption]:
    """Yield when containers end that have to, and do not say when."""
    for workload in scenario.workloads:
        name = f"{workload.namespace}/{workload.name}"
        for container, demand in _init_demands(workload):
            settled_us = demand.settles_us(workload.arrives_us)
            value = "never" if settled_us is None else "when its demand no longer changes"
            yield Assumption(f"end of init container {container} of {name}", value, "exits: {after: 30s} below it")
    endless = [workload.name for workload in scenario.workloads if _is_endless_job(workload, scenario)]
    if endless:
        more = f" and {len(endless) - _MOST_NAMED} more" if len(endless) > _MOST_NAMED else ""
        names = f"{', '.join(endless[:_MOST_NAMED])}{more}"
        kind = "Job" if len(endless) == 1 else "Jobs"
        yield Assumption(f"end of the {kind} {names}", "never", "exits or work of the demand")


def _is_endless_job(workload: ScenarioWorkload, scenario: Scenario) -> bool:
    """Whether the pods of a Job never end by themselves, and there is a controller that waits for that."""
    if workload.job is None or not workload.recreate or workload.job.suspend or not workload.replicas:
        return False
    names = [container.name for container in workload.pod.spec.containers]
    if all(demands.get(name, IDLE).ends for demands in workload.demands for name in names):
        return False
    if workload.cron is None:
        return True
    from podqos.sim.scenario.due import is_due

    return is_due(workload, scenario.start_us, scenario.duration_us)


def _init_demands(workload: ScenarioWorkload) -> Iterator[tuple[str, ContainerDemand]]:
    """Yield the init containers that have a demand, and no time at which they exit."""
    for container in workload.pod.spec.init_containers:
        demand = workload.demands[0].get(container.name, IDLE)
        if not container.is_sidecar and demand != IDLE and not demand.ends:
            yield container.name, demand


def _of_actors(scenario: Scenario) -> Iterator[Assumption]:
    """Yield the model of what autoscalers measure."""
    options = scenario.options
    if scenario.autoscalers:
        every, delay = (f"{us / SECOND_US:g} s" for us in (options.metrics_resolution_us, options.metrics_delay_us))
        value = f"measured every {every}, visible after {delay}"
        yield Assumption("metrics of autoscalers", value, "spec.timing.metricsResolution and metricsDelay")
