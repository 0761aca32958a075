"""The documents point at things that exist."""

from __future__ import annotations

import json
import re
from inspect import cleandoc
from itertools import count
from pathlib import Path

import pytest

from podqos.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", ".github/**/*.md", "bench/*.md", "docs/**/*.md", "scenarios/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)


def _anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a document."""
    anchors: set[str] = set()
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ +(.+?) *#*$", prose, re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(next(name for n in count() if (name := f"{slug}-{n}" if n else slug) not in anchors))
    return anchors


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_files_and_headings_that_exist(document):
    links = re.findall(r"\]\((?!\w+:)<?([^)#>\s]*)(?:#([^)>\s]*))?", document.read_text())
    dead = []
    for file, anchor in links:
        target = (document.parent / file).resolve() if file else document
        if not target.exists() or not target.is_relative_to(ROOT) or (anchor and anchor not in _anchors(target)):
            dead.append(f"{file}#{anchor}")
    assert dead == []


def test_headings_have_the_anchors_that_github_gives_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# `podqos node`: run & adopt\n\n```\n# no heading\n```\n## Again\n### Again\n## [A link](x.md)\n")
    assert _anchors(page) == {"podqos-node-run--adopt", "again", "again-1", "a-link"}


def test_documents_named_in_the_code_exist():
    named = {
        (name, path)
        for folder in ("src", "bench", "viewer/src", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".ts", ".css", ""} and path.is_file()
        for name in re.findall(r"(?<![\w/])docs/[\w./-]+\w", path.read_text())
    }
    assert named
    assert sorted(f"{path.relative_to(ROOT)}: {name}" for name, path in named if not list(ROOT.glob(f"{name}*"))) == []


def test_named_modules_and_tests_exist():
    names = set(re.findall(r"`(\w[\w/*]*(?:\.py|/))`", (ROOT / "ARCHITECTURE.md").read_text()))
    homes = (ROOT, ROOT / "src/podqos", ROOT / "tests")

    assert names
    assert sorted(name for name in names if not any(list(home.glob(name)) for home in homes)) == []


def test_every_item_of_the_sources_has_a_command():
    """What the commands show is held by ``documents/test_sources.py``."""
    rows = [
        re.split(r"(?<!\\)\|", line)[1:3]
        for line in (ROOT / "docs/internals/sources.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| in the document")
    ]
    assert len(rows) > 100
    assert [item for item, commands in rows if not re.search(r"podqos \w|^ same", commands)] == []
    assert set(re.findall(r"podqos (\w+)", "".join(commands for _, commands in rows))) <= {*COMMANDS}
    for scenario in re.findall(r"podqos simulate ([\w-]+)", "".join(commands for _, commands in rows)):
        assert (ROOT / f"scenarios/{scenario}.yaml").exists(), scenario


@pytest.mark.parametrize("schema", sorted(ROOT.glob("docs/schema/*.json")), ids=lambda path: path.stem)
def test_published_schemas_are_free_of_the_indentation_that_python_3_13_takes_from_docstrings(schema):
    indented = []

    def look(node):
        text = node.get("description")
        indented.extend([text] if isinstance(text, str) and text != cleandoc(text) else [])
        return node

    json.loads(schema.read_text(), object_hook=look)
    assert indented == []
