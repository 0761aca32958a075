"""What a worker of a sweep does: run a scenario, keep the figures, forget the rest."""

from __future__ import annotations

from collections import Counter

from podqos.agent.journal import Kind
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import run_summary, workload_of
from podqos.sim.sweep import Point, RunResult, WorkloadResult


def result_of(scenario: Scenario, key: str, point: Point) -> RunResult:
    """Run a scenario and return what a sweep keeps of it."""
    run = simulate(scenario)
    summary = run_summary(run)
    names = [row.workload for row in summary.workloads]
    ran = {entry.pod for entry in run.entries if entry.kind is Kind.STARTED}
    never_ran = Counter(
        workload_of(pod, names) for pod in {entry.pod for entry in run.entries if entry.pod is not None} - ran
    )
    first = next((entry for entry in run.entries if entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}), None)
    return RunResult(
        key=key,
        values=point.values,
        seed=point.seed,
        workloads={
            row.workload: WorkloadResult(
                row.pods,
                row.untouched,
                row.oom_kills,
                row.evictions,
                row.restarts,
                row.downtime_us,
                never_ran[row.workload],
            )
            for row in summary.workloads
        },
        oom_kills=summary.oom_kills,
        evictions=summary.evictions,
        first_us=None if first is None else first.time_us,
        first_workload=None if first is None or first.pod is None else workload_of(first.pod, names),
        first_by=None if first is None or first.by is None else first.by.value,
    )
