"""The workloads of one version of manifests, as an API server would store their pods.

Injectors come first, then admission with the policies of the version. What is wrong is collected with its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.injectors import CustomInjector, Injector, inject
from podqos.errors import InputError
from podqos.model.pod import Workload
from podqos.model.profile import Profile
from podqos.objects.admitting import admitted_pod
from podqos.objects.node_pods import numbered
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.workloads import POD
from podqos.survival.drift.drift import Identity, VersionWorkload
from podqos.survival.node.pods import NodePod, pods_on_node


class VersionEntry(Struct, frozen=True):
    """A workload of a version and the pods it has on a node."""

    workload: VersionWorkload
    pods: tuple[NodePod, ...]


Entries = dict[Identity, VersionEntry]
"""The workloads of a version."""


def version_workloads(
    objects: Objects, injectors: Sequence[Injector | CustomInjector], named: Sequence[str], profile: Profile
) -> Entries:
    """Return the workloads of a version, injected and admitted; ``named`` are pods that a usage file speaks of."""
    entries: Entries = {}
    taken: set[str] = set()
    objects.check_kubelets()
    for found in objects.latest():
        stored = _stored(found, objects, injectors, profile)
        if stored is not None:
            workload, injected = stored
            pods = tuple(numbered(pods_on_node(workload, named), taken))
            identity = _identity(workload, entries)
            uids = tuple(entry.pod.metadata.uid for entry in pods)
            entries[identity] = VersionEntry(
                VersionWorkload(
                    identity, workload.pod, uids, injected, objects.source_name(found), objects.unit(found)
                ),
                pods,
            )
    return entries


def _stored(
    found: FoundWorkload,
    objects: Objects,
    injectors: Sequence[Injector | CustomInjector],
    profile: Profile,
) -> tuple[Workload, dict[str, str]] | None:
    """Return a workload as the API server would store its pods, and who added which container."""
    if found.workload.is_live and found.workload.kind == POD:
        return found.workload, {}
    pod = found.workload.pod
    injected: dict[str, str] = {}
    for injector in injectors:
        try:
            injection = inject(pod, injector, profile)
        except InputError as error:
            objects.refuse(found, f"{error.where}: {error.what}", error.fix)
            return None
        pod = injection.pod
        injected.update({added.container.name: injection.injector for added in injection.added})
    prepared = replace(found, workload=replace(found.workload, pod=pod))
    admitted = admitted_pod(prepared, objects, profile)
    return None if admitted is None else (replace(found.workload, pod=admitted), injected)


def _identity(workload: Workload, taken: Entries) -> Identity:
    """Return who a workload is; those that get their names from the API server are counted."""
    namespace, _, name = workload.pod.key.partition("/")
    identity = Identity(namespace, workload.kind, name)
    number = 1
    while identity in taken:
        number += 1
        identity = Identity(namespace, workload.kind, f"{name}#{number}")
    return identity
