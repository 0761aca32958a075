"""Work in processes of its own: what hangs, grows or breaks is an error, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import time
from multiprocessing import active_children

import pytest

from podqos.errors import HostError, InputError
from podqos.serve.compute import Compute, Failed
from podqos.serve.work import read

PATIENCE = 120.0


def run(*work, seconds=PATIENCE, at_once=2, most_bytes=1 << 30, cancelled_after=None):
    async def main():
        compute = Compute(at_once, most_bytes, "podqos.serve.work")
        try:
            async with asyncio.timeout(cancelled_after):
                return await compute.run(*work, seconds=seconds)
        finally:
            compute.close()

    found = asyncio.run(main())
    assert active_children() == []
    return found


def test_the_result_comes_back():
    assert run(sorted, [3, 1, 2]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        pytest.param((time.sleep, 1000), TimeoutError, None, id="it never ends"),
        pytest.param((bytearray, 1 << 34), HostError, "more memory than it may use", id="it grows"),
        pytest.param((os._exit, 1), HostError, "killed before it finished", id="it is killed"),
        pytest.param((int, "x"), Failed, "ValueError", id="a bug of ours"),
        pytest.param((read, {"a.zip": b"PK\x03\x04"}), InputError, "a.zip", id="a visitor's file"),
    ],
)
def test_what_goes_wrong_is_an_error_and_leaves_no_process(work, error, message):
    with pytest.raises(error, match=message):
        run(*work, seconds=3.0 if error is TimeoutError else PATIENCE)
    assert active_children() == []


def test_what_nobody_waits_for_is_killed():
    with pytest.raises(TimeoutError):
        run(time.sleep, 1000, cancelled_after=3.0)
    assert active_children() == []


def test_so_many_at_a_time_and_the_next_in_turn():
    async def main():
        compute = Compute(1, 1 << 30, "podqos.serve.work")
        began = []
        running = [
            asyncio.ensure_future(
                compute.run(sorted, [number], seconds=PATIENCE, began=lambda number=number: began.append(number))
            )
            for number in range(3)
        ]
        await asyncio.sleep(0)
        assert began == [0]
        assert [await each for each in running] == [[0], [1], [2]]
        assert began == [0, 1, 2]
        compute.close()

    asyncio.run(main())
