"""The kernel's decision made again from its report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.oom_logs import CONTAINER, FORMS, GIB_PAGES, ROWS, cgroup, killed, machine, read
from podqos.kernel.oom import Process, rank
from podqos.logs.report import Constraint
from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.questions.autopsy_death import Reason
from podqos.questions.autopsy_oom import Examiner

BIG = (7, 1000, 200_000, 100, 0, 100, "python3")
POD_UID = "11111111-2222-3333-4444-555555555555"
SMALL = (8, 1000, 100_000, 100, 0, 100, "sh")


def examined(lines, most_shown=10):
    examiner = Examiner(most_shown)
    return [examiner.examine(report) for report in read(lines)]


@pytest.mark.parametrize("form", FORMS)
def test_the_highest_badness_follows_from_the_rule_in_every_form_of_the_table(form):
    (kill,) = examined(machine(form=form))
    tables = 0 if form == "cpu" else 300
    assert (kill.follows_rule, kill.reason, kill.oom.total_pages) == (True, Reason.HIGHEST, GIB_PAGES)
    assert [(each.pid, each.badness) for each in kill.ranking][:1] == [(102, 150_000 + tables)]
    assert kill.ranking[-1].badness is None, "-1000 is exempt"
    assert (kill.oom.runner_up.pid, kill.oom.margin_pages) == (101, 60_000 + tables // 3)
    assert (kill.oom.scope, kill.oom.cgroup) == (CgroupLevel.MACHINE, "/")
    assert (kill.oom.shortage.counter, kill.oom.shortage.usage_bytes) == ("free", 44000 * 1024)


def test_another_victim_does_not_follow_unless_the_first_was_dead_already():
    (kill,) = examined(machine(kill=killed(101, "small")))
    assert (kill.follows_rule, kill.reason, kill.oom.margin_pages) == (False, Reason.OTHER_IS_HIGHER, -60_100)
    first, second = examined([*machine(), *machine(kill=killed(101, "small"))])
    assert (first.follows_rule, second.follows_rule) == (True, True)
    assert [each.pid for each in second.ranking] == [101, 103]
    assert second.candidates == 3


def test_a_container_at_its_limit_is_named_by_its_path():
    (kill,) = examined(cgroup([BIG, SMALL], 7, "python3"))
    assert (kill.oom.scope, kill.oom.constraint, kill.follows_rule) == (CgroupLevel.CONTAINER, Constraint.MEMCG, True)
    assert (kill.oom.cgroup, kill.qos_class) == (CONTAINER, QOSClass.BURSTABLE)
    assert kill.pod_uid == POD_UID
    assert kill.container_id == "ab" * 32
    assert (kill.oom.shortage.usage_bytes, kill.oom.shortage.limit_bytes) == (1 << 30, 1 << 30)
    assert kill.ranking[0].added == 100 * (GIB_PAGES // 1000) * 4096


def test_a_victim_is_named_by_the_summary_where_the_log_ends_before_its_kill():
    lines = cgroup([BIG, SMALL], 7, "python3")
    (kill,) = examined(lines[: lines.index(next(each for each in lines if each.startswith("oom-kill:"))) + 1])
    assert [(each.pid, each.name, each.oom_score_adj) for each in kill.victims] == [(7, "python3", 100)]
    assert kill.follows_rule is True


@pytest.mark.parametrize(
    ("adj", "follows", "reason"), [(-1000, True, Reason.NONE_KILLABLE), (100, None, Reason.OTHER_IS_HIGHER)]
)
def test_a_cgroup_without_a_process_to_kill_is_no_oom_of_the_machine(adj, follows, reason):
    lines = cgroup([(7, 1000, 200_000, 100, 0, adj, "python3")], 7, "python3")
    (kill,) = examined([*lines[:-3], "Out of memory and no killable processes..."])
    assert (kill.oom.scope, kill.oom.cgroup, kill.pod_uid) == (CgroupLevel.CONTAINER, CONTAINER, POD_UID)
    assert (kill.follows_rule, kill.reason, kill.victims, kill.oom.runner_up) == (follows, reason, (), None)


def test_a_report_of_a_cgroup_that_ends_before_its_table_is_that_of_the_cgroup():
    (kill,) = examined(cgroup([BIG], 7, "python3")[:6])
    assert (kill.oom.scope, kill.oom.cgroup, kill.reason) == (CgroupLevel.CONTAINER, CONTAINER, Reason.NO_VICTIM)


def test_swap_that_the_report_leaves_out_can_explain_a_choice():
    rows = [(7, 1000, 1000, 0, 0, 500, "python3"), (8, 1000, 200_000, 0, 0, 0, "sh")]
    (kill,) = examined(cgroup(rows, 7, "python3", swap_kb=1 << 52))
    assert (kill.follows_rule, kill.reason) == (True, Reason.HIGHEST_WITH_SWAP)
    # 199,000 pages are 398 thousandths of what the total has to be.
    assert kill.oom.swap_pages_needed == 398_000 - GIB_PAGES
    (kill,) = examined(cgroup(rows, 7, "python3", swap_kb=0))
    assert (kill.follows_rule, kill.reason) == (False, Reason.OTHER_IS_HIGHER)


@pytest.mark.parametrize(
    ("swap_kb", "follows"),
    [pytest.param(543_424, True, id="just enough"), pytest.param(543_420, False, id="a page too little")],
)
@pytest.mark.parametrize("counter", ["swap", "memory+swap"])
def test_a_cgroup_swaps_no_more_than_its_limit_allows(counter, swap_kb, follows):
    """135,856 pages are needed; cgroup v1 limits the sum of memory and swap."""
    rows = [(7, 1000, 1000, 0, 0, 500, "python3"), (8, 1000, 200_000, 0, 0, 0, "sh")]
    limit_kb = swap_kb if counter == "swap" else 1048576 + swap_kb
    lines = [line.replace("swap: usage", f"{counter}: usage") for line in cgroup(rows, 7, "python3", swap_kb=limit_kb)]
    (kill,) = examined(lines)
    assert kill.follows_rule is follows


def test_swap_does_not_explain_a_choice_that_it_would_make_another_win():
    """The larger the total, the more its higher oom_score_adj counts."""
    rows = [(7, 1, 1000, 0, 0, 500, "python3"), (8, 1, 200_000, 0, 0, 0, "sh"), (9, 1, 100, 0, 0, 600, "helper")]
    (kill,) = examined(cgroup(rows, 7, "python3", swap_kb=1 << 52))
    assert (kill.follows_rule, kill.reason) == (False, Reason.OTHER_IS_HIGHER)


@pytest.mark.parametrize(
    ("release", "adj_points", "used"),
    [("3.10.0", -30, 200_000), ("3.14.0", 0, 194_000), ("4.16.9", 0, 194_000), ("4.17.0", 0, 200_000)],
)
def test_root_was_favoured_before_4_17(release, adj_points, used):
    row = (7, 0, 200_000, 0, 0, 0, "python3")
    (kill,) = examined(machine([row], kill=killed(7, "python3"), release=release))
    assert kill.ranking[0].badness == used + adj_points * (GIB_PAGES // 1000)


def test_root_without_the_capability_explains_a_choice_on_an_old_kernel():
    rows = [(7, 0, 200_000, 0, 0, 0, "python3"), (8, 1000, 198_000, 0, 0, 0, "sh")]
    (kill,) = examined(machine(rows, kill=killed(7, "python3"), release="4.4.0"))
    assert (kill.follows_rule, kill.reason) == (True, Reason.HIGHEST_BY_PRIVILEGE)


def test_before_3_5_badness_is_in_whole_thousandths_up_to_1000():
    low, high = (7, 1000, 199_900, 0, 0, 0, "a"), (8, 1000, 199_950, 0, 0, 0, "b")
    (old,) = examined(machine([low, high], kill=killed(7, "a"), release="3.4.0"))
    assert (old.follows_rule, {each.badness for each in old.ranking}) == (True, {762 * (GIB_PAGES // 1000)})
    (new,) = examined(machine([low, high], kill=killed(7, "a"), release="3.5.0"))
    assert (new.follows_rule, new.reason) == (False, Reason.OTHER_IS_HIGHER)
    full, small = (7, 1000, 199_900, 0, 0, 900, "a"), (8, 1000, 50, 0, 0, -500, "b")
    (kill,) = examined(machine([full, small], kill=killed(7, "a"), release="3.4.0"))
    assert [each.badness for each in kill.ranking] == [1000 * (GIB_PAGES // 1000), GIB_PAGES // 1000]


def test_equals_may_die_in_either_order():
    rows = [(pid, 1000, 500, 0, 0, 0, "x") for pid in (1001, 1002, 1003)]
    for pid in (1001, 1002, 1003):
        (kill,) = examined(machine(rows, kill=killed(pid, "x")))
        assert (kill.follows_rule, kill.oom.margin_pages, kill.ranking[0].pid) == (True, 0, pid)


def test_before_5_9_the_least_badness_is_1_and_equals_may_die():
    rows = [(7, 1000, 500, 0, 0, -900, "a"), (8, 1000, 100, 0, 0, -900, "b")]
    assert examined(machine(rows, kill=killed(8, "b"), release="5.8.0"))[0].follows_rule
    assert examined(machine(rows, kill=killed(8, "b"), release="5.9.0"))[0].follows_rule is False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: [killed()], Reason.NO_TABLE),
        (lambda lines: [line for line in lines if not line.startswith("[")], Reason.NO_TABLE),
        (lambda lines: lines[:-1], Reason.NO_VICTIM),
        (lambda lines: [*lines[:-1], killed(999, "gone")], Reason.NOT_IN_TABLE),
        (lambda lines: [*lines[:-2], "** 3 printk messages dropped **", *lines[-2:]], Reason.TABLE_IS_CUT),
    ],
    ids=["rate-limited", "no-dump", "no-kill", "no-row", "a-hole"],
)
def test_what_the_log_does_not_have_cannot_be_decided(change, reason):
    (kill,) = examined(change(machine()))
    assert (kill.follows_rule, kill.reason) == (None, reason)


def test_without_a_total_scores_decide_nothing_unless_they_are_equal():
    rows = [BIG, (8, 1000, 100, 0, 0, 0, "sh")]
    without = [line for line in machine(rows, kill=killed(7, "python3")) if "pages RAM" not in line]
    assert examined(without)[0].reason is Reason.TOTAL_UNKNOWN
    without = [line for line in machine([BIG, SMALL], kill=killed(7, "python3")) if "pages RAM" not in line]
    assert examined(without)[0].follows_rule


def test_the_process_that_asked_dies_by_setting():
    why = "Out of memory (oom_kill_allocating_task)"
    assert examined(machine(kill=killed(77, "worker 7", why=why)))[0].reason is Reason.ASKED
    (kill,) = examined(machine(kill=killed(101, "small", why=why)))
    assert (kill.follows_rule, kill.reason) == (False, Reason.DID_NOT_ASK)


def test_the_ranking_is_cut_but_not_the_decision():
    (kill,) = examined(machine(), most_shown=1)
    assert (len(kill.ranking), kill.candidates, kill.oom.runner_up.pid) == (1, len(ROWS), 101)


ROW = st.tuples(
    st.integers(1000, 1000),
    st.integers(0, GIB_PAGES),
    st.integers(1, 500),
    st.integers(0, 5000),
    st.integers(-1000, 1000),
)


@given(st.lists(ROW, min_size=1, max_size=12), st.sampled_from(["pgtables_bytes", "nr_pmds", "nr_ptes", "rss_anon"]))
def test_a_report_of_a_ranking_is_read_back_as_that_ranking(made, form):
    rows = [(pid, *each, f"task {pid}") for pid, each in enumerate(made, 100)]
    processes = [Process(pid, "/", rss, swap, tables, adj, name) for pid, _, rss, tables, swap, adj, name in rows]
    expected = rank(processes, GIB_PAGES)
    first = expected[0].process.pid if expected else 100
    (kill,) = examined(machine(rows, form, killed(first, f"task {first}")), most_shown=100)
    found = [each.badness for each in kill.ranking if each.badness is not None]
    assert found == [each.points for each in expected]
    assert kill.follows_rule is bool(expected)


def test_the_swap_that_explains_a_choice_is_enough_to_make_it_the_highest():
    """Lacking 1001 pages with 10 more in oom_score_adj: 101 thousandths, because 100 would leave it a page behind."""
    rows = [(7, 1, 1_000, 0, 0, 20, "chosen"), (8, 1, 2_001, 0, 0, 10, "other")]
    (kill,) = examined(cgroup(rows, 7, "chosen", limit_kb=40_000, swap_kb=1 << 52))
    assert kill.oom.swap_pages_needed == 101_000 - 10_000
