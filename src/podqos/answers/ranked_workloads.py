"""Both kill orders by workload: which workload loses a pod first, and which is the first to lose all of them.

Nothing is ranked here: the places are those of the pods (``answers.places``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podqos.answers.places import EvictionPlace, RankedWorkload
from podqos.model.owners import controllers
from podqos.model.pod import Pod

_POD = "Pod"


def workload_of(pod: Pod, owners: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return kind and ``namespace/name`` of a pod's workload; ``owners`` are those that are known, by the pod's uid."""
    kind, name = owners.get(pod.metadata.uid, (_POD, pod.key))
    makers = list(controllers(pod.metadata)) if kind == _POD else []
    if not makers:
        return kind, name
    kind, maker = makers[-1]
    return kind, f"{pod.key.rpartition('/')[0]}/{maker}"


def ranked_workloads(
    places: Iterable[EvictionPlace], workloads: Mapping[str, tuple[str, str]]
) -> tuple[RankedWorkload, ...]:
    """Return the workloads in the order in which they lose a pod; ``workloads`` has that of each pod by its key."""
    by_workload: dict[tuple[str, str], list[EvictionPlace]] = {}
    for place in places:
        by_workload.setdefault(workloads.get(place.pod, (_POD, place.pod)), []).append(place)
    ranked = [_ranked(kind, name, own) for (kind, name), own in by_workload.items()]
    # Those that are spared come last, and stay in the order of their pods.
    return tuple(sorted(ranked, key=lambda workload: (workload.first_evicted is None, workload.first_evicted or 0)))


def _ranked(kind: str, name: str, places: list[EvictionPlace]) -> RankedWorkload:
    evicted = [place.place for place in places if place.spared is None]
    killed = [place.kernel_place for place in places if place.kernel_place is not None]
    return RankedWorkload(
        kind=kind,
        name=name,
        pods=len(places),
        qos_classes=tuple(dict.fromkeys(place.qos_class for place in places)),
        first_evicted=min(evicted, default=None),
        last_evicted=max(evicted, default=None),
        first_killed=min(killed, default=None),
        last_killed=max(killed, default=None),
        spared=None if evicted else places[0].spared,
    )
