"""What a reader does faster than the page draws, and what goes wrong beside it: nothing is lost or goes elsewhere."""

from __future__ import annotations

import re

import pytest
from tests.browser.test_ui_cluster import _painted, _query, _until
from tests.browser.test_ui_views import cluster, scenario, shop  # noqa: F401 - fixtures

from browser.settling import settle

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

# No frame comes until they are let go: nothing is drawn that waits for one.
HOLD = """() => {
  const real = requestAnimationFrame;
  const held = [];
  globalThis.requestAnimationFrame = (call) => held.push(call);
  globalThis.letGo = () => {
    globalThis.requestAnimationFrame = real;
    held.forEach((call) => real(call));
  };
}"""


def _let_go(page):
    page.evaluate("letGo()")
    settle(page)


# ---- keys faster than frames -----------------------------------------------------------------------------------------


def test_a_key_that_follows_another_is_meant_for_the_view_that_was_chosen(visit, hundred):
    page = visit(hundred).open("#/what-if")
    page.evaluate(HOLD)
    page.keyboard.press("1")
    page.keyboard.press("v")
    assert page.url.endswith("#/cluster?show=blocks")
    page.keyboard.press("2")
    page.keyboard.press("v")
    assert page.url.endswith("#/what-if")
    page.keyboard.press("1")
    _let_go(page)
    expect(page.locator(".queue-node").first).to_be_visible()


def test_what_is_typed_right_after_a_view_was_chosen_does_not_go_into_the_one_before(visit, hundred):
    page = visit(hundred).open("#/cluster")
    page.evaluate(HOLD)
    page.keyboard.press("2")
    page.keyboard.press("/")
    page.keyboard.press("x")
    assert page.url.endswith("#/what-if")
    _let_go(page)
    expect(page.locator("h1")).to_have_text("What if")


def test_a_name_that_begins_like_another_can_be_typed_to_its_end(visit, hundred):
    page = visit(hundred).open("#/what-if")
    page.keyboard.press("/")
    page.keyboard.type("batch/web-1")
    expect(page.locator(".headline")).to_contain_text("batch/web-1 ")
    page.keyboard.type("3")
    expect(page.locator(".headline")).to_contain_text("batch/web-13 ")
    expect(page.locator("[data-filter]")).to_be_focused()
    expect(page.locator("[data-filter]")).to_have_value("batch/web-13")
    assert _query(page) == {"pod": "batch/web-13"}


def test_keys_of_the_page_count_also_after_something_was_chosen(visit, hundred):
    page = visit(hundred).open("#/cluster")
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_role("table", name="Pods")).to_be_visible()
    page.keyboard.press("v")
    expect(page.locator(".queue-node").first).to_be_visible()


def test_tab_comes_to_a_row_that_is_seen_also_where_the_reader_has_scrolled_away(visit, hundred):
    page = visit(hundred, height=500).open("#/cluster?show=table")
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 2500)
    page.wait_for_function("() => scrollY > 2000")
    settle(page)
    page.locator("[role=columnheader] button").last.evaluate("(button) => button.focus({ preventScroll: true })")
    page.keyboard.press("Tab")
    row = page.evaluate("document.activeElement.dataset.row")
    assert row is not None
    assert int(row) > 20
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"[data-row='{int(row) + 1}']")).to_be_focused()


@pytest.mark.parametrize("view", ["run", "blast"])
def test_a_view_that_was_left_calls_no_one_back_while_it_is_still_drawn(visit, scenario, view):  # noqa: F811
    page = visit(scenario).open("#/cluster")
    begun = []
    page.route("**/api/jobs", lambda route: begun.append(route))  # noqa: PLW0108 - playwright marks what it is given
    page.evaluate("(view) => location.assign(`#/${view}`)", view)
    while not begun:
        page.wait_for_timeout(50)
    page.evaluate(HOLD)
    page.keyboard.press("1")
    with page.expect_response("**/api/jobs") as answer:
        begun[0].continue_()
    answer.value.finished()
    _let_go(page)
    assert page.url.endswith("#/cluster")
    expect(page.locator("h1")).to_have_text("Cluster")


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_what_fails_in_one_frame_does_not_keep_the_rest_from_being_drawn(visit, hundred):
    opened = visit(hundred, height=3000)  # rows that are not seen are not there
    opened.expected = "once"
    page = opened.open("#/cluster")
    # What measures later than the event is what waits for a frame.
    page.evaluate(
        """() => {
          const real = Element.prototype.getBoundingClientRect;
          globalThis.failed = 0;
          Element.prototype.getBoundingClientRect = function () {
            if (window.event || globalThis.failed > 0) return real.call(this);
            globalThis.failed++;
            throw new Error("once");
          };
          dispatchEvent(new Event("scroll"));
        }"""
    )
    page.wait_for_function("() => failed > 0")
    page.keyboard.press("v")
    page.keyboard.press("v")
    expect(page.locator("[role=table] .pod-row").nth(5)).to_be_visible()
    assert len(opened.complaints) == 1


WORKERS = """{
  const Real = Worker;
  globalThis.workers = [];
  globalThis.Worker = class extends Real {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => (this.answers = (this.answers ?? 0) + 1));
      workers.push(this);
    }
  };
}"""


def test_blocks_are_drawn_after_the_worker_that_draws_them_has_died(visit, hundred):
    opened = visit(hundred)
    opened.run_first(WORKERS)
    page = opened.open("#/cluster?show=blocks")
    _until(lambda: page.locator(".panel").count() == 4 and _painted(page))
    assert page.evaluate("workers.map((each) => each.answers >= 4)") == [True]
    page.evaluate("workers[0].terminate()")
    page.get_by_label("Find").fill("node-3")
    expect(page.locator(".panel")).to_have_count(1)
    settle(page)
    assert _painted(page)


def test_a_picture_that_cannot_be_drawn_does_not_keep_the_others_from_it(visit, hundred):
    opened = visit(hundred)
    opened.expected = "once"
    opened.run_first(
        """delete globalThis.Worker;
        const real = OffscreenCanvas.prototype.transferToImageBitmap;
        OffscreenCanvas.prototype.transferToImageBitmap = function () {
          OffscreenCanvas.prototype.transferToImageBitmap = real;
          throw new Error("once");
        };"""
    )
    page = opened.open("#/cluster?show=blocks")
    expect(page.locator(".panel")).to_have_count(4)
    settle(page)
    assert len(opened.complaints) == 1
    page.keyboard.press("t")  # drawn again, all of them
    settle(page)
    assert _painted(page)


def test_a_page_that_is_opened_in_the_background_is_drawn_when_the_reader_comes(visit, hundred):
    opened = visit(hundred)
    opened.run_first(
        """Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
        globalThis.requestAnimationFrame = () => 0;"""
    )
    page = opened.page
    page.goto(f"{hundred.address}#/cluster?show=blocks")
    drawn = "() => document.querySelectorAll('.panel canvas').length === 4 && podqosIsDrawn()"
    page.wait_for_function(drawn, polling=50)
    assert _painted(page)


def test_blocks_are_drawn_again_for_another_resolution_of_the_screen(visit, hundred):
    opened = visit(hundred)
    # A browser without a screen does not tell of it: the test does.
    opened.run_first(
        """const real = matchMedia;
        globalThis.asked = [];
        globalThis.matchMedia = (query) => {
          asked.push(real(query));
          return asked.at(-1);
        };"""
    )
    page = opened.open("#/cluster?show=blocks")
    _until(lambda: page.locator(".panel").count() == 4 and _painted(page))
    metrics = {"width": 1280, "height": 900, "deviceScaleFactor": 2, "mobile": False}
    opened.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", metrics)
    page.wait_for_function("() => devicePixelRatio === 2")
    page.evaluate("asked.filter((each) => /resolution/.test(each.media)).at(-1).dispatchEvent(new Event('change'))")
    sharp = "(canvas) => Math.abs(canvas.width - canvas.clientWidth * 2) <= 1"
    _until(lambda: all(canvas.evaluate(sharp) for canvas in page.locator(".blocks canvas").all()))
    _until(lambda: _painted(page))


# ---- the way back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", ["queue", "blocks", "table"])
def test_the_way_back_leads_to_where_the_reader_was(visit, hundred, shown):
    page = visit(hundred, height=500).open("#/cluster")
    for _ in range(["queue", "blocks", "table"].index(shown)):
        page.keyboard.press("v")  # a step of its own, in the same view
        settle(page)
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 700)
    page.wait_for_function("() => scrollY === 700")
    settle(page)
    page.evaluate(
        """(what) => {
          const seen = [...document.querySelectorAll(what)].find((each) => each.getBoundingClientRect().top > 200);
          seen.click();
        }""",
        {"queue": ".queue-pod a", "blocks": ".spot", "table": ".pod-rows a"}[shown],
    )
    expect(page.locator("h1")).to_have_text(re.compile("^(web|a-pod)-"))
    settle(page)
    assert page.evaluate("scrollY") == 0
    for _ in range(2):
        page.go_back()
        expect(page.locator("h1")).to_have_text("Cluster")
        page.wait_for_function("() => scrollY === 700")
        settle(page)
        assert page.evaluate("scrollY") == 700
        page.go_forward()
        expect(page.locator("h1")).to_have_text(re.compile("^(web|a-pod)-"))
        settle(page)
        assert page.evaluate("scrollY") == 0
    page.go_back()
    page.wait_for_function("() => scrollY === 700")
    page.keyboard.press("v")  # a step in the same view
    settle(page)
    page.evaluate("scrollTo(0, 0)")
    page.go_back()
    page.wait_for_function("() => scrollY === 700")
    page.go_forward()
    page.wait_for_function("() => scrollY === 0")
    page.keyboard.press("2")
    page.keyboard.press("1")  # not back: from the top
    expect(page.locator("h1")).to_have_text("Cluster")
    settle(page)
    assert page.evaluate("scrollY") == 0


# ---- what is saved, and where links lead -----------------------------------------------------------------------------


def test_what_is_saved_is_the_view_that_was_shown_also_where_the_reader_goes_on_meanwhile(visit, hundred, tmp_path):
    page = visit(hundred).open("#/cluster?ns=shop")
    held = []
    page.route("**/pods?*", lambda route: route.continue_() if held else held.append(route))
    page.get_by_text("Save", exact=True).click()
    page.get_by_role("button", name="Save as one HTML file").click()
    while not held:
        page.wait_for_timeout(50)
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("What if")
    with page.expect_download() as download:
        held[0].continue_()
    download.value.save_as(tmp_path / "saved.html")
    assert '"route":"#/cluster?ns=shop"' in (tmp_path / "saved.html").read_text(encoding="utf-8")


def test_a_link_to_another_pod_takes_the_edits_with_it_however_one_reaches_for_it(visit, shop):  # noqa: F811
    page = visit(shop).open("#/what-if?pod=shop/web-1")
    pod = page.locator(".who-first a").nth(1).get_attribute("data-pod")
    link = page.locator(f".who-first a[data-pod='{pod}']")
    link.hover()
    # The pointer rests there, while an edit is made by keyboard.
    page.get_by_label("Memory request, slider").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('write=')")
    edits = _query(page)["write"]
    link.evaluate("(link) => link.click()")  # as a screen reader does
    page.wait_for_function("(pod) => location.hash.includes(encodeURIComponent(pod))", arg=pod)
    assert _query(page)["write"] == edits


def test_a_link_to_another_node_takes_edits_with_it_that_are_not_answered_yet(visit, cluster):  # noqa: F811
    page = visit(cluster).open("#/what-if?pod=shop/web-1")
    page.get_by_label("Memory request", exact=True).fill("1200Mi")
    expect(page.locator(".headline")).to_contain_text("on 2 nodes")
    link = page.locator("main .table a").first
    page.route("**/what-if", lambda _: None)  # no answer comes
    page.get_by_label("Memory request", exact=True).fill("1536Mi")
    expect(page.locator(".stale-answer")).to_have_attribute("aria-busy", "true")
    page.get_by_label("Memory request", exact=True).fill("1700Mi")
    link.click()
    page.wait_for_function("() => location.hash.includes('at=')")
    assert "1700Mi" in _query(page)["write"]
