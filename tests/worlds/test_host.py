from __future__ import annotations

import sys

import pytest

from host.machine import Machine, Share, needs_node
from podqos.model.pod import Pod
from worlds.contract import WorldContract

# It ends with the code that the file in its directory says, once there is one, and takes 16 MiB for another.
_CODE = """
import os, sys, time
home, kept = os.environ["HOME"], []
while True:
    try:
        sys.exit(int(open(home + "/end").read()))
    except (FileNotFoundError, ValueError):
        time.sleep(0.01)
    if not kept and os.path.exists(home + "/grow"):
        kept.append(b"x" * (16 << 20))
"""


class HostStage:
    """The real machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.cgroups = machine.share.settings

    def pod(self, name: str) -> Pod:
        return self.machine.pod(name, sys.executable, "-I", "-S", "-c", _CODE)

    def _folder(self, pod: Pod):
        return self.machine.world.pods[pod.metadata.uid].runs["main"].start.folder

    def grow(self, pod: Pod):
        (self._folder(pod) / "grow").touch()
        return []

    def end(self, pod: Pod, exit_code: int):
        folder = self._folder(pod)
        partial = folder / "end.new"
        partial.write_text(str(exit_code))
        partial.rename(folder / "end")
        return []

    def settle(self, seconds: float):
        return self.machine.settle(seconds)


@needs_node
@pytest.mark.slow
class TestHostWorld(WorldContract):
    patience_seconds = 60

    @pytest.fixture
    def stage(self):
        share = Share()
        machine = Machine(share)
        try:
            yield HostStage(machine)
        finally:
            machine.close()
            share.close()
