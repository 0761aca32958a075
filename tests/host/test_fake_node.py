"""A whole node over a fake runtime and a fake cgroup tree: what it starts, ends, evicts, remembers and takes over."""

from __future__ import annotations

import errno
import gc
import os
import signal
import time
from collections import Counter

import pytest
from msgspec.structs import replace

from host.fake_machine import FakeStage, fake_node
from host.nodes import MI, kubelet, pod_document
from podqos.agent.port import MemoryNotified, Woken
from podqos.errors import HostError
from podqos.host.api.pod_list import PodList
from podqos.host.node.node import Node
from podqos.host.runtimes.runtime import LOST_CODE, ContainerId, Security, StartError
from podqos.host.storage import state

ONCE = {"restartPolicy": "Never"}


@pytest.fixture(autouse=True)
def priority(monkeypatch):
    """Keep the tests' own priority as it is; return what it would be."""
    nice = [3]
    monkeypatch.setattr(os, "getpriority", lambda _which, _who: nice[-1])
    monkeypatch.setattr(os, "setpriority", lambda _which, _who, value: nice.append(value))
    monkeypatch.setattr(os, "sched_setscheduler", lambda _pid, _policy, _param: None)
    # There is more to collect from the tests than from a node.
    monkeypatch.setattr(gc, "collect", lambda: 0)
    yield nice
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def stage():
    with fake_node() as made:
        yield made


def _up(stage: FakeStage, *documents: dict) -> None:
    stage.put(*documents)
    names = [document["metadata"]["name"] for document in documents]
    stage.until(lambda: stage.is_up(*names))


def _requests(memory: str) -> dict[str, object]:
    return {"requests": {"memory": memory}}


# ---- starting --------------------------------------------------------------------------------------------------------


def test_a_manifest_becomes_a_pod_in_its_cgroups_and_on_record(stage):
    _up(stage, pod_document("web", "serve", resources=_requests("32Mi")))
    pod = stage.pod("web")
    (run,) = pod.running
    assert pod.cgroup == f"{stage.settings.own}/kubepods/burstable/pod{pod.uid}"
    assert run.cgroup.startswith(f"{pod.cgroup}/")
    assert stage.runtime.running[run.id].command == ("serve",)
    assert stage.runtime.running[run.id].oom_score_adj == run.plan.oom_score_adj > 0
    assert stage.lines() == [("Admitted", "web"), ("Started", "web")]
    assert stage.records() == [pod.uid]
    assert stage.cgroups.memory_limit(stage.settings.own) == stage.settings.memory_bytes


def test_a_container_that_cannot_be_started_has_ended_and_the_reason_is_said(stage):
    stage.runtime.cannot_start = "no such program"
    stage.put(pod_document("wrong", "nothing", spec=ONCE))
    stage.until(lambda: stage.lines("CleanedUp"))
    (exited,) = stage.entries("Exited")
    assert exited.because.exit_code == 128
    assert "default/wrong: no such program" in stage.said


def test_a_container_that_ends_is_started_again_at_once_and_then_after_a_while(stage):
    _up(stage, pod_document("web", "serve"))
    stage.runtime.exit("main", 3)
    stage.until(lambda: stage.runtime.attempts() == [("main", 1)])
    stage.runtime.exit("main", 4)
    stage.until(lambda: len(stage.lines("Exited")) == 2)
    assert stage.runtime.attempts() == []
    (due,) = stage.node.driver.state.restarts
    assert 9_000_000 < due.wake_us - stage.entries("Exited")[-1].time_us < 11_000_000


# ---- ending ----------------------------------------------------------------------------------------------------------


def test_a_pod_whose_manifest_is_gone_is_ended_and_nothing_of_it_stays(stage):
    _up(stage, pod_document("web", "serve"), pod_document("other", "serve"))
    pod = stage.pod("web")
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.runtime.signals == [("main", signal.SIGTERM)]
    assert not stage.cgroups.exists(pod.cgroup)
    assert pod.uid not in stage.records()
    assert not stage.node.state.logs(pod.pod).exists()
    assert stage.runtime.removed == {pod.uid}
    assert stage.is_up("other")


def test_a_pod_that_ignores_sigterm_is_killed_when_its_grace_is_over(stage):
    """The kubelet raises its second to two (kuberuntime_container.go: minimumGracePeriodInSeconds)."""
    stage.runtime.ignores_sigterm = True
    _up(stage, pod_document("web", "serve", spec={"terminationGracePeriodSeconds": 1}))
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.runtime.signals)
    asked = time.monotonic()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.runtime.signals == [("main", signal.SIGTERM), ("main", signal.SIGKILL)]
    assert time.monotonic() - asked > 1.9


def test_a_pod_that_has_been_active_for_its_deadline_has_failed_also_if_the_agent_was_lost_meanwhile(stage):
    """The kubelet's pkg/kubelet/active_deadline.go."""
    _up(stage, pod_document("web", "serve", spec={"activeDeadlineSeconds": 1}))
    stage.lose_agent()
    stage.until(lambda: stage.lines("CleanedUp"))
    (ended,) = stage.node.world.over.values()
    assert (ended.phase, ended.reason) == ("Failed", "DeadlineExceeded")
    assert [kind for kind, _ in stage.lines("Failed", "Restarted")] == ["Failed"]


def test_sidecars_are_asked_to_end_after_the_regular_containers_last_first(stage):
    sidecars = [{"name": name, "image": "none", "restartPolicy": "Always"} for name in ("first", "second")]
    _up(stage, pod_document("web", "serve", spec={"initContainers": sidecars}))
    stage.until(lambda: len(stage.runtime.running) == 3)
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert [name for name, _ in stage.runtime.signals] == ["main", "second", "first"]


def test_a_cgroup_that_the_kernel_does_not_let_go_of_is_tried_again(stage):
    _up(stage, pod_document("web", "serve"))
    pod = stage.pod("web")
    stage.cgroups.busy = 3
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.lines("Stopped"))
    assert stage.records() == [pod.uid], "it is on record for as long as something of it is there"
    stage.until(lambda: stage.lines("CleanedUp"))
    assert not stage.cgroups.exists(pod.cgroup)
    assert stage.records() == []


# ---- the records of ended pods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_the_record_of_a_pod_that_ended_stays_and_keeps_it_from_running_again(stage, code, phase):
    _up(stage, pod_document("job", "work", spec=ONCE))
    uid = stage.pod("job").uid
    stage.runtime.exit("main", code)
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.records() == [uid]
    stage.lose_agent()
    stage.node.loop.run_for(0.1)
    assert stage.runtime.running == {}
    (ended,) = stage.node.world.over.values()
    assert (ended.phase, ended.containers["main"].exit_code) == (phase, code)
    (stage.manifests / "job.json").unlink()
    stage.until(lambda: stage.records() == [])


def test_a_rejected_pod_is_on_record_and_not_looked_at_twice(stage):
    stage.put(pod_document("large", "serve", resources=_requests("1Gi")))
    stage.until(lambda: stage.lines("Rejected"))
    assert len(stage.records()) == 1
    stage.lose_agent()
    stage.node.loop.run_for(0.1)
    assert stage.lines() == [("Rejected", "large")]


# ---- evicting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_urgent", [True, False], ids=["crossing", "regular"])
@pytest.mark.parametrize("memory_bytes", [256 * MI, None], ids=["confined", "machine"])
def test_a_pass_reads_the_memory_of_each_cgroup_once(monkeypatch, memory_bytes, is_urgent):
    with fake_node(memory_bytes) as stage:
        _up(stage, *(pod_document(name, "serve", resources=_requests("32Mi")) for name in ("a", "b", "c")))
        for used, name in enumerate(("a", "b", "c"), 20):
            stage.use(name, used)
        stage.node.loop.step(0)
        read: Counter[str] = Counter()
        memory = stage.cgroups.memory
        monkeypatch.setattr(stage.cgroups, "memory", lambda path: (read.update([path]), memory(path))[1])
        if is_urgent:
            stage.node.deliver(MemoryNotified())
        else:
            stage.node.driver.deliver(stage.node.driver.state.loop.wake_us, Woken())
        pods = {pod.cgroup for pod in stage.node.world.pods.values()}
        assert {stage.settings.own, stage.node.figures.kubepods, *pods} <= read.keys()
        assert set(read.values()) == {1}


def test_when_memory_crosses_its_level_the_pod_above_its_request_is_held_and_evicted(stage):
    _up(
        stage,
        pod_document("modest", "serve", resources=_requests("96Mi")),
        pod_document("greedy", "serve", resources=_requests("8Mi")),
    )
    stage.use("modest", 90)
    stage.node.loop.run_for(0.05)
    assert not stage.lines("Evicted")
    greedy = stage.pod("greedy")
    stage.use("greedy", 110)
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.lines("Evicted") == [("Evicted", "greedy")]
    assert stage.cgroups.held == [greedy.cgroup]
    assert stage.runtime.signals[0] == ("main", signal.SIGTERM)
    assert stage.is_up("modest")
    (reaction,) = stage.node.world.reactions
    assert reaction.noticed <= reaction.held <= reaction.terminated <= reaction.stopped


def test_a_victim_that_tries_to_grow_is_killed_before_its_grace_is_over(stage):
    stage.runtime.ignores_sigterm = True
    _up(stage, pod_document("greedy", "serve", resources=_requests("8Mi")))
    victim = stage.pod("greedy").cgroup
    stage.use("greedy", 200)
    stage.until(lambda: stage.runtime.signals)
    os.eventfd_write(stage.cgroups._signals[victim], 1)
    stage.node.loop.step(0.01)
    assert stage.runtime.signals == [("main", signal.SIGTERM), ("main", signal.SIGKILL)]


def test_an_evicted_pod_stays_evicted_for_the_next_agent_until_its_manifest_is_another(stage):
    _up(stage, pod_document("greedy", "serve", resources=_requests("8Mi")))
    uid = stage.pod("greedy").uid
    stage.use("greedy", 200)
    stage.until(lambda: stage.lines("CleanedUp"))
    stage.lose_agent()
    stage.node.loop.run_for(0.1)
    (ended,) = stage.node.world.over.values()
    assert (ended.pod.metadata.uid, ended.phase, ended.reason) == (uid, "Failed", "Evicted")
    assert stage.runtime.running == {}
    _up(stage, pod_document("greedy", "better", resources=_requests("8Mi")))
    assert stage.records() == [stage.pod("greedy").uid]


def test_a_shadow_decides_and_evicts_nothing():
    with fake_node(shadow=True) as stage:
        _up(stage, pod_document("greedy", "serve", resources=_requests("8Mi")))
        stage.use("greedy", 200)
        stage.until(lambda: stage.lines("WouldEvict"))
        assert stage.is_up("greedy")
        assert stage.cgroups.held == []


# ---- adoption --------------------------------------------------------------------------------------------------------


def test_what_runs_is_taken_over_and_not_started_again(stage):
    _up(stage, pod_document("web", "serve"))
    (before,) = stage.runtime.running
    stage.lose_agent()
    assert list(stage.runtime.running) == [before]
    assert stage.lines() == [("Admitted", "web"), ("Started", "web"), ("Adopted", "web")]
    stage.use("web", 200)
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.lines("Evicted") == [("Evicted", "web")]


def test_how_a_container_ended_while_there_was_no_agent_is_told_by_the_runtime(stage):
    _up(stage, pod_document("job", "work", spec=ONCE))
    stage.runtime.exit("main", 7)
    stage.lose_agent()
    stage.until(lambda: stage.lines("CleanedUp"))
    (exited,) = stage.entries("Exited")
    assert exited.because.exit_code == 7
    assert stage.runtime.ended == {}
    (ended,) = stage.node.world.over.values()
    assert ended.phase == "Failed"


def test_a_container_that_the_runtime_has_lost_is_killed_and_started_again(stage):
    _up(stage, pod_document("web", "serve"))
    (lost,) = stage.pod("web").running
    stage.runtime.running.clear()
    stage.lose_agent()
    assert stage.cgroups.killed == [lost.cgroup.rpartition("/")[0]], "it may run without a shim"
    stage.until(lambda: stage.runtime.attempts() == [("main", 1)])
    (exited,) = stage.entries("Exited")
    assert exited.because.exit_code == LOST_CODE


def _restarted_unnoticed(stage: FakeStage) -> ContainerId:
    """Have a container started again by an agent that is killed before it notes that; return the run."""
    _up(stage, pod_document("web", "serve"))
    (first,) = stage.runtime.running
    again = ContainerId(first.uid, first.name, 1)
    stage.runtime.running[again] = replace(stage.runtime.running.pop(first), id=again)
    return again


def test_a_run_that_was_started_but_not_noted_is_taken_over_and_told(stage):
    again = _restarted_unnoticed(stage)
    stage.lose_agent()
    assert list(stage.runtime.running) == [again]
    (run,) = stage.pod("web").running
    assert run.id == again
    assert [entry.because.restarts for entry in stage.entries("Restarted")] == [1]


def test_a_run_that_was_started_and_ended_but_not_noted_counts_as_a_restart(stage):
    _restarted_unnoticed(stage)
    stage.runtime.exit("main", 5)
    stage.lose_agent()
    assert [entry.because.restarts for entry in stage.entries("Restarted")] == [1, 2]
    assert [entry.because.exit_code for entry in stage.entries("Exited")] == [5]
    assert stage.runtime.attempts() == [("main", 2)]


@pytest.mark.parametrize("meanwhile", ["it still runs", "it has ended"])
def test_a_pod_that_was_being_stopped_is_stopped_by_the_next_agent(stage, meanwhile):
    stage.runtime.ignores_sigterm = True
    _up(stage, pod_document("web", "serve"))
    manifest = stage.manifests / "web.json"
    text = manifest.read_bytes()
    manifest.unlink()
    stage.until(lambda: stage.runtime.signals)
    # Its manifest is back, which is no reason to let this very pod go on.
    manifest.write_bytes(text)
    if meanwhile == "it has ended":
        stage.runtime.exit("main", 0)
    stage.runtime.ignores_sigterm = False
    stage.lose_agent()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert not stage.lines("Exited", "Restarted")
    stage.until(lambda: stage.is_up("web"))
    assert stage.lines("Admitted", "Stopped", "CleanedUp") == [
        ("Admitted", "web"), ("Stopped", "web"), ("CleanedUp", "web"), ("Admitted", "web"),
    ]  # fmt: skip


def test_an_eviction_that_an_agent_began_is_finished_by_the_next_one(stage):
    stage.runtime.ignores_sigterm = True
    _up(stage, pod_document("greedy", "serve", resources=_requests("8Mi")))
    stage.use("greedy", 200)
    stage.until(lambda: stage.runtime.signals)
    # That memory is not short any more does not spare a pod which has been told to go.
    stage.use("greedy", 10)
    stage.runtime.ignores_sigterm = False
    stage.lose_agent()
    stage.until(lambda: stage.lines("CleanedUp"))
    assert stage.runtime.running == {}
    (ended,) = stage.node.world.over.values()
    assert (ended.phase, ended.reason) == ("Failed", "Evicted")
    assert stage.lines("Evicted", "Exited", "Restarted") == [("Evicted", "greedy")]


def test_what_is_on_no_record_is_ended_and_removed(stage):
    _up(stage, pod_document("web", "serve"))
    uid = stage.pod("web").uid
    stray = f"{stage.settings.own}/kubepods/besteffort/podstray"
    stage.cgroups.create(stray)
    (stage.settings.state_dir / "data" / "stray").mkdir()
    (stage.settings.state_dir / "pods" / f"{uid}.json").unlink()
    (stage.manifests / "web.json").unlink()
    stage.lose_agent()
    assert stage.runtime.running == {}
    assert stage.runtime.ended == {}
    assert stage.runtime.removed == {uid}
    assert not stage.cgroups.exists(stray)
    assert list((stage.settings.state_dir / "data").iterdir()) == []
    assert stage.cgroups.children(f"{stage.settings.own}/kubepods/besteffort") == []


def test_a_record_that_cannot_be_read_is_put_aside_and_the_others_are_taken_over(stage):
    _up(stage, pod_document("web", "serve"), pod_document("other", "serve"))
    broken = stage.settings.state_dir / "pods" / f"{stage.pod('web').uid}.json"
    broken.write_text('{"pod": ')
    stage.lose_agent()
    assert broken.with_suffix(".bad").exists()
    assert ("Adopted", "other") in stage.lines()
    # The manifest is there as before: the pod is made anew.
    stage.until(lambda: stage.is_up("web", "other"))
    assert len(stage.runtime.running) == 2


# ---- the security context --------------------------------------------------------------------------------------------

_CONTEXT = {
    "runAsUser": 1, "runAsGroup": 2, "runAsNonRoot": True, "supplementalGroups": [3], "fsGroup": os.getgid(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (None, {"run_as_user": 1, "run_as_group": 2, "run_as_non_root": True}),
        (
            {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False},
            {"run_as_user": 0, "run_as_group": 0, "run_as_non_root": False},
        ),
        (
            {
                "capabilities": {"add": ["A"], "drop": ["B"]},
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
            },
            {"add": ("A",), "drop": ("B",), "read_only_root": True, "no_new_privileges": True},
        ),
        ({"capabilities": {"add": None}, "privileged": None, "allowPrivilegeEscalation": True}, {}),
    ],
    ids=["the pod's", "the container's own comes first", "what only containers have", "null is nothing"],
)
def test_a_container_is_started_with_its_own_security_context_and_else_the_pods(stage, own, expected):
    context = {} if own is None else {"securityContext": own}
    _up(stage, pod_document("web", "serve", spec={"securityContext": _CONTEXT}, **context))
    (run,) = stage.runtime.running.values()
    usual = Security(run_as_user=1, run_as_group=2, groups=(os.getgid(), 3), run_as_non_root=True)
    assert run.security == replace(usual, **expected)
    spec = PodList(stage.node).document(stage.pod("web").uid)["spec"]
    assert spec["securityContext"] == _CONTEXT
    stage.lose_agent()
    assert stage.pod("web").runs["main"].start.security == run.security


def test_an_empty_directory_is_open_to_the_users_of_its_pod_alone_and_belongs_to_its_group(stage):
    volume = {"volumes": [{"name": "v", "emptyDir": {}}], "securityContext": {"fsGroup": os.getgid()}}
    _up(stage, pod_document("web", "serve", spec=volume))
    about = stage.node.state.volume(stage.pod("web").uid, "v").stat()
    assert (about.st_mode & 0o7777, about.st_gid) == (0o2777, os.getgid())
    assert stage.pod("web").data.stat().st_mode & 0o777 == 0o711, "a plain process needs the way to it, and no more"


@pytest.mark.parametrize("allowed", [False, True])
def test_a_privileged_container_starts_only_where_that_is_allowed(allowed):
    with fake_node(allow_privileged=allowed) as stage:
        stage.put(pod_document("web", "serve", securityContext={"privileged": True}), pod_document("other", "serve"))
        stage.until(lambda: stage.is_up("other") and (stage.is_up("web") if allowed else stage.lines("Exited")[1:]))
        assert stage.is_up("web") is allowed
        (status,) = PodList(stage.node).document(stage.pod("web").uid)["status"]["containerStatuses"]
        if not allowed:
            assert status["state"]["waiting"]["reason"] == "CreateContainerConfigError"
            assert "its option allow-privileged" in status["state"]["waiting"]["message"]


@pytest.mark.parametrize("user", [-1, 1 << 31, "root", 1.5])
def test_a_user_that_is_not_possible_is_said_and_the_pod_does_not_start(stage, user):
    stage.put(pod_document("web", "serve", securityContext={"runAsUser": user}), pod_document("other", "serve"))
    stage.until(lambda: stage.is_up("other") and any("web" in line and "runAsUser" in line for line in stage.said))
    assert stage.pod("web") is None


def test_what_no_runtime_is_told_is_named(stage):
    context = {"seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "a", "value": "1"}]}
    own = {"securityContext": {"procMount": "Default", "seLinuxOptions": {"level": "s0"}}}
    _up(stage, pod_document("web", "serve", spec={"securityContext": context}, **own))
    said = {line.partition("default/web: ")[2] for line in stage.said}
    assert {
        "securityContext.seccompProfile is ignored",
        "securityContext.sysctls is ignored",
        "container main: securityContext.procMount is ignored",
        "container main: securityContext.seLinuxOptions is ignored",
    } <= said


# ---- what cannot be started ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "reason", "message"),
    [
        (StartError("CreateContainerConfigError", "root"), "CreateContainerConfigError", "root"),
        (HostError("too many open files"), "CrashLoopBackOff", "back-off 10s restarting failed container"),
    ],
    ids=["not allowed", "anything else"],
)
def test_a_container_that_cannot_be_started_says_why_in_the_kubelets_words(stage, failure, reason, message):
    _up(stage, pod_document("steady", "serve"))
    stage.runtime.cannot_start = failure
    stage.put(pod_document("broken", "serve"))
    stage.until(lambda: len(stage.lines("Exited")) == 2)
    (status,) = PodList(stage.node).document(stage.pod("broken").uid)["status"]["containerStatuses"]
    assert status["state"] == {"waiting": {"reason": reason, "message": message}}
    ended = status["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert str(failure) in ended["message"]
    assert stage.is_up("steady")


# ---- a full disk -----------------------------------------------------------------------------------------------------


def test_a_full_state_directory_holds_nothing_up_and_is_caught_up_with(stage, monkeypatch):
    write = os.write

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(state, "replace_file", full)
        patch.setattr(os, "write", lambda file, data: full() if file == stage.node.journal._file else write(file, data))
        _up(stage, pod_document("modest", "serve", resources=_requests("32Mi")), pod_document("greedy", "serve"))
        assert stage.records() == []
        assert stage.lines() == []
        assert sum("No space left on device" in line for line in stage.said) == 3
        stage.use("greedy", 200)
        stage.until(lambda: len(stage.node.driver.state.pods) == 1)
    stage.node._keep_syncing()
    assert len(stage.records()) == 2
    assert stage.lines("Evicted", "CleanedUp") == [("Evicted", "greedy"), ("CleanedUp", "greedy")]
    stage.lose_agent()
    assert stage.is_up("modest")
    (ended,) = stage.node.world.over.values()
    assert (ended.pod.metadata.name, ended.reason) == ("greedy", "Evicted")


# ---- the end of a node -----------------------------------------------------------------------------------------------


def test_a_node_that_ends_gives_pods_their_grace_and_leaves_nothing_behind(stage, priority):
    _up(stage, pod_document("web", "serve"))
    assert priority[-1] == -15
    stage.node.stop()
    assert stage.node.is_ending
    stage.node.loop.run()
    stage.node.close()
    assert stage.runtime.signals == [("main", signal.SIGTERM)]
    assert stage.runtime.ends == [True]
    assert not stage.cgroups.exists(stage.settings.own)
    assert stage.records() == []


def test_a_node_that_ends_starts_no_pod_of_the_directory_that_it_was_reading(stage, monkeypatch):
    monkeypatch.setattr("podqos.host.node.reconciliation._SLICE_SECONDS", 0)
    stage.put(*(pod_document(f"p{number}", "serve") for number in range(20)))
    stage.until(lambda: stage.node.world.pods)
    assert len(stage.node.world.pods) < 20
    stage.node.stop()
    stage.until(lambda: not stage.node.world.pods)
    stage.node.loop.run_for(0.1)
    assert not stage.node.world.pods


def test_a_node_that_ends_gives_back_what_it_claimed_for_itself(stage, priority):
    (folder,) = stage.cgroups.root.glob("*-agent")
    score = stage.node.procfs.root / "self" / "oom_score_adj"
    assert (folder / "memory.min").read_text() == str(64 * MI)
    assert (folder / "cgroup.procs").read_text() == "0"
    assert score.read_text() == "-999"
    stage.node.close()
    assert priority == [3, -15, 3]
    assert score.read_text() == "0"
    assert (stage.cgroups.root / "cgroup.procs").read_text() == "0"
    assert gc.isenabled()


def test_the_second_request_to_stop_kills(stage):
    stage.runtime.ignores_sigterm = True
    _up(stage, pod_document("web", "serve"))
    stage.node.stop()
    stage.node.stop()
    stage.node.loop.run_for(0.1)
    assert stage.runtime.signals == [("main", signal.SIGTERM), ("main", signal.SIGKILL)]


def test_a_node_that_keeps_its_pods_leaves_them_to_the_next_one():
    with fake_node(keep_pods=True) as stage:
        _up(stage, pod_document("web", "serve"))
        stage.node.loop.call_after(0, stage.node.stop)
        stage.node.loop.run()
        stage.node.close()
        assert stage.runtime.ends == [False]
        assert stage.runtime.signals == []
        stage.node = stage._made()
        stage.node.start()
        assert stage.is_up("web")
        assert stage.lines("Adopted") == [("Adopted", "web")]


def test_a_node_whose_runtime_fails_leaves_the_machine_as_it_was(stage, priority):
    stage.node.close()

    def no_runtime(_node: Node) -> None:
        raise HostError("no runtime")

    cgroups = stage.cgroups
    with pytest.raises(HostError, match="no runtime"):
        Node(stage.settings, no_runtime, stage.said.append, stage.machine)
    assert not cgroups.exists(stage.settings.own)
    assert priority[-1] == 3


def test_the_whole_machine_is_the_capacity_of_a_node_that_is_not_confined():
    with fake_node(memory_bytes=None, configuration=kubelet()) as stage:
        assert stage.node.figures.capacity_bytes == 8 << 30
        assert stage.cgroups.memory_limit(stage.settings.own) is None


def test_hooks_that_are_not_run_are_named(stage):
    hooks = {"postStart": {"exec": {"command": ["x"]}}, "preStop": {"exec": {"command": ["x"]}}}
    _up(stage, pod_document("web", "serve", lifecycle=hooks))
    said = {line.partition("default/web: ")[2] for line in stage.said}
    assert {f"container main: lifecycle.{hook} is ignored" for hook in hooks} <= said


def test_a_hook_that_sleeps_is_run_and_not_named(stage):
    _up(stage, pod_document("web", "serve", lifecycle={"preStop": {"sleep": {"seconds": 1}}}))
    assert not [line for line in stage.said if "lifecycle" in line]
    begun = time.monotonic()
    (stage.manifests / "web.json").unlink()
    stage.until(lambda: stage.runtime.signals)
    assert time.monotonic() - begun > 0.9
