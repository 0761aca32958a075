"""Work on all cores: results in order, failures passed on, nobody left behind."""

from __future__ import annotations

import os
import signal

import pytest

from podqos.errors import HostError
from podqos.library.engines.fan_out import fan_out, in_copy


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
