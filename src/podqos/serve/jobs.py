"""Long runs of visitors: a scenario, or leaks in every pod; with progress, and cancellable at any time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Struct

from podqos.errors import HostError, InputError, PodqosError
from podqos.page.session import JobInfo, JobKind, JobState, SourceKind
from podqos.serve.compute import Compute, Failed
from podqos.serve.work import JobTask, job_of

_SECONDS = 900.0
"""The deadline of a run."""
_MOST_EDITS = 64
_Edit = Annotated[str, msgspec.Meta(max_length=500)]
_OVER = {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


class JobRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A visitor's request for a run."""

    kind: JobKind
    source: str
    node: str = ""
    """For a blast in a cluster: the node; otherwise empty."""
    edits: Annotated[tuple[_Edit, ...], msgspec.Meta(max_length=_MOST_EDITS)] = ()
    """For a scenario: changes in the syntax of ``podqos simulate --what-if``, such as ``limits.memory@web=1Gi``."""

    def check(self, kind: str, name: str) -> None:
        """Raise ``InputError`` for what cannot be computed for a source of this kind."""
        if (self.kind is JobKind.RUN or self.edits) and kind != SourceKind.SCENARIO:
            raise InputError("only a scenario can be run", where=name, fix="open a scenario and its manifests")
        if kind in {SourceKind.LOG, SourceKind.RUN}:
            raise InputError("it contains no pods", where=name, fix="open manifests, a snapshot or a scenario")


class Job:
    """A queued, running or finished run."""

    def __init__(self, request: JobRequest, generation: int, tell: Callable[[], None]) -> None:
        """``tell`` is called on every progress."""
        self.id = secrets.token_hex(8)
        self.request = request
        self.generation = generation
        self.state = JobState.QUEUED
        self.place = 0
        """In the queue: 1 is next; 0 if it does not wait."""
        self.progress = 0.0
        self.error = ""
        self.result: bytes | None = None
        """JSON."""
        self.task: asyncio.Task[None] | None = None
        self._tell = tell
        self._began: float | None = None
        self._ended: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return self.state in _OVER

    def info(self) -> JobInfo:
        """Return its description for the page."""
        seconds = 0.0 if self._began is None else (self._ended or _now()) - self._began
        asked = self.request
        return JobInfo(
            self.id,
            asked.kind,
            asked.source,
            self.state,
            round(self.progress, 4),
            round(seconds, 3),
            self.error,
            self.generation,
            asked.node,
            asked.edits,
            self.place,
        )

    def wait(self, place: int) -> None:
        """Set its place in the queue."""
        if self.place != place:
            self.place = place
            self._tell()

    def begin(self) -> None:
        """Mark it as started."""
        self.place, self.state, self._began = 0, JobState.RUNNING, _now()
        self._tell()

    def advance(self, progress: float) -> None:
        """Set its progress."""
        self.progress = min(max(progress, self.progress), 1.0)
        self._tell()

    def end(self, state: JobState, error: str = "", result: bytes | None = None) -> None:
        """Set its outcome, once."""
        if self.is_over:
            return
        self.place, self.state, self.error, self.result, self._ended = 0, state, error, result, _now()
        if state is JobState.DONE:
            self.progress = 1.0
        self._tell()

    def cancel(self) -> None:
        """Stop it now, with everything it has started."""
        self.end(JobState.CANCELLED)
        if self.task is not None:
            self.task.cancel()


class Jobs:
    """All runs, in their order."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._under_way: list[Job] = []

    def begin(self, job: Job, task: JobTask) -> None:
        """Queue a job."""
        self._under_way.append(job)
        job.task = asyncio.ensure_future(self._run(job, task))
        self._move_up()

    def _move_up(self) -> None:
        for place, job in enumerate((job for job in self._under_way if job.state is JobState.QUEUED), 1):
            job.wait(place)

    async def _run(self, job: Job, task: JobTask) -> None:
        """Run a job to its end; any exception becomes its error."""

        def began() -> None:
            job.begin()
            self._move_up()

        try:
            result = await self._compute.run(job_of, task, seconds=_SECONDS, began=began, told=job.advance)
            job.end(JobState.DONE, result=result)
        except TimeoutError:
            what = f"it takes more than {_SECONDS / 60:g} minutes: shorten the scenario"
            job.end(JobState.FAILED, f"{what}, or run it in a terminal with `podqos simulate` or `podqos blast`")
        except (OSError, HostError, PodqosError) as error:
            job.end(JobState.FAILED, str(error))
        except Failed as error:
            job.end(JobState.FAILED, f"podqos failed: {str(error).partition(':')[0]}")
        finally:
            self._under_way.remove(job)
            self._move_up()


def _now() -> float:
    return asyncio.get_running_loop().time()
