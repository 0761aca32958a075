"""Events as lines of JSON, taken as they are found: exporters and watches write them without end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podqos.answers.other_killers import may_tell
from podqos.eviction.message_reading import read_message
from podqos.eviction.messages import REASON
from podqos.kernel.carriers.tokens import has_hint
from podqos.manifest.decode import REFUSALS, model_decoder
from podqos.model.event import Event

_FIELDS = (b'"involvedObject"', b'"regarding"')
_MOST_CHARACTERS = 1 << 16
_NONE = Event()


class Taken(NamedTuple):
    """Lines, told apart."""

    events: list[Event]
    rest: Sequence[str]
    """What is no event, or quotes what some program said of a kill."""


class EventLines:
    """Takes the lines of a log."""

    def __init__(self) -> None:
        self._are_events = self._has_begun = False

    def begin(self, first: bytes) -> bool:
        """Begin another log by its first line, and return whether it has events."""
        self._has_begun = False
        self._are_events = first.startswith(b"{") and any(field in first for field in _FIELDS)
        return self._are_events

    def read(self, lines: Sequence[str]) -> Taken:
        """Return the events of lines, and the other lines; the first line of all shows what carries them."""
        if not self._are_events:
            return Taken([], lines)
        decode = model_decoder(Event).decode
        events, rest = [], [] if self._has_begun else list(lines[:1])
        for line in lines[len(rest) :]:
            event = _NONE
            if line.startswith("{") and len(line) < _MOST_CHARACTERS and not has_hint(line):
                try:
                    event = decode(line)
                except REFUSALS:
                    event = _NONE
            if event.reason and (event.involved_object or event.regarding) and not _quotes(event):
                events.append(event)
            else:
                rest.append(line)
        self._has_begun = True
        return Taken(events, rest)


def _quotes(event: Event) -> bool:
    """Whether an event may quote what a program said of a kill."""
    text = event.text
    return may_tell(text) and not (event.reason == REASON and read_message(text) is not None)
