"""Columns, colours and widths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podqos.model.pod import QOSClass
from podqos.report.text.style import Style, columns, visible_length, wrapped

WORDS = st.text("abc é…", max_size=30)


def test_colour_does_not_count_as_width():
    painted = Style(colour=True).qos_class(QOSClass.BURSTABLE)
    assert painted != "Burstable"
    assert visible_length(painted) == len("Burstable")


def test_columns_line_up_whatever_is_painted():
    style = Style(colour=True)
    lines = columns(("A", "B"), [(style.strong("long cell"), "x"), ("s", "y")], style)
    assert [visible_length(line) for line in lines] == [visible_length(lines[0])] * 3


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), st.integers(50, 100))
def test_tables_stay_within_the_width(rows, width):
    for line in columns(("LEFT", "RIGHT"), rows, Style(width=width)):
        assert visible_length(line) <= width


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(30, 80))
def test_wrapping_keeps_every_word_and_the_width(text, width):
    lines = wrapped(" ".join(text), Style(width=width), "  ")
    assert " ".join(line.strip() for line in lines) == " ".join(text)
    assert max(map(len, lines)) <= width


def test_without_a_width_nothing_is_wrapped_or_cut():
    assert wrapped("a " * 200, Style(), "") == ["a " * 200]
