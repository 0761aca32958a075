"""What pages are told without asking: changes to whoever follows, the whole to others, runs to whoever began them."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from page.test_cluster import World
from podqos.errors import InputError
from podqos.page.session import JobKind, JobState
from podqos.serve.feeds import of_cluster
from podqos.serve.jobs import Job, JobRequest
from podqos.serve.live import Live, told
from podqos.serve.sessions import Visitor


class Changing:
    """A cluster in which something happens whenever a test says so."""

    pause_seconds = 0.0

    def __init__(self, pods=12):
        self.world = World(3, pods)
        self.last = self.world.snapshot()
        self.first = of_cluster(self.last)
        self.told = 0
        self.trouble = None

    def happen(self, number=1, request=None):
        self.world.pod(number, "worker-1", request or 101 + self.told)
        self.told += 1  # last: whoever looks in between has not been told

    def look(self):
        if self.trouble is not None:
            raise self.trouble
        if not self.told:
            return None
        self.told = 0
        self.last = self.world.snapshot(self.last)
        return of_cluster(self.last)


class Stage:
    def __init__(self, instance="one", pods=12):
        self.feed = Changing(pods)
        self.said = []
        self.pool = ThreadPoolExecutor(2)
        self.live = Live(self.feed.first, self.feed, self.pool, self.said.append, instance)
        self.visitor = Visitor()
        self.instance = instance

    def stream(self, last="", **options):
        return Page(told(self.live, self.visitor, self.instance, last, **options))

    async def changed(self, **how):
        """Let something happen, and wait until it is known."""
        generation = self.live.shown.generation
        self.feed.happen(**how)
        while self.live.shown.generation == generation:  # noqa: ASYNC110 - nothing tells a test
            await asyncio.sleep(0.005)


class Page:
    """What a page makes of a stream."""

    def __init__(self, parts):
        self.parts = parts
        self.seen = []
        self.last, self.cluster, self.jobs, self.trouble = "", None, None, ""

    async def until(self, condition):
        async with asyncio.timeout(300):
            while not condition():
                self.take(await anext(self.parts))

    def take(self, part):
        fields = dict(line.split(": ", 1) for line in part.decode().split("\n") if line)
        value = json.loads(fields["data"])
        self.seen.append(fields["event"])
        self.last = fields.get("id", self.last)
        if "trouble" in value:
            self.trouble = value["trouble"]
        match fields["event"]:
            case "jobs":
                self.jobs = value
            case "cluster":
                self.cluster = value["cluster"]

    def requested(self, name="pod-1"):
        return next(each["requestedBytes"] >> 20 for each in self.cluster["pods"] if each["name"] == name)


def on_stage(test):
    """Run a test with a stage that follows its feed."""

    async def run():
        stage = Stage()
        following = asyncio.ensure_future(stage.live.follow())
        try:
            async with asyncio.timeout(300):
                await test(stage)
        finally:
            following.cancel()
            stage.pool.shutdown()

    def wrapped():
        asyncio.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


async def whole(stage):
    return json.loads((await stage.live.whole())[1])


@on_stage
async def test_a_page_gets_every_state_that_lasts(stage):
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        assert page.seen == ["hello", "jobs", "cluster"]
        for request in (200, 300):
            await stage.changed(request=request)
            await page.until(lambda request=request: page.requested() == request)
        assert set(page.seen[3:]) <= {"cluster", "age"}
        assert page.seen.count("cluster") >= 3
        assert page.cluster == await whole(stage)


@on_stage
async def test_whoever_is_slow_gets_the_newest_state_and_none_in_between(stage):
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        for request in (200, 300, 400, 500):
            await stage.changed(request=request)
        page.seen.clear()
        await page.until(lambda: "cluster" in page.seen)
        assert page.requested() == 500
        assert page.seen.count("cluster") == 1
        assert page.cluster == await whole(stage)


@on_stage
async def test_whoever_was_away_for_long_gets_the_whole_and_little_is_kept_for_those(stage):
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        for _ in range(12):
            await stage.changed()
        page.seen.clear()
        await page.until(lambda: page.seen)
        assert page.seen == ["cluster"]
        assert page.cluster == await whole(stage)
    assert len(stage.live._views) == 1


@on_stage
async def test_who_comes_back_gets_the_newest_state_and_nothing_where_nothing_has_changed(stage):
    first = stage.stream(is_once=True)
    await first.until(lambda: first.cluster)
    await stage.changed(request=300)
    for last in (first.last, "another-1", "", first.last + "x"):
        back = stage.stream(last, is_once=True)
        await back.until(lambda back=back: len(back.seen) == 3)
        assert back.seen[2] == "cluster", last
        assert back.cluster == await whole(stage)
    known = stage.stream(back.last, is_once=True)
    await known.until(lambda: len(known.seen) == 3)
    assert known.seen[2] == "age"


@on_stage
async def test_many_who_look_are_sent_the_same_bytes(stage):
    streams = [stage.stream() for _ in range(50)]
    for page in streams:
        await page.until(lambda page=page: page.cluster)
    await stage.changed(request=300)
    for page in streams:
        await page.until(lambda page=page: page.requested() == 300)
    for page in streams:
        await page.parts.aclose()
    assert not stage.live.bell._listening
    assert not stage.visitor.bell._listening


@on_stage
async def test_what_hinders_is_told_once_and_what_was_known_stays_until_it_is_over(stage):
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        stage.feed.trouble = InputError("the server is away")
        await page.until(lambda: page.trouble)
        assert page.trouble == "the server is away"
        assert len(page.cluster["pods"]) == 12
        stage.feed.trouble = None
        await stage.changed(request=300)
        await page.until(lambda: page.requested() == 300)
        await page.until(lambda: not page.trouble)
    assert stage.said == ["out of date: the server is away"]


@on_stage
async def test_a_cluster_that_shrinks_to_nothing_is_shown_empty_and_grows_again(stage):
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        for kind in stage.feed.world.mirror._kinds:
            kind.objects.clear()
        stage.feed.told = 1
        await page.until(lambda: page.cluster["pods"] == [] and page.cluster["nodes"] == [])
        assert page.cluster == await whole(stage)
        await stage.changed(request=300)
        await page.until(lambda: page.cluster["pods"])
        assert page.requested() == 300


@on_stage
async def test_runs_are_told_to_whoever_began_them_and_to_nobody_else(stage):
    other = Visitor()
    async with aclosing(stage.stream().parts) as parts:
        page = Page(parts)
        await page.until(lambda: page.cluster)
        assert page.jobs == []
        request = JobRequest(JobKind.RUN, "start", edits=("limits.memory@leaky=1Gi",))
        job = Job(request, 3, stage.visitor.bell.ring)
        stage.visitor.jobs[job.id] = job
        job.begin()
        await page.until(lambda: page.jobs)
        [info] = page.jobs
        assert (info["state"], info["edits"], info["generation"]) == ("running", ["limits.memory@leaky=1Gi"], 3)
        job.advance(0.5)
        await page.until(lambda: page.jobs[0]["progress"] == 0.5)
        job.end(JobState.FAILED, "it failed")
        await page.until(lambda: page.jobs[0]["state"] == "failed")
        assert page.jobs[0]["error"] == "it failed"
    none = Page(told(None, other, "one", "", is_once=True))
    await none.until(lambda: len(none.seen) == 3)
    assert (none.seen, none.jobs) == (["hello", "jobs", "age"], [])


def test_a_first_state_that_cannot_be_shown_is_told_and_a_later_one_is_shown(monkeypatch):
    async def run():
        stage = Stage()
        real, fails = stage.live.shown.page.cluster, [True]

        def cluster():
            if fails:
                raise InputError("that cannot be ranked")
            return real()

        monkeypatch.setattr(stage.live.shown.page, "cluster", cluster)
        await stage.live.prepare()
        page = stage.stream(is_once=True)
        await page.until(lambda: len(page.seen) == 3)
        assert (page.seen[2], page.trouble) == ("age", "that cannot be ranked")
        fails.clear()
        following = asyncio.ensure_future(stage.live.follow())
        again = stage.stream(is_once=True)
        await again.until(lambda: again.cluster)
        following.cancel()
        stage.pool.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["</script><b>x", 'a"b\\c', "zeile\u2028ende", "emoji-😀"])
def test_a_name_that_has_to_be_escaped_is_one_line_and_the_same_name(name):
    async def run():
        stage = Stage()
        metadata = {"name": name, "namespace": "shop", "uid": "odd"}
        spec = {"nodeName": "worker-1", "containers": [{"name": "c"}]}
        stage.feed.world.put("Pod", {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
        stage.feed.told = 1
        following = asyncio.ensure_future(stage.live.follow())
        page = stage.stream()
        async with aclosing(page.parts):
            await page.until(lambda: page.cluster and name in [each["name"] for each in page.cluster["pods"]])
        following.cancel()
        stage.pool.shutdown()

    asyncio.run(run())
