"""axe-core finds nothing of any level, best practices included: on every view, in both themes, wide and narrow."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.library.shop import shop as manifests

from browser.conftest import AXE
from browser.settling import resize, settle
from browser.test_ui_saved import INCIDENT, SCENARIOS
from podqos.cli.main import main

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

EDIT = quote(json.dumps({"Deployment shop/web": {"main.requests.memory": "1Gi"}}))
EMPTY, SHOP, SCENARIO, LOG = "nothing", "shop", "scenario", "log"
VIEWS = {
    "start": (EMPTY, ""),
    "a paste box": (EMPTY, "#/autopsy"),
    "a source that is gone": (EMPTY, "#/cluster?source=gone"),
    "Cluster": (SHOP, "#/cluster"),
    "Cluster as blocks": (SHOP, "#/cluster?show=blocks"),
    "Cluster as a table": (SHOP, "#/cluster?show=table"),
    "pod": (SHOP, "#/pod/shop/web-0"),
    "What if": (SHOP, f"#/what-if?pod=shop/web-0&write={EDIT}"),
    "Blast": (SHOP, "#/blast"),
    "Forecast": (SHOP, "#/forecast"),
    "Check": (SHOP, "#/check"),
    "Check with its fixes": (SHOP, "#/check?fix=all"),
    "a view that there is not": (LOG, "#/check"),
    "no such view": (SHOP, "#/nowhere"),
    "a pod whose fix is withheld": (SCENARIO, "#/pod/default/pod2"),
    "Run": (SCENARIO, "#/run"),
    "Blast of a scenario": (SCENARIO, "#/blast"),
    "Compare": (SCENARIO, "compare"),
    "Autopsy": (LOG, "#/autopsy"),
}
LOOKS = [(width, theme) for width in (1280, 390) for theme in ("light", "dark")]


@pytest.fixture(scope="module")
def servers(serve, tmp_path_factory):
    shop = tmp_path_factory.mktemp("shop") / "shop.yaml"
    shop.write_bytes(manifests())
    sources = {EMPTY: (), SHOP: (shop,), SCENARIO: (SCENARIOS / "oom-by-class.yaml",), LOG: (INCIDENT / "kern.log",)}
    return {name: serve(*given) for name, given in sources.items()}


def violations(page):
    """Return what axe-core finds at both widths in both themes."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in viewer/")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    seen = []
    for width, theme in LOOKS:
        page.emulate_media(color_scheme=theme)
        resize(page, width)
        answer = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        seen += [
            (rule["id"], rule["impact"], width, theme, [node["target"] for node in rule["nodes"]][:3])
            for rule in answer["violations"]
        ]
    return seen


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_on_any_view(visit, servers, name):
    kind, route = VIEWS[name]
    opened = visit(servers[kind])
    opened.expected = "status of 404"
    page = opened.open("#/run" if route == "compare" else route)
    if route == "compare":
        page.get_by_text("Change values, run it again and compare").click()
        page.get_by_label("One change per line").fill("requests.memory@pod3=6Gi")
        page.get_by_role("button", name="Run and compare").click()
        expect(page.locator(".sides .charts svg")).to_have_count(2)
    if name == "Run":
        page.locator(".kill button").first.click()
    settle(page)
    assert violations(page) == []


SAVED = {
    "a page of manifests": ("ui", SHOP),
    "a page of a scenario": ("ui", str(SCENARIOS / "oom-by-class.yaml")),
    "a run": ("simulate", str(SCENARIOS / "oom-by-class.yaml")),
    "a blast radius": ("blast", str(SCENARIOS / "oom-by-class.yaml")),
    "an autopsy": ("autopsy", str(INCIDENT / "kern.log")),
}


@pytest.mark.parametrize("name", SAVED)
def test_axe_finds_nothing_on_any_saved_page(window, tmp_path, capsys, name):
    command, source = SAVED[name]
    if source == SHOP:
        source = str(tmp_path / "shop.yaml")
        Path(source).write_bytes(manifests())
    main([command, source, "--html", str(tmp_path / "page.html")])
    capsys.readouterr()
    window.goto((tmp_path / "page.html").as_uri())
    window.wait_for_selector("h1")
    settle(window)
    assert violations(window) == []
