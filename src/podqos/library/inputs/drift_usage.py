"""What the pods of two versions use: the same for both, so that every difference comes from the manifests."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.library.inputs.versions import ReadVersion
from podqos.model.snapshot import NodeUsage, PodUsage, Snapshot
from podqos.survival.assumed_usage import assumed_usage
from podqos.survival.drift import Version
from podqos.survival.usage import from_usage
from podqos.survival.usage_file import UsageRow


def assumed(old: ReadVersion, new: ReadVersion, node: NodeUsage) -> tuple[Version, Version]:
    """Return both versions, every pod with what the older version of it requests."""
    before, after = (tuple(_assumed_usages(version, old).values()) for version in (old, new))
    return _version(old, Snapshot(node, before)), _version(new, Snapshot(node, after))


def _assumed_usages(version: ReadVersion, old: ReadVersion) -> dict[str, PodUsage]:
    """Return, by uid, every pod with what the older version of it requests."""
    found: dict[str, PodUsage] = {}
    for identity, entry in version.entries.items():
        older = old.entries.get(identity)
        for pod in entry.pods:
            found[pod.pod.metadata.uid] = assumed_usage(pod.pod, None if older is None else older.workload.pod)
    return found


def measured(rows: Sequence[UsageRow], old: ReadVersion, new: ReadVersion, node: NodeUsage) -> tuple[Version, Version]:
    """Return both versions with the same figures; rows about pods of one version do not disturb the other.

    Pods without figures are assumed to use what the older version requests.
    """
    directories = [_containers_by_name(version) for version in (old, new)]
    for row in rows:
        if not any(row.pod in directory for directory in directories):
            raise InputError(
                f"there is no pod {row.pod}", where=row.where, fix="name a pod or workload of either version"
            )
    snapshots = []
    for version, own, other in zip((old, new), directories, reversed(directories), strict=True):
        fitting = [fitted for row in rows if (fitted := _fitted(row, own, other)) is not None]
        pods = [pod for entry in version.entries.values() for pod in entry.pods]
        assumed_usages = _assumed_usages(version, old)
        entries = (
            assumed_usages[entry.pod.metadata.uid] if entry.stats is None else entry
            for entry in from_usage(pods, fitting, node).pods
        )
        snapshots.append(_version(version, Snapshot(node, tuple(entries))))
    return snapshots[0], snapshots[1]


def _containers_by_name(version: ReadVersion) -> dict[str, list[str]]:
    """Return the containers of every pod, by all names that a usage file may use for it."""
    found: dict[str, list[str]] = {}
    for entry in version.entries.values():
        for pod in entry.pods:
            names = [container.name for container in pod.pod.running_containers]
            for key in (pod.pod.key, pod.workload):
                found[key] = found[key.partition("/")[2]] = names
    return found


def _fitted(row: UsageRow, own: dict[str, list[str]], other: dict[str, list[str]]) -> UsageRow | None:
    """Return a row as it applies to a version: a container that it leaves out is the only one of some version."""
    containers = own.get(row.pod)
    if containers is None:
        return None
    name = row.container
    alone = other.get(row.pod, [])
    if not name and len(containers) > 1 and len(alone) == 1:
        name = alone[0]
    if name and name not in containers and name in alone:
        return None
    return replace(row, container=name)


def _version(version: ReadVersion, snapshot: Snapshot) -> Version:
    return Version(tuple(entry.workload for entry in version.entries.values()), snapshot)
