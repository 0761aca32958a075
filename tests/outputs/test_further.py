"""Deaths, clusters, webhooks, guards, pictures, pages and refusals: what they lead to does not change by accident."""

from __future__ import annotations

import re

import pytest

from outputs.commands import Line, command_lines, shown_lines
from outputs.further import further_lines
from outputs.input_files import directory
from outputs.page_values import value_lines
from outputs.recording import FURTHER, VALUES, further_output, messages, recorded, written
from podqos.errors import HostError
from podqos.reading.built_page import built_viewer

LINES = [*further_lines(), *value_lines()]


def _name(line: Line) -> str:
    return " ".join(line).replace("\n", " ") or "podqos"


@pytest.fixture(scope="module")
def promised():
    return recorded(FURTHER)


@pytest.fixture(scope="module")
def said():
    return messages()


@pytest.fixture(scope="module")
def place():
    with directory() as path:
        yield path


def test_every_line_is_recorded_and_every_recording_is_a_line(promised):
    assert list(promised) == LINES


def test_messages_are_recorded_of_every_command_line_once(said):
    lines = [*shown_lines(), *command_lines(), *(line for line in LINES if line not in VALUES)]
    assert [re.sub(r" \(exit \d+\)$", "", each) for each in said] == [written(line) for line in lines]


@pytest.mark.parametrize("line", LINES, ids=_name)
def test_a_line_leads_to_what_was_recorded(line: Line, promised, said, place):
    if any(word.endswith(".html") for word in line):
        _need_page()
    output, expected = further_output(line, place), promised[line]

    assert output.code == expected.code
    assert output.text.splitlines() == expected.text.splitlines()
    assert output.files.keys() == expected.files.keys()
    for name, text in output.files.items():
        assert text.splitlines() == expected.files[name].splitlines()
    if line not in VALUES:
        assert output.messages.splitlines() == said[written(line, output.code)].splitlines()


def _need_page() -> None:
    try:
        built_viewer()
    except HostError:
        pytest.skip("the page is not built")


def test_no_line_ends_in_an_internal_error_or_says_nothing_of_its_failure(promised, said):
    for line, output in promised.items():
        assert output.code in {0, 1, 2, 3}, line
        if output.code > 1:
            assert said[written(line, output.code)].strip(), line
