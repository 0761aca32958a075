"""Whose samples these are: pods have names that their controllers made, such as ``web-7d8b9c4f5-x2k9p``.

A name belongs to the workload of that name, or to the one with the longest name that it begins with. What belongs to
nobody is left over, and said: monitoring sees more than the manifests at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from podqos.advice.sizing.samples import ContainerSamples
from podqos.advice.sizing.sizing import UsageHistory
from podqos.model.pod import Pod
from podqos.survival.drift import Identity


class Matched(Struct, frozen=True):
    """ContainerSamples by workload and container, and the pods that are nobody's."""

    usages: Mapping[Identity, Mapping[str, UsageHistory]]
    strangers: tuple[str, ...]


def match_samples(workloads: Mapping[Identity, Pod], samples: Iterable[ContainerSamples]) -> Matched:
    """Give samples to the containers they are of; all pods of a workload together."""
    found: dict[Identity, dict[str, list[ContainerSamples]]] = {}
    strangers: list[str] = []
    for each in samples:
        identity = _owner(each.pod, list(workloads))
        container = None if identity is None else _container(each.container, workloads[identity])
        if identity is None or container is None:
            name = f"{each.pod} {each.container}".strip()
            strangers.append(name)
            continue
        found.setdefault(identity, {}).setdefault(container, []).append(each)
    usages = {
        identity: {name: _together(of_container) for name, of_container in containers.items()}
        for identity, containers in found.items()
    }
    return Matched(usages, tuple(sorted(set(strangers))))


def _owner(pod: str, identities: Sequence[Identity]) -> Identity | None:
    namespace, slash, name = pod.rpartition("/")
    candidates = [
        identity
        for identity in identities
        if (not slash or identity.namespace == namespace)
        and (name == identity.name or name.startswith(f"{identity.name}-"))
    ]
    return max(candidates, key=lambda identity: (len(identity.name), identity), default=None)


def _container(name: str, pod: Pod) -> str | None:
    names = [container.name for container in (*pod.spec.containers, *pod.spec.init_containers)]
    if not name and len(pod.running_containers) == 1:
        return pod.running_containers[0].name
    return name if name in names else None


def _together(samples: Sequence[ContainerSamples]) -> UsageHistory:
    return UsageHistory(
        memory_bytes=tuple(value for each in samples for value in each.memory_bytes),
        cpu_milli=tuple(value for each in samples for value in each.cpu_milli),
        oom_kills=sum(each.oom_kills for each in samples),
    )
