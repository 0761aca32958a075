"""Questions about uploads are answered in processes: quick ones first, each visitor in turn, and none for ever."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.web.ui import workers as pool
from podqos.web.ui.inquiry import Busy, Inquiry
from podqos.web.ui.settings import WorkerLimits
from podqos.web.ui.tasks import Comparison, Given, Paste, Reading, Task, task_of, task_parts
from podqos.web.ui.views import Question
from podqos.web.ui.worker_process import NeedsMemory, WorkerGone
from podqos.web.ui.workers import Workers
from web.ui.running import POD

LIMITS = WorkerLimits(quick_seconds=0.05, view_seconds=0.3, read_seconds=0.3, queue_seconds=5.0)
QUICK, ENDLESS, SLOW, HUGE = "quick", "endless", "slow", "huge"


class Visitor:
    """Who asks."""


class Stand:
    """A process that is none: a question for the pod ``slow`` takes longer than a quick one, ``endless`` never ends."""

    alive = 0

    def __init__(self):
        Stand.alive += 1
        self.held, self.dropped, self.is_slow, self.used_at = {}, (), False, 0.0
        self.resident_bytes, self.took_seconds, self._began = 40 << 20, 0.0, asyncio.get_running_loop().time()
        self.is_killed = self.is_stopped = False
        self._end = asyncio.Event()

    @property
    def cpu_seconds(self):
        return asyncio.get_running_loop().time() - self._began

    async def ask(self, task, on_read):
        began = self.cpu_seconds
        if task.given is not None:
            on_read()
        work = asyncio.ensure_future(self._work(task))
        ended = asyncio.ensure_future(self._end.wait())
        await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        self.took_seconds = self.cpu_seconds - began
        if self.is_killed:
            work.cancel()
            raise WorkerGone
        return work.result()

    async def _work(self, task):
        asked = getattr(task.what, "pod", "")
        if asked == HUGE:
            raise NeedsMemory
        await asyncio.sleep({SLOW: 0.15, ENDLESS: 3600}.get(asked, 0))
        return asked.encode()

    def slow_down(self):
        self.is_slow = True

    def kill(self):
        if not self.is_killed:
            Stand.alive -= 1
        self.is_killed = True
        self._end.set()

    async def gone(self):
        pass


@pytest.fixture(autouse=True)
def stands(monkeypatch):
    async def start(self):
        return Stand()

    Stand.alive = 0
    monkeypatch.setattr(pool.Nursery, "start", start)


def about(pod, key="a"):
    return Inquiry(Question("pods", pod), Given(key, {"pod.yaml": POD}), "pod.yaml")


def played(scene, limits=LIMITS):
    """Run a scene with a pool; afterwards no process is left."""

    async def play():
        workers = Workers(limits)
        try:
            return await scene(workers)
        finally:
            await workers.stop()
            assert Stand.alive == 0

    return asyncio.run(play())


def test_an_endless_question_ends_at_its_deadline_and_says_what_to_do():
    async def scene(workers):
        with pytest.raises(InputError) as error:
            await workers.ask(Visitor(), about(ENDLESS))
        return error.value

    error = played(scene)
    assert (error.what, error.where, error.fix) == ("it needs more than 0.3 s", "pod.yaml", "open a smaller part")


def test_a_question_that_needs_too_much_memory_says_so_and_the_next_one_is_answered():
    async def scene(workers):
        visitor = Visitor()
        with pytest.raises(InputError, match="it needs more memory than the 614 MiB that it may use"):
            await workers.ask(visitor, about(HUGE))
        return await workers.ask(visitor, about(QUICK))

    assert played(scene) == b"quick"


def test_slow_questions_of_many_visitors_leave_a_process_for_quick_ones():
    async def scene(workers):
        visitor = Visitor()
        await workers.ask(visitor, about(QUICK, "own"))
        endless = [asyncio.ensure_future(workers.ask(Visitor(), about(ENDLESS, str(key)))) for key in range(6)]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(30):
            assert await workers.ask(visitor, about(QUICK, "own")) == b"quick"
        assert not any(one.done() for one in endless[4:])
        ended = await asyncio.gather(*endless, return_exceptions=True)
        assert all(isinstance(one, InputError) for one in ended)

    played(scene)


def test_a_quick_question_stays_quick_on_a_busy_machine(monkeypatch):
    monkeypatch.setattr(Stand, "cpu_seconds", 0.0)  # the processes get no CPU time

    async def scene(workers):
        visitor = Visitor()
        assert await workers.ask(visitor, about(SLOW)) == b"slow"
        endless = [asyncio.ensure_future(workers.ask(Visitor(), about(ENDLESS, str(key)))) for key in range(12)]
        await asyncio.sleep(0.02)
        async with asyncio.timeout(30):
            await workers.ask(visitor, about(SLOW))
        assert not any(one.done() for one in endless)
        for one in endless:
            one.cancel()

    played(scene)


def test_one_visitor_never_occupies_all_processes():
    async def scene(workers):
        visitor = Visitor()
        own = [asyncio.ensure_future(workers.ask(visitor, about(ENDLESS, str(key)))) for key in range(8)]
        await asyncio.sleep(0.02)
        assert await workers.ask(Visitor(), about(SLOW, "other")) == b"slow"
        for one in own:
            one.cancel()

    played(scene)


def test_who_leaves_ends_the_computation():
    async def scene(workers):
        asked = asyncio.ensure_future(workers.ask(Visitor(), about(ENDLESS)))
        await asyncio.sleep(0.02)
        before = set(workers._workers)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        async with asyncio.timeout(30):
            while not any(worker.is_killed for worker in before):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        return await workers.ask(Visitor(), about(QUICK))

    assert played(scene) == b"quick"


def test_too_many_questions_of_one_visitor_are_refused():
    async def scene(workers):
        visitor = Visitor()
        asked = [asyncio.ensure_future(workers.ask(visitor, about(ENDLESS, str(key)))) for key in range(60)]
        await asyncio.sleep(0.05)
        refused = [one for one in asked if one.done()]
        assert refused
        assert all(isinstance(one.exception(), Busy) for one in refused)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    played(scene)


def test_if_too_many_wait_the_last_of_who_asked_most_gives_way():
    async def scene(workers):
        few, many = Visitor(), Visitor()
        asked = [asyncio.ensure_future(workers.ask(many, about(ENDLESS, f"m{key}"))) for key in range(8)]
        await asyncio.sleep(0.02)
        first = asyncio.ensure_future(workers.ask(few, about(QUICK, "f")))
        async with asyncio.timeout(30):
            assert await first == b"quick"
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, Busy) for one in ended[:5]] == [False] * 5
        assert sum(isinstance(one, Busy) for one in ended) >= 1

    played(scene, replace(LIMITS, waiting=5))


@pytest.mark.parametrize("times", [1, 2])
def test_a_question_whose_process_is_killed_is_asked_once_more(times):
    async def scene(workers):
        asked = asyncio.ensure_future(workers.ask(Visitor(), about(SLOW)))
        for _ in range(times):
            while not any(workers._workers.values()):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.005)
            next(worker for worker, busy in workers._workers.items() if busy).kill()
            await asyncio.sleep(0.01)
        async with asyncio.timeout(30):
            return (await asyncio.gather(asked, return_exceptions=True))[0]

    answer = played(scene, replace(LIMITS, quick_seconds=1.0, view_seconds=5.0))
    assert answer == b"slow" if times == 1 else "needs more memory" in str(answer)


def test_a_question_to_a_process_that_somebody_stopped_is_asked_again():
    async def scene(workers):
        asked = asyncio.ensure_future(workers.ask(Visitor(), about(SLOW)))
        while not any(workers._workers.values()):  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.005)
        for worker in workers._workers:
            worker.is_stopped = True
        async with asyncio.timeout(30):
            assert await asked == b"slow"
        return Stand.alive

    assert played(scene, replace(LIMITS, quick_seconds=1.0, view_seconds=5.0)) <= LIMITS.processes


def test_who_has_used_least_is_next_and_small_sources_go_before_large_ones():
    async def scene(workers):
        used, unused, large = Visitor(), Visitor(), Visitor()
        with suppress(InputError):
            await workers.ask(used, about(ENDLESS, "u"))
        order = []

        async def ask(name, visitor, inquiry):
            with suppress(InputError):
                await workers.ask(visitor, inquiry)
            order.append(name)

        busy = [asyncio.ensure_future(workers.ask(Visitor(), about(ENDLESS, f"b{key}"))) for key in range(2)]
        await asyncio.sleep(0)
        asks = [
            ("used", used, about(QUICK, "new")),
            ("large", large, Inquiry(Reading(), Given("large", {"a": bytes(1 << 20)}), "a")),
            ("unused", unused, about(QUICK, "newer")),
        ]
        await asyncio.gather(*(ask(*each) for each in asks), *busy, return_exceptions=True)
        assert order == ["unused", "large", "used"]

    played(scene, replace(LIMITS, processes=2, untried=1, slow=1, quick_seconds=0.25))


def test_a_source_that_takes_long_to_read_is_not_displaced_by_many_small_ones():
    async def scene(workers):
        visitor = Visitor()
        await workers.ask(visitor, about(QUICK, "long"))
        workers._times.note_reading("long", 5.0)
        for key in range(20):
            await workers.ask(Visitor(), about(QUICK, str(key)))
        assert sum("long" in worker.held for worker in workers._workers) == 1

    played(scene, replace(LIMITS, processes=1, untried=1, sources=4))


def test_processes_that_use_too_much_memory_together_end_the_largest_first():
    async def scene(workers):
        asked = [asyncio.ensure_future(workers.ask(Visitor(), about(ENDLESS, str(key)))) for key in range(2)]
        await asyncio.sleep(0.02)
        small, large = (worker for worker, other in workers._workers.items() if other is not None)
        large.resident_bytes = LIMITS.memory_bytes
        workers._keep_below_limit()
        assert (small.is_killed, large.is_killed) == (False, True)
        await asyncio.sleep(0)
        assert "more memory" in str([one.exception() for one in asked if one.done()])
        await asyncio.gather(*asked, return_exceptions=True)

    played(scene)


def test_a_source_is_sent_once_and_forgotten_when_it_is_removed():
    sent = []

    async def scene(workers):
        visitor = Visitor()
        for _ in range(2):
            await workers.ask(visitor, about(QUICK))
        workers.forget("a")
        await workers.ask(visitor, about(QUICK, "b"))

    ask = Stand.ask

    async def noted(self, task, on_read):
        sent.append((task.key, task.given is not None, task.forget))
        return await ask(self, task, on_read)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stand, "ask", noted)
        played(scene)
    assert sent[:2] == [("a", True, ()), ("a", False, ())]
    assert sent[2][:2] == ("b", True)


@pytest.mark.parametrize(
    "task",
    [
        Task(Question("pods", "default/a"), "a"),
        Task(Reading(), "a", Given("a", {"a.yaml": POD, "b.yaml": b""}), ("b", "c")),
        Task(Paste(b"text"), "start", Given("start", pickled=b"pickled")),
        Task(Paste(b"text")),
        Task(Comparison(b"{}", b"[]")),
    ],
)
def test_a_task_arrives_as_it_was_sent(task):
    assert task_of(task_parts(task)[1:]) == task


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_real_process_reads_and_answers(monkeypatch):
    monkeypatch.undo()

    async def scene():
        workers = Workers(WorkerLimits())
        visitor, given = Visitor(), Given("a", {"pod.yaml": POD})
        try:
            read = await workers.ask(visitor, Inquiry(Reading(), given))
            with pytest.raises(InputError, match="no such pod"):
                await workers.ask(visitor, Inquiry(Question("pods", "default/none"), given))
            return read, await workers.ask(visitor, Inquiry(Question("cluster"), given))
        finally:
            await workers.stop()

    # Elsewhere than in the thread of the tests, whose event loop a browser may have.
    with ThreadPoolExecutor(1) as thread:
        read, view = thread.submit(asyncio.run, scene()).result()
    assert b'"kind":"manifests"' in read
    assert b'"leaky"' in view
