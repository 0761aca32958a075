"""Badness, selection, group kill, and what /proc shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.kernel.oom import (
    Process,
    badness,
    badness_in,
    candidate,
    kill,
    oom_group,
    rank,
    select,
    shown_oom_score,
)

GI_PAGES = 2**30 // 4096
TOTAL = 64 * GI_PAGES


def process(pid: int, rss: int = 0, adj: int = 0, cgroup: str = "/", **more: int) -> Process:
    return Process(pid, cgroup, rss, oom_score_adj=adj, **more)


processes = st.lists(
    st.builds(
        Process,
        pid=st.integers(1, 10**6),
        cgroup=st.sampled_from(("/", "/a", "/a/x", "/a/y", "/ab", "/b")),
        rss_pages=st.integers(0, 10**6),
        swap_pages=st.integers(0, 10**4),
        page_table_pages=st.integers(0, 10**3),
        oom_score_adj=st.sampled_from((-1000, -999, -997, 0, 3, 500, 999, 1000)),
    ),
    unique_by=lambda each: each.pid,
)


def test_badness_adds_memory_swap_page_tables_and_thousandths():
    assert badness(process(2, 100, 10, swap_pages=20, page_table_pages=3), 123_456) == 123 + 10 * 123


def test_a_process_that_nobody_adjusted_has_the_badness_of_what_it_uses():
    assert badness(Process(2, "/", 100), 123_456) == 100


def test_thousandths_are_cut_before_they_are_multiplied():
    assert badness(process(2, adj=1000), 1999) == 1000


@pytest.mark.parametrize(
    ("release", "of_root", "of_a_protected_one", "of_an_exposed_one"),
    [
        pytest.param((3, 4), 7000, 100, 100_000, id="3.4: whole thousandths, from 1 to 1000; 30 less for root"),
        pytest.param((3, 5), 7050, 1, 110_050, id="3.5: pages, at least 1; root has 3% of the total less"),
        pytest.param((3, 13), 7050, 1, 110_050, id="3.13: as before"),
        pytest.param((3, 14), 9749, 1, 110_050, id="3.14: root has 3% of what it uses less"),
        pytest.param((4, 16), 9749, 1, 110_050, id="4.16: as before"),
        pytest.param((4, 17), 10_050, 1, 110_050, id="4.17: root is like all others"),
        pytest.param((5, 8), 10_050, 1, 110_050, id="5.8: as before"),
        pytest.param((5, 9), 10_050, -89_850, 110_050, id="5.9: below zero too"),
        pytest.param(None, 10_050, -89_850, 110_050, id="today"),
    ],
)
def test_badness_by_release(release, of_root, of_a_protected_one, of_an_exposed_one):
    """Of a process that uses 10,050 of 100,000 pages; mm/oom_kill.c of each release."""

    def points(adj: int, *, is_privileged: bool = False) -> int:
        return badness_in(release, 100_000, [10_050], [adj], [is_privileged])[0]

    assert (points(0, is_privileged=True), points(-999), points(1000)) == (
        of_root,
        of_a_protected_one,
        of_an_exposed_one,
    )


@pytest.mark.parametrize("exempt", [process(2, 10**6, -1000), process(1, 10**6)], ids=["-1000", "init"])
def test_exempt_processes_are_never_chosen(exempt):
    assert badness(exempt, TOTAL) is None
    assert select([exempt], TOTAL) is None
    assert select([exempt, process(3, 1, -999)], TOTAL).victim.process.pid == 3


def test_a_negative_badness_can_still_be_the_highest():
    """There is no score that makes safe except -1000."""
    chosen = select([process(2, 10, -999), process(3, 10, -998)], TOTAL)
    assert chosen.victim.process.pid == 3
    assert chosen.victim.points < 0


def test_a_small_process_at_1000_dies_before_a_big_one_at_0():
    chosen = select([process(2, 30 * GI_PAGES, 0), process(3, 100, 1000)], TOTAL)
    assert (chosen.victim.process.pid, chosen.runner_up.process.pid) == (3, 2)
    assert chosen.margin_pages == 100 + 1000 * (TOTAL // 1000) - 30 * GI_PAGES


def test_use_can_outweigh_the_adjustment():
    chosen = select([process(2, 5 * GI_PAGES, 937), process(3, GI_PAGES // 4, 1000)], TOTAL)
    assert chosen.victim.process.pid == 2


def test_the_limit_of_the_cgroup_is_the_scale_of_its_oom():
    """In a small cgroup thousandths are small: the same two processes change places."""
    pair = [process(2, 3000, 0, "/a"), process(3, 100, 100, "/a")]
    assert select(pair, TOTAL).victim.process.pid == 3
    assert select(pair, 10_000, "/a").victim.process.pid == 2


def test_only_processes_of_the_cgroup_that_ran_out_are_candidates():
    """And of those below it, not of one whose name merely begins the same."""
    everybody = [process(2, 9000, 1000, "/"), process(3, 9000, 1000, "/ab"), process(4, 10, 0, "/a/x")]
    assert select(everybody, TOTAL, "/a").victim.process.pid == 4


@pytest.mark.parametrize(("domain", "pid"), [("/", 9), ("/a", 5)])
def test_of_equals_the_last_one_scanned_dies(domain, pid):
    """The youngest of the machine; the last cgroup of a subtree."""
    equals = [process(9, 10, 0, "/a/x"), process(5, 10, 0, "/a/y"), process(4, 10, 0, "/a/y")]
    assert select(equals, TOTAL, domain).victim.process.pid == pid


class TestGroupKill:
    EVERYBODY = (
        process(10, 5000, 0, "/pods/p/c"),
        process(11, 10, 0, "/pods/p/c"),
        process(12, 10, -1000, "/pods/p/c"),
        process(13, 10, 0, "/pods/p/d"),
        process(14, 10, 0, "/pods/q/c"),
    )

    def ended(self, oom_groups: set[str], domain: str = "/pods", version: int = 2):
        result = kill(select(self.EVERYBODY, TOTAL, domain), self.EVERYBODY, oom_groups, cgroup_version=version)
        return result.group, [each.pid for each in result.killed], [each.pid for each in result.spared]

    def test_without_it_one_process_dies(self):
        assert self.ended(set()) == (None, [10], [])

    def test_all_of_the_victims_cgroup_die_but_the_exempt(self):
        assert self.ended({"/pods/p/c"}) == ("/pods/p/c", [10, 11], [12])

    def test_the_highest_of_several_decides(self):
        assert self.ended({"/pods/p/c", "/pods/p"}) == ("/pods/p", [10, 11, 13], [12])

    def test_the_cgroup_that_ran_out_counts_too(self):
        assert self.ended({"/pods"}) == ("/pods", [10, 11, 13, 14], [12])

    def test_those_above_the_one_that_ran_out_do_not(self):
        assert self.ended({"/pods"}, domain="/pods/p") == (None, [10], [])

    def test_in_a_global_oom_any_level_below_the_root_counts(self):
        assert self.ended({"/pods"}, domain="/")[0] == "/pods"

    def test_v1_does_not_know_it(self):
        assert self.ended({"/pods/p/c"}, version=1) == (None, [10], [])

    def test_a_process_of_the_root_dies_alone(self):
        assert oom_group("/", "/", {"/"}) is None


@given(processes, st.sampled_from(("/", "/a")), st.integers(1, 10**7))
def test_the_victim_and_runner_up_are_the_first_two_of_the_ranking(everybody, domain, total):
    ranking = rank(everybody, total, domain)
    selection = select(everybody, total, domain)
    if not ranking:
        assert selection is None
    else:
        assert selection.victim == ranking[0]
        assert selection.runner_up == (ranking[1] if len(ranking) > 1 else None)
        assert selection.margin_pages is None or selection.margin_pages >= 0


@given(processes, st.randoms(use_true_random=False))
def test_the_ranking_does_not_depend_on_the_order_of_processes(everybody, chance):
    shuffled = list(everybody)
    chance.shuffle(shuffled)
    assert rank(shuffled, TOTAL) == rank(everybody, TOTAL)


@given(processes, st.integers(1, 10**6))
def test_using_more_never_saves(everybody, more):
    chosen = select(everybody, TOTAL)
    if chosen is not None:
        victim = chosen.victim.process
        grown = Process(victim.pid, victim.cgroup, victim.rss_pages + more, 0, 0, victim.oom_score_adj)
        if grown.rss_pages >= candidate(victim, TOTAL).used_pages:
            others = [each for each in everybody if each.pid != victim.pid]
            assert select([*others, grown], TOTAL).victim.process.pid == victim.pid


@pytest.mark.parametrize(
    ("adj", "rss", "shown"),
    [(0, 0, 666), (1000, 0, 1332), (-1000, 10**6, 0), (-999, 0, 1), (-997, 0, 2), (0, TOTAL, 1333)],
)
def test_the_score_shown_in_proc_is_moved_to_stay_positive(adj, rss, shown):
    assert shown_oom_score(badness(process(2, rss, adj), TOTAL), TOTAL) == shown
