"""The life of a pod's containers: the order in which they start, and what happens when one ends or fails a probe.

Init containers run one after the other and must succeed; sidecars among them keep running; then the regular containers
run side by side. Containers that end are restarted according to the pod's ``restartPolicy``: first immediately, then
after 10 s, 20 s … 300 s, counted from the end; 10 minutes of running reset that. When no regular container is left to
run, the pod is finished. A restart happens when it is due; upstream's own timers may be later.

*Restart rules* match exit codes, and the first match counts: it restarts the container whatever the policy says, or the
whole pod (KEP-5307, since 1.35; KEP-5532, since 1.36): all other containers are killed without a grace period, then all
start as at the beginning, without back-off. Before that, only the pod has a policy; the default is ``Always``.

*Probes*: only as many equal answers in a row as the threshold says change the result. After a failed liveness probe,
and after either result of a startup probe, the worker waits for a new container. The count of equal answers survives a
restart of the container. The kubelet kills and restarts an unhealthy container in one go, so that its back-off is
checked against the end of the run *before* this one: the first time there is none and the container restarts at once,
without starting a back-off. Only if the time since that earlier end is shorter than the back-off does the container
wait, from now on like any other that has ended. When probes run is up to the world.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, SyncPod, doBackOff),
kuberuntime_container.go (computeInitContainerActions, setTerminationGracePeriod, killContainer), pkg/kubelet/container/
helpers.go (ShouldContainerBeRestarted), client-go/util/flowcontrol/backoff.go (IsInBackOffSince, Next),
pkg/kubelet/kubelet.go (newCrashLoopBackOff), prober/worker.go (newWorker, doProbe), status/status_manager.go
(SetContainerReadiness); v1.37.0-rc.1 pkg/api/v1/pod/util.go (ContainerShouldRestart, FindMatchingContainerRestartRule).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.port import (
    ContainerExited,
    ContainerPlan,
    KillContainer,
    ProbeFailed,
    ReadinessChanged,
    Remembered,
    StartContainer,
)
from podqos.agent.reasons import ExitedWith, ProbeKind, Readiness, RestartedAfter
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import ContainerRecord, ContainerStage, Phase, PodRecord, Restart, Role, Stage, Turn
from podqos.model.pod import RESTART_ALL_CONTAINERS, Container, Pod, Probe
from podqos.model.profile import Profile
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
    if running.is_unhealthy and is_restarted(record.pod, ended, turn.config.profile, failed_probe=True):
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
            or (ended.is_unhealthy and is_restarted(record.pod, ended, profile, failed_probe=True))
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
    is_stable = finished_us - ended.restarted_us > _FORGOTTEN_AFTER_US
    if not ended.back_off_seconds or is_stable:
        first = min(_FIRST_BACK_OFF_SECONDS, turn.config.longest_back_off_seconds)
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


_RESTART = "Restart"


def restarts_all(pod: Pod, ended: ContainerRecord, profile: Profile) -> bool:
    """Whether a rule restarts the whole pod."""
    if not profile.restart_all_containers:
        return False
    return _matching_action(container_of(pod, ended), ended.exit_code) == RESTART_ALL_CONTAINERS


def is_restarted(pod: Pod, ended: ContainerRecord, profile: Profile, *, failed_probe: bool = False) -> bool:
    """Whether a container that ended is restarted by itself; if a probe has failed, its exit code does not matter."""
    match ended.role:
        case Role.SIDECAR:
            return True
        case Role.EPHEMERAL:
            return False
        case Role.INIT if ended.exit_code == 0:
            return False
    policy = pod.spec.restart_policy or "Always"
    container = container_of(pod, ended)
    if container.restart_policy is not None and profile.container_restart_rules:
        if not failed_probe and _matching_action(container, ended.exit_code) == _RESTART:
            return True
        policy = container.restart_policy
    # For a failed init container, Always and OnFailure are the same.
    return policy == "Always" or (policy == "OnFailure" and (failed_probe or ended.exit_code != 0))


def _matching_action(container: Container, exit_code: int) -> str:
    """Return the action of the first rule that matches an exit code; empty if none does."""
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and (exit_code in codes.values) == (codes.operator == "In"):
            return rule.action
    return ""


def container_of(pod: Pod, ended: ContainerRecord) -> Container:
    """Return a container as its pod declares it."""
    every = (*pod.spec.containers, *pod.spec.init_containers, *pod.spec.ephemeral_containers)
    return next(container for container in every if container.name == ended.plan.name)


_FIRST_BACK_OFF_SECONDS = 10
_FORGOTTEN_AFTER_US = 600 * SECOND_US
"""How long a container has to run before its back-off begins anew."""


def kill_unhealthy(turn: Turn, event: ProbeFailed) -> None:
    """Kill a container whose liveness or startup probe failed too often."""
    record = turn.state.pods.get(event.uid)
    container = None if record is None else record.container(event.container)
    if record is None or container is None or record.stage is not Stage.RUNNING:
        return
    if container.stage is not ContainerStage.RUNNING or container.is_unhealthy or record.is_restarting:
        return
    turn.note(Kind.UNHEALTHY, pod=record.pod.key, container=event.container, because=event.because)
    turn.put(record.with_container(replace(container, is_unhealthy=True)))
    turn.ask(KillContainer(record.pod, event.container, event.because.grace_period_seconds))


def readiness(turn: Turn, event: ReadinessChanged) -> None:
    """Record whether a container is ready."""
    record = turn.state.pods.get(event.uid)
    container = None if record is None else record.container(event.container)
    if record is None or container is None or container.is_unready is not event.ready:
        return
    turn.put(record.with_container(replace(container, is_unready=not event.ready)))
    if event.is_news:
        because = Readiness(event.ready, event.because)
        turn.note(Kind.READINESS_CHANGED, pod=record.pod.key, container=event.container, because=because)


def grace_seconds(pod: Pod, probe: Probe) -> int:
    """Return how long a container has to stop if a probe fails: the probe's own period, or that of its pod.

    The kubelet's least is part of stopping it (``shutdown``).
    """
    if probe.termination_grace_period_seconds is not None:
        return probe.termination_grace_period_seconds
    return grace_seconds_of(pod)


def next_back_off(container: ContainerRecord, earlier_us: int | None, now_us: int, longest: int) -> int | None:
    """Return the back-off in seconds after which the run that begins now may be restarted; None: it has to wait.

    ``earlier_us`` is the end of the run before the one that was killed.
    """
    if earlier_us is None:
        return container.back_off_seconds
    is_stable = earlier_us - container.restarted_us > _FORGOTTEN_AFTER_US
    if not container.back_off_seconds or is_stable:
        return min(_FIRST_BACK_OFF_SECONDS, longest)
    if now_us - earlier_us < container.back_off_seconds * SECOND_US:
        return None
    return min(2 * container.back_off_seconds, longest)


class ProbeWorker(Struct, frozen=True, gc=False):
    """The state of one probe of one container."""

    kind: ProbeKind
    probe: Probe
    """With the API's defaults."""
    result: bool | None = None
    """What the kubelet acts on; None if unknown."""
    last: bool | None = None
    """The last answer."""
    in_a_row: int = 0
    """How often it was the same."""
    is_on_hold: bool = False
    """Whether it waits for a new container."""

    def renewed(self) -> ProbeWorker:
        """Return it for a new container: not ready, alive, not started."""
        return replace(self, result=_INITIAL[self.kind], is_on_hold=False)

    def passed(self) -> ProbeWorker:
        """Return it for a container that has run for long and has always answered."""
        is_over = self.kind is ProbeKind.STARTUP
        return replace(self, result=True, last=True, in_a_row=self.probe.success_threshold, is_on_hold=is_over)

    def answered(self, *, good: bool) -> ProbeWorker:
        """Return it after an answer."""
        in_a_row = self.in_a_row + 1 if self.last is good else 1
        after = replace(self, last=good, in_a_row=in_a_row)
        if in_a_row < (self.probe.success_threshold if good else self.probe.failure_threshold):
            return after
        after = replace(after, result=good)
        if self.kind is ProbeKind.STARTUP or (self.kind is ProbeKind.LIVENESS and not good):
            return replace(after, is_on_hold=True, in_a_row=0)
        return after


_INITIAL = {ProbeKind.LIVENESS: True, ProbeKind.READINESS: False, ProbeKind.STARTUP: None}
