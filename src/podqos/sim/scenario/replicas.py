"""The pods of a workload: their names, where they are bound, what replaces them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.node import TAINT_UNREACHABLE, Node
from podqos.model.pod import Pod, Toleration, Workload
from podqos.model.profile import Profile
from podqos.placement.node_rules import NO_EXECUTE
from podqos.placement.workloads import DAEMON_SET, POD, made_by, pods_of
from podqos.sim.scenario.scenario import ScenarioWorkload

_DEFAULT_TOLERATION_SECONDS = 300
_TAINT_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# The value that people are told to write.
_SHUTDOWN = "nodeshutdown"


class Replica(Struct, frozen=True, gc=False):
    """Where a pod comes from."""

    workload: ScenarioWorkload
    number: int
    order: tuple[int, int]
    """Its place among all pods: those present at the start by workload and number, then in the order of creation."""
    generation: int = 0
    """How many pods it replaces, one after the other."""
    revision: ScenarioWorkload | None = None
    """The workload as changed by a rollout, with the template and the demand of this pod; None is as it arrived."""

    @property
    def template(self) -> ScenarioWorkload:
        """What the pod was made from."""
        return self.revision or self.workload


def is_bound(workload: ScenarioWorkload) -> bool:
    """Whether its pods are bound without asking the scheduler."""
    return workload.kind != DAEMON_SET and (bool(workload.nodes) or workload.spread)


def pod_of(workload: ScenarioWorkload, number: int) -> Pod:
    """Return one of the pods of a workload that is no DaemonSet."""
    return named(workload.pod, name_of(workload, number), owner_references=made_by(workload.kind, workload.name))


def name_of(workload: ScenarioWorkload, number: int) -> str:
    """Return the name of such a pod; a single pod keeps its own."""
    alone = workload.kind == POD and workload.replicas == 1
    return workload.name if alone else f"{workload.name}-{number}"


def daemons(workload: ScenarioWorkload, nodes: Iterable[Node], profile: Profile) -> Iterator[Pod]:
    """Yield the pods of a DaemonSet: one for every node that suits it."""
    pod = workload.pod
    for made in pods_of(Workload(DAEMON_SET, pod.metadata, pod), nodes, profile=profile):
        yield named(made, made.metadata.name)


def replacement(pod: Pod, replica: Replica) -> Pod:
    """Return the pod that a controller makes in place of another; ``replica`` is its own."""
    name = pod.metadata.name
    base = name.rpartition("-r")[0] if replica.generation > 1 else name
    return named(pod, f"{base}-r{replica.generation}")


def again(pod: Pod, generation: int) -> Pod:
    """Return a pod that has the name of earlier ones, with a uid of its own."""
    uid = f"{pod.metadata.uid}.{generation}"
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


def named(pod: Pod, name: str, **metadata: object) -> Pod:
    """Return a pod under a name, with a uid of its own."""
    namespace = pod.metadata.namespace_or_default
    uid = f"{namespace}_{name}"
    return replace(pod, metadata=replace(pod.metadata, name=name, namespace=namespace, uid=uid, **metadata))


def tolerates_out_of_service(tolerations: tuple[Toleration, ...]) -> bool:
    """Whether a pod stays on a node that is marked out of service, at least for a while."""
    return any(toleration.tolerates(_TAINT_OUT_OF_SERVICE, _SHUTDOWN, NO_EXECUTE) for toleration in tolerations)


def unreachable_seconds(tolerations: tuple[Toleration, ...]) -> int | None:
    """Return how long a pod stays bound to a node that cannot be reached; None is for ever.

    The API server gives every pod tolerations for 300 s unless it has its own (DefaultTolerationSeconds). The shortest
    of several counts, and less than nothing is nothing (pkg/controller/tainteviction: getMinTolerationTime).
    """
    matching = [toleration for toleration in tolerations if toleration.tolerates(TAINT_UNREACHABLE, "", NO_EXECUTE)]
    if not matching:
        return _DEFAULT_TOLERATION_SECONDS
    limited = [toleration.toleration_seconds for toleration in matching if toleration.toleration_seconds is not None]
    return max(0, min(limited)) if limited else None


def workload_of(pod: str, workloads: Container[str]) -> str | None:
    """Return the workload of a pod by its name, which begins with the workload's."""
    name = pod
    while name not in workloads:
        name, dash, _ = name.rpartition("-")
        if not dash:
            return None
    return name
