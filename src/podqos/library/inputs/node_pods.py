"""The pods of one node, read from manifests or from what a cluster says."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from podqos.errors import InvalidOption
from podqos.library.inputs.admitting import admitted_pod, namespace_policies
from podqos.library.inputs.objects import FoundWorkload, Objects, read_objects
from podqos.manifest.problems import Severity
from podqos.model.profile import Profile
from podqos.placement.workloads import POD
from podqos.survival.pods import NodePod, pods_on_node


def read_node_pods(
    files: list[str], *, profile: Profile, node: str | None = None, named: Collection[str] = ()
) -> tuple[list[NodePod], int]:
    """Return the pods, as the API server would store them, and how many errors were printed on the way.

    ``node`` chooses among the pods of several; ``named`` are those a usage file speaks of (see ``survival.pods``).
    """
    objects = read_objects(files)
    policies = namespace_policies(objects)
    pods: list[NodePod] = []
    for found in _on_node(list(latest_workloads(objects.workloads)), node):
        pod = found.workload.pod if _is_live_pod(found) else admitted_pod(found, objects, policies, profile)
        if pod is not None:
            pods += pods_on_node(replace(found.workload, pod=pod), named)
    return pods, _print_problems(objects)


def latest_workloads(workloads: Iterable[FoundWorkload], *, say: bool = True) -> Iterator[FoundWorkload]:
    """Yield each object once: as with ``kubectl apply``, what comes later replaces what came before.

    ``say``: whether it is told, because it may be an oversight.
    """
    latest: dict[str, FoundWorkload] = {}
    for number, found in enumerate(workloads):
        metadata = found.workload.metadata
        named = f"{found.workload.kind} {metadata.namespace or 'default'}/{metadata.name}"
        key = metadata.uid or (named if metadata.name else f"{named} {number}")
        if key in latest and say:
            print(f"{found.source}: {named} replaces the one of {latest[key].source}", file=sys.stderr)
        latest[key] = found
    yield from latest.values()


def _on_node(workloads: list[FoundWorkload], node: str | None) -> Iterator[FoundWorkload]:
    """Yield the workloads of one node; the pods of several have to be told apart first."""
    nodes = sorted({found.workload.pod.spec.node_name for found in workloads} - {""})
    if node is None and len(nodes) > 1:
        fix = f"choose one with --node: {', '.join(nodes[:5])}{', …' if len(nodes) > 5 else ''}"
        raise InvalidOption(f"these are the pods of {len(nodes)} nodes", fix=fix)
    if node is not None and node not in nodes:
        raise InvalidOption(f"no pod runs on {node}", where="--node", fix=f"one of: {', '.join(nodes) or 'none'}")
    chosen = node or next(iter(nodes), None)
    pods_are_live = any(map(_is_live_pod, workloads))
    for found in workloads:
        if found.workload.pod.spec.node_name == chosen:
            yield found
        elif node is None:
            # Of a live cluster only the node's pods are on it: not those that wait, nor what they are made from.
            waits = _is_live_pod(found) and chosen is not None
            is_made = found.workload.is_live and pods_are_live and not _is_live_pod(found)
            if not waits and not is_made:
                yield found


def _is_live_pod(found: FoundWorkload) -> bool:
    return found.workload.is_live and found.workload.kind == POD


def _print_problems(objects: Objects) -> int:
    for problem in sorted(objects.problems):
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in objects.problems)
