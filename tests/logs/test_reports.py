"""Reports of the OOM killer, read from logs as they are found."""

from __future__ import annotations

import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.oom_logs import CARRIERS, CONTAINER, FORMS, GIB_PAGES, ROWS, cgroup, killed, machine, read, table
from podqos.logs.report import Constraint

BIG = (7, 1000, 200_000, 100, 5, 100, "python3")


def summary(report):
    return report.trigger, report.trigger_pid, report.chosen, [*report.tasks.values()], [*report.victims.values()]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_whatever_carries_a_report_it_is_the_same(carrier):
    expected = [*machine(), *cgroup([BIG], 7, "python3")]
    first, second = read(map(CARRIERS[carrier], expected))
    for found, plain in zip((first, second), read(expected), strict=True):
        assert summary(found) == summary(plain)
    assert first.trigger == "worker 7"
    assert [each.name for each in first.victims.values()] == ["java (main) [x]"]


@pytest.mark.parametrize(
    ("carrier", "at", "host"),
    [
        ("dmesg", "5864.708440", ""),
        ("dmesg-T", "Mon Jan  5 15:19:27 2026", ""),
        ("dmesg-iso", "2026-01-05T15:19:27,708440+00:00", ""),
        ("kmsg", "5864.708440", ""),
        ("syslog", "Jan  5 15:19:27", "node-1"),
        ("rfc5424", "2026-01-05T15:19:27.708440Z", "node-1"),
        ("journal-monotonic", "5864.708440", "node-1"),
        ("journal-json", "1767626367.708440", "node-1"),
        ("journal-export", "1767626367.708440", "node-1"),
        ("cloud", "2026-01-05T15:19:27Z", "node-1"),
    ],
)
def test_time_and_host_are_those_of_the_carrier(carrier, at, host):
    (report,) = read(map(CARRIERS[carrier], machine()))
    assert (report.at, report.host) == (at, host)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_table_is_read_by_its_header(form):
    (report,) = read(machine(form=form))
    assert [(each.pid, each.rss_pages, each.oom_score_adj, each.name) for each in report.tasks.values()] == [
        (pid, rss, adj, name) for pid, _, rss, _, _, adj, name in ROWS
    ]
    java = report.tasks[102]
    tables = java.page_table_pages if java.page_table_bytes is None else java.page_table_bytes // 4096
    assert (tables, java.swap_pages) == ((None, None) if form == "cpu" else (300, 0))
    (zone,) = report.zones
    assert (report.ram_pages, report.page_kb, zone.free_kb, zone.min_kb) == (GIB_PAGES, 4, 44000, 45000)


def test_a_cgroups_report_names_both_cgroups_and_its_counters():
    (report,) = read(cgroup([BIG], 7, "python3", swap_kb=1 << 52))
    assert report.constraint is Constraint.MEMCG
    assert (report.oom_cgroup, report.task_cgroup) == (CONTAINER, CONTAINER)
    assert report.counters["memory"].limit_kb == 1048576
    assert report.counters["swap"].limit_kb is None
    assert (report.statistics_of, report.statistics) == (CONTAINER, {"anon": 1000})
    assert report.victims[7].is_reaped


def test_before_5_0_the_limit_and_the_sacrificed_child_have_their_own_lines():
    old = [
        "sh invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
        "CPU: 9 PID: 8 Comm: sh Tainted: P           OX 3.13.0-43-generic #72-Ubuntu",
        "Task in /docker/a killed as a result of limit of /docker",
        "memory: usage 1024kB, limit 1024kB, failcnt 1",
        *table([BIG], "nr_ptes"),
        "Memory cgroup out of memory: Kill process 7 (python3) score 990 or sacrifice child",
        "Killed process 9 (child) total-vm:8kB, anon-rss:4kB, file-rss:0kB",
    ]
    (report,) = read(old)
    assert (report.task_cgroup, report.oom_cgroup, report.release) == ("/docker/a", "/docker", (3, 13))
    assert (report.chosen, report.score, [*report.victims]) == (7, 990, [9])


@pytest.mark.parametrize(
    ("first", "second", "gfp", "order", "release"),
    [
        (
            "my app invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0, oom_score_adj=0",
            "Pid: 77, comm: my app Not tainted 3.2.0-4-amd64 #1 Debian 3.2.65-1",
            0x201DA, 0, (3, 2),
        ),
        (
            "my app invoked oom-killer: gfp_mask=0xd0, order=1, oom_score_adj=0",
            "CPU: 1 PID: 77 Comm: my app Tainted: GF          O 3.10.0-957.el7.x86_64 #1",
            0xD0, 1, (3, 10),
        ),
        (
            "my app invoked oom-killer: gfp_mask=0x24201ca(GFP_HIGHUSER_MOVABLE|__GFP_COLD), order=2, oom_score_adj=0",
            "CPU: 1 PID: 77 Comm: my app Not tainted 4.6.0-rc3+ #5",
            0x24201CA, 2, (4, 6),
        ),
        (
            "my app invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null),  order=0, oom_score_adj=1000",
            "CPU: 1 PID: 77 Comm: my app Kdump: loaded Not tainted 4.19.0-6-amd64 #1 Debian 4.19.67-2",
            0x14000C0, 0, (4, 19),
        ),
        (
            "my app invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=-1, oom_score_adj=0",
            "CPU: 1 UID: 1000 PID: 77 Comm: my app Not tainted 6.12.0 #1 PREEMPT(voluntary)",
            0xCC0, -1, (6, 12),
        ),
    ],
    ids=["3.2", "3.10", "4.6", "4.19", "6.12"],
)  # fmt: skip
def test_every_form_of_the_first_lines_says_who_asked_for_what_on_which_kernel(first, second, gfp, order, release):
    (report,) = read([first, second, *table(), killed()])
    assert (report.trigger, report.trigger_pid, report.release) == ("my app", 77, release)
    assert (report.gfp_mask, report.order) == (gfp, order)


@pytest.mark.parametrize(
    "line",
    [
        "Killed process 102 (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB",
        "Killed process 102, UID 1000, (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB",
        "Killed process 102 (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB",
        "Out of memory: Killed process 102 (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB, shmem-rss:0kB",
        "Memory cgroup out of memory: Killed process 102 (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB, UID:0",
    ],
    ids=["3.x", "rhel7", "4.x", "5.1", "5.3"],
)
def test_every_form_of_a_kill_names_the_victim_and_what_it_held(line):
    (report,) = read([*machine()[:-1], line])
    victim = report.victims[102]
    assert (report.chosen, victim.name, victim.total_vm_kb, victim.rss_kb) == (102, "java", 8000, 4096)


def test_figures_of_the_machine_are_those_of_zones_nodes_and_lists():
    lines = [
        "active_anon:3 inactive_anon:4 isolated_anon:0",
        " active_file:5 inactive_file:6 isolated_file:0",
        " slab_reclaimable:7 slab_unreclaimable:8",
        " mapped:0 shmem:9 pagetables:10 bounce:0",
        " free:11 free_pcp:12 free_cma:0",
        "Node 0 active_anon:12kB inactive_anon:16kB kernel_stack:64kB pagetables:40kB all_unreclaimable? no",
        "DMA free:1000kB min:20kB low:24kB high:28kB present:4000kB managed:3900kB kernel_stack:16kB",
        "lowmem_reserve[]: 0 5 6",
        "DMA: 3*4kB (UE) 0*8kB 2*16kB (M) 0*32kB = 44kB",
    ]
    (report,) = read([*machine()[:5], *lines, *machine()[7:]])
    assert report.memory_pages["shmem"] == 9
    assert [report.memory_pages[name] for name in ("active_anon", "inactive_file", "slab_unreclaimable")] == [3, 6, 8]
    assert (report.memory_pages["free"], report.kernel_stack_kb) == (11, 80)
    (zone,) = report.zones
    assert (zone.node, zone.name, zone.free_kb, zone.min_kb, zone.present_kb) == (0, "DMA", 1000, 20, 4000)
    assert zone.high_kb == 28


def test_without_a_line_about_them_no_pages_are_reserved():
    lines = [line for line in machine() if "reserved" not in line]
    assert [(report.ram_pages, report.reserved_pages) for report in read(lines)] == [(GIB_PAGES, 0)]


def test_masks_and_names_with_commas_do_not_shift_fields():
    line = (
        "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=0,2-3,cpuset=/,mems_allowed=0-7,global_oom,"
        "task_memcg=/a,b,task=x,pid=1,y,pid=42,uid=0"
    )
    (report,) = read(["a invoked oom-killer: gfp_mask=0xcc0, order=0", line, killed(42, "x,pid=1,y")])
    assert report.constraint is Constraint.MEMORY_POLICY
    assert report.nodes == {0, 2, 3}
    assert (report.oom_cgroup, report.task_cgroup, report.chosen) == ("/", "/a,b", 42)


@pytest.mark.parametrize(
    ("listed", "nodes"),
    [
        ("0,2-3", {0, 2, 3}),
        ("7", {7}),
        ("x", set()),
        ("0,x", set()),
        ("٣", set()),
        ("1234567", set()),
        ("-", set()),
    ],
)
def test_nodes_that_are_no_list_of_numbers_are_not_known(listed, nodes):
    line = (
        f"oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=/,mems_allowed={listed},global_oom,task=a,pid=7"
    )
    (report,) = read(["a invoked oom-killer: gfp_mask=0xcc0, order=0", f"{line},uid=0", killed(7, "a")])
    assert report.nodes == nodes


def test_a_group_dies_in_one_report_and_other_kills_in_their_own():
    group = [
        *cgroup([BIG], 7, "python3")[:-1],
        f"Tasks in {CONTAINER} are going to be killed due to memory.oom.group set",
        killed(7, "python3", why="Memory cgroup out of memory"),
        killed(8, "child", why="Memory cgroup out of memory"),
    ]
    # The kernel limits the rate of reports, not of kills.
    first, second = read([*group, "a invoked oom-killer: gfp_mask=0xcc0, order=0", killed(9, "a")])
    assert (first.group, [*first.victims]) == (CONTAINER, [7, 8])
    assert [*second.victims] == [9]
    alone = read([killed(1, "a"), killed(2, "b"), killed(2, "b")])
    assert [[*each.victims] for each in alone] == [[1], [2]]


@pytest.mark.parametrize("carrier", ["dmesg", "syslog"])
def test_lines_that_mail_broke_are_joined(carrier):
    whole = list(map(CARRIERS[carrier], machine()))
    broken = [part for line in whole for part in textwrap.wrap(line, 90, break_on_hyphens=False)]
    (found,), (expected,) = read(broken), read(whole)
    assert len(broken) > len(whole)
    assert summary(found)[:4] == summary(expected)[:4]


def test_a_thread_that_was_chosen_stands_for_its_process():
    """The summary names the thread, the table and the kill name the process with the same name."""
    lines = machine()
    chosen = (
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,"
        "task={},pid={},uid=1000"
    )

    def chosen_in(name: str, pid: int) -> int:
        (report,) = read([*lines[:-1], chosen.format(name, pid), lines[-1]])
        return report.chosen

    assert chosen_in("java (main) [x]", 999) == 102
    assert chosen_in("another", 999) == 999, "a process that is not in the table, and whose child dies"
    assert chosen_in("small", 101) == 101


def test_what_others_write_in_between_changes_nothing():
    noise = [
        "[  11.0] eth0: link up",
        "audit: type=1400 apparmor=DENIED",
        "[  pid: odd",
        "Node is up",
        "Total swap of x",
    ]
    lines = machine()
    mixed = [each for line in lines for each in (line, noise[len(line) % len(noise)])]
    (found,), (expected,) = read(mixed), read(lines)
    assert summary(found) == summary(expected)
    assert not found.is_cut


def test_hosts_in_one_log_are_told_apart():
    def on(host, lines):
        return [f"Jan  5 15:19:27 {host} kernel: {line}" for line in lines]

    one, other = on("a", machine()), on("b", cgroup([BIG], 7, "python3"))
    mixed = [line for pair in zip(one, [*other, *other[-1:] * len(one)], strict=False) for line in pair]
    found = {report.host: [*report.victims] for report in read(mixed)}
    assert found == {"a": [102], "b": [7]}


@pytest.mark.parametrize("lost", ["** 12 printk messages dropped **", "...", "Missed 7 kernel messages"])
def test_a_table_with_a_hole_is_cut(lost):
    lines = machine()
    (report,) = read([*lines[:-2], lost, *lines[-2:]])
    assert report.is_cut
    assert not read(lines)[0].is_cut
    assert not read([*lines[:3], lost, *lines[3:]])[0].is_cut, "before the table nothing is missing in it"


def test_the_page_size_follows_from_the_victims_own_line():
    lines = [line for line in machine() if "4kB" not in line]
    kill = "Out of memory: Killed process 102 (java) total-vm:19200000kB, anon-rss:0kB, file-rss:0kB"
    (report,) = read([*lines[:-1], kill])
    assert report.page_kb == 64


def test_more_hosts_than_can_be_followed_are_reported_as_far_as_they_came():
    lines = [f"Jan  5 15:19:27 node-{n} kernel: {killed(n + 1, 'x')}" for n in range(300)]
    assert len(read(lines)) == 300


def test_an_endless_line_takes_no_longer_than_a_short_one():
    for hostile in ("(" * 1_000_000, "[ " * 500_000, "Killed process 1 (" + ")" * 1_000_000, "{" * 1_000_000):
        assert len(read([hostile, *machine(), hostile])) == 1


# ---- hostile -------------------------------------------------------------------------------------------------------

PIECES = [*machine(), *cgroup([BIG], 7, "python3"), '{"MESSAGE": "', "__CURSOR=x", "[[[[", "Killed process", "4,1,2,-;"]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=30), st.randoms())
def test_no_text_makes_the_reader_fail(lines, chance: random.Random):
    cut = [line[: chance.randrange(len(line) + 1)] if chance.random() < 0.5 else line for line in lines]
    for report in read(cut):
        assert report.page_kb is None or report.page_kb >= 4
