"""Why processes were killed and pods evicted, by logs: read as a stream, in the memory of a few chunks and reports."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.oom_report import MARKS, OOMReader, OOMReport
from podqos.library.cluster_snapshot import ClusterSnapshot
from podqos.library.inputs.files import STDIN
from podqos.library.inputs.objects import Objects
from podqos.library.kubelet_side import KubeletSide, fated_pods
from podqos.model.assumption import of_version
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.qos.classes import qos_class_of
from podqos.survival.autopsy import MOST_SHOWN, Autopsies, Examiner, OOMAutopsy
from podqos.survival.terminations import containers_by_id

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 1 << 18
_LINE_BYTES = 1 << 16
_LINES_BESIDE = 40
_GZIP = b"\x1f\x8b"
_ENTRY = b"__CURSOR="  # begins an entry of journald's export format
_ENTRY_END = b"\n\n"


class Stream(Protocol):
    """A log that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""


def autopsy(
    paths: Iterable[str | Log],
    *,
    objects: Objects | None = None,
    cluster: ClusterSnapshot | None = None,
    most_shown: int = MOST_SHOWN,
    profile: Profile = LATEST,
) -> Autopsies:
    """Return every OOM and eviction in logs of the kernel, of kubelets and of podqos; ``-`` is standard input.

    ``objects`` hold the pods, nodes and events of the cluster, or ``cluster`` does. ``most_shown`` rows of each ranking
    are kept. Raises InputError for a log that cannot be read.
    """
    objects = cluster.objects if cluster is not None else objects
    known = fated_pods(objects, cluster)
    pods = {cgroup_uid(pod): pod for pod in known}
    kills = []
    side = KubeletSide()
    for path in paths:
        examiner = Examiner(most_shown)
        with opened(path) as stream:
            kills += [_named(examiner.examine(report), pods, profile) for report in reports(stream, side)]
    assumptions = (*of_version(profile), *(() if cluster is None else cluster.assumptions))
    found = Autopsies(tuple(kills), assumptions=assumptions)
    return side.told(found, known, objects, cluster, most_shown=most_shown, profile=profile)


def of_pod(found: Autopsies, namespace: str, name: str) -> Autopsies:
    """Return what is about one pod, and about nodes; without a name everything, of one namespace if one is named."""
    if not (namespace or name):
        return found

    def is_meant(pod: str) -> bool:
        own_namespace, _, own_name = pod.rpartition("/")
        return name in {"", own_name} and namespace in {"", own_namespace}

    kept = [number for number, kill in enumerate(found.kills) if is_meant(kill.pod)]
    numbers = {number: place for place, number in enumerate(kept)}
    evicted = [number for number, each in enumerate(found.evictions) if is_meant(each.pod)]
    places = {number: place for place, number in enumerate(evicted)}
    return replace(
        found,
        kills=tuple(found.kills[number] for number in kept),
        evictions=tuple(found.evictions[number] for number in evicted),
        terminations=tuple(
            replace(each, kill=numbers.get(_number(each.kill)), eviction=places.get(_number(each.eviction)))
            for each in found.terminations
            if is_meant(each.pod)
        ),
        node_events=tuple(replace(each, kill=numbers.get(_number(each.kill))) for each in found.node_events),
    )


def _number(place: int | None) -> int:
    return -1 if place is None else place


def reports(stream: Stream, side: KubeletSide | None = None) -> Iterator[OOMReport]:
    """Yield the OOM reports of a log; what it tells of the kubelet's side goes to ``side``."""
    unwrapper, reader = Unwrapper(), OOMReader()
    beside: int | None = None
    for chunk in _chunks(stream):
        if beside is None:
            beside = 0 if side is None else side.begin(chunk)
        marks = _Marks(chunk, () if side is None else side.marks)
        position = 0
        while position < len(chunk):
            if reader.is_settled and beside <= 0:
                found = marks.line_from(position)
                if found is None:
                    break
                # A line may be broken into several, and one is held back until the next has come.
                position, beside = found, _LINES_BESIDE
            end = chunk.find(b"\n", position)
            end = len(chunk) if end < 0 else end
            line = chunk[position : min(end, position + _LINE_BYTES)].decode(errors="replace")
            position, beside = end + 1, beside - 1
            for message in unwrapper.feed(line):
                if side is not None:
                    side.feed(message)
                yield from reader.feed(message)
    for message in unwrapper.end():
        if side is not None:
            side.feed(message)
        yield from reader.feed(message)
    yield from reader.end()


class _Marks:
    """Where a chunk has lines of the OOM killer's, or other lines that matter; each mark is searched for once."""

    def __init__(self, chunk: bytes, others: Iterable[bytes] = ()) -> None:
        self._chunk = chunk
        self._next = {mark: chunk.find(mark) for mark in (*MARKS, *others)}

    def line_from(self, position: int) -> int | None:
        """Return where the next such line begins, or its entry in an export; None: there is none."""
        for mark, found in self._next.items():
            if 0 <= found < position:
                self._next[mark] = self._chunk.find(mark, position)
        hits = [found for found in self._next.values() if found >= 0]
        if not hits:
            return None
        start = max(position, self._chunk.rfind(b"\n", position, min(hits)) + 1)
        entry = self._chunk.rfind(_ENTRY, position, start)
        return entry if entry >= 0 and self._chunk.find(_ENTRY_END, entry, start) < 0 else start


def _chunks(stream: Stream) -> Iterator[bytes]:
    """Yield whole lines, many at a time; of a line without end only its beginning. Entries of an export stay whole."""
    rest = b""
    is_skipping = False
    end = b"\n"
    while part := stream.read(_CHUNK_BYTES):
        if is_skipping:
            _, found, part = part.partition(b"\n")
            is_skipping = not found
        if not rest and part.startswith(_ENTRY):
            end = _ENTRY_END
        rest += part
        cut = rest.rfind(end)
        if cut < 0 and len(rest) >= _CHUNK_BYTES:
            end = b"\n"
            cut = rest.rfind(end)
        if cut >= 0:
            yield rest[: cut + len(end) - 1]
            rest = rest[cut + len(end) :]
        if len(rest) > _CHUNK_BYTES:
            yield rest[:_LINE_BYTES]
            rest, is_skipping = b"", True
    if rest:
        yield rest


class Log(io.RawIOBase):
    """A log that is read already as far as its beginning, such as standard input or a pipe."""

    def __init__(self, name: str, head: bytes, rest: Stream | None = None) -> None:
        super().__init__()
        self.name = name
        self.head = head
        self._rest = rest

    def close(self) -> None:
        """Close what is left of it; standard input stays open."""
        super().close()
        if isinstance(self._rest, io.FileIO):
            self._rest.close()

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read some bytes; none at the end."""
        view = memoryview(buffer)
        part = self.head[: len(view)]
        if part:
            self.head = self.head[len(part) :]
        elif self._rest is not None:
            part = self._rest.read(len(view))
        view[: len(part)] = part
        return len(part)


@contextmanager
def opened(path: str | Log) -> Iterator[Stream]:
    """Open a log: a file, maybe gzipped, standard input, or ``/dev/kmsg`` as far as it has come."""
    if isinstance(path, Log):
        try:
            with path, gzip.open(path) if path.head[:2] == _GZIP else path as stream:
                yield stream
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"cannot be read: {error}", where=path.name, fix="is it whole?") from error
        return
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        if stat.S_ISCHR(os.stat(path).st_mode):
            with _Records(path) as records:
                yield records
            return
        with open(path, "rb") as file:
            if file.peek(2)[:2] == _GZIP:
                with gzip.open(file) as unpacked:
                    yield unpacked
            else:
                yield file
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        fix = (
            "check the path" if is_missing else "name a log that can be read, or pipe one in: dmesg | podqos autopsy -"
        )
        raise InputError(error.strerror or str(error), where=path, fix=fix) from error
    except (EOFError, zlib.error) as error:
        raise InputError(f"broken gzip: {error}", where=path, fix="decompress what is left of it") from error


class _Records:
    """``/dev/kmsg``, which hands out a record per read and would wait for the next one."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, size: int, /) -> bytes:
        """Return a record; none where the next has not come yet."""
        while True:
            try:
                return os.read(self._descriptor, size)
            except BlockingIOError:
                return b""
            except BrokenPipeError:  # the ring buffer has overwritten it
                continue


def _named(kill: OOMAutopsy, pods: dict[str, FatedPod], profile: Profile) -> OOMAutopsy:
    """Return an OOM with the victim's pod, where it is known."""
    pod = pods.get(kill.pod_uid) if kill.pod_uid else None
    if pod is None:
        return kill
    names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    # Without a status only the runtime knows which of several the id in the path belongs to.
    _, name = containers_by_id([pod]).get(kill.container_id, (pod, names[0] if len(names) == 1 else ""))
    container = name if kill.container_id else ""
    return replace(kill, pod=pod.key, container=container, qos_class=pod.status.qos_class or qos_class_of(pod, profile))
