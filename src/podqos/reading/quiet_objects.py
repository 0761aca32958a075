"""Long lists of objects in YAML, read as they come: pods and events that tell of no end are counted and forgotten.

Most objects of a cluster tell nothing about a death. An item written like one that was parsed and told nothing
(``alike``) is not parsed: it is in order, and tells nothing, as that one.
Where a pod was evicted, all pods of its node are kept: they are what it was ranked with. So are those that an event
about an end names.

Whatever is not such a list, or has something to report, is read in whole. Lines that are left out stay blank, so that
what is kept stays at its line.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from enum import Enum, auto

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.log_lines import LogStream
from podqos.manifest.alike import BEHIND_ITEMS, NEXT_ITEM, AlikeItems, is_closed, items_in
from podqos.manifest.contents import Collector, Reading
from podqos.manifest.decode import convert
from podqos.manifest.fastyaml import NotPlain, read_plain
from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import Position
from podqos.manifest.text import Chunk, Place, chunks
from podqos.model.event import TELLING, Event
from podqos.model.pod_fate import FatedPod
from podqos.objects.files import InputFile, LeftOut
from podqos.objects.other_objects import is_read_as
from podqos.survival.autopsy.eviction_traces import event_sign, event_trace, status_trace
from podqos.survival.autopsy.terminations import is_evidence, tells_of_end

LEAST_BYTES = 1 << 20
"""A shorter list is read in whole."""
_PART_BYTES = 1 << 20
_MOST_BYTES = 1 << 23
"""Of one item."""
_LONGEST = 1 << 18
"""A longer item is parsed."""
_MOST_SHAPES = 100_000
_HEAD = re.compile(rb"(?:(?:apiVersion: v1|kind: List)\n|metadata:\n(?:  [^\n]*\n)+)*items:\n(?=- )")
_OF_LIST = frozenset(("apiVersion", "items", "kind", "metadata"))

_UID = re.compile(r"\n    uid: [\"']?([0-9A-Za-z-]++)[\"']?\n")
_NODE = re.compile(r"\n    nodeName: [\"']?([0-9A-Za-z.-]++)[\"']?\n")
_NAME = re.compile(r"\n    name: [\"']?([0-9A-Za-z.-]++)[\"']?\n")
_NAMES = re.compile(r"\n      name: ([^\n]++)\n")
_SPEC = "\n  spec:\n"
_EVENT = "\n"
"""In place of a node."""


class _NotSifted(Exception):
    """The list has to be read in whole."""


def sifted(path: str, data: bytes, stream: LogStream) -> InputFile:
    """Return a file with objects, of which ``data`` was read, without those that are only counted."""
    head = _HEAD.match(data)
    if head is None or len(data) < LEAST_BYTES:
        return InputFile(path, data=data + _rest(stream))
    sieve = _Sieve(head[0])
    position, part = head.end(), data[head.end() : head.end() + _PART_BYTES]
    try:
        while part:
            sieve.feed(part)
            position += len(part)
            part = data[position : position + _PART_BYTES] or stream.read(_PART_BYTES)
        return sieve.file(path)
    except (NotPlain, _NotSifted):
        more = data[position + len(part) :] if position < len(data) else b""
        return InputFile(path, data=b"".join((*sieve.texts(), more, _rest(stream))))


def _rest(stream: LogStream) -> bytes:
    return b"".join(iter(lambda: stream.read(_PART_BYTES), b""))


class _Quiet(Enum):
    """What tells nothing."""

    POD = auto()
    POD_ON_NODE = auto()
    EVENT = auto()


class _Part(Struct, frozen=True):
    """Some of the items, packed, each with the node of a pod that tells nothing; None: it is kept."""

    packed: bytes
    nodes: list[str | None]


class _Sieve:
    """Takes a list as it comes."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._pending = b""
        self._size = len(head)
        self._parts: list[_Part] = []
        self._kept: list[Reading] = []
        self._known: dict[int, _Quiet] = {}
        """What items tell nothing, by their shapes."""
        self._items = AlikeItems()
        self._uids: set[str] = set()
        self._nodes: dict[str, str] = {}
        self._evicted_on: set[str] = set()
        """Nodes, as far as they are known."""
        self._evicted: set[str] = set()
        """Uids and names of pods that events call evicted."""
        self._about: set[str] = set()
        """Likewise of those that events about an end name."""
        self._events = 0

    def texts(self) -> Iterator[bytes]:
        """Yield what was taken, in whole."""
        yield self._head
        yield from (zlib.decompress(part.packed) for part in self._parts)
        yield self._pending

    def feed(self, data: bytes) -> None:
        """Take some bytes; raise if the list has to be read in whole."""
        self._size += len(data)
        self._pending += data
        end = self._pending.rfind(NEXT_ITEM) + 1
        if end:
            self._take(self._pending[:end])
            self._pending = self._pending[end:]
        elif len(self._pending) > _MOST_BYTES:
            raise _NotSifted

    def _take(self, data: bytes) -> None:
        """Take items, each to its last line."""
        if BEHIND_ITEMS.search(data) is not None:
            raise _NotSifted
        nodes = [self._read(item, shape) for item, shape in self._items.split(data)]
        self._parts.append(_Part(zlib.compress(data, 1), nodes))

    def _read(self, item: str, shape: str) -> str | None:
        """Take an item, and return the node of a pod that tells nothing; None: it is kept."""
        key = hash((shape, *_names(item))) if shape and len(item) <= _LONGEST else 0
        known = self._known.get(key)
        uid, node = _found(_UID, item), _found(_NODE, item)
        if known is _Quiet.EVENT:
            self._items.note_alike()
            self._events += 1
            return _EVENT
        if known is not None and uid and bool(node) is (known is _Quiet.POD_ON_NODE):
            self._items.note_alike()
            return self._count(uid, node)
        value, reading = _objects(self._items.value(item, shape))
        pod = next((workload.pod for workload in reading.workloads if workload.kind == "Pod"), None)
        if pod is not None and (not isinstance(pod, FatedPod) or len(reading.workloads) + len(reading.others) > 1):
            raise _NotSifted
        if isinstance(pod, FatedPod) and not self._tells(pod):
            names = {container.name for container in (*pod.spec.init_containers, *pod.spec.containers)}
            names.update(container.name for container in pod.spec.ephemeral_containers)
            if (pod.metadata.uid, pod.spec.node_name, pod.metadata.name) == (uid, node, _found(_NAME, item)):
                if names.issubset(_names(item)):
                    self._remember(item, key, _Quiet.POD_ON_NODE if node else _Quiet.POD)
                return self._count(uid, node)
        if any(is_read_as(other, Event) for other in reading.others):
            event = _event(value)
            if not self._is_about_end(event) and event_sign(event) is None and event.reason not in TELLING:
                self._remember(item, key, _Quiet.EVENT)
                self._events += 1
                return _EVENT
        self._kept.append(reading)
        return None

    def _tells(self, pod: FatedPod) -> bool:
        if status_trace(pod) is not None:
            if not pod.metadata.uid:
                raise _NotSifted  # it may be any of the same name
            self._evicted_on.add(pod.spec.node_name)
            return True
        return not pod.metadata.uid or tells_of_end(pod)

    def _is_about_end(self, event: Event) -> bool:
        """Whether an event tells of an end, or may say why one came; the pods it may be about are kept."""
        trace = event_trace(event)
        if trace is None and not is_evidence(event):
            return False
        named = set(filter(None, (event.about.uid, event.about.name)))
        self._about |= named
        if trace is not None:
            self._evicted |= named
            self._evicted_on.add(trace.node)
        return True

    def _count(self, uid: str, node: str) -> str:
        self._uids.add(uid)
        return self._nodes.setdefault(node, node)

    def _remember(self, item: str, key: int, kind: _Quiet) -> None:
        if key and len(self._known) < _MOST_SHAPES and is_closed(item):
            self._known[key] = kind

    def file(self, path: str) -> InputFile:
        """Return the file, once all of it was taken; raise if it has to be read in whole."""
        behind = BEHIND_ITEMS.search(self._pending)
        end = len(self._pending) if behind is None else behind.start() + 1
        tail = self._pending[end:]
        envelope = read_plain(self._head + tail)
        if not isinstance(envelope, dict) or not envelope.keys() <= _OF_LIST or envelope.get("items", ()) is not None:
            raise _NotSifted
        is_complete = self._pending[:end].endswith(b"\n")
        if not is_complete or (envelope.get("apiVersion"), envelope.get("kind")) != ("v1", "List"):
            raise _NotSifted
        self._take(self._pending[:end])
        self._pending = tail
        named = self._named() if self._about else set()
        needed = {*self._evicted_on, ""} if self._evicted_on else set()
        before, texts = iter(self._kept), [self._head]
        kept: list[Reading] = []
        for item, node in self._without_others(needed, named):
            texts.append(item)
            if node != _EVENT:
                kept.append(next(before) if node is None else _objects(_item(item))[1])
        data = b"".join((*texts, tail))
        kept_pods = {own.pod.metadata.uid for reading in kept for own in reading.workloads if own.kind == "Pod"}
        pods = len(self._uids - kept_pods)
        if pods == 1 and not kept_pods:  # its name is said
            raise _NotSifted
        left_out = LeftOut(self._size - len(data), pods, frozenset(filter(None, self._nodes)), self._events)
        return InputFile(path, data=data, reading=_joined(path, data, kept), left_out=left_out)

    def _all(self) -> Iterator[tuple[str, str | None]]:
        for part in self._parts:
            yield from zip(items_in(zlib.decompress(part.packed).decode()), part.nodes, strict=True)

    def _named(self) -> set[int]:
        """Return the numbers of the items whose pods events name, and note the nodes of those that were evicted."""
        for own in (workload.pod for reading in self._kept for workload in reading.workloads):
            if not self._evicted.isdisjoint((own.metadata.uid, own.metadata.name)):
                self._evicted_on.add(own.spec.node_name)
        named = set()
        for number, (item, node) in enumerate(self._all()):
            if node is not None and node != _EVENT:
                uid, name = _found(_UID, item), _found(_NAME, item)
                if not (name and self._about.isdisjoint((uid, name))):
                    named.add(number)
                if not (name and self._evicted.isdisjoint((uid, name))):
                    self._evicted_on.add(node)
        return named

    def _without_others(self, nodes: set[str], named: set[int]) -> Iterator[tuple[bytes, str | None]]:
        """Yield the items that are kept, each with its node if it tells nothing, and blank lines in place of others."""
        lines = 0
        for number, (item, node) in enumerate(self._all()):
            if node is not None and node not in nodes and number not in named:
                lines += item.count("\n") + 1
                continue
            if lines:
                yield _blank(lines), _EVENT
                lines = 0
            yield f"- {item}\n".encode(), node
        if lines:
            yield _blank(lines), _EVENT


def _blank(lines: int) -> bytes:
    """Return lines that mean nothing; blank ones alone would belong to a text before them."""
    return b"#\n" + b"\n" * (lines - 1)


def _names(item: str) -> list[str]:
    """Return the names of containers, of which no two may be the same, and maybe others."""
    return _NAMES.findall(item, max(0, item.find(_SPEC)))


def _found(pattern: re.Pattern[str], item: str) -> str:
    found = pattern.search(item)
    return "" if found is None else found[1]


def _event(value: dict[str, Plain]) -> Event:
    try:
        return convert(value, Event)
    except msgspec.ValidationError:
        raise _NotSifted from None


def _item(data: bytes) -> Plain:
    items = read_plain(data, skims=True)
    return items[0] if isinstance(items, list) else None


def _objects(value: Plain) -> tuple[dict[str, Plain], Reading]:
    """Return an item and the objects in it; raise if there is something to report."""
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("apiVersion", "kind")):
        raise _NotSifted
    collector = Collector("")
    for found in objects_in(value, ("items", 0)):
        what = interpret(found, full_status=True)
        if what.findings or not found.kind:
            raise _NotSifted
        collector.add_object(found, what, found.place(_NOWHERE), _unknown)
    return value, collector.reading()


_NOWHERE = Chunk(0, 0, "yaml")


def _unknown(_path: FieldPath) -> Position:
    raise AssertionError("nothing is reported")


def _joined(path: str, data: bytes, kept: list[Reading]) -> Reading:
    """Return the contents of a list by those of its items."""
    own = [*chunks(data)]
    if len(own) != 1:
        raise _NotSifted
    return Reading(
        path,
        tuple(workload for reading in kept for workload in reading.workloads),
        [_moved(place, own[0], index) for index, reading in enumerate(kept) for place in reading.places],
        tuple(
            replace(other, place=_moved(other.place, own[0], index))
            for index, reading in enumerate(kept)
            for other in reading.others
        ),
    )


def _moved(place: Place, chunk: Chunk, index: int) -> Place:
    return replace(place, chunk=chunk, path=("items", index, *place.path[2:]))
