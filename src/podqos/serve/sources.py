"""The sources of a page: any file that podqos reads, recognised by its content.

``read_given`` takes files as bytes with names, such as uploads. It opens nothing: names are keys, never paths, and a
scenario's references are resolved among the given files. ``read_paths`` takes paths on this machine.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from podqos.advice.sizing.samples import ContainerSamples, read_samples
from podqos.errors import InputError
from podqos.manifest.binary_formats import BZIP2, GZIP, JOURNAL, TAR, XZ, ZIP, ZSTD, binary_format
from podqos.manifest.problems import Severity
from podqos.manifest.text import as_utf_8
from podqos.manifest.usage_tables import is_usage_table, table_text
from podqos.model.node import Node
from podqos.objects.cluster_snapshot import ClusterSnapshot, is_cluster_snapshot
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.orders.usage import UsageRow, read_usage
from podqos.page.history import is_over_time
from podqos.page.session import LogFile, PageSource, SourceKind
from podqos.reading.configured import configured_kinds
from podqos.reading.files import is_manifest, is_special, read_bytes, with_data
from podqos.reading.gathering import existing_files, gather
from podqos.reading.loading import load
from podqos.reading.scenario_files import ScenarioReading, read_given_scenario, read_scenario, scenario_path
from podqos.runs.layout import with_pictures
from podqos.runs.view import RunView
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.variation import Variation, parse_assignment

MOST_PODS = 50_000
"""Larger inputs are not shown: every view would take seconds."""
MOST_NODES = 5_000
"""The same for pods; as many as Kubernetes supports in one cluster."""
MOST_PLACEMENTS = 2_000_000
"""Limit of the scheduler's work for a scenario: pods to place, times the nodes and pods that exist."""
MOST_UNPACKED_BYTES = 1 << 26
_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 31  # zlib: with gzip header and checksum
OPENED = "open manifests, a snapshot, a scenario, a log or a run"
_INSTEAD = {
    **dict.fromkeys((BZIP2, GZIP, TAR, XZ, ZIP, ZSTD), f"unpack it, then {OPENED}"),
    JOURNAL: "open the output of journalctl --file FILE -o json",
}
_JOURNAL_MARK = b'"time_us":'
_OF_RUNS = (b'"seed":', b'"endUs":', b'"kubernetesVersion":')
_OF_LOGS = (b"oom-kill", b"Killed process", b"viction manager:", b"Evicting pod")
"""What lines hold that tell of kills and evictions."""
_OF_MANIFESTS = (b"apiVersion", b"containers:", b'"containers"', b"kind:")


def varied(source: PageSource, assignments: Sequence[str]) -> Scenario:
    """Return a source's scenario with changes, in the syntax of ``podqos simulate --what-if``."""
    if source.scenario is None:
        raise InputError("only a scenario can be run", where=source.name, fix="open a scenario and its manifests")
    if not assignments:
        return source.scenario
    variation = Variation([parse_assignment(assignment) for assignment in assignments])
    # A visitor may change any line, also those that name files: only files that are already known are read.
    name, most_nodes = next(iter(source.given)), None if source.looked_at else MOST_NODES
    return _checked(read_given_scenario(name, source.given, variation, most_nodes), is_capped=not source.looked_at)


def read_given(files: Mapping[str, bytes]) -> PageSource:
    """Return the source in files given as bytes; raise ``InputError`` for what cannot be shown."""
    unpacked = {name: _unpacked(name, data) for name, data in files.items()}
    kinds = {name: _recognised(name, data) for name, data in unpacked.items()}
    scenarios = [name for name, kind in kinds.items() if kind is _What.SCENARIO]
    _one("scenario", scenarios)
    if scenarios:
        reading = read_given_scenario(scenarios[0], unpacked, most_nodes=MOST_NODES)
        source = _of_scenario(reading, {scenarios[0]: b"", **unpacked})
    else:
        source = _put_together([InputFile(name, data=data) for name, data in unpacked.items()], kinds)
    return replace(source, size_bytes=sum(map(len, unpacked.values())))


def read_paths(paths: Sequence[str], instead: Mapping[str, bytes] | None = None) -> PageSource:
    """Return the source in files and directories on this machine, or the scenario of that name.

    ``instead`` has other content of some files, which may be gone.
    """
    held = instead or {}
    missing = next((path for path in paths if path not in held and not os.path.exists(scenario_path(path))), None)
    if missing is not None:
        _checked(read_scenario(missing), is_capped=False)  # raises, with suggestions for a misspelt name
    if len(paths) == 1:
        path = scenario_path(paths[0])
        if os.path.isfile(path) and _recognised(path, _head(path)) is _What.SCENARIO:
            reading = read_scenario(path)
            return _of_scenario(reading, _held(reading.looked_at))
    found = existing_files(list(paths))
    if held:
        found = replace(found, files=_with_held(found.files, held))
    kinds = {
        file.path: _What.MANIFESTS if file.scope is not None else _recognised(file.path, file.data or _head(file.path))
        for file in found.files
    }
    scenarios = [name for name, kind in kinds.items() if kind is _What.SCENARIO]
    if scenarios:
        raise InputError(
            "a scenario cannot be combined with other files",
            where=scenarios[0],
            fix="list its manifests in the scenario",
        )
    files = [file if file.path in held or kinds[file.path] is _What.LOG else _opened(file) for file in found.files]
    source = _put_together(files, kinds, found, configured_kinds(found.places))
    return replace(source, name=", ".join(paths), looked_at=tuple(paths))


def read_held_scenario(path: str, looked_at: tuple[str, ...], instead: Mapping[str, bytes]) -> PageSource:
    """Return the scenario of a file, made of what it was made of before; ``instead`` has other content of some."""
    given = {path: b"", **_held(looked_at), **instead}
    return _of_scenario(replace(read_given_scenario(path, given), looked_at=looked_at), given)


def _with_held(files: Sequence[InputFile], held: Mapping[str, bytes]) -> list[InputFile]:
    """Return files with other content, also those that are gone."""
    there = [replace(file, data=held[file.path]) if file.path in held else file for file in files]
    known = {file.path for file in files}
    return [*there, *(InputFile(path, data=data) for path, data in held.items() if path not in known)]


class _What(StrEnum):
    """The kind of a file."""

    MANIFESTS = "manifests"
    SNAPSHOT = "snapshot of a cluster"
    SCENARIO = "scenario"
    LOG = "log"
    RUN = "run"
    USAGE = "usage table"


def _recognised(name: str, data: bytes) -> _What:
    """Return the kind of a file by its beginning; text of no other kind is a log."""
    head = data[:_HEAD_BYTES]
    if binary := binary_format(head):
        raise InputError(f"{binary}, which podqos cannot open", where=name, fix=_INSTEAD.get(binary, OPENED))
    if is_cluster_snapshot(head):
        return _What.SNAPSHOT
    if b"podqos.dev/" in head and b"Scenario" in head:
        return _What.SCENARIO
    if head.startswith(b"{") and all(mark in head for mark in _OF_RUNS):
        return _What.RUN
    first = head.partition(b"\n")[0]
    if is_usage_table(table_text(head)):
        return _What.USAGE
    if first.startswith(b"{") and _JOURNAL_MARK in first:
        return _What.LOG
    if is_manifest(name) or any(mark in head for mark in _OF_MANIFESTS):
        if any(mark in head for mark in _OF_LOGS[:2]) and not any(mark in head for mark in _OF_MANIFESTS):
            return _What.LOG
        return _What.MANIFESTS
    if name.endswith(".csv") and not any(mark in head for mark in _OF_LOGS):
        return _What.USAGE
    return _What.LOG


def _put_together(
    files: Sequence[InputFile],
    kinds: Mapping[str, _What],
    found: Inputs | None = None,
    custom: Mapping[str, str] | None = None,
) -> PageSource:
    by_kind: dict[_What, list[InputFile]] = {}
    for file in files:
        by_kind.setdefault(kinds[file.path], []).append(file)
    for what in (_What.SNAPSHOT, _What.RUN):
        _one(what.value, [input_file.path for input_file in by_kind.get(what, ())])
    logs = tuple(LogFile(input_file.path, input_file.data) for input_file in by_kind.get(_What.LOG, ()))
    tables = {table.path: _content(table) for table in by_kind.get(_What.USAGE, ())}
    name = _named(files)
    if _What.RUN in by_kind:
        if len(files) > 1:
            raise InputError("a run cannot be combined with other files", where=name, fix="open it on its own")
        return PageSource(SourceKind.RUN, name, run=_run(by_kind[_What.RUN][0]))
    if _What.SNAPSHOT in by_kind:
        if by_kind.keys() - {_What.SNAPSHOT, _What.LOG, _What.USAGE}:
            raise InputError(
                "a snapshot cannot be combined with manifests",
                where=name,
                fix="open it on its own, or together with logs and usage over time",
            )
        snapshot = by_kind[_What.SNAPSHOT][0]
        cluster = ClusterSnapshot(_content(snapshot).splitlines(), snapshot.path)
        if found is None:
            _check_size(cluster.objects, snapshot.path, cluster.nodes)
        return PageSource(
            SourceKind.SNAPSHOT,
            name,
            problems=tuple(cluster.objects.problems),
            cluster=cluster,
            samples=read_samples_of(tables),
            logs=logs,
        )
    manifests = by_kind.get(_What.MANIFESTS, [])
    if not manifests and _What.USAGE in by_kind:
        fix = "add the manifests of its pods"
        raise InputError("a usage table without manifests", where=by_kind[_What.USAGE][0].path, fix=fix)
    if not manifests:
        return PageSource(SourceKind.LOG, name, logs=logs)
    problems = () if found is None else tuple(found.problems)
    objects = load(Inputs(manifests, list(problems)), kinds=custom)
    if found is None:
        _check_size(objects, name)
    usage, samples = read_usage_tables(tables)
    return PageSource(
        SourceKind.MANIFESTS,
        name,
        files=tuple(manifests),
        problems=tuple(objects.problems),
        objects=objects,
        usage=usage,
        samples=samples,
        logs=logs,
    )


def _of_scenario(reading: ScenarioReading, given: Mapping[str, bytes]) -> PageSource:
    is_capped = not reading.looked_at
    return PageSource(
        SourceKind.SCENARIO,
        os.path.basename(reading.path),
        problems=reading.problems,
        scenario=_checked(reading, is_capped=is_capped),
        given=given,
        looked_at=reading.looked_at,
    )


def _checked(reading: ScenarioReading, *, is_capped: bool) -> Scenario:
    """Return the scenario; raise its first error, or that it is too large to show: uploads are capped."""
    if reading.scenario is None:
        first = next(problem for problem in reading.problems if problem.severity is Severity.ERROR)
        where = f"{first.source}:{first.line}:{first.column}" if first.line else first.source
        raise InputError(first.what, where=where, fix=first.fix)
    scenario, where = reading.scenario, reading.path
    nodes = sum(node.count for node in scenario.nodes)
    pods = [nodes if workload.kind == "DaemonSet" else workload.replicas for workload in scenario.workloads]
    if is_capped:
        _check_nodes(nodes, where)
        _check_pods(sum(pods), where)
    # Bound to a node, or one per node: these need no scheduler.
    is_bound = [
        bool(workload.nodes or workload.spread or workload.kind == "DaemonSet") for workload in scenario.workloads
    ]
    placed = sum(count for count, bound in zip(pods, is_bound, strict=True) if not bound)
    if placed * (nodes + sum(pods)) > MOST_PLACEMENTS:
        what = f"{placed:,} of {sum(pods):,} pods to be scheduled on {nodes:,} nodes; that is too slow for a page"
        raise InputError(what, where=where, fix="use a smaller scenario or spread: true, or run `podqos simulate`")
    return scenario


def _held(paths: Iterable[str]) -> dict[str, bytes]:
    """Return the content of files, and of the files in directories."""
    files = (path for each in paths if os.path.exists(each) for path in gather([each]).paths)
    return {path: read_bytes(path) for path in dict.fromkeys(files)}


def _run(file: InputFile) -> RunView:
    try:
        run = msgspec.json.decode(_content(file), type=RunView)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_shown(str(error), file) from None
    try:
        return with_pictures(run)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise _not_shown("the series of a node do not belong together", file) from None


def _not_shown(reason: str, file: InputFile) -> InputError:
    fix = "write it with this version: podqos simulate SCENARIO -o json"
    return InputError(f"not a run that this version can show: {reason}", where=file.path, fix=fix)


def _check_size(objects: Objects, where: str, nodes: Iterable[str] = ()) -> None:
    replicas = (workload.workload.replicas for workload in objects.workloads)
    _check_pods(sum(1 if count is None else max(0, count) for count in replicas), where)
    named = {workload.workload.pod.spec.node_name for workload in objects.workloads}
    listed = {node.metadata.name for node in objects.of(Node)}
    _check_nodes(len({*nodes, *named, *listed} - {""}), where)


def _check_nodes(nodes: int, where: str) -> None:
    if nodes > MOST_NODES:
        raise InputError(
            f"{nodes:,} nodes; a page shows at most {MOST_NODES:,}", where=where, fix="open a smaller part"
        )


def _check_pods(pods: int, where: str) -> None:
    if pods > MOST_PODS:
        raise InputError(f"{pods:,} pods; a page shows at most {MOST_PODS:,}", where=where, fix="open a smaller part")


def _one(what: str, names: Sequence[str]) -> None:
    if len(names) > 1:
        raise InputError(f"more than one: {names[0]} and {names[1]}", where=what, fix="open one at a time")


def _named(files: Sequence[InputFile]) -> str:
    first = files[0].path if files else ""
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _opened(file: InputFile) -> InputFile:
    """Return a file with its content; a file that was named must exist."""
    held = with_data(file) if file.scope is not None else InputFile(file.path, data=_content(file))
    if held.data is None or held.data[:2] != _GZIP:
        return held
    return replace(held, data=_unpacked(file.path, held.data))


def _content(file: InputFile) -> bytes:
    return read_bytes(file.path) if file.data is None else file.data


def _head(path: str) -> bytes:
    """Return the beginning of a file, unpacked; empty if it cannot be read: reading it later reports the error."""
    if is_special(path):  # reading a pipe twice would lose its beginning, or wait for ever
        return b""
    try:
        with open(path, "rb") as file:
            data = file.read(_HEAD_BYTES)
            if data[:2] != _GZIP:
                return as_utf_8(data)
            return zlib.decompressobj(_GZIP_FORMAT).decompress(data, _HEAD_BYTES)
    except (OSError, zlib.error):
        return b""


def _unpacked(name: str, data: bytes) -> bytes:
    """Return the content of a file, unpacked if gzipped; never more than the limit."""
    if data[:2] != _GZIP:
        return as_utf_8(data)
    unpacker = zlib.decompressobj(_GZIP_FORMAT)
    try:
        found = unpacker.decompress(data, MOST_UNPACKED_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            what = "too large after decompression" if unpacker.unconsumed_tail else "the gzip file is truncated"
            raise InputError(what, where=name, fix="unpack it and open a part of it")
    except zlib.error as error:
        raise InputError(f"broken gzip: {error}", where=name, fix="compress it again") from None
    return found


def read_usage_tables(tables: Mapping[str, bytes]) -> tuple[tuple[UsageRow, ...] | None, tuple[ContainerSamples, ...]]:
    """Return what pods use, and what their containers used over time; at most one table may be about one moment.

    Without a table about one moment, the newest samples of the first table over time count.
    """
    over_time = {name: _samples(name, data) for name, data in tables.items()}
    moments = [name for name, samples in over_time.items() if not samples]
    if len(moments) > 1:
        raise InputError(f"more than one: {moments[0]} and {moments[1]}", where="usage table", fix="open one at a time")
    name = next(iter(moments or over_time), None)
    usage = None if name is None else read_usage(name, tables[name])
    return usage, tuple(sample for samples in over_time.values() for sample in samples)


def read_samples_of(tables: Mapping[str, bytes]) -> tuple[ContainerSamples, ...]:
    """Return what containers used over time, for a source that knows what they use now."""
    samples = {name: _samples(name, data) for name, data in tables.items()}
    for name, own in samples.items():
        if not own:
            fix = "leave it out: the snapshot has the usage of its moment"
            raise InputError("a usage table without times cannot be combined with a snapshot", where=name, fix=fix)
    return tuple(sample for own in samples.values() for sample in own)


def _samples(name: str, data: bytes) -> tuple[ContainerSamples, ...]:
    """Return the samples of a table over time; none for a table about one moment."""
    try:
        return tuple(sample for sample in read_samples(name, data) if is_over_time(sample))
    except InputError:  # it has columns that only a moment has; what is wrong with it, its reader says
        return ()


SCENARIO = "accidental-burstable"


def demo_files() -> dict[str, bytes]:
    """Return the demo of an empty page as if it were uploaded: the scenario of ``podqos demo`` and its manifests."""
    path = scenario_path(SCENARIO)
    home = os.path.dirname(path)
    named = (path, *read_scenario(path).looked_at)
    files = dict.fromkeys(file for given in named for file in gather([given]).paths)
    return {os.path.relpath(file, home): read_bytes(file) for file in files}
