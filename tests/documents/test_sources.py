"""Every command of docs/internals/sources.md runs as written, in a clone, and prints what its row claims."""

from __future__ import annotations

import re
import shlex
from functools import cache

import pytest
from msgspec import Struct

from documents.commands import ROOT
from documents.world import Ran, podqos

PAGE = ROOT / "docs/internals/sources.md"
# What needs root or a cluster is not run here.
NEEDS_MORE = ("podqos node ", "kubectl ")


class Row(Struct, frozen=True):
    """An item of a document: the commands that show it, and what they print."""

    line: int
    item: str
    commands: tuple[str, ...]
    shows: tuple[str, ...]
    codes: tuple[int, ...]
    """The exit codes that the row states; empty where it states none."""


def rows() -> list[Row]:
    """Read the page; ``same`` is the command of the row above."""
    found: list[Row] = []
    for number, line in enumerate(PAGE.read_text().splitlines(), start=1):
        cells = re.split(r"(?<!\\)\|", line)
        if not line.startswith("| ") or cells[1].strip() == "in the document":
            continue
        _, item, see, shows, _ = cells
        commands = tuple(each for each in re.findall(r"`([^`]+)`", see) if not each.startswith(NEEDS_MORE))
        if see.strip().startswith("same"):
            commands = found[-1].commands
        stated = re.search(r"exit codes? ([\d and]+)", see)
        codes = tuple(map(int, re.findall(r"\d", stated[1]))) if stated else ()
        found.append(Row(number, item.strip(), commands, tuple(re.findall(r"`([^`]+)`", shows)), codes))
    return found


ROWS = rows()


@cache
def ran(command: str) -> Ran:
    """Run a command once, from the root of the repository."""
    name, *arguments = shlex.split(command)
    assert name == "podqos", command
    return podqos(arguments)


def squeezed(text: str) -> str:
    """Return text with single spaces, in one line."""
    return " ".join(text.split())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.line} {row.item[:60]}")
def test_a_row_shows_what_it_claims(row: Row, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    outputs = [ran(command) for command in row.commands]
    printed = squeezed("\n".join(each.out + each.err for each in outputs))
    missing = [claim for claim in row.shows if squeezed(claim) not in printed]
    assert missing == [], missing
    if row.codes:
        assert tuple(each.code for each in outputs) == row.codes
    else:
        assert {each.code for each in outputs} <= {0, 1}


def test_every_row_claims_something_unless_its_command_needs_a_node():
    assert [row.item for row in ROWS if row.commands and not row.shows] == []
    assert [row.item for row in ROWS if not row.commands] == []


def test_every_example_of_the_documents_is_on_the_page():
    page = PAGE.read_text()
    files = sorted((ROOT / "scenarios/sources").iterdir())
    assert files
    assert [path.name for path in files if path.name not in page] == []


def test_a_claim_that_is_not_printed_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("documents.test_sources.ran", lambda _: Ran(0, "something  else", ""))
    with pytest.raises(AssertionError, match="a claim"):
        test_a_row_shows_what_it_claims(Row(1, "item", ("podqos x",), ("something else", "a claim"), ()), monkeypatch)
