"""What a controller is told, and what it can do.

A controller is called when its workload arrives, when the status of one of its pods changes, when a pod has ended and
when a node joins. It acts through the cluster: it creates and removes pods, and plans what it does later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because
from podqos.agent.state import PodRecord
from podqos.model.pod import Pod
from podqos.sim.cluster.control_plane import ControlPlane
from podqos.sim.cluster.fleet import Fleet
from podqos.sim.engine.event_queue import Action, EventQueue
from podqos.sim.scenario.replicas import Replica
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload

DELETED = "Deleted"
"""Why a pod ended that was removed because its workload, or its controller, no longer wants it."""
NODE_LOST = "NodeLost"
PREEMPTED = "Preempted"
DRAINED = "Drained"
"""Why a pod ended that was evicted through the API."""


class PodEnd(Struct, frozen=True, gc=False):
    """A pod that no longer runs, and that the cluster has forgotten."""

    pod: Pod
    replica: Replica
    node: str | None
    """Where it ran; None if it was pending."""
    why: str
    """Deleted, NodeLost, Preempted, Drained, Evicted, Rejected, Preempting, Succeeded, Failed."""
    record: PodRecord | None = None
    """What its kubelet last knew of it: exit codes and restarts of its containers."""


class Controller(Protocol):
    """Keeps the pods of one workload."""

    workload: ScenarioWorkload
    watches_status: bool
    """Whether it is called when the status of a pod changes."""
    waits_for_objects: bool
    """Whether a deleted pod counts until its object is gone, which on a lost node nobody confirms."""

    def begin(self, now_us: int) -> None:
        """Let the workload arrive: create its first pods."""

    def first_pods(self) -> Iterator[Pod]:
        """Yield the first pods if the scheduler places them."""

    def changed(self, pod: Pod, now_us: int) -> None:
        """Take note that containers of a pod have started, exited or restarted, or that it is ready."""

    def deleted(self, end: PodEnd, now_us: int) -> None:
        """Take note that someone else has deleted a pod, which still stops."""

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Take note that a pod no longer runs."""

    def node_joined(self, name: str, now_us: int) -> None:
        """Take note that a node has joined, for the first time or again."""

    def node_removed(self, name: str, now_us: int) -> None:
        """Take note that a node was removed for good; another may get its name."""


class ControlledCluster(Protocol):
    """What a controller knows of the cluster, and can do to it."""

    scenario: Scenario
    queue: EventQueue
    fleet: Fleet
    entries: list[Entry]
    control_plane: ControlPlane
    pods: dict[str, tuple[Pod, str | None]]
    """By uid: the pods that are there, and their nodes."""

    @property
    def unreachable_us(self) -> Mapping[str, int]:
        """By name of a lost node: when the control plane notices it."""

    def plan(self, time_us: int, action: Action) -> None:
        """Plan something for later."""

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""

    def need_all_nodes(self, pod: Pod) -> None:
        """Leave a shard: what follows from the end of a pod depends on pods of other nodes."""

    def announce(self, kind: Kind, by: By, because: Because) -> None:
        """Write a journal entry about a whole workload."""

    def watch(self, workload: ScenarioWorkload) -> None:
        """Call the controller of a workload from now on when the status of a pod changes."""

    def next_order(self) -> tuple[int, int]:
        """Return the place of the next pod in the order of creation."""

    def create(self, pod: Pod, replica: Replica, place: str | None = None) -> None:
        """Create a pod: the scheduler places it, unless it is bound to a node."""

    def remove(self, uid: str, why: str) -> None:
        """Delete a pod with its grace period; a pending one is gone at once."""

    def pods_of(self, workload: ScenarioWorkload) -> Iterable[tuple[Pod, str | None]]:
        """Return the pods of a workload and their nodes, in the order of creation, without those on idle nodes."""

    def record_of(self, uid: str) -> PodRecord | None:
        """Return what the kubelet knows of a pod; None before it has heard of it."""

    def uid_of(self, key: str) -> str:
        """Return the uid of a pod by its namespace and name."""

    def replica_of(self, uid: str) -> Replica:
        """Return where a pod comes from."""

    def why_removed(self, uid: str) -> str:
        """Return why a pod is being removed; empty if it is not."""

    def is_deleted(self, pod: Pod) -> bool:
        """Whether a pod that is still there has been deleted."""

    def await_pod(self, pod: Pod) -> None:
        """Count a pod that is gone as expected until it is replaced: disruption budgets do."""

    def replaced(self, pod: Pod) -> None:
        """No longer count it."""


def is_over(workload: ScenarioWorkload, now_us: int) -> bool:
    """Whether a workload has been deleted."""
    return workload.deleted_us is not None and now_us >= workload.deleted_us


def present_nodes(fleet: Fleet) -> Iterator[str]:
    """Yield the names of the nodes that are there."""
    return (name for name in fleet.names if fleet.is_present(name))
