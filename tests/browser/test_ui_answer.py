"""The answer card of `podqos ui`: seen at once on a desk and on a phone, copied from, and tried."""

from __future__ import annotations

import pytest
from tests.library.shop import shop

from browser.fleet import fleet

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

USAGE = "pod,container,memory\nweb-0,main,900Mi\nweb-1,main,900Mi\ndb,db,300Mi\nshell,shell,50Mi\n"
CLIPBOARD = """() => {
  globalThis.copied = "";
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { copied = text; } } });
}"""


@pytest.fixture(scope="module")
def crowded(serve, tmp_path_factory):
    """Serve a shop whose web uses far more than it requests."""
    folder = tmp_path_factory.mktemp("crowded")
    (folder / "shop.yaml").write_bytes(shop())
    (folder / "usage.csv").write_text(USAGE)
    return serve(*sorted(folder.iterdir()))


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_answer_is_above_the_fold(visit, crowded, width, height):
    opened = visit(crowded, width=width, height=height)
    card = opened.open().get_by_role("region", name="Answer")
    expect(card).to_contain_text("shop/web-0: it uses 644Mi more than it requests")
    expect(card).to_contain_text("Who acts first")
    tried = card.get_by_role("link", name="Try it")
    expect(tried).to_be_visible()
    box = tried.bounding_box()
    assert box["y"] + box["height"] <= height
    assert (
        card.evaluate("(card) => card.scrollWidth <= card.clientWidth && card.getBoundingClientRect().right") <= width
    )
    assert opened.violations() == []


def test_copy_takes_the_fix_and_try_it_opens_what_if_with_it(visit, crowded):
    opened = visit(crowded)
    page = opened.open()
    page.evaluate(CLIPBOARD)
    card = page.get_by_role("region", name="Answer")
    said = opened.toast("Copied: the lines to write")
    card.get_by_role("button", name="Copy YAML").click()
    said()
    assert "kind: Deployment" in page.evaluate("copied")
    assert "memory: 1Gi" in page.evaluate("copied")
    card.get_by_role("link", name="Try it").click()
    expect(page.locator("h1")).to_have_text("What if")
    expect(page.get_by_label("Memory request", exact=True)).to_have_value("1Gi")
    expect(page.locator(".headline")).to_contain_text("shop/web-1 becomes Guaranteed")
    expect(page.get_by_text("768Mi more memory is reserved for each of 2 pods")).to_be_visible()


def test_a_change_that_is_withheld_is_tried_only_by_who_asks_for_it(visit, serve):
    opened = visit(serve("accidental-burstable"))
    page = opened.open()
    card = page.get_by_role("region", name="Answer")
    expect(card).to_contain_text("No safe fix for production/article-service-0")
    expect(card.get_by_role("button", name="Copy")).to_have_count(0)
    card.get_by_role("link", name="Try it anyway").click()
    expect(page.locator(".headline")).to_contain_text("production/article-service-0 becomes Guaranteed")
    page.goto(f"{opened.address}#/pod/production/article-service-0")
    protection = page.locator(".card", has_text="How to protect it")
    expect(protection).to_contain_text("No safe fix. Make it Guaranteed")
    protection.get_by_role("link", name="Try it anyway").click()
    expect(page.locator(".headline")).to_contain_text("production/article-service-0 becomes Guaranteed")


def test_what_if_states_the_headroom_of_the_card(visit, crowded):
    page = visit(crowded).open()
    card = page.get_by_role("region", name="Answer")
    left = card.locator(".answer-head p").inner_text().partition(": ")[2]
    assert left.endswith("headroom before an OOM kill")
    page.get_by_role("link", name="What if", exact=True).click()
    tile = page.locator(".tile", has_text="headroom before an OOM kill")
    expect(tile).to_contain_text(left.partition(" ")[0])
    page.get_by_label("Memory request", exact=True).fill("1Gi")
    expect(page.locator(".headline")).to_contain_text("becomes")
    expect(tile).to_contain_text(left.partition(" ")[0])


def test_the_next_to_die_take_a_line_each_whatever_they_are_called(visit, serve, tmp_path):
    (tmp_path / "fleet.json").write_text(fleet(50, 5))
    rows = visit(serve(tmp_path / "fleet.json")).open().locator(".answer-next li")
    expect(rows).to_have_count(5)
    assert rows.filter(has_text="a-pod-with-a-name").count() > 0
    assert len(set(rows.evaluate_all("(rows) => rows.map((row) => row.offsetHeight)"))) == 1
    for row in rows.all():
        assert row.locator(".answer-pod .quiet").evaluate("(word) => word.scrollWidth <= word.clientWidth + 1")
