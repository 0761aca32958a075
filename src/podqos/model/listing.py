"""Answers that are lists of something: ``answer[0]``, ``len(answer)`` and ``for item in answer`` work on all of them.

An answer is a struct, because it also carries assumptions, versions and sums. Mix ``Listing`` in and name the field
that the question asks for. An answer with two lists of equal standing, such as the two orders of ``rank``, is not one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, overload

Item = TypeVar("Item")


class Listing(Generic[Item]):
    """Reads like a tuple of its items."""

    __slots__ = ()

    def _listed(self) -> tuple[Item, ...]:
        """Return the items."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Count the items: an answer without any is false, like an empty list."""
        return len(self._listed())

    def __iter__(self) -> Iterator[Item]:
        """Go through the items in the answer's order."""
        return iter(self._listed())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        """Return an item, or several of them."""
        return self._listed()[index]
