"""The circle: what the model decides, written as the kernel would write it, is read back as the same decision.

What is said to have saved a victim is tried here with the model alone.
"""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import container, pod_of
from kernel.oom_logs import report_of
from orders.nodes import GI, MI, snapshot, using
from podqos.agent.reasons import OOMKill
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import kill, rank, select
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.orders.memory import container_processes
from podqos.qos.cgroup_paths import CgroupLevel, node_path, place_of
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion, Runtime
from podqos.questions.autopsy_death import SavedBy
from podqos.reading.scenario_files import load_scenario
from questions.test_autopsy_rule import examined
from scenarios.again import recorded
from scenarios.crowded import crowded
from sim.test_properties import scenarios
from sim.worlds import node, ramp, scenario, workload
from sim.worlds import using as using_memory

LEVELS = (CgroupLevel.MACHINE, CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.POD, CgroupLevel.CONTAINER)


@st.composite
def nodes(draw):
    """Draw a node with pods of one to three containers and processes, what ran out, and the kernel's kill."""
    memory_bytes = draw(st.sampled_from((4 * GI, 16 * GI, 16 * GI + 12_345 * 4096)))
    drawn = []
    for index in range(draw(st.integers(1, 5))):
        request = draw(st.integers(0, 6))
        limit = draw(st.sampled_from((None, max(1, request), 8)))
        amounts = (f"memory={request * 256}Mi" if request else "", f"memory={limit * 256}Mi" if limit else "")
        if draw(st.booleans()) and limit:
            amounts = (f"cpu=1,memory={limit * 256}Mi",) * 2
        made = pod_of(f"p{index}", container(f"{index:012x}", requests=amounts[0], limits=amounts[1]))
        uid = f"{index:08x}-0000-4000-8000-000000000000"
        made = replace(made, metadata=replace(made.metadata, uid=uid))
        used = draw(st.integers(1, 2000)) * MI + draw(st.integers(0, 255)) * 4096
        drawn.append(using(made, str(used), processes=draw(st.integers(1, 3))))
    seen = snapshot(*drawn, memory_bytes=memory_bytes)
    settings = CgroupSettings(
        node_memory_bytes=memory_bytes,
        cgroup_driver=draw(st.sampled_from(CgroupDriver)),
        runtime=draw(st.sampled_from(Runtime)),
        cgroup_version=draw(st.sampled_from(CgroupVersion)),
    )
    containers = container_processes(seen, settings)
    processes = [replace(each, name=f"task {each.pid}") for found in containers for each in found.processes]
    level = draw(st.sampled_from(LEVELS))
    domain = _domain(draw(st.sampled_from(processes)).cgroup, level, settings)
    total = memory_bytes // PAGE_BYTES if domain == "/" else draw(st.integers(1000, 4 * GI // PAGE_BYTES))
    selection = select(processes, total, domain)
    assume(selection is not None)
    is_v2 = settings.cgroup_version is CgroupVersion.V2
    groups = {selection.victim.process.cgroup} if is_v2 and draw(st.booleans()) else set()
    done = kill(selection, processes, groups, cgroup_version=2 if is_v2 else 1)
    lines = report_of(
        done,
        processes,
        ram_pages=memory_bytes // PAGE_BYTES,
        lacking_pages=draw(st.sampled_from((1, 2, 700))),
        trigger=draw(st.sampled_from(processes)),
        form=draw(st.sampled_from(("pgtables_bytes", "rss_anon"))),
        cgroup_version=2 if is_v2 else 1,
    )
    return seen, processes, done, lines


def _domain(path, level, settings):
    """Return the cgroup of a level that holds a path."""
    if level is CgroupLevel.MACHINE:
        return "/"
    if level is CgroupLevel.KUBEPODS:
        return node_path(settings)
    found = path
    while place_of(found).level is not level and place_of(found).level is not CgroupLevel.KUBEPODS:
        found = found.rpartition("/")[0]
    return found


@pytest.mark.slow
@given(nodes())
def test_a_simulated_oom_written_as_a_report_is_read_back_as_the_same_decision(drawn):
    _, processes, done, lines = drawn
    (found,) = examined(lines, most_shown=100)
    selection = done.selection
    victim = selection.victim.process
    expected = rank(processes, selection.total_pages, selection.domain)
    assert [each.badness for each in found.ranking if each.badness is not None] == [each.points for each in expected]
    assert {(each.pid, each.badness) for each in found.ranking if each.badness is not None} == {
        (each.process.pid, each.points) for each in expected
    }
    assert found.ranking[0].pid == found.oom.chosen.pid == victim.pid
    assert (found.follows_rule, found.oom.total_pages) == (True, selection.total_pages)
    assert [each.pid for each in found.victims] == [each.pid for each in done.killed]
    assert found.oom.group == (done.group or "")
    runner_up = selection.runner_up
    assert found.oom.margin_pages == selection.margin_pages
    assert (found.oom.runner_up and found.oom.runner_up.badness) == (runner_up and runner_up.points)
    place = place_of(victim.cgroup)
    assert (found.pod_uid, found.container_id, found.qos_class) == (place.pod_uid, place.container_id, place.qos_class)
    assert found.oom.scope is place_of(selection.domain).level
    assert found.oom.cgroup == selection.domain


def _killed(processes, selection, lacking_pages):
    """Return who dies until enough is free; of equals all that are."""
    left, gone = list(processes), []
    while lacking_pages > 0 and (chosen := select(left, selection.total_pages, selection.domain)) is not None:
        equals = [
            each for each in rank(left, selection.total_pages, selection.domain) if each.points == chosen.victim.points
        ]
        gone += [each.process.pid for each in equals]
        left = [each for each in left if each.pid != chosen.victim.process.pid]
        lacking_pages -= max(1, chosen.victim.process.rss_pages)
    return gone


def _score(request, capacity):
    return min(999, max(3, 1000 - 1000 * request // capacity)) if request else 1000


@given(nodes())
def test_what_is_said_to_have_saved_a_victim_does_and_a_page_less_does_not(drawn):
    seen, processes, done, lines = drawn
    (found,) = examined(lines)
    victim, selection = done.selection.victim.process, done.selection
    capacity = seen.node.memory_bytes
    lacking = found.oom.shortage.lacking_bytes // PAGE_BYTES
    inside = {each.process.pid for each in rank(processes, selection.total_pages, selection.domain)}
    own = {each.pid for each in (*done.killed, victim)}
    is_own = found.oom.scope in {CgroupLevel.CONTAINER, CgroupLevel.POD}
    own |= {pid for pid in inside if is_own}
    if 0 < victim.oom_score_adj < 999:
        own |= {each.pid for each in processes if each.oom_score_adj == victim.oom_score_adj}

    def dies(change=lambda each: each, more_pages=0):
        return bool(own & set(_killed([change(each) for each in processes], selection, lacking - more_pages)))

    def scored(score):
        return lambda each: (
            replace(each, oom_score_adj=score)
            if each.pid in own and each.oom_score_adj == victim.oom_score_adj
            else each
        )

    def lighter(pages):
        return lambda each: replace(each, rss_pages=each.rss_pages - pages) if each.pid == victim.pid else each

    assert dies()
    for saving in found.saved_by:
        pages = (saving.more or 0) // PAGE_BYTES
        match saving.change:
            case SavedBy.USAGE:
                assert not dies(lighter(pages))
                assert dies(lighter(pages - 1))
                assert max(MI // PAGE_BYTES, victim.rss_pages // 100) < pages <= victim.rss_pages // 2
            case SavedBy.REQUEST if saving.amount is None:
                assert not dies(scored(saving.oom_score_adj))
                assert dies(scored(saving.oom_score_adj + 1))
            case SavedBy.REQUEST:
                assert saving.oom_score_adj == _score(saving.amount, capacity)
                assert not dies(scored(saving.oom_score_adj))
                assert dies(scored(_score(saving.amount - PAGE_BYTES, capacity)))
                assert saving.advised >= saving.amount
                assert not dies(scored(_score(saving.advised, capacity)))
            case SavedBy.LIMIT | SavedBy.NODE_SIZE:
                assert not dies(more_pages=pages)
                assert dies(more_pages=pages - 1)
                now = selection.total_pages * PAGE_BYTES
                assert saving.advised is None or saving.advised > 1.2 * now
                assert saving.advised is not None or saving.change is SavedBy.NODE_SIZE
            case SavedBy.CLASS | SavedBy.PRIORITY:
                assert saving.oom_score_adj == -997
                assert not dies(scored(-997))
        if saving.instead:
            assert int(saving.instead.rpartition("(pid ")[2].rstrip(")")) not in own
    helpful = {each.change for each in found.saved_by}
    is_guaranteed = victim.oom_score_adj == -997
    may_be_scored = not is_guaranteed and not is_own
    assert (SavedBy.CLASS in helpful) == (may_be_scored and not dies(scored(-997)))
    assert (SavedBy.REQUEST in helpful) == (may_be_scored and not dies(scored(3)))
    if is_own:
        assert helpful == {SavedBy.LIMIT}, "no request, class or priority helps inside a pod"
    elsewhere = {SavedBy.USAGE, SavedBy.THRESHOLD, SavedBy.NODE_SIZE}
    needs_no_manifest = [saving.change in elsewhere for saving in found.saved_by]
    assert needs_no_manifest == sorted(needs_no_manifest), "what a manifest can say comes first"


def _reports_of_run(scenario):
    """Yield every OOM of a simulated run: its journal entry, whose each process is, and the report of it."""
    done, records = recorded(scenario)
    seen = {name: deque(record.kills) for name, record in records.items()}
    for entry in done.entries:
        if (
            not isinstance(entry.because, OOMKill)
            or not seen[entry.node]
            or seen[entry.node][0].now_us != entry.time_us
        ):
            continue
        moment = seen[entry.node].popleft()
        owners, processes = {}, []
        for each in container_processes(moment.snapshot, moment.settings, moment.profile):
            processes += [replace(process, name=each.usage.name) for process in each.processes]
            owners |= {process.pid: (each.pod.pod.key, each.usage.name) for process in each.processes}
        domain, total = moment.domain.path, moment.domain.total_bytes // PAGE_BYTES
        selection = select(processes, total, domain)
        done_again = kill(selection, processes, cgroup_version=1)
        pages = moment.snapshot.node.memory_bytes // PAGE_BYTES
        swap = total - pages if domain == "/" else 0
        yield entry, owners, report_of(done_again, processes, ram_pages=pages, swap_pages=swap)


def _is_read_back(scenario):
    count = 0
    for entry, owners, lines in _reports_of_run(scenario):
        (found,) = examined(lines, most_shown=100)
        because = entry.because
        assert found.follows_rule
        worst = {owners[each.pid]: each for each in found.ranking if each.badness == found.ranking[0].badness}
        assert owners[found.oom.chosen.pid] in worst
        assert (entry.pod, entry.container) in worst, "of equals the youngest: a snapshot has no ages"
        assert (found.oom.total_pages, found.oom.cgroup) == (because.total_pages, because.domain)
        assert worst[entry.pod, entry.container].oom_score_adj == because.oom_score_adj
        assert abs(found.victims[0].badness - because.points) <= 1, "pages of processes are rounded"
        count += 1
    return count


@pytest.mark.parametrize(
    ("name", "kills"),
    [("limitrange-trap", 3), ("oom-by-class", 1), ("oom-loop", 5), ("oom-by-request", 1), ("race", 2)],
)
def test_every_oom_of_a_shipped_scenario_is_read_back(name, kills):
    assert _is_read_back(load_scenario(name)) == kills


def test_an_oom_in_a_container_whose_pod_has_no_cgroup_is_read_back():
    flat = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=(), cgroups_per_qos=False)
    limited = [pod_of(name, container("main", limits="memory=100Mi")) for name in ("a", "b")]
    demands = using_memory(ramp(0, 200 * MI, 20)), using_memory(50 * MI)
    made = map(workload, limited, demands)
    assert _is_read_back(scenario(*made, spec=node(config=flat), seconds=15)) == 1


@settings(max_examples=12)
@given(st.one_of(crowded(), scenarios()))
def test_every_oom_of_a_drawn_scenario_is_read_back(drawn):
    _is_read_back(drawn)
