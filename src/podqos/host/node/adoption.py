"""Taking over what runs: the pods of an agent that is gone, found again by three witnesses.

The state directory says which pods there should be, the runtime which of their containers run or how they ended, the
cgroup tree what else is there. What the runtime knows counts before what was written down: the agent may have been
killed between doing something and noting it. Who is in no record is ended, so that nothing runs twice and nothing is
left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.agent.events import ContainerExited, ContainerStarted, PodAdopted, PodDeleted, Remembered
from podqos.agent.state import ContainerStage
from podqos.host.runtimes.runtime import ContainerId, FoundContainer
from podqos.host.runtimes.shim_client import LOST_CODE
from podqos.host.storage.state import PodState
from podqos.qos.cgroup_paths import node_path

if TYPE_CHECKING:
    from podqos.host.node.node import Node

_ALIVE = (ContainerStage.STARTING, ContainerStage.RUNNING)


def adopt(node: Node) -> None:
    """Take over the pods of before; end what nobody remembers."""
    found: dict[str, list[FoundContainer]] = {}
    for each in node.runtime.containers():
        found.setdefault(each.id.uid, []).append(each)
    for stored in node.state.load():
        uid = stored.pod.metadata.uid
        there = found.pop(uid, [])
        if stored.is_gone and not any(each.exit_code is None for each in there):
            node.world.over[uid] = stored
            _discard(node, there)
            node.runtime.remove_sandbox(uid)
        else:
            _adopt_pod(node, stored, there)
    for uid, unknown in found.items():
        _discard(node, unknown)
        node.runtime.remove_sandbox(uid)
    _remove_strays(node)
    node.state.remove_data_except(node.driver.state.pods)


def _adopt_pod(node: Node, stored: PodState, there: list[FoundContainer]) -> None:
    uid = stored.pod.metadata.uid
    running = {each.id.name: each.id.attempt for each in there if each.exit_code is None}
    known = dict(stored.containers)
    for found in sorted(there, key=lambda found: found.id):
        before = known.get(found.id.name, Remembered())
        if found.id.attempt > before.restarts:
            # Started again, and perhaps ended, since the pod was last written down: it is told once more.
            known[found.id.name] = replace(before, stage="starting", restarts=found.id.attempt)
        elif found.exit_code is None:
            known[found.id.name] = replace(before, stage="running", restarts=found.id.attempt)
    node.driver.deliver(node.now_us(), PodAdopted(stored.pod, known))
    record = node.driver.state.pods[uid]
    assert record.cgroup_path is not None
    node.world.adopt(
        stored,
        record.cgroup_path,
        [each.plan for each in record.containers],
        [ContainerId(uid, name, attempt) for name, attempt in running.items()],
    )
    if stored.is_stopping or stored.is_over:
        # It is not to be started again, however it ended.
        _discard(node, [each for each in there if each.exit_code is not None])
        node.deliver(PodDeleted(uid))
        return
    codes = {each.id: each.exit_code for each in there}
    for each in record.containers:
        name = each.plan.name
        if each.stage is ContainerStage.STARTING and each.restarts:
            node.driver.deliver(node.now_us(), ContainerStarted(uid, name))
        if each.stage in _ALIVE and name not in running:
            code = codes.get(ContainerId(uid, name, each.restarts))
            node.driver.deliver(node.now_us(), ContainerExited(uid, name, LOST_CODE if code is None else code))
    _discard(node, [each for each in there if each.exit_code is not None])


def _discard(node: Node, containers: list[FoundContainer]) -> None:
    for each in containers:
        if each.cgroup is not None and each.exit_code is None:
            node.cgroups.kill(each.cgroup)
        node.runtime.remove(each.id)


def _remove_strays(node: Node) -> None:
    """Remove pod cgroups that belong to nobody, with what may be in them."""
    known = {record.cgroup_path for record in node.driver.state.pods.values()}
    kubepods = node_path(node.config.cgroups)
    for parent in (kubepods, f"{kubepods}/burstable", f"{kubepods}/besteffort"):
        for name in node.cgroups.children(parent):
            path = f"{parent}/{name}"
            if name.startswith("pod") and path not in known:
                node.cgroups.kill(path)
                node.cgroups.remove(path)
