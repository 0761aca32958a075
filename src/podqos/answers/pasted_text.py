"""Logs in which kubectl printed something for people: pods, nodes and events, read as the log is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.log_lines import LogStream
from podqos.objects.kubectl_text.pasted import Pasted
from podqos.objects.kubectl_text.recognition import may_be_kubectl
from podqos.survival.autopsy.eviction_traces import event_trace, status_trace
from podqos.survival.autopsy.what_was_read import WhatWasRead

if TYPE_CHECKING:
    from podqos.model.node import Node
    from podqos.model.pod_fate import FatedPod
    from podqos.objects.kubectl_text.parts import PastedParts
    from podqos.objects.kubectl_text.reader import TextReader

_PART_BYTES = 1 << 17
_HEAD_BYTES = 1 << 20
"""So much is looked at. Descriptions and tables come first, or the whole text is short."""
_FIRST_BYTES = 1 << 17
"""In so much of a text by kubectl there is a row or a field."""
_AHEAD_BYTES = 1 << 23
"""So much of a text by kubectl is read before the log in it."""
_FEW_CHARACTERS = 1 << 16
"""So much is read, whatever it tells."""


_FEW_OBJECTS = 20
"""A pod that is watched has many rows, and a node's description one for each pod."""


class Quiet(Struct, frozen=True):
    """What tells nothing: it is counted, and not read."""

    pods: int = 0
    nodes: int = 0
    events: int = 0
    pods_nodes: frozenset[str] = frozenset()
    """Those on which the pods are."""
    evictions: int = 0
    """Beyond the pods that are kept, likewise the rest."""
    terminations: int = 0
    exits: int = 0


class PastedText:
    """A log, and what kubectl printed in as much of it as has been read."""

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._ahead: deque[bytes] = deque()
        self.parts: PastedParts | None = None
        """None: kubectl printed nothing in it."""
        head = self._read_ahead(_HEAD_BYTES)
        if not may_be_kubectl(head):
            return
        from podqos.objects.kubectl_text.parts import PastedParts

        if len(head) > _FIRST_BYTES:
            first = PastedParts()
            first.feed(head[:_FIRST_BYTES], is_ahead=True)
            first.end()
            if first.reader.is_empty:
                return  # a log that has one of the words
        self.parts = PastedParts()
        for part in self._ahead:
            self.parts.feed(part, is_ahead=True)
        self._read_ahead(_AHEAD_BYTES)
        if sum(map(len, self._ahead)) < _AHEAD_BYTES:
            self.parts.end()

    def _read_ahead(self, most: int) -> bytes:
        """Read so much, and return it."""
        length = sum(map(len, self._ahead))
        while length < most and (part := self._stream.read(_PART_BYTES)):
            self._ahead.append(part)
            length += len(part)
            if self.parts is not None:
                self.parts.feed(part, is_ahead=True)
        return b"".join(self._ahead) if self.parts is None else b""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        if self._ahead:
            part = self._ahead.popleft()
            if len(part) > size:
                self._ahead.appendleft(part[size:])
            return part[:size]
        part = self._stream.read(size)
        if self.parts is not None and not self.parts.is_over:
            if part:
                self.parts.feed(part, is_ahead=False)
            else:
                self.parts.end()
        return part

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes so far."""
        return () if self.parts is None else self.parts.reader.nodes


def told_together(
    texts: Sequence[PastedText], names: Iterable[str], *, has_kubelet_log: bool, has_others: bool
) -> tuple[list[Pasted], Quiet]:
    """Return what kubectl printed in several texts: what tells nothing is read if anything is about its objects.

    ``names`` are those of pods that are known otherwise; a kubelet's log may be about any. ``has_others``: whether
    there are kills, which may be of any container, or objects and logs that may have evictions, for which pods are
    ranked.
    """
    readers = [text.parts.reader for text in texts if text.parts is not None]
    if not readers:
        return [], Quiet()
    from podqos.objects.kubectl_text.quiet_rows import Told, count_pods

    rows = [reader.quiet for reader in readers]
    left_out = sum((own.left_out for own in rows), Counter[Told]())
    quiet = Quiet(
        left_out.total(),
        evictions=left_out[Told.EVICTION],
        terminations=left_out[Told.TERMINATION],
        exits=left_out[Told.EXIT],
    )
    if has_kubelet_log or sum(own.characters for own in rows) <= _FEW_CHARACTERS:
        return [reader.pasted(None) for reader in readers], quiet
    all_pods = {pod for own in rows for pod in own.pods}
    known = {*names}.union(*(reader.names for reader in readers), *(own.restarted for own in rows))
    completed = Counter(name for own in rows for _, name in own.pods if name in own.completed)
    known.update(name for name, times in completed.items() if times > 1)  # with and without a namespace
    all_nodes = {node for own in rows for node in own.nodes_described}
    if len(all_pods) < _FEW_OBJECTS:
        known.update(name for _, name in all_pods)
    if len(all_nodes) < _FEW_OBJECTS:
        known |= all_nodes
    described = set[str]().union(*(own.described for own in rows))
    if described and (has_others or len(texts) > 1 or any(map(_may_tell_of_evictions, readers))):
        known |= described
    pods = count_pods(all_pods, known) + sum(own.pods_beyond for own in rows)
    quiet = replace(
        quiet,
        pods=quiet.pods + pods,
        nodes=len(all_nodes - known),
        events=sum(own.events_without(known) for own in rows),
        pods_nodes=frozenset().union(*(own.nodes for own in rows)),
    )
    return [reader.pasted(known) for reader in readers], quiet


def _may_tell_of_evictions(reader: TextReader) -> bool:
    """Whether a text tells of an eviction, or of a kill that was not the kernel's."""
    pods, events = reader.telling
    return reader.tells_of_kills or any(map(status_trace, pods)) or any(map(event_trace, events))


def counted(read: WhatWasRead, quiet: Quiet, pods: Iterable[FatedPod]) -> WhatWasRead:
    """Return what was read with what was only counted; ``pods`` are those that were not."""
    read = replace(read, events=read.events + quiet.events, nodes=read.nodes + quiet.nodes)
    nodes = quiet.pods_nodes.union(pod.spec.node_name for pod in pods if pod.spec.node_name)
    if not read.debug_pods and (nodes if quiet.pods else quiet.nodes and not nodes):  # else it is said
        read = replace(read, node=next(iter(nodes)) if len(nodes) == 1 else "")
    return replace(read, pods=read.pods + quiet.pods, pod="") if quiet.pods else read
