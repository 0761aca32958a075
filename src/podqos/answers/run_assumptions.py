"""What a run assumes: models where upstream and the kernel have no rule."""

from __future__ import annotations

from podqos.agent.journal import Kind
from podqos.model.assumption import Assumption
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.assumptions import assumptions_of

_PROBED = frozenset({Kind.UNHEALTHY.value, Kind.READINESS_CHANGED.value})


def of_run(run: FinishedRun) -> tuple[Assumption, ...]:
    """Return what a run assumes."""
    found = [*assumptions_of(run.scenario)]
    if run.services:
        how = "random arrivals, equal shares for ready pods, one queue per pod in order of arrival"
        found.append(Assumption("load, queues and latency of services", f"a queueing model ({how})", ""))
    if _PROBED & run.tallies.kinds.keys():
        how = "10 cpu-ms unless demand.probeCost says otherwise, slowed like the container, queued like a request"
        found.append(Assumption("response time of probes", f"a model ({how})", ""))
    return tuple(found)
