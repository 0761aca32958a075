"""What happens in a scenario at stated times, to machines and to workloads."""

from __future__ import annotations

from msgspec import Struct


class NodeLost(Struct, frozen=True, gc=False, tag=True):
    """A machine is lost, with everything that ran on it."""

    at_us: int
    node: str


class NodeAdded(Struct, frozen=True, gc=False, tag=True):
    """A machine joins, for the first time or again; pods that are still bound to it start anew."""

    at_us: int
    node: str


Happening = NodeLost | NodeAdded
