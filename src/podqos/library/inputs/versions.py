"""The workloads of one version of manifests, as an API server would store their pods.

Injectors come first, then admission with the policies of the version. What is wrong is collected with its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.injectors import CustomInjector, Injector, inject
from podqos.admission.policies import NamespacePolicies
from podqos.errors import InputError
from podqos.library.inputs.admitting import admitted_pod
from podqos.library.inputs.files import existing_files, read_bytes
from podqos.library.inputs.objects import FoundWorkload, Objects
from podqos.library.inputs.revisions import ManifestText
from podqos.manifest.problems import Problem
from podqos.model.node import Node
from podqos.model.pod import Workload
from podqos.model.profile import Profile
from podqos.placement.workloads import POD
from podqos.survival.drift import Identity, VersionWorkload
from podqos.survival.pods import NodePod, pods_on_node


class Shared(Struct, frozen=True):
    """What both versions have."""

    policies: tuple[ManifestText, ...]
    beside: tuple[ManifestText, ...]


def texts_of(paths: list[str]) -> tuple[ManifestText, ...]:
    """Return the manifests that an option names."""
    return tuple(ManifestText(path, read_bytes(path)) for path in existing_files(paths)) if paths else ()


class VersionEntry(Struct, frozen=True):
    """A workload of a version and the pods it has on a node."""

    workload: VersionWorkload
    pods: tuple[NodePod, ...]


class ReadVersion(Struct, frozen=True):
    """What the files of a version hold."""

    entries: dict[Identity, VersionEntry]
    nodes: tuple[Node, ...]
    problems: tuple[Problem, ...]


def read_workloads(
    texts: Sequence[ManifestText],
    shared: Shared,
    injectors: Sequence[Injector | CustomInjector],
    named: Sequence[str],
    profile: Profile,
) -> ReadVersion:
    """Return the workloads of a version, injected and admitted; ``named`` are pods that a usage file speaks of."""
    objects = Objects()
    for text in shared.policies:
        objects.add_text(text.name, text.data, are_stored=True)
    for text in (*shared.beside, *texts):
        objects.add_text(text.name, text.data)
    namespaces = objects.namespace_policies()
    entries: dict[Identity, VersionEntry] = {}
    for found in objects.latest(warn=not shared.beside):
        stored = _stored(found, objects, namespaces, injectors, profile)
        if stored is not None:
            workload, injected = stored
            pods = tuple(pods_on_node(workload, named))
            identity = _identity(workload, entries)
            uids = tuple(entry.pod.metadata.uid for entry in pods)
            entries[identity] = VersionEntry(
                VersionWorkload(identity, workload.pod, uids, injected, found.source), pods
            )
    return ReadVersion(entries, objects.of(Node), tuple(objects.problems))


def _stored(
    found: FoundWorkload,
    objects: Objects,
    policies: NamespacePolicies,
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
    admitted = admitted_pod(prepared, objects, policies, profile)
    return None if admitted is None else (replace(found.workload, pod=admitted), injected)


def _identity(workload: Workload, taken: dict[Identity, VersionEntry]) -> Identity:
    """Return who a workload is; those that get their names from the API server are counted."""
    namespace, _, name = workload.pod.key.partition("/")
    identity = Identity(namespace, workload.kind, name)
    number = 1
    while identity in taken:
        number += 1
        identity = Identity(namespace, workload.kind, f"{name}#{number}")
    return identity
