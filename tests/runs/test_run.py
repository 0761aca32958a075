"""The outcome of a run, what is worth drawing, and the report."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from eviction.nodes import guaranteed, pod
from podqos.agent.journal import By
from podqos.agent.reasons import LocalStorageExceeded, OOMKill, OOMLevel
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import QOSClass
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import DAEMON_SET
from podqos.runs.run import run_view
from podqos.runs.timeline import timeline
from podqos.runs.view import headline, short_of_cpu, story
from podqos.sim.cpu_outcome import CpuOutcome
from podqos.sim.engine.curve import constant
from podqos.sim.record import Recorder, ThresholdLine
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.scenario.scenario import SystemDemand
from podqos.sim.series import SignalSeries
from podqos.sim.summary import WorkloadSummary, run_summary
from podqos.text.style import Style
from runs.small import EVICTED, GI, KILLED, NODE, SUMMARY, WEB, series
from scenarios.runs import NAMES, run_of
from sim.test_properties import scenarios
from sim.worlds import MI, node, ramp, scenario, using, workload

LIMIT = OOMKill(OOMLevel.CONTAINER, "/kubepods/web", GI, 1, 0, 1, 1, 1, as_group=True)


def _granted(index, *anon_bytes):
    short = series(index, *anon_bytes)
    return replace(short, cpu_granted_milli=short.cpu_wanted_milli)


def _node(**fields):
    """Return a node that has memory and CPU enough for a pod."""
    usual = {
        "times_us": (0, 20_000_000),
        "available_bytes": (5 * GI, 5 * GI),
        "free_bytes": (5 * GI, 5 * GI),
        "system_bytes": (GI, GI),
        "pods": (_granted(0, 2 * GI, 2 * GI),),
        "conditions": (),
    }
    return replace(NODE, **(usual | fields))


def _disk(*left):
    return SignalSeries(Signal.NODEFS, 128 * GI, left)


DISK_LOW = ThresholdLine(Signal.NODEFS, True, 12 * GI, 0, "nodefs.available < 12Gi")


def test_where_memory_ends_it_is_seen_by_pod_and_by_what_is_left():
    node = _node(available_bytes=(5 * GI, 0))
    assert story(node, ()) == ("memory", "memory.available")


def test_a_pod_at_its_own_limit_needs_no_picture_of_what_the_node_has_left():
    assert story(_node(), (replace(KILLED, because=LIMIT),)) == ("memory",)


def test_a_story_of_disk_leaves_memory_and_cpu_out():
    node = _node(signals=(_disk(60 * GI, 11 * GI),), thresholds=(*NODE.thresholds, DISK_LOW))
    assert story(node, ()) == ("nodefs.available",)


def test_a_story_of_cpu_leaves_memory_out():
    assert story(_node(pods=(series(0, 2 * GI, 2 * GI),)), ()) == ("cpu",)


def test_what_killed_comes_before_what_ran_short():
    own = LocalStorageExceeded(LocalStorageLimit.POD, "", 2 * GI, GI)
    node = _node(available_bytes=(5 * GI, 0), signals=(_disk(60 * GI, 11 * GI),))
    assert story(node, (replace(EVICTED, pod=WEB.key, because=own),))[0] == "nodefs.available"


def test_where_nothing_runs_short_what_changes_is_shown_and_else_memory():
    assert story(_node(), ()) == ("memory",)
    assert story(_node(signals=(_disk(60 * GI, 40 * GI),)), ()) == ("nodefs.available",)
    assert story(_node(available_bytes=(5 * GI, 3 * GI)), ()) == ("memory",)


PARTS = {
    "unaffected": r"([\d,]+) of [\d,]+ pods? unaffected",
    "pods": r"[\d,]+ of ([\d,]+) pods?",
    "killed": r"([\d,]+|[Nn]o) OOM kills?",
    "evicted": r"([\d,]+|no) evictions?",
    "interrupted": r"([\d,]+) interrupted",
    "never ran": r"([\d,]+) never ran",
    "waited": r"([\d,]+) waited for a node",
    "short of CPU": r"; ([\d,]+) short of CPU",
    "denied": r"([\d,]+) denied processes or disk space",
}


def said(sentence: str) -> dict[str, int]:
    """Return the numbers of a headline."""
    found = {name: re.search(pattern, sentence) for name, pattern in PARTS.items()}
    texts = {name: match[1] for name, match in found.items() if match is not None}
    return {name: 0 if text.lower() == "no" else int(text.replace(",", "")) for name, text in texts.items()}


def table(lines: list[str]) -> list[dict[str, str]]:
    """Return the rows of the table at the end of a report, by heading."""
    start = next(index for index, each in enumerate(lines) if each.startswith("WORKLOAD"))
    headings = re.split(r"\s{2,}", lines[start])
    rows = []
    for each in lines[start + 1 :]:
        if not each:
            break
        rows.append(dict(zip(headings, re.split(r"\s{2,}", each), strict=True)))
    return rows


def number(cell: str) -> int:
    """Return the number in a cell; a dash is none."""
    return 0 if cell == "–" else int(cell.replace(",", ""))


def check(done: FinishedRun) -> None:
    """Hold what is printed against itself, and against the scenario."""
    lines = timeline(run_view(done, {}), Style())
    first, rows = said(lines[1]), table(lines)
    for column, name in {
        "OOM KILLS": "killed",
        "EVICTED": "evicted",
        "NEVER RAN": "never ran",
        "DENIED": "denied",
    }.items():
        assert sum(number(row.get(column, "–")) for row in rows) == first.get(name, 0), (lines[1], column)
    unaffected, pods = zip(*(map(int, row["UNAFFECTED"].split("/")) for row in rows), strict=True)
    assert (sum(unaffected), sum(pods)) == (first["unaffected"], first["pods"]), lines[1]
    for row, own, every in zip(rows, unaffected, pods, strict=True):
        happened = [name for name, cell in list(row.items())[4:] if cell != "–"]
        assert bool(happened) == (own < every), (row, happened)
    # Each pod is counted once, and again if it was short of CPU as well.
    named = sum(first.get(name, 0) for name in ("interrupted", "never ran", "waited", "denied"))
    affected = first["pods"] - first["unaffected"]
    assert named <= affected, lines[1]
    assert first.get("short of CPU", 0) <= affected <= named + first.get("short of CPU", 0) or (
        not named and first["killed"] + first["evicted"]
    ), lines[1]
    check_sums(done)


def check_sums(done: FinishedRun) -> None:
    """Hold the summary against the scenario: every pod has one outcome, and none is down longer than it is wanted."""
    summary = run_view(done, {}).summary
    found = {row.workload: row for row in summary.workloads}
    for part in (summary, *summary.workloads):
        assert (
            part.pods
            == part.untouched + part.interrupted + part.never_ran + part.waited + part.throttled + part.refused
        )
    changes = done.scenario.workload_changes
    for each in done.scenario.workloads:
        until_us = done.end_us if each.deleted_us is None else min(done.end_us, each.deleted_us)
        wanted_us = until_us - each.arrives_us
        row = found.get(f"{each.namespace}/{each.name}")
        if wanted_us <= 0:
            assert row is None or not row.pods
        elif each.kind != DAEMON_SET and each.replicas:
            assert row is not None
            # A rollout has pods of two revisions, a scaled each those that were added.
            full = f"{each.kind}/{each.namespace}/{each.name}"
            is_changed = done.scenario.autoscalers or any(change.workload == full for change in changes)
            assert row.pods >= each.replicas if is_changed else row.pods == each.replicas
            assert max(row.downtime_us, row.throttled_us) <= row.pods * wanted_us


@pytest.mark.parametrize("name", NAMES)
def test_the_headline_of_a_shipped_scenario_holds_for_its_table_and_counts_every_pod(name):
    check(run_of(name))


@settings(max_examples=12)
@given(scenarios())
def test_the_headline_of_any_run_holds_for_its_table_and_counts_every_pod(scenario):
    check(simulate(scenario))


@pytest.mark.slow
@settings(max_examples=50)
@given(scenarios())
def test_a_hundred_headlines_hold_for_their_tables(scenario):
    check(simulate(scenario))


def slowed(pods: int, least: float) -> CpuOutcome:
    """Return an outcome of pods that wanted 4 cpu-s and got half."""
    return CpuOutcome(pods, 4_000_000, 2_000_000, 2_000_000, least, 0.5, 2.0)


def web(least: float, name: str = "web") -> WorkloadSummary:
    """Return a workload of which a pod got this share of the CPU it wanted."""
    return WorkloadSummary(f"shop/{name}", QOSClass.BURSTABLE, 0, 2, 1, 0, 0, 0, 0, 0, 0, cpu=slowed(1, least))


HEADLINES = [
    pytest.param({}, "1 of 3 pods unaffected.", id="kills and evictions tell"),
    pytest.param(
        {"interrupted": 1, "never_ran": 1},
        "1 of 3 pods unaffected, 1 interrupted, 1 never ran.",
        id="one never ran",
    ),
    pytest.param(
        {"oom_kills": 0, "evictions": 0},
        "1 of 3 pods unaffected, 2 interrupted.",
        id="neither killed nor evicted",
    ),
    pytest.param(
        {"interrupted": 0, "waited": 1, "throttled": 1},
        "1 of 3 pods unaffected, 1 waited for a node; 1 short of CPU.",
        id="throttled",
    ),
    pytest.param(
        {"interrupted": 0, "waited": 1, "throttled": 1, "cpu": slowed(1, 0.166), "workloads": (web(0.166),)},
        "1 of 3 pods unaffected, 1 waited for a node; 1 short of CPU "
        "(worst: shop/web, down to 17 % of the CPU it wanted).",
        id="throttled, and by how much",
    ),
    pytest.param(
        {"interrupted": 2, "throttled": 0, "cpu": slowed(2, 0.004), "workloads": (web(0.004), web(0.9, "a"))},
        "1 of 3 pods unaffected; 2 short of CPU at some time (worst: shop/web, down to 0.4 % of the CPU it wanted).",
        id="throttled and interrupted",
    ),
    pytest.param(
        {"interrupted": 0, "untouched": 1, "throttled": 2, "cpu": slowed(2, 0.9999), "workloads": (web(0.9999),)},
        "1 of 3 pods unaffected; 2 short of CPU (worst: shop/web, down to 99 % of the CPU it wanted).",
        id="throttled and nothing else",
    ),
]


@pytest.mark.parametrize(("changes", "end"), HEADLINES)
def test_a_headline_says_how_pods_were_affected_where_kills_and_evictions_do_not_tell(changes, end):
    assert f"; {end}".removeprefix("; " if "oom_kills" in changes else "") in headline(replace(SUMMARY, **changes))


@pytest.mark.parametrize(("changes", "affected"), HEADLINES)
def test_where_no_pod_is_killed_the_headline_begins_with_those_that_are_affected(changes, affected):
    unharmed = replace(SUMMARY, **{**changes, "oom_kills": 0, "evictions": 0})
    said_first = headline(unharmed)
    assert said_first.endswith(" No OOM kills, no evictions.")
    assert re.match(r"\d of 3 pods ", said_first)
    assert re.split("[,;.]", affected)[0] in said_first


@pytest.mark.parametrize("name", ["cpu-burst", "hpa-at-cpu-limit", "midnight-cron-storm", "probe-starvation"])
def test_a_pod_that_was_denied_a_thousandth_of_a_core_is_short_of_cpu_and_not_unaffected(name):
    done = run_of(name)
    denied = {account.pod for account in done.cpu if account.throttled_us}
    summary = run_summary(done)
    assert denied
    assert said(headline(summary))["short of CPU"] == short_of_cpu(summary) <= summary.pods - summary.untouched
    for row in summary.workloads:
        pods = {pod for pod in denied if pod.startswith(f"{row.workload}-")}
        assert bool(row.cpu and row.cpu.slowed) == bool(pods), row.workload
        assert row.untouched <= row.pods - (row.cpu.slowed if row.cpu else 0)


EVICTING = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=())


def shown(*workloads, **fields):
    """Run a scenario and return what is shown."""
    recorder = Recorder()
    done = simulate(scenario(*workloads, **fields), recorder=recorder)
    return run_view(done, recorder.nodes)


@pytest.fixture(scope="module")
def leak():
    """Return a run in which a BestEffort pod uses the node up, and the kernel kills it."""
    return shown(
        workload(guaranteed("web", "200Mi"), using(150 * MI, cpu_milli=500)),
        workload(pod("batch", "memory=300Mi", priority=5), using(200 * MI, processes=2)),
        workload(pod("leak", restart_policy="Never"), using(ramp(0, 2000 * MI, 60, after=2))),
        seconds=60,
    )


# ---- series ----------------------------------------------------------------------------------------------------------


def test_pods_are_stacked_by_class_and_have_shades_of_their_own(leak):
    assert [each.qos_class for each in leak.pods] == [QOSClass.GUARANTEED, QOSClass.BURSTABLE, QOSClass.BEST_EFFORT]
    assert len({each.colour for each in leak.pods}) == 3
    assert leak.pods[1].containers[0].memory_request_bytes == 300 * MI
    assert leak.pods[2].containers[0].oom_score_adj == 1000


def test_all_series_of_a_node_have_the_times_of_the_node(leak):
    (view,) = leak.nodes
    columns = [view.available_bytes, view.free_bytes, view.system_bytes]
    columns += [column for series in view.pods for column in (series.anon_bytes, series.cpu_granted_milli)]
    assert {len(column) for column in columns} == {len(view.times_us)}
    assert view.times_us[0] == 0
    assert view.times_us[-1] == leak.end_us
    assert list(view.times_us) == sorted(view.times_us)


def test_a_kill_is_a_step_and_a_pod_that_does_not_run_has_no_figures(leak):
    (view,) = leak.nodes
    (kill,) = leak.kills
    before, after = (index for index, time_us in enumerate(view.times_us) if time_us == kill.time_us)
    series = view.pods[2].anon_bytes
    assert series[before] > 600 * MI
    assert series[after] is None
    assert view.available_bytes[before] < view.available_bytes[after]


def test_only_what_runs_short_besides_memory_is_shown(leak):
    assert leak.nodes[0].signals == ()
    disk = shown(workload(pod("writer"), using(rootfs_bytes=ramp(0, 60 * GI, 20))), seconds=30)
    assert [series.signal for series in disk.nodes[0].signals] == ["nodefs.available"]


# ---- both orders -----------------------------------------------------------------------------------------------------


def test_both_orders_are_known_between_events_too(leak):
    orders = leak.nodes[0].orders
    falling = [each for each in orders if 2 * SECOND_US < each.time_us < 18 * SECOND_US]
    assert len(falling) > 3
    used = [next(rank.usage for rank in each.kubelet if rank.pod == 2) for each in falling]
    assert used == sorted(used)


def test_the_orders_just_before_a_kill_begin_with_the_victim(leak):
    (kill,) = leak.kills
    orders = next(each for each in leak.nodes[0].orders if each.time_us == kill.time_us)
    assert leak.pods[orders.kernel[0].pod].key == kill.pod
    assert leak.pods[orders.kubelet[0].pod].key == kill.pod


# ---- kills -----------------------------------------------------------------------------------------------------------


def test_a_kill_by_the_kernel_has_its_places_reasons_and_what_would_have_saved_the_pod(leak):
    (kill,) = leak.kills
    assert (kill.by, kill.pod, kill.container, kill.qos_class) == (
        By.KERNEL,
        "default/leak",
        "main",
        QOSClass.BEST_EFFORT,
    )
    assert (kill.kernel_place, kill.kubelet_place) == (1, 1)
    assert isinstance(kill.because, OOMKill)
    assert kill.reasons
    changes = [saving.change for saving in kill.savings]
    assert "Make it Guaranteed" in changes
    assert any(change.startswith("evictionHard memory.available ") for change in changes)


def test_of_several_kills_at_one_time_each_victim_was_first_when_its_turn_came():
    """Killing the first gains too little, so that a second follows at once."""
    view = shown(
        workload(pod("small", restart_policy="Never"), using(200 * MI)),
        workload(pod("large", "memory=600Mi", restart_policy="Never"), using(600 * MI)),
        workload(guaranteed("web", "50Mi"), using(50 * MI)),
        workload(pod("jump", "memory=300Mi", restart_policy="Never"), using(ramp(0, 400 * MI, 0, after=1))),
        seconds=10,
    )
    assert [kill.pod for kill in view.kills] == ["default/small", "default/jump"]
    assert [kill.kernel_place for kill in view.kills] == [1, 1]


IN_TIME = "evictionHard memory.available "


def _growing(**fields):
    """Return pods of which the kernel takes the one that grows, and the kubelet the one that is less important."""
    return (
        workload(guaranteed("web", "200Mi"), using(150 * MI)),
        workload(pod("batch", "memory=100Mi", restart_policy="Never"), using(200 * MI)),
        workload(pod("leak", priority=10, restart_policy="Never"), using(ramp(0, 2000 * MI, 60, after=2), **fields)),
    )


@pytest.mark.parametrize("phase", range(10))
def test_the_threshold_that_saves_a_pod_does_so_wherever_the_kubelets_loop_is(phase):
    (kill,) = [each for each in shown(*_growing()).kills if each.pod == "default/leak"]
    (saving,) = [each for each in kill.savings if each.change.startswith(IN_TIME)]
    assert saving.saves
    assert saving.effect.endswith("and evicts default/batch")
    config = KubeletConfiguration(
        eviction_hard={"memory.available": saving.change.removeprefix(IN_TIME)}, enforce_node_allocatable=()
    )
    again = shown(*_growing(), spec=node(config=config, loop_phase_us=phase * SECOND_US))
    until = [each.pod for each in again.kills if each.time_us <= kill.time_us]
    assert until[0] == "default/batch"
    assert (kill.time_us, "default/leak") not in [(each.time_us, each.pod) for each in again.kills]


def test_no_threshold_is_named_that_would_be_met_before_memory_falls():
    """Within a second nothing less than everything is left early enough."""
    view = shown(
        workload(guaranteed("web", "200Mi"), using(150 * MI)),
        workload(pod("leak", restart_policy="Never"), using(ramp(0, 2000 * MI, 2, after=2))),
    )
    (kill,) = view.kills
    assert not [each for each in kill.savings if each.change.startswith(IN_TIME)]


def test_a_pod_that_comes_and_goes_between_two_moments_has_its_places_and_savings():
    """It wants more than the node has from its first instant on."""
    view = shown(
        workload(pod("web", "memory=900Mi"), using(900 * MI)),
        workload(pod("jump", restart_policy="Never"), using(200 * MI), arrives_us=5 * SECOND_US),
    )
    (kill,) = view.kills
    assert (kill.pod, kill.kernel_place, kill.kubelet_place) == ("default/jump", 1, 1)
    assert "Make it Guaranteed" in [saving.change for saving in kill.savings]


def test_an_eviction_for_disk_counts_the_place_in_the_order_for_disk():
    """By memory, web would stand first."""
    view = shown(
        workload(pod("web", "ephemeral-storage=1Gi"), using(300 * MI, rootfs_bytes=500 * MI)),
        workload(
            pod("writer", "memory=100Mi,ephemeral-storage=1Gi"), using(10 * MI, rootfs_bytes=ramp(0, 95 * GI, 20))
        ),
        seconds=40,
        spec=node(config=KubeletConfiguration(eviction_hard={"nodefs.available": "10%"}, enforce_node_allocatable=())),
    )
    kill = view.kills[0]
    assert (kill.pod, kill.kubelet_place, kill.because.candidates) == ("default/writer", 1, 2)
    request, less = kill.savings
    assert not request.saves
    assert request.effect.endswith("of 90.0Gi ephemeral-storage")
    assert less.saves
    assert less.change.endswith(" less disk")


# ---- the whole -------------------------------------------------------------------------------------------------------


# ---- second runs -----------------------------------------------------------------------------------------------------


def test_a_container_at_its_own_limit_is_told_the_limit_with_which_it_lives_through_the_same_run():
    """It grows to 300Mi. A fifth above what it asked for is too little: with 241Mi it dies a few seconds later."""
    view = shown(workload(pod("web", "memory=100Mi", "memory=200Mi"), using(ramp(0, 300 * MI, 20))), seconds=60)
    (saving,) = view.kills[0].savings
    assert (saving.change, saving.saves) == ("A memory limit of 482Mi", True)
    assert saving.edits == ("spec.containers[0].resources.limits.memory: 482Mi   # was 200Mi",)
    assert saving.rests_on[0] == "replayed the whole run with this change"


def test_a_request_with_which_another_workload_finds_no_node_says_so():
    """What runs beside pods fills half of the node, so that there is room for requests that is not free."""
    view = shown(
        workload(pod("web", "memory=100Mi"), using(ramp(100 * MI, 600 * MI, 40))),
        workload(pod("batch", "memory=400Mi"), using(390 * MI)),
        workload(pod("late", "memory=1350Mi"), using(10 * MI), arrives_us=450 * SECOND_US, nodes=()),
        seconds=600,
        spec=node(memory=2000 * MI, config=EVICTING, system=SystemDemand(anon_bytes=constant(1000 * MI))),
    )
    kill = view.kills[0]
    (saving,) = [each for each in kill.savings if each.kind == "request more"]
    assert kill.pod == "default/web"
    assert "then no node has room for default/late" in saving.effect
    assert saving.saves
