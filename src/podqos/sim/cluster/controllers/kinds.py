"""Which controller keeps the pods of a workload."""

from __future__ import annotations

from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.controllers.controller import ControlledCluster, Controller
from podqos.sim.cluster.controllers.cron_job import CronJobController
from podqos.sim.cluster.controllers.daemon_set import DaemonSetController
from podqos.sim.cluster.controllers.deployment import DeploymentController
from podqos.sim.cluster.controllers.job import JobController
from podqos.sim.cluster.controllers.replicas import KeptReplicas
from podqos.sim.cluster.controllers.stateful_set import StatefulSetController
from podqos.sim.scenario.scenario import ScenarioWorkload

_BY_KIND = {
    DAEMON_SET: DaemonSetController,
    "StatefulSet": StatefulSetController,
    "Deployment": DeploymentController,
    "ReplicaSet": DeploymentController,
    "ReplicationController": DeploymentController,
}


def controller_of(cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> Controller:
    """Return the controller of a workload; ``index`` is its place in the scenario."""
    if workload.recreate and workload.cron is not None:
        return CronJobController(cluster, index, workload)
    if workload.recreate and workload.job is not None:
        return JobController(cluster, index, workload)
    kind = workload.kind if workload.recreate or workload.kind == DAEMON_SET else ""
    return _BY_KIND.get(kind, KeptReplicas)(cluster, index, workload)
