"""The pods of one node, as the API server would store them, each with an identity of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from podqos.errors import InvalidArgument
from podqos.model.effective import as_allocated
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.naming import naming
from podqos.objects.objects import FoundWorkload, Objects
from podqos.orders.pods import NodePod, names_by_workload, pods_on_node
from podqos.placement.workloads import POD


def node_pods(
    objects: Objects, *, profile: Profile = LATEST, node: str | None = None, named: Collection[str] = ()
) -> list[NodePod]:
    """Return the pods; those the API server would reject become problems of the objects.

    Pods from files get uids that are the same in every run. ``node`` chooses among the pods of several; ``named`` are
    those a usage file speaks of (see ``survival.pods``).
    """
    pods: list[NodePod] = []
    taken: set[str] = set()
    every = objects.latest()
    workloads = list(_on_node(every, chosen_node(objects, node), is_named=runs_any(every, node)))
    names = names_by_workload({found.workload.pod.key for found in workloads}, named) if named else {}
    for found in workloads:
        pod = as_allocated(found.workload.pod) if _is_live_pod(found) else _admitted(found, objects, profile)
        if pod is not None:
            own = names.get(found.workload.pod.key, ())
            made = numbered(pods_on_node(replace(found.workload, pod=pod), own), taken)
            pods += made if objects.takes(found) else (replace(node_pod, is_chosen=False) for node_pod in made)
    return pods


def _admitted(found: FoundWorkload, objects: Objects, profile: Profile) -> Pod | None:
    from podqos.objects.admitting import admitted_pod  # what runs has been admitted

    pod = admitted_pod(found, objects, profile)
    # Whether it names a node or not: what a manifest describes is taken to run.
    return None if pod is None else replace(pod, status=replace(pod.status, phase="Running"))


def numbered(pods: Iterable[NodePod], taken: set[str]) -> Iterator[NodePod]:
    """Yield pods, keeping track of uids; pods with generated names may have the same name."""
    for entry in pods:
        metadata = entry.pod.metadata
        uid, number = metadata.uid, 1
        while uid in taken:
            number += 1
            uid = f"{metadata.uid}#{number}"
        taken.add(uid)
        if number == 1:
            yield entry
        else:
            renamed = replace(metadata, uid=uid, name=f"{metadata.name}#{number}")
            yield replace(entry, pod=replace(entry.pod, metadata=renamed))


def chosen_node(objects: Objects, node: str | None = None) -> str:
    """Return the node whose pods to use: the given one, else the only one; empty if pods name none.

    Pods that name none run on any Node that is there.
    """
    nodes = sorted({found.workload.pod.spec.node_name for found in objects.latest(warn=False)} - {""})
    nodes = nodes or sorted(known.name for known in objects.of(Node) if node is not None)
    if node is None and len(nodes) > 1:
        fix = "choose one with " + naming("node") + f": {', '.join(nodes[:5])}{', …' if len(nodes) > 5 else ''}"
        raise InvalidArgument(f"these are the pods of {len(nodes)} nodes", fix=fix)
    if node is not None and node not in nodes:
        raise InvalidArgument(
            f"no pods run on {node}", where=naming("node"), fix=f"one of: {', '.join(nodes) or 'none'}"
        )
    return node or next(iter(nodes), "")


def runs_any(workloads: Iterable[FoundWorkload], node: str | None) -> bool:
    """Whether pods name this node."""
    return bool(node) and any(found.workload.pod.spec.node_name == node for found in workloads)


def _on_node(workloads: list[FoundWorkload], node: str, *, is_named: bool) -> Iterator[FoundWorkload]:
    """Yield the workloads of one node; the only node, unless given by name, also runs pods without a node."""
    pods_are_live = any(map(_is_live_pod, workloads))
    for found in workloads:
        if found.workload.pod.spec.node_name == node:
            yield found
        elif not is_named:
            # Of a live cluster only the node's pods are on it: not those that wait, nor what they are made from.
            waits = _is_live_pod(found) and bool(node)
            is_made = found.workload.is_live and pods_are_live and not _is_live_pod(found)
            if not waits and not is_made:
                yield found


def _is_live_pod(found: FoundWorkload) -> bool:
    return found.workload.is_live and found.workload.kind == POD
