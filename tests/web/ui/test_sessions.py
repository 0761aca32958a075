"""What visitors leave is bounded, belongs to them, and is gone after a while."""

from __future__ import annotations

import pytest

from podqos.answers.page.session import SourceInfo
from podqos.web.ui.sessions import NoRoom, TooLarge, Upload, Visitors, file_name
from podqos.web.ui.settings import UiLimits
from podqos.web.ui.tasks import Given, ReadSource

LIMITS = UiLimits(sources=3, visitor_bytes=1000, total_bytes=1500, visitors=4, expires_seconds=60)


class Hall:
    """Visitors, and a clock that stands still."""

    def __init__(self, limits=LIMITS):
        self.now = 1000.0
        self.visitors = Visitors(lambda: self.now, limits)

    def come(self):
        return self.visitors.welcome(is_let_in=True)

    def leave(self, visitor, key, size=100):
        info = SourceInfo("", "manifests", key, (), (), (), 1, is_live=False)
        self.visitors.keep(visitor, Upload(ReadSource(info, size), Given(key, {}), key))


@pytest.fixture
def hall():
    return Hall()


def test_keys_cannot_be_guessed_and_those_of_nobody_open_nothing(hall):
    keys = {hall.come()[0] for _ in range(4)}
    assert all(len(key) >= 32 for key in keys)
    assert hall.visitors.known("") is None
    assert hall.visitors.known(None) is None


def test_who_stays_away_is_forgotten_with_all_that_was_left(hall):
    here, away = hall.come(), hall.come()
    hall.leave(away[1], "a", 300)
    for _ in range(3):
        hall.now += 25
        assert hall.visitors.known(here[0]) is here[1]
    hall.visitors.forget_old()
    assert hall.visitors.known(away[0]) is None
    assert hall.visitors.known(here[0]) is here[1]


def test_who_looks_at_something_live_is_here(hall):
    key, visitor = hall.come()
    visitor.streams = 1
    hall.now += 1000
    hall.visitors.forget_old()
    assert hall.visitors.known(key) is visitor


def test_with_too_many_visitors_one_goes_who_has_left_nothing(hall):
    first = hall.come()
    hall.leave(first[1], "a", 300)
    hall.now += 1
    second = hall.come()
    for _ in range(3):
        hall.now += 1
        hall.come()
    assert hall.visitors.known(first[0]) is not None
    assert hall.visitors.known(second[0]) is None
    assert len(hall.visitors) == 4


def test_who_waits_for_the_first_answer_is_kept_though_nothing_is_stored_yet():
    hall = Hall(UiLimits(visitors=2))
    stored, waiting = hall.come(), hall.come()
    hall.leave(stored[1], "a", 300)
    waiting[1].asking = 1
    hall.now += 60
    hall.visitors.known(stored[0])
    hall.come()
    assert [hall.visitors.known(each[0]) is not None for each in (stored, waiting)] == [False, True]
    hall.come()[1].asking = 1
    assert len(hall.visitors) == 2
    assert hall.come()


def test_newcomers_displace_newcomers_before_those_who_came_back_and_nobody_with_an_open_page():
    hall = Hall(UiLimits(visitors=3))
    back, open_page, new = hall.come(), hall.come(), hall.come()
    for key, visitor in (back, open_page, new):
        hall.leave(visitor, key, 200)
    open_page[1].streams = 1
    hall.now += 60
    hall.visitors.known(back[0])
    assert hall.come()
    assert [hall.visitors.known(each[0]) is not None for each in (back, open_page, new)] == [True, True, False]
    hall.come(), hall.come()
    assert hall.visitors.known(open_page[0]) is not None


def test_who_has_been_here_for_longer_outlasts_any_number_who_come_once():
    hall = Hall(UiLimits(visitors=3))
    known = hall.come()
    hall.leave(known[1], "a", 200)
    hall.now += 2
    hall.visitors.known(known[0])
    for each in range(10):
        hall.now += 0.1
        hall.leave(hall.come()[1], f"b{each}", 200)
    assert hall.visitors.known(known[0]) is known[1]


def test_if_all_have_a_page_open_no_more_are_taken():
    hall = Hall(UiLimits(visitors=1))
    hall.come()[1].streams = 1
    with pytest.raises(NoRoom, match="too many pages are open"):
        hall.come()


def test_another_source_takes_the_place_of_the_one_not_used_for_longest(hall):
    _, visitor = hall.come()
    for key in "abc":
        hall.now += 1
        hall.leave(visitor, key, 200)
    hall.now += 1
    hall.visitors.used(visitor.sources["a"])
    hall.leave(visitor, "d", 200)
    assert set(visitor.sources) == {"a", "c", "d"}


def test_a_visitor_has_so_many_bytes_and_all_together_so_many(hall):
    _, one = hall.come()
    with pytest.raises(NoRoom, match="in all"):
        hall.leave(one, "a", 1001)
    hall.leave(one, "b", 600)
    hall.leave(one, "c", 600)
    assert set(one.sources) == {"c"}
    _, other = hall.come()
    hall.leave(other, "d", 900)
    one.streams = other.streams = 1
    _, third = hall.come()
    hall.leave(third, "e", 200)
    assert not other.sources, "who stores most gives way"
    third.streams = 1
    hall.leave(third, "f", 400)
    _, fourth = hall.come()
    with pytest.raises(NoRoom, match="storage for visitors is full"):
        hall.leave(fourth, "g", 700)
    assert not fourth.sources


def test_what_is_added_to_a_source_counts_once(hall):
    _, visitor = hall.come()
    hall.leave(visitor, "a", 600)
    hall.leave(visitor, "a", 900)
    assert visitor.size_bytes == 900


def test_names_and_numbers_of_files_count_as_stored():
    info = SourceInfo("", "manifests", "a", (), (), (), 1, is_live=False)
    files = dict.fromkeys((f"{number:03}" * 50 for number in range(100)), b"")
    assert Upload(ReadSource(info, 0), Given("a", files), "a").size_bytes > 100 * (150 + 100)


def test_a_source_that_grows_past_what_a_visitor_may_leave_stays_as_it_was(hall):
    _, visitor = hall.come()
    hall.leave(visitor, "b", 200)
    hall.leave(visitor, "a", 600)
    before = dict(visitor.sources)
    with pytest.raises(TooLarge, match="in all"):
        hall.leave(visitor, "a", 1100)
    assert visitor.sources == before


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("pod.yaml", "pod.yaml"),
        ("dir/pod.yaml", "dir/pod.yaml"),
        ("/etc/passwd", "etc/passwd"),
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\windows\\pod.yaml", "C:/windows/pod.yaml"),
        ("a\0b\nc\x1b[31m.yaml", "abc[31m.yaml"),
        ("", "pasted"),
        ("..", "pasted"),
        ("x" * 500 + ".yaml", "x" * 195 + ".yaml"),
    ],
)
def test_names_are_names(given, name):
    assert file_name(given) == name


def test_who_closed_the_page_makes_room_for_others_who_stays_does_not():
    hall = Hall(UiLimits(visitors=2, visitor_bytes=1000, total_bytes=1500, expires_seconds=1800))
    away, here = hall.come(), hall.come()
    hall.leave(away[1], "a", 900)
    hall.leave(here[1], "b", 300)
    here[1].streams = 1
    hall.now += 600
    new = hall.come()
    assert hall.visitors.known(away[0]) is None
    assert hall.visitors.known(here[0]) is here[1]
    hall.leave(new[1], "c", 600)
    new[1].seen_at -= 600
    hall.leave(here[1], "d", 700)
    assert not new[1].sources
    assert set(here[1].sources) == {"b", "d"}


def test_a_large_upload_displaces_no_small_ones_that_are_in_use():
    hall = Hall(UiLimits(visitor_bytes=1600, total_bytes=1600))
    _, small = hall.come()
    hall.leave(small, "a", 100)
    _, large = hall.come()
    with pytest.raises(NoRoom, match="storage for visitors is full"):
        hall.leave(large, "b", 1550)
    assert set(small.sources) == {"a"}
