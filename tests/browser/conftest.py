"""Pages in a real browser: opened as files, without a network."""

from __future__ import annotations

import shutil
from importlib.resources import files

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGE = files("podqos.report") / "viewer.html"


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    if not PAGE.is_file():
        pytest.skip("the page is not built: make viewer")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        yield chromium
        chromium.close()
