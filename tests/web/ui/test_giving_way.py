"""If what visitors share does not suffice, whoever has most gives way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from podqos.web.ui.giving_way import Bodies, Streams
from podqos.web.ui.inquiry import Busy
from podqos.web.ui.sessions import NoRoom, Visitor
from podqos.web.ui.turns import Turns


def visitor():
    return Visitor(0.0, is_let_in=True)


def test_the_largest_body_gives_way_to_smaller_ones_and_a_larger_one_is_refused():
    async def scene():
        bodies, never = Bodies(100), asyncio.Event()

        async def reading(size):
            return await bodies.kept(size, never.wait())

        large, small = (asyncio.ensure_future(reading(size)) for size in (80, 15))
        await asyncio.sleep(0)
        with pytest.raises(NoRoom):
            await reading(90)
        assert not large.done()
        smaller = asyncio.ensure_future(reading(20))
        with pytest.raises(NoRoom, match="others are uploading large files"):
            await large
        never.set()
        assert await asyncio.gather(small, smaller) == [True, True]

    asyncio.run(scene())


def test_a_body_ends_with_its_visitor():
    async def scene():
        bodies, is_over = Bodies(100), asyncio.Event()

        async def reading():
            try:
                await asyncio.Event().wait()
            finally:
                is_over.set()

        kept = asyncio.ensure_future(bodies.kept(10, reading()))
        await asyncio.sleep(0.01)
        kept.cancel()
        with pytest.raises(asyncio.CancelledError):
            await kept
        await is_over.wait()

    asyncio.run(scene())


def test_the_oldest_stream_of_who_has_most_ends_if_there_are_too_many():
    async def scene():
        streams, ended = Streams(3), []

        async def endless():
            while True:
                yield b""
                await asyncio.sleep(3600)

        async def read(name, visitor):
            try:
                async with aclosing(streams.counted(visitor, endless())) as parts:
                    async for _ in parts:
                        pass
            finally:
                ended.append(name)

        one, many = visitor(), visitor()
        names = [("one", one), ("first", many), ("second", many), ("newcomer", visitor())]
        tasks = []
        for name in names:
            tasks.append(asyncio.ensure_future(read(*name)))
            await asyncio.sleep(0.01)
        assert ended == ["first"]
        assert (one.streams, many.streams) == (1, 1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (one.streams, many.streams) == (0, 0)

    asyncio.run(scene())


def asked_in_turn(most_of_one, most, visitors, begun=1):
    """Return who was answered, in order; the first computation ends when all have asked."""

    async def scene():
        with ThreadPoolExecutor(1) as pool:
            turns, lock, order = Turns(pool, most_of_one, most), asyncio.Lock(), []

            async def ask(name):
                try:
                    await turns.computed(name, lock, lambda: None)
                    order.append(name)
                except Busy:
                    order.append(f"not {name}")

            await lock.acquire()
            tasks = [asyncio.ensure_future(ask(name)) for name in visitors]
            await asyncio.sleep(0.01)
            lock.release()
            await asyncio.gather(*tasks)
            return order

    return asyncio.run(scene())


class Named(str):
    """A visitor."""

    __slots__ = ("__weakref__",)


ANN, BOB, CEM = map(Named, ("ann", "bob", "cem"))


def test_visitors_take_turns_with_the_start_source():
    assert asked_in_turn(9, 9, [ANN, ANN, ANN, BOB, CEM])[:3] in (["ann", "bob", "cem"], ["ann", "cem", "bob"])


def test_one_visitor_has_so_many_questions_about_the_start_source_and_all_together_so_many():
    assert asked_in_turn(2, 9, [ANN, ANN, ANN, ANN])[:1] == ["not ann"]
    order = asked_in_turn(9, 3, [ANN, ANN, ANN, ANN, BOB])
    assert order.count("not ann") == 1
    assert "bob" in order


def test_a_question_whose_visitor_has_left_holds_up_nobody():
    async def scene():
        with ThreadPoolExecutor(1) as pool:
            turns, lock = Turns(pool, 9, 9), asyncio.Lock()
            await lock.acquire()
            tasks = [asyncio.ensure_future(turns.computed(ANN, lock, int)) for _ in range(3)]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            lock.release()
            assert await turns.computed(BOB, lock, lambda: "answered") == "answered"

    asyncio.run(scene())
