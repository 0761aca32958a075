"""``podqos autopsy``: causes that a report proves, and advice that an operator can follow."""

from __future__ import annotations

import re

import pytest

from deaths import parsed
from kernel.oom_logs import CONTAINER, POD, cgroup, killed, machine
from podqos.cli.main import main
from questions.test_autopsy_causes import SANDBOX, memory_info, on_node, zone

MI = 1 << 20
STATISTICS = ["anon 94371840", "file 6291456", "shmem 2097152", "kernel 2097152"]
FULL = 102_400
"""A limit of 100Mi, in KiB."""


@pytest.fixture
def told(tmp_path, capsys):
    """Return what the command prints about a log, each paragraph on a line, and the first kill in JSON."""

    def tell(lines, *arguments):
        (tmp_path / "log").write_text("\n".join(lines) + "\n")
        assert main(["autopsy", str(tmp_path / "log"), *arguments]) == 0
        text = capsys.readouterr().out
        assert main(["autopsy", str(tmp_path / "log"), *arguments, "-o", "json"]) == 0
        return re.sub(r"\n {12}(?=\S)", " ", text), parsed(capsys.readouterr().out)["kills"][0]

    return tell


def container(*rows, at=CONTAINER, statistics=STATISTICS, swap_kb=0):
    """Return the report of a container or pod at its limit of 100Mi; the first row dies."""
    lines = cgroup(rows, rows[0][0], rows[0][-1], limit_kb=FULL, swap_kb=swap_kb)
    where = lines.index("anon 1000")
    lines[where : where + 1] = statistics
    return [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={at}") for line in lines]


APP = (41, 1000, 20_000, 40, 0, 990, "app")
HELPER = (42, 1000, 3_000, 10, 0, 990, "helper")


# ---- inside one pod --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "whose"), [(CONTAINER, "the container"), (POD, "the pod")], ids=["container", "pod"])
def test_what_filled_a_pods_own_limit_is_told_with_the_largest_processes(told, at, whose):
    text, kill = told(container(APP, HELPER, at=at))
    expected = f"{whose} reached its own limit of 100Mi: anon 90Mi + page cache 4Mi + tmpfs and shared memory 2Mi"
    assert f"{expected} + kernel 2Mi; largest processes: app (pid 41) 78.1Mi and helper (pid 42) 11.7Mi" in text
    assert "memory 100Mi of 100Mi, peak at the limit, reached 12 times so far" in text
    assert [each["rssBytes"] for each in kill["inside"]["largest"]] == [20_000 * 4096, 3_000 * 4096]


OLD = [
    "java invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
    f"Task in {CONTAINER} killed as a result of limit of {CONTAINER}",
    "memory: usage 92160kB, limit 102400kB, failcnt 0",
    "memory+swap: usage 204800kB, limit 204800kB, failcnt 12",
    "kmem: usage 40960kB, limit 9007199254740988kB, failcnt 0",
]


def test_the_kernels_part_of_a_limit_is_told_also_without_statistics_and_swap_is_not_something_other(told):
    text, _ = told([*OLD[:3], OLD[4]])
    assert "reached its own limit of 100Mi: kernel 40Mi + other 50Mi" in text
    text, _ = told([*OLD, f"Memory cgroup stats for {CONTAINER}: cache:0KB rss:51200KB swap:112640KB"])
    assert "reached its own limit of 200Mi: swap 110Mi + anon 50Mi + kernel 40Mi\n" in text


@pytest.mark.parametrize("at", [CONTAINER, POD], ids=["container", "pod"])
def test_inside_a_pod_only_its_limit_saves_and_no_request_class_or_priority(told, at):
    sidecar = (42, 1000, 3_000, 10, 0, 500, "sidecar")
    text, kill = told(container(APP, sidecar, at=at))
    (saving,) = kill["savedBy"]
    assert (saving["change"], saving["advised"], saving.get("instead")) == ("limit", 121 * MI, None)
    assert re.search(r"memory limit (of the pod .*)?of 121Mi \(20 % above what was in memory\), unless something", text)
    assert "No request, QoS class or priority would have helped" in text
    assert "would have died instead" not in text


def test_no_advice_is_a_few_pages(told):
    for lines in (container(APP), container(APP, at="/system.slice/db.service"), on_node(SANDBOX), machine()):
        text, _ = told(lines)
        assert "saved by" in text
        assert not re.search(r"\b\d{1,3}Ki\b", text)


def test_where_a_limit_is_full_of_page_cache_more_of_it_may_fill_a_higher_limit(told):
    text, _ = told(container(APP, statistics=["anon 4194304", "file 96468992", "file_dirty 90000000", "kernel 0"]))
    assert "page cache that could not be dropped holds 92Mi of 100Mi, 85.8Mi of it not yet written to disk" in text
    assert "as long as page cache does not fill that, too" in text


def test_a_process_that_set_its_own_score_is_named(told):
    renderer = (43, 1000, 2_000, 10, 0, 300, "renderer")
    text, kill = told(container(APP, HELPER, renderer))
    assert "renderer (pid 43) has oom_score_adj 300, not 990 like its container: set by the process itself" in text
    assert [each["pid"] for each in kill["inside"].get("ownScores", [])] == [43]


@pytest.mark.parametrize("score", [-999, -998, -997])
def test_scores_that_kubelets_and_runtimes_give_are_not_a_processs_own(told, score):
    first, other = (*APP[:5], score, "app"), (*HELPER[:5], -998, "helper")
    guaranteed = [
        line.replace("kubepods-burstable.slice/kubepods-burstable-pod", "kubepods-pod")
        for line in container(first, other)
    ]
    assert told(guaranteed)[1]["inside"].get("ownScores", []) == []
    starting = (*HELPER[:5], -1000, "runc:[2:INIT]")
    assert told(container(APP, starting))[1]["inside"].get("ownScores", []) == []


@pytest.mark.parametrize(
    ("qos", "score", "own"),
    [("besteffort", 1000, 0), ("besteffort", 0, 1), ("burstable", 3, 0), ("burstable", -998, 0), ("burstable", 0, 1)],
)
def test_in_a_pod_of_several_containers_only_scores_that_no_container_has_are_a_processs_own(told, qos, score, own):
    first = (*APP[:5], 1000 if qos == "besteffort" else 990, "app")
    other = (42, 1000, 3_000, 10, 0, score, "other")
    lines = [line.replace("burstable", qos) for line in container(first, other, at=POD)]
    assert len(told(lines)[1]["inside"].get("ownScores", [])) == own


def test_who_lives_on_without_a_group_kill_is_told_where_the_log_goes_on_after_the_kill(told):
    text, _ = told(container(APP, HELPER))
    assert "memory.oom.group is not set: 1 other process lives on" in text
    unfinished = [line for line in container(APP, HELPER) if "oom_reaper" not in line]
    assert "memory.oom.group" not in told(unfinished)[0]


def test_swap_is_told_with_its_share_of_what_a_process_uses(told):
    swapped = (41, 1000, 20_000, 40, 5_000, 990, "app")
    lines = [line.replace("swap: usage 0kB", "swap: usage 20480kB") for line in container(swapped, swap_kb=20_480)]
    text, kill = told(lines)
    assert re.search(r"swap +20Mi of 20Mi used", text)
    assert "app (pid 41) 78.1Mi (and 19.5Mi in swap)" in text
    assert re.search(r"NAME +PID +BADNESS +USED +SWAP +ADJ\n +app +41 +[\d,]+ +97.8Mi +19.5Mi +990", text)
    assert kill["ranking"][0]["swapBytes"] == 5_000 * 4096
    assert "SWAP" not in told(container(APP))[0]


def test_a_limit_whose_figures_are_missing_is_still_the_cause(told):
    lines = [line for line in container(APP, HELPER) if not line.startswith(("memory:", "swap:", "anon", "file"))]
    text, kill = told(lines)
    assert "the container reached its own limit; largest processes: app (pid 41) 78.1Mi and helper" in text
    assert (kill.get("shortage"), kill["savedBy"]) == (None, [])


def test_without_a_table_the_kills_own_line_says_what_the_victim_used(told):
    text, _ = told([line for line in container(APP) if line.startswith(("oom-kill:", "Memory cgroup out"))])
    assert re.search(r"used +app \(pid 41\) 3.9Mi in memory\n", text)
    assert "in memory\n" not in told(container(APP))[0]


def test_the_counter_that_was_full_is_the_limit_to_raise(told):
    full = f"memory: usage 81920kB, limit {FULL}kB, failcnt 0"
    swapped = "memory+swap: usage 153600kB, limit 153600kB, failcnt 7"
    lines = [line for line in container(APP) if not line.startswith("swap:")]
    at = next(at for at, line in enumerate(lines) if line.startswith("memory:"))
    text, kill = told([*lines[:at], full, swapped, *lines[at + 1 :]])
    assert "a memory+swap limit of 181Mi (20 % above" in text
    assert (kill["shortage"]["swapUsageBytes"], kill["shortage"]["swapLimitBytes"]) == (70 * MI, 70 * MI)


def test_a_cgroup_that_was_not_full_any_more_gets_no_higher_limit(told):
    lines = [line.replace(f"usage {FULL}kB", "usage 40960kB") for line in container(APP)]
    text, kill = told(lines)
    assert "only 40Mi of 100Mi was in use again when the report was written" in text
    assert (kill["shortage"]["kind"], kill["savedBy"]) == ("freed", [])


# ---- which memory ----------------------------------------------------------------------------------------------------

PIECES = "Node 0 Normal: 500*4kB (UME) 0*8kB 2*16kB (H) 0*32kB = 2032kB"


def test_a_machine_that_is_full_is_not_called_fragmented(told):
    full = [*zone("Normal", 900, 1000), "Node 0 Normal: 225*4kB (UME) 0*8kB 0*16kB = 900kB"]
    assert told(on_node(zone=full, order=2))[1]["shortage"]["kind"] == "watermarks"
    cached = on_node(zone=full, order=2, info=memory_info(active_file=50_000))
    assert told(cached)[1]["shortage"]["kind"] == "fragmentation"
    little = on_node(zone=full, order=2, info=memory_info(active_file=100))
    assert told(little)[1]["shortage"]["kind"] == "watermarks"


def test_huge_pages_are_a_cause_with_what_nobody_uses_of_them(told):
    pages = "hugepages_total=300 hugepages_free=280 hugepages_surp=0 hugepages_size=2048kB"
    lines = on_node(SANDBOX, info=[*memory_info(active_anon=100_000), f"Node 0 {pages}"])
    text, kill = told(lines)
    assert "huge pages hold 600Mi of 1Gi, 560Mi of it unused; only programs that ask for huge pages can" in text
    assert kill["causes"][0]["cause"] == "HugePages"
    assert "setting aside 40Mi for huge pages: the rest was not in use" in text
    assert "Unaccounted" not in {each["cause"] for each in kill["causes"]}


def old_nodes(invoked, cpuset):
    """Return the report of a machine with two memory nodes, of a kernel whose report names no constraint."""
    lines = machine(release="4.14.0")
    lines[0] = lines[0].replace("order=0", f"{invoked}order=0")
    lines[1:1] = [f"worker 7 cpuset={cpuset}"]
    at = next(at for at, line in enumerate(lines) if line.startswith("Node 0 DMA32 free"))
    other = "Node 1 Normal free:9000000kB min:45000kB low:56000kB high:67000kB present:9048576kB managed:9000000kB"
    lines[at + 1 : at + 1] = [other]
    return lines


# ---- why this one ----------------------------------------------------------------------------------------------------


def test_swapoff_is_killed_first_whatever_its_badness(told):
    rows = [(101, 1000, 90_000, 200, 0, 0, "java"), (102, 0, 20, 2, 0, 0, "swapoff")]
    text, kill = told(machine(rows, kill=killed(102, "swapoff", 20)))
    assert (kill["followsRule"], kill["reason"]) == (True, "Origin")
    assert "the kernel kills first what turns off swap or KSM" in text
    assert "swapoff (pid 102) was turning off swap, and what was swapped out did not fit into memory" in text
    assert [each["cause"] for each in kill["causes"]] == ["SwapOff"]
    alone = told(["swapoff invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", killed(102, "swapoff", 20)])[1]
    assert alone["reason"] == "Origin", "whatever the table would say"


@pytest.mark.parametrize(("asked", "reason"), [(102, "Origin"), (101, "OtherIsHigher")])
def test_who_turns_off_ksm_is_killed_first_by_its_call_trace(told, asked, reason):
    rows = [(101, 1000, 90_000, 200, 0, 0, "java"), (102, 0, 20, 2, 0, 0, "bash")]
    lines = [line.replace("PID: 77", f"PID: {asked}") for line in machine(rows, kill=killed(102, "bash", 20))]
    lines[4:4] = [" unmerge_and_remove_all_rmap_items+0x2a/0x110"]
    kill = told(lines)[1]
    assert kill["reason"] == reason
    assert ("KSMOff" in {each["cause"] for each in kill["causes"]}) is (reason == "Origin")


@pytest.mark.parametrize("is_old", [False, True])
def test_a_kill_by_hand_is_not_a_shortage(told, is_old):
    lines = machine()
    lines[0] = lines[0].replace("order=0", "order=0" if is_old else "order=-1")
    lines[2:2] = ["Workqueue: events moom_callback"] if is_old else []
    text, kill = told(lines)
    assert "Someone triggered the OOM killer by hand (SysRq f): java" in text
    assert "ran out of memory" not in text
    assert (kill["call"], kill["savedBy"]) == ("sysrq", [])


def test_a_kill_by_hand_is_the_one_after_the_line_that_says_so(told):
    rows = ((101, 1000, 90_000, 200, 0, 0, "small"), (102, 1000, 150_000, 300, 0, 0, "java"))
    first = [line for line in machine(rows) if "Killed" not in line]
    text, kill = told([*first, "sysrq: SysRq : Manual OOM execution", *machine(rows, kill=killed(102, "java"))])
    assert "call" not in kill
    assert text.count("Someone triggered the OOM killer by hand") == 1


def test_a_page_fault_that_failed_does_not_say_that_the_machine_ran_out(told):
    lines = [line.replace("gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)", "gfp_mask=0x0()") for line in machine()]
    assert "The machine ran out of memory: java" in told(lines)[0], "every zone is short"
    text, kill = told([line.replace("free:44000kB", "free:440000kB") for line in lines])
    assert "A page fault got no memory: java" in text
    assert "ran out of memory" not in text
    assert [each["cause"] for each in kill["causes"]] == ["MemoryElsewhere"]


OF_TOTAL = "root has 3 % of the total taken off"


@pytest.mark.parametrize(
    ("release", "words", "badness"),
    [
        (
            "3.3.0",
            f"kernel 3.3: {OF_TOTAL}, rounded down to thousandths of the total",
            543 * 262,
        ),
        ("3.10.0", f"kernel 3.10: {OF_TOTAL}", 150_300 - 30 * 262),
        ("4.4.0", "kernel 4.4: root has 3 % of its usage taken off", 150_300 - 4509),
        ("4.19.0", "", 150_300),
    ],
)
def test_the_rules_line_says_what_an_old_kernel_does_differently(told, release, words, badness):
    lines = machine([(102, 0, 150_000, 300, 0, 0, "java (main) [x]")], "nr_ptes", release=release)
    text, kill = told(lines)
    (first,) = kill["ranking"]
    assert f"pages of 4 KiB{'; ' if words else ''}{words}\n" in text
    assert (first["badness"], first["used"]) == (badness, 150_300 * 4096), "what is used is what is used"
    assert first["used"] + first["added"] == badness * 4096


# ---- who -------------------------------------------------------------------------------------------------------------


def test_processes_of_one_program_are_added_up_where_no_kubelet_runs(told):
    rows = [(number, 1000, 30_000, 40, 0, score, "chrome") for number, score in ((101, 300), (102, 0), (103, 0))]
    text, _ = told(machine([*rows, (104, 1000, 40_000, 40, 0, 0, "java")], kill=killed(101, "chrome", 30_000)))
    assert "the victim's own usage: 3 chrome processes use 351.6Mi together, more than any other" in text


def test_a_process_of_next_to_no_memory_is_not_a_cause(told):
    rows = [(101, 1000, 900, 4, 0, 0, "cron"), (102, 1000, 1_000, 4, 0, 0, "java")]
    lines = machine(rows, kill=killed(102, "java", 1_000))
    lines[5:5] = memory_info(active_anon=200_000)
    text, kill = told(lines)
    assert [each["cause"] for each in kill["causes"]] == ["NotInTable"]
    assert "processes that are not in the table, such as ones that were ending, hold 773.8Mi of 1Gi" in text


def test_memory_that_was_free_again_is_told_and_nobody_is_blamed(told):
    plenty = [line.replace("high:2kB", "high:1500kB") for line in zone("Normal", 900_000, 1000)]
    text, kill = told(on_node(SANDBOX, zone=plenty))
    assert "878.9Mi was free again when the report was written: a process had just ended" in text
    assert [each["cause"] for each in kill["causes"]] == ["MemoryElsewhere"]


def test_between_the_watermarks_the_kernel_kills_as_well_and_more_memory_helps(told):
    text, kill = told([line.replace("free:44000kB", "free:50000kB") for line in machine()])
    assert kill["shortage"]["lackingBytes"] == (67_000 + 4 - 50_000) << 10
    assert "48.8Mi free, all of it in the kernel's reserves, 16.6Mi short" in text
    assert "1249Mi of memory in the machine" in text


def test_a_larger_machine_holds_what_was_in_swap_too(told):
    lines = machine()
    at = lines.index("Total swap = 0kB")
    lines[at : at + 1] = ["Free swap  = 0kB", "Total swap = 1048576kB"]
    text, kill = told(lines)
    assert "3Gi of memory in the machine (20 % above what was in memory and in swap), unless something leaks" in text
    assert kill["shortage"]["swapUsageBytes"] == kill["shortage"]["swapLimitBytes"] == 1 << 30
