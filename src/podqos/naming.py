"""Texts that name fields of a request, and leave their spelling to whoever prints them.

An error is raised where nobody knows who asked. So ``"give it with " + naming("node_memory")`` is a text like any other
to a program, ``give it with node_memory``, and the command line prints ``give it with --node-memory``: see
``cli/spelling.py``. Add such texts with ``+``; an f-string keeps the words, and forgets that they name a field.

What is published is a plain text (``published``), and says the same to everyone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from msgspec import Struct


class Field(Struct, frozen=True):
    """A field of a request, or a parameter of a function, and an example of its value."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        """Return it as a program passes it."""
        return f"{self.name}={self.value}" if self.value else self.name


class Hint(Struct, frozen=True):
    """A part of a text that helps only readers who can state all of its fields."""

    text: NamingText

    def __str__(self) -> str:
        """As a program reads it."""
        return str(self.text)


_SHORT = {"files": "-f", "namespace": "-n", "output": "-o", "verbose": "-v"}

Spell = Callable[[Field], str | None]
"""Returns how a reader states a field; None if they cannot."""


class NamingText(str):
    """A text that knows which of its words are fields."""

    __slots__ = ("parts",)
    parts: tuple[str | Field | Hint, ...]

    def __new__(cls, *parts: str | Field | Hint) -> Self:
        """Put a text together; a part that names fields itself is taken apart."""
        text = super().__new__(cls, "".join(map(str, parts)))
        flat = (part.parts if isinstance(part, NamingText) else (part,) for part in parts)
        text.parts = tuple(inner for each in flat for inner in each)
        return text

    def __getnewargs__(self) -> tuple[str | Field | Hint, ...]:  # type: ignore[override] # pickled in errors of workers
        """Return its parts for pickling."""
        return self.parts

    def __add__(self, text: str) -> NamingText:
        """Go on with a text."""
        return NamingText(self, text)

    def __radd__(self, text: str) -> NamingText:
        """Begin with a text."""
        return NamingText(text, self)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that it names outside of hints."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    def spelled(self, spell: Spell, otherwise: Callable[[Field], str] = str) -> str:
        """Return the text with fields as a reader states them, without the hints that do not help them.

        ``otherwise`` is asked about a field outside of hints that the reader cannot state.
        """
        return "".join(_spelled(part, spell, otherwise) for part in self.parts)


def naming(name: str, value: str = "") -> NamingText:
    """Return a text that names a field, with an example of its value where one helps."""
    return NamingText(Field(name, value))


def hint(text: str) -> NamingText:
    """Return a text that is left out for readers who cannot state what it names: another command has the option."""
    assert isinstance(text, NamingText), f"{text!r} names no field"
    return NamingText(Hint(text))


def stated_with(name: str, value: str = "") -> str:
    """Return how a field is stated, as published values (``stateWith``) and reports have it: on the command line.

    This is the one place below the edges that knows that spelling. Programs read ``--node-memory`` from the JSON of
    every command, and snapshots keep it, so it is the same whoever asks. A command line in full (``podqos check
    --list``) is as good for every reader.
    """
    option = _SHORT.get(name) or f"--{name.replace('_', '-')}"
    return f"{option} {value}" if value else option


def published(text: str) -> str:
    """Return a text as published values have it."""
    return text.spelled(lambda field: stated_with(field.name, field.value)) if isinstance(text, NamingText) else text


def _spelled(part: str | Field | Hint, spell: Spell, otherwise: Callable[[Field], str]) -> str:
    if isinstance(part, Hint):
        helps = all(spell(field) is not None for field in part.text.fields)
        return part.text.spelled(spell, otherwise) if helps else ""
    return spell(part) or otherwise(part) if isinstance(part, Field) else part
