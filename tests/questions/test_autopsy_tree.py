"""Who held the memory of an OOM, as far as its report says."""

from __future__ import annotations

import json

import pytest

from kernel.oom_logs import CONTAINER, POD, ROWS, cgroup, killed, machine, table
from podqos.cli.main import main

UID = "11111111-2222-3333-4444-555555555555"
MANY = [(pid, 0, pid, 1, 0, 0, f"worker-{pid}") for pid in range(1, 15)]


def tree(tmp_path, capsys, lines, *options):
    """Return the rows of the last OOM: depth, kind, name, and all amounts."""
    path = tmp_path / "kern.log"
    path.write_text("\n".join(lines) + "\n")
    assert main(["autopsy", str(path), "-o", "json", *options]) == 0
    rows = json.loads(capsys.readouterr().out)["deaths"][-1]["tree"]
    return [row | {f"{part['kind']}Bytes": part["bytes"] for part in row["parts"]} for row in rows]


def names(rows):
    return [(row["depth"], row["kind"], row.get("name", "")) for row in rows]


def test_processes_are_below_the_container_that_ran_out_and_it_is_below_its_pod(tmp_path, capsys):
    rows = tree(tmp_path, capsys, cgroup(ROWS, 102, "java (main) [x]", limit_kb=2048))
    assert names(rows) == [
        (0, "pod", f"pod {UID}"),
        (1, "container", "container abababababab"),
        (2, "process", "java (main) [x] (pid 102)"),
        (2, "process", "small (pid 101)"),
        (2, "process", "sshd (pid 103)"),
    ]
    assert rows[1]["limitBytes"] == rows[1]["usedBytes"] == 2 << 20
    assert rows[1]["anonBytes"] == 1000
    assert [row["mark"] for row in rows] == ["", "", "killed", "", ""]
    assert rows[3]["usedBytes"] == rows[3]["rssBytes"] + rows[3]["kernelBytes"] == (90_000 + 200) * 4096


def test_of_a_machine_only_the_victim_is_known_to_be_in_its_container(tmp_path, capsys):
    summary = (
        f"oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg={CONTAINER},task=java (main) [x],pid=102,uid=1"
    )
    *report, kill = machine()
    rows = tree(tmp_path, capsys, [*report, summary, kill])
    assert names(rows) == [
        (0, "machine", "the machine"),
        (1, "pod", f"pod {UID}"),
        (2, "container", "container abababababab"),
        (3, "process", "java (main) [x] (pid 102)"),
        (1, "process", "small (pid 101)"),
        (1, "process", "sshd (pid 103)"),
    ]
    assert rows[0]["limitBytes"] == 1 << 30


def test_the_largest_processes_are_shown_and_the_others_are_added_up(tmp_path, capsys):
    rows = tree(tmp_path, capsys, machine(MANY, kill=killed(1, "worker-1", 1)), "--top", "3")
    assert names(rows)[1:] == [
        (1, "process", "worker-14 (pid 14)"),
        (1, "process", "worker-13 (pid 13)"),
        (1, "process", "worker-1 (pid 1)"),  # the victim, however small
        (1, "others", "11 other processes"),
    ]
    assert rows[-1]["rssBytes"] == sum(range(2, 13)) * 4096


@pytest.mark.parametrize(("form", "is_split"), [("rss_anon", True), ("pgtables_bytes", False), ("cpu", False)])
def test_resident_memory_is_split_where_the_kernel_does_that(tmp_path, capsys, form, is_split):
    rows = {row["name"].partition(" (pid")[0]: row for row in tree(tmp_path, capsys, machine(form=form))}
    assert ("anonBytes" in rows["small"]) == is_split
    assert rows["java (main) [x]"]["anonBytes"] == 150_000 * 4096  # of the victim every kernel says it


def test_a_victim_without_a_table_is_shown_by_its_own_line(tmp_path, capsys):
    rows = tree(tmp_path, capsys, [killed()])
    assert names(rows)[-1][1:] == ("process", "java (main) [x] (pid 102)")
    assert rows[-1]["usedBytes"] == rows[-1]["anonBytes"] == 150_000 * 4096


def test_a_pod_that_ran_out_is_above_the_container_of_its_victim(tmp_path, capsys):
    lines = [
        line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={POD}") for line in cgroup(ROWS, 102, "java (main) [x]")
    ]
    assert names(tree(tmp_path, capsys, lines)) == [
        (0, "pod", f"pod {UID}"),
        (1, "container", "container abababababab"),
        (2, "process", "java (main) [x] (pid 102)"),
        (1, "process", "small (pid 101)"),
        (1, "process", "sshd (pid 103)"),
    ]


def test_huge_figures_stay_within_the_integers_of_json(tmp_path, capsys):
    rows = [(pid, 0, 999_999_999_999, 999_999_999, 999_999_999_999, 0, "x") for pid in range(1, 30)]
    found = tree(tmp_path, capsys, [*machine()[:-5], *table(rows), killed(1, "x")], "--top", "2")
    assert all(0 <= value < 1 << 63 for row in found for value in row.values() if isinstance(value, int))


def test_old_kernels_say_what_each_container_of_a_pod_holds(tmp_path, capsys):
    report = cgroup(ROWS, 102, "java (main) [x]")
    at = next(place for place, line in enumerate(report) if line.startswith("Memory cgroup stats"))
    other = f"{POD}/cri-containerd-{'cd' * 32}.scope"
    stats = [
        f"Memory cgroup stats for {POD}: cache:0KB rss:0KB swap:0KB inactive_file:0KB active_file:0KB",
        f"Memory cgroup stats for {other}: cache:30KB rss:70KB swap:5KB inactive_file:10KB active_file:10KB",
        f"Memory cgroup stats for {CONTAINER}: cache:1KB rss:900KB swap:0KB inactive_file:1KB active_file:0KB",
        f"Memory cgroup stats for {POD}/cri-containerd-{'ef' * 32}.scope: cache:0KB rss:0KB swap:0KB",
    ]
    lines = [*report[:at], *stats, *report[at + 2 :]]
    rows = tree(tmp_path, capsys, [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={POD}") for line in lines])
    assert names(rows) == [
        (0, "pod", f"pod {UID}"),
        (1, "container", "container cdcdcdcdcdcd"),
        (1, "container", "container abababababab"),
        (2, "process", "java (main) [x] (pid 102)"),
        (1, "process", "small (pid 101)"),
        (1, "process", "sshd (pid 103)"),
    ]
    amounts = [rows[1][f"{part}Bytes"] // 1024 for part in ("anon", "file", "shmem", "swap", "used")]
    assert amounts == [70, 20, 10, 5, 100]


def test_where_nothing_says_what_ran_out_the_tree_does_not_say_it_either(tmp_path, capsys):
    rows = tree(tmp_path, capsys, ["Killed process 102 (java) total-vm:1200kB, anon-rss:600kB, file-rss:4kB"])
    assert names(rows) == [(0, "unknown", "the machine or a cgroup"), (1, "process", "java (pid 102)")]
