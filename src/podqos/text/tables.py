"""Values as tables for CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

Table = tuple[Iterable[str], Iterable[Sequence[object]]]
"""Headings, and the rows below them."""


def csv_table(items: Iterable[object], *columns: str) -> Table:
    """Return headings, and a row per item.

    A column is an attribute or ``heading=attribute``; a dotted name is an attribute of an attribute.
    """
    headings, _, attributes = zip(*(column.rpartition("=") for column in columns), strict=True)
    named = [heading or attribute for heading, attribute in zip(headings, attributes, strict=True)]
    return named, map(attrgetter(*attributes), items)
