"""What is done to pods: only what may be, whatever the agent says and whatever the node looks like."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from guard.fake_node import MIB, NODE, FakeNode, guarded
from guard.kubelets import wait_until
from podqos.agent.port import CreateCgroup, MemoryLevel, PodCleanedUp, PodStopped, RemoveCgroup, StopPod, WatchMemory
from podqos.eviction.manager import EvictPod, ReclaimTarget
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.guard.figures import GuardFigures, WatchedPod
from podqos.guard.tree import PodCgroup, pod_at
from podqos.guard.world import GuardWorld
from podqos.host.linux.loop import Loop
from podqos.host.linux.notes import OnceNotes
from podqos.host.shell.agent_thread import AgentThread
from podqos.model.quantity import Quantity

AMOUNT = Quantity.of_units(100 * MIB, "BinarySI")


class Recorded:
    """Carries nothing out, and remembers what it was asked for."""

    def __init__(self, error=None):
        self.evicted, self.softly, self.error = [], [], error

    def evict(self, victim, pod, known_ids):
        if self.error is not None:
            raise self.error
        self.evicted.append((victim, pod, tuple(known_ids)))

    def evict_through_api(self, victim, grace_seconds):
        self.softly.append((victim, grace_seconds))


class Stage:
    def __init__(self, folder, acting=None):
        self.node = FakeNode(folder)
        self.notes, self.crossings, self.loop = [], [], Loop()
        self.acting = acting or Recorded()
        figures = GuardFigures(NODE, self.node.cgroups, self.node.procfs)
        thread = AgentThread(self.loop, OnceNotes(self.notes.append, "the guard"), lambda: 7)
        self.world = GuardWorld(NODE, self.node.cgroups, figures, thread, lambda: self.crossings.append(1))
        self.world.acting = self.acting

    def add(self, pod, path=None, known=True):
        uid = pod.metadata.uid
        path = path or self.node.run(uid, 10 * MIB)
        self.world.pods[uid] = WatchedPod(pod, PodCgroup(uid, path, ()))
        if known:
            self.world.known = {**self.world.known, uid: pod}
        return pod


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path)
    yield made
    made.loop.close()


def eviction(pod, grace_period_ns=0):
    because = ReclaimTarget(
        Threshold(Signal.ALLOCATABLE_MEMORY, ThresholdValue(AMOUNT), grace_period_ns), AMOUNT, AMOUNT
    )
    return EvictPod(pod, 1, "words", {"starved_resource": "memory"}, None, because)


def test_a_hard_threshold_kills_and_a_soft_one_asks_the_server(stage):
    pod = stage.add(guarded("a", "uid-a", status={"containerStatuses": [{"name": "main", "containerID": "c://abc"}]}))
    assert stage.world.carry_out(eviction(pod)) == ()
    ((victim, tree, known_ids),) = stage.acting.evicted
    assert (victim.uid, victim.message, victim.generation, victim.node) == ("uid-a", "words", 3, NODE)
    assert (tree.path, known_ids) == ("/kubepods/besteffort/poduid-a", ("abc",))
    assert victim.annotations["starved_resource"] == "memory"
    other = stage.add(guarded("b"))
    assert stage.world.carry_out(eviction(other, grace_period_ns=1)) == ()
    assert [each.name for each, _ in stage.acting.softly] == ["b"]
    assert stage.world.evicted == {"uid-a", "uid-b"}


def test_an_eviction_that_cannot_be_carried_out_lets_the_agent_go_on(tmp_path):
    stage = Stage(tmp_path, Recorded(OSError("no")))
    pod = stage.add(guarded("a"))
    assert stage.world.carry_out(eviction(pod)) == (PodStopped("uid-a"),)
    assert not stage.world.reactions
    assert "no" in stage.notes[0]
    stage.loop.close()


EXCLUDED = {
    "static": {"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}},
    "mirror": {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
    "critical": {"spec": {"priority": 2_000_000_000}},
    "priority not known": {"spec": {"priority": None}},
    "it runs on another node": {"spec": {"nodeName": "node-2"}},
}


@pytest.mark.parametrize("fields", EXCLUDED.values(), ids=EXCLUDED)
def test_who_is_never_evicted_is_not_whatever_was_decided(stage, fields):
    pod = stage.add(guarded("a", **fields))
    assert stage.world.carry_out(eviction(pod)) == (PodStopped("uid-a"),)
    assert not stage.acting.evicted
    assert len(stage.notes) == 1


def test_what_the_server_says_now_counts_not_what_it_said(stage):
    pod = stage.add(guarded("a"))
    stage.world.known = {"uid-a": guarded("a", spec={"priority": 2_000_000_000})}
    stage.world.carry_out(eviction(pod))
    stage.world.known = {"uid-a": guarded("renamed", "uid-a")}
    stage.world.carry_out(eviction(pod))
    stage.world.known = {}
    stage.world.carry_out(eviction(pod))
    assert not stage.acting.evicted


@pytest.mark.parametrize(
    "path",
    [
        "/system.slice/poduid-a",
        "/poduid-a",
        "/kubepods2/besteffort/poduid-a",
        "/kubepods/../system.slice/poduid-a",
        "/kubepods/besteffort/../../poduid-a",
        "/kubepods",
        "/kubepods/besteffort",
        "/kubepods/besteffort/poduid-b",
        "/kubepods/besteffort/poduid-a/0123456789abcdef",
    ],
)
def test_a_cgroup_that_is_not_the_pods_own_below_kubepods_is_never_killed(stage, path):
    pod = stage.add(guarded("a"), path)
    assert stage.world.carry_out(eviction(pod)) == (PodStopped("uid-a"),)
    assert not stage.acting.evicted


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.sampled_from(
    [
        "/kubepods/besteffort/poduid-a",
        "/kubepods/poduid-a",
        "/kubepods/burstable/poduid-b",
        "/kubepods",
        "/kubepods/besteffort",
        "/kubepods/besteffort/poduid-a/0123456789abcdef",
        "/kubepods/../system.slice/poduid-a",
        "/kubepods/besteffort/../../poduid-a",
        "/system.slice/sshd.service",
        "/kubepods2/besteffort/poduid-a",
        "/",
        "",
    ]
)
FIELDS = st.sampled_from([{}, {}, *EXCLUDED.values()])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_nothing_outside_kubepods_and_no_excluded_pod_is_ever_chosen_whatever_the_world_says(stage, data):
    world, acting = stage.world, stage.acting
    world.pods.clear()
    acting.evicted.clear()
    acting.softly.clear()
    world.known = {f"uid-{name}": guarded(name, **data.draw(FIELDS)) for name in data.draw(st.sets(NAMES))}
    for name in data.draw(st.sets(NAMES)):
        pod = guarded(name, **data.draw(FIELDS))
        world.pods[pod.metadata.uid] = WatchedPod(pod, PodCgroup(pod.metadata.uid, data.draw(PATHS), ()))
    for name in data.draw(st.lists(NAMES, min_size=1)):
        said = guarded(name, **data.draw(FIELDS))
        world.carry_out(eviction(said, data.draw(st.sampled_from([0, 1]))))
    for victim in (*(each for each, *_ in acting.evicted), *(each for each, _ in acting.softly)):
        known, path = world.known[victim.uid], world.pods[victim.uid].cgroup
        assert not known.is_static
        assert not known.is_mirror
        assert known.spec.priority is not None
        assert known.spec.priority < 2_000_000_000
        assert known.spec.node_name == NODE
        assert known.metadata.name == victim.name
        assert path.startswith("/kubepods/")
        assert ".." not in path
        assert path.rpartition("/")[2] == f"pod{victim.uid}"


def test_a_pod_that_may_be_evicted_is_which_the_property_above_would_not_notice(stage):
    stage.world.carry_out(eviction(stage.add(guarded("a"))))
    assert len(stage.acting.evicted) == 1


def test_cgroups_and_containers_are_the_kubelets_business(stage):
    pod = guarded("a")
    before = sorted(stage.node.root.rglob("*"))
    assert stage.world.carry_out(CreateCgroup(None)) == ()
    assert stage.world.carry_out(StopPod(pod, 30)) == (PodStopped("uid-a"),)
    assert stage.world.carry_out(RemoveCgroup("uid-a", "/kubepods/besteffort/poduid-a")) == (PodCleanedUp("uid-a"),)
    assert sorted(stage.node.root.rglob("*")) == before


def test_watching_memory_leaves_the_kubelets_cgroups_untouched_on_version_2_and_looks_instead(stage):
    stage.add(guarded("a"))
    stage.world.summary()
    levels = (MemoryLevel(Signal.ALLOCATABLE_MEMORY, 300 * MIB, tell_if_below=True),)
    files = {each: each.read_bytes() for each in stage.node.root.rglob("*") if each.is_file()}
    stage.world.carry_out(WatchMemory(levels, through_cache=True))
    assert not stage.crossings
    stage.node.uses(701 * MIB)

    def is_told():
        stage.loop.step(0.01)
        return stage.crossings

    wait_until(is_told, "it looks")
    stage.world.memory_watch.close()
    changed = {each.name for each, text in files.items() if each.read_bytes() != text}
    assert changed == {"memory.current", "memory.stat"}, "what the test itself wrote"


@pytest.mark.parametrize("is_urgent", [True, False], ids=["crossing", "regular"])
def test_a_pass_reads_the_memory_of_each_cgroup_once(stage, monkeypatch, is_urgent):
    for name in ("a", "b", "c"):
        stage.add(guarded(name))
    read: Counter[str] = Counter()
    memory = stage.node.cgroups.memory
    monkeypatch.setattr(stage.node.cgroups, "memory", lambda path: (read.update([path]), memory(path))[1])
    stage.world.summary(is_urgent=is_urgent)
    stage.world.carry_out(WatchMemory((MemoryLevel(Signal.ALLOCATABLE_MEMORY, MIB),), through_cache=True))
    stage.world.memory_watch.close()
    assert {"/kubepods", *(pod.cgroup for pod in stage.world.pods.values())} <= read.keys()
    assert set(read.values()) == {1}


def test_figures_are_those_of_the_moment_with_the_containers_of_the_largest_pods(stage):
    small, large = (
        stage.add(guarded(name, status={"containerStatuses": [{"name": "main", "containerID": f"c://{'ab' * 8}"}]}))
        for name in ("small", "large")
    )
    stage.node.uses(600 * MIB)
    for pod, used in ((small, 100 * MIB), (large, 500 * MIB)):
        path = stage.node.run(pod.metadata.uid, used)
        stage.node.cgroup(f"{path}/{'ab' * 8}", used - MIB)
        stage.world.pods[pod.metadata.uid].found(pod_at(stage.node.cgroups, pod.metadata.uid, path))
    urgent = stage.world.summary(is_urgent=True)
    found = {each.pod_ref.name: each for each in urgent.pods}
    assert found["large"].memory.working_set_bytes == 500 * MIB
    assert [(each.name, each.memory.working_set_bytes) for each in found["small"].containers] == [("main", 99 * MIB)]
    assert stage.world.observed.signals[Signal.ALLOCATABLE_MEMORY].available == 400 * MIB
    assert Signal.PID not in stage.world.observed.signals
    stage.world.summary()
    assert Signal.PID in stage.world.observed.signals


def test_memory_that_goes_on_falling_is_told_and_memory_that_stays_is_not(stage):
    stage.world.carry_out(WatchMemory((MemoryLevel(Signal.ALLOCATABLE_MEMORY, MIB),), through_cache=True))
    stage.world.memory_watch.close()
    stage.node.uses(900 * MIB)
    assert not stage.world.is_falling(), "there is nothing to compare with"
    assert not stage.world.is_falling()
    stage.node.uses(950 * MIB)
    assert stage.world.is_falling()


def test_figures_that_cannot_be_read_end_nothing(stage, monkeypatch):
    monkeypatch.setattr(stage.world.figures, "full", lambda _pods: 1 / 0)
    assert stage.world.summary().pods is None
    assert len(stage.notes) == 1
    assert replace(stage.world.observed, signals={}) == stage.world.observed


def test_a_glance_never_promises_more_than_a_look_finds(tmp_path):
    node = FakeNode(tmp_path)
    figures = GuardFigures(NODE, node.cgroups, node.procfs)
    node.uses(800 * MIB)
    (node.root / "kubepods" / "memory.stat").write_text(f"anon {500 * MIB}\ninactive_file {300 * MIB}\n")
    found = {signal: seen.available_bytes for signal, seen in figures.look(()).signals.items()}
    least = figures.at_least()
    assert (found[Signal.ALLOCATABLE_MEMORY], least[Signal.ALLOCATABLE_MEMORY]) == (500 * MIB, 200 * MIB)
    assert least[Signal.MEMORY] == found[Signal.MEMORY]
    node.cgroups.close()
    (node.root / "kubepods" / "memory.current").unlink()
    assert figures.at_least()[Signal.ALLOCATABLE_MEMORY] == 0, "what is not known is not promised"
