"""When to ask again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from podqos.cluster import tunnels
from podqos.cluster.patience import is_temporary, pause_seconds
from podqos.cluster.tunnels import Deadline


def test_a_step_may_take_what_is_left_of_the_whole_and_none_begins_when_nothing_is(monkeypatch):
    times = iter((100.0, 100.0, 106.0, 107.5, 111.75, 112.0))
    monkeypatch.setattr(tunnels, "time", SimpleNamespace(monotonic=lambda: next(times)))
    deadline = Deadline(stall_seconds=5, total_seconds=12)
    assert [deadline.next_wait() for _ in range(4)] == [5, 5, 4.5, 0.25]
    with pytest.raises(TimeoutError):
        deadline.next_wait()


def test_pauses_double_up_to_a_bound():
    assert [pause_seconds(attempt, None, 0) for attempt in range(8)] == [0.25, 0.5, 1, 2, 4, 8, 15, 15]
    assert pause_seconds(10_000, None, 0) == 15


def test_chance_takes_off_up_to_a_half():
    assert pause_seconds(2, None, 1) == 0.5


@pytest.mark.parametrize(
    ("retry_after", "pause"), [("3", 3.25), ("0", 0.25), ("9999", 60.25), ("-1", 0.25), ("٣", 0.25)]
)
def test_what_the_server_asks_for_is_waited_at_least(retry_after, pause):
    assert pause_seconds(0, retry_after, 0) == pause


def test_only_429_and_5xx_may_change():
    assert [code for code in (200, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504) if is_temporary(code)] == [
        429,
        500,
        503,
        504,
    ]
