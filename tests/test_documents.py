"""The documents point at things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
