"""Invariants of a simulated node that hold after every event.

They check the simulator itself: tests run them after each event, users with ``podqos simulate --check``.
"""

from __future__ import annotations

from podqos.agent.state import Stage
from podqos.kernel.cgroup import ROOT
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.node import SimNode


def check_node(node: SimNode, now_us: int, *, settled: bool = True) -> None:
    """Assert the invariants of one node. ``settled`` is False while other events of this moment are still to come."""
    _memory_is_conserved(node, now_us)
    _nothing_is_negative(node, now_us)
    _bookkeeping_is_right(node)
    _who_ended_holds_nothing(node, now_us)
    if settled:
        _limits_hold(node, now_us)


def _memory_is_conserved(node: SimNode, now_us: int) -> None:
    memory = node.world.memory
    sums: dict[str, int] = {}
    for container in memory.running.values():
        held = sum(want.fine(now_us) for want in container.memory)
        for group in container.groups:
            sums[group.path] = sums.get(group.path, 0) + held
    for pod in memory.keeping.values():
        held = sum(want.fine(now_us) for want in pod.kept.values())
        for group in pod.group.chain():
            sums[group.path] = sums.get(group.path, 0) + held
    sums[ROOT] = sums.get(ROOT, 0) + sum(want.fine(now_us) for want in memory.system.values())
    for path, group in memory.groups.items():
        if group.gauge is not None and not _is_left_out(node, path):
            counted = group.gauge.fine(now_us)
            assert counted == sums.get(path, 0), f"{node.name}{path}: {counted} counted, {sums.get(path, 0)} held"
    kept = sum(pod.kept_bytes(now_us) for pod in memory.keeping.values())
    working = kept + sum(container.working_set_bytes(now_us) for container in memory.running.values())
    counted = node.world.pods_working_set.at(now_us)
    assert 0 <= counted - working <= 3 * len(memory.running), "the working set is the sum of its parts"
    for pod in node.world.pods.values():
        own = pod.kept_bytes(now_us) + sum(container.working_set_bytes(now_us) for container in pod.running)
        counted = pod.working_set_bytes(now_us)
        assert 0 <= counted - own <= 3 * len(pod.containers), f"{pod.key}: {counted} in its working set, {own} held"


def _is_left_out(node: SimNode, path: str) -> bool:
    """Whether a cgroup is the pod's of a single container, whose sum is not kept a second time."""
    return any(pod.group.path == path and pod.counts_once for pod in node.world.pods.values())


def _nothing_is_negative(node: SimNode, now_us: int) -> None:
    world = node.world
    for container in world.memory.running.values():
        for want in (*container.memory, *container.disk.values()):
            assert want.fine(now_us) >= 0, f"{container.path} holds less than nothing"
            assert want.debt >= 0, f"{container.path} was given something back"
    for filesystem in world.disks.filesystems.values():
        for supply in filesystem.values():
            assert supply.gauge.fine(now_us) >= 0, f"{supply.resource} is used less than not at all"


def _limits_hold(node: SimNode, now_us: int) -> None:
    memory = node.world.memory
    for group in memory.groups.values():
        if group.gauge is not None and group.limit_bytes is not None and group.mark is not None:
            over = group.gauge.fine(now_us) >= (group.limit_bytes + 1) << FRACTION_BITS
            assert not over, f"{group.path} holds more than its limit"
    least = memory.machine.watermarks.min_bytes
    assert memory.free_bytes(now_us) >= least, "less is free than the kernel's minimum"


def _bookkeeping_is_right(node: SimNode) -> None:
    state = node.state
    requested: dict[str, int] = {}
    for record in state.pods.values():
        if record.is_active:
            for name, amount in record.requests.items():
                requested[name] = requested.get(name, 0) + amount
    counted = {name: amount for name, amount in state.requested.items() if amount}
    assert counted == {name: amount for name, amount in requested.items() if amount}, "requests are counted right"


def _who_ended_holds_nothing(node: SimNode, now_us: int) -> None:
    running = {container.path for container in node.world.memory.running.values()}
    for pod in node.world.pods.values():
        for container in pod.containers.values():
            assert container.is_running == (container.path in running), f"{container.path} both runs and does not"
            if not container.is_running:
                assert not container.usage_bytes(now_us), f"{container.path} has ended and holds memory"
    for uid, record in node.state.pods.items():
        if record.stage is Stage.STOPPED:
            assert uid not in node.world.pods or node.world.pods[uid].is_gone, f"{record.pod.key} stopped and runs"
