"""Patterns that are made when first needed: most logs hold no line for most of them, and the command waits for all."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

_texts: list[str] = []
_CLASSES = re.compile(r"\[([A-Za-z])[A-Za-z]\]")
"""A letter in either case."""
_NOT_WORDS = re.compile(r"\\[A-Za-z]|\(\?P<\w+>|\[[^\]]*\]|\{[\d,]*\}")
_WORDS = re.compile(r"[A-Za-z](?:[A-Za-z_-]|\\?\.(?=[A-Za-z]))+")


def words_of_patterns() -> frozenset[str]:
    """Return the words that any of the patterns so far looks for: others can change no match."""
    texts = (_NOT_WORDS.sub(" ", _CLASSES.sub(r"\1", text)) for text in _texts)
    return frozenset(word.replace("\\", "") for text in texts for word in _WORDS.findall(text))


class LazyPattern:
    """A pattern, compiled at its first use; ``needs``: what a text has to hold, one of them, to be searched at all."""

    __slots__ = ("_compiled", "_flags", "_needs", "_text")

    def __init__(self, text: str, flags: int = 0, *, needs: tuple[str, ...] = ()) -> None:
        _texts.append(text)
        self._text = text
        self._flags = flags
        self._needs = needs
        self._compiled: re.Pattern[str] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """What a text has to hold, one of them; none: anything may do."""
        return self._needs

    @property
    def _pattern(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return self._compiled

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return where it is found first."""
        for words in self._needs:
            if words in text:
                break
        else:
            if self._needs:
                return None
        return (self._compiled or self._pattern).search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return whether a text begins with it."""
        return self._pattern.match(text, start, end)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return whether it is the whole text."""
        return self._pattern.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all of them."""
        return self._pattern.finditer(text)
