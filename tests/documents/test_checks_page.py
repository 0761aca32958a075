"""The page on the checks is made from the code."""

from __future__ import annotations

from pathlib import Path

from documents.checks_page import document
from podqos.advice.checks.catalogue import CHECKS

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/checks.md"


def test_the_page_in_the_repository_is_the_one_the_code_makes():
    assert PAGE.read_text() == document()


def test_every_check_has_a_heading_to_which_the_table_leads():
    text = document()

    for check in CHECKS.values():
        assert f"\n### {check.id} {check.name}\n" in text
        assert f"(#{check.id.lower()}-{check.name})" in text
