"""What the pods of two versions use: the same for both, so that every difference comes from the manifests."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.answers.drift_versions import Entries
from podqos.errors import InputError
from podqos.model.assumption import Assumption
from podqos.model.pod import Pod
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.naming import stated_with
from podqos.survival.drift.drift import ManifestVersion
from podqos.survival.node.assumed_usage import assumed_amounts, is_unmeasured, with_assumed
from podqos.survival.node.usage import from_usage
from podqos.survival.node.usage_file import UsageRow

USAGE = Assumption("unmeasured usage", "the requests of the older version", stated_with("usage"))


def both_versions(
    rows: Sequence[UsageRow], old: Entries, new: Entries, node: NodeUsage
) -> tuple[tuple[ManifestVersion, ManifestVersion], tuple[Assumption, ...]]:
    """Return both versions with the same figures, and what of them is assumed.

    Rows about pods of one version do not disturb the other. Pods without figures are taken to use what the older
    version requests.
    """
    directories = [_containers_by_name(version) for version in (old, new)]
    for row in rows:
        if not row.is_listed and not any(row.pod in directory for directory in directories):
            raise InputError(f"no such pod: {row.pod}", where=row.where, fix="name a pod or workload in either version")
    versions = []
    unmeasured: list[Pod] = []
    for version, own, other in zip((old, new), directories, reversed(directories), strict=True):
        fitting = [fitted for row in rows if (fitted := _fitted(row, own, other)) is not None]
        known = from_usage([pod for entry in version.values() for pod in entry.pods], fitting, node)
        older = {
            uid: old[identity].workload.pod
            for identity, entry in version.items()
            if identity in old
            for uid in entry.workload.uids
        }
        pods = tuple(with_assumed(entry, older.get(entry.pod.metadata.uid)) for entry in known.pods)
        unmeasured += [older.get(pod.pod.metadata.uid, pod.pod) for pod in known.pods if is_unmeasured(pod, ())]
        workloads = tuple(entry.workload for entry in version.values())
        measured = {entry.pod.metadata.uid: entry for entry in known.pods if entry.stats is not None}
        versions.append(ManifestVersion(workloads, Snapshot(node, pods), measured))
    usage = replace(USAGE, value=assumed_amounts(unmeasured, USAGE.value))
    return (versions[0], versions[1]), (usage,) if unmeasured else ()


def _containers_by_name(version: Entries) -> dict[str, list[str]]:
    """Return the containers of every pod, by all names that a usage file may use for it."""
    found: dict[str, list[str]] = {}
    for entry in version.values():
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
