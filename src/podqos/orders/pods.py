"""From workloads to the pods one node runs.

Names in a usage file take precedence over made-up ones. Unlike in ``placement``, all given workloads are assumed to run
on the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.pod import TERMINAL_PHASES, Pod, Workload
from podqos.placement.workloads import DAEMON_SET, POD, pods_of, replicas_of

MOST_ON_NODE = 20_000
"""Replicas of one workload on one node: a hundred times what a kubelet can run."""


class NodePod(Struct, frozen=True, gc=False):
    """A pod, with a uid, and the workload it belongs to."""

    pod: Pod
    workload: str
    """``namespace/name`` of the workload; the pod's own for a pod of its own."""
    is_chosen: bool = True
    """Whether an answer is about it; otherwise it is only a neighbour."""
    kind: str = POD
    """Of the workload."""


def pods_on_node(workload: Workload, named: Collection[str] = ()) -> Iterator[NodePod]:
    """Yield the pods of a workload whose pod is as the API server stores it. Pods that have ended hold nothing.

    ``named`` are names of pods known from elsewhere, as ``namespace/name`` or bare names: those that begin with the
    workload's are its pods. It has as many as it has replicas, or as are named, if those are more.
    """
    if workload.pod.status.phase in TERMINAL_PHASES:
        return
    owner = workload.pod.key
    for pod in _pods(workload, named):
        yield NodePod(identified(pod, workload.kind), pod.key if workload.kind == POD else owner, kind=workload.kind)


def without_process(pod: Pod) -> dict[str, str]:
    """Return the containers of a node's pod that have no process, and why: empty where they have not started yet.

    Of a pod that is Pending those have none that its node does not call running. Of a static pod that is not known: a
    kubelet's /pods calls it Pending for as long as it runs.
    """
    told = pod.status.idle
    found = {name: why for name, why in told.items() if why is not None}
    if pod.status.phase == "Pending" and pod.spec.node_name and not pod.is_static:
        found = {**{container.name: "" for container in pod.running_containers if container.name not in told}, **found}
    return found


def identified(pod: Pod, kind: str = POD) -> Pod:
    """Return the pod with a uid; a manifest has none. Names have no underscores, so that no two pods get the same."""
    if pod.metadata.uid:
        return pod
    uid = f"{kind.lower()}_{pod.key.replace('/', '_')}"
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


def _pods(workload: Workload, named: Collection[str]) -> Iterator[Pod]:
    pod = workload.pod
    if workload.kind == POD:
        yield from pods_of(workload)
        return
    namespace, _, own = pod.key.partition("/")
    instances = sorted({name for name in _in_namespace(named, namespace) if name.startswith(f"{own}-")})
    if workload.kind == DAEMON_SET:
        instances = instances or [own]
    yield from (replace(pod, metadata=replace(pod.metadata, name=name)) for name in instances)
    # Of replicas that are not named, as many as are left.
    replicas_of(workload, MOST_ON_NODE)
    replicas = list(pods_of(workload))
    others = [replica for replica in replicas if replica.metadata.name not in instances]
    yield from others[: max(len(replicas) - len(instances), 0)]


def names_by_workload(workloads: Collection[str], named: Collection[str]) -> dict[str, list[str]]:
    """Return which of the named pods belong to each workload: to that of the longest name that they begin with.

    Workloads are ``namespace/name``, pods that or bare names, which may be of any namespace. What is called as a
    workload itself is left out.
    """
    found: dict[str, list[str]] = {}
    names = {*named}
    bare = {name for name in names if "/" not in name}
    for namespace in {key.partition("/")[0] for key in workloads}:
        own = {key for key in workloads if key.startswith(f"{namespace}/")}
        for name in sorted({f"{namespace}/{each}" for each in bare} | {name for name in names if name not in bare}):
            # Every hyphen may be where the name of the workload ends; the last that fits counts.
            ends = (name[:at] for at in range(len(name) - 1, 0, -1) if name[at] == "-")
            owner = None if name in own else next((start for start in ends if start in own), None)
            if owner is not None:
                found.setdefault(owner, []).append(name)
    return found


def _in_namespace(named: Collection[str], namespace: str) -> Iterator[str]:
    """Yield the bare names of those that can be of a namespace."""
    for name in named:
        prefix, slash, rest = name.rpartition("/")
        if not slash or prefix == namespace:
            yield rest
