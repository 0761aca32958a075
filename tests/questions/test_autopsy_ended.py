"""Containers that were killed are told apart: by the kernel, the kubelet, a probe, or nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from podqos.logs.said import EvictionCause
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
from podqos.questions.autopsy_death import Death, EndCause, Eviction, Manner
from podqos.questions.autopsy_ended import bare_id, containers_by_id, ends_of

ID, OLD_ID = "ab" * 32, "cd" * 32
AT, LONG_AGO = "2026-11-16T10:00:00Z", "2026-11-16T05:00:00Z"


def kill(at: str = "", container_id: str = "", pod_uid: str = "") -> Death:
    return Death(Manner.OOM_KILL, "kernel", when=at, container_id=container_id, pod_uid=pod_uid)


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


def only(found: FatedPod, deaths: Sequence[Death] = (), events: Iterable[Event] = ()) -> tuple[EndCause, int | None]:
    (each,) = ends_of([found], deaths, events)
    return each.end.cause, each.death


def killing(message: str, container: str = "app", at: str = AT) -> Event:
    about = ObjectReference("Pod", "shop", "web", "u1", f"spec.containers{{{container}}}")
    return Event(reason="Killing", message=message, involved_object=about, first_timestamp=at)


def test_oomkilled_with_the_kernels_report_points_at_it():
    kills = [kill(container_id="ff" * 32), kill(container_id=OLD_ID)]
    assert only(pod(restarted(ended(reason="OOMKilled"))), kills) == (EndCause.KERNEL, 1)


def test_without_the_id_the_pod_and_the_time_find_the_report():
    was = ended(reason="OOMKilled", identity="")
    near, far = kill("2026-11-16T10:00:30Z", pod_uid="u1"), kill("2026-11-16T12:00:00Z", pod_uid="u1")
    assert only(pod(restarted(was)), [far, near]) == (EndCause.KERNEL, 1)
    assert only(pod(restarted(was)), [far]) == (EndCause.KERNEL, None)


def test_exit_137_that_the_runtime_does_not_call_oomkilled_is_the_kernels_if_its_report_says_so():
    assert only(pod(over(ended())), [kill(container_id=OLD_ID)]) == (EndCause.KERNEL, 0)


def test_oomkilled_with_another_exit_code_was_a_child():
    assert only(pod(restarted(ended(1, "OOMKilled")))) == (EndCause.KERNEL_OF_CHILD, None)


def test_a_kill_in_a_container_that_runs_on_was_a_child():
    running = ContainerStatus("app", ContainerState(running=ContainerRunning(AT)), container_id=f"cri-o://{ID}")
    assert only(pod(running), [kill(AT, ID)]) == (EndCause.KERNEL_OF_CHILD, 0)


@pytest.mark.parametrize(
    ("status", "events", "deletion", "cause"),
    [
        (over(ended()), [], "", EndCause.SIGKILL),
        (restarted(ended()), [killing("Container app failed liveness probe")], "", EndCause.PROBE),
        (restarted(ended()), [killing("Container app failed startup probe")], "", EndCause.PROBE),
        (restarted(ended()), [killing("Container b failed liveness probe", "b")], "", EndCause.SIGKILL),
        (restarted(ended()), [killing("failed liveness probe", at=LONG_AGO)], "", EndCause.SIGKILL),
        (over(ended()), [killing("Stopping container app")], "", EndCause.GRACE_PERIOD),
        (over(ended()), [], AT, EndCause.GRACE_PERIOD),
        (over(ended(reason="ContainerStatusUnknown")), [], "", EndCause.NODE_LOST),
    ],
)  # fmt: skip
def test_exit_137_without_oomkilled_is_told_apart(status, events, deletion, cause):
    assert only(pod(status, deletion=deletion), events=events) == (cause, None)


EVICTED = Death(
    Manner.EVICTION, "kubelet", pod="shop/web", pod_uid="u1", eviction=Eviction(EvictionCause.NODE_PRESSURE)
)


@pytest.mark.parametrize("reason", ["Error", "ContainerStatusUnknown"])
def test_a_container_that_died_with_its_evicted_pod_points_at_the_eviction(reason):
    assert only(pod(over(ended(reason=reason))), [EVICTED]) == (EndCause.EVICTION, 0)


def test_the_end_of_an_earlier_run_of_a_container_is_not_the_eviction_of_its_pod():
    assert only(pod(restarted(ended())), [EVICTED]) == (EndCause.SIGKILL, None)


def test_the_end_of_an_earlier_run_is_not_that_of_a_pod_being_deleted():
    assert only(pod(restarted(ended()), deletion=AT)) == (EndCause.SIGKILL, None)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (over(ended(1)), EndCause.EXIT),
        (restarted(ended(0, "Completed")), EndCause.EXIT),
        (over(ended(139)), EndCause.CRASH),
        (over(ended(143)), EndCause.SIGTERM),
    ],
)
def test_whom_nobody_killed_is_told_apart(status, cause):
    assert only(pod(status)) == (cause, None)


def test_a_container_that_ended_well_is_left_out():
    assert list(ends_of([pod(over(ended(0, "Completed")))])) == []


def test_ids_lead_to_names_those_of_before_included():
    web = pod(restarted(ended()))
    assert {key: name for key, (_, name) in containers_by_id([web]).items()} == {ID: "app", OLD_ID: "app"}
    assert bare_id("docker://not-hex") == ""
