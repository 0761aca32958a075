"""The agent's records of pods on disk: for the next agent, should this one be killed."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podqos.agent.driver import Driver
from podqos.agent.port import Remembered
from podqos.agent.state import ContainerRecord, PodRecord, Stage
from podqos.host.linux.notes import words
from podqos.host.node.world import HostWorld
from podqos.host.storage.state import PodState


class SavedRecords:
    """Saves what the agent knows of pods."""

    def __init__(self, world: HostWorld, driver: Driver, note: Callable[[str], None]) -> None:
        self._world, self._driver, self._note = world, driver, note
        self._saved: dict[str, PodRecord] = {}

    def save(self) -> None:
        """Save the pods that have changed."""
        world, records = self._world, self._driver.state.pods
        for uid, record in records.items():
            pod = world.pods.get(uid)
            if pod is None or self._saved.get(uid) is record:
                continue
            self._saved[uid] = record
            due = {restart.container: restart.wake_us for restart in self._driver.state.restarts if restart.uid == uid}
            changed = replace(
                pod.state,
                containers={
                    container.plan.name: _remembered(container, due.get(container.plan.name, 0))
                    for container in record.containers
                },
                is_stopping=record.stage in {Stage.STOPPING, Stage.STOPPED},
            )
            pod.state = changed
            self._save(changed, in_a_hurry=world.is_hurried)
        for uid in [uid for uid in self._saved if uid not in records]:
            del self._saved[uid]
        # Only now: if the agent is killed before it has reported that a pod is gone, the next one does.
        while world.gone:
            uid = world.gone.pop()
            if uid in world.over:
                self._save(world.over[uid])
            else:
                world.state.forget(uid)

    def _save(self, state: PodState, *, in_a_hurry: bool = False) -> None:
        try:
            self._world.state.save(state, in_a_hurry=in_a_hurry)
        except Exception as error:  # noqa: BLE001 - the other pods still count
            self._note(f"{state.pod.key}: its state cannot be saved: {words(error)}")


def _remembered(container: ContainerRecord, due_us: int) -> Remembered:
    return Remembered(
        container.stage.value,
        container.restarts,
        container.back_off_seconds,
        container.restarted_us,
        container.waited_seconds,
        container.exit_code,
        container.oom_killed,
        due_us,
    )
