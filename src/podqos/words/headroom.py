"""A node's headroom in words: how much is left until the kubelet evicts, and by which threshold."""

from __future__ import annotations

from podqos.eviction.signals import Signal
from podqos.survival.orders.exhaustion import SOFT
from podqos.survival.orders.headroom import Headroom
from podqos.wording import mebibytes


def headroom_sentence(headroom: Headroom | None) -> str:
    """Return what is left until the kubelet evicts, as a sentence."""
    if headroom is None:
        return "No memory threshold is set: the kubelet never evicts for memory."
    left, by = headroom.headroom_bytes, bound_by(headroom)
    if left >= 0:
        return f"{mebibytes(left)} headroom before eviction ({by})."
    return f"{mebibytes(-left)} past the eviction threshold ({by})."


def bound_by(headroom: Headroom) -> str:
    """Return the threshold that decides."""
    grace = f" for {headroom.grace_seconds:g} s" if headroom.type == SOFT else ""
    return f"{headroom.signal} < {mebibytes(headroom.threshold_bytes)}{grace}"


def briefly(headroom: Headroom | None) -> str:
    """Return what is unusual about the threshold that decides; empty where it is the hard one of memory.available."""
    if headroom is None:
        return ""
    if headroom.type == SOFT:
        return "soft"
    return "allocatable" if headroom.signal is Signal.ALLOCATABLE_MEMORY else ""
