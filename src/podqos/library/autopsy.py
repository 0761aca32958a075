"""Why processes were killed and pods evicted, by logs: read as a stream, in the memory of a few chunks and reports."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from io import FileIO
from typing import Protocol, Self

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.oom_report import BEGINNINGS, FOLLOWING, OOMReader, OOMReport
from podqos.library.kubelet_side import KubeletSide, fated_pods
from podqos.model.assumption import of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.files import STDIN
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.qos.classes import qos_class_of
from podqos.reading.live_log import follow, growing
from podqos.survival.autopsy import MOST_SHOWN, Autopsies, Examiner, OOMAutopsy, assumed_by
from podqos.survival.autopsy_facts import NodeFacts
from podqos.survival.terminations import containers_by_id

MOST_KILLS = 10_000
"""The last of them are kept, so that memory does not grow with the log."""
_CHUNK_BYTES = 1 << 18
_LINE_BYTES = 1 << 16
_LINES_BESIDE = 40
_FOLLOWING_BYTES = 1 << 18
"""After a kill what follows it is looked for; then only beginnings are, which is twice as fast."""
_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 31  # of zlib: with the header and the checksum of gzip
_FREE_BYTES = 1 << 30
_MOST_PACKED = 500
"""Logs are packed to a tenth or, if they repeat themselves, a hundredth; zlib could pack zeroes to a thousandth."""
_MAGIC_BYTES = 8
_NO_LOGS = {
    b"LPKSHHRH": ("a file of journald", "journalctl --file {path} -o json | podqos autopsy -"),
    b"\xfd7zXZ\0": ("packed with xz", "xz -dc {path} | podqos autopsy -"),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "zstd -dc {path} | podqos autopsy -"),
    b"BZh": ("packed with bzip2", "bzip2 -dc {path} | podqos autopsy -"),
    b"PK\x03\x04": ("a zip archive", "unzip -p {path} | podqos autopsy -"),
    b"\xff\xfe": ("text in UTF-16", "iconv -f UTF-16 -t UTF-8 {path} | podqos autopsy -"),
    b"\xfe\xff": ("text in UTF-16", "iconv -f UTF-16 -t UTF-8 {path} | podqos autopsy -"),
}
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
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
) -> Autopsies:
    """Return every OOM and eviction in logs of the kernel, of kubelets and of podqos; ``-`` is standard input.

    ``objects`` hold the pods, nodes and events of the cluster, or ``cluster`` does. ``most_shown`` rows of each ranking
    are kept. ``kubelet`` says what the node reserves and when it evicts; how fast memory was used up says which
    threshold would have saved a victim. Raises InputError for a log that cannot be read.
    """
    objects = cluster.objects if cluster is not None else objects
    known = fated_pods(objects, cluster)
    pods = {cgroup_uid(pod): pod for pod in known}
    facts = _facts(pods, objects, cluster, kubelet, growth_bytes_per_second, profile=profile)
    kills: deque[OOMAutopsy] = deque(maxlen=MOST_KILLS)
    examined = 0
    side = KubeletSide()
    first_in: dict[object, int] = {}
    for number, path in enumerate(paths):
        examiner = Examiner(most_shown, facts)
        with opened(path) as stream:
            for report in reports(stream, side):
                if _is_repeated(report, number, first_in):
                    continue
                kills.append(_named(examiner.examine(report), pods, profile))
                examined += 1
    assumptions = (*assumed_by(kills, profile), *of_version(profile), *(() if cluster is None else cluster.assumptions))
    found = Autopsies(tuple(kills), kills_left_out=examined - len(kills), assumptions=assumptions)
    return side.told(found, known, objects, cluster, most_shown=most_shown, profile=profile)


def _is_repeated(report: OOMReport, number: int, first_in: dict[object, int]) -> bool:
    """Whether another log had an OOM already: syslog daemons write it to kern.log and to syslog."""
    if not report.at or len(first_in) >= MOST_KILLS:
        return False
    key = report.at, report.host, report.trigger_pid, report.chosen, *report.victims
    return first_in.setdefault(key, number) != number


def live_autopsy(
    path: str | None,
    *,
    known: Callable[[], ClusterSnapshot | Objects | None] = lambda: None,
    most_shown: int = MOST_SHOWN,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Autopsies]:
    """Yield OOMs as they happen, by the log of this machine or a file that grows.

    ``known`` returns what is known of the cluster at that moment. ``say`` is told what is followed, and what is lost.
    Raises HostError where there is no right to read the log.
    """
    examiner = Examiner(most_shown)
    with growing(path, say) as log:
        say(f"following {path or 'the kernel log of this machine'}")
        for report in follow(log, say):
            now = known()
            cluster, objects = (now, now.objects) if isinstance(now, ClusterSnapshot) else (None, now)
            pods = {cgroup_uid(pod): pod for pod in fated_pods(objects, cluster)}
            examiner.facts = _facts(pods, objects, cluster, kubelet, growth_bytes_per_second, profile=profile)
            kill = _named(examiner.examine(report), pods, profile)
            yield Autopsies((kill,), assumptions=(*assumed_by([kill], profile), *of_version(profile)))


def _facts(
    pods: Mapping[str, Pod],
    objects: Objects | None,
    cluster: ClusterSnapshot | None,
    kubelet: Kubelet | None,
    growth: int | None,
    *,
    profile: Profile,
) -> NodeFacts:
    """Return what manifests, a cluster and options say of nodes; a kubelet that is given is that of all."""
    nodes = () if objects is None else objects.of(Node)

    @cache
    def kubelet_of(node: str) -> KubeletConfiguration | None:
        known = cluster.kubelet(node) if kubelet is None and cluster is not None else kubelet
        return None if known is None else known.config

    sizes = {node.name: node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity}
    return NodeFacts(pods, sizes, kubelet_of, growth, profile)


def one_by_one(found: Autopsies) -> Iterator[Autopsies]:
    """Yield a value for each death, and for what else is known."""
    bare = replace(
        found, kills=(), kills_left_out=0, evictions=(), evictions_left_out=0, terminations=(), node_events=()
    )
    yield from (replace(bare, kills=(each,)) for each in found.kills)
    yield from (replace(bare, evictions=(each,)) for each in found.evictions)
    yield from (replace(bare, terminations=(replace(each, kill=None, eviction=None),)) for each in found.terminations)
    yield from (replace(bare, node_events=(replace(each, kill=None),)) for each in found.node_events)


def is_about(pod: str, namespace: str, name: str) -> bool:
    """Whether a pod is of a namespace and has a name, where they are not empty."""
    own_namespace, _, own_name = pod.rpartition("/")
    return name in {"", own_name} and namespace in {"", own_namespace}


def of_pod(found: Autopsies, namespace: str, name: str) -> Autopsies:
    """Return what is about one pod, and about nodes; without a name everything, of one namespace if one is named."""
    if not (namespace or name):
        return found

    is_meant = partial(is_about, namespace=namespace, name=name)
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
    words: list[str] = []
    following = 0
    for chunk in _chunks(stream):
        if beside is None:
            beside = 0 if side is None else side.begin(chunk)
            words = [] if side is None else [mark.decode() for mark in side.marks]
        marks = _Marks(chunk)
        marks.look_for(BEGINNINGS)
        marks.look_for(() if side is None else side.marks)
        if following > 0:
            marks.look_for(FOLLOWING)
        following -= len(chunk)
        position = 0
        while position < len(chunk):
            if reader.is_settled and beside <= 0:
                found = marks.line_from(position)
                if found is None:
                    break
                # A line may be broken into several, and one is held back until the next has come.
                position, is_kernels = found
                beside = _LINES_BESIDE if is_kernels else 1
                if is_kernels:
                    following = _FOLLOWING_BYTES
                    marks.look_for(FOLLOWING, position)
            end = chunk.find(b"\n", position)
            end = len(chunk) if end < 0 else end
            line = chunk[position : min(end, position + _LINE_BYTES)].decode(errors="replace")
            position, beside = end + 1, beside - 1
            for message in unwrapper.feed(line):
                is_every = beside > _LINES_BESIDE or bool(message.fields)
                if side is not None and (is_every or any(word in message.text for word in words)):
                    side.feed(message)
                yield from reader.feed(message)
    for message in unwrapper.end():
        if side is not None:
            side.feed(message)
        yield from reader.feed(message)
    yield from reader.end()


class _Marks:
    """Where a chunk has lines of the OOM killer's, or other lines that matter; each mark is searched for once."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self._next: dict[bytes, int] = {}

    def look_for(self, marks: Iterable[bytes], position: int = 0) -> None:
        """Look for more of them from a position on."""
        for mark in marks:
            if mark not in self._next:
                self._next[mark] = self._chunk.find(mark, position)

    def line_from(self, position: int) -> tuple[int, bool] | None:
        """Return where the next such line begins, or its entry in an export, and whether lines beside it matter."""
        for mark, found in self._next.items():
            if 0 <= found < position:
                self._next[mark] = self._chunk.find(mark, position)
        hit, mark = min(((found, mark) for mark, found in self._next.items() if found >= 0), default=(-1, b""))
        if hit < 0:
            return None
        start = max(position, self._chunk.rfind(b"\n", position, hit) + 1)
        entry = self._chunk.rfind(_ENTRY, position, start)
        if entry >= 0 and self._chunk.find(_ENTRY_END, entry, start) < 0:
            return entry, True
        return start, mark in BEGINNINGS or mark in FOLLOWING


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


class Log:
    """A log that is read already as far as its beginning, such as standard input or a pipe."""

    def __init__(self, name: str, head: bytes, rest: Stream | None = None) -> None:
        self.name = name
        self.head = head
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        if self.head:
            head, self.head = self.head[:size], self.head[size:]
            return head
        return b"" if self._rest is None else self._rest.read(size)

    def close(self) -> None:
        """Close the pipe that it comes from; standard input stays open."""
        if isinstance(self._rest, FileIO):
            self._rest.close()


class _Unpacked:
    """A gzipped log, unpacked as it is read; one that unpacks to absurd sizes is refused."""

    def __init__(self, packed: Stream) -> None:
        self._packed = packed
        self._unpacker = zlib.decompressobj(_GZIP_FORMAT)
        self._read = self._unpacked = 0

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        while True:
            data = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                data = self._unpacker.unused_data.lstrip(b"\0") or self._packed.read(size)  # files may be joined
                if not data:
                    return b""
                self._unpacker = zlib.decompressobj(_GZIP_FORMAT)
            elif not data:
                data = self._packed.read(size)
                if not data:
                    raise zlib.error("it ends too soon")
            part = self._unpacker.decompress(data, size)
            self._read += len(data) - len(self._unpacker.unconsumed_tail) - len(self._unpacker.unused_data)
            self._unpacked += len(part)
            if self._unpacked > max(_FREE_BYTES, self._read * _MOST_PACKED):
                raise zlib.error(f"it unpacks to more than {_MOST_PACKED} times its size")
            if part:
                return part


@contextmanager
def opened(path: str | Log) -> Iterator[Stream]:
    """Open a log: a file, maybe gzipped, standard input, or ``/dev/kmsg`` as far as it has come."""
    where = path.name if isinstance(path, Log) else path
    try:
        if isinstance(path, Log):
            with closing(path):
                yield _Unpacked(path) if path.head[:2] == _GZIP else path
        elif path == STDIN:
            yield sys.stdin.buffer
        elif stat.S_ISCHR(os.stat(path).st_mode):
            with _Records(path) as records:
                yield records
        else:
            with open(path, "rb") as file:
                _refuse(file.peek(_MAGIC_BYTES), path)
                yield _Unpacked(file) if file.peek(2)[:2] == _GZIP else file
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        fix = (
            "check the path" if is_missing else "name a log that can be read, or pipe one in: dmesg | podqos autopsy -"
        )
        raise InputError(error.strerror or str(error), where=where, fix=fix) from error
    except zlib.error as error:
        raise InputError(f"broken gzip: {error}", where=where, fix="decompress what is left of it") from error


def _refuse(head: bytes, path: str) -> None:
    """Raise for what is no text, and would look like a log without any kill."""
    for magic, (what, fix) in _NO_LOGS.items():
        if head.startswith(magic):
            raise InputError(what, where=path, fix=fix.format(path=path))


class _Records:
    """``/dev/kmsg`` as far as it has come; a record per read."""

    def __init__(self, path: str) -> None:
        from podqos.host.linux.kmsg import KernelRecords

        self._records = KernelRecords(path, from_now=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()

    def read(self, _: int, /) -> bytes:
        """Return a record; none where the next has not come yet."""
        return self._records.read()


def _named(kill: OOMAutopsy, pods: Mapping[str, Pod], profile: Profile) -> OOMAutopsy:
    """Return an OOM with the victim's pod, where it is known."""
    pod = pods.get(kill.pod_uid) if kill.pod_uid else None
    if pod is None:
        return kill
    names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    # Without a status only the runtime knows which of several the id in the path belongs to.
    known = containers_by_id([pod]) if isinstance(pod, FatedPod) else {}
    _, name = known.get(kill.container_id, (pod, names[0] if len(names) == 1 else ""))
    container = name if kill.container_id else ""
    return replace(kill, pod=pod.key, container=container, qos_class=pod.status.qos_class or qos_class_of(pod, profile))
