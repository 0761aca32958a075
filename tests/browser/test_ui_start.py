"""The page before anything is open: a demo, a box to paste into, files and directories that are dropped."""

from __future__ import annotations

import re

import pytest
from tests.browser.conftest import fixed_port
from tests.browser.test_ui_shell import POD
from tests.library.page_sources import LOG, USAGE

from browser.settling import settle

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

PASTE = """([text, on]) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data });
  document.querySelector(on).dispatchEvent(event);
}"""
PASTE_FILE = """(bytes) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], "image.png", { type: "image/png" }));
  document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
}"""
# Directories come as entries, which a script cannot make: this is what a browser gives.
DROP_DIRECTORY = """(tree) => {
  const file = (path, text) => ({
    isDirectory: false, fullPath: "/" + path, file: (resolve) => resolve(new File([text], path.split("/").at(-1))),
  });
  const directory = (path, children) => {
    let listed = [Object.entries(children).map(([name, child]) => entry(`${path}/${name}`, child)), []];
    return { isDirectory: true, fullPath: "/" + path, createReader: () => ({
      readEntries: (resolve) => resolve(listed.shift() ?? []),
    }) };
  };
  const entry = (path, child) => (typeof child === "string" ? file(path, child) : directory(path, child));
  const items = Object.entries(tree).map(([name, child]) => ({ webkitGetAsEntry: () => entry(name, child) }));
  const event = new DragEvent("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], items, files: [] } });
  document.body.dispatchEvent(event);
}"""
SCENARIO = """apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 1m
  nodes: [{name: one, capacity: {cpu: 4, memory: 8Gi}}]
  workloads: [{workload: a, demand: {memory: 100Mi}}]
  manifests: []
"""


@pytest.fixture(scope="module")
def empty(serve):
    return serve()


def test_one_click_opens_the_demo_without_asking_anyone_else(visit, empty):
    opened = visit(empty)
    page = opened.open()
    page.get_by_role("button", name="Open the demo").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cluster")
    expect(page.locator(".facts")).to_contain_text("accidental-burstable.yaml")
    expect(page.locator(".filters [role=status]")).to_have_text("5 pods")
    page.get_by_role("link", name="Run", exact=True).click()
    expect(page.locator(".kill").first).to_be_visible()
    assert opened.elsewhere == []


PASTED = {
    "manifests": (POD.replace("NAME", "web"), "Cluster"),
    "a log": (LOG.decode(), "Autopsy"),
    "what kubectl describes": (
        "Name: web-0\nNamespace: shop\nContainers:\n  app:\n    Last State: Terminated\n      Reason: OOMKilled\n",
        "Autopsy",
    ),
}


@pytest.mark.parametrize("name", PASTED)
def test_what_is_pasted_anywhere_is_opened_as_what_it_is(visit, empty, name):
    text, title = PASTED[name]
    page = visit(empty).open()
    page.evaluate(PASTE, [text, "body"])
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator("main .card, main .panel").first).to_be_visible()


def test_text_in_the_box_is_opened_by_its_button_and_by_ctrl_enter(visit, empty):
    page = visit(empty).open()
    box = page.locator(".start textarea")
    button = page.get_by_role("button", name="Open pasted text")
    expect(button).to_be_disabled()
    box.fill(POD.replace("NAME", "typed"))
    button.click()
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")
    page.goto(empty.address + "#/")
    page = visit(empty).open()
    page.locator(".start textarea").fill(POD.replace("NAME", "typed"))
    page.locator(".start textarea").press("Control+Enter")
    expect(page.locator(".filters [role=status]")).to_have_text("1 pod")


def test_a_text_that_cannot_be_opened_stays_in_the_box_next_to_the_reason(visit, empty):
    opened = visit(empty)
    opened.expected = "422"
    page = opened.open()
    page.evaluate(PASTE, [USAGE.decode(), "body"])
    expect(page.locator(".start [role=alert]")).to_contain_text("a usage table without manifests")
    expect(page.locator(".start textarea")).to_have_value(USAGE.decode())
    assert opened.violations() == []


def test_a_picture_that_is_pasted_is_named_as_one(visit, empty):
    opened = visit(empty)
    opened.expected = "422"
    page = opened.open()
    told = opened.toast("image.png: a PNG picture, which podqos cannot open")
    page.evaluate(PASTE_FILE, list(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"))
    told()


def test_a_directory_is_opened_with_its_manifests_and_without_what_is_there_by_chance(visit, empty):
    opened = visit(empty)
    page = opened.open()
    told = opened.toast("^3 other files in the directory left out")
    one, two = (POD.replace("NAME", name) for name in ("one", "two"))
    rest = {"README.md": "# Shop", "logo.png": "\x89PNG", ".git": {"config.yaml": "a: 1"}}
    page.evaluate(DROP_DIRECTORY, {"shop": {"one.yaml": one, "more": {"two.yml": two}, **rest}})
    told()
    expect(page.locator(".filters [role=status]")).to_have_text("2 pods")
    expect(page.locator(".facts")).to_contain_text("shop/one.yaml and 1 more")


def test_several_files_that_are_dropped_belong_together(visit, empty):
    page = visit(empty).open()
    page.evaluate(DROP_DIRECTORY, {name: POD.replace("NAME", name[:-5]) for name in ("one.yaml", "two.yaml")})
    expect(page.locator(".filters [role=status]")).to_have_text("2 pods")


def test_a_directory_without_anything_to_read_is_said_to_be_so(visit, empty):
    opened = visit(empty)
    page = opened.open()
    told = opened.toast("^No file in this directory is a manifest, a log or a usage table")
    page.evaluate(DROP_DIRECTORY, {"shop": {"README.md": "# Shop"}})
    told()


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(visit, empty):
    opened = visit(empty)
    page = opened.open()
    told = opened.toast("^large.log has 33Mi; at most 32Mi can be opened here. Run podqos ui with the path instead")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(33 << 20)], "large.log"));
          const given = { bubbles: true, cancelable: true, dataTransfer: data };
          document.body.dispatchEvent(new DragEvent("drop", given));
        }"""
    )
    told()
    expect(page.get_by_role("heading", level=1)).to_have_text("Which pod dies first?")


def test_a_page_that_was_opened_while_the_server_was_away_shows_it_once_it_is_back(visit, serve):
    address = f"127.0.0.1:{fixed_port()}"
    server = serve("--listen", address)
    opened = visit(server)
    opened.expected = "ERR_"
    page = opened.open()
    page.route("**/api/session", lambda route: route.abort())
    page.reload()
    expect(page.locator(".state h2")).to_have_text("No connection")
    expect(page.locator(".state")).to_contain_text("tries again by itself")
    page.unroute_all()
    expect(page.get_by_role("heading", level=1)).to_have_text("Which pod dies first?")


def test_a_view_that_failed_is_there_once_the_server_is_back_and_a_run_is_computed_again(visit, serve, tmp_path):
    (tmp_path / "small.yaml").write_text(SCENARIO.replace("manifests: []", "manifests: [pods.yaml]"))
    (tmp_path / "pods.yaml").write_text(POD.replace("NAME", "a").replace(", namespace: shop", ""))
    address = f"127.0.0.1:{fixed_port()}"
    server = serve(tmp_path / "small.yaml", "--listen", address)
    opened = visit(server)
    opened.expected = re.compile("ERR_|404")  # a server that was restarted does not know the run
    page = opened.open("#/run")
    expect(page.locator(".charts svg").first).to_be_visible()
    server.stop()
    expect(page.locator(".indicator")).to_have_text(re.compile("^connection lost"))
    page.get_by_role("link", name="Forecast").click()
    expect(page.locator(".state h2")).to_have_text("No connection")
    serve(tmp_path / "small.yaml", "--listen", address)
    expect(page.locator(".state h2")).to_have_count(0)
    expect(page.locator("main .card").first).to_be_visible()
    page.go_back()
    expect(page.locator(".charts svg").first).to_be_visible()
    settle(page)
