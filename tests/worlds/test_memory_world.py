from __future__ import annotations

import pytest

from agent.memory_world import MemoryWorld
from eviction.nodes import pod
from podqos.model.pod import Pod
from podqos.qos.cgroup_settings import CgroupSettings
from worlds.contract import WorldContract


class MemoryStage:
    """The in-memory world of the agent's tests, with outcomes that take a second."""

    def __init__(self) -> None:
        self.world = MemoryWorld()
        self.world.stop_seconds = self.world.clean_up_seconds = 1
        self.cgroups = CgroupSettings(node_memory_bytes=1000 << 20)

    def pod(self, name: str) -> Pod:
        self.world.uses_mi[name] = 5
        return pod(name)

    def end(self, pod: Pod, exit_code: int):
        return [self.world.exit(pod.metadata.name, "main", exit_code)]

    def grow(self, pod: Pod):
        return self.world.grow(pod.metadata.name, 16)

    def settle(self, seconds: float):
        return self.world.settle(seconds)


class TestMemoryWorld(WorldContract):
    @pytest.fixture
    def stage(self):
        return MemoryStage()
