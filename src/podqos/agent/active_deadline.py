"""A pod's own ``activeDeadlineSeconds``: when they are over, the kubelet stops the pod, and it has failed.

They count from the pod's start time, which is when the kubelet admitted it, in whole seconds; init containers, back-off
and restarts are part of them. The containers have the pod's grace period, and the pod is ``Failed`` with the reason
``DeadlineExceeded`` once they have stopped, no matter how they end and what its ``restartPolicy`` is. A kubelet that
makes room for a critical pod does not notice a deadline before that is done.

Source: Kubernetes v1.36 pkg/kubelet/active_deadline.go (pastActiveDeadline), kubelet_pods.go (generateAPIPodStatus),
status/status_manager.go (normalizeStatus: whole seconds; mergePodStatus: Failed once nothing runs), pod_workers.go
(completeSync, calculateEffectiveGracePeriod). Upstream checks once a second, and not while an image is being pulled.
"""

from __future__ import annotations

from bisect import insort

from msgspec.structs import replace

from podqos.agent.commands import FailPod
from podqos.agent.journal import Kind
from podqos.agent.reasons import ActiveDeadlineExceeded
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import Deadline, Phase, Stage
from podqos.agent.turn import Turn
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US


def watch(turn: Turn, pod: Pod, started_us: int) -> None:
    """Take note of the deadline of a pod that started at a time."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is not None:
        deadlines = list(turn.state.deadlines)
        insort(deadlines, Deadline((started_us // SECOND_US + seconds) * SECOND_US, pod.metadata.uid))
        turn.change(deadlines=tuple(deadlines))


def woken(turn: Turn) -> None:
    """Stop the pods that have been active for too long."""
    if turn.state.preempting is not None:
        return
    due = [deadline for deadline in turn.state.deadlines if deadline.wake_us <= turn.now_us]
    if not due:
        return
    turn.change(deadlines=turn.state.deadlines[len(due) :])
    for deadline in due:
        record = turn.state.pods.get(deadline.uid)
        if record is not None and record.stage in {Stage.STARTING, Stage.RUNNING}:
            seconds = record.pod.spec.active_deadline_seconds
            assert seconds is not None
            turn.note(Kind.FAILED, pod=record.pod.key, because=ActiveDeadlineExceeded(seconds))
            turn.ask(FailPod(record.pod, grace_seconds_of(record.pod)))
            turn.put(replace(record, stage=Stage.STOPPING, phase=Phase.FAILED, is_overdue=True))
