"""From workloads to the pods one node runs.

Names in a usage file take precedence over replicas for how many pods there are and what they are called. Unlike in
``placement``, all given workloads are assumed to run on the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.pod import Pod, Workload
from podqos.placement.workloads import DAEMON_SET, POD, pods_of, replicas_of

MOST_ON_NODE = 20_000
"""Replicas of one workload on one node: a hundred times what a kubelet can run."""
ENDED = ("Succeeded", "Failed")


class NodePod(Struct, frozen=True, gc=False):
    """A pod, with a uid, and the workload it belongs to."""

    pod: Pod
    workload: str
    """``namespace/name`` of the workload; the pod's own for a pod of its own."""


def pods_on_node(workload: Workload, named: Collection[str] = ()) -> Iterator[NodePod]:
    """Yield the pods of a workload whose pod is as the API server stores it. Pods that have ended hold nothing.

    ``named`` are names of pods known from elsewhere, as ``namespace/name`` or bare names: those that belong to the
    workload say how many pods it has and how they are called. Otherwise its replicas do.
    """
    if workload.pod.status.phase in ENDED:
        return
    owner = workload.pod.key
    for pod in _pods(workload, named):
        yield NodePod(identified(pod, workload.kind), pod.key if workload.kind == POD else owner)


def identified(pod: Pod, kind: str = POD) -> Pod:
    """Return the pod with a uid; a manifest has none. Names have no underscores, so that no two pods get the same."""
    if pod.metadata.uid:
        return pod
    uid = f"{kind.lower()}_{pod.key.replace('/', '_')}"
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


def _pods(workload: Workload, named: Collection[str]) -> Iterator[Pod]:
    pod = workload.pod
    if workload.kind != POD:
        namespace, _, own = pod.key.partition("/")
        instances = sorted({name for name in _in_namespace(named, namespace) if name.startswith(f"{own}-")})
        if instances or workload.kind == DAEMON_SET:
            for name in instances or [own]:
                yield replace(pod, metadata=replace(pod.metadata, name=name))
            return
    replicas_of(workload, MOST_ON_NODE)
    yield from pods_of(workload)


def _in_namespace(named: Collection[str], namespace: str) -> Iterator[str]:
    """Yield the bare names of those that can be of a namespace."""
    for name in named:
        prefix, slash, rest = name.rpartition("/")
        if not slash or prefix == namespace:
            yield rest
