"""The life of a pod's containers: the order in which they start, and what happens when one ends.

Init containers run one after the other and must succeed; sidecars among them keep running; then the regular containers
run side by side. Containers that end are restarted according to the pod's ``restartPolicy``: first immediately, then
after 10 s, 20 s … 300 s, counted from the end; 10 minutes of running reset that. When no regular container is left to
run, the pod is finished. A restart rule may restart the whole pod (``restart_rules``): all other containers are killed
without a grace period, then all start as at the beginning, without back-off.

Sources: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, doBackOff),
kuberuntime_container.go (computeInitContainerActions), pkg/kubelet/container/helpers.go (ShouldContainerBeRestarted),
client-go/util/flowcontrol/backoff.go (IsInBackOffSince, Next), pkg/kubelet/kubelet.go (newCrashLoopBackOff).
A restart happens when it is due; upstream's own timers may be later.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from podqos.agent.commands import ContainerPlan, KillContainer, StartContainer
from podqos.agent.events import ContainerExited, Remembered
from podqos.agent.journal import Kind
from podqos.agent.reasons import ExitedWith, RestartedAfter
from podqos.agent.restart_rules import container_of, is_restarted, restarts_all
from podqos.agent.state import ContainerRecord, ContainerStage, Phase, PodRecord, Restart, Role, Stage
from podqos.agent.turn import Turn
from podqos.agent.unhealthy import FIRST_BACK_OFF_SECONDS, FORGOTTEN_AFTER_US, next_back_off, restarts
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US

_ALIVE = (ContainerStage.STARTING, ContainerStage.RUNNING)


def begun(pod: Pod, plans: Sequence[ContainerPlan]) -> tuple[ContainerRecord, ...]:
    """Return the containers of a pod that starts now; ``plans`` are in the pod's order, regular ones first."""
    spec = pod.spec
    regular, init = len(spec.containers), len(spec.init_containers)
    records = [
        *(
            ContainerRecord(plan, Role.SIDECAR if container.is_sidecar else Role.INIT)
            for plan, container in zip(plans[regular : regular + init], spec.init_containers, strict=True)
        ),
        *(ContainerRecord(plan, Role.REGULAR) for plan in plans[:regular]),
        *(ContainerRecord(plan, Role.EPHEMERAL) for plan in plans[regular + init :]),
    ]
    return tuple(_advanced(records))


def plans_in(record: PodRecord, stage: ContainerStage) -> tuple[ContainerPlan, ...]:
    """Return how to run the containers in a stage."""
    return tuple(container.plan for container in record.containers if container.stage is stage)


def all_started(record: PodRecord) -> PodRecord:
    """Return a running pod with its first containers."""
    return replace(
        record,
        stage=Stage.RUNNING,
        containers=tuple(
            replace(container, stage=ContainerStage.RUNNING)
            if container.stage is ContainerStage.STARTING
            else container
            for container in record.containers
        ),
    )


def started(turn: Turn, uid: str, name: str) -> None:
    """Record that a container runs, for the first time or again."""
    record = turn.state.pods.get(uid)
    index = None if record is None else _index(record, name)
    if record is None or index is None:
        return
    container = record.containers[index]
    if container.stage is not ContainerStage.STARTING:
        return
    if container.restarts:
        because = RestartedAfter(
            container.exit_code,
            container.restarts,
            container.waited_seconds,
            container.oom_killed,
            container.restarted_with_all,
        )
        turn.note(Kind.RESTARTED, pod=record.pod.key, container=name, because=because)
    else:
        turn.note(Kind.STARTED, pod=record.pod.key, container=name)
    turn.put(_with(record, index, replace(container, stage=ContainerStage.RUNNING)))
    if record.is_restarting and container.role is not Role.EPHEMERAL:
        turn.ask(KillContainer(record.pod, name))


def remember(turn: Turn, uid: str, known: Mapping[str, Remembered]) -> None:
    """Restore what is known about the containers of an adopted pod."""
    record = turn.state.pods[uid]
    turn.put(
        replace(
            record,
            containers=tuple(
                _remembered(container, known.get(container.plan.name, Remembered())) for container in record.containers
            ),
        )
    )
    restarts = list(turn.state.restarts)
    for name, remembered in known.items():
        if remembered.stage == ContainerStage.BACKING_OFF:
            insort(restarts, Restart(remembered.due_us, uid, name))
    turn.change(restarts=tuple(restarts))


def _remembered(container: ContainerRecord, known: Remembered) -> ContainerRecord:
    if not known.stage:
        return container
    return ContainerRecord(
        container.plan,
        container.role,
        ContainerStage(known.stage),
        known.restarts,
        known.back_off_seconds,
        known.restarted_us,
        known.waited_seconds,
        known.exit_code,
        known.oom_killed,
    )


def exited(turn: Turn, event: ContainerExited) -> Phase | None:
    """Handle the end of a container; return the phase of its pod if the pod has ended, too."""
    record = turn.state.pods.get(event.uid)
    index = None if record is None else _index(record, event.container)
    if record is None or index is None or not record.is_active or record.containers[index].stage not in _ALIVE:
        return None
    running = record.containers[index]
    finished_us = turn.now_us if event.finished_us is None else event.finished_us
    ended = replace(
        running,
        stage=ContainerStage.ENDED,
        exit_code=event.exit_code,
        oom_killed=event.oom_killed,
        finished_us=finished_us,
    )
    because = _exit(turn, record, ended, event)
    turn.note(Kind.EXITED, pod=record.pod.key, container=event.container, because=because, by=None)
    if record.stage not in {Stage.STARTING, Stage.RUNNING}:
        turn.put(_with(record, index, ended))
        return None
    if record.is_restarting:
        _go_on_restarting(turn, _with(record, index, ended))
        return None
    if running.is_unhealthy and restarts(record.pod, container_of(record.pod, ended), turn.config.profile):
        _restart_unhealthy(turn, record, index, running, replace(ended, is_unhealthy=False))
        return None
    if restarts_all(record.pod, ended, turn.config.profile):
        _restart_all(turn, _with(record, index, ended))
        return None
    if is_restarted(record.pod, ended, turn.config.profile):
        if event.is_lost:
            _restart(turn, record, index, replace(ended, waited_seconds=0))
            return None
        _put_off(turn, record, index, ended, finished_us)
        return None
    record = _with(record, index, ended)
    if ended.role is Role.INIT and ended.exit_code == 0:
        _go_on(turn, record)
        return None
    turn.put(record)
    return _phase(record)


def _exit(turn: Turn, record: PodRecord, ended: ContainerRecord, event: ContainerExited) -> ExitedWith:
    """Return how a container ended, and whether it is restarted."""
    profile = turn.config.profile
    return ExitedWith(
        event.exit_code,
        event.oom_killed,
        finished_us=None if event.finished_us == turn.now_us else event.finished_us,
        restarts=record.stage in {Stage.STARTING, Stage.RUNNING}
        and (
            (record.is_restarting and ended.role is not Role.EPHEMERAL)
            or (ended.is_unhealthy and restarts(record.pod, container_of(record.pod, ended), profile))
            or restarts_all(record.pod, ended, profile)
            or is_restarted(record.pod, ended, profile)
        ),
    )


def woken(turn: Turn) -> None:
    """Restart the containers that are due."""
    due = [restart for restart in turn.state.restarts if restart.wake_us <= turn.now_us]
    if not due:
        return
    turn.change(restarts=turn.state.restarts[len(due) :])
    for restart in due:
        record = turn.state.pods.get(restart.uid)
        index = None if record is None else _index(record, restart.container)
        if record is None or index is None or record.stage not in {Stage.STARTING, Stage.RUNNING}:
            continue
        container = record.containers[index]
        longer = min(2 * container.back_off_seconds, turn.config.longest_back_off_seconds)
        _restart(turn, record, index, replace(container, back_off_seconds=longer))


def _restart_unhealthy(
    turn: Turn, record: PodRecord, index: int, running: ContainerRecord, ended: ContainerRecord
) -> None:
    """Restart a container that was killed because a probe failed, at once or when its back-off is over."""
    assert ended.finished_us is not None
    back_off = next_back_off(ended, running.finished_us, turn.now_us, turn.config.longest_back_off_seconds)
    if back_off is None:
        _put_off(turn, record, index, ended, ended.finished_us)
        return
    is_counted = running.finished_us is not None
    again = replace(ended, back_off_seconds=back_off, waited_seconds=0)
    _restart(turn, record, index, again, counts=is_counted)


def _put_off(turn: Turn, record: PodRecord, index: int, ended: ContainerRecord, finished_us: int) -> None:
    """Restart a container now, or when its back-off is over."""
    is_stable = finished_us - ended.restarted_us > FORGOTTEN_AFTER_US
    if not ended.back_off_seconds or is_stable:
        first = min(FIRST_BACK_OFF_SECONDS, turn.config.longest_back_off_seconds)
        _restart(turn, record, index, replace(ended, back_off_seconds=first, waited_seconds=0))
        return
    due_us = max(turn.now_us, finished_us + ended.back_off_seconds * SECOND_US)
    waiting = replace(ended, stage=ContainerStage.BACKING_OFF, waited_seconds=ended.back_off_seconds)
    turn.put(_with(record, index, waiting))
    restarts = list(turn.state.restarts)
    insort(restarts, Restart(due_us, record.pod.metadata.uid, ended.plan.name))
    turn.change(restarts=tuple(restarts))


def _restart(turn: Turn, record: PodRecord, index: int, container: ContainerRecord, *, counts: bool = True) -> None:
    """Restart a container; ``counts`` is whether that moves its back-off."""
    again = replace(
        container,
        stage=ContainerStage.STARTING,
        restarts=container.restarts + 1,
        restarted_us=turn.now_us if counts else container.restarted_us,
        restarted_with_all=False,
    )
    turn.put(_with(record, index, again))
    turn.ask(StartContainer(record.pod, again.plan, again.restarts))


def _restart_all(turn: Turn, record: PodRecord) -> None:
    """Kill the remaining containers of a pod, to restart the whole pod."""
    uid = record.pod.metadata.uid
    turn.change(restarts=tuple(restart for restart in turn.state.restarts if restart.uid != uid))
    for container in record.containers:
        if container.stage is ContainerStage.RUNNING and container.role is not Role.EPHEMERAL:
            turn.ask(KillContainer(record.pod, container.plan.name))
    _go_on_restarting(turn, replace(record, is_restarting=True))


def _go_on_restarting(turn: Turn, record: PodRecord) -> None:
    """Restart a whole pod once nothing of it runs; ephemeral containers are left alone."""
    if any(container.stage in _ALIVE for container in record.containers if container.role is not Role.EPHEMERAL):
        turn.put(record)
        return
    again = tuple(
        container
        if container.role is Role.EPHEMERAL
        else replace(
            container,
            stage=ContainerStage.WAITING,
            restarts=container.restarts + (container.stage is not ContainerStage.WAITING),
            waited_seconds=0,
            restarted_with_all=True,
            is_unhealthy=False,
        )
        for container in record.containers
    )
    _go_on(turn, replace(record, containers=again, is_restarting=False))


def _go_on(turn: Turn, record: PodRecord) -> None:
    """Start the containers that an init container kept waiting."""
    after = tuple(_advanced(record.containers))
    turn.put(replace(record, containers=after))
    for before, now in zip(record.containers, after, strict=True):
        if now.stage is not before.stage:
            turn.ask(StartContainer(record.pod, now.plan, now.restarts))


def _advanced(containers: Sequence[ContainerRecord]) -> Iterator[ContainerRecord]:
    """Yield the containers, starting those that may: up to the first init container that has not finished."""
    blocked = False
    for container in containers:
        waits = container.stage is ContainerStage.WAITING
        yield replace(container, stage=ContainerStage.STARTING) if waits and not blocked else container
        blocked = blocked or (container.role is Role.INIT and container.stage is not ContainerStage.ENDED)


def _phase(record: PodRecord) -> Phase | None:
    """Return how a pod ends after the final end of a container; None if others still run."""
    if any(_failed_to_begin(container) for container in record.containers):
        return Phase.FAILED
    regular = [container for container in record.containers if container.role is Role.REGULAR]
    if any(container.stage is not ContainerStage.ENDED for container in regular):
        return None
    return Phase.FAILED if any(container.exit_code for container in regular) else Phase.SUCCEEDED


def _failed_to_begin(container: ContainerRecord) -> bool:
    return container.role is Role.INIT and container.stage is ContainerStage.ENDED and container.exit_code != 0


def _index(record: PodRecord, name: str) -> int | None:
    for index, container in enumerate(record.containers):
        if container.plan.name == name:
            return index
    return None


def _with(record: PodRecord, index: int, container: ContainerRecord) -> PodRecord:
    containers = record.containers
    return replace(record, containers=(*containers[:index], container, *containers[index + 1 :]))
