"""What a page of `podqos ui` is told without asking, and what may stand between it and its server."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from tests.browser.conftest import fixed_port

from serve.test_feeds_of_files import Guard

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

SCENARIOS = Path(__file__).parents[2] / "scenarios"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: "NAME", namespace: shop}
spec:
  nodeName: NODE
  containers:
    - {name: main, image: web, resources: {requests: {memory: MEMORY}, limits: {memory: 1Gi}}}
"""


class Folder:
    """Manifests that change."""

    def __init__(self, path):
        self.path = path
        path.mkdir()

    def put(self, name, memory="64Mi", node="worker-1"):
        text = POD.replace("NAME", name).replace("MEMORY", memory).replace("NODE", node)
        partial = self.path.parent / "partial"
        partial.write_text(text)
        partial.rename(self.path / f"{name}.yaml")

    def drop(self, name):
        (self.path / f"{name}.yaml").unlink()


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path / "manifests")
    folder.put("first")
    return folder


def told(page):
    return page.locator(".filters [role=status]")


def saved(page, what, path):
    page.get_by_text("Save", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=what).click()
    download.value.save_as(path)
    return path.read_text(encoding="utf-8")


def pods_asked(page):
    """Return the pods as the server has them now."""
    return page.evaluate("fetch('/api/sources/start/cluster').then((answer) => answer.json())")


def test_what_changes_reaches_the_cluster_the_pod_and_what_is_saved(visit, serve, folder, tmp_path):
    opened = visit(serve(folder.path))
    opened.expected = "status of 4"  # of a pod that is gone
    page = opened.open()
    expect(told(page)).to_have_text("1 pod")
    for number in range(5):
        folder.put(f"more-{number}", node=f"worker-{number % 2}")
    expect(told(page)).to_have_text("6 pods")
    folder.drop("more-3")
    folder.put("more-4", "500Mi", "worker-1")
    expect(told(page)).to_have_text("5 pods")
    expect(page.locator(".indicator")).to_have_text(
        re.compile(r"more-4\.yaml \(of 5 files\), changed (just now|\d+ s ago)$")
    )
    page.evaluate("location.hash = '#/pod/shop/first'")
    expect(page.locator("main")).to_contain_text("64Mi")
    folder.put("first", "80Mi")
    expect(page.locator("main")).to_contain_text("80Mi")
    # What is handed on is what is shown, and what the server has.
    answers = json.loads(saved(page, "Save the data as JSON", tmp_path / "data.json"))
    assert answers["/api/sources/start/cluster"] == pods_asked(page)
    [pod] = [answers[key] for key in answers if "/pods?" in key]
    assert "80Mi" in json.dumps(pod)
    assert "64Mi" not in json.dumps(pod["explanation"])
    folder.drop("first")
    expect(page.locator(".state[role=alert]")).to_contain_text("no such pod: shop/first")
    folder.put("first", "96Mi")
    expect(page.locator("main")).to_contain_text("96Mi")


def test_a_cluster_that_shrinks_to_nothing_says_so_and_grows_again(visit, serve, folder):
    (folder.path / "empty.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing}\n")
    page = visit(serve(folder.path)).open()
    expect(told(page)).to_have_text("1 pod")
    folder.drop("first")
    expect(page.locator(".state h2")).to_have_text("No nodes or pods")
    folder.put("first")
    expect(told(page)).to_have_text("1 pod")


def test_runs_are_still_there_when_the_page_is_loaded_again(visit, serve):
    page = visit(serve("oom-by-class")).open("#/run")
    expect(page.locator(".kill")).to_have_count(1)
    run = page.url
    page.reload()
    expect(page.locator(".kill")).to_have_count(1)
    assert page.url == run
    page.evaluate("location.hash = '#/run'")
    expect(page).to_have_url(run)
    page.get_by_text("Change values, run it again and compare").click()
    page.get_by_label("One change per line").fill("requests.memory@pod3=6Gi")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".sides .charts svg")).to_have_count(2)
    page.reload()
    expect(page.locator(".sides .charts svg")).to_have_count(2)
    assert len(page.evaluate("fetch('/api/jobs').then((answer) => answer.json())")) == 2
    page.evaluate("location.hash = '#/compare'")
    page.get_by_role("link", name="requests.memory@pod3=6Gi").click()
    expect(page.locator(".sides .charts svg")).to_have_count(2)


@pytest.mark.parametrize("between", ["refused", "kept back"])
def test_where_no_stream_comes_through_it_is_asked_for(visit, serve, folder, between):
    opened = visit(serve(folder.path))
    opened.expected = "ERR_FAILED"

    def stand_between(route):
        if "once" in route.request.url:
            route.continue_()
        elif between == "refused":
            route.abort()
        # A proxy that keeps everything back never answers.

    opened.page.route(re.compile("/api/live"), stand_between)
    page = opened.open()
    expect(told(page)).to_have_text("1 pod")
    folder.put("second")
    expect(told(page)).to_have_text("2 pods")
    expect(page.locator(".indicator")).to_have_text(re.compile(r"\.yaml.*, changed (just now|\d+ s ago)$"))


def test_a_page_that_is_not_looked_at_gives_its_stream_back_and_catches_up(visit, serve, folder):
    opened = visit(serve(folder.path))
    page = opened.open()
    expect(told(page)).to_have_text("1 pod")
    look = """(state) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(look, "hidden")
    folder.put("second")
    with page.expect_request(lambda request: "since=" in request.url):
        page.evaluate(look, "visible")
    expect(told(page)).to_have_text("2 pods")


def test_a_machine_that_slept_or_whose_clock_was_set_shows_an_age_that_is_true(visit, serve, folder):
    opened = visit(serve(folder.path))
    page = opened.open()
    expect(page.locator(".indicator")).to_have_text(re.compile(r"\.yaml.*, changed (just now|\d+ s ago)$"))
    # It wakes up an hour later: what is shown is at once that old, and soon new again.
    page.evaluate("{ const now = Date.now; Date.now = () => now() + 3600e3; }")
    expect(page.locator(".indicator .age")).to_have_text(re.compile("now|[0-9] s ago"))
    expect(page.locator(".indicator")).to_have_text(re.compile(r"\.yaml.*, changed (just now|\d+ s ago)$"))
    folder.put("second")
    expect(told(page)).to_have_text("2 pods")
    # The clock is set back a day.
    page.evaluate("{ const now = Date.now; Date.now = () => now() - 86400e3; }")
    folder.put("third")
    expect(told(page)).to_have_text("3 pods")
    expect(page.locator(".indicator .age")).to_have_text(re.compile("now|[0-9] s ago"))


def test_a_server_that_was_restarted_has_nothing_of_before_and_the_page_says_so(visit, serve, folder):
    address = f"127.0.0.1:{fixed_port()}"
    server = serve(folder.path, "--listen", address)
    opened = visit(server)
    opened.expected = "ERR_"
    page = opened.open()
    expect(told(page)).to_have_text("1 pod")
    page.keyboard.press("o")
    page.get_by_label("or paste").fill(POD.replace("NAME", "own").replace("MEMORY", "1Mi").replace("NODE", "mine"))
    page.get_by_role("button", name="Open pasted text").click()
    expect(page).to_have_url(re.compile("source="))
    server.stop()
    serve(folder.path, "--listen", address)
    expect(page.locator(".state h2")).to_have_text("This source is gone")
    page.evaluate("location.hash = '#/cluster?source=start'")
    expect(told(page)).to_have_text("1 pod")


def test_a_guard_is_shown_with_its_mode_what_holds_it_back_and_its_decisions(visit, serve, tmp_path):
    guard = Guard(tmp_path)
    tomorrow = time.time() + 86_400  # it is not stale however long this takes
    guard.tell(tomorrow)
    shutil.copy(SCENARIOS / "guard/journal.jsonl", tmp_path)
    opened = visit(serve("--guard", tmp_path, "--guard-run", tmp_path))
    page = opened.open()
    card = page.locator(".card", has_text="Latest decisions")
    expect(card).to_contain_text("Guard: shadow mode")
    expect(card).to_contain_text("shadow: it decides and logs, but evicts nothing")
    decision = card.locator("details", has_text="report-builder-0 would have been evicted").first
    decision.locator("summary").click()
    expect(decision).to_contain_text("the first of 31 in the eviction order")
    guard.tell(tomorrow, enforce=True, held_back="stop file", stop_file=True)
    expect(card).to_contain_text("Guard: evictions blocked")
    expect(card).to_contain_text("the stop file exists")
    guard.tell(tomorrow, enforce=True, held_back="")
    expect(card).to_contain_text("Guard: enforcing")
    assert opened.violations() == []
    for width in (400, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        expect(card).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    (tmp_path / "status.json").unlink()
    expect(page.locator(".indicator")).to_contain_text("no guard status")
