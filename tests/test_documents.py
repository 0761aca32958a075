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


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/explanation/rules.md"])
def test_named_modules_and_tests_exist(document):
    names = set(re.findall(r"`(\w[\w/*]*(?:\.py|/))`", (ROOT / document).read_text()))
    homes = (ROOT, ROOT / "src/podqos", ROOT / "tests")

    assert names
    assert sorted(name for name in names if not any(list(home.glob(name)) for home in homes)) == []


def _source_rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of docs/explanation/sources.md: the test file of the section, item, commands, tests.

    What the commands show is held by ``documents/test_sources.py``.
    """
    rows, own = [], ""
    for line in (ROOT / "docs/explanation/sources.md").read_text().splitlines():
        if line.startswith("Own file:"):
            own = line.split("`")[1]
        elif line.startswith("| ") and not line.startswith("| in the document"):
            _, item, commands, _, tests, _ = re.split(r"(?<!\\)\|", line)
            rows.append((own, item.strip(), commands, tests))
    return rows


def test_every_item_of_the_sources_has_a_command_and_a_test():
    rows = _source_rows()
    assert {own[13:16] for own, *_ in rows} == {"000", "001", "002", "003", "004"}
    assert [item for _, item, commands, _ in rows if not re.search(r"podqos \w|^ same", commands)] == []
    assert set(re.findall(r"podqos (\w+)", "".join(commands for _, _, commands, _ in rows))) <= {*COMMANDS}
    assert [item for _, item, _, tests in rows if "`" not in tests] == []
    for scenario in re.findall(r"podqos simulate ([\w-]+)", "".join(commands for _, _, commands, _ in rows)):
        assert (ROOT / f"scenarios/{scenario}.yaml").exists(), scenario


def test_every_test_named_for_the_sources_exists():
    for own, item, _, tests in _source_rows():
        for name in re.findall(r"`([^`]+)`", tests):
            file, *parts = name.split("::") if ".py" in name else [own, name]
            text = (ROOT / "tests" / file).read_text()
            assert all(re.search(rf"^\s*(?:class|def) {part}\b", text, re.MULTILINE) for part in parts), (item, name)


def test_every_test_file_of_the_sources_is_on_their_page():
    page = (ROOT / "docs/explanation/sources.md").read_text()
    assert [path.name for path in ROOT.glob("tests/sources/test_*.py") if f"sources/{path.name}" not in page] == []


@pytest.mark.parametrize("schema", sorted(ROOT.glob("docs/schema/*.json")), ids=lambda path: path.stem)
def test_published_schemas_are_free_of_the_indentation_that_python_3_13_takes_from_docstrings(schema):
    indented = []

    def look(node):
        text = node.get("description")
        indented.extend([text] if isinstance(text, str) and text != cleandoc(text) else [])
        return node

    json.loads(schema.read_text(), object_hook=look)
    assert indented == []
