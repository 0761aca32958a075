"""A run that is cancelled never begins again, at whatever moment it is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from podqos.answers.page.job import JobKind, JobState
from podqos.web.ui.jobs import Job, JobRequest, Jobs, JobTask
from podqos.web.ui.source_files import read_given
from web.ui.running import LONG, POD


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_a_run_that_is_cancelled_as_it_begins_stays_cancelled_and_ends(turns):
    async def cancelled() -> Job:
        jobs = Jobs(1)
        source = read_given({"long.yaml": LONG, "pod.yaml": POD})
        job = Job(JobRequest(JobKind.RUN, "start"), JobTask(JobKind.RUN, source, "", ()))
        jobs.add(job)
        for _ in range(turns):
            await asyncio.sleep(0)
        job.cancel()
        async with asyncio.timeout(60):
            while jobs.count:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        return job

    assert asyncio.run(cancelled()).state is JobState.CANCELLED
