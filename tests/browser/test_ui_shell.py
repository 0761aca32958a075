"""What is around the views of `podqos ui`: files that are opened, what is live, saving, keys, and what goes wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.browser.conftest import AppVisit, fixed_port
from tests.browser.fleet import fleet
from tests.browser.test_layout import CUT

from browser.settling import resize, settle

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop}
spec:
  containers:
    - {name: main, image: web, resources: {requests: {memory: 64Mi}, limits: {memory: 128Mi}}}
"""
DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  for (const kind of ["dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: files }));
  }
}"""


@pytest.fixture(scope="module")
def empty(serve):
    return serve()


def test_without_a_source_the_page_says_how_to_give_it_one(visit, empty):
    opened = visit(empty)
    page = opened.open()
    expect(page.get_by_role("heading", level=1)).to_have_text("Which pod dies first?")
    expect(page.locator(".opened dt")).to_have_text(["manifests", "a snapshot", "a scenario", "a kernel log"])
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(["Autopsy"])  # all that needs no source
    assert opened.violations() == []
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_role("dialog", name="Open")).to_be_visible()
    assert opened.violations() == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Open")).to_have_count(0)


def test_manifests_that_are_pasted_are_shown(visit, empty):
    page = visit(empty).open()
    page.keyboard.press("o")
    dialog = page.get_by_role("dialog", name="Open")
    dialog.get_by_label("or paste").fill(POD.replace("NAME", "pasted"))
    dialog.get_by_role("button", name="Open pasted text").click()
    expect(page.locator(".queue-pod")).to_have_count(1)
    expect(page.locator(".queue-pod a")).to_have_attribute("aria-label", "shop/pasted")


MORE = """async (text) => {
  const { sources } = await (await fetch("/api/session")).json();
  const answer = await fetch(`/api/sources?name=more.yaml&to=${sources.at(-1).id}`, { method: "POST", body: text });
  return answer.status;
}"""


def test_a_cluster_that_is_as_it_was_is_not_sent_again_and_one_that_has_changed_is(visit, empty):
    page = visit(empty).open()
    page.evaluate(DROP, ["one.yaml", POD.replace("NAME", "one")])
    pods = page.locator(".queue-pod")

    def there_and_back():
        page.locator("a.name").first.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("one")
        with page.expect_response(re.compile("/cluster$")) as answer:
            page.go_back()
        return answer.value.status

    expect(pods).to_have_count(1)
    assert there_and_back() == 304
    expect(pods).to_have_count(1)
    assert page.evaluate(MORE, POD.replace("NAME", "other")) == 201
    assert there_and_back() == 200
    expect(pods).to_have_count(2)


def test_a_file_that_is_dropped_is_shown_and_files_that_are_chosen_belong_together(visit, empty):
    page = visit(empty).open()
    page.evaluate(DROP, ["one.yaml", POD.replace("NAME", "dropped")])
    expect(page.locator(".queue-pod a")).to_have_attribute("aria-label", re.compile("^shop/dropped"))
    page.get_by_role("button", name="Open", exact=True).click()
    chosen = [
        {"name": f"{name}.yaml", "mimeType": "text/yaml", "buffer": POD.replace("NAME", name).encode()}
        for name in ("two", "three")
    ]
    page.get_by_role("dialog").get_by_label("Files").set_input_files(chosen)
    expect(page.locator(".filters [role=status]")).to_have_text("2 pods")
    # What was opened before is still there, and the address tells which is shown.
    assert "source=" in page.url
    page.get_by_label("Source").select_option(index=0)
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")


def test_files_that_are_dropped_one_right_after_the_other_are_all_there(visit, empty):
    page = visit(empty).open()
    for name in ("one", "two", "three"):
        page.evaluate(DROP, [f"{name}.yaml", POD.replace("NAME", name)])
    sources = page.get_by_label("Source").locator("option")
    expect(sources).to_have_count(3)
    assert sorted(sources.all_inner_texts()) == ["one.yaml", "three.yaml", "two.yaml"]
    expect(page.locator(".queue-pod")).to_have_count(1)


def test_what_a_visitor_opens_another_does_not_see(visit, empty):
    page = visit(empty).open()
    page.evaluate(DROP, ["mine.yaml", POD.replace("NAME", "mine")])
    expect(page.locator(".queue-pod a")).to_have_attribute("aria-label", re.compile("^shop/mine"))
    other = visit(empty)
    other.open(page.url.removeprefix(empty.address))
    expect(other.page.locator(".state h2")).to_have_text("This source is gone")


def test_a_file_that_cannot_be_read_is_told_with_its_line(visit, empty):
    opened = visit(empty)
    page = opened.open()
    page.evaluate(DROP, ["bad.yaml", "kind: Pod\nmetadata: {name: [}\n"])
    page.locator(".problems summary").click()
    expect(page.locator(".problems li")).to_have_text(re.compile("^bad.yaml:2:19: error: broken YAML"))
    expect(page.locator(".state h2")).to_have_text("No pods could be read")
    assert opened.violations() == []


def test_a_file_that_podqos_does_not_read_is_told_with_its_name_once(visit, empty):
    opened = visit(empty)
    opened.expected = "422"
    page = opened.open()
    page.keyboard.press("o")
    image = {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"}
    told = opened.toast("^photo.png: a PNG picture, which podqos cannot open")
    page.get_by_role("dialog").get_by_label("Files").set_input_files(image)
    told()
    expect(page.get_by_role("heading", level=1)).to_have_text("Which pod dies first?")


def test_markup_in_a_name_stays_text(visit, empty):
    page = visit(empty).open()
    page.evaluate(
        DROP, ["<img src=x onerror=alert(1)>.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: '<b>bold</b>'}\n"]
    )
    page.locator(".problems summary").click()
    expect(page.locator(".problems li").first).to_contain_text("<img src=x onerror=alert(1)>.yaml")
    assert page.locator("img").count() == 0


def test_keys_lead_to_the_views_the_help_and_the_theme(visit, hundred):
    opened = visit(hundred)
    page = opened.open("#/pod/shop/web-3")
    expect(page.locator("h1")).to_have_text("web-3")
    page.keyboard.press("1")
    expect(page.locator("h1")).to_have_text("Cluster")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("queue, blocks and table")
    assert opened.violations() == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    # In a field a letter is a letter.
    page.locator("[data-filter]").focus()
    page.keyboard.type("t?o")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_first_tab_skips_the_bar(visit, hundred):
    page = visit(hundred).open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator(".view header a:focus, .view main a:focus, .view input:focus")).to_have_count(1)


def test_addresses_of_nothing_say_so(visit, hundred):
    opened = visit(hundred)
    opened.expected = "status of 4"
    page = opened.open("#/nowhere")
    expect(page.locator(".state h2")).to_have_text('No such page: "nowhere"')
    page.goto(hundred.address + "#/pod/shop/nobody")
    expect(page.locator(".state[role=alert]")).to_contain_text("nobody")
    page.goto(hundred.address + "#/cluster?source=gone")
    expect(page.locator(".state h2")).to_have_text("This source is gone")


def test_what_changes_is_shown_without_asking_and_a_server_that_comes_back_is_found(visit, serve, tmp_path):
    path = tmp_path / "pods.yaml"
    path.write_text(POD.replace("NAME", "first"))
    address = f"127.0.0.1:{fixed_port()}"
    server = serve(path, "--listen", address)
    opened = visit(server)
    opened.expected = "ERR_"
    page = opened.open()
    expect(page.locator(".indicator")).to_have_text(re.compile("^pods.yaml, changed"))
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")
    path.write_text(POD.replace("NAME", "first") + "---" + POD.replace("NAME", "second"))
    expect(page.locator(".filters [role=status]")).to_have_text("2 pods")
    server.stop()
    expect(page.locator(".indicator")).to_have_text(re.compile("^connection lost, reconnecting"))
    # What was there is still shown.
    expect(page.locator(".filters [role=status]")).to_have_text("2 pods")
    path.write_text(POD.replace("NAME", "third"))
    serve(path, "--listen", address)
    expect(page.locator(".indicator")).to_have_text(re.compile("^pods.yaml, changed"))
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")


def test_a_view_that_is_saved_opens_without_a_server_and_shows_the_same(browser, visit, serve, tmp_path):
    (tmp_path / "fleet.json").write_text(fleet(40, 4))
    page = visit(serve(tmp_path / "fleet.json")).open("#/cluster?class=BestEffort")
    told = page.locator(".filters [role=status]").inner_text()
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as one HTML file").click()
    download.value.save_as(tmp_path / "saved.html")
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the data as JSON").click()
    download.value.save_as(tmp_path / "data.json")
    answers = json.loads((tmp_path / "data.json").read_text())
    assert len(answers["/api/sources/start/cluster"]["pods"]) == 40
    saved = AppVisit(browser, (tmp_path / "saved.html").as_uri(), offline=True)
    again = saved.open()
    expect(again.locator(".filters [role=status]")).to_have_text(told)
    expect(again.locator("[aria-label=Filters] select").nth(1)).to_have_value("BestEffort")
    again.locator(".queue-pod a").first.click()
    expect(again.locator(".tile", has_text="QoS class")).to_contain_text("BestEffort")
    # What it does not hold it cannot know, and says so.
    again.goto(saved.address + "#/pod/shop/web-3")
    expect(again.locator(".state h2")).to_have_text("Not in this saved page")
    assert saved.violations() == []
    saved.close()


def test_a_saved_view_holds_nothing_of_another_source(visit, empty, tmp_path):
    page = visit(empty).open()
    page.evaluate(DROP, ["secret.yaml", POD.replace("NAME", "secret")])
    expect(page.locator(".queue-pod a")).to_have_attribute("aria-label", re.compile("^shop/secret"))
    page.evaluate(DROP, ["shared.yaml", POD.replace("NAME", "shared")])
    expect(page.locator(".queue-pod a")).to_have_attribute("aria-label", re.compile("^shop/shared"))
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as one HTML file").click()
    download.value.save_as(tmp_path / "saved.html")
    saved = (tmp_path / "saved.html").read_text(encoding="utf-8")
    assert "shared" in saved
    assert "secret" not in saved


def test_a_file_that_is_opened_is_there_at_once_and_the_bar_keeps_its_height(visit, hundred):
    page = visit(hundred, width=400).open()
    bar = page.locator(".bar")
    before = bar.bounding_box()["height"]
    page.route("**/api/session", lambda _: None)  # it does not come
    page.evaluate(DROP, ["pod.yaml", POD.replace("NAME", "web")])
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")
    expect(page.locator(".sources select")).to_have_value(re.compile(".+"))
    settle(page)
    assert bar.bounding_box()["height"] == before
    expect(page.locator(".sources option")).to_have_count(2)


def test_choosing_a_view_moves_none_of_the_others(visit, hundred):
    page = visit(hundred).open()
    links = page.locator(".bar nav a")
    places = [links.nth(index).bounding_box() for index in range(links.count())]
    page.keyboard.press("2")
    expect(page.locator(".bar nav a[aria-current]")).to_have_text("What if")
    assert [links.nth(index).bounding_box() for index in range(links.count())] == places


def test_a_view_that_there_is_not_fits_however_long_the_name_of_the_source_is(visit, serve, tmp_path):
    folder = tmp_path / ("a-folder-with-a-name-" * 6)
    folder.mkdir()
    shutil.copy(Path(__file__).parents[2] / "scenarios/content-platform/incident/kern.log", folder)
    page = visit(serve(folder / "kern.log"), width=400).open("#/check")
    expect(page.locator(".state h2")).to_contain_text("Check is not available for")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_what_is_around_the_views_fits(visit, empty):
    page = visit(empty).open()
    page.keyboard.press("o")
    for width in (400, 1280, 2560):
        resize(page, width)
        expect(page.get_by_role("dialog", name="Open")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == [], width
