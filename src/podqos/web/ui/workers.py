"""The pool of view workers: who is answered next, by which process, and when a question has to give up.

A question is quick if the same one was quick before, untried at first, slow once it takes longer than
``quick_seconds``. Slow and untried questions never occupy all processes, so that quick ones do not wait for them. A
question that turns out to be slow keeps its process if fewer than ``slow`` are slow; otherwise the process is killed,
and the question starts again when it is its turn. Within each group, the visitor who has lately used least time is
next; new sources count by their size. If too many questions wait, the last one of the visitor who has most of them
gives way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Protocol

from podqos.errors import HostError, InputError
from podqos.web.ui.inquiry import Asked, Busy, Inquiry, Pace, Times
from podqos.web.ui.settings import WorkerLimits
from podqos.web.ui.tasks import Task
from podqos.web.ui.turns import Usage
from podqos.web.ui.views import Question
from podqos.web.ui.worker_process import NeedsMemory, Nursery, WorkerGone, WorkerProcess

_WATCH_SECONDS = 0.1
_ABANDONED_SECONDS = 0.25
"""A question whose visitor has left may still end by itself, which keeps what its process has read."""
_FAILED_STARTS = 3
_MOST_EXTENSION = 3
"""Times a deadline, for a process that gets less than half of a core."""
_BYTES_PER_SECOND = 4 << 20
"""About as fast as new sources are read: small ones do not wait for large ones."""
_MOST_WAITING = 10
"""Times the CPU time of a quick question: whatever takes longer is slow, even if it computes little."""


class OtherProcesses(Protocol):
    """Processes that share the memory limit."""

    def largest(self) -> int:
        """Return the memory of the largest; 0 if there is none."""

    def total(self) -> int:
        """Return the memory of all."""

    def end_largest(self) -> None:
        """End the largest."""


class _NoOthers:
    def largest(self) -> int:
        return 0

    total = largest

    def end_largest(self) -> None:
        """Do nothing."""


class Workers:
    """Answers questions in processes that can be killed."""

    def __init__(
        self,
        limits: WorkerLimits,
        others: OtherProcesses | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limits = limits
        self._others = others or _NoOthers()
        self._say = say
        self._nursery = Nursery(limits.process_bytes)
        self._workers: dict[WorkerProcess, Asked | None] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._waiting: list[Asked] = []
        self._times = Times(limits.quick_seconds)
        self._usage = Usage()
        self._failed_starts = 0
        self._watching: asyncio.Task[None] | None = None
        self._is_stopped = False

    # ---- asking ------------------------------------------------------------------------------------------------------

    async def ask(self, visitor: Hashable, inquiry: Inquiry) -> bytes:
        """Return the answer, or raise its error; if this is cancelled, so is the computation."""
        limits = self._limits
        asked = Asked(inquiry, visitor, self._times.pace(inquiry))
        if sum(other.visitor is visitor for other in self._waiting) >= limits.waiting_of_one_visitor:
            raise _too_many(asked)
        self._waiting.append(asked)
        asked.later(limits.queue_seconds, self._waited_too_long)
        self.prepare()
        self._go_on()
        if len(self._waiting) > limits.waiting:
            last = self._last()
            self._waiting.remove(last)
            last.end(_too_many(last))
        try:
            return await asked.future
        finally:
            self._leave(asked)

    def prepare(self) -> None:
        """Have a process ready: a visitor has come."""
        if self._watching is None and not self._is_stopped:
            self._watching = asyncio.ensure_future(self._watch())
        self._have_spare()

    def forget(self, key: str) -> None:
        """Keep a source no longer: its visitor has removed it."""
        for worker in self._workers:
            if key in worker.held:
                del worker.held[key]
                worker.dropped += (key,)

    def _leave(self, asked: Asked) -> None:
        """Forget a question that has its answer, or whose visitor has left."""
        asked.stop_timers()
        if asked in self._waiting:
            self._waiting.remove(asked)
        worker = asked.worker
        if worker is not None and self._workers.get(worker) is asked:  # the visitor has left
            asked.later(_ABANDONED_SECONDS, self._kill_of)
        self._go_on()

    # ---- who is next -------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Give every free process a question."""
        if self._is_stopped:
            return
        while self._waiting:
            choice = next(filter(None, map(self._choice, self._by_turn())), None)
            if choice is None:
                break
            asked, worker = choice
            self._waiting.remove(asked)
            self._begin(asked, worker)
        self._have_spare()

    def _by_turn(self) -> list[Asked]:
        running = Counter(asked.visitor for asked in self._workers.values() if asked is not None)

        def turn(asked: Asked) -> tuple[Pace, float]:
            reading = asked.inquiry.new_bytes / _BYTES_PER_SECOND
            more = running[asked.visitor] * self._limits.quick_seconds
            return asked.pace, self._usage.lately(asked.visitor) + more + reading

        return sorted(self._waiting, key=turn)  # the order of arrival among equals

    def _last(self) -> Asked:
        """Return the waiting question that gives way to others: the last one of the visitor who has most."""
        waiting = Counter(asked.visitor for asked in self._waiting)
        return max(reversed(self._by_turn()), key=lambda asked: waiting[asked.visitor])

    def _choice(self, asked: Asked) -> tuple[Asked, WorkerProcess] | None:
        """Return the process for a question that may begin now."""
        limits, running = self._limits, list(filter(None, self._workers.values()))
        if sum(other.visitor is asked.visitor for other in running) >= limits.of_one_visitor:
            return None
        slow = sum(other.pace is Pace.SLOW for other in running)
        if asked.pace is Pace.SLOW and slow >= limits.slow:
            return None
        if asked.pace is not Pace.QUICK and sum(other.pace is not Pace.QUICK for other in running) >= limits.untried:
            return None
        key = asked.inquiry.key
        is_held_by = (other for worker, other in self._workers.items() if key in worker.held and other is not None)
        if self._times.is_long_to_read(key) and any(other.visitor is asked.visitor for other in is_held_by):
            return None  # that one is soon free, sooner than another could read the source
        idle = [worker for worker, other in self._workers.items() if other is None]
        if not idle:
            return None
        is_quick = asked.pace is Pace.QUICK
        return asked, min(
            idle, key=lambda worker: (key not in worker.held, worker.is_slow == is_quick, len(worker.held))
        )

    # ---- computing ---------------------------------------------------------------------------------------------------

    def _begin(self, asked: Asked, worker: WorkerProcess) -> None:
        asked.stop_timers()
        self._workers[worker] = asked
        asked.worker, asked.began, asked.cpu_began = worker, asyncio.get_running_loop().time(), worker.cpu_seconds
        task = self._task(asked.inquiry, worker)
        asked.is_reading = task.given is not None or not isinstance(asked.inquiry.what, Question)
        limits = self._limits
        if asked.pace is Pace.SLOW:
            worker.slow_down()
        else:
            asked.later(limits.quick_seconds, self._turns_out_slow)
        asked.later(limits.read_seconds if asked.is_reading else limits.view_seconds, self._expired)
        running = asyncio.ensure_future(worker.ask(task, partial(self._has_read, asked)))
        running.add_done_callback(partial(self._answered, asked, worker))

    def _task(self, inquiry: Inquiry, worker: WorkerProcess) -> Task:
        key, held = inquiry.key, worker.held
        if not key:
            return Task(inquiry.what)
        is_held = key in held
        held.pop(key, None)
        held[key] = None
        old: tuple[str, ...] = ()
        while len(held) > self._limits.sources:  # of those used least recently, the one that is read most quickly
            least = min(tuple(held)[: len(held) // 2], key=self._times.reading)
            del held[least]
            old += (least,)
        forget, worker.dropped = (*worker.dropped, *old), ()
        return Task(inquiry.what, key, None if is_held else inquiry.given, forget)

    def _has_read(self, asked: Asked) -> None:
        """Note that the source has been read; the view has a deadline of its own."""
        if asked.worker is None or asked.future.done() or not isinstance(asked.inquiry.what, Question):
            return
        self._times.note_reading(asked.inquiry.key, asked.worker.took_seconds)
        asked.is_reading = False
        asked.stop_timers()
        if asked.pace is not Pace.SLOW:
            asked.later(self._limits.quick_seconds, self._turns_out_slow)
        asked.later(self._limits.view_seconds, self._expired)

    def _answered(self, asked: Asked, worker: WorkerProcess, running: asyncio.Task[bytes]) -> None:
        """Pass on an answer; a process that failed is replaced."""
        error = None if running.cancelled() else running.exception()
        if self._workers.get(worker) is not asked:
            return  # killed for a reason that is known already
        worker.used_at = asyncio.get_running_loop().time()
        self._workers[worker] = None
        self._usage.note(asked.visitor, worker.took_seconds)
        if not isinstance(error, WorkerGone | NeedsMemory):
            self._times.note(asked.inquiry.like, worker.took_seconds)
        if error is not None and asked.is_reading:
            worker.held.pop(asked.inquiry.key, None)
        if isinstance(error, WorkerGone) and not asked.is_repeated and not asked.future.done():
            asked.is_repeated = True  # somebody may have killed it
            self._again(asked, worker)
            self._go_on()
            return
        if isinstance(error, WorkerGone | NeedsMemory):
            self._end(worker)
            error = self._too_large(asked)
        asked.end(running.result() if error is None else error)
        self._go_on()

    # ---- giving up ---------------------------------------------------------------------------------------------------

    def _turns_out_slow(self, asked: Asked) -> None:
        """Treat a question as slow from now on; without room for another slow one it starts again later."""
        worker = asked.worker
        if worker is None or asked.future.done():
            return
        if self._still_quick(asked, worker):
            asked.later(self._limits.quick_seconds / 2, self._turns_out_slow)
            return
        self._times.note(asked.inquiry.like, self._limits.quick_seconds)
        self._usage.note(asked.visitor, self._limits.quick_seconds)
        slow = sum(other is not None and other.pace is Pace.SLOW for other in self._workers.values())
        asked.pace = Pace.SLOW
        if slow < self._limits.slow:
            worker.slow_down()
        else:
            self._again(asked, worker)
        self._go_on()

    def _again(self, asked: Asked, worker: WorkerProcess) -> None:
        """Let a question wait again, and end its process."""
        asked.stop_timers()
        asked.worker = None
        self._end(worker)
        self._waiting.append(asked)
        asked.later(self._limits.queue_seconds, self._waited_too_long)

    def _still_quick(self, asked: Asked, worker: WorkerProcess) -> bool:
        """Whether a question has waited for a busy machine rather than computed."""
        waited = asyncio.get_running_loop().time() - asked.began
        quick_seconds = self._limits.quick_seconds
        return _used(asked, worker) < quick_seconds and waited < _MOST_WAITING * quick_seconds

    def _expired(self, asked: Asked) -> None:
        limits, inquiry, worker = self._limits, asked.inquiry, asked.worker
        seconds = limits.read_seconds if asked.is_reading else limits.view_seconds
        waited = asyncio.get_running_loop().time() - asked.began
        if worker is not None and waited < _MOST_EXTENSION * seconds and _used(asked, worker) < seconds / 2:
            asked.later(seconds / 4, self._expired)  # the machine is busy with something else
            return
        self._times.note(inquiry.like, limits.view_seconds)
        if asked.is_reading:
            what = f"reading it takes more than {limits.read_seconds:g} s"
        else:
            what = f"it needs more than {limits.view_seconds:g} s"
        asked.end(InputError(what, where=inquiry.where, fix=inquiry.fix))
        self._kill_of(asked)

    def _waited_too_long(self, asked: Asked) -> None:
        asked.end(Busy("the server is busy", where=asked.inquiry.where, fix="try again in a minute"))

    def _too_large(self, asked: Asked) -> InputError:
        most = self._limits.process_bytes >> 20
        what = f"it needs more memory than the {most:,} MiB that it may use"
        return InputError(what, where=asked.inquiry.where, fix=asked.inquiry.fix)

    def _kill_of(self, asked: Asked) -> None:
        """End the process that still computes an answer."""
        worker = asked.worker
        if worker is not None and self._workers.get(worker) is asked:
            self._usage.note(asked.visitor, min(self._limits.view_seconds, _used(asked, worker)))
            self._end(worker)
            self._go_on()

    # ---- processes ---------------------------------------------------------------------------------------------------

    def _have_spare(self) -> None:
        """Start a process if none is free: one that is ready answers at once."""
        limits = self._limits
        if self._is_stopped or self._starting:
            return
        idle = [worker for worker, asked in self._workers.items() if asked is None]
        if any(not worker.is_slow for worker in idle):
            return
        if len(self._workers) >= limits.processes:
            if not idle:
                return
            self._end(min(idle, key=lambda worker: worker.used_at))  # its priority cannot be raised again
        task = asyncio.ensure_future(self._start())
        self._starting.add(task)
        task.add_done_callback(self._started)

    async def _start(self) -> None:
        worker = await self._nursery.start()
        if self._is_stopped:
            self._end(worker)
            return
        worker.used_at = asyncio.get_running_loop().time()
        self._workers[worker] = None

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        self._failed_starts = 0 if error is None else self._failed_starts + 1
        if error is not None:
            self._say(f"cannot start a process: {type(error).__name__} {error}")
            if self._failed_starts >= _FAILED_STARTS and not self._workers:
                self._failed_starts = 0
                for asked in self._waiting:
                    asked.end(HostError("the server cannot start a process for this; try again later"))
                self._waiting.clear()
                return
        self._go_on()

    def _end(self, worker: WorkerProcess) -> None:
        """End a process, and wait for it elsewhere."""
        self._workers.pop(worker, None)
        worker.kill()
        task = asyncio.ensure_future(worker.gone())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _watch(self) -> None:
        """Keep all processes together below the memory limit, and end those that nobody needs."""
        loop = asyncio.get_running_loop()
        while True:
            busy = any(asked is not None for asked in self._workers.values()) or self._others.total() > 0
            await asyncio.sleep(_WATCH_SECONDS if busy else min(1.0, self._limits.idle_seconds / 4))
            await self._replace_stopped()
            self._keep_below_limit()
            until = loop.time() - self._limits.idle_seconds
            for worker in self._idle():
                if worker.used_at < until:
                    self._end(worker)
            if not self._workers and not self._starting and not self._waiting and not self._nursery.is_empty:
                await self._nursery.rest()

    async def _replace_stopped(self) -> None:
        """End processes that somebody has stopped; what they were asked is asked again."""
        if self._nursery.is_stopped:
            await self._nursery.rest()
        stopped = [worker for worker in self._workers if worker.is_stopped]
        for worker in stopped:
            asked = self._workers[worker]
            if asked is None:
                self._end(worker)
            else:
                self._again(asked, worker)
        if stopped:
            self._go_on()

    def _idle(self) -> list[WorkerProcess]:
        return [worker for worker, asked in self._workers.items() if asked is None]

    def _keep_below_limit(self) -> None:
        """End idle processes if all together use too much memory, then the largest."""
        limits = self._limits
        sizes = {worker: worker.resident_bytes for worker in self._workers}
        own = sum(sizes.values())
        too_much = max(own - limits.memory_bytes, own + self._others.total() - limits.with_runs_bytes)
        if too_much <= 0:
            return
        for worker in sorted(self._idle(), key=lambda worker: -sizes[worker]):
            if too_much > 0:
                self._end(worker)
                too_much -= sizes[worker]
        if too_much > 0:
            largest = max(self._workers, key=lambda worker: sizes[worker], default=None)
            if own <= limits.memory_bytes and (largest is None or self._others.largest() > sizes[largest]):
                self._others.end_largest()
            elif largest is not None:
                asked = self._workers[largest]
                self._end(largest)
                if asked is not None:
                    asked.end(self._too_large(asked))
        self._go_on()

    @property
    def count(self) -> int:
        """The number of processes."""
        return len(self._workers)

    async def stop(self) -> None:
        """End all processes, and wait for it."""
        self._is_stopped = True
        if self._watching is not None:
            self._watching.cancel()
        stopping = [*self._waiting, *filter(None, self._workers.values())]
        self._waiting.clear()
        for worker in list(self._workers):
            self._end(worker)
        for asked in stopping:
            asked.end(HostError("the server stops"))
        for task in self._starting:
            task.cancel()
        tasks = [*self._starting, *self._ending]
        if tasks:
            await asyncio.wait(tasks)
        with suppress(asyncio.CancelledError):
            if self._watching is not None:
                await self._watching
        await self._nursery.rest()


def _too_many(asked: Asked) -> Busy:
    fix = "wait for the answers, and ask again"
    return Busy("too many questions at once", where=asked.inquiry.where, fix=fix)


def _used(asked: Asked, worker: WorkerProcess) -> float:
    """Return the CPU time that a question has used so far."""
    return worker.cpu_seconds - asked.cpu_began
