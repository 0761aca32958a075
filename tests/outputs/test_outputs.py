"""What other programs read from podqos does not change by accident, and what people read fits on their terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from outputs.commands import ACCIDENTAL, EXAMPLES, INCIDENT, KUBELET, NODE_MEMORY, PLATFORM, Line, command_lines
from outputs.commands import shown_lines as lines_of_people
from outputs.recording import WIDTHS, messages, output_of, recorded, shown, written

LINES = list(command_lines())
SHOWN = list(lines_of_people())
_LIVE = ("-f", PLATFORM, "--usage", "scenarios/content-platform/usage.csv", *NODE_MEMORY)

# The texts of the JSON output, by their field or by what that is in, that the text for people has word for word.
REASONS: dict[Line, tuple[str, ...]] = {
    ("explain", "-f", PLATFORM): ("items.reason", "oomReason", "notes"),
    ("explain", "-f", f"{ACCIDENTAL}/article-service.yaml", "-v"): ("items.reason", "oomReason", "runFlags.reason"),
    ("explain", "-f", PLATFORM, "-o", "table"): ("items.reason",),
    ("admit", "-f", PLATFORM, "--policies", f"{ACCIDENTAL}/limit-range.yaml"): ("reason",),
    **{("check", "-f", path): ("reason", "consequence") for path in EXAMPLES[:2]},
    ("check", "--kubelet-config", KUBELET): ("reason",),
    ("drift", f"{ACCIDENTAL}/article-service-fixed.yaml", f"{ACCIDENTAL}/article-service.yaml"): ("text",),
    ("advise", "-f", PLATFORM, "--describe", f"{INCIDENT}/descriptions.yaml"): ("reasons",),
    ("rank", *_LIVE, "-v"): ("reason",),
    ("thresholds", "-f", KUBELET, *NODE_MEMORY): ("text",),
    ("forecast", *_LIVE, "--growing", "log-collector"): ("outcomes.text", "needed.text"),
    ("simulate", "race"): ("reasons",),
}


@pytest.fixture(scope="module")
def promised():
    return recorded()


@pytest.fixture(scope="module")
def said():
    return messages()


def test_every_command_line_is_recorded_and_every_recording_is_a_command_line(promised):
    assert list(promised) == LINES


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_command_prints_what_was_recorded(line: Line, promised, said):
    output = output_of(line)
    assert output.code == promised[line].code
    assert output.text.splitlines() == promised[line].text.splitlines()
    assert output.messages.splitlines() == said[written(line, output.code)].splitlines()


@pytest.fixture(scope="module")
def transcripts():
    return {width: shown(width) for width in WIDTHS}


def test_every_text_is_recorded_at_every_width(transcripts):
    for width in WIDTHS:
        assert list(transcripts[width]) == SHOWN


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", SHOWN, ids=" ".join)
def test_a_terminal_shows_what_was_recorded(line: Line, width: int, transcripts, said):
    output = output_of(line, width)
    assert output.code == transcripts[width][line].code
    assert output.text.splitlines() == transcripts[width][line].text.splitlines()
    assert output.messages.splitlines() == said[written(line, output.code)].splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal_but_for_a_single_word(width: int, transcripts):
    # `-o wide` never cuts or wraps.
    for output in (output for output in transcripts[width].values() if "wide" not in output.line):
        for line in output.text.splitlines():
            assert len(line) <= width or max(map(len, line.split())) > width, output.line


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("line", REASONS, ids=" ".join)
def test_no_reason_is_cut(line: Line, width: int):
    whole = line if "-o" not in line else line[: line.index("-o")]
    reasons = set(_texts(json.loads(output_of((*whole, "-o", "json")).text), REASONS[line]))
    assert reasons
    seen = " ".join(output_of(line, width).text.split())
    assert [reason for reason in reasons if " ".join(reason.split()) not in seen] == []


def _texts(value: object, fields: tuple[str, ...], name: str = "", within: str = "") -> Iterator[str]:
    """Yield the texts of a value that stand in some fields; findings that are infos are not shown."""
    if isinstance(value, dict):
        if value.get("severity") != "info":
            for each in value:
                yield from _texts(value[each], fields, each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, fields, name, within)
    elif isinstance(value, str) and value and not {name, f"{within}.{name}"}.isdisjoint(fields):
        yield value
