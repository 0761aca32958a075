"""Workers where no process is forked: results as they come, failures passed on, nobody left behind."""

from __future__ import annotations

import os
import subprocess

import pytest

from podqos.errors import HostError
from podqos.library.engines import fan_out, spawned


@pytest.fixture
def started(monkeypatch):
    """Return the workers that were started."""
    processes = []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(spawned.subprocess, "Popen", Noted)
    return processes


@pytest.fixture
def without_fork(monkeypatch):
    monkeypatch.delattr(os, "fork")


def test_every_task_is_done_once_by_no_more_workers_than_asked_for(without_fork, started):
    with fan_out.in_processes(abs, iter(range(-9, 0)), 2) as results:
        assert sorted(results) == list(range(1, 10))
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_fewer_tasks_need_fewer_workers(without_fork, started):
    with fan_out.in_processes(abs, [-1], 4) as results:
        assert list(results) == [1]
    assert len(started) == 1


def test_an_error_of_a_worker_is_raised_here(without_fork, started):
    with pytest.raises(ValueError, match="invalid literal"), fan_out.in_processes(int, ["1", "x"], 2) as results:
        list(results)
    assert all(process.returncode is not None for process in started)


def test_a_worker_that_ends_is_an_error_and_not_a_wait(without_fork):
    with (
        pytest.raises(HostError, match="died before finishing"),
        fan_out.in_processes(os._exit, [1], 2) as results,
    ):
        list(results)


def test_what_is_left_early_leaves_no_worker(without_fork, started):
    with fan_out.in_processes(abs, iter(range(100)), 2) as results:
        next(results)
    assert all(process.returncode is not None for process in started)


def test_other_work_is_done_by_this_process(without_fork):
    parent = os.getpid()
    assert list(fan_out.fan_out(lambda number: (number, os.getpid()), range(3), 4)) == [(n, parent) for n in range(3)]
    assert fan_out.in_copy(os.getpid) == parent


def test_a_mac_does_not_fork(monkeypatch):
    assert fan_out.forks()
    monkeypatch.setattr(fan_out.sys, "platform", "darwin")
    assert not fan_out.forks()
