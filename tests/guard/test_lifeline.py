"""What a guard holds is thawed when it dies, whoever kills it: files stand in for cgroups here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.kubelets import wait_until
from podqos.errors import HostError
from podqos.guard import lifeline
from podqos.guard.lifeline import Lifeline

GUARD = """
import sys, time
from podqos.guard.lifeline import Lifeline
line = Lifeline()
for path in sys.argv[1:]:
    line.hold(path, ("0", path))
line.let_go(sys.argv[1])
print(line._shell.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def freezers(tmp_path):
    files = [tmp_path / name for name in ("let-go", "held", "*", "gone")]
    for each in files[:3]:
        each.write_text("1\n")
    return files


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ignores(pid, number):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("SigIgn:")[1].split()[0], 16) >> (number - 1) & 1


def test_a_guard_that_is_killed_has_thawed_what_it_held_and_nothing_else(freezers):
    command = [sys.executable, "-c", GUARD, *map(str, freezers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as guard:
        shell = int(guard.stdout.readline())
        wait_until(lambda: ignores(shell, signal.SIGTERM), "the shell has begun")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.kill(shell, number)
        guard.kill()
    wait_until(lambda: not is_there(shell), "the shell has done it")
    assert [each.read_text() for each in freezers[:3]] == ["1\n", "0\n", "0\n"]


def test_it_takes_two_megabytes_at_most():
    line = Lifeline()
    try:
        wait_until(lambda: b"trap" in Path(f"/proc/{line._shell.pid}/cmdline").read_bytes(), "it is the shell")
        words = Path(f"/proc/{line._shell.pid}/smaps_rollup").read_text().split()
        assert int(words[words.index("Pss:") + 1]) <= 2048
    finally:
        line.close()


def test_a_guard_that_ends_leaves_no_shell_behind(freezers):
    line = Lifeline()
    line.hold("a", ("0", str(freezers[1])))
    line.let_go("a")
    line.close()
    assert line._shell.returncode == 0
    assert freezers[1].read_text() == "1\n"


def test_a_guard_goes_on_without_its_shell(freezers):
    line = Lifeline()
    line._shell.kill()
    line._shell.wait()
    line.hold("a", ("0", str(freezers[1])))
    line.let_go("a")
    line.close()


def test_a_machine_without_a_shell_says_what_that_means(monkeypatch):
    monkeypatch.setattr(lifeline, "_SHELL", "/nonexistent/sh")
    with pytest.raises(HostError, match="the pods it holds stay frozen"):
        Lifeline()
