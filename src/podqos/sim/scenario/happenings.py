"""What happens in a scenario at stated times, to machines and to workloads."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.drain import DrainSettings
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, Pod
from podqos.model.resources import ResourceRequirements


class NodeLost(Struct, frozen=True, gc=False, tag=True):
    """A machine is lost, with everything that ran on it."""

    at_us: int
    node: str


class NodeAdded(Struct, frozen=True, gc=False, tag=True):
    """A machine joins, for the first time or again; pods that are still bound to it start anew."""

    at_us: int
    node: str


class Cordoned(Struct, frozen=True, gc=False, tag=True):
    """A machine takes no more pods, or takes them again."""

    at_us: int
    node: str
    takes_pods: bool = False


class Drained(Struct, frozen=True, gc=False, tag=True):
    """A machine is cordoned, and its pods are evicted through the API."""

    at_us: int
    node: str
    settings: DrainSettings = DrainSettings()


class KubeletRestart(Struct, frozen=True, tag=True):
    """The kubelet of a machine restarts; pods keep running."""

    at_us: int
    node: str
    config: KubeletConfiguration = KubeletConfiguration()
    changed: tuple[str, ...] = ()
    """The fields of its configuration, as written, that it has from ``config`` from now on; the others stay."""


class NodeDeleted(Struct, frozen=True, gc=False, tag=True):
    """The Node object of a lost machine is deleted: nothing is left of its pods after a while."""

    at_us: int
    node: str


class OutOfService(Struct, frozen=True, gc=False, tag=True):
    """A lost machine is marked out of service: its pods are deleted, and nobody waits for a kubelet to confirm it."""

    at_us: int
    node: str


class Resized(Struct, frozen=True, tag=True):
    """The resources of a container are changed in place, in the pods that are there."""

    at_us: int
    workload: str
    """Kind/namespace/name."""
    container: str
    resources: ResourceRequirements
    """What changes; the rest stays."""
    pod: str = ""
    """The one pod that is resized; empty: all of the workload."""


Happening = NodeLost | NodeAdded | Cordoned | Drained | NodeDeleted | OutOfService | KubeletRestart | Resized


def stated_fields(config: KubeletConfiguration, written: Collection[str]) -> dict[str, object]:
    """Return the values of some fields, which are named as in a file, by their names here."""
    names = zip(config.__struct_fields__, config.__struct_encode_fields__, strict=True)
    return {name: getattr(config, name) for name, as_written in names if as_written in written}


def with_resources(pod: Pod, container: str, changed: ResourceRequirements) -> Pod:
    """Return a pod of which a container has other requests and limits; those that are not stated stay."""

    def resized(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(
                known,
                resources=replace(
                    known.resources,
                    requests={**known.resources.requests, **changed.requests},
                    limits={**known.resources.limits, **changed.limits},
                ),
            )
            if known.name == container
            else known
            for known in containers
        )

    spec = pod.spec
    return replace(
        pod,
        spec=replace(spec, containers=resized(spec.containers), init_containers=resized(spec.init_containers)),
    )


def larger_requests(pod: Pod, other: Pod) -> Pod:
    """Return a pod with the larger requests of two, container by container."""
    for container in (*other.spec.containers, *other.spec.init_containers):
        own = next(known for known in (*pod.spec.containers, *pod.spec.init_containers) if known.name == container.name)
        requests = own.resources.requests
        larger = {
            name: amount
            for name, amount in container.resources.requests.items()
            if name in requests and amount > requests[name]
        }
        if larger:
            pod = with_resources(pod, container.name, ResourceRequirements(larger))
    return pod
