"""A guard over a node made of files: what it decides, when it may act, and what it writes down."""

from __future__ import annotations

import errno
import json
import os

import pytest
from msgspec.structs import replace

from guard.fake_node import MIB, NODE, FakeNode, guarded
from guard.kubelets import wait_until
from guard.test_world import Recorded
from podqos.agent.journal import By, Kind, decode
from podqos.agent.port import PodDeleted, PodStopped
from podqos.errors import HostError
from podqos.eviction.signals import Signal
from podqos.guard.acting import Did, Noted
from podqos.guard.eviction import EvictionOutcome, GuardVictim
from podqos.guard.known_pods import GuardedPod
from podqos.guard.requests import ANNOTATION
from podqos.guard.running import Guard
from podqos.guard.settings import GuardSettings
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod_fate import PodCondition

KUBELET = KubeletConfiguration(cgroup_driver="cgroupfs", eviction_hard={"memory.available": "300Mi"})


class Unprotected:
    def __init__(self, *_: object) -> None: ...

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def lock_what_is_used(self) -> None: ...


class Stage:
    def __init__(self, folder, ask=None, **options):
        self.node = FakeNode(folder)
        settings = GuardSettings(
            node=NODE, kubelet=KUBELET, state=folder / "state", run=folder / "run", **{"cool_down_us": 0, **options}
        )
        self.notes = []
        self.guard = Guard(settings, None, self.notes.append, self.node.procfs, ask and (lambda: ask(settings)))
        self.acting = self.guard.world.acting = Recorded()
        self.guard.start()

    def knows(self, *pods):
        """Say what the API server has."""
        known = self.guard.known
        known._pods.objects = {each.metadata.uid: each for each in pods}
        known._taken = None
        self.guard.pods.refresh()

    def entries(self, *kinds):
        return [
            each for each in decode((self.guard.settings.state / "journal.jsonl").read_bytes()) if each.kind in kinds
        ]

    def until(self, condition, what):
        def step():
            self.guard.loop.step(0.01)
            return condition()

        wait_until(step, what)


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr("podqos.guard.running.AgentProtection", Unprotected)
    made = []

    def stage(**options):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Stage(folder, **options))
        return made[-1]

    yield stage
    for each in made:
        each.guard.close()


def two_pods(stage):
    stage.node.run("uid-big", 600 * MIB)
    stage.node.run("uid-small", 100 * MIB)
    big, small = guarded("big"), guarded("small")
    stage.knows(big, small)
    return big, small


def victims(stage):
    return [victim.name for victim, *_ in stage.acting.evicted]


@pytest.mark.parametrize(
    ("cgroup", "seen", "is_hidden"),
    [
        pytest.param("0::/kubepods/besteffort/podguard/1\n", "0\n", True, id="in a container of its own"),
        pytest.param("0::/kubepods/besteffort/podguard/1\n", "0\n7\n", False, id="in a container with hostPID"),
        pytest.param("0::/system.slice/podqos-guard.service\n", "7\n", False, id="as a unit"),
    ],
)
def test_where_the_kernel_cannot_kill_a_cgroup_pods_are_hidden_in_another_pid_namespace(
    tmp_path, cgroup, seen, is_hidden
):
    node = FakeNode(tmp_path)
    for pid, text in ((os.getpid(), cgroup), (7, "0::/kubepods/besteffort/podother/2\n")):
        (node.proc / str(pid)).mkdir()
        (node.proc / str(pid) / "cgroup").write_text(text)
    (node.root / "kubepods" / "pids.current").write_text("5\n")
    (node.root / "kubepods" / "cgroup.procs").write_text(seen)

    assert not node.cgroups.hides_processes()
    (node.root / "kubepods" / "cgroup.kill").unlink()
    assert node.cgroups.hides_processes() == is_hidden


@pytest.mark.parametrize("why", ["Function not implemented", "Operation not permitted", ""])
def test_where_no_process_can_be_signalled_it_does_not_claim_to_evict(make, monkeypatch, why):
    def refused(_pid):
        raise OSError(errno.ENOSYS if why.startswith("Function") else errno.EPERM, why)

    if why:
        monkeypatch.setattr(os, "pidfd_open", refused)
    else:
        monkeypatch.delattr(os, "pidfd_open")
    missing = "pods cannot be killed safely without pidfd_open, which Linux has since 5.3: "
    assert any(note.startswith(missing) for note in make().notes)
    with pytest.raises(HostError, match=missing + (why or "this Python does not have it")):
        make(enforce=True)


def test_in_shadow_it_writes_down_what_it_would_have_done_and_why_it_did_not(make):
    stage = make()
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.entries(Kind.EXPLAINED), "the decision is explained")
    entry = stage.entries(Kind.WOULD_EVICT)[0]
    assert (entry.pod, entry.by, entry.because.held_back) == ("default/big", By.GUARD, "shadow")
    assert (entry.because.next_pod, entry.because.candidates) == ("default/small", 2)
    assert not stage.acting.evicted
    assert stage.guard.status().held_back == "shadow"


def test_told_to_enforce_it_evicts_the_kubelets_choice_once_and_counts_it(make):
    stage = make(enforce=True)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    assert victims(stage) == ["big"]
    assert [(each.pod, each.by) for each in stage.entries(Kind.EVICTED)] == [("default/big", By.GUARD)]
    assert stage.guard.status().limit.recent == 1


def test_the_next_pod_is_not_evicted_for_what_a_dying_one_still_holds(make):
    stage = make(enforce=True)
    big, small = two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    victim = stage.acting.evicted[0][0]
    stage.guard.evictions.told(victim, Noted(Did.KILLED, 0.001, 1))
    stage.knows(replace(big, status=replace(big.status, phase="Failed", reason="Evicted")), small)
    stage.guard.loop.run_for(0.1)
    assert victims(stage) == ["big"]
    stage.guard.evictions.told(victim, Noted(Did.GONE, 0.1))
    stage.until(lambda: len(stage.acting.evicted) == 2, "memory is still short when it is gone")
    assert victims(stage) == ["big", "small"]


def test_what_came_of_an_eviction_is_written_down_and_a_refusal_holds_back(make):
    stage = make(enforce=True)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    victim = stage.acting.evicted[0][0]
    stage.guard.evictions.told(victim, Noted(Did.HELD, 0.001))
    stage.guard.evictions.told(victim, Noted(Did.OVER, 0.2, text="403 no", outcome=EvictionOutcome.REFUSED))
    (entry,) = stage.entries(Kind.REPORTED)
    assert (entry.pod, entry.because.outcome, entry.because.why) == ("default/big", "Refused", "403 no")
    assert entry.because.held_us == entry.because.decided_us + 1000
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it only says so from then on")
    assert stage.entries(Kind.WOULD_EVICT)[0].because.held_back == "refused by the API server"
    assert "big" in {each.pod.metadata.name for each in stage.guard.world.pods.values()}
    assert victims(stage) == ["big"]


def test_a_cool_down_puts_an_eviction_off_and_no_further(make):
    stage = make(enforce=True, cool_down_us=300_000)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    stage.guard.evictions.told(stage.acting.evicted[0][0], Noted(Did.GONE, 0.001))
    stage.until(lambda: len(stage.acting.evicted) == 2, "the second one comes")
    first, second = stage.entries(Kind.EVICTED)
    assert second.time_us - first.time_us >= 300_000
    assert {each.because.held_back for each in stage.entries(Kind.WOULD_EVICT)} <= {"cool-down"}


def test_a_stop_file_is_obeyed_at_once_and_so_is_its_removal(make):
    stage = make(enforce=True)
    stop = stage.guard.settings.run / "stop"
    stop.touch()
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it decides")
    stage.until(lambda: len(stage.entries(Kind.WATCHING)) == 2, "the change of mode is written down")
    assert not stage.acting.evicted
    stop.unlink()
    stage.until(lambda: stage.acting.evicted, "it acts as soon as it may")
    assert [each.because.held_back for each in stage.entries(Kind.WATCHING)] == ["", "stop file", ""]


def test_a_cgroup_that_the_server_does_not_know_is_no_candidate_and_is_counted(make):
    stage = make(enforce=True)
    stage.node.run("uid-unknown", 700 * MIB)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    assert victims(stage) == ["big"]
    assert stage.guard.status().unknown_cgroups == 1


def test_a_critical_pod_is_spared_and_said_to_be(make):
    stage = make()
    stage.node.run("uid-big", 600 * MIB)
    stage.node.run("uid-small", 100 * MIB)
    stage.knows(guarded("big", spec={"priority": 2_000_000_000}), guarded("small"))
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it decides")
    entry = stage.entries(Kind.WOULD_EVICT)[0]
    assert entry.pod == "default/small"
    assert [(each.pod, each.why) for each in stage.guard.status().excluded] == [("default/big", "critical priority")]


def test_a_pod_that_can_no_longer_be_read_is_left_alone_and_said_to_be(make):
    stage = make(enforce=True)
    big, small = two_pods(stage)
    stage.knows(GuardedPod(big.metadata, unread="its spec is odd"), small)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    assert victims(stage) == ["small"]
    (said,) = stage.guard.status().excluded
    assert (said.pod, said.why) == ("default/big", "podqos cannot read it: its spec is odd")
    assert stage.guard.status().unknown_cgroups == 0


def test_what_the_kubelet_evicts_is_written_down_once(make):
    stage = make()
    big, small = two_pods(stage)
    gone = replace(big, status=replace(big.status, phase="Failed", reason="Evicted", message="words"))
    without = replace(gone, status=replace(gone.status, reason=""))
    for each in (gone, without, gone):
        stage.knows(each, small)
    (entry,) = stage.entries(Kind.EVICTED)
    assert (entry.pod, entry.by, entry.because.message) == ("default/big", By.KUBELET, "words")


LOW = "The node was low on resource: memory. Threshold quantity: 300Mi, available: 120Mi. "


def ended(pod, phase, *, message=LOW, annotations=None, **status):
    condition = PodCondition("DisruptionTarget", "True", "TerminationByKubelet", "2026-11-16T12:00:05Z", message)
    metadata = replace(pod.metadata, annotations=annotations or {})
    return replace(pod, metadata=metadata, status=replace(pod.status, phase=phase, conditions=(condition,), **status))


def test_what_the_kubelet_evicts_and_what_then_ends_succeeded_is_written_down(make):
    stage = make()
    big, small = two_pods(stage)
    shutdown = "Pod was terminated in response to imminent node shutdown."
    stage.knows(ended(big, "Succeeded"), ended(small, "Succeeded", message=shutdown))
    (entry,) = stage.entries(Kind.EVICTED)
    assert (entry.pod, entry.by, entry.because.message) == ("default/big", By.KUBELET, LOW)


def test_what_an_earlier_guard_evicted_and_what_was_never_admitted_is_not_the_kubelets_eviction(make):
    stage = make()
    big, small = two_pods(stage)
    marked = ended(big, "Failed", reason="Evicted", annotations={ANNOTATION: "2026-11-16T12:00:04.990753Z"})
    status = replace(
        small.status, phase="Failed", reason="Evicted", message="The node had condition: [MemoryPressure]. "
    )
    stage.knows(marked, replace(small, status=status))
    assert stage.entries(Kind.EVICTED) == []


def test_a_pod_that_goes_was_stopped_if_it_was_told_to_and_else_deleted(make):
    stage = make(enforce=True)
    big, small = two_pods(stage)
    delivered = []
    deliver = stage.guard.pods._deliver
    stage.guard.pods._deliver = lambda event: (delivered.append(event), deliver(event))
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    stage.node.uses(100 * MIB)
    stage.knows()
    assert delivered == [PodStopped(big.metadata.uid), PodDeleted(small.metadata.uid)]


def test_a_pod_whose_requests_change_is_ranked_by_the_new_ones(make):
    stage = make()
    _big, small = two_pods(stage)
    resources = {"requests": {"memory": "700Mi"}}
    changed = guarded("big", spec={"containers": [{"name": "main", "image": "x", "resources": resources}]})
    stage.knows(changed, small)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it decides")
    assert stage.entries(Kind.WOULD_EVICT)[0].pod == "default/small"


def test_one_guard_runs_in_a_run_directory(make):
    stage = make()
    with pytest.raises(HostError, match="another guard is running"):
        Guard(stage.guard.settings, None, print, stage.node.procfs)


def test_its_status_is_on_file(make):
    stage = make()
    two_pods(stage)
    stage.until((stage.guard.settings.run / "status.json").exists, "it says how it is")
    stage.guard._write_status()
    said = json.loads((stage.guard.settings.run / "status.json").read_bytes())
    assert (said["node"], said["candidates"], said["kubepods"]) == (NODE, 2, "/kubepods")


def test_its_status_has_the_figures_of_this_moment(make):
    stage = make()
    two_pods(stage)
    stage.node.uses(200 * MIB)
    stage.until(lambda: [*stage.guard.status().signals], "it has looked")
    for used in (300 * MIB, 400 * MIB):
        stage.node.uses(used)
        available = {each.signal: each.available for each in stage.guard.status().signals}
        assert available[Signal.ALLOCATABLE_MEMORY] == 1000 * MIB - used


# ---- the kubelet's settings ----------------------------------------------------------------------------------------


def test_a_kubelet_with_other_settings_makes_it_begin_anew_and_one_with_the_same_does_not(make):
    asked = []

    def ask(settings):
        asked.append(settings)
        same = replace(settings, kubelet_source="another process")
        return same if len(asked) == 1 else replace(settings, kubelet=replace(KUBELET, max_pods=7))

    stage = make(ask=ask)
    stage.until(lambda: asked, "it is asked")
    stage.guard.kubelet.ask()
    stage.guard.loop.run()
    assert len(asked) == 2
    assert stage.guard.newer.kubelet.max_pods == 7
    assert any("settings have changed" in each for each in stage.notes)


def counting():
    """Return how to ask a kubelet whose settings stay the same, and how often that was done."""
    asked = []
    return (lambda settings: (asked.append(1), settings)[1]), asked


def test_a_kubelet_that_has_answered_is_asked_again_now_and_then(make, monkeypatch):
    monkeypatch.setattr("podqos.guard.kubelet_follower._AGAIN_SECONDS", 0.01)
    ask, asked = counting()
    stage = make(ask=ask)
    stage.until(lambda: len(asked) > 2, "it is asked again")
    assert stage.guard.newer is None


def test_a_kubelet_that_has_started_anew_is_asked_soon(make, monkeypatch):
    monkeypatch.setattr("podqos.guard.kubelet_follower._SOON_SECONDS", 0.01)
    ask, asked = counting()
    stage = make(ask=ask)
    stage.until(lambda: stage.guard.kubelet.is_waiting, "it was asked once")
    says = ["Ready since one"]
    monkeypatch.setattr(type(stage.guard.known), "kubelet_says", property(lambda _self: tuple(says)))
    stage.guard._changes_settled()
    stage.guard._changes_settled()
    stage.guard.loop.run_for(0.1)
    assert len(asked) == 1, "its first word is no news, nor is the same again"
    says[0] = "Ready since two"
    stage.guard._changes_settled()
    stage.until(lambda: len(asked) == 2, "it is asked")


def test_a_kubelet_that_cannot_be_asked_is_asked_again_and_the_guard_goes_on(make, monkeypatch):
    monkeypatch.setattr("podqos.guard.kubelet_follower._UNANSWERED_SECONDS", 0.01)
    asked = []

    def ask(_settings):
        asked.append(1)
        raise HostError("the server is away")

    stage = make(ask=ask)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: len(asked) > 2, "it is asked again")
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it decides by what was last known")
    assert stage.guard.newer is None
    assert any("last known" in each and "away" in each for each in stage.notes)


def test_the_time_of_an_answer_is_that_of_an_answer(make):
    stage = make(enforce=True)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.acting.evicted, "it acts")
    told, victim = stage.guard.evictions.told, stage.acting.evicted[0][0]
    told(victim, Noted(Did.KILLED, 0.001))
    told(victim, Noted(Did.UNANSWERED, 0.002, text="connection refused"))
    told(victim, Noted(Did.OVER, 0.003, outcome=EvictionOutcome.GONE))
    (entry,) = stage.entries(Kind.REPORTED)
    assert (entry.because.outcome, entry.because.answered_us) == ("Gone", None)


class TakesUp(Recorded):
    """An earlier guard has left a victim."""

    dying = frozenset({"uid-big"})
    busy = dict.fromkeys(dying)

    def take_up(self) -> None: ...


def test_no_other_pod_is_evicted_for_what_the_victim_of_an_earlier_guard_still_holds(make):
    stage = make(enforce=True)
    stage.acting = TakesUp()
    stage.guard.evictions.carry_out_with(stage.acting, stage.guard._crossed)
    two_pods(stage)
    stage.node.uses(750 * MIB)
    stage.until(lambda: stage.entries(Kind.WOULD_EVICT), "it decides")
    assert stage.entries(Kind.WOULD_EVICT)[0].because.held_back == "unfinished eviction"
    assert not stage.acting.evicted
    victim = GuardVictim("default", "big", "uid-big", "words", "2026-11-16T12:00:04.990753Z")
    stage.guard.evictions.told(victim, Noted(Did.GONE, 0.1))
    stage.until(lambda: stage.acting.evicted, "memory is still short when it is gone")
    assert victims(stage) == ["small"]
