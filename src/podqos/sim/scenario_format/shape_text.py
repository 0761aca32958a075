"""Demand in one line: ``2Gi``, ``8Gi over 2s``, ``512Mi + 64Mi per minute``.

    shape  = term { ("+" | "-") term }
    term   = amount                                   constant
           | amount "at" time                         from then on
           | amount "over" duration [ "at" time ]     growing to that, from then on
           | amount "per" duration [ "at" time ] [ "up to" amount ]    growing at that rate, without end or to a ceiling

Amounts are Kubernetes quantities, durations are Go's (``1m30s``), days (``7d``) or a word (``minute``). A rate counts
from the start of the container, everything else from the start of the scenario. ``shape_document`` reads longer forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.times import parse_duration_us
from podqos.model.quantity import Quantity
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.scenario_format.shapes import leak, ramp, steps, total

EXAMPLES = "such as 2Gi, 8Gi over 2s, 512Mi + 64Mi per minute"


class Unit(StrEnum):
    """What an amount counts."""

    WHOLE = "whole"
    """Bytes; fractions are rounded up."""
    COUNT = "count"
    """Inodes, processes; there are no fractions of one."""
    MILLI = "milli"
    """Thousandths of a cpu."""

    def of(self, quantity: Quantity) -> int:
        """Return an amount in this unit; raise ``InputError`` if there is no such amount."""
        if self is Unit.COUNT and quantity != Quantity.of_units(quantity.value):
            raise InputError(
                f"{quantity.milli_value / 1000:g} is not a whole number", fix=f"for example {quantity.value}"
            )
        return self.rounded(quantity)

    def rounded(self, quantity: Quantity) -> int:
        """Return an amount in this unit, rounded up, as measurements need it."""
        return quantity.milli_value if self is Unit.MILLI else quantity.value


class Term(Struct, frozen=True, gc=False):
    """One part of a shape."""

    amount: Quantity
    is_taken_off: bool = False
    at_us: int = 0
    over_us: int | None = None
    per_us: int | None = None
    up_to: Quantity | None = None

    def curve(self, unit: Unit, duration_us: int) -> Curve:
        """Return the term as a curve for a run of that duration."""
        if unit is Unit.WHOLE and self.amount and self.amount < Quantity.of_units(1):
            raise InputError(f"{self.amount} is less than one byte", fix="check the unit: Mi, not m")
        amount = -unit.of(self.amount) if self.is_taken_off else unit.of(self.amount)
        if self.per_us is not None:
            up_to = None if self.up_to is None else unit.of(self.up_to)
            return leak(amount, self.per_us, self.at_us, up_to=up_to, until_us=duration_us)
        if self.over_us is not None:
            return ramp(amount, self.over_us, self.at_us)
        return steps([(0, 0), (self.at_us, amount)]) if self.at_us else constant(amount)


def shape_curve(terms: tuple[Term, ...], unit: Unit, duration_us: int) -> Curve:
    """Return a shape as a curve for a run of that duration."""
    return total(term.curve(unit, duration_us) for term in terms)


def parse_shape(text: str) -> tuple[Term, ...]:
    """Read a shape; raises ``InputError``."""
    # A sign between blanks is between terms; quantities such as 1e-3 have none.
    parts = re.split(r"\s+([+-])\s+", text.strip())
    signs = ["+", *parts[1::2]]
    return tuple(_term(part, is_taken_off=sign == "-") for part, sign in zip(parts[::2], signs, strict=True))


def parse_amount(text: object) -> Quantity:
    """Read an amount that is not below zero."""
    written = _written(text, "an amount", EXAMPLES)
    try:
        quantity = Quantity.parse(written)
    except InvalidQuantity as error:
        raise InputError(f'"{written}" is not a quantity: {error.what}', fix=error.fix or EXAMPLES) from None
    if quantity.sign < 0:
        raise InputError(f"{written} is below zero", fix="write 0 or more")
    return quantity


def _written(value: object, what: str, examples: str) -> str:
    """Return a scalar as written."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"must be {what}", fix=examples)
    return str(getattr(value, "text", value)).strip()


def _term(text: str, *, is_taken_off: bool) -> Term:
    words = _Words(text)
    amount = parse_amount(words.next("an amount"))
    over_us = per_us = up_to = None
    at_us = 0
    for word in words:
        if word == "over" and over_us is per_us is None:
            over_us = parse_duration_us(words.next("a duration"))
        elif word == "per" and over_us is per_us is None:
            per_us = parse_duration_us(words.next("a duration"))
        elif word == "at" and not at_us:
            at_us = parse_duration_us(words.next("a time"))
        elif word == "up" and per_us is not None and up_to is None and words.next("to") == "to":
            up_to = parse_amount(words.next("an amount"))
        else:
            raise InputError(f'"{word}" is not expected in "{text}"', fix=EXAMPLES)
    if per_us is not None and is_taken_off:
        raise InputError("a rate cannot be subtracted", fix="give it a ceiling: 64Mi per minute up to 2Gi")
    if per_us is not None and (per_us == 0 or not amount):
        raise InputError(f'"{text}" never grows', fix=EXAMPLES)
    return Term(amount, is_taken_off, at_us, over_us, per_us, up_to)


class _Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = iter(text.split())

    def __iter__(self) -> Iterator[str]:
        return self._words

    def next(self, what: str) -> str:
        """Return the next word, which must be there."""
        word = next(self._words, None)
        if word is None:
            raise InputError(f'{what} is missing in "{self._text}"', fix=EXAMPLES)
        return word
