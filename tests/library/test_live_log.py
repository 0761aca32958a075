"""A kernel log followed as it grows."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import msgspec
import pytest

from kernel import trials
from kernel.oom_logs import CARRIERS, cgroup, killed, machine
from podqos.api import live_autopsy
from podqos.errors import HostError
from podqos.reading import live_log
from podqos.reading.live_log import follow, growing

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
PODQOS = str(Path(sys.executable).with_name("podqos"))
PATIENCE = 60


class Script:
    """A log whose lines come in steps, at times of a clock of its own; a number is lines lost."""

    def __init__(self, monkeypatch, *steps: tuple[float, list[str | int]]) -> None:
        self._steps = list(steps)
        self._lines: list[str | int] = []
        self.now = 0.0
        monkeypatch.setattr(live_log.time, "monotonic", lambda: self.now)

    @property
    def is_over(self) -> bool:
        return not self._steps and not self._lines and self.now > 100

    def wait(self, seconds: float) -> None:
        self.now += seconds
        while self._steps and self._steps[0][0] <= self.now:
            self._lines += self._steps.pop(0)[1]

    def lines(self):
        lines, self._lines = self._lines, []
        yield from lines

    def dated(self, at: str) -> str:
        return at


def _told(script, say=lambda _: None) -> list[tuple[float, list[int], int]]:
    return [(script.now, [*report.victims], len(report.tasks)) for report in follow(script, say)]


def _kmsg(lines):
    return [CARRIERS["kmsg"](line) for line in lines]


def test_a_report_is_told_soon_after_its_kill_although_others_go_on_writing(monkeypatch):
    report = _kmsg(machine())
    noise = [(10 + step / 10, _kmsg(["eth0: link up"])) for step in range(200)]
    ((at, victims, tasks),) = _told(Script(monkeypatch, (10.0, report), *noise))
    assert (victims, tasks) == ([102], 3)
    assert at <= 11


def test_a_report_that_breaks_off_ends_after_a_second_of_silence(monkeypatch):
    ((at, victims, tasks),) = _told(Script(monkeypatch, (10.0, _kmsg(machine()[:-2]))))
    assert (victims, tasks) == ([], 2)
    assert 11 <= at <= 11.3


def test_a_report_that_comes_slowly_is_one(monkeypatch):
    steps = [(10 + index * 0.8, [line]) for index, line in enumerate(_kmsg(machine()))]
    told = _told(Script(monkeypatch, *steps))
    assert [(victims, tasks) for _, victims, tasks in told] == [([102], 3)]


def test_of_reports_that_follow_at_once_none_is_lost(monkeypatch):
    burst = [line for pid in range(200, 260) for line in machine(kill=killed(pid, "hog"))]
    told = _told(Script(monkeypatch, (5.0, _kmsg(burst)), (5.1, _kmsg(cgroup(ROWS, 7, "python3")))))
    assert [victims for _, victims, _ in told] == [*([pid] for pid in range(200, 260)), [7]]


def test_lines_that_were_lost_are_said_and_leave_the_verdict_open(monkeypatch):
    said = []
    *table, row, kill = _kmsg(machine())
    script = Script(monkeypatch, (1.0, [*table, 17, row, kill]))
    (report,) = follow(script, said.append)
    assert report.is_cut
    assert said == ["lost 17 lines of the kernel log: they came faster than they could be read"]


def test_a_file_is_followed_from_its_end_over_rotations(tmp_path):
    path = tmp_path / "kern.log"
    path.write_text(killed(1, "old") + "\n")
    found = []
    with growing(str(path), lambda _: None) as log:
        thread = threading.Thread(
            target=lambda: found.extend([*r.victims] for r in follow(log, lambda _: None)), daemon=True
        )

        def write(name, mode, pid, what="new"):
            with (tmp_path / name).open(mode) as file:
                file.write(killed(pid, what) + "\n")

        def until(count):
            end = time.monotonic() + PATIENCE
            while len(found) < count:
                assert time.monotonic() < end
                time.sleep(0.02)

        thread.start()
        write("kern.log", "a", 2)
        until(1)
        path.rename(tmp_path / "kern.log.1")
        write("kern.log.1", "a", 3)  # syslog holds it open for a while
        write("kern.log", "w", 4)
        until(3)
        write("kern.log", "w", 5, "n")  # copytruncate: it is shorter now
        until(4)
        log.is_over = True
        thread.join(PATIENCE)
    assert found == [[2], [3], [4], [5]]


def test_a_line_without_end_costs_its_length_and_hides_nothing(tmp_path):
    code = f"import sys; sys.stdout.write('x' * 20_000_000 + '\\n' + {killed(9, 'hog')!r} + '\\n')"
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        log = live_log._Pipe(writer.stdout.fileno())
        assert [[*report.victims] for report in follow(log, lambda _: None)] == [[9]]
    finally:
        writer.communicate()


def _fake_journal(monkeypatch, tmp_path, script):
    command = tmp_path / "journalctl"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def refused(*_):
        raise PermissionError(1, "Operation not permitted", "/dev/kmsg")

    monkeypatch.setattr(live_log, "_Kernel", refused)


def test_journald_stands_in_where_the_device_may_not_be_read(monkeypatch, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("\n".join(CARRIERS["journal-json"](line) for line in cgroup(ROWS, 7, "python3")) + "\n")
    _fake_journal(monkeypatch, tmp_path, f"cat {lines}; exec sleep 100")
    said = []
    found = next(live_autopsy(None, say=said.append))
    assert [victim.pid for victim in found.deaths[0].victims] == [7]
    assert said[0] == "/dev/kmsg: Operation not permitted; following journald instead"


def test_without_any_right_the_missing_one_is_named(monkeypatch, tmp_path):
    _fake_journal(monkeypatch, tmp_path, "echo 'No journal files were opened' >&2; exit 1")
    with pytest.raises(HostError, match=r"/dev/kmsg: Operation not permitted; journalctl: No journal.*CAP_SYSLOG"):
        next(live_autopsy(None))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostError, match="journalctl: No such file"):
        next(live_autopsy(None))


def _live(*arguments, **options):
    return subprocess.Popen(
        [PODQOS, "autopsy", "--live", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def _until_read(child):
    """Wait until a process has read what was written to it, and waits for more."""
    end = time.monotonic() + PATIENCE
    while struct.unpack("i", fcntl.ioctl(child.stdin, termios.FIONREAD, bytes(4)))[0] or _state(child) != "S":
        assert time.monotonic() < end
        time.sleep(0.01)


def _state(child):
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_tells_what_has_come_and_ends_well(number):
    child = _live("-", "-o", "jsonl", stdin=subprocess.PIPE)
    try:
        assert "following -" in child.stderr.readline()
        child.stdin.write("\n".join(machine()[:-1]) + "\n")
        child.stdin.flush()
        _until_read(child)
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
    assert (child.returncode, err) == (0, "")
    (line,) = out.splitlines()
    assert msgspec.json.decode(line)["reason"] == "NoVictim"


@pytest.mark.parametrize(("lines", "code"), [(machine(), 1), (["[    1.000000] all is well"], 0)])
def test_scripts_can_ask_whether_there_was_any(lines, code):
    child = _live("-", "--exit-code", stdin=subprocess.PIPE)
    child.communicate("\n".join(lines) + "\n", timeout=PATIENCE)
    assert child.returncode == code


@pytest.mark.slow
def test_a_kill_on_this_machine_is_explained_as_it_happens(tmp_path):
    try:
        where = trials.hierarchy()
        os.close(os.open("/dev/kmsg", os.O_RDONLY))
    except (trials.Missing, OSError) as reason:
        pytest.skip(f"no memory cgroups of our own, or no kernel log: {reason}")
    child = _live("-o", "jsonl")
    name = f"podqos-live-{os.getpid()}"
    try:
        assert "following the kernel log" in child.stderr.readline()
        group = where.mount / name
        group.mkdir()
        (group / where.limit_file).write_text(str(64 << 20))
        with subprocess.Popen(
            [sys.executable, str(trials.HOG), str(group / "cgroup.procs"), "0", str(1 << 20), str(1 << 20)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as hog:  # fmt: skip
            assert hog.stdout.readline() == "ready\n"
            hog.stdin.write("go\n")
            hog.stdin.flush()
            assert hog.wait(PATIENCE) == -signal.SIGKILL
        # Others may run out of memory at the same time.
        kills = (msgspec.json.decode(line) for line in child.stdout)
        kill = next(kill for kill in kills if kill["oom"]["cgroup"] == f"/{name}")
        assert (kill["oom"]["scope"], kill["followsRule"], kill["reason"]) == ("system", True, "Highest")
        assert [victim["pid"] for victim in kill["victims"]] == [hog.pid]
        assert kill["when"].endswith("Z")
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        (where.mount / name).rmdir()
    assert child.returncode == 0
