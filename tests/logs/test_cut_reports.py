"""Reports of the OOM killer that lack lines, are from old kernels, or are none: what ran out is only what is proven."""

from __future__ import annotations

import pytest

from kernel.oom_logs import CARRIERS, CONTAINER, GIB_PAGES, cgroup, killed, machine, read, table
from podqos.logs.report import Constraint, OOMReport

BIG = (7, 1000, 200_000, 100, 5, 100, "python3")
MEMCG_TRACE = [
    "Call Trace:",
    " dump_header+0x4a/0x201",
    " oom_kill_process+0xe/0x120",
    " out_of_memory+0x118/0x420",
    " mem_cgroup_out_of_memory+0x8a/0xa6",
    " try_charge+0x1d0/0x782",
]
MACHINE_TRACE = [
    "Call Trace:",
    " [<ffffffff8117e8c8>] dump_header+0x7d/0x208",
    " [<ffffffff8117ed2a>] ? oom_badness+0x10/0x20",
    " [<ffffffff8117f0f2>] out_of_memory+0x482/0x4c0",
    " [<ffffffff81184b40>] __alloc_pages_nodemask.part.3+0xa28/0xb40",
]
FIRST = "my app invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0"
ASKED = "CPU: 1 PID: 77 Comm: my app Not tainted 3.13.0-43-generic #72-Ubuntu"
DONE = "Killed process 102 (java) total-vm:1200000kB, anon-rss:600000kB, file-rss:0kB"
MEMORY = machine()[4:10]


def old(*memory: str, kill: str, release: str = "3.13.0-43-generic") -> list[str]:
    """Return a report of a kernel before 5.0."""
    asked = f"CPU: 1 PID: 77 Comm: my app Not tainted {release} #72"
    return [FIRST, asked, *memory, *table(form="nr_ptes"), kill, DONE]


def of_cgroup() -> list[str]:
    return old(
        *("Task in /docker/a killed as a result of limit of /docker", "memory: usage 1024kB, limit 1024kB, failcnt 1"),
        kill="Memory cgroup out of memory: Kill process 102 (java) score 990 or sacrifice child",
    )


def of_machine() -> list[str]:
    return old(*MEMORY, kill="Out of memory: Kill process 102 (java) score 990 or sacrifice child")


def only(lines: list[str]) -> OOMReport:
    (report,) = read(lines)
    return report


# ---- a report may begin anywhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", ["plain", "dmesg", "syslog", "kmsg"])
@pytest.mark.parametrize("lines", [of_cgroup(), of_machine(), machine(), cgroup([BIG], 7, "python3")[:-1]])
def test_whatever_is_missing_at_the_beginning_victim_and_scope_are_those_of_the_whole(lines, carrier):
    carried = [CARRIERS[carrier](line) for line in lines]
    whole = only(carried)
    for cut in range(1, len(lines) - 1):
        report = only(carried[cut:])
        assert ([*report.victims], report.chosen) == ([*whole.victims], whole.chosen), lines[cut]
        assert report.constraint is whole.constraint, lines[cut]
        assert report.columns in {None, whole.columns}
        assert report.columns is None or report.tasks == whole.tasks or report.is_cut
    assert only(carried[1:]).trigger == whole.trigger, "the next line names who asked"
    assert only(carried[1:]).trigger_pid == whole.trigger_pid


@pytest.mark.parametrize("lines", [of_cgroup(), of_machine(), machine(), cgroup([BIG], 7, "python3")])
def test_whatever_is_missing_at_the_end_no_other_scope_is_named(lines):
    whole = only(lines)
    for cut in range(1, len(lines)):
        report = only(lines[:cut])
        assert report.constraint in {None, whole.constraint}, lines[cut - 1]
        assert not set(report.victims) - set(whole.victims)


def test_the_task_that_was_killed_and_the_limit_may_be_in_two_lines():
    lines = of_cgroup()
    lines[2:3] = ["Task in /docker/a killed", " as a result of limit of /docker"]
    assert (only(lines).task_cgroup, only(lines).oom_cgroup) == ("/docker/a", "/docker")


def test_where_the_host_is_what_was_full_the_machine_ran_out_even_if_that_is_in_a_line_of_its_own():
    report = only([FIRST, "Task in /docker/a killed", " as a result of limit of host"])
    assert (report.constraint, report.task_cgroup, report.oom_cgroup) == (Constraint.NONE, "/docker/a", "/")


def rows_alone() -> list[str]:
    return [line for line in table(form="nr_ptes") if "total_vm" not in line]


@pytest.mark.parametrize(
    "lines",
    [
        ["[ 1]  1  2  3  4  5  6  7  8  9 10", "[11] 11 12 13 14 15 16 17 18 19 20"],
        ["[  5] 5 5 1 2 3 4 5", "[  6] 5 6 1 2 3 4 5"],
        ["[    7]  1000     9   200000      100       5        5             0 job"] * 3,
        rows_alone()[:1],
    ],
    ids=["counted", "no name", "no leader", "one"],
)
def test_what_only_looks_like_rows_is_no_oom(lines):
    assert read(lines) == []


def test_rows_under_a_name_that_no_other_line_has_are_no_oom_of_their_own():
    lines = [CARRIERS["syslog"](line) for line in of_machine()]
    at = next(number for number, line in enumerate(lines) if "total_vm" in line) + 1
    lines[at : at + 2] = [line.replace(" node-1 ", " nde-1 ") for line in lines[at : at + 2]]
    assert [set(report.victims) for report in read(lines)] == [{102}]


def test_rows_without_a_header_belong_to_the_kill_behind_them():
    kill = "Out of memory: Kill process 102 (java) score 990 or sacrifice child"
    assert set(only([CARRIERS["dmesg"](line) for line in (*rows_alone(), kill, DONE)]).victims) == {102}


@pytest.mark.parametrize("carrier", ["dmesg", "kmsg", "plain"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Task in /docker/a killed as a result of limit of /docker",
            "Task in /docker/b killed as a result of limit of /docker",
        ),
        ("memory: usage 1024kB, limit 1024kB, failcnt 1", "memory: usage 1024kB, limit 1024kB, failcnt 9"),
    ],
)
def test_of_lines_that_a_report_has_once_and_that_differ_each_is_of_an_oom_of_its_own(one, other, carrier):
    assert len(read([CARRIERS[carrier](line) for line in (one, other)])) == 2
    assert len(read([CARRIERS[carrier](line) for line in (one, one, one[:30])])) == 1


def test_usage_and_limit_without_failures_are_no_oom_of_their_own():
    lines = [f"app[{at}]: cache: memory: usage {at}kB, limit 900kB" for at in range(9)]
    assert len(read(lines)) == 1


@pytest.mark.parametrize(
    ("line", "constraint", "cgroup_path"),
    [
        ("Task in /docker/a killed as a result of limit of /docker", Constraint.MEMCG, "/docker"),
        ("Task in /docker/a killed as a result of limit of host", Constraint.NONE, "/"),
        ("memory: usage 1024kB, limit 1024kB, failcnt 1", Constraint.MEMCG, None),
        ("memory+swap: usage 1024kB, limit 1024kB, failcnt 1", Constraint.MEMCG, None),
        ("kmem: usage 0kB, limit 9007199254740988kB, failcnt 0", Constraint.MEMCG, None),
        ("Memory cgroup out of memory: Kill process 7 (x) score 990 or sacrifice child", Constraint.MEMCG, None),
        ("Out of memory: Kill process 7 (x) score 990 or sacrifice child", Constraint.NONE, "/"),
        ("Out of memory: Kill process 7 (x) score", Constraint.NONE, "/"),
        ("Out of memory: Kill process 7 (x)", Constraint.NONE, "/"),
        ("Killed process 7 (x) total-vm:8kB, anon-rss:4kB, file-rss:0kB", None, None),
        ("oom_reaper: reaped process 7 (x), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB", None, None),
        ("Out of memory and no killable processes...", None, None),
        ("Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled", Constraint.NONE, "/"),
        ("Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled", None, None),
        ("Kernel panic - not syncing: System is deadlocked on memory", Constraint.NONE, "/"),
        ("Kernel panic - not syncing: Out of memory and no killable processes...", Constraint.NONE, "/"),
        ("Kernel panic - not syncing: out of memory(memcg). panic_on_oom is selected.", Constraint.MEMCG, None),
        ("a invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0", None, None),
    ],
)  # fmt: skip
def test_one_line_that_is_left_is_an_oom_and_proves_no_more_than_it_says(line, constraint, cgroup_path):
    for carried in (line, f"> {line}", *(CARRIERS[name](line) for name in ("dmesg", "syslog", "kmsg"))):
        report = only([carried])
        assert (report.constraint, report.oom_cgroup) == (constraint, cgroup_path)


def test_statistics_name_the_cgroup_where_no_other_line_does():
    lines = [line for line in cgroup([BIG], 7, "python3") if not line.startswith("oom-kill:")]
    assert (only(lines).constraint, only(lines).oom_cgroup) == (Constraint.MEMCG, CONTAINER)


def test_a_table_that_was_searched_out_line_by_line_lacks_rows():
    lines = [line for line in [*of_machine()[:-2], *of_machine()[-2:]] if "oom" in line or "ill" in line.lower()]
    assert only(lines).is_cut
    assert not only(of_machine()).is_cut


# ---- what ran out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "constraint"),
    [
        ([FIRST, ASKED, *MEMCG_TRACE, DONE], Constraint.MEMCG),
        ([FIRST, ASKED, *MACHINE_TRACE, DONE], Constraint.NONE),
        ([FIRST, ASKED, *MEMORY, DONE], Constraint.NONE),
        ([FIRST, DONE], None),
        ([FIRST, ASKED, " ? mem_cgroup_out_of_memory+0x8a/0xa6", *MACHINE_TRACE, DONE], Constraint.NONE),
        ([FIRST, ASKED, " ? mem_cgroup_out_of_memory+0x8a/0xa6", DONE], Constraint.MEMCG),
        ([FIRST, ASKED.replace("3.13.0", "3.2.0"), *MEMORY, DONE], None),
        ([FIRST, ASKED.replace("3.13.0", "3.2.0"), " dump_stack+0x1/0x2", *MEMORY, DONE], Constraint.NONE),
    ],
)
def test_the_stack_and_the_machines_memory_prove_what_ran_out(lines, constraint):
    assert only(lines).constraint is constraint


def test_5_0_calls_the_constraint_of_a_cgroup_none():
    lines = [line.replace("CONSTRAINT_MEMCG", "CONSTRAINT_NONE") for line in cgroup([BIG], 7, "python3")]
    assert only(lines).constraint is Constraint.MEMCG


def test_memory_that_is_shown_for_a_failed_allocation_is_no_oom_and_proves_nothing():
    frames = [" warn_alloc+0xfe/0x160", " __alloc_pages_slowpath.constprop.3+0xd2/0xd40"]
    failure = ["swapper/0: page allocation failure: order:4, mode:0x20", ASKED, *frames, *MEMORY]
    assert read(failure) == []
    report = only([*failure, DONE])
    assert (report.constraint, report.zones, report.trigger) == (None, [], "")
    assert only([FIRST, *failure, DONE]).constraint is None


@pytest.mark.parametrize(
    "before", ["", "app: ", "something unknown: ", "A very long sentence that nobody has ever thought of | "]
)
def test_the_line_after_the_first_says_where_the_name_begins(before):
    report = only([f"{before}{line}" for line in (FIRST, ASKED, DONE)])
    assert (report.trigger, report.trigger_pid) == ("my app", 77)


def test_the_stack_of_another_process_is_not_that_of_the_one_that_asked():
    report = only([FIRST, ASKED.replace("77", "5").replace("my app", "kworker/1:1"), ASKED, DONE])
    assert report.trigger_pid == 77


# ---- order ---------------------------------------------------------------------------------------------------------


def test_a_reaper_may_be_before_the_kill():
    lines = machine()
    report = only([*lines[:-1], "oom_reaper: reaped process 102 (java), now anon-rss:0kB", lines[-1]])
    assert report.victims[102].is_reaped
    alone = only(["oom_reaper: reaped process 102 (java), now anon-rss:0kB", lines[-1]])
    assert (alone.victims[102].is_reaped, alone.victims[102].rss_kb) == (True, 600_000)


def test_the_reaper_of_a_victim_that_is_known_is_no_other_oom():
    kills = [killed(1, "a"), killed(2, "b"), *(f"oom_reaper: reaped process {pid} (x), now" for pid in (1, 2, 9))]
    assert [[*report.victims] for report in read(kills)] == [[1], [2]]


def test_a_kill_that_is_repeated_is_one():
    assert len(read([*machine(), machine()[-1], machine()[-1]])) == 1


def test_a_second_group_begins_with_the_kill_before_its_line():
    group = "Tasks in {} are going to be killed due to memory.oom.group set"
    why = "Memory cgroup out of memory"
    lines = [killed(1, "a", why=why), group.format("/x"), killed(1, "a", why=why), killed(2, "b", why=why)]
    lines += [killed(3, "c", why=why), group.format("/y"), killed(3, "c", why=why), killed(4, "d", why=why)]
    assert [(report.group, [*report.victims]) for report in read(lines)] == [("/x", [1, 2]), ("/y", [3, 4])]


def test_of_two_reports_line_by_line_none_has_what_may_be_the_others():
    first, second = cgroup([BIG], 7, "python3"), cgroup([(8, *BIG[1:6], "other")], 8, "other", limit_kb=2048)
    second = [line.replace(CONTAINER, "/b") for line in second]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    reports = {pid: report for report in read(mixed) for pid in report.victims}
    assert set(reports) == {7, 8}
    for report in reports.values():
        assert report.constraint is Constraint.MEMCG
        assert not report.counters
        assert report.is_cut


def test_a_report_without_its_kill_does_not_take_that_of_the_next():
    first, second = read([*of_machine()[:-2], *cgroup([BIG], 7, "python3")])
    assert (first.constraint, [*first.victims]) == (Constraint.NONE, [])
    assert (second.constraint, [*second.victims]) == (Constraint.MEMCG, [7])


# ---- kernels before 2.6.36 -----------------------------------------------------------------------------------------


# ---- what is no report ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '\tpr_warn("%s invoked oom-killer: gfp_mask=%#x(%pGg), order=%d, oom_score_adj=%hd\\n",',
        '+\tprintk(KERN_WARNING "%s invoked oom-killer: "',
        '-\tpr_err("%s: Killed process %d (%s) total-vm:%lukB, anon-rss:%lukB, file-rss:%lukB\\n",',
        '\t\tpr_warn("Out of memory and no killable processes...\\n");',
        '\tpanic("Out of memory: %s panic_on_oom is enabled\\n",',
        '\tpr_info("[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\\n");',
        '\tpr_info("oom-kill:constraint=%s,nodemask=%*pbl", oom_constraint_text[oc->constraint],',
        '\tpr_info("Task in "); pr_cont(" killed as a result of limit of ");',
        "oom-kill:constraint=<constraint>,nodemask=<nodemask>,cpuset=<cpuset>,mems_allowed=<mems_allowed>",
        "The process which invoked oom-killer is not the one that was killed.",
        "so whichever task invoked oom-killer:",
        "the task that invoked oom-killer",
        "I wonder why it says Out of memory: Kill process instead of Killed process.",
        'there is no "Killed process 1234 (task)" found in the log, do you have any idea?',
        'You want a log that says "Killed process 1234 (memory-hogger)..." instead of that.',
        "Out of memory: Killed process 1234 (java) was the last thing that I saw.",
        "Killed process 1234 (java) and then everything was fine.",
        "Task in %s killed as a result of limit of %s",
        "It is similar to `Task in /a killed as a result of limit of /b`. This means that it was full.",
        'The log says "Task in /a killed as a result of limit of /b". What does that mean?',
        "Out of memory and no killable processes... is what it then says",
        "java.lang.OutOfMemoryError: Java heap space",
        "the OOM killer, oom-killer: a short history",
    ],
)
@pytest.mark.parametrize("quote", ["", "> ", "    "])
def test_prose_source_code_and_patches_are_no_ooms(text, quote):
    assert read(["Hello,", f"{quote}{text}", "", "Bye"]) == []
    (report,) = read([f"{quote}{text}", *machine()])
    assert (report.trigger, [*report.victims], report.ram_pages) == ("worker 7", [102], GIB_PAGES)


# ---- lines that mail programs put on lines of their own --------------------------------------------------------------


def test_a_group_dies_as_one_where_its_line_is_the_first():
    group = f"Tasks in {CONTAINER} are going to be killed due to memory.oom.group set"
    kills = [killed(pid, "app", why="Memory cgroup out of memory") for pid in (7, 8)]
    report = only([CARRIERS["syslog"](line) for line in (group, *kills)])
    assert (report.group, report.task_cgroup, [*report.victims]) == (CONTAINER, CONTAINER, [7, 8])
