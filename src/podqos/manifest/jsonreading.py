"""Reading JSON: one object, a list, or a stream of them.

Lists of pods as ``kubectl get pods -o json`` prints them are large and were checked by an API server: they are decoded
straight into the model, in one pass over the bytes. Everything else is decoded to plain values, a list item by item,
and interpreted like YAML. ``strictjson`` locates what is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

import msgspec
from msgspec import Struct

from podqos.manifest.contents import Collector, Reading
from podqos.manifest.decode import PLAIN_DECODER, REFUSALS, model_decoder
from podqos.manifest.kinds import item_type
from podqos.manifest.objects import interpret, is_list, objects_in
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem, Position, SyntaxProblem, position_at
from podqos.manifest.text import Chunk, Place, decode
from podqos.model.pod import Pod, Workload
from podqos.model.pod_fate import FatedPod

if TYPE_CHECKING:
    from podqos.manifest.strictjson import Positions

# ---- pods from an API server --------------------------------------------------------------------------------------


class _Item(Pod, frozen=True, gc=False, rename="camel"):
    """A pod in a list. Items of kubectl's ``List`` say what they are, those of a ``PodList`` do not."""

    kind: Literal["Pod", ""] = ""
    api_version: Literal["v1", ""] = ""


class _PodList(Struct, frozen=True, rename="camel"):
    kind: Literal["PodList", "List"]
    items: list[_Item]
    api_version: Literal["v1"]


class _FatedItem(FatedPod, frozen=True, gc=False, rename="camel"):
    """The same with its full status."""

    kind: Literal["Pod", ""] = ""
    api_version: Literal["v1", ""] = ""


class _FatedPodList(Struct, frozen=True, rename="camel"):
    kind: Literal["PodList", "List"]
    items: list[_FatedItem]
    api_version: Literal["v1"]


_OBJECT = re.compile(rb"[ \t\r\n]*+\{")
_FIRST_KIND = re.compile(rb'"kind"[ \t\r\n]*+:[ \t\r\n]*+"(\w*)"')
_PEEK_BYTES = 65_536


def read_live_pods(source: str, text: bytes, *, full_statuses: bool = False) -> Reading | None:
    """Return the pods of a list if it holds nothing else and all come from an API server.

    ``full_statuses``: they are ``FatedPod``, if the statuses of all are in order.
    """
    first_kind = _FIRST_KIND.search(text, 0, _PEEK_BYTES) if _OBJECT.match(text) else None
    if first_kind is None or first_kind[1] not in (b"Pod", b"PodList"):
        return None
    pods: _PodList | _FatedPodList
    try:
        pods = model_decoder(_FatedPodList if full_statuses else _PodList).decode(text)
    except REFUSALS:
        return read_live_pods(source, text) if full_statuses else None
    if pods.kind == "List" and not all(item.kind for item in pods.items):
        return None
    if not _are_live(pods.items):
        return None
    workloads = tuple(Workload("Pod", pod.metadata, _without_kind(pod)) for pod in pods.items)
    return Reading(source, workloads, _ItemPlaces(Chunk(0, len(text), "json"), len(workloads)))


def _without_kind(item: _Item | _FatedItem) -> Pod:
    if isinstance(item, _FatedItem):
        return FatedPod(item.metadata, item.spec, item.status)
    return Pod(item.metadata, item.spec, item.status)


def is_pod_list(envelope: bytes, first_item: bytes) -> bool:
    """Whether a list, here without its items, is one of pods; ``first_item`` is the beginning of the first of them."""
    try:
        kind = model_decoder(_PodList).decode(envelope).kind
    except REFUSALS:
        return False
    return kind == "PodList" or b'"Pod"' in first_item


def live_pods(items: memoryview) -> Sequence[Pod] | None:
    """Return the pods of a JSON array, the ``items`` of a list, if all come from an API server."""
    try:
        pods: list[_Item] = model_decoder(list[_Item]).decode(items)
    except REFUSALS:
        return None
    return pods if _are_live(pods) else None


def _are_live(pods: Sequence[Pod]) -> bool:
    """Whether none of the pods must be looked at more closely."""
    return all(pod.metadata.is_live and pod.spec.containers for pod in pods)


class _ItemPlaces(Sequence[Place]):
    """The places of the items of a list, made when asked for."""

    def __init__(self, chunk: Chunk, count: int) -> None:
        self._chunk = chunk
        self._indexes = range(count)

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | Sequence[Place]:
        if isinstance(index, slice):
            return [self[i] for i in self._indexes[index]]
        return Place(self._chunk, 0, ("items", self._indexes[index]))


# ---- any JSON -----------------------------------------------------------------------------------------------------


class _Envelope(Struct, frozen=True, rename="camel"):
    """The outside of an object; the items of a list are decoded one at a time."""

    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


_ENVELOPE_DECODER = msgspec.json.Decoder(_Envelope)
_ENCODER = msgspec.json.Encoder(enc_hook=float)


class _Part(Struct, frozen=True):
    """An object to decode: the whole text, or an item of the list it is."""

    raw: bytes | msgspec.Raw
    path: FieldPath = ()
    kind: str = ""
    api_version: str = ""


def read_json(text: bytes, chunk: Chunk, collector: Collector, *, full_statuses: bool = False) -> SyntaxProblem | None:
    """Read a chunk that begins like JSON; if not even its first value is JSON, only return why."""
    try:
        _read_value(text, chunk, collector, full_statuses=full_statuses)
    except REFUSALS:
        return _read_stream(text, chunk, collector, full_statuses=full_statuses)
    return None


def _read_stream(text: bytes, chunk: Chunk, collector: Collector, *, full_statuses: bool) -> SyntaxProblem | None:
    """Read JSON values one after the other, and report where that fails; return the problem if there is no value."""
    from podqos.manifest.strictjson import spans

    count = 0
    try:
        string = decode(text[chunk.start : chunk.end], chunk.origin)
        start, before = chunk.start, 0
        origin = chunk.origin
        for begin, end in spans(string, chunk.origin):
            start += len(string[before:begin].encode())
            origin = position_at(string[before:begin], begin - before, origin)
            part = Chunk(start, start + len(string[begin:end].encode()), "json", origin)
            try:
                _read_value(text, part, collector, full_statuses=full_statuses)
            except REFUSALS as error:
                raise SyntaxProblem(origin, f"broken JSON: {error}") from None
            count += 1
            start, before = part.end, end
            origin = position_at(string[begin:end], end - begin, origin)
    except SyntaxProblem as problem:
        if not count:
            return problem
        collector.add_syntax_problem(problem)
    return None


def _read_value(text: bytes, chunk: Chunk, collector: Collector, *, full_statuses: bool) -> None:
    """Read one JSON value; if it is broken as a whole, raise what msgspec raises before anything is taken in."""
    parts = _parts(text[chunk.start : chunk.end])
    whole: Plain = None if parts[0].path else PLAIN_DECODER.decode(parts[0].raw)
    locator = JSONLocator(text, chunk)
    collector.count_document()
    for part in parts:
        try:
            value = PLAIN_DECODER.decode(part.raw) if part.path else whole
            doubled = _duplicate_keys(part, value)
        except REFUSALS as error:
            collector.add_problem(FieldProblem((), f"broken JSON: {error}"), locator.locate(part.path))
            continue
        for path in doubled:  # the last one counts, as for kubectl
            from podqos.manifest.kubelet import holds_settings

            what, position = f'key "{path[-1]}" is set twice', locator.locate((*part.path, *path))
            problem = SyntaxProblem(position, what, "remove one of them", keeps_value=True)
            collector.add_syntax_problem(problem, is_strict=holds_settings(value))
        named = collector.name_for_snippet
        for found in objects_in(value, part.path, part.kind, part.api_version, name=named):
            meaning = interpret(found, full_status=full_statuses)
            collector.add_object(found, meaning, found.place(chunk), locator.locate)


def _parts(piece: bytes) -> list[_Part]:
    """Take a list apart; anything else is one part."""
    try:
        envelope = _ENVELOPE_DECODER.decode(piece)
    except msgspec.ValidationError:
        return [_Part(piece)]  # no object, or one without a proper kind
    if not envelope.items or not envelope.api_version or not is_list(envelope.kind, ("items",)):
        return [_Part(piece)]
    kind, api_version = item_type(envelope.kind, envelope.api_version)
    return [_Part(raw, ("items", index), kind, api_version) for index, raw in enumerate(envelope.items)]


class JSONObjects:
    """The objects of a chunk, taken apart once; of a list, only the item in question is decoded."""

    def __init__(self, text: bytes, chunk: Chunk) -> None:
        self._parts = {part.path: part for part in _parts(text[chunk.start : chunk.end])}

    def text(self, path: FieldPath) -> bytes:
        """Return the text of the object at a path."""
        return bytes(self._parts[path[: self._depth(path)]].raw)

    def _depth(self, path: FieldPath) -> int:
        """Return how deep the part of an object is: the whole, or an item of a list."""
        return next(depth for depth in (0, 2) if path[:depth] in self._parts)

    def plain(self, path: FieldPath) -> Plain:
        """Return what the object at a path says."""
        depth = self._depth(path)
        value: Plain = PLAIN_DECODER.decode(self._parts[path[:depth]].raw)
        for step in path[depth:]:
            value = value[step]  # type: ignore[index] # a place is a path that exists
        return value


def _duplicate_keys(part: _Part, value: Plain) -> Sequence[FieldPath]:
    """Return the keys that are set twice: they are in the text, but no longer in the value."""
    if _ENCODER.encode(value).count(b":") == bytes(part.raw).count(b":"):
        return ()
    from podqos.manifest.strictjson import duplicate_keys

    return duplicate_keys(bytes(part.raw).decode())


class JSONLocator:
    """Finds fields of a chunk of JSON; the text is looked at when the first one is asked for."""

    def __init__(self, text: bytes, chunk: Chunk) -> None:
        self._text = text
        self._chunk = chunk
        self._positions: Positions | None = None

    def locate(self, path: FieldPath) -> Position:
        """Return where a field is, or the nearest ancestor that exists."""
        from podqos.manifest.strictjson import Positions

        if self._positions is None:
            piece = self._text[self._chunk.start : self._chunk.end].decode(errors="replace")
            self._positions = Positions(piece, self._chunk.origin)
        return self._positions.locate(path)
