"""The kill orders as a queue on the Cluster view, and what the page says of files that are edited meanwhile."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tests.browser.fleet import fleet

from browser.settling import resize, settle
from podqos.model.pod import QOSClass
from podqos.text.svg import shade

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


def rows(page):
    """Return the pods that are shown, from top to bottom."""
    names = page.locator(".queue-pod a").evaluate_all(
        """(links) => links.map((link) => [Number(link.dataset.line), link.getAttribute("aria-label")])"""
    )
    return [name for _, name in sorted(names)]


def rank(path, field):
    """Return the pods of the only node in one of the orders of `podqos rank`, each once."""
    command = [sys.executable, "-m", "podqos", "rank", str(path), "-o", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return list(dict.fromkeys(place["pod"] for place in report[field]))


@pytest.fixture(scope="module")
def thirty(serve, tmp_path_factory):
    path = tmp_path_factory.mktemp("queue") / "pods.json"
    path.write_text(fleet(30, 1))
    return path, serve(path)


def test_both_orders_are_those_of_podqos_rank_and_the_first_is_on_top(visit, thirty):
    path, server = thirty
    page = visit(server, height=2000).open()
    expect(page.get_by_role("table", name="Eviction order")).to_be_visible()
    settle(page)
    assert rows(page) == rank(path, "evictionOrder")
    expect(page.locator(".queue-pod").first.locator(".place")).to_have_text("1st")
    page.get_by_role("radio", name="OOM kill order").check()
    expect(page.get_by_role("table", name="OOM kill order")).to_be_visible()
    settle(page)
    assert rows(page) == rank(path, "killOrder")
    tops = page.locator(".queue-pod").evaluate_all("(rows) => rows.map((row) => row.getBoundingClientRect().height)")
    assert len(set(tops)) == 1


def test_a_row_tells_its_memory_in_words_and_draws_it_to_one_scale(visit, thirty):
    _, server = thirty
    page = visit(server).open()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="shop/web-9"))  # 256Mi, limit 1Gi
    cells = row.get_by_role("cell").all_inner_texts()
    assert cells[-3].split() == ["256Mi", "(assumed)"]
    assert cells[-2:] == ["256Mi", "1Gi"]
    widths = {
        kind: row.locator(f".part-{kind}").evaluate("(part) => part.getBoundingClientRect().right")
        for kind in ("used", "request", "limit")
    }
    assert widths["used"] == pytest.approx(widths["request"], abs=4)
    assert widths["limit"] > widths["request"]
    # Without colour: what is assumed is hollow, a limit is a bracket, none is an arrow.
    assert row.locator(".part-used").evaluate("(part) => getComputedStyle(part).backgroundColor") == "rgba(0, 0, 0, 0)"
    free = page.get_by_role("row").filter(has=page.get_by_role("link", name="shop/web-6"))
    expect(free.locator(".unlimited")).to_have_count(1)
    expect(free.locator(".part-limit")).to_have_count(0)


def test_the_keyboard_goes_from_row_to_row_and_opens_a_pod(visit, thirty):
    _, server = thirty
    page = visit(server).open()
    first = rows(page)[0]
    assert page.locator(".queue-lines a[tabindex='0']").count() == 1
    page.locator(".queue-lines a[tabindex='0']").focus()
    page.keyboard.press("End")
    expect(page.locator("a[data-line='29']")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("a[data-line='28']")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("a[data-line='0']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(first.split("/")[1])


def test_of_several_nodes_the_first_pods_are_shown_and_all_of_the_one_that_is_opened(visit, hundred):
    page = visit(hundred, height=2400).open()
    expect(page.locator(".queue-node")).to_have_count(4)
    expect(page.get_by_role("table", name="Eviction order")).to_have_attribute("aria-rowcount", str(1 + 4 * 7))
    page.get_by_role("link", name="20 more pods on node-2").click()
    expect(page.locator("h1")).to_have_text("node-2")
    expect(page.get_by_role("table", name="Eviction order")).to_have_attribute("aria-rowcount", "26")
    page.get_by_label("Class").select_option("BestEffort")
    expect(page.locator(".state h2")).to_have_text("No pods match")


def test_of_thousands_of_pods_only_those_that_are_seen_are_rendered_and_the_last_can_be_reached(visit, serve, tmp_path):
    text = fleet(5000, 1).replace('"memory": "64Gi"', '"memory": "6Ti"')
    (tmp_path / "fleet.json").write_text(text)
    page = visit(serve(tmp_path / "fleet.json")).open()
    expect(page.get_by_role("table", name="Eviction order")).to_have_attribute("aria-rowcount", "5001")
    assert page.locator(".queue-pod").count() < 100
    page.locator(".queue-lines a[tabindex='0']").focus()
    page.keyboard.press("End")
    expect(page.locator("[aria-rowindex='5001'] a")).to_be_focused()
    settle(page)
    assert page.locator(".queue-pod").count() < 100


@pytest.mark.parametrize("route", ["", "#/cluster?node=node-0", "#/cluster?order=kernel"])
def test_axe_finds_nothing_at_all_in_either_theme_and_width(visit, hundred, route):
    opened = visit(hundred)
    page = opened.open(route)
    for width in (1280, 390):
        resize(page, width)
        page.locator(".queue").evaluate("(queue) => queue.scrollIntoView()")
        expect(page.locator(".queue-pod").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert opened.violations() == [], (width, scheme)


def test_a_pod_has_one_colour_in_the_cluster_in_a_run_and_in_comparisons(visit, serve):
    opened = visit(serve("race"))
    page = opened.open()
    pod, colour = "batch/analytics-pipeline-0", shade(QOSClass.BURSTABLE, "batch/analytics-pipeline-0")
    found = page.locator(".queue-pod", has=page.get_by_role("link", name=pod)).locator(".swatch")
    assert found.evaluate("(swatch) => swatch.style.getPropertyValue('--pod')") == colour
    page = opened.open("#/what-if?pod=" + pod)
    expect(page.locator(f".swatch[style*='{colour}']").first).to_be_visible()
    page = opened.open("#/run")
    expect(page.locator(f"[fill='{colour}']").first).to_be_attached()


# ---- files that are edited -------------------------------------------------------------------------------------------

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers: [{name: main, image: web, resources: {requests: {memory: 100Mi}}}]
"""


def test_a_file_that_breaks_keeps_its_pods_with_a_banner_that_goes_when_it_is_good_again(visit, serve, tmp_path):
    web, other = tmp_path / "web.yaml", tmp_path / "db.yaml"
    web.write_text(DEPLOYMENT.replace("NAME", "web"))
    other.write_text(DEPLOYMENT.replace("NAME", "db"))
    page = visit(serve(web, other)).open()
    status = page.locator(".indicator")
    expect(status).to_have_text(re.compile(r"^(web|db)\.yaml \(of 2 files\), changed (just now|\d+ s ago)$"))
    expect(page.locator(".queue-pod")).to_have_count(2)
    web.write_text(DEPLOYMENT.replace("NAME", "web").replace("100Mi", "100Mx"))
    other.write_text(DEPLOYMENT.replace("NAME", "db").replace("100Mi", "300Mi"))
    banner = page.get_by_role("alert", name="Broken files")
    expect(banner).to_contain_text("web.yaml:9:68")
    expect(banner).to_contain_text('"100Mx" is not a valid quantity')
    expect(banner).to_contain_text("shows the last good state of this file")
    expect(status).to_have_text("web.yaml is broken, last good state")
    expect(page.locator(".queue-pod", has_text="web")).to_contain_text("100Mi")
    expect(page.locator(".queue-pod", has_text="db")).to_contain_text("300Mi")
    # It is said on every view.
    page.keyboard.press("2")
    expect(banner).to_be_visible()
    page.keyboard.press("1")
    web.unlink()
    expect(banner).to_contain_text("no such file")
    expect(page.locator(".queue-pod")).to_have_count(2)
    web.write_text(DEPLOYMENT.replace("NAME", "web").replace("100Mi", "150Mi"))
    expect(banner).to_have_count(0)
    expect(page.locator(".queue-pod", has_text="web")).to_contain_text("150Mi")
    expect(status).to_have_text(re.compile(r"^web\.yaml \(of 2 files\), changed"))


def test_more_pods_than_a_node_can_run_are_marked_as_the_problem_they_are(visit, serve, tmp_path):
    (tmp_path / "full.json").write_text(fleet(40, 1).replace('"pods": "5000"', '"pods": "20"'))
    page = visit(serve(tmp_path / "full.json")).open()
    expect(page.locator(".queue-card .trouble").first).to_have_text("⚠ 40 pods, but it can run only 20")
    expect(page.locator(".tile.kernel", has_text="node-0 has 40, but can run only 20")).to_be_visible()
    expect(page.locator(".tile.warned", has_text="pods without a memory limit")).to_contain_text("⚠ 20")
