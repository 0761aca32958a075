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


class Cordoned(Struct, frozen=True, gc=False, tag=True):
    """A machine takes no more pods, or takes them again."""

    at_us: int
    node: str
    takes_pods: bool = False


class Drained(Struct, frozen=True, gc=False, tag=True):
    """A machine is cordoned, and its pods are evicted through the API."""

    at_us: int
    node: str


class NodeDeleted(Struct, frozen=True, gc=False, tag=True):
    """The Node object of a lost machine is deleted: nothing is left of its pods after a while."""

    at_us: int
    node: str


class OutOfService(Struct, frozen=True, gc=False, tag=True):
    """A lost machine is marked out of service: its pods are deleted, and nobody waits for a kubelet to confirm it."""

    at_us: int
    node: str


Happening = NodeLost | NodeAdded | Cordoned | Drained | NodeDeleted | OutOfService
