"""Amounts, durations, counts and lists as text, for every sentence that podqos prints. Each way of writing one is here.

Texts that are part of Kubernetes' interface, and amounts as manifests write them, are not: see ``eviction.messages``
and ``model.quantity``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_LARGEST_RATIO = 1e9
_KI, _MI, _GI, _TI, _EI = 1 << 10, 1 << 20, 1 << 30, 1 << 40, 1 << 60
_IN_BYTES = frozenset({"memory", "ephemeral-storage"})
_SECOND_US = 1_000_000
_TEN_DAYS = 10 * 86_400


# ---- lists and counts ------------------------------------------------------------------------------------------------


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


def ordinal(place: int) -> str:
    """Return a place in an order: ``1st``, ``2nd``, ``11th``."""
    teens = place % 100 in {11, 12, 13}
    return f"{place}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


# ---- amounts ---------------------------------------------------------------------------------------------------------


def mebibytes(count: int) -> str:
    """Return a number of bytes for people: ``4130Mi``, ``64Gi``, ``23.4Gi``, ``8.0Ei``; beyond that ``9.0e999``."""
    if count == 0:
        return "0"
    if count > 2**63:  # more than a machine can have, and maybe more than a float holds
        digits = str(count)
        return f"{digits[0]}.{digits[1]}e{len(digits) - 1}"
    if count >= _EI:
        return f"{count / _EI:.1f}Ei"
    for unit, name in ((_TI, "Ti"), (_GI, "Gi"), (_MI, "Mi")):
        if count % unit == 0:
            return f"{count // unit}{name}"
    if _KI <= count < _MI // 20:  # 0.0Mi
        return f"{count / _KI:.0f}Ki"
    return f"{count / _GI:.1f}Gi" if count >= _GI else f"{count / _MI:.1f}Mi"


def size(size_bytes: int) -> str:
    """Return an amount of memory, or a badness, with a typographic minus; from 10Gi on without mebibytes."""
    count = abs(size_bytes)
    text = mebibytes(count) if count < 10 * _GI or count % _GI == 0 else f"{count / _GI:.1f}Gi"
    return text if size_bytes >= 0 else f"−{text}"


def signed(value: int) -> str:
    """Return a number with a typographic minus."""
    return str(value) if value >= 0 else f"−{-value}"


def amount(number: int, resource: str) -> str:
    """Return a whole number of a resource: bytes in mebibytes, everything else as it is."""
    return mebibytes(number) if resource in _IN_BYTES else str(number)


def scheduled(number: int, resource: str) -> str:
    """Return an amount in the scheduler's unit, in which cpu is in thousandths."""
    return f"{number}m" if resource == "cpu" else amount(number, resource)


def of_resource(written: str, resource: str) -> str:
    """Return an amount of a resource: ``500m cpu``, ``64Mi of memory``."""
    return f"{written} {resource}" if resource == "cpu" else f"{written} of {resource}"


# ---- shares ----------------------------------------------------------------------------------------------------------


def shown_ratio(ratio: Fraction) -> float:
    """Return a ratio to show, capped at a billion, which a float can hold."""
    return float(ratio) if ratio < _LARGEST_RATIO else _LARGEST_RATIO


def percent(share: float | Fraction) -> str:
    """Return a share with three digits: ``12.5 %``."""
    return f"{float(share * 100):.3g} %"


# ---- durations -------------------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """Return a time in seconds, in minutes and seconds from one minute on, in days from ten days on."""
    if seconds < 60:
        return f"{seconds:g} s"
    if seconds >= _TEN_DAYS:
        return f"{seconds / 86_400:,.0f} days"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g} min" + (f" {rest:g} s" if rest else "")


def short_duration(seconds: float) -> str:
    """Return a time as the kubelet's settings write it: ``1m30s``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{number:g}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number]
    return "".join(parts) or "0s"


def rounded(seconds: float | Fraction) -> str:
    """Return a time with three digits below 100 seconds, and to the second from there on."""
    return f"{float(seconds):.3g} s" if seconds < 100 else duration(round(seconds))


def two_units(time_us: int) -> str:
    """Return a time in its two largest units."""
    seconds = max(0, time_us // _SECOND_US)
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= length:
            return f"{seconds // length} {unit} {seconds % length // part} {smaller}"
    return f"{seconds} s"


def span(time_us: int) -> str:
    """Return a duration, as exact as it matters."""
    if time_us < 10_000:
        return f"{time_us / 1000:.1f} ms"
    if time_us < _SECOND_US:
        return f"{time_us / 1000:.0f} ms"
    return f"{time_us / _SECOND_US:.1f} s" if time_us < 100 * _SECOND_US else f"{time_us // _SECOND_US} s"
