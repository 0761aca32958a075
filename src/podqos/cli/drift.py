"""Compare two versions of manifests: whose class, oom score or place in a kill order changed, and because of what.

OLD and NEW are files, directories, or REV:path in a git repository (`HEAD~1:deploy`, `main:./k8s`). Policies beside the
manifests (LimitRange, PriorityClass, …) are applied, and injectors where --inject names them. Both versions are judged
on the same node with the same use of memory: that of --usage, or what the older version requests.

A workload moves ahead when it now goes before another that used to go before it, or level with it. It is the same
workload while its kind, namespace and name are.

Exit codes: 0 nobody is worse off; 1 a workload is downgraded or moves ahead in a kill order; 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.injectors import CustomInjector, Injector, inject
from podqos.cli.admitting import NamespacePolicies, admitted_pod
from podqos.cli.injecting import add_inject_option, read_injectors
from podqos.cli.inputs import read_bytes
from podqos.cli.node_pods import latest_workloads
from podqos.cli.objects import FoundWorkload, Objects
from podqos.cli.options import (
    DEFAULT_NODE_MEMORY_BYTES,
    add_schema_option,
    add_version_option,
    amount_option,
    existing_files,
)
from podqos.cli.output import print_schema, print_value
from podqos.cli.revisions import ManifestText, read_version
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidOption
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.manifest.problems import Problem, Severity
from podqos.model.node import Node
from podqos.model.pod import Workload
from podqos.model.profile import Profile, parse_version
from podqos.model.resources import MEMORY
from podqos.model.snapshot import NodeUsage, PodUsage, Snapshot
from podqos.placement.workloads import POD
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.report.drift import Allowed, DriftReport, workload_reports
from podqos.survival.drift import Identity, Version, VersionWorkload, drift
from podqos.survival.pods import NodePod, pods_on_node
from podqos.survival.stand_in import stand_in_usage
from podqos.survival.usage import from_usage
from podqos.survival.usage_file import UsageRow, read_usage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos drift``."""
    parser.add_argument("old", metavar="OLD", nargs="?", help="the version before: FILE, DIR or REV:path")
    parser.add_argument("new", metavar="NEW", nargs="?", help="the version after, likewise")
    parser.add_argument(
        "--policies",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="policies of the cluster that count for both versions; may be repeated",
    )
    parser.add_argument(
        "--beside",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="workloads and policies that both versions have beside their own, such as the rest of the cluster; may be "
        "repeated",
    )
    add_inject_option(parser)
    parser.add_argument(
        "--usage", metavar="FILE", help="what pods use, as for podqos rank (default: what they request)"
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node (default: that of a Node in the manifests, or 64Gi)",
    )
    parser.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="a workload, as name or namespace/name, that may be worse off; may be repeated",
    )
    parser.add_argument(
        "--allow-shifted",
        action="store_true",
        help="a workload may move ahead if it was not changed itself: others became safer",
    )
    add_version_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "markdown"),
        default="table",
        help="markdown: for a comment on a pull request (default: table)",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    if arguments.schema:
        print_schema(DriftReport)
        return 0
    if arguments.old is None or arguments.new is None:
        raise InvalidOption("two versions are needed", fix="for example: podqos drift HEAD~1:deploy deploy")
    profile = parse_version(arguments.kubernetes_version)
    injectors = read_injectors(arguments.inject)
    shared = _Shared(_texts(arguments.policies), _texts(arguments.beside))
    rows = () if arguments.usage is None else read_usage(arguments.usage, read_bytes(arguments.usage))
    named = [row.pod for row in rows]
    old = _read(read_version(arguments.old), shared, injectors, named, profile)
    new = _read(read_version(arguments.new), shared, injectors, named, profile)
    errors = _print_problems([*old.problems, *new.problems])
    if not old.entries and not new.entries:
        raise InputError("no workloads in either version", fix="name files or directories with manifests")
    node = NodeUsage(_node_memory(arguments.node_memory, old, new))
    settings = CgroupSettings(node_memory_bytes=node.memory_bytes)
    versions = _measured(rows, old, new, node) if arguments.usage is not None else _standing_in(old, new, node)
    found = drift(*versions, Ranking(Signal.MEMORY, profile=profile), settings)
    allowed = Allowed(frozenset(_known(arguments.allow, old, new)), shifted=arguments.allow_shifted)
    report = DriftReport(
        old=arguments.old,
        new=arguments.new,
        kubernetes_version=".".join(map(str, profile.version)),
        node_memory_bytes=node.memory_bytes,
        usage=arguments.usage,
        injectors=tuple(injector.name for injector in injectors),
        workloads=workload_reports(found, allowed),
    )
    _print(report, arguments)
    if errors:
        return 2
    return 1 if report.fails else 0


# ---- versions ----------------------------------------------------------------------------------------------------


class _Shared(Struct, frozen=True):
    """What both versions have."""

    policies: tuple[ManifestText, ...]
    beside: tuple[ManifestText, ...]


def _texts(paths: list[str]) -> tuple[ManifestText, ...]:
    return tuple(ManifestText(path, read_bytes(path)) for path in existing_files(paths)) if paths else ()


class _Entry(Struct, frozen=True):
    """A workload of a version and the pods it has on a node."""

    workload: VersionWorkload
    pods: tuple[NodePod, ...]


class _Read(Struct, frozen=True):
    """What the files of a version hold."""

    entries: dict[Identity, _Entry]
    nodes: tuple[Node, ...]
    problems: tuple[Problem, ...]


def _read(
    texts: Sequence[ManifestText],
    shared: _Shared,
    injectors: Sequence[Injector | CustomInjector],
    named: Sequence[str],
    profile: Profile,
) -> _Read:
    objects = Objects()
    for text in shared.policies:
        objects.add_text(text.name, text.data)
    # Of those files only policies count.
    objects.workloads.clear()
    for text in (*shared.beside, *texts):
        objects.add_text(text.name, text.data)
    namespaces = NamespacePolicies(objects)
    entries: dict[Identity, _Entry] = {}
    for found in latest_workloads(objects.workloads, say=not shared.beside):
        stored = _stored(found, objects, namespaces, injectors, profile)
        if stored is not None:
            workload, injected = stored
            pods = tuple(pods_on_node(workload, named))
            identity = _identity(workload, entries)
            uids = tuple(entry.pod.metadata.uid for entry in pods)
            entries[identity] = _Entry(VersionWorkload(identity, workload.pod, uids, injected, found.source), pods)
    return _Read(entries, objects.of(Node), tuple(objects.problems))


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


def _identity(workload: Workload, taken: dict[Identity, _Entry]) -> Identity:
    """Return who a workload is; those that get their names from the API server are counted."""
    namespace, _, name = workload.pod.key.partition("/")
    identity = Identity(namespace, workload.kind, name)
    number = 1
    while identity in taken:
        number += 1
        identity = Identity(namespace, workload.kind, f"{name}#{number}")
    return identity


def _known(names: Sequence[str], *versions: _Read) -> Iterator[str]:
    known = {
        name
        for version in versions
        for identity in version.entries
        for name in (identity.name, f"{identity.namespace}/{identity.name}")
    }
    for name in names:
        if name not in known:
            raise InvalidOption(f"there is no workload {name}", where="--allow", fix="name one of the manifests")
        yield name


def _print_problems(problems: Sequence[Problem]) -> int:
    # What is wrong with a policy file is wrong in both versions.
    for problem in sorted(set(problems)):
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in problems)


# ---- node and usage ----------------------------------------------------------------------------------------------


def _node_memory(given: str | None, old: _Read, new: _Read) -> int:
    """Return the memory of the node: never that of this machine, which has nothing to do with the manifests."""
    if given is not None:
        return amount_option(given, "--node-memory")
    for version in (new, old):
        sizes = [node.status.capacity[MEMORY].value for node in version.nodes if MEMORY in node.status.capacity]
        if sizes:
            return min(sizes)
    return DEFAULT_NODE_MEMORY_BYTES


def _standing_in(old: _Read, new: _Read, node: NodeUsage) -> tuple[Version, Version]:
    """Return both versions, every pod with what the older version of it requests."""

    def usages(version: _Read) -> Iterator[PodUsage]:
        for identity, entry in version.entries.items():
            older = old.entries.get(identity)
            for pod in entry.pods:
                yield stand_in_usage(pod.pod, None if older is None else older.workload.pod)

    return (
        _version(old, Snapshot(node, tuple(usages(old)))),
        _version(new, Snapshot(node, tuple(usages(new)))),
    )


def _measured(rows: Sequence[UsageRow], old: _Read, new: _Read, node: NodeUsage) -> tuple[Version, Version]:
    """Return both versions with the same figures; rows about pods of one version do not disturb the other."""
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
        snapshots.append(_version(version, from_usage(pods, fitting, node)))
    return snapshots[0], snapshots[1]


def _containers_by_name(version: _Read) -> dict[str, list[str]]:
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


def _version(version: _Read, snapshot: Snapshot) -> Version:
    return Version(tuple(entry.workload for entry in version.entries.values()), snapshot)


def _print(report: DriftReport, arguments: argparse.Namespace) -> None:
    if arguments.output == "table":
        from podqos.report.drift_lines import table

        print("\n".join(table(report, style_for(arguments.color))))
    elif arguments.output == "markdown":
        from podqos.report.drift_markdown import markdown

        print(markdown(report))
    else:
        print_value(report, arguments.output)
