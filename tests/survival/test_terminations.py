"""Containers that were killed are told apart: by the kernel, the kubelet, a probe, or nobody knows."""

from __future__ import annotations

import pytest
from msgspec import Struct

from podqos.model.event import Event, ObjectReference
from podqos.model.pod import Container, ObjectMeta, PodSpec
from podqos.model.pod_fate import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    FatedPod,
    FullPodStatus,
)
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import EvictionCause
from podqos.survival.autopsy.terminations import (
    ContainerTermination,
    Evidence,
    TerminationCause,
    container_id,
    containers_by_id,
    terminations,
)

ID, OLD_ID = "ab" * 32, "cd" * 32
AT, LONG_AGO = "2026-11-16T10:00:00Z", "2026-11-16T05:00:00Z"


class Kill(Struct, frozen=True):
    at: str = ""
    container_id: str = ""
    pod_uid: str = ""
    group: str = ""


def ended(exit_code: int = 137, reason: str = "Error", identity: str = OLD_ID) -> ContainerTerminated:
    return ContainerTerminated(
        reason, exit_code, finished_at=AT, container_id=f"containerd://{identity}" if identity else ""
    )


def pod(*statuses: ContainerStatus, deletion: str = "") -> FatedPod:
    return FatedPod(
        ObjectMeta(name="web", namespace="shop", uid="u1", deletion_timestamp=deletion),
        PodSpec(containers=tuple(Container(each.name) for each in statuses), node_name="node-1"),
        FullPodStatus(phase="Running", container_statuses=statuses),
    )


def restarted(was: ContainerTerminated) -> ContainerStatus:
    running = ContainerState(running=ContainerRunning(AT))
    return ContainerStatus(
        "app", running, container_id=f"containerd://{ID}", restart_count=1, last_state=ContainerState(terminated=was)
    )


def over(was: ContainerTerminated) -> ContainerStatus:
    return ContainerStatus("app", ContainerState(terminated=was), container_id=f"containerd://{OLD_ID}")


def only(found: FatedPod, **evidence: object) -> ContainerTermination:
    (each,) = terminations([found], Evidence(**evidence))
    return each


def killing(message: str, container: str = "app", at: str = AT) -> Event:
    about = ObjectReference("Pod", "shop", "web", "u1", f"spec.containers{{{container}}}")
    return Event(reason="Killing", message=message, involved_object=about, first_timestamp=at)


def test_oomkilled_with_the_kernels_report_points_at_it():
    kills = [Kill(container_id="ff" * 32), Kill(container_id=OLD_ID, group="/kubepods/x")]
    each = only(pod(restarted(ended(reason="OOMKilled"))), kills=kills)
    assert (each.cause, each.kill, each.is_group_kill, each.is_previous) == (TerminationCause.KERNEL, 1, True, True)


def test_without_the_id_the_pod_and_the_time_find_the_report():
    was = ended(reason="OOMKilled", identity="")
    near, far = Kill("2026-11-16T10:00:30Z", pod_uid="u1"), Kill("2026-11-16T12:00:00Z", pod_uid="u1")
    assert only(pod(restarted(was)), kills=[far, near]).kill == 1
    assert only(pod(restarted(was)), kills=[far]).cause is TerminationCause.KERNEL_UNREPORTED


def test_exit_137_that_the_runtime_does_not_call_oomkilled_is_the_kernels_if_its_report_says_so():
    each = only(pod(over(ended())), kills=[Kill(container_id=OLD_ID)])
    assert each.cause is TerminationCause.KERNEL


def test_oomkilled_with_another_exit_code_was_a_child():
    each = only(pod(restarted(ended(1, "OOMKilled"))))
    assert (each.cause, each.exit_code) == (TerminationCause.KERNEL_OF_CHILD, 1)


def test_a_kill_in_a_container_that_runs_on_was_a_child():
    running = ContainerStatus("app", ContainerState(running=ContainerRunning(AT)), container_id=f"cri-o://{ID}")
    each = only(pod(running), kills=[Kill(AT, ID)])
    assert (each.cause, each.exit_code, each.kill) == (TerminationCause.KERNEL_OF_CHILD, None, 0)


@pytest.mark.parametrize(
    ("status", "events", "deletion", "cause"),
    [
        (over(ended()), [], "", TerminationCause.SIGKILL),
        (restarted(ended()), [killing("Container app failed liveness probe")], "", TerminationCause.PROBE),
        (restarted(ended()), [killing("Container app failed startup probe")], "", TerminationCause.PROBE),
        (restarted(ended()), [killing("Container b failed liveness probe", "b")], "", TerminationCause.SIGKILL),
        (restarted(ended()), [killing("failed liveness probe", at=LONG_AGO)], "", TerminationCause.SIGKILL),
        (over(ended()), [killing("Stopping container app")], "", TerminationCause.GRACE_PERIOD),
        (over(ended()), [], AT, TerminationCause.GRACE_PERIOD),
        (over(ended(reason="ContainerStatusUnknown")), [], "", TerminationCause.NODE_LOST),
    ],
)  # fmt: skip
def test_exit_137_without_oomkilled_is_told_apart(status, events, deletion, cause):
    assert only(pod(status, deletion=deletion), events=events).cause is cause


@pytest.mark.parametrize("reason", ["Error", "ContainerStatusUnknown"])
def test_a_container_that_died_with_its_evicted_pod_points_at_the_eviction(reason):
    eviction = PodEviction("shop/web", EvictionCause.NODE_PRESSURE, None, EvictionReason.POD_UNKNOWN, uid="u1")
    each = only(pod(over(ended(reason=reason))), evictions=[eviction])
    assert (each.cause, each.eviction) == (TerminationCause.EVICTION, 0)


def test_the_end_of_an_earlier_run_of_a_container_is_not_the_eviction_of_its_pod():
    eviction = PodEviction("shop/web", EvictionCause.NODE_PRESSURE, None, EvictionReason.POD_UNKNOWN, uid="u1")
    each = only(pod(restarted(ended())), evictions=[eviction])
    assert (each.cause, each.eviction) == (TerminationCause.SIGKILL, None)


def test_the_end_of_an_earlier_run_is_not_that_of_a_pod_being_deleted():
    assert only(pod(restarted(ended()), deletion=AT)).cause is TerminationCause.SIGKILL


def test_containers_that_ended_otherwise_are_left_out():
    assert list(terminations([pod(over(ended(1)), restarted(ended(0, "Completed")))], Evidence())) == []


def test_ids_lead_to_names_those_of_before_included():
    web = pod(restarted(ended()))
    assert {key: name for key, (_, name) in containers_by_id([web]).items()} == {ID: "app", OLD_ID: "app"}
    assert container_id("docker://not-hex") == ""
