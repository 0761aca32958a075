"""What-if, forecast, check, runs, blast and autopsy of `podqos ui`, used as a person would: mouse, keyboard, phone."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.browser.test_layout import CUT
from tests.library.shop import shop as manifests
from tests.page.test_what_if import THREE, WEB, given, pod

from browser.fleet import fleet
from browser.settling import resize, settle
from podqos.page.fixes import FixRequest
from podqos.page.what_if import ForecastRequest
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
INCIDENT = SCENARIOS / "content-platform" / "incident"
WIDTHS = [400, 1280, 2560]


@pytest.fixture(scope="module")
def shop(serve, tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.yaml"
    path.write_bytes(manifests())
    return serve(path)


@pytest.fixture(scope="module")
def cluster(serve, tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_bytes(given(*THREE, *WEB, pod("big", "a", "2Gi"), pod("half", "b", "1Gi"))["all.json"])
    return serve(path)


@pytest.fixture(scope="module")
def scenario(serve):
    return serve(SCENARIOS / "oom-by-class.yaml")


def _is_whole(page):
    """Nothing is cut, and the page is not wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(CUT.replace('querySelectorAll("table")', 'querySelectorAll(".table table")')) == []


# ---- what if ---------------------------------------------------------------------------------------------------------


def test_an_edit_changes_class_score_and_order_at_once(visit, shop):
    page = visit(shop).open("#/what-if?pod=shop/web-1")
    expect(page.locator(".headline")).to_contain_text("shop/web-1 is Burstable")
    page.get_by_label("Memory request", exact=True).fill("1Gi")
    expect(page.locator(".headline")).to_contain_text("becomes Guaranteed")
    expect(page.locator(".tile", has_text="oom_score_adj")).to_contain_text("was 997")
    expect(page.locator(".scores")).to_contain_text("−997")
    expect(page.locator(".who-first .edited")).to_have_count(2)
    expect(page.get_by_label("the patch of Deployment shop/web", exact=True)).to_contain_text(
        "kubectl patch deployment web"
    )
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(".headline")).to_contain_text("is Burstable")


def test_the_address_holds_the_edit(visit, shop):
    opened = visit(shop)
    page = opened.open("#/what-if?pod=shop/db")
    page.get_by_label("Memory limit", exact=True).fill("")
    page.get_by_label("CPU limit").fill("")
    expect(page.locator(".headline")).to_contain_text("becomes BestEffort")
    again = visit(shop).open(page.url.removeprefix(opened.address))
    expect(again.locator(".headline")).to_contain_text("becomes BestEffort")
    expect(again.get_by_label("CPU limit")).to_have_value("")


def test_a_slider_is_moved_by_keys_and_says_what_was(visit, shop):
    page = visit(shop).open("#/what-if?pod=shop/web-0")
    slider = page.get_by_label("Memory request, slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".amount-field", has=slider)).to_contain_text("was 256Mi")
    expect(slider).not_to_have_attribute("aria-valuetext", "256Mi")


def test_what_the_api_server_refuses_is_said_and_what_was_stays(visit, shop):
    opened = visit(shop)
    opened.expected = "422"
    page = opened.open("#/what-if?pod=shop/web-0")
    expect(page.locator(".who-first li")).to_have_count(4)
    page.get_by_label("Memory request", exact=True).fill("3Gi")
    expect(page.get_by_role("alert")).to_contain_text("must be less than or equal to memory limit")
    expect(page.locator(".who-first li")).to_have_count(4)
    page.get_by_label("Memory request", exact=True).fill("512Mi")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_priority_and_a_threshold_change_the_kubelets_part(visit, shop):
    page = visit(shop).open("#/what-if?pod=shop/web-0")
    page.get_by_label("Priority").fill("1000")
    expect(page.locator(".headline")).to_contain_text("is evicted 3rd instead of 2nd")
    page.get_by_label(re.compile("^Hard threshold.*available\\)$")).fill("8Gi")
    expect(page.locator(".tile", has_text="headroom before eviction")).to_contain_text("was ")


def test_a_threshold_changes_the_forecast_of_a_pod_without_a_limit(visit, shop):
    page = visit(shop).open("#/what-if?pod=shop/shell")
    expect(page.locator(".curve .line.was")).to_have_count(0)
    page.get_by_label(re.compile("^Hard threshold.*available\\)$")).fill("8Gi")
    expect(page.locator(".curve .line.was")).to_have_count(1)


def test_another_pod_is_found_by_a_part_of_its_name(visit, shop):
    page = visit(shop).open("#/what-if")
    picker = page.get_by_label(re.compile("^Pod or workload"))
    picker.fill("db")
    picker.press("Enter")
    expect(page.locator(".headline")).to_contain_text("shop/db is Guaranteed")
    picker.fill("deployment")
    picker.press("Enter")
    expect(page.locator(".controls")).to_contain_text("2 pods of Deployment shop/web change")
    page.locator(".who-first").get_by_text("shell").click()
    expect(page.locator(".headline")).to_contain_text("shop/shell is BestEffort")


def test_edits_of_several_workloads_are_kept_while_one_looks_at_others(visit, shop):
    page = visit(shop).open("#/what-if?pod=shop/web-1")
    page.get_by_label("Memory request", exact=True).fill("1Gi")
    expect(page.locator(".headline")).to_contain_text("becomes Guaranteed")
    page.locator(".who-first").get_by_text("shop/db").click()
    expect(page.get_by_label("Memory limit", exact=True)).to_have_value("2Gi")
    page.get_by_label("Memory limit", exact=True).fill("3Gi")
    edits = page.get_by_role("list", name="Changes").get_by_role("listitem")
    expect(edits).to_have_count(2)
    expect(page.locator(".who-first .edited")).to_have_count(3)
    page.get_by_role("button", name="Undo the change to Deployment shop/web").click()
    expect(edits).to_have_count(1)
    expect(page.locator(".who-first .edited")).to_have_count(1)


def test_an_edit_is_seen_on_all_nodes_it_touches_and_what_no_longer_fits_is_said(visit, cluster):
    page = visit(cluster).open("#/what-if?pod=shop/web-1")
    page.get_by_label("Memory request", exact=True).fill("1200Mi")
    expect(page.locator(".card", has_text="2 nodes affected")).to_be_visible()
    expect(page.locator(".headline")).to_contain_text("on 2 nodes")
    page.get_by_text("only this pod").click()
    expect(page.get_by_label("Memory request", exact=True)).to_have_value("1Gi")
    page.get_by_label("Memory request", exact=True).fill("2500Mi")
    page.get_by_role("button", name="Undo the change to Deployment shop/web").click()
    mind = page.locator(".mind")
    expect(mind).to_contain_text("shop/web-1 no longer fits on a (memory: requests 2500Mi")
    expect(mind).to_contain_text("A new pod is scheduled to c.")
    expect(page.locator(".headline")).to_contain_text("shop/web-1 leaves a")
    page.locator("main table").get_by_role("link", name="c", exact=True).click()
    expect(page.locator(".who-first li", has_text="web-1")).to_contain_text("comes")


# ---- forecast --------------------------------------------------------------------------------------------------------


def test_threshold_interval_and_growth_move_the_curve(visit, shop):
    page = visit(shop).open("#/forecast")
    expect(page.locator(".headline")).to_contain_text("If shop/shell grows by 128Mi/s, the kernel kills it after 8 min")
    expect(page.get_by_text("The kernel acts first at every growth rate")).to_be_visible()
    expect(page.locator(".curve .line")).to_have_count(0)
    page.get_by_label(re.compile("^Hard threshold.*available\\)$")).fill("1Gi")
    expect(page.locator(".curve .line")).to_have_count(2)
    expect(page.locator(".headline")).to_contain_text("of the time the kubelet evicts it")
    interval = page.get_by_label("The kubelet checks every")
    interval.focus()
    page.keyboard.press("Home")
    expect(page.locator(".tile", has_text="acts first")).to_contain_text("the kubelet checks every 1 s")
    expect(page.locator(".headline")).to_contain_text("grows by 128Mi/s, the kubelet evicts it")
    rate = page.get_by_role("slider", name="Growth", exact=True)
    rate.focus()
    page.keyboard.press("End")
    expect(page.locator(".headline")).to_contain_text("grows by 8Gi/s")
    page.locator(".curve svg").scroll_into_view_if_needed()
    box = page.locator(".curve svg").bounding_box()
    page.mouse.click(box["x"] + 60, box["y"] + box["height"] / 2)
    expect(page.locator(".headline")).not_to_contain_text("grows by 8Gi/s")


def test_the_threshold_that_is_needed_can_be_tried(visit, shop):
    page = visit(shop).open("#/forecast")
    page.get_by_role("button", name=re.compile("^Try ")).click()
    expect(page.locator(".headline")).to_contain_text(re.compile("(99 % of the time|, ) ?the kubelet evicts it"))


def test_forecast_and_what_if_open_on_the_container_whose_growth_does_most_harm(visit, scenario):
    chosen = page_about(read_paths([str(SCENARIOS / "oom-by-class.yaml")])).forecast(ForecastRequest())
    assert "another pod is evicted or killed first" in chosen.chosen
    page = visit(scenario).open("#/forecast")
    expect(page.locator(".headline")).to_have_text(chosen.verdict)
    expect(page.locator(".race .moment.kernel")).to_have_count(1)
    assert page.locator(".race svg").get_attribute("aria-label").startswith(chosen.race)
    page.goto(page.url.replace("#/forecast", "#/what-if"))
    pod = chosen.growing.partition(":")[0]
    expect(page.locator(".headline")).to_contain_text(f"{pod} is ")
    expect(page.get_by_role("heading", name=f"If {chosen.growing} grows")).to_be_visible()


# ---- check -----------------------------------------------------------------------------------------------------------


def test_findings_are_grouped_by_check_and_a_group_shows_what_is_affected(visit, shop):
    page = visit(shop).open("#/check")
    expected = page_about(read_given({"shop.yaml": manifests()})).check()
    groups = page.locator(".check-group")
    expect(groups).to_have_count(len(expected.groups))
    expect(page.locator(".finding")).to_have_count(0)
    first = groups.first.get_by_role("button")
    expect(first).to_contain_text(expected.groups[0].title)
    expect(first).to_have_attribute("aria-expanded", "false")
    first.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".finding")).to_have_count(len(expected.groups[0].items))
    expect(page.locator(".finding").first).to_contain_text(expected.items[expected.groups[0].items[0]].subject)
    page.reload()
    expect(page.locator(".finding")).to_have_count(len(expected.groups[0].items))
    page.get_by_role("searchbox", name="Find").fill("shell")
    expect(page.locator(".group-who", has_text="shop/shell")).not_to_have_count(0)


def test_one_click_fixes_all_findings_of_a_check(visit, shop):
    expected = page_about(read_given({"shop.yaml": manifests()}))
    group = next(group for group in expected.check().groups if group.fix)
    page = visit(shop).open(f"#/check?open={group.check}")
    page.get_by_role("button", name=f"{group.fix}: show the diff").click()
    (fixed,) = expected.fix(FixRequest(checks=(group.check,))).files
    added = [line for line in fixed.diff.splitlines()[2:] if line.startswith("+")]
    expect(page.locator(".check-group .diff .added")).to_have_count(len(added))
    assert [line.rstrip("\n") for line in page.locator(".check-group .diff .added").all_inner_texts()] == added


def test_many_findings_are_short_and_an_open_group_is_rendered_where_one_looks(visit, serve, tmp_path):
    path = tmp_path / "fleet.json"
    path.write_text(fleet(440, 5))
    page = visit(serve(path)).open("#/check")
    expect(page.locator(".check-group")).not_to_have_count(0)
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    page.locator(".check-group", has_text="PQ108").get_by_role("button").first.click()
    expect(page.get_by_text("main has no ephemeral-storage limit")).to_be_visible()
    rows = page.locator(".check-group .finding")
    expect(rows.first).to_be_visible()
    assert 0 < rows.count() < 150
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.locator('.finding[aria-posinset="330"]')).to_be_visible()
    settle(page)
    boxes = [row.bounding_box() for row in rows.all()]
    assert all(one["y"] + one["height"] <= other["y"] + 1 for one, other in itertools.pairwise(boxes))


def test_the_fixes_of_all_checks_are_a_diff_to_download(visit, shop):
    page = visit(shop).open("#/check")
    expected = page_about(read_given({"shop.yaml": manifests()}))
    page.get_by_role("button", name="Show the fixes as a diff").click()
    (fixed,) = expected.fix(FixRequest()).files
    expect(page.locator(".diff .added").first).to_be_visible()
    added = [line for line in fixed.diff.splitlines()[2:] if line.startswith("+")]
    assert [line.rstrip("\n") for line in page.locator(".diff .added").all_inner_texts()] == added
    with page.expect_download() as download:
        page.get_by_role("button", name="Fixed file").click()
    assert Path(download.value.path()).read_text() == fixed.text
    assert download.value.suggested_filename == "shop.yaml"


def test_only_the_checks_that_are_chosen_are_fixed(visit, shop):
    page = visit(shop).open("#/check?fix=all")
    box = page.locator(".fix-choice input").first
    name = page.locator(".fix-choice label").first.inner_text().partition(" ")[0]
    box.check()
    expect(page).to_have_url(re.compile(f"fix={name}"))
    expect(page.locator(".fixed")).to_contain_text("left")


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_scenario_is_run_played_and_compared_with_other_values(visit, scenario):
    opened = visit(scenario)
    page = opened.open("#/run")
    expect(page.locator("h1")).to_have_text("oom-by-class")
    expect(page.locator(".kill")).to_have_count(1)
    cursor = page.get_by_label("Time", exact=True)
    page.keyboard.press("Home")  # from the beginning it plays longest
    before = cursor.input_value()
    page.keyboard.press("p")
    expect(page.locator(".play")).to_contain_text("Pause")
    expect(cursor).not_to_have_value(before)
    page.keyboard.press("p")
    expect(page.locator(".play")).to_contain_text("Play")
    stopped = cursor.input_value()
    page.keyboard.press("ArrowLeft")
    expect(cursor).not_to_have_value(stopped)
    page.get_by_text("Change values, run it again and compare").click()
    page.get_by_label("One of 3").select_option("default/pod3")
    page.get_by_label("Memory request", exact=True).fill("6Gi")
    expect(page.get_by_label("One change per line")).to_have_value("requests.memory@default/pod3=6Gi")
    expect(page.get_by_label("the command", exact=True)).to_contain_text("--what-if requests.memory@default/pod3=6Gi")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator("h1")).to_have_text("Compare")
    expect(page.locator(".sides .charts svg")).to_have_count(2)
    expect(page.locator(".headline")).to_contain_text("instead of")
    expect(page.locator("tr.different").first).to_be_visible()
    expect(page.locator(".compared").first).to_have_text(re.compile("does not run|saved|new"))
    # Side by side is over the same time.
    settle(page)
    for _ in range(600):
        sides = [side.locator(".axis text").all_text_contents() for side in page.locator(".sides .charts").all()]
        if sides[0] == sides[1]:
            break
        page.wait_for_timeout(100)
    assert sides[0] == sides[1] != []
    for width in WIDTHS:
        resize(page, width)
        _is_whole(page)
    assert opened.violations() == []


@pytest.mark.parametrize("view", ["run", "blast"])
def test_who_leaves_before_a_run_has_begun_is_not_called_back(visit, scenario, view):
    page = visit(scenario).open("#/cluster")
    begun = []
    page.route("**/api/jobs", lambda route: begun.append(route))  # noqa: PLW0108 - playwright marks what it is given
    page.evaluate("(view) => location.assign(`#/${view}`)", view)
    while not begun:
        page.wait_for_timeout(50)
    page.keyboard.press("1")
    expect(page.locator("h1")).to_have_text("Cluster")
    with page.expect_response("**/api/jobs") as answer:
        begun[0].continue_()
    answer.value.finished()
    settle(page)
    assert page.url.endswith("#/cluster")
    page.evaluate("(view) => location.assign(`#/${view}`)", view)
    expect(page.locator(".tile").first).to_be_visible()  # where one comes back, there it is


def test_controls_show_what_the_lines_say_and_keys_in_them_leave_the_cursor(visit, scenario):
    page = visit(scenario).open("#/run")
    expect(page.locator(".kill")).to_have_count(1)
    page.get_by_text("Change values, run it again and compare").click()
    lines = page.get_by_label("One change per line")
    lines.fill("kubelet.evictionHard.memory.available=1Gi\nspec.duration=90s")
    threshold = page.get_by_label("Hard threshold (memory.available)", exact=True)
    expect(threshold).to_have_value("1Gi")
    expect(page.get_by_label("Duration")).to_have_value("90s")
    threshold.fill("2Gi")
    expect(lines).to_have_value("spec.duration=90s\nkubelet.evictionHard.memory.available=2Gi")
    cursor = page.get_by_label("Time", exact=True)
    before = cursor.input_value()
    page.get_by_label("Memory growth").focus()
    page.keyboard.press("ArrowRight")
    expect(lines).to_have_value(re.compile(r"growth@default/pod3=1\.25"))
    assert cursor.input_value() == before


def test_a_change_that_makes_no_sense_is_said(visit, scenario):
    page = visit(scenario).open("#/run")
    page.get_by_text("Change values, run it again and compare").click()
    page.get_by_label("One change per line").fill("limits.memory@nothing=1Gi")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".state.failed")).to_contain_text("the scenario has no workload nothing")


# ---- blast -----------------------------------------------------------------------------------------------------------


def test_the_matrix_is_sorted_and_clicked(visit, scenario):
    page = visit(scenario).open("#/blast")
    rows = page.locator(".matrix [role=rowheader]")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Leaking pod").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Leaking pod")
    first = rows.first.inner_text()
    page.get_by_role("button", name="Leaking pod").click()
    expect(rows.first).not_to_have_text(first)
    settle(page)  # the other rows follow
    cell = page.locator(".matrix .cell").first
    cell.focus()
    page.keyboard.press("Enter")
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".chosen-death")).to_contain_text("is victim number 1")
    # Above the matrix is what the chosen leak does.
    assert cell.get_attribute("aria-label").partition(" leaks")[0] in page.locator("#story").inner_text()


CROWD = 40


@pytest.fixture(scope="module")
def crowd(serve, tmp_path_factory):
    """Serve a node that is almost full: whichever pod leaks slowly, those of lower priority are evicted first."""
    folder = tmp_path_factory.mktemp("crowd")
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: full}\nstatus: {capacity: {memory: 16Gi}}\n"
    pods = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number:02}, uid: uid-{number}}}\n"
        f"spec: {{nodeName: full, priority: {number}, containers: [{{name: c, image: i}}]}}\n"
        for number in range(CROWD)
    )
    kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    (folder / "all.yaml").write_text("---\n".join([node, *pods]))
    (folder / "kubelet.yaml").write_text(kubelet + "evictionHard: {memory.available: 1Gi}\n")
    (folder / "usage.csv").write_text("\n".join(["pod,memory", *(f"p{number:02},380Mi" for number in range(CROWD))]))
    return serve(folder / "all.yaml", folder / "kubelet.yaml", folder / "usage.csv")


def test_a_matrix_that_is_larger_than_its_box_is_drawn_where_one_looks_and_all_of_it_is_reached_by_key(visit, crowd):
    page = visit(crowd, width=400).open("#/blast?sort=-pod")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(CROWD + 1))
    expect(grid).to_have_attribute("aria-colcount", str(CROWD + 2))  # the last pod is never taken down
    settle(page)
    assert page.locator(".matrix tbody tr").count() < CROWD
    link = page.locator(".matrix .pods a").first
    expect(link).to_have_text(f"default/p{CROWD - 1}")
    link.focus()
    page.keyboard.press("End")
    last = page.locator(".matrix .cell:focus")
    expect(last).to_have_attribute("aria-label", re.compile(f"p{CROWD - 1} leaks: .* is victim number"))
    expect(last).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(last).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".chosen-death")).to_contain_text(f"If default/p{CROWD - 1} leaks 4Mi/s")
    page.keyboard.press("Home")
    expect(link).to_be_focused()
    for _ in range(CROWD - 1):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".matrix a:focus")).to_have_text("default/p00")
    owner = page.locator(f".matrix tr[aria-owns={page.locator('.matrix .corner:focus-within').get_attribute('id')}]")
    expect(owner).to_have_attribute("aria-rowindex", str(CROWD + 1))
    page.reload()  # what was chosen is in the address
    expect(page.locator(".chosen-death")).to_contain_text(f"If default/p{CROWD - 1} leaks 4Mi/s")


def test_a_large_matrix_stays_in_its_card_and_axe_finds_nothing_serious(visit, crowd):
    opened = visit(crowd)
    page = opened.open("#/blast")
    heights = (
        "all => all.filter(each => each.scrollHeight > each.parentElement.clientHeight).map(each => each.innerText)"
    )
    for width in WIDTHS:
        resize(page, width)
        expect(page.locator(".matrix .cell").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.violations() == [], width
        assert page.locator(".matrix .pods a").evaluate_all(heights) == [], width


# ---- autopsy ---------------------------------------------------------------------------------------------------------


def test_a_log_that_is_given_is_taken_apart(visit, shop):
    page = visit(shop).open("#/cluster")
    page.keyboard.press("o")
    page.locator("dialog input[type=file]").first.set_input_files(INCIDENT / "kern.log")
    expect(page.locator("h1")).to_have_text("Autopsy")
    expected = page_about(read_paths([str(INCIDENT / "kern.log")])).autopsy()
    expect(page.locator(".headline")).to_have_text(expected.deaths[0].what)
    expect(page.locator(".facts")).to_contain_text("2026-11-16 03:12:07 UTC")
    page.locator(".kills button").first.focus()
    page.keyboard.press("Enter")


def test_a_view_that_a_log_does_not_have_says_which_there_are(visit, serve):
    page = visit(serve(INCIDENT / "kern.log")).open("#/check")
    expect(page.locator(".state h2")).to_have_text("Check is not available for kern.log")
    page.locator(".state").get_by_role("link", name="Autopsy").click()
    expect(page.locator("h1")).to_have_text("Autopsy")


# ---- while it comes --------------------------------------------------------------------------------------------------

# What is pushed away although the reader did nothing, and by what.
_SHIFTS = """
globalThis.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, sources } of list.getEntries()) {
    const words = sources.map(({ node }) => node?.textContent.slice(0, 60) ?? "");
    // The age of what is shown is beside what the reader reads.
    if (value > 0.005) shifts.push([value, ...words]);
  }
}).observe({ type: "layout-shift", buffered: true });
"""


SHIFTING = [
    "#/cluster",
    "#/cluster?show=table",
    "#/cluster?q=nothing",
    "#/pod/shop/shell",
    "#/what-if?pod=shop/web-0",
    "#/forecast",
    "#/check",
    "#/run",
    "#/blast",
]


@pytest.mark.parametrize("width", [400, 1280])
def test_what_is_seen_stays_where_it_is_when_more_of_the_page_comes(visit, shop, scenario, width):
    for server in (shop, scenario):
        opened = visit(server, width=width)
        opened.run_first(_SHIFTS)
        for route in SHIFTING:
            if (route in OF_SCENARIO) is (server is scenario):
                opened.page.goto("about:blank")  # nothing of the view before
                page = opened.open(route)
                expect(page.locator("main .card").first).to_be_visible()
                settle(page)
                assert page.evaluate("shifts") == [], route


# ---- all of them -----------------------------------------------------------------------------------------------------

OF_SHOP = [
    "#/what-if?pod=shop/web-0&write=" + quote(json.dumps({"Deployment shop/web": {"main.requests.memory": "1Gi"}})),
    "#/forecast?hard=1Gi",
    "#/check?fix=all",
]
OF_SCENARIO = ["#/run", "#/blast"]


def _settled(page):
    """Wait until nothing is awaited."""
    expect(page.locator("main .card").first).to_be_visible()
    settle(page)


@pytest.mark.parametrize(("route", "title"), [(OF_SHOP[0], "Change"), (OF_SHOP[1], "Settings"), (OF_SHOP[2], "Fixes")])
def test_on_a_phone_what_is_changed_comes_before_what_changes(visit, shop, route, title):
    page = visit(shop, width=400).open(route)
    _settled(page)
    tops = page.locator("main .card").evaluate_all(
        "all => all.map(each => [each.getBoundingClientRect().top, each.querySelector('h2')?.textContent ?? ''])"
    )
    assert min(tops)[1] == title


def test_an_assumption_says_what_the_page_takes_and_no_option_that_it_does_not_have(visit, shop, scenario):
    opened = visit(shop)
    for route in ("#/cluster", "#/pod/shop/db", "#/what-if", "#/forecast", "#/check", "#/blast"):
        opened.page.goto("about:blank")  # nothing of the view before
        page = opened.open(route)
        assumed = page.locator("main .card", has=page.get_by_role("heading", name=re.compile("^Assumed")))
        expect(assumed).to_contain_text("node memory: 64Gi (add a Node with its capacity to the files)")
        expect(assumed).not_to_contain_text("--")


def test_both_orders_of_a_run_begin_at_one_height(visit, scenario):
    page = visit(scenario).open("#/run")
    heads = page.locator(".orders h3")
    expect(heads).to_have_count(2)
    first, last = heads.evaluate_all("all => all.map((each) => each.getBoundingClientRect().top)")
    assert first == last


@pytest.mark.parametrize("route", OF_SHOP + OF_SCENARIO)
def test_nothing_is_cut_at_any_width_and_axe_finds_nothing_serious(visit, shop, scenario, route):
    opened = visit(shop if route in OF_SHOP else scenario)
    page = opened.open(route)
    _settled(page)
    for width in WIDTHS:
        resize(page, width)
        _is_whole(page)
        assert opened.violations() == [], width
    page.emulate_media(color_scheme="dark")
    assert opened.violations() == []
