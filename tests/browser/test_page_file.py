"""The built page as a file: small, whole, and allowed to run nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from browser.windows import PAGE

BUDGET_BYTES = 320_000
"""Every report carries the page: docs/internals/decisions/0012."""


@pytest.fixture(scope="module")
def page():
    if not PAGE.is_file():
        pytest.skip("the page is not built: make viewer")
    return PAGE.read_text(encoding="utf-8")


def test_the_page_is_within_its_budget(page):
    assert len(page.encode()) <= BUDGET_BYTES


def test_its_policy_names_its_one_script_and_its_one_style_by_their_hashes(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")
    for kind, pattern in (("script", r'<script type="module">(.*?)</script>'), ("style", r"<style>(.*?)</style>")):
        (text,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_it_names_no_other_file(page):
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', page.partition("<body>")[0]) == []
    assert re.findall(r"@import|url\((?!data:|#)", page) == []
