"""What lines of a report that are cut, marked up or carried in odd ways still prove."""

from __future__ import annotations

import pytest

from kernel.oom_logs import CONTAINER, POD, cgroup, killed, read, table

REPORT = cgroup(
    ((7, 1000, 200_000, 100, 5, 100, "python3"), (8, 1000, 90_000, 100, 5, 100, "worker 7 (x)")), 7, "python3"
)


def _dmesg(lines: list[str]) -> list[str]:
    return [f"[ 5864.{at:06d}] {line}" for at, line in enumerate(lines)]


def test_the_process_that_the_reaper_names_died_where_the_line_of_the_kill_is_missing():
    lines = [line for line in REPORT if "oom-kill:" not in line and "Killed process" not in line]
    (report,) = read(
        _dmesg([*lines, "oom_reaper: reaped process 7 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"])
    )
    ((pid, victim),) = report.victims.items()
    assert (pid, victim.name, victim.is_reaped, report.chosen) == (7, "python3", True, 7)
    assert len(report.tasks) == 2


def test_what_the_reaper_says_of_another_process_is_no_victim_of_a_report_that_has_one():
    (report, *_) = read(
        _dmesg([*REPORT, "oom_reaper: reaped process 9 (other), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"])
    )
    assert list(report.victims) == [7]


@pytest.mark.parametrize("name", ["tmux: server", "(sd-pam)", "kworker/0:2", "rs:main Q:Reg", "java"])
def test_behind_a_known_prefix_all_that_precedes_the_call_is_the_processes_name(name):
    lines = [f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", *REPORT[2:]]
    without_pid = [line for line in lines if "Comm:" not in line]
    reports = read([f"Jan  5 15:19:27 node-1 kernel: {line}" for line in _dmesg(without_pid)])
    assert [report.trigger for report in reports] == [name]


def test_what_logwatch_counts_is_no_part_of_a_name():
    kill = "Out of memory: Killed process 399 (java) total-vm:1200kB, anon-rss:1100kB, file-rss:0kB: 1 Time(s)"
    (report,) = read(_dmesg([kill]))
    assert [victim.name for victim in report.victims.values()] == ["java"]


def test_a_name_may_have_brackets():
    (report,) = read(_dmesg([killed(399, "java (main) [x]")]))
    assert [victim.name for victim in report.victims.values()] == ["java (main) [x]"]


OLD = [
    f"Memory cgroup stats for {POD}: cache:20KB rss:1004KB rss_huge:0KB mapped_file:0KB",
    f"Memory cgroup stats for {CONTAINER}: cache:20KB rss:1004KB",
    *table(form="nr_ptes"),
    "Memory cgroup out of memory: Kill process 102 (java (main) [x]) score 990 or sacrifice child",
    "Killed process 102 (java (main) [x]) total-vm:8kB, anon-rss:4kB, file-rss:0kB",
]


def test_the_first_cgroup_whose_statistics_are_left_is_not_known_to_be_the_one_that_was_full():
    (cut,) = read(_dmesg(OLD[1:2] + OLD[2:]))
    (whole,) = read(_dmesg(["memory: usage 1024kB, limit 1024kB, failcnt 1", *OLD]))
    assert (cut.oom_cgroup, whole.oom_cgroup) == (None, POD)


def test_a_summary_that_ends_with_a_comma_goes_on_in_the_next_line():
    (summary,) = (line for line in REPORT if line.startswith("oom-kill:"))
    at = summary.index(",task=") + 1
    lines = [part for line in REPORT for part in ([line[:at], line[at:]] if line is summary else [line])]
    (report,) = read(lines)
    assert (report.chosen, report.chosen_name) == (7, "python3")


def test_a_name_that_ends_with_a_backslash_does_not_join_its_row_to_the_next_line():
    rows = ((7, 1000, 200_000, 100, 5, 100, "\\"), (8, 1000, 90_000, 100, 5, 100, "a\\"))
    lines = cgroup(rows, 7, "\\")
    for (report,) in read(lines), read(_dmesg(lines)):
        assert [task.name for task in report.tasks.values()] == ["\\", "a\\"]
