"""Every command in the guides runs, and prints what the page shows of it; ``…`` stands for lines left out."""

from __future__ import annotations

import os
import shlex
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from podqos.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "content-platform"
GUIDE = ROOT / "docs" / "guide-incident.md"
LEFT_OUT = "…"

# Commands that find something, by the words after their name.
FINDS = ("drift", "check")


def commands(document: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with the lines shown below it."""
    lines = document.read_text().splitlines()
    found = []
    for index, line in enumerate(lines):
        if line.startswith("    $ "):
            shown = takewhile(
                lambda line: not line or (line.startswith("    ") and not line.startswith("    $ ")), lines[index + 1 :]
            )
            found.append((line.removeprefix("    $ "), [each[4:] for each in shown if each]))
    return found


@pytest.fixture
def night(tmp_path, monkeypatch) -> Path:
    """Do what the guide says at its beginning: two commits in a repository."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("SCENARIO", str(SCENARIO))
    monkeypatch.chdir(tmp_path)
    for command, _ in commands(GUIDE):
        if not command.startswith("podqos"):
            subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    return tmp_path


@pytest.mark.parametrize("name", ["guide-incident.md", "drift.md", "advise.md"])
def test_every_command_of_a_page_prints_what_the_page_shows(capsys, night, name):
    checked = 0
    for command, shown in commands(ROOT / "docs" / name):
        if not command.startswith("podqos "):
            continue
        arguments = shlex.split(os.path.expandvars(command))[1:]
        assert main(arguments) == (1 if arguments[0] in FINDS else 0), command
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line]
        assert_shown(shown, printed, command)
        checked += 1
    assert checked


def assert_shown(shown: list[str], printed: list[str], command: str) -> None:
    """Assert that the lines shown are the printed ones, but for those left out."""
    position = 0
    may_skip = False
    for line in shown:
        if line.strip() == LEFT_OUT:
            may_skip = True
            continue
        where = printed.index(line, position) if line in printed[position:] else None
        assert where is not None, f"{command}\n  does not print: {line}"
        assert may_skip or where == position, f"{command}\n  prints before that: {printed[position]}"
        position, may_skip = where + 1, False
    assert may_skip or position == len(printed), f"{command}\n  goes on: {printed[position]}"


def test_the_guide_uses_what_an_incident_needs():
    used = {command.split()[1] for command, _ in commands(GUIDE) if command.startswith("podqos ")}
    assert used >= {"rank", "explain", "thresholds", "check", "drift", "advise"}
