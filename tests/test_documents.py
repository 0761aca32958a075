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


def test_the_sample_in_the_readme_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = (ROOT / "README.md").read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("    $ podqos explain"))
    shown = list(takewhile(lambda line: not line or line.startswith("    "), lines[start + 1 :]))
    assert main(lines[start].removeprefix("    $ podqos ").split()) == 0
    printed = [f"    {line}".rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line] == [line for line in printed if line]
