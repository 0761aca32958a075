"""``podqos autopsy`` says what ran out only where the log proves it."""

from __future__ import annotations

import json

import pytest

from kernel.oom_logs import cgroup, killed, machine, table
from podqos.cli.main import main

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
OLD_KILL = "Killed process 102 (java) total-vm:8000kB, anon-rss:4000kB, file-rss:96kB"


@pytest.fixture
def autopsy(capsys, tmp_path):
    def run(lines, *arguments: str) -> str:
        path = tmp_path / "kern.log"
        path.write_text("\n".join(lines) + "\n")
        assert main(["autopsy", str(path), *arguments]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


def kill_of(autopsy, lines):
    (kill,) = json.loads(autopsy(lines, "-o", "json"))["kills"]
    return kill


def test_a_kill_alone_leaves_open_what_ran_out(autopsy):
    out = autopsy([OLD_KILL])
    assert out.startswith("The machine or a cgroup ran out of memory (the log doesn't say which): java (pid 102) was")
    kill = kill_of(autopsy, [OLD_KILL])
    assert (kill["scope"], kill["constraint"], kill["cgroup"]) == ("unknown", "unknown", "")
    assert (kill["followsRule"], kill["reason"]) == (None, "NoTable")


def test_what_is_not_known_to_have_run_out_has_no_cause_and_no_remedy(autopsy):
    lines = ["x invoked oom-killer: gfp_mask=0xd0, order=0", *table(form="nr_ptes"), OLD_KILL]
    kill = kill_of(autopsy, lines)
    assert kill["scope"] == "unknown"
    assert (kill["totalPages"], kill["shortage"], kill["causes"], kill["savedBy"]) == (None, None, [], [])


@pytest.mark.parametrize(
    "line",
    [killed(7, "python3", why="Memory cgroup out of memory"), "memory: usage 1024kB, limit 1024kB, failcnt 1"],
)
def test_a_cgroup_of_which_nothing_is_known_is_no_daemon(autopsy, line):
    kill = kill_of(autopsy, [line])
    assert (kill["scope"], kill["constraint"], kill["cgroup"]) == ("cgroup", "memcg", "")
    assert autopsy([line]).startswith("A cgroup reached its limit: ")


@pytest.mark.parametrize(("lines", "scope"), [(machine(), "machine"), (cgroup(ROWS, 7, "python3"), "container")])
def test_the_tail_of_a_report_has_the_scope_and_the_verdict_of_the_whole(autopsy, lines, scope):
    for tail in (lines, lines[1:], lines[2:]):
        kill = kill_of(autopsy, tail)
        assert (kill["scope"], kill["followsRule"], kill["reason"]) == (scope, True, "Highest")


def test_lines_that_were_searched_for_leave_the_verdict_open(autopsy):
    lines = [line for line in machine([(7, 0, 900, 1, 0, 0, "oom")]) if "oom" in line or "kill" in line.lower()]
    kill = kill_of(autopsy, [*lines[:-1], killed(7, "oom")])
    assert (kill["scope"], kill["followsRule"], kill["reason"]) == ("machine", None, "TableIsCut")


def test_kernels_before_2_6_36_had_another_rule(autopsy):
    lines = ["Out of memory: kill process 7 (x) score 123456 or a child", "Killed process 7 (x)"]
    kill = kill_of(autopsy, lines)
    assert (kill["scope"], kill["followsRule"], kill["reason"]) == ("machine", None, "OldRule")
    assert "cannot be verified: kernels before 2.6.36 chose by another rule" in " ".join(autopsy(lines).split())


def test_a_panic_in_place_of_a_kill_is_by_setting(autopsy):
    lines = [*machine()[:-1], "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"]
    kill = kill_of(autopsy, lines)
    assert (kill["scope"], kill["followsRule"], kill["reason"], kill["victims"]) == ("machine", True, "Panic", [])
    assert autopsy(lines).startswith("The machine ran out of memory: the kernel panicked.")


def test_a_victim_without_a_name_has_its_pid(autopsy):
    assert "pid 7 was killed" in autopsy(["[  1.0] Out of memory: Killed process 7"])


def test_a_mail_about_source_code_has_no_ooms(autopsy):
    mail = [
        "On Monday someone wrote:",
        "> the task that invoked oom-killer is not the one that is killed, see",
        '> \tpr_warn("%s invoked oom-killer: gfp_mask=%#x(%pGg), order=%d, oom_score_adj=%hd\\n",',
        '> there is no "Killed process 1234 (task)" in the log',
        "swapper/0: page allocation failure: order:4, mode:0x20",
        *machine()[1:10],
    ]
    assert json.loads(autopsy(mail, "-o", "json"))["kills"] == []


def test_a_cause_that_the_first_line_has_already_is_not_repeated(autopsy):
    (line,) = (line for line in cgroup(ROWS, 7, "python3") if "oom-kill:" in line)
    lines = autopsy([line]).splitlines()
    assert lines[0] == "A container reached its limit: python3 (pid 7) was killed."
    assert not any(own.startswith("  cause") for own in lines)
    assert kill_of(autopsy, [line])["causes"][0]["cause"] == "OwnLimit"


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (f"/docker/{'ab' * 32}", "A container"),
        (f"/system.slice/docker-{'ab' * 32}.scope", "A container"),
        (f"/machine.slice/libpod-{'ab' * 32}.scope/container", "A container"),
        (f"/ecs/{'cd' * 16}/{'ab' * 32}", "A container"),
        ("/lxc.payload.web/system.slice", "A container"),
        ("/system.slice/docker.service", "A cgroup"),
        (f"/ecs/{'cd' * 16}", "A cgroup"),
        ("/user.slice/user-1000.slice", "A cgroup"),
    ],
)
def test_the_limit_of_a_container_that_no_kubelet_started_is_that_of_a_container(autopsy, path, what):
    whole = "\n".join(cgroup(ROWS, 7, "python3"))
    for each in ("oom_memcg=", "task_memcg="):
        old = whole.partition(each)[2].partition(",")[0]
        whole = whole.replace(old, path)
    assert autopsy(whole.splitlines()).startswith(f"{what} reached its limit: python3 (pid 7) was killed.")
    assert kill_of(autopsy, whole.splitlines())["scope"] == "system"
