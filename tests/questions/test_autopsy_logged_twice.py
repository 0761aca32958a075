"""``podqos autopsy`` on a kill that was logged twice: it is one kill, and two that are alike stay two."""

from __future__ import annotations

import pytest

from deaths import parsed
from kernel.oom_logs import CARRIERS, ROWS, cgroup, machine
from podqos.cli.main import main

REPORT = machine()


def carried(name: str, report: list[str] = REPORT) -> str:
    return "".join(f"{CARRIERS[name](line)}\n" for line in report)


def dmesg(seconds: float, report: list[str] = REPORT) -> str:
    return "".join(f"[ {seconds:.6f}] {line}\n" for line in report)


def syslog(clock: str, host: str = "node-1", report: list[str] = REPORT) -> str:
    return "".join(f"Jan  5 {clock} {host} kernel: {line}\n" for line in report)


def found(capsys, tmp_path, text: str) -> dict:
    (tmp_path / "log").write_text(text)
    assert main(["autopsy", str(tmp_path / "log"), "-o", "json"]) == 0
    return parsed(capsys.readouterr().out)


def pids(capsys, tmp_path, text: str) -> list[int]:
    return [kill["chosen"]["pid"] for kill in found(capsys, tmp_path, text)["kills"]]


@pytest.mark.parametrize("first", ["journal-short", "syslog", "dmesg-x"])
@pytest.mark.parametrize("second", ["journal-short", "syslog", "dmesg-T", "journal-monotonic", "syslog-iso", "mail"])
def test_a_report_that_one_text_has_twice_is_one_kill_whatever_carries_it(capsys, tmp_path, first, second):
    """As of `journalctl -k; cat /var/log/kern.log`: one says the host, or the time, and the other may not."""
    assert pids(capsys, tmp_path, carried(first) + carried(second)) == [102]


@pytest.mark.parametrize("second", ["syslog", "dmesg", "cloud"])
def test_a_report_that_two_files_have_is_one_kill_whatever_carries_it(capsys, tmp_path, second):
    paths = [tmp_path / "journal", tmp_path / "kern.log"]
    for path, name in zip(paths, ("journal-json", second), strict=True):
        path.write_text(carried(name))
    assert main(["autopsy", *map(str, paths), "-o", "json"]) == 0
    (kill,) = parsed(capsys.readouterr().out)["kills"]
    assert kill["chosen"]["pid"] == 102


def test_what_is_read_counts_a_report_once(capsys, tmp_path):
    assert found(capsys, tmp_path, carried("syslog") + carried("journal-short"))["read"]["oomReports"] == 1


def test_a_time_of_another_zone_is_the_same_moment(capsys, tmp_path):
    text = syslog("16:19:27") + carried("syslog-iso")
    assert pids(capsys, tmp_path, text) == [102]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(dmesg(9000.5), id="the kernel's own time"),
        pytest.param(dmesg(5866.5), id="the kernel's own time, soon after"),
        pytest.param(syslog("15:24:27"), id="the time of day"),
    ],
)
def test_two_kills_of_the_same_process_id_and_name_at_different_times_stay_two(capsys, tmp_path, other):
    first = dmesg(5864.7) if other.startswith("[") else syslog("15:19:27")
    assert pids(capsys, tmp_path, first + other) == [102, 102]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(syslog("15:19:27", host="node-2"), id="another host"),
        pytest.param(
            syslog("15:19:27", report=machine([*ROWS, (104, 0, 5, 1, 0, 0, "sh")])),
            id="another report",
        ),
    ],
)
def test_kills_that_hosts_or_figures_tell_apart_stay_two(capsys, tmp_path, other):
    assert len(pids(capsys, tmp_path, syslog("15:19:27") + other)) == 2


def test_kills_of_one_process_with_other_figures_stay_two(capsys, tmp_path):
    """Where nothing says when: a process id that was given out again."""
    rows = [(7, 1000, 200_000, 100, 0, 100, "python3")]
    first = cgroup(rows, 7, "python3")
    second = [line.replace("failcnt 12", "failcnt 13") for line in first]
    assert pids(capsys, tmp_path, "".join(f"{line}\n" for line in (*first, *second))) == [7, 7]
    assert pids(capsys, tmp_path, "".join(f"{line}\n" for line in (*first, *first))) == [7]
