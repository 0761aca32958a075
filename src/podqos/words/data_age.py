"""How old the data of a followed cluster is, in words."""

from __future__ import annotations

from podqos.model.data_age import DataAge


def data_age_sentence(age: DataAge) -> str:
    """Return how old objects and usage are and, if they are not renewed, why."""
    usage = "usage has not been read" if age.usage_seconds is None else f"usage is {age.usage_seconds:.0f} s old"
    ages = f"objects are {age.objects_seconds:.0f} s old, {usage}"
    return f"Out of date: {ages} ({age.trouble})." if age.trouble else f"{ages[0].upper()}{ages[1:]}."
