"""A pod that is evicted again and again is told once."""

from __future__ import annotations

import pytest

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import ReplacementFor
from podqos.model.time_units import SECOND_US
from podqos.sim.summary import first_pods
from podqos.words.repetition import Again, condensed


def event(seconds, kind, pod=None):
    return Entry(seconds * SECOND_US, "n", kind, pod)


def rounds(times, start=0, pod="ns/logs"):
    """Return a pod that is evicted, made anew 1 s later, started after another, and evicted again after eight more."""
    events = []
    for number in range(times):
        at = start + 10 * number
        name, after = (f"{pod}-r{number}" if number else pod), f"{pod}-r{number + 1}"
        events += [
            event(at, Kind.OBSERVED),
            event(at, Kind.EVICTED, name),
            Entry((at + 1) * SECOND_US, "", Kind.REPLACED, after, because=ReplacementFor(name, "Evicted")),
            event(at + 2, Kind.STARTED, after),
        ]
    return events


def told(events):
    """Return the stretches as they come: how many events, or how often again."""
    firsts = first_pods(events)
    parts = list(condensed(events, lambda each: firsts.get(each.pod, each.pod)))
    return [f"again {part.times}" if isinstance(part, Again) else len(part) for part in parts], parts


def test_all_who_came_after_a_pod_lead_back_to_it():
    assert first_pods(rounds(3)) == {f"ns/logs-r{number}": "ns/logs" for number in (1, 2, 3)}


def test_the_first_is_told_then_how_often_again_then_what_comes_after_the_last():
    shape, parts = told(rounds(5))
    assert shape == [2, "again 4", 2]
    assert parts[1] == Again("ns/logs", 4, 0, 40 * SECOND_US, 2 * SECOND_US, 2 * SECOND_US)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], [0], id="nothing"),
        pytest.param(rounds(1), [4], id="once"),
        pytest.param(rounds(2), [8], id="twice is told twice"),
        pytest.param(rounds(3), [2, "again 2", 2], id="three times"),
        pytest.param([*rounds(3), event(29, Kind.EVICTED, "ns/web"), *rounds(1, 30)], [2, "again 2", 7], id="then web"),
        pytest.param(
            [*rounds(2), event(15, Kind.EVICTED, "ns/web"), *rounds(2, 20, "ns/logs-r2")], [17], id="another between"
        ),
        pytest.param([event(at, Kind.EVICTED) for at in range(4)], [4], id="of no pod"),
        pytest.param([event(at, Kind.EVICTED, f"ns/web-{at}") for at in range(4)], [4], id="of several pods"),
        pytest.param(
            [each for pod in ("a", "b") for each in rounds(3, pod=f"ns/{pod}")],
            [2, "again 2", 4, "again 2", 2],
            id="one pod after the other",
        ),
    ],
)
def test_what_is_told_at_once(events, expected):
    assert told(events)[0] == expected


def test_conditions_that_come_and_go_meanwhile_do_not_break_it():
    events = rounds(4)
    events[6:6] = [event(10, Kind.CONDITION_CHANGED)]
    assert told(events)[0] == [2, "again 3", 2]
