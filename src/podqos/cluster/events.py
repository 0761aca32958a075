"""Pure: the events of a watch, from bytes to values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Generic

import msgspec
from msgspec import Struct

from podqos.cluster.pages import decode_object
from podqos.cluster.refusals import ServerStatus, status_of
from podqos.cluster.resources import Model, Resource
from podqos.errors import BadAnswer
from podqos.manifest.decode import REFUSALS

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_MOST_BYTES = 64 << 20
"""Maximum size of one event. etcd keeps no object above a few megabytes."""


class EventType(StrEnum):
    """What happened."""

    RESET = "RESET"
    """Forget all objects: those that exist follow as ADDED."""
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """All objects that existed when the watch started, or restarted, have arrived."""


class Event(Struct, Generic[Model], frozen=True):
    """One thing that happened, and the object as it is now, or was when it was deleted."""

    type: EventType
    object: Model | None = None
    """None for RESET and SYNCED."""


class Bookmark(Struct, frozen=True):
    """The position of a watch, and whether its initial objects are complete."""

    resource_version: str
    ends_initial_events: bool


class _WireEvent(Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Meta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(Struct, frozen=True):
    metadata: _Meta = _Meta()


_EVENT_DECODER = msgspec.json.Decoder(_WireEvent)
_OBJECT_DECODER = msgspec.json.Decoder(_Object)
_CHANGES = {"ADDED": EventType.ADDED, "MODIFIED": EventType.MODIFIED, "DELETED": EventType.DELETED}


def lines(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Yield the lines of a stream, however it is chunked; an incomplete last line is dropped."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        if b"\n" not in piece:
            begun.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise BadAnswer(f"an event is larger than {_MOST_BYTES >> 20}Mi", where=where)
            continue
        first, *middle, last = piece.split(b"\n")
        yield b"".join((*begun, first))
        yield from middle
        begun, size = [last], len(last)


def read_event(
    resource: Resource[Model], line: bytes, where: str
) -> tuple[Event[Model], str] | Bookmark | ServerStatus | None:
    """Return the event of a line: a change with its resource version, a bookmark, or an error; None for nothing."""
    if not line.strip():
        return None
    try:
        event = _EVENT_DECODER.decode(line)
        if event.type == "ERROR":
            return status_of(0, bytes(event.object))
        metadata = _OBJECT_DECODER.decode(event.object).metadata
    except REFUSALS as error:
        raise BadAnswer(f"its watch of {resource.plural} cannot be read: {error}", where=where) from None
    if event.type == "BOOKMARK":
        ends = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
        return Bookmark(metadata.resource_version, ends)
    change = _CHANGES.get(event.type)
    if change is None:  # a kind of event of a later version
        return None
    return Event(change, decode_object(resource, bytes(event.object), where=where)), metadata.resource_version
