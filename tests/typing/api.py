"""Public API usage that must type-check (mypy reads this file; nothing runs it)."""

from __future__ import annotations

from podqos import Pod, Profile, Quantity


def larger(a: Quantity, b: Quantity) -> Quantity:
    """Quantities compare and add."""
    return max(a, b) if a != b else a + b


def name(pod: Pod, profile: Profile) -> str:
    """Values are plain attributes."""
    return f"{pod.key} under {profile.version}"
