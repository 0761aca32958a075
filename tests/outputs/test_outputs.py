"""What other programs read from podqos does not change by accident."""

from __future__ import annotations

import pytest

from outputs.commands import Line, command_lines
from outputs.recording import output_of, recorded

LINES = list(command_lines())


@pytest.fixture(scope="module")
def promised():
    return recorded()


def test_every_command_line_is_recorded_and_every_recording_is_a_command_line(promised):
    assert list(promised) == LINES


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_command_prints_what_was_recorded(line: Line, promised):
    output = output_of(line)
    assert output.code == promised[line].code
    assert output.text.splitlines() == promised[line].text.splitlines()
