"""What follows from probes: a container that fails its liveness or startup probe is killed, and restarted.

The kubelet kills and restarts such a container in one go, so that its back-off is checked against the end of the run
*before* this one: the first time there is none and the container restarts at once, without starting a back-off. Only
if the time since that earlier end is shorter than the back-off does the container wait, from now on like any other
that has ended.

Sources: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, SyncPod, doBackOff),
kuberuntime_container.go (setTerminationGracePeriod, killContainer), client-go/util/flowcontrol/backoff.go,
pkg/kubelet/status/status_manager.go (SetContainerReadiness). When probes run is up to the world.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.commands import KillContainer
from podqos.agent.events import ProbeFailed, ReadinessChanged
from podqos.agent.journal import Kind
from podqos.agent.reasons import Readiness
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import ContainerRecord, ContainerStage, Stage
from podqos.agent.turn import Turn
from podqos.model.pod import Container, Pod, Probe
from podqos.model.profile import Profile
from podqos.model.time_units import SECOND_US

FIRST_BACK_OFF_SECONDS = 10
FORGOTTEN_AFTER_US = 600 * SECOND_US
"""How long a container has to run before its back-off begins anew."""


def kill(turn: Turn, event: ProbeFailed) -> None:
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


def restarts(pod: Pod, container: Container, profile: Profile) -> bool:
    """Whether a container that failed a probe is restarted: exit codes do not matter."""
    policy = pod.spec.restart_policy or "Always"
    if container.is_sidecar:
        return True
    if container.restart_policy is not None and profile.container_restart_rules:
        policy = container.restart_policy
    return policy != "Never"


def next_back_off(container: ContainerRecord, earlier_us: int | None, now_us: int, longest: int) -> int | None:
    """Return the back-off in seconds after which the run that begins now may be restarted; None: it has to wait.

    ``earlier_us`` is the end of the run before the one that was killed.
    """
    if earlier_us is None:
        return container.back_off_seconds
    is_stable = earlier_us - container.restarted_us > FORGOTTEN_AFTER_US
    if not container.back_off_seconds or is_stable:
        return min(FIRST_BACK_OFF_SECONDS, longest)
    if now_us - earlier_us < container.back_off_seconds * SECOND_US:
        return None
    return min(2 * container.back_off_seconds, longest)
