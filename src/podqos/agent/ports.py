"""The interface between the agent and its world: a world provides figures and carries out commands.

The simulator and the real node implement ``World``; that is all they share. ``tests/worlds`` holds every world to the
same contract:

- what is asked for is done in order, and an outcome is reported once: either in the answer to the command, or later
  as an event of its own (``Driver.deliver``);
- ``StartPod`` leads to ``PodStarted`` and ``StartContainer`` to ``ContainerStarted``; a container that ends without
  being asked to leads to ``ContainerExited``, and the rest of its pod keeps running;
- ``EvictPod``, ``PreemptPod`` and ``StopPod`` lead to ``PodStopped`` within the grace period, and after
  ``RemoveCgroup`` to ``PodCleanedUp``;
- ``HoldPod`` has no answer of its own: a pod that still grows is stopped at once, others keep running;
- ``WatchMemory`` leads to ``MemoryNotified`` when memory crosses one of the last levels asked for. A world that cannot
  tell leaves it at that;
- ``CleanUpNode`` is done when ``carry_out`` returns, so that the next look shows what it gained;
- ``summary`` shows every pod that runs, under its uid, in the shape of the kubelet's ``/stats/summary``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podqos.agent.commands import Command
from podqos.agent.events import Event
from podqos.model.stats import Summary


class World(Protocol):
    """A node, simulated or real."""

    def summary(self, *, is_urgent: bool = False) -> Summary:
        """Return the figures of node and pods, as fresh as the world has them; urgently, memory is enough."""

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Do what is asked; return what is known to have come of it already."""
