"""A finding's patch in words: what to write, what that costs, and what to look up first."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.advice.checks.finding import Patch
from podqos.naming import stated_with

_NOT_TRIED = "not tried with this many objects: {} tries it"


def fix_words(patch: Patch) -> str:
    """Return what to write, a line for each edit, or what has to be chosen. What was not tried is not shown."""
    text = patch.text
    if patch.is_complete and not patch.is_tried:
        text = _NOT_TRIED.format(stated_with("only" if patch.on_request else "diff"))
    chosen_from = f"look up first: {patch.look_up}" if patch.look_up and not patch.is_complete else ""
    return "\n".join(filter(None, (text, patch.refuted, chosen_from)))


def cost_words(patch: Patch) -> str:
    """Return what the fix costs, a line for each cost; empty where it costs nothing."""
    lines = [cost.text for cost in patch.costs]
    if patch.look_up and patch.is_complete:
        lines.append(f"look up first: {patch.look_up}")
    return "\n".join(lines)


def alternative_words(patch: Patch) -> str:
    """Return what can be chosen instead, each with its costs; empty where there is nothing."""
    lines = []
    for alternative in patch.alternatives:
        lines += [alternative.text, *(f"costs: {cost.text}" for cost in alternative.costs)]
    return "\n".join(lines)


def patch_lines(patch: Patch) -> list[str]:
    """Return all of it, each part under its name: ``fix: …``, ``cost: …``, ``or: …``."""
    parts = {"fix": fix_words(patch), "cost": cost_words(patch), "or": alternative_words(patch)}
    return [f"{name}: {text}" for name, text in parts.items() if text]


def waiting_words(checks: Sequence[str], apply: str) -> str:
    """Return how many fixes, of these checks, the option ``apply`` leaves to a person unless they are named."""
    named = stated_with("only", ",".join(sorted(set(checks))))
    if len(checks) == 1:
        return f"1 fix needs your decision ({apply} {named} applies it)"
    return f"{len(checks):,} fixes need your decision ({apply} {named} applies them)"
