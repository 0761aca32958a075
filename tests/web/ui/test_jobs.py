"""A run that is cancelled never begins again; runs have a time limit and a place in the queue; visitors take turns."""

from __future__ import annotations

import asyncio

import pytest

from podqos.answers.page.job import JobKind, JobState
from podqos.web.ui.jobs import Job, JobRequest, Jobs, JobTask
from podqos.web.ui.memory import usable_bytes
from podqos.web.ui.refusal import RequestRefusal
from podqos.web.ui.settings import UI_LIMITS, limits_within
from web.ui.running import LONG, POD

FILES = {"long.yaml": LONG, "pod.yaml": POD}


def job_of(visitor=None):
    task = JobTask(JobKind.RUN, None, "", (), FILES)
    return Job(JobRequest(JobKind.RUN, "start"), lambda: task, visitor=visitor)


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_a_run_that_is_cancelled_as_it_begins_stays_cancelled_and_ends(turns):
    async def cancelled() -> Job:
        jobs = Jobs(1)
        job = job_of()
        jobs.add(job)
        for _ in range(turns):
            await asyncio.sleep(0)
        job.cancel()
        async with asyncio.timeout(60):
            while jobs.count:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        return job

    assert asyncio.run(cancelled()).state is JobState.CANCELLED


def test_visitors_take_turns_and_each_run_knows_its_place():
    async def queued():
        jobs = Jobs(1)
        made = [job_of(visitor) for visitor in ("ann", "ann", "ann", "bob", "cem", "bob")]
        for job in made:
            jobs.add(job)
        places = [job.place for job in made]
        made[3].cancel()
        jobs.go_on()
        later = [job.place for job in made]
        await jobs.stop()
        return places, later, [job.info().place for job in made]

    places, later, ended = asyncio.run(queued())
    assert places == [0, 3, 5, 1, 2, 4]
    assert later == [0, 3, 4, 0, 1, 2]
    assert ended == [0] * 6


def test_the_last_run_of_who_has_most_gives_way_to_who_has_none():
    async def added():
        jobs = Jobs(1)
        made = [job_of(visitor) for visitor in ("ann", "ann", "ann", "bob")]
        for job in made:
            jobs.add(job)
        had_room = jobs.has_room("ann", 4), jobs.has_room("cem", 4)
        states = [job.state for job in made]
        await jobs.stop()
        return had_room, states, made[2].error

    had_room, states, error = asyncio.run(added())
    assert had_room == (False, True)
    assert states[2:] == [JobState.FAILED, JobState.QUEUED]
    assert "run it again later" in error


def test_a_run_whose_source_is_gone_when_it_begins_says_so():
    async def ended():
        def task():
            raise RequestRefusal(404, "no such source: it was removed")

        jobs, job = Jobs(1), Job(JobRequest(JobKind.RUN, "a"), task)
        jobs.add(job)
        async with asyncio.timeout(60):
            while jobs.count:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        return job

    job = asyncio.run(ended())
    assert (job.state, job.error) == (JobState.FAILED, "no such source: it was removed")


def test_a_run_that_takes_too_long_fails_and_says_what_to_do():
    async def ended():
        jobs = Jobs(1, seconds=0.05)
        job = job_of()
        jobs.add(job)
        async with asyncio.timeout(60):
            while jobs.count:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        return job

    job = asyncio.run(ended())
    assert job.state is JobState.FAILED
    assert job.error.startswith("it takes more than ")
    assert "podqos simulate" in job.error


def test_all_limits_together_stay_below_the_memory_of_a_container():
    limits = limits_within(1 << 30)
    stored = limits.total_bytes + limits.uploading_bytes + limits.result_bytes
    assert stored + limits.workers.with_runs_bytes < 900 << 20
    assert limits.workers.memory_bytes <= limits.workers.with_runs_bytes
    assert limits.workers.process_bytes > 256 << 20
    assert limits_within(1 << 36) == UI_LIMITS


@pytest.mark.parametrize(
    ("membership", "file", "limit"),
    [
        ("0::/", "memory.max", 1 << 30),
        ("0::/pod/box", "pod/memory.max", 1 << 30),
        ("5:cpu,memory:/pod", "memory/pod/memory.limit_in_bytes", 1 << 29),
    ],
    ids=["container", "limit above", "cgroup v1"],
)
def test_the_limit_of_a_container_is_found(tmp_path, membership, file, limit):
    (tmp_path / "own").write_text(f"{membership}\n")
    path = tmp_path / "fs" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"{limit}\n")
    (tmp_path / "fs" / "pod" / "box").mkdir(parents=True, exist_ok=True)
    (tmp_path / "fs" / "pod" / "box" / "memory.max").write_text("max\n")
    assert usable_bytes(tmp_path / "fs", tmp_path / "own") == limit
    assert usable_bytes(tmp_path / "none", tmp_path / "none") > 1 << 28
