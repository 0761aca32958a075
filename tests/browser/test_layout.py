"""Pages at the widths of phones, tablets and large screens: nothing is cut, and no text lies on another."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from browser.settling import resize, settle
from podqos.cli.main import main

pytestmark = pytest.mark.slow

SCENARIOS = sorted(path.stem for path in (Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
WIDTHS = (400, 768, 1280, 1920, 2560)

# Texts and marks of the picture that lie on one another, or stick out of it.
COLLISIONS = """() => {
  const picture = document.querySelector(".charts svg");
  const frame = picture.getBoundingClientRect();
  const shown = (each) => each.getAttribute("visibility") !== "hidden" && each.textContent.trim() !== "";
  const texts = [...picture.querySelectorAll("text:not(.glyph)")].filter(shown);
  const boxes = [...texts, ...picture.querySelectorAll(".marks .shape")].map((each) => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return { left, right, top, bottom, words: each.textContent || "a mark" };
  });
  const inside = (box) => box.left >= frame.left - 1 && box.right <= frame.right + 1;
  const found = boxes.filter((box) => !inside(box)).map((box) => `sticks out: ${box.words}`);
  boxes.forEach((one, index) => {
    for (const other of boxes.slice(index + 1)) {
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 1 && down > 2.5) found.push(`${one.words} / ${other.words}`);
    }
  });
  return found;
}"""
# Elements whose content does not fit, and tables that stick out of what they are in.
CUT = """() => {
  const texts = [...document.querySelectorAll("td, th, .who, .figures, .what, .tile *, .headline, .facts, p")]
    .filter((each) => getComputedStyle(each).display !== "inline" && each.clientWidth > 0)
    .filter((each) => each.scrollWidth > each.clientWidth + 1);
  const tables = [...document.querySelectorAll("table")]
    .filter((each) => each.getBoundingClientRect().right > each.closest(".card").getBoundingClientRect().right - 10);
  return [...texts, ...tables].map((each) => each.textContent);
}"""


def open_page(window, path, width):
    window.set_viewport_size({"width": width, "height": 900})
    window.goto(path.as_uri())
    settle(window)
    return window


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the page of a scenario, or of its blast radius, made once."""
    folder = tmp_path_factory.mktemp("pages")

    def page(command, scenario):
        path = folder / f"{command}-{scenario}.html"
        if not path.exists():
            assert main([command, scenario, "--html", str(path), "-o", "csv"]) == 0
        return path

    return page


CROWD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a-workload-with-a-name-that-goes-on-and-on-for-ever, namespace: a-team-with-a-long-name-of-its-own}
spec:
  replicas: 30
  template:
    spec: {containers: [{name: main, image: a, resources: {requests: {memory: 100Mi}, limits: {memory: 300Mi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hog}
spec:
  replicas: 5
  template: {spec: {containers: [{name: main, image: a, resources: {requests: {memory: 100Mi}}}]}}
"""
CROWDED = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: crowded-by-pods-with-names-that-do-not-end}
spec:
  duration: 10m
  manifests: [pods.yaml]
  nodes:
    - name: node
      capacity: {memory: 16Gi, cpu: "4"}
      kubelet:
        evictionHard: {memory.available: 500Mi}
        evictionSoft: {memory.available: 520Mi}
        evictionSoftGracePeriod: {memory.available: 1m}
  workloads:
    - workload: a-team-with-a-long-name-of-its-own/a-workload-with-a-name-that-goes-on-and-on-for-ever
      demand: {memory: 50Mi + 60Mi per minute, cpu: 100m}
    - {workload: default/hog, demand: {memory: 1Gi + 1Gi per minute, cpu: "3"}}
"""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowd")
    (folder / "pods.yaml").write_text(CROWD)
    (folder / "crowded.yaml").write_text(CROWDED)
    assert main(["simulate", str(folder / "crowded.yaml"), "--html", str(folder / "crowded.html"), "-o", "csv"]) == 0
    return folder / "crowded.html"


def test_many_victims_with_long_names_fit_as_well(window, crowded):
    page = open_page(window, crowded, WIDTHS[0])
    for width in WIDTHS:
        resize(page, width)
        assert page.locator(".marks .victim").count() >= 2, width
        assert page.evaluate(COLLISIONS) == [], width
        assert page.evaluate(CUT) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_text_of_a_picture_lies_on_another_and_nothing_is_cut(window, pages, scenario):
    page = open_page(window, pages("simulate", scenario), WIDTHS[0])
    nodes = page.locator("#node option").count()
    for node, everything in product(range(max(1, nodes)), (False, True)):
        if nodes:
            page.locator("#node").select_option(index=node)
        if everything and page.locator(".out .link").is_visible():
            page.locator(".out .link").click()
        for width in WIDTHS:
            resize(page, width)
            assert page.evaluate(COLLISIONS) == [], (width, node, everything)
            assert page.evaluate(CUT) == [], (width, node)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_blast_radius_has_the_frame_of_a_run_and_fits(window, pages):
    page = open_page(window, pages("blast", "race"), WIDTHS[0])
    assert page.locator("h1").inner_text() == "Blast radius"
    assert page.locator(".headline").inner_text().startswith("1 of 9 pods takes others down when it leaks: ")
    assert page.locator(".tile").count() >= 5
    assert page.locator(".deaths li").count() == 2
    # What the most dangerous leak does, over time: the victim shortly before the end.
    story = page.locator("section[aria-labelledby=story]")
    assert story.locator("h2").inner_text() == "The most dangerous leak: batch/analytics-pipeline-0 at 1Gi/s"
    assert "After 5.95 s, monitoring/log-collector-worker-1 is OOM-killed" in story.locator("li").inner_text()
    line, mark = (story.locator(part).bounding_box() for part in (".leak-line > i", ".leak-mark"))
    at = (mark["x"] + mark["width"] / 2 - line["x"]) / line["width"]
    assert 0.9 < at < 1
    for width in WIDTHS:
        resize(page, width)
        assert page.evaluate(CUT) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


SHORT = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: short-of-memory}
spec:
  duration: 10m
  manifests: [pods.yaml]
  nodes: [{name: node, capacity: {memory: 4Gi, cpu: "4"}, kubelet: {evictionHard: {memory.available: 500Mi}}}]
  workloads:
    - {workload: default/hog, replicas: 2, demand: {memory: 1900Mi}}
"""


def test_the_page_of_a_blast_names_pods_that_are_evicted_without_any_leak(window, tmp_path):
    (tmp_path / "pods.yaml").write_text(CROWD)
    (tmp_path / "short.yaml").write_text(SHORT)
    assert main(["blast", str(tmp_path / "short.yaml"), "--html", str(tmp_path / "page.html"), "-o", "csv"]) == 0
    page = open_page(window, tmp_path / "page.html", 400)
    assert page.locator("#evicted").inner_text() == "Evicted without any leak"
    assert page.locator("section[aria-labelledby=evicted] li").all_inner_texts() == ["default/hog-0 on node"]
    assert page.locator("section[aria-labelledby=evicted] p").inner_text() == "Leaks start after it is gone."
    assert page.evaluate(CUT) == []
