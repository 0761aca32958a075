"""How long the DaemonSet controller leaves a failed pod alone, by hand: flowcontrol.Backoff of 1 s to 15 min."""

from __future__ import annotations

import pytest

from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.rollouts import DaemonBackoff


def waits(*failed: float, backoff: DaemonBackoff | None = None, node: str = "n") -> list[float]:
    """Return how long each of these failures waits, in seconds."""
    backoff = backoff or DaemonBackoff()
    return [backoff.wait_us("ns/agent", node, int(time * SECOND_US)) / SECOND_US for time in failed]


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        pytest.param([0], [0], id="the first is removed as it is seen"),
        pytest.param([0, 0.5], [0, 1], id="within the back-off: a whole one more"),
        pytest.param([0, 1], [0, 0], id="at its end it is over"),
        pytest.param([0, 10, 20, 30, 40, 50], [0, 0, 0, 0, 0, 16], id="removed at once, and doubled each time"),
        pytest.param([0, 10, 10.5, 14], [0, 0, 2, 4], id="counted from the removal and not from the failure"),
        pytest.param([0, 1801, 1801.5], [0, 0, 1], id="forgotten after half an hour"),
        pytest.param([0, 1800, 1801.5], [0, 0, 2], id="and not before"),
    ],
)
def test_wait(failed, expected):
    assert waits(*failed) == expected


def test_it_grows_to_fifteen_minutes_and_no_further():
    backoff, now, found = DaemonBackoff(), 0.0, []
    for _ in range(14):
        (wait,) = waits(now, backoff=backoff)
        found.append(wait)
        now += wait + 0.1  # evicted as soon as it is back
    assert found == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]


def test_every_node_has_its_own():
    backoff = DaemonBackoff()
    assert waits(0, 0.5, backoff=backoff) == [0, 1]
    assert waits(0.5, backoff=backoff, node="other") == [0]
