"""Resizing a pod in place: its requests and limits change while its containers run.

The kubelet first allocates what is asked for, as if the pod were admitted anew next to the others: node pressure and
the requests of other pods can defer that. Deferred resizes are tried again when a pod is gone, when another pod is
resized, and every three minutes; those that increase no request come first, then the higher priority, Guaranteed
before others, and the one that has waited longest. Then the cgroups are written. A memory limit that is not above what
is in use is not written: that is tried again with the next sync of the pod, after ten seconds. A container whose
``resizePolicy`` says so is stopped, and started with its new resources. The OOM score of a running container stays.

Source: Kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize, retryPendingResizes,
sortPendingResizes), handlers.go (podResizesAdmitHandler), pkg/kubelet/kuberuntime/kuberuntime_manager.go
(computePodResizeAction, validateMemoryResizeAction), pkg/kubelet/pod_workers.go (completeWork: back-off after an error;
its jitter of up to half is left out). A resize of a critical pod preempts no other pod here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from podqos.agent import pods
from podqos.agent.admission import refusal
from podqos.agent.commands import KillContainer, ResizePod
from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ResizedTo, ResizePending, ResizeStatus
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import ContainerStage, PendingResize, PodRecord, Stage
from podqos.agent.turn import Turn
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_settings import SwapBehavior

RETRY_SECONDS = 180
"""How often deferred resizes are tried again (retryDelay)."""
ACTUATION_RETRY_SECONDS = 10
"""When a pod whose cgroups could not be written is synced again (backOffPeriod)."""
_SWAPS = "In-place resize of containers with swap is not supported."
_ALIVE = (Stage.STARTING, Stage.RUNNING)


def resize(turn: Turn, uid: str, pod: Pod) -> None:
    """Begin to resize a pod; a resize that is still pending is replaced."""
    record = turn.state.pods.get(uid)
    if record is None or record.stage not in _ALIVE:
        return
    others = tuple(pending for pending in turn.state.resizes if pending.uid != uid)
    turn.change(resizes=(*others, PendingResize(uid, pod, turn.now_us)))
    retry(turn)


def retry(turn: Turn) -> None:
    """Try all resizes that are not allocated yet, in their order."""
    for pending in sorted(turn.state.resizes, key=lambda pending: _place(turn, pending)):
        record = turn.state.pods.get(pending.uid)
        if record is None or record.stage not in _ALIVE:
            _drop(turn, pending.uid)
        elif not pending.is_allocated:
            _allocate(turn, record, pending)


def woken(turn: Turn) -> None:
    """Try again what is due."""
    due = [pending for pending in turn.state.resizes if pending.wake_us is not None and pending.wake_us <= turn.now_us]
    for pending in due:
        record = turn.state.pods.get(pending.uid)
        if record is None or record.stage not in _ALIVE:
            _drop(turn, pending.uid)
        elif pending.is_allocated:
            _actuate(turn, record, pending)
    if any(not pending.is_allocated for pending in due):
        retry(turn)


def actuated(turn: Turn, uid: str, refused: str) -> None:
    """Take note that the cgroups of a pod were written, or why they were not."""
    record = turn.state.pods.get(uid)
    pending = next((pending for pending in turn.state.resizes if pending.uid == uid), None)
    if record is None or pending is None:
        return
    if refused:
        wake_us = turn.now_us + ACTUATION_RETRY_SECONDS * SECOND_US
        _put(turn, _told(turn, record, replace(pending, wake_us=wake_us), ResizeStatus.IN_PROGRESS, refused))
        return
    _drop(turn, uid)
    turn.note(Kind.RESIZED, pod=record.pod.key, because=ResizedTo(_resources(record.pod)))


def ended(turn: Turn, uid: str, container: str) -> None:
    """Write the cgroups of a pod when the last container has ended that is restarted for it."""
    for pending in turn.state.resizes:
        if pending.uid == uid and container in pending.awaits:
            left = tuple(name for name in pending.awaits if name != container)
            _put(turn, replace(pending, awaits=left))
            if not left:
                _actuate(turn, turn.state.pods[uid], replace(pending, awaits=()))


def too_low(limits: Mapping[str, int], usage: Mapping[str, int]) -> str:
    """Return why memory limits cannot be written, by container and by ``""`` for the pod: they are not above usage.

    ``limits`` has only those that are new or lower than before. The empty text: they can.
    """
    messages = [
        f"attempting to set {f'container {name!r}' if name else 'pod'} memory limit ({limit}) below current usage "
        f"({usage[name]})".replace("'", '"')
        for name, limit in sorted(limits.items())
        if usage.get(name, 0) >= limit
    ]
    return messages[0] if messages else ""


def _allocate(turn: Turn, record: PodRecord, pending: PendingResize) -> None:
    config, state, pod = turn.config, turn.state, pending.pod
    plan = config.plan_of(pod)
    may_swap = config.cgroups.swap_behavior is not SwapBehavior.NO_SWAP and plan.qos_class is QOSClass.BURSTABLE
    if may_swap and _changes_memory_request(record.pod, pod):
        _drop(turn, pending.uid)
        turn.note(Kind.RESIZE_PENDING, pod=pod.key, because=ResizePending(ResizeStatus.INFEASIBLE, _SWAPS))
        return
    others = {uid: other for uid, other in state.pods.items() if uid != pending.uid}
    requested = {name: amount - record.requests.get(name, 0) for name, amount in state.requested.items()}
    refused = refusal(config, replace(state, pods=others, requested=requested), pod, plan.requests)
    if refused is not None:
        wake_us = turn.now_us + RETRY_SECONDS * SECOND_US
        _put(turn, _told(turn, record, replace(pending, wake_us=wake_us), ResizeStatus.DEFERRED, refused.message))
        return
    allocated = pods.resized(turn, record, pod, plan)
    stopped = _restarted(record, pod)
    pending = replace(pending, is_allocated=True, wake_us=None, awaits=stopped)
    if not stopped:
        _actuate(turn, allocated, pending)
        return
    _put(turn, pending)
    turn.ask(*(KillContainer(pod, name, grace_seconds_of(pod)) for name in stopped))


def _actuate(turn: Turn, record: PodRecord, pending: PendingResize) -> None:
    _put(turn, pending)
    own, containers = pods.cgroups_of(turn, record)
    turn.ask(ResizePod(record.pod, own, containers))


def _told(turn: Turn, record: PodRecord, pending: PendingResize, status: ResizeStatus, message: str) -> PendingResize:
    """Write why a resize waits, unless that was written before."""
    if pending.told != status:
        turn.note(Kind.RESIZE_PENDING, pod=record.pod.key, by=By.KUBELET, because=ResizePending(status, message))
    return replace(pending, told=status)


def _put(turn: Turn, pending: PendingResize) -> None:
    others = tuple(other for other in turn.state.resizes if other.uid != pending.uid)
    turn.change(resizes=(*others, pending))


def _drop(turn: Turn, uid: str) -> None:
    turn.change(resizes=tuple(pending for pending in turn.state.resizes if pending.uid != uid))


def _place(turn: Turn, pending: PendingResize) -> tuple[bool, int, bool, int]:
    record, pod = turn.state.pods.get(pending.uid), pending.pod
    plan = turn.config.plan_of(pod)
    before: Mapping[str, int] = {} if record is None else record.requests
    increases = any(plan.requests.get(name, 0) > before.get(name, 0) for name in (CPU, MEMORY))
    return increases, -(pod.spec.priority or 0), plan.qos_class is not QOSClass.GUARANTEED, pending.since_us


def _every(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.containers
    yield from pod.spec.init_containers


def _changes_memory_request(before: Pod, after: Pod) -> bool:
    return any(
        one.resources.requests.get(MEMORY, ZERO) != other.resources.requests.get(MEMORY, ZERO)
        and not one.restarts_for(MEMORY)
        for one, other in zip(_every(before), _every(after), strict=True)
    )


def _restarted(record: PodRecord, after: Pod) -> tuple[str, ...]:
    """Return the running containers that a change of their resources restarts."""
    running = {known.plan.name for known in record.containers if known.stage is ContainerStage.RUNNING}
    return tuple(
        other.name
        for one, other in zip(_every(record.pod), _every(after), strict=True)
        if other.name in running
        and any(
            other.restarts_for(resource) and _of(one, resource) != _of(other, resource) for resource in (CPU, MEMORY)
        )
    )


def _of(container: Container, resource: str) -> tuple[object, object]:
    return container.resources.requests.get(resource), container.resources.limits.get(resource)


def _resources(pod: Pod) -> dict[str, dict[str, str]]:
    return {
        container.name: {
            **{f"requests.{name}": str(amount) for name, amount in container.resources.requests.items()},
            **{f"limits.{name}": str(amount) for name, amount in container.resources.limits.items()},
        }
        for container in _every(pod)
    }
