"""The generated parts of the reference are those that the code makes now."""

from __future__ import annotations

import re

import pytest

from documents.commands import ROOT
from documents.generated import CONFIGURATION, generated_parts, with_part
from documents.grammar import grammars

PARTS = generated_parts()


@pytest.mark.parametrize(("page", "part"), PARTS.items(), ids=[page.stem for page in PARTS])
def test_a_page_has_the_options_that_the_command_takes(page, part):
    assert part in page.read_text(), "run `make golden`, or: .venv/bin/python tests/documents/record.py"


def test_every_command_has_a_page_of_its_own():
    pages = {page.stem for page in (ROOT / "docs/reference/commands").glob("*.md")}
    assert pages == {*grammars()}


def test_a_part_is_replaced_where_it_stands_and_appended_where_it_is_missing():
    part = PARTS[CONFIGURATION]
    page = with_part("# Title\n\nText.\n", part)
    assert page == f"# Title\n\nText.\n\n{part}\n"
    outdated = page.replace("`failOn`", "`failAt`") + "\nMore text.\n"
    assert with_part(outdated, part) == f"{page}\nMore text.\n"


def test_every_schema_is_listed_with_its_purpose():
    page = (ROOT / "docs/reference/schemas.md").read_text()
    listed = re.findall(r"^\| \[[\w.-]+\]\(\.\./schema/([\w-]+)\.json\) \| \S.+ \|$", page, re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in ROOT.glob("docs/schema/*.json"))
