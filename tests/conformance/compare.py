"""The rules by which an answer counts as equal to upstream's.

Every key of ``expected`` must be there and equal; more keys are welcome; a missing key equals an empty value. Amounts
that upstream itself computes with a 64-bit overflow are marked as quirks and skipped. Texts are compared when asked.
Where upstream's answer depends on chance, ties may stand in any order and one of several alternatives must match.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

QUIRKS = {"value": "valueIsQuirk", "milliValue": "milliValueIsQuirk"}
TEXTS = {"error", "admissionError", "annotation", "message", "eventAnnotations", "podCondition"}
ERRORS = {"error", "admissionError"}
TOLERANCE = 1e-6


def vectors(family: str) -> list[dict[str, object]]:
    """Return the recorded lines of a family."""
    path = Path(__file__).with_name(f"{family}.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def difference(expected: object, got: object, *, texts: bool = False, where: str = "") -> str | None:
    """Return the first difference in words, or None when the answer counts as equal."""
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return f"{where}: expected an object, got {got!r}"
        return _first(_key_difference(expected, got, key, texts=texts, where=where) for key in expected)
    if isinstance(expected, list):
        if not isinstance(got, list) or len(expected) != len(got):
            return f"{where}: expected {expected!r}, got {got!r}"
        pairs = zip(expected, got, strict=True)
        return _first(difference(a, b, texts=texts, where=f"{where}[{i}]") for i, (a, b) in enumerate(pairs))
    return None if _same_value(expected, got) else f"{where}: expected {expected!r}, got {got!r}"


def _same_value(expected: object, got: object) -> bool:
    if isinstance(expected, float) and isinstance(got, int | float):
        return abs(expected - got) <= TOLERANCE * max(1, abs(expected))
    return expected == got


def _key_difference(expected: dict, got: dict, key: str, *, texts: bool, where: str) -> str | None:
    value, place = expected[key], f"{where}.{key}"
    if key in QUIRKS.values() or expected.get(QUIRKS.get(key, "")):
        return None
    if key in TEXTS and not texts:
        missing = key in ERRORS and value and not got.get(key)
        return f"{place}: expected an error" if missing else None
    if key == "possibleErrors":
        return None if got.get(key) else f"{place}: expected an error"
    if key == "order":
        return difference(_with_ties(value, expected), _with_ties(got.get(key, []), expected), where=place)
    if key == "tieGroups":
        return None
    if key == "actionAlternatives":
        found = [difference(alternative, got, texts=texts, where=place) for alternative in value]
        return None if None in found else found[0]
    if key == "validation" and not texts:
        return difference(_counts(value), _counts(got[key]), where=place)
    if key not in got:
        return None if value in (None, [], {}, "", False) else f"{place}: missing, expected {value!r}"
    return difference(value, got[key], texts=texts, where=place)


def _with_ties(order: list[str], expected: dict) -> list[str]:
    """Replace every name by its group of equals, so that order inside a group is free."""
    group = {name: f"tie {index}" for index, names in enumerate(expected.get("tieGroups", ())) for name in names}
    return [group.get(name, name) for name in order]


def _counts(validation: list[dict[str, list[str]]]) -> list[int]:
    return [len(entry["errors"]) for entry in validation]


def _first(differences) -> str | None:
    return next((found for found in differences if found), None)
