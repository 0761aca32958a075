"""Lines of the kernel's, as they are found and without what carried them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

MOST_CHARACTERS = 8192
"""Of a line; the longest that decides anything is the one with two cgroup paths."""


class Message(Struct, frozen=True, gc=False):
    """A line of the kernel's, without what carried it."""

    text: str
    at: str = ""
    """When, as it is written: a date, or seconds since the machine started."""
    host: str = ""
    """Of several in one log."""
    is_marked: bool = False
    """Whether something carried it. In a log of marked lines one without a mark continues the one before."""
    fields: Mapping[str, object] = {}
    """All of a line of JSON, whose message may be only a part of what it says."""


class Line(Struct, frozen=True, gc=False):
    """A line to be read, and what is known of it already."""

    text: str
    at: str = ""
    host: str = ""
    fields: Mapping[str, object] = {}
    """Of the record whose message it is."""
    is_record: bool = False
