"""The rules by which an answer counts as equal to upstream's.

Every key of ``expected`` must be there and equal; more keys are welcome; a missing key equals an empty value. Amounts
that upstream itself computes with a 64-bit overflow are marked as quirks and skipped. Texts are compared when asked.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

QUIRKS = {"value": "valueIsQuirk", "milliValue": "milliValueIsQuirk"}
TEXTS = {"error", "admissionError", "annotation", "message", "eventAnnotations", "podCondition"}
ERRORS = {"error", "admissionError"}


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
    return None if expected == got else f"{where}: expected {expected!r}, got {got!r}"


def _key_difference(expected: dict, got: dict, key: str, *, texts: bool, where: str) -> str | None:
    value, place = expected[key], f"{where}.{key}"
    if key in QUIRKS.values() or expected.get(QUIRKS.get(key, "")):
        return None
    if key in TEXTS and not texts:
        missing = key in ERRORS and value and not got.get(key)
        return f"{place}: expected an error" if missing else None
    if key == "validation" and not texts:
        return difference(_counts(value), _counts(got[key]), where=place)
    if key not in got:
        return None if value in (None, [], {}, "", False) else f"{place}: missing, expected {value!r}"
    return difference(value, got[key], texts=texts, where=place)


def _counts(validation: list[dict[str, list[str]]]) -> list[int]:
    return [len(entry["errors"]) for entry in validation]


def _first(differences) -> str | None:
    return next((found for found in differences if found), None)
