"""The documents point at things that exist."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from podqos.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("scenarios/**/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document):
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", document.read_text())

    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/rules.md"])
def test_named_modules_and_tests_exist(document):
    names = set(re.findall(r"`([\w/*]+\.py)`", (ROOT / document).read_text()))
    homes = (ROOT / "src/podqos", ROOT / "tests")

    assert names
    assert sorted(name for name in names if not any(list(home.glob(name)) for home in homes)) == []


@pytest.mark.parametrize(
    ("document", "command", "code"),
    [
        ("README.md", "explain", 0),
        ("docs/admission.md", "admit", 1),
        ("docs/forecast.md", "forecast", 0),
        ("docs/blast.md", "blast", 0),
    ],
)
def test_the_sample_in_a_document_is_what_the_command_prints(capsys, monkeypatch, document, command, code):
    monkeypatch.chdir(ROOT)
    lines = (ROOT / document).read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"    $ podqos {command}"))
    shown = list(takewhile(lambda line: not line or line.startswith("    "), lines[start + 1 :]))
    assert main(lines[start].removeprefix("    $ podqos ").split()) == code
    printed = [f"    {line}".rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line] == [line for line in printed if line]


def test_the_samples_in_the_page_on_survival_are_what_the_commands_print(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = (ROOT / "docs/survival.md").read_text().splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith("    $ podqos ")]
    assert len(starts) == 3
    for start in starts:
        shown = list(takewhile(lambda line: not line or line.startswith("    "), lines[start + 1 :]))
        assert main(lines[start].removeprefix("    $ podqos ").split()) == 0
        printed = [f"    {line}".rstrip() for line in capsys.readouterr().out.splitlines()]
        assert [line for line in shown if line] == [line for line in printed if line]


def test_the_levels_on_the_page_on_cgroups_are_what_explain_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = (ROOT / "docs/cgroups.md").read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("    $ podqos explain"))
    shown = list(takewhile(lambda line: line.startswith("    "), lines[start + 2 :]))
    assert main(lines[start].removeprefix("    $ podqos ").split()) == 0
    assert shown == [f"    {line}".rstrip() for line in capsys.readouterr().out.splitlines()][-len(shown) :]
    assert len(shown) == 5
