"""Adopts the running pods of an earlier agent, from three sources.

The state directory lists the pods, the runtime their running and ended containers, the cgroup tree everything else. The
runtime takes precedence over the records: the agent may have been killed between doing something and recording it. What
neither knows is killed before anything is started, so that nothing runs twice and nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.driver import Driver
from podqos.agent.port import ContainerExited, ContainerStarted, Event, PodAdopted, PodDeleted, Remembered
from podqos.agent.state import ContainerStage
from podqos.host.node.world import CLASSES, HostWorld
from podqos.host.runtimes.runtime import LOST_CODE, ContainerId, FoundContainer
from podqos.host.storage.state import PodState

_END_SECONDS = 2.0
_ALIVE = (ContainerStage.STARTING, ContainerStage.RUNNING)


class Adoption(Struct, frozen=True):
    """Adopts the pods of an earlier agent."""

    world: HostWorld
    driver: Driver
    now_us: Callable[[], int]
    deliver: Callable[[Event], None]
    """Deliver an event, with everything that follows from it."""

    def adopt(self) -> None:
        """Adopt the recorded pods; kill everything else."""
        world = self.world
        found: dict[str, list[FoundContainer]] = {}
        for container in world.runtime.containers():
            found.setdefault(container.id.uid, []).append(container)
        self._end_unknown(
            [container for containers in found.values() for container in containers if container.exit_code is None]
        )
        for stored in world.state.load():
            uid = stored.pod.metadata.uid
            there = found.pop(uid, [])
            if stored.is_gone and not any(container.exit_code is None for container in there):
                world.over[uid] = stored
                self._discard(there)
                world.runtime.remove_pod(uid)
            else:
                self._adopt_pod(stored, there)
        for uid, unknown in found.items():
            self._discard(unknown)
            world.runtime.remove_pod(uid)
        self._remove_strays()
        world.state.remove_data_except(self.driver.state.pods)

    def _adopt_pod(self, stored: PodState, there: list[FoundContainer]) -> None:
        uid = stored.pod.metadata.uid
        running = {container.id.name: container.id.attempt for container in there if container.exit_code is None}
        known = dict(stored.containers)
        for found in sorted(there, key=lambda found: found.id):
            before = known.get(found.id.name, Remembered())
            if found.id.attempt > before.restarts:
                # Restarted, and perhaps ended, since the pod was last saved: report it again.
                known[found.id.name] = replace(before, stage="starting", restarts=found.id.attempt)
            elif found.exit_code is None:
                known[found.id.name] = replace(before, stage="running", restarts=found.id.attempt)
        self._tell(PodAdopted(stored.pod, known, stored.started_us or None))
        record = self.driver.state.pods[uid]
        assert record.cgroup_path is not None
        self.world.adopt(
            stored,
            record.cgroup_path,
            [container.plan for container in record.containers],
            [ContainerId(uid, name, attempt) for name, attempt in running.items()],
        )
        ended = [container for container in there if container.exit_code is not None]
        if stored.is_stopping or stored.is_over:
            # It must not be restarted, however it ended.
            self._discard(ended)
            self.deliver(PodDeleted(uid))
            return
        codes = {container.id: container.exit_code for container in there if container.exit_code is not None}
        for container in record.containers:
            name = container.plan.name
            if container.stage is ContainerStage.STARTING and container.restarts:
                self._tell(ContainerStarted(uid, name))
            if container.stage in _ALIVE and name not in running:
                run = ContainerId(uid, name, container.restarts)
                self._tell(ContainerExited(uid, name, codes.get(run, LOST_CODE), is_lost=run not in codes))
        self._discard(ended)

    def _tell(self, event: Event) -> None:
        self.driver.deliver(self.now_us(), event)

    def _discard(self, containers: Iterable[FoundContainer]) -> None:
        for container in containers:
            if container.cgroup is not None and container.exit_code is None:
                self.world.cgroups.kill(container.cgroup)
            self.world.runtime.remove(container.id)

    def _end_unknown(self, running: Iterable[FoundContainer]) -> None:
        """End what the runtime does not know, before anything is started: its keeper may have been killed, too."""
        cgroups = self.world.cgroups
        known = {container.cgroup for container in running}
        pods = {path: [f"{path}/{name}" for name in cgroups.children(path)] for path in self._pod_cgroups()}
        strays = []
        for pod, containers in pods.items():
            unknown = [path for path in containers if path not in known]
            strays += unknown if len(unknown) < len(containers) else [pod]
        self.world.end_loose()
        for path in pods:
            cgroups.end_loose(path)
        cgroups.end(strays, _END_SECONDS)

    def _remove_strays(self) -> None:
        """Remove cgroups of unknown pods, with their processes."""
        known = {record.cgroup_path for record in self.driver.state.pods.values()}
        self.world.cgroups.end([path for path in self._pod_cgroups() if path not in known], _END_SECONDS)

    def _pod_cgroups(self) -> list[str]:
        """Return the cgroups of all pods in the tree."""
        kubepods = self.world.figures.kubepods
        return [
            f"{parent}/{name}"
            for parent in (kubepods, *(f"{kubepods}/{name}" for name in CLASSES))
            for name in self.world.cgroups.children(parent)
            if name.startswith("pod")
        ]
