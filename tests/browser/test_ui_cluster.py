"""The cluster view of `podqos ui`, used as a person would: by mouse, by keyboard, and on a phone."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import parse_qs

import pytest
from tests.browser.conftest import PATIENCE_MS
from tests.browser.fleet import fleet
from tests.browser.test_layout import CUT

from browser.settling import resize, settle

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

# The blocks of a node that are drawn: the share of pixels that are not empty.
PAINTED = """(canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  let painted = 0;
  for (let at = 3; at < data.length; at += 4) painted += data[at] > 0 ? 1 : 0;
  return painted / (data.length / 4);
}"""


# Red, green, blue and opacity of a block, at its lower left corner: no label is there.
COLOUR = """([canvas, place]) => {
  const box = document.querySelectorAll(".spot")[0].getBoundingClientRect();
  const own = canvas.getBoundingClientRect();
  const at = place === "first" ? [box.left - own.left + 3, box.bottom - own.top - 4] : [own.width - 4, own.height - 4];
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return [...copy.getImageData(...at.map((each) => Math.round(each * devicePixelRatio)), 1, 1).data];
}"""


def _until(holds):
    """Wait for what is drawn: blocks are, some frames after their node is there."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def _painted(page):
    return all(canvas.evaluate(PAINTED) > 0.8 for canvas in page.locator(".blocks canvas").all())


def _query(page):
    return {name: values[0] for name, values in parse_qs(page.url.partition("?")[2]).items()}


def test_it_shows_nodes_as_panels_and_their_pods_as_blocks(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    expect(page.locator(".panel")).to_have_count(4)
    expect(page.locator(".panel").first).to_contain_text("allocatable")
    expect(page.locator("h1")).to_have_text("Cluster")
    assert page.locator(".panel .condition-chip").all_inner_texts() == ["⚠ MemoryPressure"]
    _until(lambda: _painted(page))
    assert page.title() == "Cluster – podqos"


def test_pointing_at_a_block_tells_of_the_pod_and_a_click_opens_it(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    blocks = page.locator(".panel", has_text="node-3").locator(".blocks")
    blocks.hover(position={"x": 8, "y": 8})
    expect(page.locator(".tip b")).to_contain_text("Guaranteed")
    told = page.locator(".tip").inner_text()
    assert "evicted 1st" in told
    blocks.click(position={"x": 8, "y": 8})
    expect(page.locator("h1")).to_have_text(re.compile("^(web|a-pod)-"))
    assert page.locator("h1").inner_text() in told
    page.go_back()
    expect(page.locator("h1")).to_have_text("Cluster")


def test_what_is_said_of_a_block_is_on_the_screen_wherever_the_block_is(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    blocks = page.locator(".panel", has_text="node-3").locator(".blocks")
    for edge in ("bottom", "top"):
        # The lower or the upper edge of the blocks is where the screen ends, or the bar.
        page.evaluate(
            """([blocks, edge]) => {
              const { top, bottom } = blocks.getBoundingClientRect();
              const bar = document.querySelector(".bar").offsetHeight;
              scrollBy(0, edge === "bottom" ? bottom - innerHeight : top - bar);
            }""",
            [blocks.element_handle(), edge],
        )
        settle(page)
        box = blocks.bounding_box()
        page.mouse.move(box["x"] + box["width"] - 5, box["y"] + (box["height"] - 5 if edge == "bottom" else 5))
        expect(page.locator(".tip")).to_be_visible()
        tip = page.locator(".tip").bounding_box()
        assert tip["y"] >= page.locator(".bar").bounding_box()["height"]
        assert tip["y"] + tip["height"] <= 900
        assert tip["x"] >= 0
        assert tip["x"] + tip["width"] <= 1280
        page.mouse.move(1, 1)
        expect(page.locator(".tip")).to_have_count(0)


def test_shares_are_written_as_everywhere_else(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    expect(page.locator(".tile", has_text="memory requested")).to_contain_text(re.compile(r"^\d+ %"))
    expect(page.locator(".panel").first).to_contain_text(re.compile(r"\d %"))
    assert re.search(r"\d%", page.locator(".view").inner_text()) is None


def test_in_blocks_of_a_table_no_row_touches_the_next(visit, serve, tmp_path):
    (tmp_path / "pods.json").write_text(fleet(3, 1).replace('"nodeName": "node-0", ', ""))
    page = visit(serve(tmp_path / "pods.json"), width=400, height=3000).open("#/cluster?show=table")
    expect(page.locator(".pod-rows .pod-row").first).to_contain_text(re.compile("–$"))
    room = page.locator(".pod-rows .pod-row").evaluate_all(
        """(rows) => rows.flatMap((row) => {
          const boxes = [...row.children].map((each) => each.getBoundingClientRect());
          const { top, bottom } = row.getBoundingClientRect();
          return [Math.min(...boxes.map((box) => box.top)) - top, bottom - Math.max(...boxes.map((box) => box.bottom))];
        })"""
    )
    assert min(room) > 4


def test_the_keyboard_goes_from_block_to_block_in_the_order_in_which_they_go(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    panel = page.locator(".panel", has_text="node-3")
    panel.locator(".spot").focus()
    expect(page.locator(".spot:focus")).to_have_attribute("aria-label", re.compile("evicted 1st"))
    page.keyboard.press("ArrowRight")
    expect(page.locator(".spot:focus")).to_have_attribute("aria-label", re.compile("evicted 2nd"))
    page.keyboard.press("End")
    expect(page.locator(".spot:focus")).to_have_attribute("aria-label", re.compile("evicted 25th"))
    page.keyboard.press("ArrowUp")
    expect(page.locator(".spot:focus")).not_to_have_attribute("aria-label", re.compile("25th that the kubelet"))
    page.keyboard.press("Home")
    expect(page.locator(".spot:focus")).to_have_attribute("aria-label", re.compile("evicted 1st"))
    name = page.locator(".spot:focus").get_attribute("aria-label").split(",")[0].split("/")[1]
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name)


def test_filters_are_in_the_address_and_an_address_brings_them_back(visit, hundred):
    opened = visit(hundred)
    page = opened.open()
    page.keyboard.press("/")
    page.keyboard.type("web-6")
    page.get_by_label("Namespace").select_option("shop")
    page.get_by_label("Class").select_option("Guaranteed")
    expect(page.locator(".filters [role=status]")).to_have_text(re.compile(r"^\d+ of 100 pods on 1 of 4 nodes$"))
    assert _query(page) == {"q": "web-6", "ns": "shop", "class": "Guaranteed"}
    told = page.locator(".filters [role=status]").inner_text()
    again = visit(hundred).open(page.url.removeprefix(hundred.address))
    expect(again.locator(".filters [role=status]")).to_have_text(told)
    expect(again.locator("[data-filter]")).to_have_value("web-6")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".filters [role=status]")).to_have_text("100 pods")


# How bright the blocks are together: stripes and dots have the colour of the page.
BRIGHTNESS = """(canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(0, 0, canvas.width, canvas.height).data.reduce((sum, each) => sum + each, 0);
}"""


def _brightness(page):
    return page.locator(".blocks canvas").first.evaluate(BRIGHTNESS)


def _colour(page, place):
    canvas = page.locator(".blocks canvas").first.element_handle()
    return page.evaluate(COLOUR, [canvas, place])


def test_blocks_that_the_filters_do_not_let_through_are_drawn_faint(visit, hundred):
    page = visit(hundred).open("#/cluster?node=node-3&show=blocks")
    expect(page.locator(".panel")).to_have_count(1)
    _until(lambda: _colour(page, "first")[3] == _colour(page, "last")[3] == 255)
    priority = page.get_by_role("combobox", name="Priority")
    priority.select_option("1000")
    _until(lambda: _colour(page, "first")[3] < 128)
    assert _colour(page, "last")[3] == 255
    priority.select_option("all")
    _until(lambda: _colour(page, "first")[3] == 255)


def test_blocks_are_drawn_again_for_the_other_theme(visit, hundred):
    page = visit(hundred, color_scheme="light").open("#/cluster?node=node-1&show=blocks")  # all of them striped
    expect(page.locator(".panel")).to_have_count(1)
    light = _until(lambda: _painted(page) and _brightness(page))
    page.keyboard.press("t")
    _until(lambda: _brightness(page) < light)
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("t")
    _until(lambda: _brightness(page) == light)


def test_blocks_are_drawn_again_for_another_width(visit, hundred):
    page = visit(hundred, width=1280).open("#/cluster?show=blocks")
    _until(lambda: page.locator(".panel").count() == 4 and _painted(page))
    before = page.locator(".blocks canvas").first.evaluate("(canvas) => canvas.width")
    page.set_viewport_size({"width": 560, "height": 900})
    page.locator(".panels").scroll_into_view_if_needed()  # only what is in sight is drawn
    _until(lambda: page.locator(".blocks canvas").first.evaluate("(canvas) => canvas.width") != before)
    _until(lambda: _painted(page))
    sizes = "(canvas) => [canvas.width, Math.round(canvas.clientWidth * devicePixelRatio)]"
    drawn, shown = page.locator(".blocks canvas").first.evaluate(sizes)
    assert abs(drawn - shown) <= 1


def test_blocks_are_drawn_by_a_worker(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    _until(lambda: page.locator(".panel").count() == 4 and _painted(page))
    assert len(page.workers) == 1


@pytest.mark.parametrize("refusal", ["not there", "not allowed"])
def test_blocks_are_drawn_where_a_page_may_have_no_worker(visit, hundred, refusal):
    opened = visit(hundred)
    if refusal == "not there":
        opened.run_first("delete globalThis.Worker")
    else:
        opened.expected = "Content Security Policy"

        def without(route):
            response = route.fetch()
            headers = {name: value for name, value in response.headers.items() if name != "content-security-policy"}
            policy = response.headers["content-security-policy"].replace("worker-src blob:", "worker-src 'none'")
            route.fulfill(response=response, headers={**headers, "content-security-policy": policy})

        opened.page.route(opened.address, without)
    page = opened.open("#/cluster?show=blocks")
    _until(lambda: page.locator(".panel").count() == 4 and _painted(page))
    assert bool(opened.complaints) == (refusal == "not allowed")
    assert page.workers == []


def test_filters_that_no_pod_passes_say_so_and_can_be_taken_back(visit, hundred):
    page = visit(hundred).open("#/cluster?q=no-such-pod&show=blocks")
    expect(page.locator(".state h2")).to_have_text("No pods match")
    page.locator(".state").get_by_role("button", name="Show all").click()
    expect(page.locator(".panel")).to_have_count(4)


def test_a_node_can_be_looked_at_alone(visit, hundred):
    page = visit(hundred).open("#/cluster?show=blocks")
    page.get_by_role("region", name="node-2").get_by_role("link", name="node-2").click()
    expect(page.locator("h1")).to_have_text("node-2")
    expect(page.locator(".panel")).to_have_count(1)
    expect(page.get_by_role("region", name="Answer")).to_contain_text(re.compile("node-2: .* headroom before"))
    expect(page.get_by_role("heading", name="Next victims")).to_be_visible()
    assert _query(page) == {"show": "blocks", "node": "node-2"}
    page.get_by_role("link", name="All nodes").click()
    expect(page.locator(".panel")).to_have_count(4)


def test_both_orders_can_be_seen(visit, hundred):
    page = visit(hundred).open("#/cluster?node=node-1&show=blocks")
    page.get_by_role("radio", name="OOM kill order").check()
    assert _query(page)["order"] == "kernel"
    page.locator(".spot").focus()
    expect(page.locator(".spot:focus")).to_have_attribute("aria-label", re.compile("OOM-killed 1st"))


def test_the_table_holds_every_pod_and_sorts(visit, hundred):
    page = visit(hundred).open("#/cluster?show=table")
    table = page.get_by_role("table", name="Pods")
    expect(table).to_have_attribute("aria-rowcount", "101")
    table.get_by_role("button", name="Requested").click()
    table.get_by_role("button", name="Requested").click()
    expect(table.get_by_role("columnheader", name="Requested")).to_have_attribute("aria-sort", "descending")
    expect(table.locator(".pod-rows .requested").first).to_have_text("768Mi")
    assert _query(page) == {"show": "table", "sort": "-requested"}
    table.locator(".pod-rows a").first.focus()
    page.keyboard.press("End")
    expect(page.locator(".pod-rows [aria-rowindex='101'] a")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator(".pod-rows [aria-rowindex='2'] a")).to_be_focused()
    name = page.locator(".pod-rows [aria-rowindex='2'] a").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name.split("/")[1])


def test_a_table_that_is_filtered_and_scrolled_shows_the_pods_that_fit_and_no_others(visit, hundred):
    page = visit(hundred, height=500).open("#/cluster?show=table&sort=pod")
    table = page.get_by_role("table", name="Pods")
    expect(table).to_have_attribute("aria-rowcount", "101")
    page.locator("[data-filter]").fill("a-pod")
    expect(table).to_have_attribute("aria-rowcount", "21")
    page.mouse.move(640, 400)
    page.mouse.wheel(0, 20_000)
    expect(page.locator(".pod-rows [aria-rowindex='21'] a")).to_be_visible()
    shown = page.locator(".pod-rows a").all_inner_texts()
    assert shown == sorted(shown)
    assert all("/a-pod-" in each for each in shown)
    page.locator("[data-filter]").fill("")
    expect(table).to_have_attribute("aria-rowcount", "101")
    expect(page.locator(".pod-rows a").first).to_be_visible()


def test_the_key_v_shows_the_queue_the_blocks_and_the_table_in_turn(visit, hundred):
    page = visit(hundred).open()
    expect(page.get_by_role("table", name="Eviction order")).to_be_visible()
    page.keyboard.press("v")
    expect(page.locator(".panel").first).to_be_visible()
    page.keyboard.press("v")
    expect(page.get_by_role("table", name="Pods")).to_be_visible()
    page.keyboard.press("v")
    expect(page.get_by_role("table", name="Eviction order")).to_be_visible()


def test_keys_that_follow_each_other_faster_than_the_page_draws_all_count(visit, hundred):
    page = visit(hundred).open()
    expect(page.locator(".queue-pod").first).to_be_visible()
    page.evaluate("for (const key of 'vvvvv') document.dispatchEvent(new KeyboardEvent('keydown', {key}))")
    expect(page.get_by_role("table", name="Pods")).to_be_visible()
    assert page.url.endswith("show=table")


@pytest.mark.parametrize("route", ["", "#/cluster?show=blocks", "#/cluster?show=table", "#/cluster?node=node-0"])
def test_axe_finds_nothing_serious(visit, hundred, route):
    opened = visit(hundred)
    page = opened.open(route)
    expect(page.locator(".queue-pod, .panel, .pod-row").first).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert opened.violations() == [], scheme


@pytest.mark.parametrize("route", ["", "#/cluster?show=blocks", "#/cluster?show=table"])
def test_it_fits_whatever_the_width(visit, hundred, route):
    page = visit(hundred).open(route)
    # No row of the table has more in it than it shows, and no figure lies on another.
    spills = "(each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1"
    for width in (400, 768, 1280, 2560):
        resize(page, width, 3000)
        expect(page.locator(".queue-pod, .panel, .pod-rows .pod-row").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == [], width
        for kind in (".pod-rows .pod-row", ".figures-grid > div"):
            spilt = f"[...document.querySelectorAll('{kind}')].filter({spills}).map((each) => each.innerText)"
            assert page.evaluate(spilt) == [], width


def test_on_a_phone_views_are_in_a_menu_and_a_tap_opens_a_pod(visit, hundred):
    page = visit(hundred, width=400, has_touch=True, is_mobile=True).open("#/cluster?show=blocks")
    page.get_by_role("button", name="☰ Cluster").tap()
    expect(page.get_by_role("navigation").get_by_role("link", name="Cluster")).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="Cluster").tap()
    page.get_by_role("radio", name="Blocks").check()
    blocks = page.locator(".blocks").first
    blocks.scroll_into_view_if_needed()
    blocks.tap(position={"x": 10, "y": 10})
    expect(page.locator("h1")).to_have_text(re.compile("^(web|a-pod)-"))


def test_a_list_of_nothing_says_that_it_is_empty(visit, serve, tmp_path):
    (tmp_path / "nothing.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    page = visit(serve(tmp_path / "nothing.json")).open("#/cluster")
    expect(page.locator(".state h2")).to_have_text("No nodes or pods")
