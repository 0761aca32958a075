"""One browser for all tests of a process: a second driver does not start beside the first."""

from __future__ import annotations

import shutil
from importlib.resources import files

import pytest

from browser.settling import PATIENCE_MS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGE = files("podqos.page") / "viewer.html"


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    if not PAGE.is_file():
        pytest.skip("the page is not built: make viewer")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def _offline_window(browser):
    """Open a window without a network once: to open one costs more than most tests do in it."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def window(_offline_window):
    """Return a window without a network, for pages that are files."""
    _offline_window.goto("about:blank")
    _offline_window.emulate_media(color_scheme="null")
    _offline_window.mouse.move(0, 0)
    return _offline_window
