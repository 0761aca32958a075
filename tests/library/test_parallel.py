"""Work on all cores: every result, failures passed on, nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.kubelets import wait_until
from podqos import parallel
from podqos.errors import HostError, InputError
from podqos.parallel import carried_out, fan_out


@pytest.fixture(params=["fork", "spawn"])
def way(request, monkeypatch):
    """Both ways to start a process."""
    monkeypatch.setattr(parallel, "forks", lambda: request.param == "fork")


@pytest.fixture
def forked(monkeypatch):
    """Have processes forked, whatever threads the servers of earlier tests have left for a moment."""
    monkeypatch.setattr(parallel, "forks", lambda: True)


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_results_come_in_the_order_of_the_inputs_and_progress_counts_them(workers):
    told = []
    found = fan_out(lambda n: n * n, range(1000), workers, lambda done, total: told.append((done, total)))
    assert list(found) == [n * n for n in range(1000)]
    assert told == sorted(told)
    assert told[-1] == (1000, 1000)


def test_no_inputs_no_results():
    assert list(fan_out(str, [], 4)) == []


@pytest.mark.usefixtures("forked")
def test_workers_are_other_processes_and_are_gone_afterwards():
    pids = set(fan_out(lambda _: os.getpid(), range(100), 2))
    assert os.getpid() not in pids
    assert not [pid for pid in pids if is_running(pid)]


def test_where_nothing_is_forked_this_process_works_alone(monkeypatch):
    monkeypatch.setattr(parallel, "forks", lambda: False)
    assert set(fan_out(lambda _: os.getpid(), range(3), 4)) == {os.getpid()}


def test_every_task_is_done_once(way):
    with carried_out(abs, range(-99, 0), jobs=2) as results:
        assert sorted(results) == list(range(1, 100))


def fail(number: int) -> None:
    raise InputError("wrong", where="there", fix=str(number))


def test_an_error_is_raised_here_with_its_parts(way):
    with pytest.raises(InputError, match=r"^there: wrong \(7\)$"), carried_out(fail, [7], jobs=2) as results:
        list(results)


def test_a_worker_that_always_dies_is_an_error_and_not_a_wait(way):
    with pytest.raises(HostError, match="died before finishing"), carried_out(os._exit, [1], jobs=2) as results:
        list(results)


def test_tasks_are_made_only_when_there_is_room_for_them():
    made = []

    def tasks():
        for number in range(100):
            made.append(number)
            yield number

    with carried_out(abs, tasks(), jobs=2) as results:
        assert made == []
        first = next(results)
        assert len(made) < 20
        assert {first, *results} == set(range(100))


@pytest.mark.usefixtures("forked")
def test_who_leaves_early_leaves_nobody_behind():
    with carried_out(lambda _: os.getpid(), range(100), jobs=2) as results:
        pid = next(results)
    wait_until(lambda: not is_running(pid), "it is gone")


FOREVER = """
import pathlib, os, sys
from podqos import parallel
def forever(_):
    pathlib.Path(sys.argv[2], str(os.getpid())).touch()
    while True: pass
if __name__ == "__main__":
    if sys.argv[1] == "spawn": parallel.forks = lambda: False
    with parallel.carried_out(forever, range(2), jobs=2) as results: list(results)
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_end_with_their_parent_however_it_ends(way, tmp_path):
    script = tmp_path / "forever.py"
    script.write_text(FOREVER)
    pids = tmp_path / "pids"
    pids.mkdir()
    with subprocess.Popen([sys.executable, script, way, str(pids)], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(list(pids.iterdir())) == 2, "both workers are at work")
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(is_running(int(each.name)) for each in pids.iterdir()), "they are gone")


def is_running(pid: int) -> bool:
    """Whether a process has not ended, though nobody may have asked for its exit status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
