"""Evictions beside a kubelet: the suite's own with an API server as a test wants it, and a real one if there is one."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from guard.guards import MESSAGE, Guard, victim_of
from guard.kubelets import SLEEP, wait_until
from podqos.errors import HostError
from podqos.guard import acting
from podqos.guard.acting import LATE_SECONDS, Did
from podqos.guard.eviction import EvictionOutcome, EvictionSent, KillWhen, begin, follow
from podqos.guard.intents import Intent, Intents
from podqos.guard.requests import ANNOTATION
from podqos.guard.tree import pod_at

FORKS = ("sh", "-c", "while :; do sleep 1000 & sleep 1000 & sleep 0.001; done")
IGNORES = ("sh", "-c", "trap '' TERM; while :; do sleep 1000; done")


def is_frozen(kubelet, pod):
    text = kubelet.cgroups.read(pod.cgroup, kubelet.cgroups._FREEZER[0])
    return text is not None and text.strip() != kubelet.cgroups._FREEZER[2]


def sandbox_of(kubelet, pod):
    (there,) = {each.id for each in pod_at(kubelet.cgroups, pod.uid, pod.cgroup).containers} - set(pod.container_ids)
    (pid,) = kubelet.cgroups.charged(f"{pod.cgroup}/{there}")
    return pid


def is_alive(pid):
    file = Path(f"/proc/{pid}/stat")
    return file.exists() and file.read_text().rpartition(")")[2].split()[0] != "Z"


# ---- as Kubernetes understands it ----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", KillWhen)
def test_a_pod_is_evicted_in_the_kubelets_words_and_not_restarted(kubelet, when):
    pod, other = kubelet.run("web-0", IGNORES, SLEEP), kubelet.run("web-1")
    with Guard(kubelet, when) as guard:
        guard.evict(pod)
        guard.until(lambda: kubelet.is_evicted(pod), "it is evicted")
        guard.until(lambda: kubelet.events(pod.uid), "it has its Event")
        assert guard.over().outcome is EvictionOutcome.EVICTED
        assert not list(guard.folder.iterdir())

    there = kubelet.pod(pod.name)
    assert there["status"]["message"] == MESSAGE
    first = {each.what: each.seconds for each in reversed(guard.noted)}
    if when is KillWhen.ANSWER or first[Did.ANSWERED] - first[Did.KILLED] < 0.1:
        # A machine that is too busy to tell the server within a tenth of a second may see a restart.
        assert kubelet.restarts(pod.name) == 0
    (condition,) = [each for each in there["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "TerminationByKubelet")
    assert (condition["message"], condition["observedGeneration"]) == (MESSAGE, 1)
    (event,) = [each for each in kubelet.events(pod.uid) if each["source"]["component"] == "podqos-guard"]
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Evicted", MESSAGE, 1)
    assert event["metadata"]["annotations"] == {"starved_resource": "memory"}
    assert event["involvedObject"]["name"] == pod.name
    assert kubelet.processes(other)
    assert kubelet.pod(other.name)["status"]["phase"] == "Running"


def test_a_status_without_a_changed_annotation_is_put_back(suite, monkeypatch):
    """The reason for the annotation: it holds the suite's server to what was recorded."""
    suite.revert_seconds = 0.1
    pod = suite.run("web-0")
    monkeypatch.setattr("podqos.guard.requests.ANNOTATION", "podqos.dev/unused")
    suite.api.change("default", pod.name, pod.uid, lambda each: each["status"].update(phase="Failed", reason="Evicted"))
    wait_until(lambda: suite.pod(pod.name)["status"]["phase"] == "Running", "the kubelet puts it back")
    assert suite.processes(pod)


def test_a_patch_that_comes_while_a_container_is_restarted_is_heard(suite, monkeypatch):
    """Also of the suite's kubelet: a real one hears of every change."""
    suite.restart_seconds = 0.05
    pod = suite.run("web-0")
    restart = suite._container

    def patched(*arguments):
        suite.api.change("default", pod.name, pod.uid, evict)
        return restart(*arguments)

    def evict(each):
        each["status"] |= {"phase": "Failed", "reason": "Evicted", "message": MESSAGE}
        each["metadata"]["annotations"] = {ANNOTATION: "now"}

    monkeypatch.setattr(suite, "_container", patched)
    suite.cgroups.kill_charged(f"{pod.cgroup}/{pod.container_ids[0]}")
    wait_until(lambda: suite.is_evicted(pod), "it is torn down")


def test_the_sandbox_is_never_killed_and_the_pod_is_thawed(suite):
    pod = suite.run("web-0", SLEEP, SLEEP)
    suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    pause = sandbox_of(suite, pod)
    with Guard(suite) as guard:
        guard.evict(pod)
        assert guard.done() == [], "nothing is told before the kill"
        guard.until(lambda: Did.GONE in guard.done(), "its containers are gone")
        assert is_alive(pause)
        assert not is_frozen(suite, pod)
        assert guard.done()[:3] == [Did.HELD, Did.KILLED, Did.SENT]


def test_a_reason_that_the_kubelet_has_lost_is_told_again(suite):
    pod = suite.run("web-0")
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: suite.is_evicted(pod), "it is evicted")
        guard.until(lambda: Did.ANSWERED in guard.done(), "the guard knows")
        suite.api.change("default", pod.name, pod.uid, lambda each: each["status"].pop("reason"))
        guard.acting.seen(pod.uid, "Failed", "")
        guard.until(lambda: suite.is_evicted(pod), "it has its reason again")


def test_what_starts_in_the_pod_is_ended(suite):
    suite.restart_seconds = 0.05
    pod = suite.run("web-0")
    suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.ENDED in guard.done(), "the restarted container is ended")


@pytest.mark.parametrize("is_slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_starts_is_ended_until_the_server_has_answered_however_late(suite, is_slow):
    """The second restart comes when the time for the first is long over; only the patch keeps the kubelet from it."""
    suite.restart_seconds = 0.05
    pod = suite.run("web-0")
    if is_slow:
        suite.api.slow_seconds, suite.api.is_late = 10.0, True
    else:
        suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: guard.done().count(Did.ENDED) >= 2, "what is restarted is ended, twice")
        suite.api.refuses = lambda _request: None
        guard.until(lambda: suite.is_evicted(pod), "it is evicted in the end")
        assert guard.over().outcome is EvictionOutcome.EVICTED
        answered = next(each.seconds for each in guard.noted if each.text == "200")
        assert guard.noted[-1].seconds - answered >= 0.4, "the kubelet hears later than the guard"
        assert not suite.processes(pod)
    assert len(suite.events(pod.uid)) == 1


def test_a_pod_whose_eviction_is_refused_is_not_kept_down(suite):
    """A guard without the right to evict would otherwise end it for ever."""
    pod = suite.run("web-0")
    suite.api.refuses = lambda request: (403, "Forbidden", "no") if request.is_patch else None
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: suite.restarts(pod.name), "the kubelet restarts it")
        guard.until(lambda: not guard.acting._running[pod.uid].watched_until, "it is left alone after a while")
        suite.api.refuses = lambda _request: None
        guard.until(lambda: suite.is_evicted(pod), "it is told all the same, once that is allowed")


def test_the_intent_is_on_file_before_the_hold_and_says_so_before_the_kill(suite, monkeypatch):
    pod = suite.run("web-0")
    with Guard(suite) as guard:
        seen = []

        def spy_on(name):
            real = getattr(suite.cgroups, name)

            def spy(path):
                seen.append((name, (guard.folder / f"{pod.uid}.json").read_text()))
                return real(path)

            monkeypatch.setattr(suite.cgroups, name, spy)

        spy_on("freeze")
        spy_on("kill_charged")
        guard.evict(pod)
    freeze, kill = seen[0], seen[1]
    assert freeze[0] == "freeze"
    assert "has_killed" not in freeze[1]
    assert kill[0] == "kill_charged"
    assert '"has_killed":true' in kill[1]


# ---- the server ----------------------------------------------------------------------------------------------------


def test_a_server_that_is_away_leaves_the_pod_held_and_is_told_once_it_is_back(suite, monkeypatch):
    monkeypatch.setattr(acting, "HELD_SECONDS", 1000)
    suite.restart_seconds = 30
    pod = suite.run("web-0")
    suite.api.is_away = True
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: len(guard.noted) > 3, "it was asked in vain")
        assert Did.KILLED not in guard.done(), "what cannot be told is held"
        assert is_frozen(suite, pod)
        suite.api.is_away = False
        guard.until(lambda: suite.is_evicted(pod), "it is evicted")
        guard.until(lambda: suite.events(pod.uid), "it has its Event")
    assert suite.restarts(pod.name) == 0


@pytest.mark.parametrize("why", ["memory goes on falling", "it took too long"])
def test_a_held_pod_is_killed_without_an_answer_where_holding_is_not_enough(suite, monkeypatch, why):
    monkeypatch.setattr(acting, "HELD_SECONDS", 0.2 if why == "it took too long" else 1000)
    pod = suite.run("web-0")
    suite.api.is_away = True
    with Guard(suite, KillWhen.ANSWER) as guard:
        guard.is_falling = why == "memory goes on falling"
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "it is killed")
        killed = next(each for each in guard.noted if each.what is Did.KILLED)
        assert killed.seconds >= 0.05
        assert not is_frozen(suite, pod)
        suite.api.is_away = False
        guard.until(lambda: suite.is_evicted(pod), "it is told later")
        guard.until(lambda: suite.events(pod.uid), "it has its Event")


def test_a_slow_server_does_not_hold_up_the_kill_nor_another_pod(suite):
    pod, other = suite.run("web-0"), suite.run("web-1")
    suite.api.slow_seconds = 1000
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.evict(other)
        guard.until(lambda: guard.done().count(Did.GONE) == 2, "both are killed")
        assert Did.ANSWERED not in guard.done()
        suite.api.slow_seconds = 0
        guard.until(lambda: suite.is_evicted(pod) and suite.is_evicted(other), "both are told")
        guard.until(lambda: suite.events(pod.uid) and suite.events(other.uid), "both have their Event")


def test_a_server_that_refuses_keeps_its_pod(suite):
    pod = suite.run("web-0")
    why = "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'guard' denied request: guard may only evict its own"
    suite.api.refuses = lambda request: (422, "Invalid", why) if request.is_patch else None
    with Guard(suite, KillWhen.ANSWER) as guard:
        guard.evict(pod)
        assert (guard.over().outcome, guard.noted[-1].text) == (EvictionOutcome.REFUSED, why)
    assert suite.processes(pod)
    assert not is_frozen(suite, pod)
    assert not suite.events(pod.uid)


def test_a_rehearsal_says_what_the_server_would_and_changes_nothing(suite):
    pod = suite.run("web-0")
    with Guard(suite) as guard:
        heard = []
        victim = acting.GuardVictim(pod.namespace, pod.name, pod.uid, "", "2026-11-16T00:00:00.000000+00:00")
        guard.sender.rehearse(victim, heard.append)
        guard.until(lambda: heard, "an answer")
        assert heard[0].status == 200
    assert suite.pod(pod.name)["status"]["phase"] == "Running"


@pytest.mark.parametrize("when", KillWhen)
def test_a_pod_that_was_replaced_while_it_was_decided_keeps_its_name_sake(suite, when):
    """The server has a new pod of the same name; the kubelet has not ended the old one yet."""
    pod = suite.run("web-0", IGNORES, grace_seconds=30)
    with Guard(suite, when) as guard:
        suite.api.delete_pod("default", "web-0")
        new = suite.api.add_pod({"metadata": {"name": "web-0"}, "status": {"phase": "Running"}})
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "what is left of the old one is killed")
        guard.until(lambda: suite.events(pod.uid), "the kill has its Event")
        assert guard.over().outcome is EvictionOutcome.REPLACED
    there = suite.pod("web-0")
    assert there["metadata"]["uid"] == new["metadata"]["uid"]
    assert there["status"] == {"phase": "Running"}
    assert ANNOTATION not in there["metadata"].get("annotations", {})
    assert all(each.body["metadata"]["uid"] == pod.uid for each in suite.api.patches()), "never without its uid"


def test_a_pod_that_was_deleted_while_it_was_decided_needs_no_status(suite):
    pod = suite.run("web-0", IGNORES, grace_seconds=30)
    with Guard(suite) as guard:
        suite.api.delete_pod("default", "web-0")
        guard.evict(pod)
        assert guard.over().outcome is EvictionOutcome.GONE


def test_a_pod_that_has_ended_by_itself_is_left_as_it_is(suite):
    pod = suite.run("web-0", ("sh", "-c", "sleep 1000"))
    suite.restart_seconds = 1000
    for pid in suite.processes(pod):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not suite.processes(pod), "it has ended")
    with Guard(suite) as guard:
        guard.evict(pod)
        assert not guard.acting.busy
    assert not suite.api.patches()


def test_a_soft_eviction_honours_disruption_budgets_and_kills_nothing(suite):
    pod = suite.run("web-0")
    suite.api.budget_refuses = True
    with Guard(suite) as guard:
        victim = acting.GuardVictim(pod.namespace, pod.name, pod.uid, MESSAGE, "2026-11-16T00:00:00.000001+00:00")
        guard.acting.evict_through_api(victim, 1)
        guard.until(lambda: guard.done().count(Did.SENT) == 2, "it is asked again")
        assert "disruption budget" in guard.noted[1].text
        assert suite.processes(pod)
        suite.api.budget_refuses = False
        assert guard.over().outcome is EvictionOutcome.EVICTED
        assert Did.KILLED not in guard.done()
    assert suite.events(pod.uid)
    (body,) = {str(each.body) for each in suite.api.requests if each.path.endswith("/eviction")}
    assert pod.uid in body


def test_a_hard_threshold_does_not_wait_for_a_soft_eviction(suite):
    pod = suite.run("web-0")
    suite.api.budget_refuses = True
    with Guard(suite) as guard:
        victim = acting.GuardVictim(pod.namespace, pod.name, pod.uid, MESSAGE, "2026-11-16T00:00:00.000001+00:00")
        guard.acting.evict_through_api(victim, 1)
        guard.evict(pod)
        guard.until(lambda: suite.is_evicted(pod), "it is evicted")


# ---- the processes -------------------------------------------------------------------------------------------------


def test_a_container_that_forks_all_the_time_is_gone_at_once(suite):
    pod = suite.run("web-0", FORKS)
    wait_until(lambda: len(suite.processes(pod)) > 50, "it forks")
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "all of it is gone")
        assert not suite.processes(pod)


def test_a_process_that_was_moved_to_another_cgroup_lives(suite):
    pod, other = suite.run("web-0", ("sh", "-c", "sleep 1000 & sleep 1000 & wait")), suite.run("web-1")
    wait_until(lambda: len(suite.processes(pod)) == 3, "it has processes")
    moved = max(suite.processes(pod))
    for entrance in suite.cgroups.entrances(f"{other.cgroup}/{other.container_ids[0]}"):
        Path(entrance).write_text(str(moved))
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "the rest is gone")
        assert is_alive(moved)
        assert len(suite.processes(other)) >= 2


def test_a_process_whose_first_thread_has_ended_dies_too(suite):
    """The kernel shows such a process in its cgroup's list, but in ``/proc`` as if it were in the root."""
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    pod = suite.run("web-0", (sys.executable, "-c", code))

    def leader_state():
        (pid,) = suite.processes(pod)
        return suite.procfs.stat(pid)[0]

    wait_until(lambda: leader_state() == "Z", "its first thread has ended")
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "it is gone")


def test_what_is_stuck_in_the_kernel_is_waited_for_and_not_held(suite, monkeypatch):
    """A process in D state dies when the kernel lets it: until then it is there, killed and not frozen."""
    pod = suite.run("web-0")
    suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    stuck = True
    real = suite.cgroups.has_processes
    monkeypatch.setattr(suite.cgroups, "has_processes", lambda path: stuck or real(path))
    monkeypatch.setattr(suite.cgroups, "kill_charged", lambda _path: 1)
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.KILLED in guard.done(), "it is killed")
        guard.loop.run_for(0.2)
        assert Did.GONE not in guard.done()
        assert not is_frozen(suite, pod)
        monkeypatch.undo()
        stuck = False
        guard.until(lambda: Did.GONE in guard.done(), "it is gone in the end")


def test_containers_that_the_server_has_not_shown_yet_are_killed_and_the_sandbox_is_not(suite):
    """What the guard knows is old: it knows one of three containers, or none."""
    pod, other = suite.run("web-0", SLEEP, SLEEP, SLEEP), suite.run("web-1", SLEEP, SLEEP)
    suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    pauses = [sandbox_of(suite, each) for each in (pod, other)]
    with Guard(suite) as guard:
        guard.evict(replace(pod, container_ids=pod.container_ids[1:2]))
        guard.evict(replace(other, container_ids=()))
        guard.until(lambda: guard.done().count(Did.GONE) == 2, "their containers are gone")
        assert not suite.processes(pod)
        assert not suite.processes(other)
        assert all(map(is_alive, pauses))


def test_processes_in_another_pid_namespace_are_not_taken_for_gone(suite, monkeypatch):
    """Version 1 does not list them at all."""
    pod = suite.run("web-0")
    monkeypatch.setattr(suite.cgroups, "charged", lambda _path: set())
    monkeypatch.setattr(suite.cgroups, "has_processes", lambda _path: False)
    with Guard(suite) as guard:
        guard.evict(pod)
        assert guard.over().outcome is EvictionOutcome.REFUSED
        assert "PID namespace" in guard.noted[-1].text
    assert not suite.api.patches()


def test_the_guards_own_pod_is_never_touched(suite):
    """Frozen, it could not thaw itself."""
    pod = suite.run("web-0", (sys.executable, "-c", "import time; time.sleep(1000)"))
    (pid,) = suite.processes(pod)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        guard = Guard(suite)
    with guard, pytest.raises(HostError, match="own"):
        guard.evict(pod)
    assert not is_frozen(suite, pod)


def test_a_full_run_directory_does_not_stop_an_eviction(suite, monkeypatch):
    pod = suite.run("web-0")

    def full(_intent):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Guard(suite) as guard:
        monkeypatch.setattr(guard.acting._intents, "keep", full)
        guard.evict(pod)
        guard.until(lambda: suite.is_evicted(pod), "it is evicted")
        assert any(each.what is Did.FAILED and "No space" in each.text for each in guard.noted)


def test_a_kill_that_fails_leaves_nothing_frozen_and_is_tried_again(suite, monkeypatch):
    pod = suite.run("web-0")
    suite.api.refuses = lambda request: (503, "Busy", "later") if request.is_patch else None
    failed = []

    def fail(path):
        monkeypatch.undo()
        failed.append(path)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with Guard(suite) as guard:
        monkeypatch.setattr(suite.cgroups, "kill_charged", fail)
        with pytest.raises(OSError, match="Too many open files"):
            guard.evict(pod)
        assert failed
        assert not is_frozen(suite, pod)
        guard.until(lambda: Did.GONE in guard.done(), "it is killed")
        guard.until(lambda: Did.ANSWERED in guard.done(), "the server was asked")


def test_a_cgroup_that_is_not_the_pods_is_refused(suite):
    pod, other = suite.run("web-0"), suite.run("web-1")
    with Guard(suite) as guard:
        victim = acting.GuardVictim(pod.namespace, pod.name, pod.uid, MESSAGE, "2026-11-16T00:00:00.000001+00:00")
        for path in (other.cgroup, suite.cgroups.own, "/", f"{pod.cgroup}/{pod.container_ids[0]}"):
            with pytest.raises(HostError):
                guard.acting.evict(victim, acting.PodCgroup(pod.uid, path, ()), pod.container_ids)
        assert not guard.acting.busy
    assert suite.processes(pod)
    assert suite.processes(other)
    assert not suite.api.patches()


def test_a_guard_that_stops_holds_nothing_any_more(suite):
    pod = suite.run("web-0")
    suite.api.is_away = True
    with Guard(suite, KillWhen.ANSWER) as guard:
        guard.evict(pod)
        assert is_frozen(suite, pod)
    assert not is_frozen(suite, pod)
    assert suite.processes(pod)


# ---- a guard that was killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_late", [False, True])
def test_a_pod_that_a_killed_guard_left_frozen_is_evicted_or_let_go(suite, tmp_path, is_late):
    """Too late, it goes on: memory was short then, and what is short now is decided now."""
    pod = suite.run("web-0")
    intents = Intents(tmp_path)
    begun = time.monotonic() - (LATE_SECONDS + 1 if is_late else 1)
    eviction, _ = begin(victim_of(pod), KillWhen.PATCH)
    intents.keep(Intent(eviction, begun, pod.cgroup, pod.container_ids))
    suite.cgroups.freeze(pod.cgroup)
    with Guard(suite, intents=tmp_path) as guard:
        assert guard.over().outcome is (EvictionOutcome.DROPPED if is_late else EvictionOutcome.EVICTED)
        assert guard.done()[0] is Did.TAKEN_UP
    assert list(tmp_path.iterdir()) == []
    assert not is_frozen(suite, pod)
    assert bool(suite.processes(pod)) is is_late
    assert bool(suite.events(pod.uid)) is not is_late


def test_an_intent_for_another_cgroup_or_that_cannot_be_read_touches_nothing(suite, tmp_path):
    pod, other = suite.run("web-0"), suite.run("web-1")
    suite.api.delete_pod("default", "web-0")
    eviction, _ = begin(victim_of(pod), KillWhen.PATCH)
    eviction, _ = follow(eviction, EvictionSent())
    Intents(tmp_path).keep(Intent(eviction, time.monotonic(), other.cgroup, other.container_ids))
    (tmp_path / "half.json").write_text('{"eviction":')
    with Guard(suite, intents=tmp_path) as guard:
        assert guard.over().outcome is EvictionOutcome.GONE
    assert list(tmp_path.iterdir()) == []
    assert suite.processes(other)
    assert suite.pod("web-1")["status"]["phase"] == "Running"


@pytest.mark.slow
def test_thousands_of_processes_are_killed_in_one_go(suite):
    pod = suite.run("web-0", ("sh", "-c", "i=0; while [ $i -lt 3000 ]; do sleep 1000 & i=$((i+1)); done; wait"))
    wait_until(lambda: len(suite.processes(pod)) > 3000, "they run")
    with Guard(suite) as guard:
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "they are gone")
        assert next(each.count for each in guard.noted if each.what is Did.KILLED) > 3000


@pytest.mark.slow
def test_a_server_that_takes_ten_seconds_is_heard_in_the_end(suite):
    pod = suite.run("web-0")
    suite.api.slow_seconds = 10.0
    with Guard(suite) as guard:
        began = time.monotonic()
        guard.evict(pod)
        guard.until(lambda: Did.GONE in guard.done(), "it is killed")
        assert time.monotonic() - began < 10, "the kill does not wait for the server"
        assert guard.over().outcome is EvictionOutcome.EVICTED
    assert len(suite.events(pod.uid)) == 1, "asked twice is done once"
    assert suite.is_evicted(pod)
