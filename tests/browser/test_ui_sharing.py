"""What is shared of a page: one file that leads only where there is something, the verdict as a picture, paper."""

from __future__ import annotations

import re

import pytest
from tests.library.shop import shop as manifests

from browser.settling import settle
from browser.test_layout import open_page
from browser.test_ui_saved import SCENARIOS
from podqos.cli.main import main

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
PNG = b"\x89PNG\r\n\x1a\n"
_DO_NOT_PRINT = "window.print = () => void (window.printed = true)"


@pytest.fixture(scope="module")
def shop(serve, tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.yaml"
    path.write_bytes(manifests())
    return serve(path)


@pytest.fixture(scope="module")
def scenario(serve):
    return serve(SCENARIOS / "oom-by-class.yaml")


def saved(page, what, path):
    """Save what is shown, and return the file."""
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=what).click()
    download.value.save_as(path)
    return path


def links(page):
    return page.get_by_role("navigation").get_by_role("link").all_inner_texts()


def test_a_saved_page_leads_to_the_views_that_were_seen_as_they_were_and_to_no_others(visit, shop, window, tmp_path):
    page = visit(shop).open("#/forecast?hard=1Gi")
    expect(page.locator("main .card").first).to_be_visible()
    page.get_by_role("link", name="Check", exact=True).click()
    expect(page.locator("h1")).to_have_text("Check")
    settle(page)
    file = saved(page, "Save as one HTML file", tmp_path / "saved.html")
    again = open_page(window, file, 1280)
    assert [each for each in links(again) if each != "Cluster"] == ["Forecast", "Check"]
    again.get_by_role("link", name="Forecast", exact=True).click()
    expect(again.locator("main .card").first).to_be_visible()
    assert "hard=1Gi" in again.url
    for name in links(again):
        again.get_by_role("link", name=name, exact=True).click()
        expect(again.locator("h1")).to_have_text(name)
        settle(again)
        expect(again.locator(".state")).to_have_count(0)
    # An address of a view that was not saved says what there is.
    again.goto(file.as_uri() + "#/what-if")
    expect(again.locator(".state h2")).to_have_text("Not in this saved page")
    again.locator(".state a", has_text="Check").click()
    expect(again.locator("h1")).to_have_text("Check")


def test_a_page_that_a_command_wrote_leads_only_to_what_is_in_it(window, tmp_path):
    (tmp_path / "shop.yaml").write_bytes(manifests())
    main(["ui", str(tmp_path / "shop.yaml"), "--html", str(tmp_path / "page.html")])
    page = open_page(window, tmp_path / "page.html", 1280)
    assert links(page) == ["Cluster", "Check"]
    main(["ui", str(SCENARIOS / "oom-by-class.yaml"), "--html", str(tmp_path / "page.html")])
    page = open_page(window, tmp_path / "page.html", 1280)
    expect(page.locator(".kill")).to_have_count(1)
    assert links(page) == ["Cluster", "Run"]
    for name in ("Cluster", "Run"):
        page.get_by_role("link", name=name, exact=True).click()
        settle(page)
        expect(page.locator(".state")).to_have_count(0)


def test_the_verdict_is_saved_as_svg_and_as_png_without_loading_anything(visit, shop, tmp_path):
    opened = visit(shop)
    page = opened.open("#/cluster")
    svg = saved(page, "Save the verdict as SVG", tmp_path / "verdict.svg").read_text()
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert "Who dies first?" in words
    assert {"Eviction order", "OOM kill order"} <= {*words}
    assert words.index("shop/shell") > words.index("Eviction order")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    png = saved(page, "Save the verdict as PNG", tmp_path / "verdict.png").read_bytes()
    assert png.startswith(PNG)
    assert int.from_bytes(png[16:20], "big") == 2400
    assert opened.elsewhere == []


def test_markup_and_endless_names_stay_inside_the_picture(visit, serve, window, tmp_path):
    name = "x" * 200 + ".yaml"
    path = tmp_path / f"<b>&{name}"
    path.write_bytes(manifests().replace(b"name: shell", b"name: " + b"s" * 250))
    page = visit(serve(path)).open("#/cluster")
    svg = saved(page, "Save the verdict as SVG", tmp_path / "verdict.svg")
    window.goto(svg.as_uri())
    ends = window.evaluate(
        "[...document.querySelectorAll('text')].map((text) => text.getBBox().x + text.getBBox().width)"
    )
    assert max(ends) <= 1200 - 40
    assert window.evaluate("document.querySelectorAll('b').length") == 0


@pytest.mark.parametrize("route", ["#/check", "#/forecast"])
def test_every_view_has_a_verdict_to_share(visit, shop, tmp_path, route):
    page = visit(shop).open(route)
    expect(page.locator("main .card").first).to_be_visible()
    settle(page)
    svg = saved(page, "Save the verdict as SVG", tmp_path / "verdict.svg").read_text()
    assert page.locator("h1").inner_text() in svg
    assert page.locator(".headline").inner_text().split()[0] in svg


@pytest.mark.parametrize("route", ["#/cluster", "#/cluster?show=table", "#/check"])
def test_paper_is_light_has_no_navigation_and_nothing_is_cut_off(visit, hundred, route):
    opened = visit(hundred, color_scheme="dark")
    opened.run_first(_DO_NOT_PRINT)
    page = opened.open(route)
    page.keyboard.press("Control+p")
    page.wait_for_function("() => window.printed === true")
    page.emulate_media(media="print")
    state = page.evaluate(
        """() => ({
          ground: getComputedStyle(document.body).backgroundColor,
          hidden: [...document.querySelectorAll(".bar, .toasts, .filters, .tool")].every((each) => !each.offsetParent),
          wide: Math.max(...[...document.querySelectorAll("main *")].map((each) => each.getBoundingClientRect().right)),
          pods: document.querySelectorAll(".pod-rows .pod-row").length,
        })"""
    )
    assert state["ground"] == "rgb(255, 255, 255)"
    assert state["hidden"]
    assert state["wide"] <= 718
    assert state["pods"] == (100 if "table" in route else 0)
    page.emulate_media(media="screen")
    page.wait_for_function("() => document.documentElement.dataset.print === undefined")
    assert page.evaluate("document.documentElement.dataset.theme ?? ''") == ""


def test_a_run_that_was_cancelled_is_no_error_and_can_be_run_again(visit, serve, tmp_path):
    from tests.web.ui.running import LONG, POD

    (tmp_path / "long.yaml").write_bytes(LONG)
    (tmp_path / "pod.yaml").write_bytes(POD)
    opened = visit(serve(tmp_path / "long.yaml"))
    page = opened.open("")
    page.keyboard.press("3")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state h2")).to_have_text("Cancelled")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert opened.violations() == []
    page.get_by_role("button", name="Run again").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".state h2")).to_have_text("Cancelled")
