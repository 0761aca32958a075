"""Why processes were killed, by the kernel's log: read as a stream, in the memory of a few chunks and reports."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, Self

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.oom_report import BEGINNINGS, FOLLOWING, OOMReader, OOMReport
from podqos.library.inputs.files import STDIN
from podqos.library.inputs.kubelet_node import Kubelet
from podqos.library.inputs.objects import Objects
from podqos.library.live_log import follow, growing
from podqos.model.assumption import of_version
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.qos.classes import qos_class_of
from podqos.survival.autopsy import MOST_SHOWN, Autopsies, Examiner, OOMAutopsy, assumed_by
from podqos.survival.autopsy_facts import NodeFacts

_CHUNK_BYTES = 1 << 18
_LINE_BYTES = 1 << 16
_LINES_BESIDE = 40
_FOLLOWING_BYTES = 1 << 20
"""After a kill what follows it is looked for; then only beginnings are, which is twice as fast."""
_GZIP = b"\x1f\x8b"
_ENTRY = b"__CURSOR="  # begins an entry of journald's export format
_ENTRY_END = b"\n\n"


class Stream(Protocol):
    """A log that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""


def autopsy(
    paths: Iterable[str],
    *,
    objects: Objects | None = None,
    most_shown: int = MOST_SHOWN,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
) -> Autopsies:
    """Return every OOM in the logs; ``-`` is standard input. ``objects`` hold the pods that were killed.

    ``most_shown`` tasks of each ranking are kept. ``kubelet`` says what the node reserves and when it evicts; how fast
    memory was used up says which threshold would have saved a victim. Raises InputError for a log that cannot be read.
    """
    pods = _pods(objects)
    facts = NodeFacts(
        pods,
        kubelet=None if kubelet is None else kubelet.config,
        growth_bytes_per_second=growth_bytes_per_second,
        profile=profile,
    )
    kills = []
    for path in paths:
        examiner = Examiner(most_shown, facts)
        with _opened(path) as stream:
            kills += [_named(examiner.examine(report), pods, profile) for report in reports(stream)]
    return Autopsies(tuple(kills), assumptions=(*assumed_by(kills, facts), *of_version(profile)))


def live_autopsy(
    path: str | None,
    *,
    objects: Callable[[], Objects | None] = lambda: None,
    most_shown: int = MOST_SHOWN,
    profile: Profile = LATEST,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Autopsies]:
    """Yield OOMs as they happen, by the log of this machine or a file that grows; ``objects`` is asked at every one.

    ``say`` is told in a line what cannot be read. Raises HostError where there is no right to read the log.
    """
    facts = NodeFacts(profile=profile)
    examiner = Examiner(most_shown, facts)
    with growing(path, say) as log:
        for report in follow(log, say):
            kill = _named(examiner.examine(report), _pods(objects()), profile)
            yield Autopsies((kill,), assumptions=(*assumed_by((kill,), facts), *of_version(profile)))


def _pods(objects: Objects | None) -> dict[str, Pod]:
    """Return pods by the uid that their cgroups have."""
    found = () if objects is None else objects.workloads
    return {cgroup_uid(each.workload.pod): each.workload.pod for each in found}


def reports(stream: Stream) -> Iterator[OOMReport]:
    """Yield the OOM reports of a log."""
    unwrapper, reader = Unwrapper(), OOMReader()
    beside = following = 0
    for chunk in _chunks(stream):
        marks = _Marks(chunk)
        marks.look_for(BEGINNINGS)
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
                position, beside, following = found, _LINES_BESIDE, _FOLLOWING_BYTES
                marks.look_for(FOLLOWING, position)
            end = chunk.find(b"\n", position)
            end = len(chunk) if end < 0 else end
            line = chunk[position : min(end, position + _LINE_BYTES)].decode(errors="replace")
            position, beside = end + 1, beside - 1
            for message in unwrapper.feed(line):
                yield from reader.feed(message)
    for message in unwrapper.end():
        yield from reader.feed(message)
    yield from reader.end()


class _Marks:
    """Where a chunk has lines of the OOM killer's; each mark is searched for once."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self._next: dict[bytes, int] = {}

    def look_for(self, marks: Iterable[bytes], position: int = 0) -> None:
        """Look for more of them from a position on."""
        for mark in marks:
            if mark not in self._next:
                self._next[mark] = self._chunk.find(mark, position)

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


@contextmanager
def _opened(path: str) -> Iterator[Stream]:
    """Open a log: a file, maybe gzipped, standard input, or ``/dev/kmsg`` as far as it has come."""
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


def _named(kill: OOMAutopsy, pods: dict[str, Pod], profile: Profile) -> OOMAutopsy:
    """Return an OOM with the victim's pod, where it is known."""
    pod = pods.get(kill.pod_uid) if kill.pod_uid else None
    if pod is None:
        return kill
    containers = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    # Which of several the id in the path belongs to only the runtime knows.
    only = containers[0] if len(containers) == 1 and kill.container_id else ""
    return replace(kill, pod=pod.key, container=only, qos_class=pod.status.qos_class or qos_class_of(pod, profile))
