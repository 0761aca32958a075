"""The site: `make docs` builds it without a warning, and it opens from a disk without a network, search included."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from documents.commands import ROOT
from podqos import __version__

pytestmark = pytest.mark.slow
OWN_ENVIRONMENT = ROOT / ".venv-docs/bin/python"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Return the site, built as `make docs` builds it."""
    python = OWN_ENVIRONMENT if OWN_ENVIRONMENT.exists() else Path(sys.executable)
    if python != OWN_ENVIRONMENT and find_spec("sphinx") is None:
        pytest.skip("Sphinx is not installed: make docs")
    (command,) = re.findall(r"^\t\$\(SITE\)/bin/python (-m sphinx .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    directory = tmp_path_factory.mktemp("site")
    # One process: with others beside it, the least work is the fastest.
    words = (
        command.replace("-j auto ", "")
        .replace("build/site-pages", f"{directory}/pages")
        .replace("build/site", f"{directory}/site")
        .split()
    )
    done = subprocess.run([python, *words], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return directory / "site"


def test_every_page_is_in_the_site_and_in_its_navigation(site):
    pages = [*ROOT.glob("docs/**/*.md")]
    navigation = (site / "docs/README.html").read_text()
    assert pages
    assert f"<title>podqos {__version__}</title>" in navigation
    for page in pages:
        html = page.relative_to(ROOT).with_suffix(".html")
        assert (site / html).is_file()
        assert html.name == "README.html" or f'href="{html.relative_to("docs")}"' in navigation, html


def test_the_site_fetches_nothing_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]+")
    assert [
        (page.name, fetched.findall(page.read_text()))
        for page in site.rglob("*.html")
        if fetched.search(page.read_text())
    ] == []
    imported = re.compile(r"url\(\s*[\"']?(?:https?:)?//|@import")
    assert [style.name for style in site.rglob("*.css") if imported.search(style.read_text())] == []


def test_every_picture_is_there(site):
    shown = [
        (page, link)
        for page in site.rglob("*.html")
        for link in re.findall(r'(?:src|srcset)="([^":]+)"', page.read_text())
    ]
    assert any(link.endswith(".png") for _, link in shown)
    missing = [(page.name, link) for page, link in shown if not (page.parent / link.partition("?")[0]).is_file()]
    assert missing == []


def test_search_answers_from_a_file_without_a_network(site, window):
    requests, errors = [], []
    window.on("request", lambda request: requests.append(request.url))
    window.on("pageerror", lambda error: errors.append(error))  # noqa: PLW0108 - playwright cannot mark a built-in
    window.goto((site / "index.html").as_uri())
    window.wait_for_url("**/docs/README.html")
    window.locator("input[name=q]:visible").fill("OOMKilled")
    window.keyboard.press("Enter")
    window.locator("#search-results li a", has_text="OOMKilled").first.click()
    window.wait_for_url("**/how-to/oomkilled.html*")
    assert {url.partition(":")[0] for url in requests} <= {"file", "data", "about"}
    assert errors == []
