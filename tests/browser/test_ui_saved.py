"""Every view as one file: it opens without a server, shows the same, asks for nothing, and says what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.library.shop import shop as manifests

from browser.settling import settle
from browser.test_layout import open_page
from browser.test_viewer import Visit

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

SCENARIOS = Path(__file__).parents[2] / "scenarios"
INCIDENT = SCENARIOS / "content-platform" / "incident"
EDIT = quote(json.dumps({"Deployment shop/web": {"main.requests.memory": "1Gi"}}))
SHOP, SCENARIO, LOG = "shop", "scenario", "log"
VIEWS = {
    "cluster": (SHOP, "#/cluster", "update itself"),
    "pod": (SHOP, "#/pod/shop/web-0", "show pods that were not saved"),
    "what-if": (SHOP, f"#/what-if?pod=shop/web-0&write={EDIT}", "compute other changes"),
    "forecast": (SHOP, "#/forecast?hard=1Gi", "compute other settings"),
    "check": (SHOP, "#/check?fix=all", "compute other fixes"),
    "autopsy": (LOG, "#/autopsy", "analyze other logs"),
    "run": (SCENARIO, "#/run", "run the scenario again"),
    "blast": (SCENARIO, "#/blast", "simulate leaks on other nodes"),
    "compare": (SCENARIO, "", "compare other runs"),
}
_SHOWN = """() => [...document.querySelectorAll("header, main")].map(each => each.innerText).join("\\n")"""


@pytest.fixture(scope="module")
def servers(serve, tmp_path_factory):
    shop = tmp_path_factory.mktemp("shop") / "shop.yaml"
    shop.write_bytes(manifests())
    return {SHOP: serve(shop), SCENARIO: serve(SCENARIOS / "oom-by-class.yaml"), LOG: serve(INCIDENT / "kern.log")}


def _opened(opened, name, route):
    if name != "compare":
        return opened.open(route)
    page = opened.open("#/run")
    expect(page.locator(".kill")).to_have_count(1)
    page.get_by_text("Change values, run it again and compare").click()
    page.get_by_label("One change per line").fill("requests.memory@pod3=6Gi")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".sides .charts svg")).to_have_count(2)
    return page


def _settled(page):
    expect(page.locator("main .card, main .panel").first).to_be_visible()
    settle(page)


def _words(page):
    """Return what is read."""
    return [line for line in map(str.strip, page.evaluate(_SHOWN).splitlines()) if line]


def _saved(page, folder):
    """Save the view, and return the file."""
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as one HTML file").click()
    path = folder / "saved.html"
    download.value.save_as(path)
    return path


@pytest.mark.parametrize("name", VIEWS)
def test_a_saved_view_opens_without_a_server_and_shows_the_same(visit, servers, window, tmp_path, name):
    kind, route, cannot = VIEWS[name]
    page = _opened(visit(servers[kind]), name, route)
    _settled(page)
    # The answer card leads to the forecast, which is not in the file.
    expected = [line.removesuffix(" Forecast") for line in _words(page)]
    path = _saved(page, tmp_path)
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the data as JSON").click()
    assert json.loads(Path(download.value.path()).read_text())

    opened = Visit(window, path, {"width": 1280, "height": 900})
    saved = opened.page
    _settled(saved)
    expect(saved.locator(".saved-note")).to_contain_text(f"This is a saved page. It cannot {cannot}")
    assert _words(saved) == expected
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert opened.complaints == []
    opened.close()


def test_the_controls_of_a_saved_view_cannot_be_turned(visit, servers, window, tmp_path):
    page = visit(servers[SHOP]).open(VIEWS["what-if"][1])
    _settled(page)
    saved = open_page(window, _saved(page, tmp_path), 1280)
    expect(saved.locator(".headline")).to_contain_text("becomes Guaranteed")
    expect(saved.get_by_label("Memory request", exact=True)).to_be_disabled()


def test_a_saved_file_shows_the_run_that_it_holds_from_every_view_and_says_what_it_does_not_hold(
    visit, servers, window, tmp_path
):
    page = visit(servers[SCENARIO]).open("#/run")
    _settled(page)
    saved = open_page(window, _saved(page, tmp_path), 1280)
    expect(saved.locator(".kill")).to_have_count(1)
    expect(saved.get_by_role("link", name="Blast")).to_have_count(0)
    saved.goto(saved.url.partition("#")[0] + "#/blast")
    expect(saved.locator(".state h2")).to_have_text("Not in this saved page")
    saved.get_by_role("navigation").get_by_role("link", name="Run", exact=True).click()
    expect(saved.locator(".kill")).to_have_count(1)
