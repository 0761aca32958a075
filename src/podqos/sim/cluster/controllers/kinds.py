"""Which controller keeps the pods of a workload."""

from __future__ import annotations

from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.controllers.controller import ControlledCluster, Controller
from podqos.sim.cluster.controllers.daemon_set import DaemonSetController
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.scenario.scenario import ScenarioWorkload

_BY_KIND = {DAEMON_SET: DaemonSetController}


def controller_of(cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> Controller:
    """Return the controller of a workload; ``index`` is its place in the scenario."""
    return _BY_KIND.get(workload.kind, KeptReplicas)(cluster, index, workload)
