"""The simulated node keeps the contract of worlds."""

from __future__ import annotations

import pytest

from eviction.nodes import pod
from podqos.agent.port import ContainerExited, MemoryNotified
from podqos.model.pod import Pod
from podqos.model.profile import LATEST
from podqos.model.quantity import ZERO
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import constant
from podqos.sim.engine.event_queue import LAST_TURN, EventQueue
from podqos.sim.node.running import exited, grow
from podqos.sim.node.settings import node_settings
from podqos.sim.node.world import NodeWorld
from podqos.sim.scenario.scenario import Options
from sim.worlds import MI, node, using
from worlds.contract import WorldContract


class SimStage:
    """A node's world by itself: outcomes take a second, and what it reports is kept for the test."""

    sleepers = None

    def __init__(self) -> None:
        self.queue = EventQueue(10**12)
        self.reported = []
        settings = node_settings(node(), LATEST, None)
        self.cgroups = settings.agent.cgroups
        options = Options(container_start_us=SECOND_US, container_stop_us=SECOND_US, clean_up_us=SECOND_US)
        self.world = NodeWorld("n", settings, options, self)

    # ---- what the world asks and tells -----------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        return self.queue.now_us

    def plan(self, time_us, priority, action, turn=LAST_TURN) -> None:
        self.queue.plan(time_us, 0, priority, action, turn)

    def demand_of(self, _: Pod):
        return lambda _: using(5 * MI)

    def memory_request(self, _: Pod):
        return ZERO

    def report(self, event) -> None:
        self.reported.append(event)

    def ended(self, container, exit_code, *, oom_killed) -> None:
        self.reported.append(ContainerExited(container.pod.uid, container.name, exit_code, oom_killed, self.now_us))

    def alarm(self, now_us: int) -> None:
        """No loop has to look."""

    def notified(self, _: int) -> None:
        self.reported.append(MemoryNotified())

    def condition(self, condition, *, holds: bool) -> None:
        """Nobody asks for it."""

    def left(self, pod: Pod, *, rejected: bool = False) -> None:
        """Nobody replaces it."""

    # ---- what the contract asks ------------------------------------------------------------------------------------

    def pod(self, name: str) -> Pod:
        return pod(name)

    def end(self, pod: Pod, exit_code: int):
        exited(self.world, self.world.pods[pod.metadata.uid].containers["main"], exit_code)
        return ()

    def grow(self, pod: Pod):
        container = self.world.pods[pod.metadata.uid].containers["main"]
        grow(self.world, container, constant(container.anon_bytes(self.now_us) + 16 * MI), self.now_us)
        return ()

    def settle(self, seconds: float):
        until_us = self.now_us + int(seconds * SECOND_US)
        while self.queue.next is not None and self.queue.next[0] <= until_us:
            self.queue.step()
        self.queue.now_us = until_us
        reported, self.reported = self.reported, []
        return reported


class TestSimulatedNode(WorldContract):
    @pytest.fixture
    def stage(self):
        return SimStage()
