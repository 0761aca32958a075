"""Columns, colours and widths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.controls import approximated
from podqos.model.pod import QOSClass
from podqos.text.style import Style, columns, fitted, labelled, visible_length, wrapped

WORDS = st.text("abc é…", max_size=26)


def test_colour_does_not_count_as_width():
    painted = Style(colour=True).qos_class(QOSClass.BURSTABLE)
    assert painted != "Burstable"
    assert visible_length(painted) == len("Burstable")


def test_columns_line_up_whatever_is_painted():
    style = Style(colour=True)
    lines = columns(("A", "B"), [(style.strong("long cell"), "x"), ("s", "y")], style)
    assert [visible_length(line) for line in lines] == [visible_length(lines[0])] * 3


@given(st.lists(st.tuples(*[WORDS] * 5), min_size=1, max_size=5), st.integers(30, 120))
def test_tables_stay_within_the_width_and_keep_every_word(rows, width):
    headers = ("A", "", "left", "RIGHT", "BECAUSE")
    lines = columns(headers, rows, Style(width=width), "  ")
    assert max(map(visible_length, lines)) <= width
    told = " ".join(lines[1:]).replace(";", " ").split()
    for row in rows:
        for word in " ".join(row).split():
            assert word in told


def test_the_last_column_is_wrapped_under_itself():
    assert columns(
        ("POD", "BECAUSE"), [("web", "it uses more than it requests, the next does not")], Style(width=40)
    ) == [
        "POD  BECAUSE",
        "web  it uses more than it requests, the",
        "     next does not",
    ]


def test_what_does_not_fit_beside_its_row_stands_below_with_its_heading():
    rows = [
        ("production/article-service-0", "Burstable", "–", "12Mi", "priority 0, the next 1000"),
        ("web", "", "", "", ""),
    ]
    assert columns(("POD", "CLASS", "LIMIT", "USES", "BECAUSE"), rows, Style(width=50)) == [
        "POD                           CLASS      LIMIT",
        "production/article-service-0  Burstable  –",
        "    uses 12Mi; because priority 0, the next 1000",
        "web",
    ]


def test_a_word_that_fits_only_with_less_indentation_has_less():
    assert wrapped("see spec.containers[0].resources here", Style(width=30), " " * 6) == [
        "      see",
        "  spec.containers[0].resources",
        "      here",
    ]
    assert labelled("fix", ["spec.containers[0].resources"], Style(width=30), 2, 5) == [
        "  fix",
        "  spec.containers[0].resources",
    ]


def test_a_comment_is_not_broken():
    assert wrapped("limits.memory: 10Gi   # was 4Gi", Style(width=24), "  ") == [
        "  limits.memory: 10Gi",
        "    # was 4Gi",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a sentence that goes on", ["a sentence that", "goes on"]),
        ("  an item of a list", ["  an item of a", "    list"]),
        ("name  what it is about", ["name  what it is", "      about"]),
        ("unbreakable-because-it-is-one-word", ["unbreakable-because-it-is-one-word"]),
    ],
    ids=["sentence", "item", "label", "word"],
)
def test_a_line_that_is_too_long_goes_on_where_it_belongs(line, expected):
    assert list(fitted([line], 17)) == expected
    assert list(fitted([line], None)) == [line]


def test_a_painted_label_is_a_label():
    line = f"{Style(colour=True).strong('name  ')}what it is about"
    assert [visible_length(each) for each in fitted([line], 17)] == [len("name  what it is"), len("      about")]


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(30, 80))
def test_wrapping_keeps_every_word_and_the_width(text, width):
    lines = wrapped(" ".join(text), Style(width=width), "  ")
    assert " ".join(line.strip() for line in lines) == " ".join(text)
    assert max(map(len, lines)) <= width


def test_without_a_width_nothing_is_wrapped_or_cut():
    assert wrapped("a " * 200, Style(), "") == ["a " * 200]


def test_columns_line_up_where_an_arrow_is_printed_in_ascii():
    rows = [("Guaranteed → Burstable", "-997 → 999"), ("Burstable", "938")]
    lines = [approximated(line) for line in columns(("CLASS", "ADJ"), rows, Style(is_ascii=True))]
    assert lines == [
        "CLASS                    ADJ",
        "Guaranteed -> Burstable  -997 -> 999",
        "Burstable                938",
    ]
