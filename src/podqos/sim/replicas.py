"""The pods of a workload: what tells one from another."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.pod import Pod
from podqos.placement.workloads import POD
from podqos.sim.scenario import ScenarioWorkload


class Replica(Struct, frozen=True, gc=False):
    """A pod and where it comes from."""

    workload: ScenarioWorkload
    number: int
    order: tuple[int, int]
    """Its place in the order in which pods came to be: those of the beginning by workload and number, then all others."""
    generation: int = 0


def pod_name(workload: ScenarioWorkload, number: int) -> str:
    """Return what a replica is called; a pod of its own has its own name."""
    is_alone = workload.kind == POD and workload.replicas == 1
    return workload.name if is_alone else f"{workload.name}-{number}"


def named(pod: Pod, name: str) -> Pod:
    """Return a pod with a name, and with a uid made of it."""
    namespace = pod.metadata.namespace or "default"
    return replace(pod, metadata=replace(pod.metadata, name=name, namespace=namespace, uid=f"{namespace}_{name}"))
