"""Work on all cores: results in order, failures passed on, nobody left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guard.kubelets import wait_until
from podqos.errors import HostError, InputError
from podqos.library.engines.fan_out import fan_out, in_copy, in_processes


def in_one_worker(function):
    with in_processes(lambda _: function(), [None], 2) as results:
        return next(results)


def in_fan(function):
    """Return what a worker returns, and not this process."""
    parent = os.getpid()
    return next(filter(None, fan_out(lambda _: None if os.getpid() == parent else function(), range(2), 2)))


# All three ways to use a worker.
WAYS = pytest.mark.parametrize("way", [in_copy, in_one_worker, in_fan])


@pytest.mark.parametrize("workers", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_inputs(workers):
    assert list(fan_out(lambda n: n * n, range(20), workers)) == [n * n for n in range(20)]


def test_no_inputs_no_results():
    assert list(fan_out(str, [], 4)) == []


def test_more_inputs_than_turns_come_in_order_and_progress_counts_inputs():
    told = []
    inputs = range(5000)
    assert list(fan_out(str, inputs, 2, lambda done, total: told.append((done, total)))) == list(map(str, inputs))
    assert told == sorted(told)
    assert (told[0], told[-1]) == ((0, 5000), (5000, 5000))


def test_a_process_that_is_done_takes_what_is_left_for_a_slow_one(tmp_path):
    parent = os.getpid()

    def work(number: int) -> int:
        if os.getpid() == parent:
            while len(list(tmp_path.iterdir())) < 9:
                pass
        else:
            (tmp_path / str(number)).touch()
        return os.getpid()

    pids = list(fan_out(work, range(10), 2))
    assert pids[0] == parent
    assert parent not in pids[1:]


def test_children_are_other_processes_and_are_gone_afterwards():
    pids = set(fan_out(lambda _: os.getpid(), range(3), 3))
    assert len(pids) == 3
    for pid in pids - {os.getpid()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_error_in_a_child_is_raised_here():
    def fail(number: int) -> None:
        if number == 1:
            raise ValueError("one")

    with pytest.raises(ValueError, match="one"):
        list(fan_out(fail, range(2), 2))


def test_a_child_that_is_killed_is_told():
    parent = os.getpid()

    def die(_: int) -> None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(HostError, match="worker process"):
        list(fan_out(die, range(2), 2))


def test_an_interrupt_ends_the_children(tmp_path):
    parent = os.getpid()

    def work(number: int) -> None:
        if os.getpid() == parent:
            while not (tmp_path / "child").exists():
                pass
            raise KeyboardInterrupt
        (tmp_path / "child.new").write_text(str(os.getpid()))
        (tmp_path / "child.new").rename(tmp_path / "child")
        signal.pause()

    with pytest.raises(KeyboardInterrupt):
        list(fan_out(work, range(2), 2))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child").read_text()), 0)


def test_what_is_done_in_a_copy_changes_nothing_here():
    held = [1]

    def change() -> int:
        held.append(2)
        return sum(held)

    assert (in_copy(change), in_copy(change), held) == (3, 3, [1])


def test_what_goes_wrong_in_a_copy_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        in_copy(lambda: 1 // 0)


@WAYS
def test_an_error_is_raised_here_with_its_parts_and_where_it_came_from(way):
    def fail():
        raise InputError("wrong", where="there", fix="so")

    with pytest.raises(InputError) as raised:
        way(fail)
    assert str(raised.value) == "there: wrong (so)"
    assert any("in fail" in note for note in raised.value.__notes__)


@WAYS
def test_an_error_that_cannot_be_sent_is_raised_in_words(way):
    class Local(Exception):
        pass

    def fail():
        raise Local("of this test")

    with pytest.raises(RuntimeError, match=r"Local: of this test"):
        way(fail)


@WAYS
def test_a_result_that_cannot_be_sent_is_an_error_and_not_taken_for_a_killed_worker(way):
    with pytest.raises(TypeError, match="pickle"):
        way(threading.Lock)


@WAYS
def test_a_worker_that_is_killed_is_an_error_and_not_a_wait(way):
    with pytest.raises(HostError, match="a worker process died before finishing"):
        way(lambda: os.kill(os.getpid(), signal.SIGKILL))


@WAYS
def test_a_machine_without_room_for_another_process_is_said_in_a_line(way, monkeypatch):
    def fork():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(HostError, match=r"^cannot start a worker process: Resource temporarily unavailable$"):
        way(lambda: 1)


@WAYS
def test_nothing_is_left_of_a_worker(way):
    def left() -> tuple[list[Path], str]:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
        return sorted(Path("/proc/self/fd").iterdir()), children

    before = left()
    assert way(lambda: "x" * (1 << 20)) == "x" * (1 << 20)
    assert left() == before


@WAYS
def test_garbage_is_not_collected_in_memory_that_is_shared(way):
    before = gc.get_freeze_count()
    assert way(gc.get_freeze_count) > 0
    assert gc.get_freeze_count() == before


def test_a_worker_does_not_hear_ctrl_c():
    """It is for the parent, which says what is kept and ends the workers."""
    assert in_copy(lambda: (os.kill(os.getpid(), signal.SIGINT), "went on")[1]) == "went on"


def test_tasks_are_made_only_when_there_is_room_for_them():
    made = []

    def tasks():
        for number in range(100):
            made.append(number)
            yield number

    with in_processes(lambda number: number * number, tasks(), 2) as results:
        assert made == []
        first = next(results)
        assert len(made) == 3, "two that are worked on, one more for who has answered"
        assert {first, *results} == {number * number for number in range(100)}


def test_who_leaves_early_leaves_nobody_behind():
    with in_processes(lambda _: os.getpid(), range(100), 2) as results:
        pid = next(results)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


ORPHANS = """
import os, pathlib, sys, time
from podqos.library.engines import fan_out as engine
engine._ORPHAN_CHECK_SECONDS = 0.02
parent = os.getpid()
def forever(_=None):
    if os.getpid() == parent: time.sleep(1000)
    pathlib.Path(sys.argv[2], str(os.getpid())).touch()
    while True: pass
match sys.argv[1]:
    case "in_copy": engine.in_copy(forever)
    case "fan_out": list(engine.fan_out(forever, range(2), 2))
    case "in_processes":
        with engine.in_processes(forever, range(2), 2) as results: list(results)
"""


@pytest.mark.parametrize("way", ["in_copy", "fan_out", "in_processes"])
def test_workers_end_with_their_parent_however_it_ends(way, tmp_path):
    with subprocess.Popen([sys.executable, "-c", ORPHANS, way, str(tmp_path)]) as process:
        wait_until(lambda: list(tmp_path.iterdir()), "a worker is at work")
        process.kill()
    pids = [each.name for each in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_running, pids)), "they are gone")


def is_running(pid: str) -> bool:
    """Whether a process has not ended, though nobody may have asked for its exit status yet."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
