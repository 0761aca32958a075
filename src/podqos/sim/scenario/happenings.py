"""What happens in a scenario at stated times, to machines and to workloads."""

from __future__ import annotations

from msgspec import Struct

from podqos.controllers.drain import DrainSettings


class NodeLost(Struct, frozen=True, gc=False, tag=True):
    """A machine is lost, with everything that ran on it."""

    at_us: int
    node: str


class NodeAdded(Struct, frozen=True, gc=False, tag=True):
    """A machine joins, for the first time or again; pods that are still bound to it start anew."""

    at_us: int
    node: str


class Cordoned(Struct, frozen=True, gc=False, tag=True):
    """A machine takes no more pods, or takes them again."""

    at_us: int
    node: str
    takes_pods: bool = False


class Drained(Struct, frozen=True, gc=False, tag=True):
    """A machine is cordoned, and its pods are evicted through the API."""

    at_us: int
    node: str
    settings: DrainSettings = DrainSettings()


Happening = NodeLost | NodeAdded | Cordoned | Drained
