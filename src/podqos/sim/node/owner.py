"""What a node's world needs of the node it belongs to: a clock, answers, and somebody who hears of things."""

from __future__ import annotations

from typing import Protocol

from podqos.agent.events import Event
from podqos.agent.journal import Kind
from podqos.agent.reasons import Because, WouldEvict
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.sim.engine.event_queue import Action, EventPriority
from podqos.sim.node.pods import DemandOf, SimContainer


class Owner(Protocol):
    """Whom a node's world asks and tells."""

    @property
    def now_us(self) -> int:
        """The time."""

    def plan(self, time_us: int, priority: EventPriority, action: Action) -> None:
        """Let something happen later."""

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""

    def memory_request(self, pod: Pod) -> Quantity:
        """Return the memory that usage is held against when pods are ranked."""

    def would_evict(self) -> WouldEvict | None:
        """Say whom the kubelet would evict now."""

    def report(self, event: Event) -> None:
        """Hear of what came of a command later on."""

    def note(self, kind: Kind, because: Because | None, pod: str | None, container: str | None) -> None:
        """Hear of what the kernel did."""

    def ended(self, container: SimContainer, exit_code: int, *, oom_killed: bool) -> None:
        """Hear that a container has ended by itself, or was killed."""

    def alarm(self, now_us: int) -> None:
        """Hear that the eviction loop might see something."""

    def notified(self, now_us: int) -> None:
        """Hear that memory has crossed a level that the agent asked for."""

    def left(self, pod: Pod, *, rejected: bool = False) -> None:
        """Hear that a pod does not run any more, or never did."""

    def condition(self, condition: NodeCondition, *, holds: bool) -> None:
        """Hear of a condition of the node."""

    def lost(self, now_us: int) -> None:
        """Hear that the machine has died."""
