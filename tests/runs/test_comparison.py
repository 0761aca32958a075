"""Two journals side by side: matched, judged, explained or flagged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.model.time_units import SECOND_US
from podqos.runs.comparison import Explanation, Tolerance, Verdict, compare, victims

MI = 1 << 20
SECOND = 1_000_000


def killed(pod: str, at: float, margin: int | None = 500 * MI, adj: int = 1000) -> Entry:
    because = OOMKill(
        level=OOMLevel.NODE,
        domain="/",
        limit_bytes=1,
        total_pages=1,
        oom_score_adj=adj,
        used_pages=1,
        points=1,
        killed_processes=1,
        as_group=False,
        margin_bytes=margin,
    )
    return Entry(int(at * SECOND), "n", Kind.OOM_KILLED, f"ns/{pod}", "main", By.KERNEL, because)


def evicted(pod: str, at: float) -> Entry:
    return Entry(int(at * SECOND), "n", Kind.EVICTED, f"ns/{pod}", by=By.KUBELET)


def started(pod: str, at: float) -> Entry:
    return Entry(int(at * SECOND), "n", Kind.STARTED, f"ns/{pod}")


def _verdicts(expected, happened, **tolerance):
    found = compare(expected, happened, Tolerance(**tolerance))
    return found, [(row.verdict, row.explanation) for row in found.victims]


def test_equal_journals_are_the_same_whatever_the_times():
    found, rows = _verdicts([started("a", 0), killed("a", 1), killed("b", 2)], [killed("a", 1.4), killed("b", 7)])
    assert rows == [(Verdict.SAME, None)] * 2
    assert (found.same_victims, found.same_order, found.flagged) == (True, True, ())


def test_a_victim_that_did_not_fall_is_flagged():
    found, rows = _verdicts([killed("a", 1), killed("b", 2)], [killed("b", 2)])
    assert rows == [(Verdict.ONLY_EXPECTED, None), (Verdict.SAME, None)]
    assert not found.same_victims
    assert [row.predicted.pod for row in found.flagged] == ["ns/a"]


def test_a_victim_nobody_expected_is_flagged():
    found, rows = _verdicts([killed("a", 1)], [killed("a", 1), killed("c", 1.5)])
    assert rows == [(Verdict.SAME, None), (Verdict.ONLY_HAPPENED, None)]
    assert [row.real.pod for row in found.flagged] == ["ns/c"]


ORDERS = {
    "far apart": ({}, 5, 500 * MI, None),
    "close in time": ({}, 0.3, 500 * MI, Explanation.CLOSE_IN_TIME),
    "a close call": ({}, 5, MI, Explanation.CLOSE_CALL),
}


@pytest.mark.parametrize(("tolerance", "gap", "margin", "explanation"), ORDERS.values(), ids=ORDERS)
def test_an_order_the_other_way_round_is_explained_by_closeness_alone(tolerance, gap, margin, explanation):
    found, rows = _verdicts(
        [killed("a", 1, margin), killed("b", 1 + gap, margin)],
        [killed("b", 1, margin), killed("a", 1 + gap, margin)],
        **tolerance,
    )
    moved = [row for row in found.victims if row.verdict is Verdict.MOVED]
    assert [row.explanation for row in moved] == [explanation]
    assert (found.same_victims, found.same_order) == (True, False)
    assert bool(found.flagged) == (explanation is None)
    assert len(rows) == 2


def test_changed_roles_are_flagged():
    found, rows = _verdicts([killed("a", 1)], [evicted("a", 0.9)])
    assert rows == [(Verdict.OTHER_HAND, None)]
    assert found.same_order
    assert found.flagged


def test_a_score_the_machine_did_not_allow_explains_another_order():
    _, rows = _verdicts(
        [killed("a", 1, adj=3), killed("b", 9, adj=-997)], [killed("b", 1, adj=0), killed("a", 9, adj=3)]
    )
    assert (Verdict.MOVED, Explanation.OTHER_SCORE) in rows


def test_a_pod_that_falls_twice_is_matched_twice():
    _, rows = _verdicts([killed("a", 1), killed("a", 12)], [killed("a", 1), killed("a", 14), killed("a", 40)])
    assert [verdict for verdict, _ in rows] == [Verdict.SAME, Verdict.SAME, Verdict.ONLY_HAPPENED]


ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=8)


@given(ENTRIES, ENTRIES)
def test_every_victim_of_both_journals_is_in_one_row(first, second):
    journals = [
        [(killed if by else evicted)(pod, index) for index, (pod, by) in enumerate(each)] for each in (first, second)
    ]
    found = compare(*journals)
    predicted = sorted(row.predicted.at_seconds for row in found.victims if row.predicted)
    real = sorted(row.real.at_seconds for row in found.victims if row.real)
    assert predicted == [each.time_us / SECOND_US for each in journals[0]]
    assert real == [each.time_us / SECOND_US for each in journals[1]]
    assert (found.same_victims and found.same_order) == ([each[0] for each in first] == [each[0] for each in second])
    assert len(victims(journals[0])) == len(first)
