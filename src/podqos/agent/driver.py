"""Connects the agent and a world: events go in, commands are carried out, the journal is written.

A driver has no clock. Its owner (the simulator's queue, the real node's loop) delivers events as they happen, and
``Woken`` at ``wake_us``.

A world provides figures and carries out commands. The simulator and the real node implement ``World``; that is all they
share. ``tests/worlds`` holds every world to the same contract:

- what is asked for is done in order, and an outcome is reported once: either in the answer to the command, or later
  as an event of its own (``Driver.deliver``);
- ``StartPod`` leads to ``PodStarted`` and ``StartContainer`` to ``ContainerStarted``; a container that ends without
  being asked to leads to ``ContainerExited``, as after ``KillContainer``, and the rest of its pod keeps running;
- ``EvictPod``, ``PreemptPod``, ``FailPod`` and ``StopPod`` lead to ``PodStopped`` within the grace period, and after
  ``RemoveCgroup`` to ``PodCleanedUp``;
- ``HoldPod`` has no answer of its own: a pod that still grows is stopped at once, others keep running;
- ``WatchMemory`` leads to ``MemoryNotified`` when memory crosses one of the last levels asked for. A world that cannot
  tell leaves it at that;
- ``CleanUpNode`` is done when ``carry_out`` returns, so that the next look shows what it gained;
- ``summary`` shows every pod that runs, under its uid, in the shape of the kubelet's ``/stats/summary``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from podqos.agent.agent import handle, idle_until_us, is_idle, skip_idle_passes, start
from podqos.agent.journal import Entry
from podqos.agent.port import Command, Event, LookAtNode, Observed
from podqos.agent.state import AgentConfig, AgentState, AgentStep
from podqos.eviction.signals import observe
from podqos.model.stats import Summary


class World(Protocol):
    """A node, simulated or real."""

    def summary(self, *, is_urgent: bool = False) -> Summary:
        """Return the statistics of node and pods, as fresh as possible; if urgent, memory is enough."""

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Carry out a command; return the events that are already known."""


class Driver:
    """One agent in one world."""

    def __init__(self, config: AgentConfig, world: World, write: Callable[[Entry], object]) -> None:
        self.config = config
        self.world = world
        self.state = AgentState()
        self._write = write

    def start(self, now_us: int, first_pass_us: int | None = None) -> None:
        """Set up the node; schedule the agent's first pass, by default immediately."""
        self._carry_on(now_us, start(self.config, now_us, first_pass_us))

    def skip_idle_passes(self, until_us: int) -> None:
        """Skip the passes before a time, if the agent is idle; the world knows that they would see nothing."""
        wake_us = self.state.loop.wake_us
        if wake_us is not None and wake_us < until_us and is_idle(self.state):
            self.state = skip_idle_passes(self.config, self.state, until_us)

    @property
    def due_us(self) -> int | None:
        """When an idle agent's first pass comes that does something even if it sees nothing."""
        if idle_until_us(self.config, self.state) is None:
            return None
        return skip_idle_passes(self.config, self.state, None).loop.wake_us

    def deliver(self, now_us: int, event: Event) -> None:
        """Deliver an event to the agent, and carry out its commands until there are no more."""
        self._carry_on(now_us, handle(self.config, self.state, now_us, event))

    @property
    def wake_us(self) -> int | None:
        """When the agent wants to be woken next."""
        return self.state.wake_us

    def _carry_on(self, now_us: int, step: AgentStep) -> None:
        waiting: deque[Event] = deque()
        while True:
            self.state = step.state
            for entry in step.entries:
                self._write(entry)
            for command in step.commands:
                waiting.extend(self._carry_out(command))
            if not waiting:
                return
            step = handle(self.config, self.state, now_us, waiting.popleft())

    def _carry_out(self, command: Command) -> Sequence[Event]:
        if isinstance(command, LookAtNode):
            return (Observed(observe(self.world.summary(is_urgent=command.is_urgent))),)
        return self.world.carry_out(command)
