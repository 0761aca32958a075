"""What a node's world needs from its node: a clock, answers to questions, and a receiver of events.

The seam between the two: a node has a world, and its world knows no more of it than this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from podqos.agent.journal import Kind
from podqos.agent.port import Event
from podqos.agent.reasons import Because, WouldEvict
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import Pod
from podqos.sim.engine.event_queue import LAST_TURN, Action, EventPriority
from podqos.sim.node.pods import DemandOf, SimContainer


class WorldOwner(Protocol):
    """The node that a world belongs to."""

    @property
    def now_us(self) -> int:
        """The time."""

    @property
    def images_ready_us(self) -> dict[str, int]:
        """By image: when the machine has it, or will have it."""

    def plan(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan an action."""

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""

    def would_evict(self, denied: Mapping[str, int]) -> WouldEvict | None:
        """Return which pod the kubelet would evict now; containers, by path, do not get what is denied to them."""

    def report(self, event: Event) -> None:
        """Take an event that a command led to later."""

    def note(self, kind: Kind, because: Because | None, pod: str | None, container: str | None) -> None:
        """Take note of what the kernel did."""

    def ended(self, container: SimContainer, exit_code: int, *, oom_killed: bool) -> None:
        """Take note that a container exited or was killed."""

    def alarm(self, now_us: int) -> None:
        """Take note that the eviction loop might see something."""

    def notified(self, now_us: int) -> None:
        """Take note that memory has crossed a level that the agent watches."""

    def left(self, pod: Pod, *, rejected: bool = False) -> None:
        """Take note that a pod no longer runs, or never did."""

    def condition(self, condition: NodeCondition, *, holds: bool) -> None:
        """Take note of a node condition."""

    def lost(self, now_us: int) -> None:
        """Take note that the machine has died."""
