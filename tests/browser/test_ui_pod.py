"""The view of a pod in `podqos ui`: its class and why, what is stored and written, its places, and how to be safer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.browser.test_layout import CUT

from browser.settling import resize

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

PLATFORM = Path(__file__).parents[2] / "scenarios" / "content-platform"
ROUTE = "#/pod/batch/analytics-pipeline-0"


@pytest.fixture(scope="module")
def platform(serve):
    return serve(PLATFORM / "platform", PLATFORM / "usage.csv")


def _card(page, title):
    return page.locator("section.card", has=page.get_by_role("heading", name=title, exact=True))


def test_it_tells_class_scores_places_and_cgroups(visit, platform):
    page = visit(platform).open(ROUTE)
    expect(page.locator(".headline")).to_have_text(
        "The kubelet evicts it 3rd, the kernel kills it 5th of 10 pods on its node."
    )
    why = _card(page, "Why Burstable")
    expect(why).to_contain_text("analytics requests 4130Mi memory but its limit is 10Gi")
    expect(why.locator("tbody tr")).to_have_count(1)
    expect(why).to_contain_text("1000 − 1000 × 4130Mi / 64Gi")
    expect(_card(page, "Stored after admission")).to_contain_text("PriorityClass batch-processing")
    cgroups = _card(page, "Cgroups")
    expect(cgroups).to_contain_text("/kubepods.slice/kubepods-burstable.slice")
    expect(cgroups.locator("tr", has_text="memory.max").first).to_contain_text("10737418240")
    places = _card(page, "Kill orders")
    expect(places).to_contain_text("3rd of 10 pods")
    expect(places).to_contain_text("monitoring/debug-tools: that one has priority 0, this pod 100000")
    expect(places).to_contain_text("batch/content-generator-0: this pod uses more than it requests, that one doesn't")
    expect(places).to_contain_text("the next one is killed first only if it uses 933.8Mi more")


def test_lines_of_yaml_that_save_it_come_first_and_their_patch_can_be_copied(visit, platform):
    opened = visit(platform, permissions=["clipboard-read", "clipboard-write"])
    page = opened.open(ROUTE)
    safer = _card(page, "How to protect it").locator(".safer").first
    expect(safer).to_contain_text("4130Mi → 8193Mi")
    expect(safer.locator(".after")).to_contain_text("OOM-killed 5th → 7th")
    expect(safer).to_contain_text("batch/content-generator-0 is evicted instead")
    expect(safer).to_contain_text("Cost: 4063Mi more memory is reserved, used or not.")
    safer.get_by_role("radio", name="Kustomize").check()
    told = opened.toast("Copied")
    safer.get_by_role("button", name="Copy Kustomize patch").click()
    told()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("apiVersion: apps/v1\nkind: Deployment")
    assert "memory: 8193Mi" in copied


def test_the_pod_that_goes_before_it_is_a_link_away(visit, platform):
    page = visit(platform).open(ROUTE)
    _card(page, "Kill orders").get_by_role("link", name="monitoring/debug-tools").click()
    expect(page.locator("h1")).to_have_text("debug-tools")
    page.get_by_role("link", name="← Cluster").click()
    expect(page.locator("h1")).to_have_text("Cluster")


def test_axe_finds_nothing_serious(visit, platform):
    opened = visit(platform)
    page = opened.open(ROUTE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert opened.violations() == [], scheme


def test_it_fits_whatever_the_width(visit, platform):
    page = visit(platform).open(ROUTE)
    expect(page.locator(".headline")).to_have_text(re.compile("^The kubelet"))
    for width in (400, 768, 1280, 2560):
        resize(page, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == [], width


ARTICLES = "production/article-service-6b9c7d5f4-x2x7q"


@pytest.fixture(scope="module")
def incident(serve, tmp_path_factory):
    table = tmp_path_factory.mktemp("incident") / "samples.csv"
    rows = [f"2026-11-16T03:{minute:02}:00Z,{ARTICLES},logging-sidecar,{minute * 4}Gi" for minute in range(1, 12)]
    rows += [f"2026-11-16T03:{minute:02}:00Z,{ARTICLES},article-service,3Gi" for minute in range(1, 12)]
    table.write_text("\n".join(("time,pod,container,memory", *rows, "")))
    folder = PLATFORM / "incident"
    return serve(folder / "pods.yaml", folder / "kern.log", table)


def test_memory_over_time_has_request_limit_and_the_moment_of_death(visit, incident):
    page = visit(incident).open(f"#/pod/{ARTICLES}")
    charts = page.locator(".usage-chart")
    expect(charts).to_have_count(2)
    limited = charts.filter(has=page.get_by_role("heading", name="article-service", exact=True))
    expect(limited.locator(".usage-level")).to_have_count(2)
    expect(limited.locator("svg")).to_contain_text("limit 4Gi")
    expect(limited.locator(".usage-death")).to_have_count(0)
    killed = charts.filter(has=page.get_by_role("heading", name="logging-sidecar", exact=True))
    words = "Peak 44Gi at 03:11:00, no request and no limit. OOM-killed at 03:12:07."
    expect(killed.locator("p").first).to_have_text(words)
    expect(killed.get_by_role("img")).to_have_accessible_name(f"Memory of logging-sidecar. {words}")
    expect(killed.locator(".usage-death.kernel text")).to_have_text("OOM-killed at 03:12:07")
    killed.get_by_text("Show as a table").click()
    expect(killed.get_by_role("row", name=re.compile("x2x7q"))).to_contain_text("11")


def test_without_samples_nothing_is_drawn_and_one_line_says_how_to_get_them(visit, platform):
    page = visit(platform).open("#/pod/monitoring/debug-tools")
    card = _card(page, "Memory over time")
    expect(card).to_contain_text("Not known. Open these files together with a table of time, pod, container and memory")
    expect(card.locator("svg")).to_have_count(0)
