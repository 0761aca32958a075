"""What the server asks a view worker, and how both sides write it to the pipes between them.

A task is pickled; the bytes of files travel next to it, so that the server copies none of them.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from podqos.answers.page.session import SourceInfo
from podqos.web.ui.views import Question

COUNT = struct.Struct(">I")
LENGTH = struct.Struct(">Q")
HEAD = struct.Struct(">cI")
"""Of an answer: its kind and its length."""


class Reply(bytes, Enum):
    """The kinds of answers."""

    READY = b"y"
    """The worker has started."""
    READ = b"s"
    """The source has been read; the answer follows."""
    TOOK = b"t"
    """The CPU time in seconds that the next message has cost: on a busy machine, a quick answer may come late."""
    RESULT = b"r"
    ERROR = b"e"
    """A pickled ``PodqosError`` or ``RequestRefusal``: the visitor's."""
    NO_MEMORY = b"m"
    FAILURE = b"f"
    """A bug of ours, in words."""


class Given(Struct, frozen=True):
    """How to get a source that a worker does not have."""

    key: str
    """Identifies the source and its generation."""
    files: Mapping[str, bytes] = {}
    pickled: bytes = b""
    """What the command was started with, which is not read again."""


class Reading(Struct, frozen=True):
    """Read the source; the result is a ``ReadSource`` as JSON."""


class Paste(Struct, frozen=True):
    """Examine a text; the source, if any, knows its pods."""

    text: bytes


class Comparison(Struct, frozen=True):
    """Compare two runs, each as JSON."""

    before: bytes
    after: bytes


What = Reading | Paste | Comparison | Question


class Task(Struct, frozen=True):
    """One question to a worker."""

    what: What
    key: str = ""
    """The source that it is about; empty: none."""
    given: Given | None = None
    """The source, if the worker does not have it."""
    forget: tuple[str, ...] = ()
    """Sources that the worker need not keep."""


class ReadSource(Struct, frozen=True):
    """What the server has to know of a source."""

    info: SourceInfo
    size_bytes: int
    """Unpacked."""


class _Head(Struct, frozen=True):
    """A task without the bytes of files and texts, which follow it in this order."""

    what: type[Paste | Comparison] | Reading | Question
    texts: int
    key: str
    given: str | None
    names: tuple[str, ...]
    """Of the files; none if the source is pickled."""
    forget: tuple[str, ...]


def task_parts(task: Task) -> list[bytes]:
    """Return a task as what is written to a worker."""
    what, given = task.what, task.given
    texts: tuple[bytes, ...] = ()
    if isinstance(what, Paste):
        texts = (what.text,)
    elif isinstance(what, Comparison):
        texts = (what.before, what.after)
    files = () if given is None else (given.pickled,) if given.pickled else tuple(given.files.values())
    head = _Head(
        type(what) if isinstance(what, Paste | Comparison) else what,
        len(texts),
        task.key,
        None if given is None else given.key,
        () if given is None or given.pickled else tuple(given.files),
        task.forget,
    )
    parts = [pickle.dumps(head, pickle.HIGHEST_PROTOCOL), *texts, *files]
    return [COUNT.pack(len(parts)) + b"".join(LENGTH.pack(len(part)) for part in parts), *parts]


def task_of(parts: Sequence[bytes]) -> Task:
    """Return the task that was written; the opposite of ``task_parts``."""
    head: _Head = pickle.loads(parts[0])  # noqa: S301 - written by our own server
    texts, files = parts[1 : 1 + head.texts], parts[1 + head.texts :]
    given = None
    if head.given is not None:
        named = dict(zip(head.names, files, strict=True)) if head.names else {}
        given = Given(head.given, named, b"" if head.names else files[0])
    what = head.what(*texts) if isinstance(head.what, type) else head.what
    return Task(what, head.key, given, head.forget)
