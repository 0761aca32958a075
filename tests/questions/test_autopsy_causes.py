"""What ran out, what was behind it and what a known node adds to that, by reports made for one figure each."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import container, pod_of, volume
from kernel.oom_logs import CONTAINER, POD, cgroup, killed, machine, read
from orders.nodes import GI, MI
from podqos.kernel.build import PAGE_BYTES
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir, QOSClass
from podqos.orders.race import Race, run_race
from podqos.questions.autopsy_death import Cause, Death, MemoryParts, SavedBy, ShortageKind
from podqos.questions.autopsy_memory import NodeFacts
from podqos.questions.autopsy_oom import Examiner
from podqos.questions.autopsy_words import worded

KUBEPODS = "/kubepods.slice"
UID = "11111111-2222-3333-4444-555555555555"
SANDBOX = (900, 65535, 30, 1, 0, -998, "pause")
VICTIM = (102, 1000, 150_000, 300, 0, 900, "java")


def examined(lines, **facts):
    """Return the autopsy of the one report in a log."""
    (report,) = read(lines)
    return Examiner(facts=NodeFacts(**facts)).examine(report)


def on_node(*rows, zone="", order=0, gfp=0x140CCA, info=(), summary="constraint=CONSTRAINT_NONE", victim=VICTIM):
    """Return the report of a machine of 1 GiB; ``zone`` are its zones, else one that is short."""
    lines = machine([*rows, victim], kill=killed(victim[0], victim[-1], victim[2]))
    lines[0] = f"java invoked oom-killer: gfp_mask=0x{gfp:x}(…), order={order}, oom_score_adj=900"
    lines[1] = f"CPU: 1 PID: {victim[0]} Comm: java Not tainted 6.1.0 #1"
    if zone:
        at = next(at for at, line in enumerate(lines) if line.startswith("Node 0"))
        lines[at : at + 2] = zone
    lines[5:5] = info
    told = f"oom-kill:{summary},nodemask=(null),cpuset=/,mems_allowed=0,global_oom"
    return [*lines[:-1], f"{told},task_memcg={CONTAINER},task=java,pid={victim[0]},uid=1000", lines[-1]]


def memory_info(**pages):
    """Return the figures of what the machine's memory holds."""
    base = {"active_anon": 0, "inactive_anon": 0, "active_file": 0, "inactive_file": 0, "free": 11_000}
    figures = [f"{name}:{count}" for name, count in (base | pages).items()]
    return [
        f"{' '.join(figures[:2])} isolated_anon:0",
        f" {' '.join(figures[2:4])} isolated_file:0",
        " mapped:0 " + " ".join(figures[4:]),
    ]


# ---- which memory ran out --------------------------------------------------------------------------------------------


def zone(name, free, least, reserve="0 0 0 0", node=0):
    """Return the two lines of a zone."""
    return [f"Node {node} {name} free:{free}kB min:{least}kB low:1kB high:2kB", f"lowmem_reserve[]: {reserve}"]


@pytest.mark.parametrize(
    ("zones", "changes", "kind", "lacking", "elsewhere"),
    [
        (zone("Normal", 900, 1000), {}, ShortageKind.WATERMARKS, 104 << 10, 0),
        (zone("Normal", 900, 1000), {"order": 3}, ShortageKind.WATERMARKS, 132 << 10, 0),
        (zone("Normal", 1000, 1000), {}, ShortageKind.WATERMARKS, 4 << 10, 0),
        # What a zone keeps from requests that others can serve is not free for them.
        (
            [*zone("DMA", 15000, 16, "0 0 4000 4000"), *zone("Normal", 100, 1000)],
            {},
            ShortageKind.WATERMARKS,
            904 << 10,
            0,
        ),
        ([*zone("DMA", 500, 600), *zone("Normal", 9000, 1000)], {"gfp": 1}, ShortageKind.ZONES, 104 << 10, 8000 << 10),
        ([*zone("DMA32", 900, 950), *zone("Normal", 9000, 1000)], {"gfp": 4}, ShortageKind.ZONES, 54 << 10, 8000 << 10),
        (
            [*zone("Normal", 900, 1000, "0 0 500 500"), *zone("HighMem", 9000, 500)],
            {"gfp": 0xCC0},
            ShortageKind.ZONES,
            104 << 10,
            8500 << 10,
        ),
        # Movable memory that is not for user space does not come from high memory.
        (
            [*zone("Normal", 900, 1000, "0 0 500 500"), *zone("HighMem", 9000, 500)],
            {"gfp": 0xCC8},
            ShortageKind.ZONES,
            104 << 10,
            8500 << 10,
        ),
        # Nor does high memory that cannot be moved come from the movable zone.
        (
            [*zone("HighMem", 900, 1000), *zone("Movable", 9000, 500)],
            {"gfp": 0xCC2},
            ShortageKind.ZONES,
            104 << 10,
            8500 << 10,
        ),
        (
            [*zone("Normal", 900, 1000), *zone("Normal", 9000, 1000, node=1)],
            {"summary": "constraint=CONSTRAINT_CPUSET"},
            ShortageKind.NODES,
            104 << 10,
            8000 << 10,
        ),
        (
            [*zone("Normal", 9000, 1000), "Node 0 Normal: 100*4kB (M) 3*8kB (U) 0*16kB = 424kB"],
            {"order": 2},
            ShortageKind.FRAGMENTATION,
            None,
            0,
        ),
        (zone("Normal", 9000, 1000), {"gfp": 0}, ShortageKind.PAGE_FAULT, None, 0),
        (zone("Normal", 9000, 1000), {"order": -1, "gfp": 0xCC0}, ShortageKind.SYSRQ, None, 0),
    ],
    ids=[
        "short", "eight-pages", "at-its-mark", "reserve", "dma", "dma32", "highmem",
        "movable-only", "high-only", "cpuset", "in-pieces", "page-fault", "by-hand",
    ],
)  # fmt: skip
def test_which_zones_were_short_and_by_how_much(zones, changes, kind, lacking, elsewhere):
    shortage = examined(on_node(zone=zones, **changes)).oom.shortage
    assert (shortage.kind, shortage.lacking_bytes, shortage.free_elsewhere_bytes) == (kind, lacking, elsewhere)


def test_only_what_more_memory_would_have_avoided_is_said_to_be_avoided_by_it():
    short = examined(on_node(zone=zone("Normal", 900, 1000)))
    pieces = [*zone("Normal", 9000, 1000), "Node 0 Normal: 100*4kB (M) 3*8kB (U) 0*16kB = 424kB"]
    in_pieces = examined(on_node(zone=pieces, order=2))
    assert SavedBy.NODE_SIZE in {each.change for each in short.saved_by}
    assert SavedBy.NODE_SIZE not in {each.change for each in in_pieces.saved_by}
    assert in_pieces.causes[0].cause is Cause.ELSEWHERE


@pytest.mark.parametrize(
    ("statistics", "counters", "parts"),
    [
        (
            ["Memory cgroup stats for /a:", "anon 1000", "file 700", "kernel 90", "sock 4", "shmem 600",
             "file_dirty 3", "file_writeback 4", "inactive_file 50", "slab_reclaimable 30"],
            [],
            MemoryParts(1000, 100, 50, 7, 600, 64),
        ),
        (
            ["Memory cgroup stats for /a:", "anon 1000", "file 700", "kernel_stack 16", "pagetables 8", "shmem 0",
             "inactive_file 50", "slab_reclaimable 30", "slab_unreclaimable 20"],
            [],
            MemoryParts(1000, 700, 50, 0, 0, 44),
        ),
        (
            ["Memory cgroup stats for /a:", "cache 1", "rss 2", "shmem 3", "total_cache 700", "total_rss 1000",
             "total_shmem 600", "total_dirty 3", "total_writeback 4", "total_inactive_file 50"],
            ["kmem: usage 8kB, limit 9007199254740988kB, failcnt 0"],
            MemoryParts(1000, 100, 50, 7, 600, 8192),
        ),
        (
            ["Memory cgroup stats for /a: cache:5KB rss:1KB inactive_file:1KB active_file:1KB",
             "Memory cgroup stats for /a/b: cache:5KB rss:1KB inactive_file:1KB active_file:1KB"],
            ["kmem: usage 8kB, limit 9007199254740988kB, failcnt 0"],
            MemoryParts(2048, 4096, 2048, 0, 6144, 8192),
        ),
        ([], [], MemoryParts()),
    ],
    ids=["v2", "v2-before-5.18", "v1", "v1-before-5.3", "left-out"],
)  # fmt: skip
def test_what_a_cgroup_holds_is_read_from_the_statistics_of_every_version(statistics, counters, parts):
    lines = cgroup([VICTIM], 102, "java")
    at = next(at for at, line in enumerate(lines) if line.startswith("Memory cgroup stats"))
    assert examined([*lines[: at - 1], *counters, *statistics, *lines[at + 2 :]]).oom.shortage.parts == parts


def test_swap_that_is_full_is_not_what_ran_out():
    lines = cgroup([VICTIM], 102, "java", limit_kb=1048576, swap_kb=512)
    lines = [line.replace("swap: usage 0kB", "swap: usage 512kB") for line in lines]
    lines = [line.replace("memory: usage 1048576kB", "memory: usage 1048570kB") for line in lines]
    assert examined(lines).oom.shortage.counter == "memory"


def test_a_limit_says_how_often_it_was_met():
    shortage = examined(cgroup([VICTIM], 102, "java")).oom.shortage
    assert (shortage.kind, shortage.lacking_bytes, shortage.failures) == (ShortageKind.LIMIT, PAGE_BYTES, 12)


# ---- causes ----------------------------------------------------------------------------------------------------------


def causes(lines, **facts):
    return [(each.cause, each.held_bytes, each.against_bytes) for each in examined(lines, **facts).causes]


REQUEST = -(-(1 << 30) * 100 // 1000)  # the least that gives 900: a tenth of the machine
OWN = (Cause.OWN_USE, 150_000 * PAGE_BYTES, REQUEST)


def test_the_victim_that_is_furthest_above_its_request_is_its_own_cause():
    assert causes(on_node(SANDBOX))[0] == OWN


def test_a_larger_neighbour_above_its_request_that_asked_for_the_memory_is_the_cause():
    batch = (7, 1000, 220_000, 0, 0, 600, "batch")
    lines = on_node(SANDBOX, batch)
    assert [each[0] for each in causes(lines)] == [Cause.OWN_USE], "it did not ask"
    asked = [line.replace("PID: 102", "PID: 7") for line in lines]
    four_tenths = -(-(1 << 30) * 400 // 1000)
    assert causes(asked) == [(Cause.NEIGHBOUR, 220_000 * PAGE_BYTES, four_tenths), OWN]
    within = [line.replace("  220000 ", "  100000 ") for line in asked]
    assert [each[0] for each in causes(within)] == [Cause.OWN_USE]


@pytest.mark.parametrize(("score", "thousandths"), [(1000, 0), (999, 0), (998, 2), (500, 500)])
def test_a_score_says_how_much_of_the_node_is_requested_and_999_that_it_is_next_to_nothing(score, thousandths):
    victim = (102, 1000, 255_000, 300, 0, score, "java")
    expected = -(-(1 << 30) * thousandths // 1000)
    assert causes(on_node(SANDBOX, victim=victim))[0] == (Cause.OWN_USE, 255_000 * PAGE_BYTES, expected)


def test_where_the_size_of_the_node_is_unknown_the_score_says_which_share_is_requested():
    rows = [(102, 1000, 20_000, 0, 0, 1000, "java"), (7, 1000, 120_000, 0, 0, 500, "db")]
    lines = [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={KUBEPODS}") for line in cgroup(rows, 102, "java")]
    (cause,) = worded(examined(lines)).causes
    assert (cause.cause, cause.pid, cause.against_bytes, cause.request_thousandths) == (Cause.OWN_USE, 102, None, 0)
    assert "requests 0 % of the node, further above its request than any other" in cause.words


def test_where_none_is_above_its_request_the_largest_is_named():
    safe = (7, 1000, 200_000, 0, 0, -997, "safe")
    small = (102, 1000, 20_000, 0, 0, 900, "java")
    assert causes(on_node(SANDBOX, safe, victim=small)) == [(Cause.NEIGHBOUR, 200_000 * PAGE_BYTES, None)]


def test_daemons_are_measured_by_what_is_reserved_for_them():
    daemon = (7, 0, 100_000, 0, 0, 0, "dockerd")
    small = (102, 1000, 20_000, 0, 0, 920, "java")
    lines = on_node(SANDBOX, daemon, victim=small)
    held = 100_000 * PAGE_BYTES
    assert causes(lines)[0] == (Cause.SYSTEM_DAEMONS, held, None), "more than a quarter, and the reservation unknown"
    little = KubeletConfiguration(system_reserved={"memory": "100Mi"}, kube_reserved={"memory": "20Mi"})
    assert causes(lines, kubelet_of=lambda _: little)[0] == (Cause.SYSTEM_DAEMONS, held, 120 * MI)
    enough = KubeletConfiguration(system_reserved={"memory": "400Mi"})
    assert Cause.SYSTEM_DAEMONS not in {each[0] for each in causes(lines, kubelet_of=lambda _: enough)}


def test_a_reservation_that_is_enforced_as_a_limit_is_that_of_daemons():
    lines = [line.replace(CONTAINER, "/system.slice") for line in cgroup([VICTIM], 102, "java")]
    reserving = KubeletConfiguration(system_reserved={"memory": "1Gi"}, kube_reserved={"memory": "20Mi"})
    assert causes(lines, kubelet_of=lambda _: reserving) == [(Cause.SYSTEM_DAEMONS, GI, GI)]
    assert causes(lines, kubelet_of=lambda _: KubeletConfiguration()) == [(Cause.OWN_LIMIT, GI, GI)]
    assert causes(cgroup([VICTIM], 102, "java"), kubelet_of=lambda _: reserving) == [(Cause.OWN_LIMIT, GI, GI)]


@pytest.mark.parametrize(
    ("pages", "cause"),
    [
        ({"active_anon": 230_000, "shmem": 130_000}, Cause.TMPFS),
        ({"slab_unreclaimable": 80_000, "pagetables": 20_000, "active_anon": 90_000}, Cause.KERNEL_MEMORY),
        ({"active_file": 120_000, "active_anon": 100_000}, Cause.PAGE_CACHE),
        ({"active_anon": 50_000}, Cause.UNACCOUNTED),
    ],
)
def test_what_no_process_holds_is_the_main_cause_where_it_is_most(pages, cause):
    found = causes(on_node(SANDBOX, info=memory_info(**pages)))
    assert found[0][::2] == (cause, 1 << 30)
    assert found[1] == OWN


def test_volumes_in_memory_are_named_where_the_manifest_is_known():
    lines = on_node(SANDBOX, info=memory_info(active_anon=230_000, shmem=130_000))
    volumes = (volume("cache", empty_dir=EmptyDir("Memory")), volume("disk", empty_dir=EmptyDir()))
    pods = {UID: pod_of("web", container("main", requests="memory=103Mi"), volumes=volumes)}
    assert [each.volumes for each in examined(lines, pods=pods).causes[:2]] == [("cache",), ()]


def test_a_quarter_is_worth_naming_after_the_processes():
    found = causes(on_node(SANDBOX, info=memory_info(active_anon=230_000, shmem=70_000)))
    assert [each[0] for each in found[:2]] == [Cause.OWN_USE, Cause.TMPFS]


def test_the_kubelet_did_not_see_the_shortage_or_came_too_late():
    anon = {"active_anon": 230_000, "free": 11_000}
    unseen = causes(on_node(SANDBOX, info=memory_info(**anon, inactive_file=20_000)))[-1]
    assert unseen == (Cause.NOT_COUNTED, 31_000 * PAGE_BYTES, 100 * MI)
    kill = examined(on_node(SANDBOX, info=memory_info(**anon, inactive_file=1_000)))
    late = kill.causes[-1]
    lead = 100 * MI - 12_000 * PAGE_BYTES
    assert (late.cause, late.held_bytes, late.against_bytes) == (Cause.THRESHOLD, 12_000 * PAGE_BYTES, 100 * MI)
    assert (late.growth_bytes_per_second, late.is_default) == (lead // 10, True)
    higher = KubeletConfiguration(eviction_hard={"memory.available": "200Mi"})
    against = causes(on_node(SANDBOX, info=memory_info(**anon)), kubelet_of=lambda _: higher)[-1][2]
    assert against == 200 * MI


def test_a_machine_without_a_kubelet_has_no_race_and_no_requests():
    lines = [line for line in machine() if "task_memcg" not in line]
    found = examined([*lines[:5], *memory_info(active_anon=230_000), *lines[5:]])
    assert [(each.cause, each.against_bytes) for each in found.causes] == [(Cause.OWN_USE, None)]


# ---- what would have saved it ----------------------------------------------------------------------------------------


def saved(lines, **facts):
    return {each.change: each for each in examined(lines, **facts).saved_by}


def test_a_threshold_is_as_high_as_the_growth_asks_for():
    lines = on_node(SANDBOX, info=memory_info(active_anon=230_000, inactive_file=1_000))
    assert SavedBy.THRESHOLD not in saved(lines), "the growth is not known"
    growth, available = 20 * MI, 12_000 * PAGE_BYTES
    needed = saved(lines, growth_bytes_per_second=growth)[SavedBy.THRESHOLD]
    assert needed.more == needed.amount - 100 * MI
    for threshold, always in ((needed.amount, True), (needed.amount - PAGE_BYTES, False)):
        start = threshold + growth * 3600
        first = run_race(Race(available + start, start, threshold, growth)).kubelet_first
        assert (first == Fraction(1)) is always
    assert SavedBy.THRESHOLD not in saved(lines, growth_bytes_per_second=5 * MI), "the default is in time"
    assert SavedBy.THRESHOLD not in saved(lines, growth_bytes_per_second=200 * MI), "more than the machine has"


def known(*containers):
    return {UID: pod_of("web", *containers)}


def test_a_known_manifest_bounds_the_request_by_its_limit():
    rival = (7, 1000, 100_000, 0, 0, 900 - 1, "rival")
    lines = on_node(SANDBOX, rival)
    open_ended = known(container("main", requests="memory=103Mi"))
    request = saved(lines, pods=open_ended)[SavedBy.REQUEST]
    assert request.amount - request.more == 103 * MI
    assert request.oom_score_adj == 1000 - 1000 * request.amount // (1 << 30)
    limited = known(container("main", requests="memory=103Mi", limits="memory=200Mi"))
    assert SavedBy.REQUEST not in saved(lines, pods=limited)


@pytest.mark.parametrize("containers", [(), (container("main"),), (container("other", requests="memory=1Mi"),)])
def test_a_manifest_that_does_not_fit_the_score_gives_way_to_the_score(containers):
    rival = (7, 1000, 100_000, 0, 0, 899, "rival")
    lines = on_node(SANDBOX, rival)
    assert saved(lines, pods=known(*containers)) == saved(lines)


def test_of_several_containers_the_one_with_the_victims_score_is_changed():
    rival = (7, 1000, 100_000, 0, 0, 899, "rival")
    pods = known(container("side", requests="memory=500Mi"), container("main", requests="memory=103Mi"))
    request = saved(on_node(SANDBOX, rival), pods=pods)[SavedBy.REQUEST]
    assert request.amount - request.more == 103 * MI


def test_a_pod_without_requests_becomes_burstable_by_one():
    rival = (7, 1000, 149_000, 0, 0, 1000, "rival")
    best_effort = (102, 1000, 150_000, 300, 0, 1000, "java")
    lines = [line.replace("burstable", "besteffort") for line in on_node(SANDBOX, rival, victim=best_effort)]
    request = saved(lines)[SavedBy.REQUEST]
    assert (request.qos_class, request.instead) == (QOSClass.BURSTABLE, "rival (pid 7)")
    assert request.more == request.amount


def test_the_size_of_the_node_turns_a_score_into_a_request_in_a_cgroups_report():
    rows = [(102, 1000, 150_000, 300, 0, 900, "java"), (7, 1000, 100_000, 0, 0, 899, "rival")]
    lines = [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={KUBEPODS}") for line in cgroup(rows, 102, "java")]
    unknown = saved(lines)[SavedBy.REQUEST]
    assert unknown.amount is None
    sized = saved(lines, memory_bytes={"": 16 * GI})[SavedBy.REQUEST]
    assert sized.oom_score_adj == unknown.oom_score_adj == 1000 - 1000 * sized.amount // (16 * GI)


def test_a_guaranteed_victim_has_no_better_class_and_needs_no_request():
    safe = (102, 1000, 150_000, 300, 0, -997, "java")
    lines = [line.replace("burstable", "") for line in on_node(SANDBOX, victim=safe)]
    assert not {SavedBy.CLASS, SavedBy.REQUEST, SavedBy.PRIORITY} & set(saved(lines))


def test_without_a_table_only_what_needs_no_ranking_is_said():
    lines = [line for line in cgroup([VICTIM], 102, "java") if not line.startswith("[")]
    assert set(saved(lines)) == {SavedBy.LIMIT}
    assert set(saved([line for line in on_node(SANDBOX) if not line.startswith("[")])) == {SavedBy.NODE_SIZE}


def test_processes_of_the_victims_score_share_its_fate():
    worker = (103, 1000, 149_000, 300, 0, 900, "worker")
    other = (7, 1000, 140_000, 0, 0, 900 - 1, "other")
    request = saved(on_node(SANDBOX, worker, other))[SavedBy.REQUEST]
    assert "(pid 7)" in request.instead, "not the worker, which has the same request"
    assert SavedBy.USAGE not in saved(on_node(SANDBOX, worker)), "the worker would have died, of the same container"


HUGE_PAGES = "Node 0 hugepages_total=300 hugepages_free=280 hugepages_surp=0 hugepages_size=2048kB"
HOSTILE = (
    on_node(
        SANDBOX,
        order=2,
        zone=[*zone("Normal", 900, 1000), "Node 0 Normal: 225*4kB (UME) 0*8kB 2*16kB (H) = 900kB"],
        info=[*memory_info(active_anon=100_000, active_file=50_000), HUGE_PAGES, "Free swap  = 100kB"],
    ),
    on_node(SANDBOX, (7, 1000, 90_000, 0, 5, 0, "dockerd"), info=memory_info(active_anon=230_000, shmem=70_000)),
    [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={POD}") for line in cgroup([VICTIM, SANDBOX], 102, "java")],
)


@given(st.sampled_from(HOSTILE), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 25)), max_size=6))
def test_no_number_in_a_report_is_too_large_to_be_said(lines, changed):
    text = "\n".join(lines)
    for at, digits in changed:
        numbers = list(re.finditer(r"\d+", text))
        found = numbers[at % len(numbers)]
        text = text[: found.start()] + "9" * digits + text[found.end() :]
    for report in read(text.split("\n")):
        kill = worded(Examiner(facts=NodeFacts(growth_bytes_per_second=MI)).examine(report))
        assert msgspec.json.decode(msgspec.json.encode(kill), type=Death) == kill
        assert all(cause.words for cause in kill.causes)
