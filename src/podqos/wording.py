"""How quantities and lists read in a sentence: for findings, which put their facts into words, and for ``report``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podqos.model.quantity import Quantity

if TYPE_CHECKING:
    from fractions import Fraction

_LARGEST_RATIO = 1e9


def listed(words: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one may have meant: other case, swapped letters, or similar."""
    from difflib import get_close_matches

    names = sorted(known)
    same = {name.lower(): name for name in names}.get(name.lower())
    swapped = (each for each in names if sorted(each) == sorted(name))
    return same or next(swapped, None) or next(iter(get_close_matches(name, names, n=1, cutoff=0.7)), None)


def verb(subjects: Sequence[str], one: str, several: str) -> str:
    """Return the form of a verb that goes with its subjects."""
    return one if len(subjects) == 1 else several


def counted(count: int, noun: str) -> str:
    """Return a number of things: ``1 finding``, ``1,200 findings``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def of_resource(amount: str, resource: str) -> str:
    """Return an amount of a resource: ``500m cpu``, ``64Mi of memory``."""
    return f"{amount} {resource}" if resource == "cpu" else f"{amount} of {resource}"


def ordinal(place: int) -> str:
    """Return a place in an order: ``1st``, ``2nd``, ``11th``."""
    teens = place % 100 in {11, 12, 13}
    return f"{place}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def mebibytes(count: int) -> str:
    """Return a number of bytes for people: ``4130Mi``, ``64Gi``, ``23.4Gi``, ``8.0Ei``; beyond that ``9.0e999``."""
    if count == 0:
        return "0"
    if count > 2**63:  # more than a machine can have, and maybe more than a float holds
        digits = str(count)
        return f"{digits[0]}.{digits[1]}e{len(digits) - 1}"
    if count >= 2**60:
        return f"{count / 2**60:.1f}Ei"
    if count % 2**20 == 0:
        text = Quantity.of_units(count, "BinarySI").canonical()
        if text[-2:] in {"Mi", "Gi", "Ti"}:
            return text
    if 2**10 <= count < 2**20 // 20:  # 0.0Mi
        return f"{count / 2**10:.0f}Ki"
    return f"{count / 2**30:.1f}Gi" if count >= 2**30 else f"{count / 2**20:.1f}Mi"


def shown_ratio(ratio: Fraction) -> float:
    """Return a ratio to show, capped at a billion, which a float can hold."""
    return float(ratio) if ratio < _LARGEST_RATIO else _LARGEST_RATIO
