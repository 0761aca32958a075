"""The page of an autopsy in a real browser: opened as a file, without a network."""

from __future__ import annotations

import pytest

from browser.settling import resize
from browser.test_layout import CUT, WIDTHS, open_page
from browser.test_viewer import Visit
from kernel.oom_logs import CARRIERS, cgroup, killed, machine
from podqos.cli.main import main

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=document.title=1>"
ROWS = [(pid, 1000, 60_000 - 900 * pid, 100, 0, 500 - pid, f"worker {pid}") for pid in range(7, 60)]
WEB = [(7, 0, 200_000, 100, 0, -500, "web"), (8, 0, 150_000, 9, 0, 0, "side"), (9, 0, 9, 9, 0, -1000, "sandbox")]
POD = "a-namespace-with-a-long-name/a-pod-with-a-name-that-does-not-end-0"
LOG = [
    *machine(),
    *machine([(5, 0, 90_000, 1, 0, 0, EVIL)], kill=killed(5, EVIL)),
    *cgroup(ROWS, 7, "worker 7", limit_kb=4 << 20),
    *(line for more in range(2) for line in cgroup(WEB, 7, "web", limit_kb=(1 << 20) + more)),
    f'node-1 kubelet: I0105 15:19:27.7 1 e.go:1] "Eviction manager: pod is evicted successfully" pod="{POD}"',
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("autopsy")
    (folder / "kern.log").write_text("\n".join(map(CARRIERS["syslog"], LOG)) + "\n")
    assert main(["autopsy", str(folder / "kern.log"), "--html", str(folder / "page.html"), "-o", "csv"]) == 0
    return folder / "page.html"


@pytest.fixture
def visit(window, path):
    opened = Visit(window, path)
    yield opened
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]
    opened.close()


def test_the_outcome_comes_first_and_the_last_death_is_open(visit):
    assert visit.page.title() == "Autopsy – podqos"
    assert visit.page.locator(".headline").inner_text().startswith("5 OOM kills and 1 eviction: ")
    assert visit.page.locator(".tile b").all_inner_texts()[:2] == ["5", "1"]
    assert visit.page.locator(".kill > button[aria-expanded=true]").count() == 1
    assert visit.page.locator(".kill").first.locator(".details").is_visible()


def test_a_death_opens_with_the_keyboard(visit):
    other = visit.page.locator(".kill").nth(3)
    other.locator("button").focus()
    visit.page.keyboard.press("Enter")
    assert other.locator("button").get_attribute("aria-expanded") == "true"
    assert other.locator(".verdict").inner_text() == "The kernel killed the process its rule names: the highest badness"
    rows = other.locator(".ranking tbody tr")
    assert rows.count() == 10
    assert rows.first.locator("th").inner_text() == "worker 7 killed"
    assert other.locator(".details > div > p.quiet").inner_text() == "43 more tasks not shown."
    visit.page.keyboard.press("Enter")
    assert not other.locator(".details").is_visible()


def test_bars_are_as_long_as_what_they_show(visit):
    web = visit.page.locator(".kill").nth(2)
    web.locator("button").click()
    bars = web.locator(".badness")
    assert bars.count() == 2  # none for what is never chosen
    # web uses more and has a lower score: what the adjustment takes off is shown, and does not count.
    used = [bar.locator(".used").bounding_box()["width"] for bar in bars.all()]
    assert web.locator(".ranking tbody th .key").all_inner_texts() == ["side ranked higher", "web killed", "sandbox"]
    # Not by colour alone: who ranked before the victim is named, and has a frame.
    assert web.locator(".ranking tr.next .runner-up").all_inner_texts() == ["ranked higher"]
    assert bars.nth(0).evaluate("bar => getComputedStyle(bar).outlineStyle") == "solid"
    assert used[0] > used[1]
    assert bars.nth(1).locator(".off").bounding_box()["width"] > used[1]
    assert "subtracts" in bars.nth(1).get_attribute("aria-label")


def test_the_picture_of_the_memory_is_to_scale_and_has_a_table(visit):
    web = visit.page.locator(".kill").nth(2)
    web.locator("button").first.click()
    rows = web.locator(".tree li")
    names = [name.removesuffix(" killed") for name in rows.locator(".key").all_inner_texts()]
    pod = "pod 11111111-2222-3333-4444-555555555555"
    assert names == [pod, "container abababababab", "web (pid 7)", "side (pid 8)", "sandbox (pid 9)"]
    assert rows.nth(0).locator(".held").count() == 0  # nothing is known of the pod as a whole
    container = rows.nth(1).locator(".held").bounding_box()
    limit, peak = (rows.nth(1).locator(mark).bounding_box()["x"] for mark in (".limit", ".peak"))
    # An earlier report of the log has seen 4Gi in the same cgroup.
    assert limit == pytest.approx(container["x"] + container["width"] / 4, abs=2)
    assert peak == pytest.approx(container["x"] + container["width"], abs=2)
    web_width, side_width = (
        sum(part.bounding_box()["width"] for part in rows.nth(row).locator("i").all()) for row in (2, 3)
    )
    assert web_width / side_width == pytest.approx(200_100 / 150_009, rel=0.02)
    assert web_width / container["width"] == pytest.approx(200_100 / 262_144 / 4, rel=0.02)
    assert "limit 1Gi, peak 4Gi" in rows.nth(1).locator(".held").get_attribute("aria-label")
    web.get_by_text("Memory as a table").click()
    cells = web.locator(".as-table tbody tr").nth(3).locator("th, td").all_inner_texts()
    assert cells[0] == "side (pid 8)"
    assert "586.0Mi" in cells


def test_a_saved_page_says_how_to_explain_another_log(visit):
    assert "podqos ui and paste it there" in visit.page.locator("section:has(#another)").inner_text()


def test_names_are_text(visit):
    evil = visit.page.locator(".kill").nth(4)
    evil.locator("button").click()
    assert EVIL[:20] in evil.inner_text()
    assert visit.page.locator("img").count() == 0
    assert visit.page.title() == "Autopsy – podqos"


def test_who_would_have_been_next_is_named_and_how_far_behind(visit):
    worker = visit.page.locator(".kill").nth(3)
    worker.locator("button").first.click()
    victim, runner_up, third = (worker.locator(".ranking tbody tr").nth(place) for place in range(3))
    assert victim.locator("th").inner_text() == "worker 7 killed"
    assert runner_up.locator("th").inner_text() == "worker 8 next in line"
    assert third.locator(".runner-up").count() == 0
    behind = [row.locator("[data-name='Behind the victim']").inner_text() for row in (victim, runner_up, third)]
    assert behind == ["–", "7.6Mi", "15.2Mi"]


def test_the_same_victim_is_counted(visit):
    rows = [
        row.all_inner_texts()
        for row in (each.locator("th, td") for each in visit.page.locator("section:has(#groups) tbody tr").all())
    ]
    assert tuple(rows[0][1:4]) == ("3×", "kernel", "its own limit")


def test_dark_and_light(window, path):
    colours = []
    for scheme in ("dark", "light"):
        opened = Visit(window, path, scheme=scheme)
        colours.append(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        opened.page.keyboard.press("t")
        colours.append(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        opened.close()
    assert colours[0] == colours[3] != colours[1] == colours[2]


def test_it_fits_at_every_width(window, path):
    page = open_page(window, path, WIDTHS[0])
    for each in page.locator(".kill > button").all():
        if each.get_attribute("aria-expanded") == "false":
            each.click()
    for width in WIDTHS:
        resize(page, width)
        assert page.evaluate(CUT) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
