"""The page of a run in a real browser: opened as a file, without a network."""

from __future__ import annotations

import re

import pytest

from browser.settling import settle
from browser.windows import PAGE
from podqos.cli.main import main

pytestmark = pytest.mark.slow


def _report(tmp_path_factory, scenario, *options):
    path = tmp_path_factory.mktemp("report") / f"{scenario}.html"
    assert main(["simulate", scenario, "--html", str(path), "-o", "csv", *options]) == 0
    return path


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    return _report(tmp_path_factory, "race")


LARGE = {"width": 1500, "height": 1000}


class Visit:
    """A page that is open, and everything it asked for or complained about."""

    def __init__(self, window, path, size=LARGE, scheme="null"):
        self.page = window
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme=scheme)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._listeners = {
            "request": lambda request: self.requests.append(request.url),
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
        }
        for event, listener in self._listeners.items():
            self.page.on(event, listener)
        self.page.goto(path.as_uri())
        settle(self.page)

    def close(self):
        """Hear no more of the window, which others have after this."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def orders(self):
        """Return the names in both orders, the kubelet's and the kernel's."""
        return [each.locator(".who").all_inner_texts() for each in self.page.locator(".orders .order").all()]


@pytest.fixture
def visit(window, race):
    opened = Visit(window, race)
    yield opened
    # Whatever a test did: the page asked nobody for anything and complained about nothing.
    assert opened.complaints == []
    assert opened.requests == [race.as_uri()]
    opened.close()


def test_it_tells_the_outcome_and_marks_every_kill(visit):
    headline = visit.page.locator(".headline").inner_text()
    assert headline == "2 OOM kills, no evictions; 7 of 9 pods unaffected."
    assert visit.page.locator(".marks .mark").count() == 2
    assert visit.page.title() == "race – podqos"


def test_victims_are_named_in_the_picture_with_the_reason(visit):
    assert visit.page.locator(".marks .victim").all_text_contents() == [
        "log-collector-worker-1",
        "analytics-pipeline-0",
    ]
    assert visit.page.locator(".marks .cause").all_text_contents() == ["all 64.0Gi of the machine used"] * 2


def test_a_picture_of_a_part_says_so_and_shows_all_when_asked(visit):
    assert visit.page.locator(".range").inner_text() == "first 11.5 s of 30 s shown"
    visit.page.get_by_role("button", name="Show all").click()
    assert visit.page.locator(".range").inner_text() == "the whole run: 30 s"
    assert visit.page.locator(".axis text").all_text_contents()[-1] == "30 s"


def test_every_check_of_the_kubelet_is_a_tick_and_the_one_after_the_kills_a_line_of_the_journal(visit):
    assert visit.page.locator(".panel.checks path.checks").first.get_attribute("d").count("M") == 2, "at 0 s and 10 s"
    assert "kubelet checked memory: 6Gi available, nothing to do" in visit.page.locator(".journal").text_content()


def test_panels_in_which_nothing_happens_are_named_and_drawn_when_asked(visit):
    assert visit.page.locator(".panel.cpu").count() == 0
    assert "CPU (no contention)" in visit.page.locator(".out").inner_text()
    visit.page.locator(".out .link").click()
    assert visit.page.locator(".panel.cpu").count() == 1


def test_amounts_are_written_as_kubernetes_does_everywhere(visit):
    texts = visit.page.locator("body").inner_text() + visit.page.locator(".charts").text_content()
    assert "64Gi" in texts
    assert re.findall(r"\d ?[KMG]i?B", texts) == []


def test_a_click_on_a_kill_tells_its_reasons_and_what_would_have_saved_the_pod(visit):
    visit.page.locator(".marks .mark .shape").nth(1).click()
    details = visit.page.locator(".kill.open")
    assert "analytics-pipeline-0" in details.locator("button").inner_text()
    reasons = details.locator(".reasons li").all_inner_texts()
    assert reasons[0].startswith("The machine used up its")
    assert any("oom_score_adj 937" in reason for reason in reasons)
    assert details.locator(".savings .saves").count() >= 1


def test_the_list_of_kills_opens_them_as_well(visit):
    visit.page.locator(".kill button").nth(1).click()
    assert visit.page.locator(".when").inner_text() == "2.100 s"
    assert visit.page.locator(".kill.open").count() == 1


def test_the_orders_are_those_at_the_cursor(visit):
    page = visit.page
    page.keyboard.press("Home")
    kubelet, kernel = visit.orders()
    at_start = page.locator(".moment").inner_text()
    assert (kubelet[0], kernel[0]) == ("log-collector-worker-1", "log-collector-worker-1")
    page.locator("#cursor").fill("2050000")
    later_kubelet, later_kernel = visit.orders()
    assert page.locator(".moment").inner_text() != at_start
    assert later_kubelet[0] == "analytics-pipeline-0"
    assert later_kernel[0] == "analytics-pipeline-0"
    assert "log-collector-worker-1" not in later_kubelet


def test_a_click_into_the_picture_moves_the_cursor(visit):
    picture = visit.page.locator(".charts svg").bounding_box()
    visit.page.mouse.click(picture["x"] + picture["width"] * 0.9, picture["y"] + 200)
    assert float(visit.page.locator(".when").inner_text().split()[0]) > 2.1


def test_all_of_it_can_be_done_by_keyboard(visit):
    page = visit.page
    page.keyboard.press("j")
    assert "analytics-pipeline-0" in page.locator(".kill.open button").inner_text()
    page.keyboard.press("k")
    assert "log-collector" in page.locator(".kill.open button").inner_text()
    before = page.locator(".cursor text").text_content()
    page.keyboard.press("ArrowRight")
    assert page.locator(".cursor text").text_content() != before
    page.locator(".marks .mark").nth(1).focus()
    page.keyboard.press("Enter")
    assert "analytics-pipeline-0" in page.locator(".kill.open button").inner_text()


def test_dragging_zooms_in_and_a_double_click_shows_all(visit):
    page = visit.page
    picture = page.locator(".charts svg").bounding_box()
    y = picture["y"] + 200
    page.mouse.move(picture["x"] + picture["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(picture["x"] + picture["width"] * 0.5, y, steps=5)
    page.mouse.up()
    assert "of 30 s" in page.locator(".range").inner_text()
    page.mouse.dblclick(picture["x"] + picture["width"] * 0.5, y)
    assert page.locator(".range").inner_text() == "the whole run: 30 s"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_theme_and_can_be_switched(window, race, scheme):
    opened = Visit(window, race, scheme=scheme)
    background = "getComputedStyle(document.body).backgroundColor"
    first = opened.page.evaluate(background)
    assert (first == "rgb(16, 21, 28)") == (scheme == "dark")
    opened.page.keyboard.press("t")
    assert opened.page.evaluate(background) != first
    assert opened.complaints == []
    opened.close()


def test_of_several_nodes_one_is_shown_at_a_time(window, tmp_path_factory):
    opened = Visit(window, _report(tmp_path_factory, "disk-pressure"))
    page = opened.page
    assert "(1 evicted)" in page.locator("#node option:checked").inner_text()
    assert page.locator(".kill").count() == 1
    assert page.locator("#kills").inner_text() == "Evicted"
    assert page.locator(".panel .title").first.text_content().startswith("nodefs.available")
    assert page.locator(".panel.memory").count() == 0
    assert "kill" not in page.locator(".kill button").inner_text()
    page.locator("#node").select_option("cluttered")
    assert page.locator(".kill").count() == 0
    assert page.locator(".panel.signal .title").first.text_content().startswith("nodefs.available")
    assert opened.complaints == []
    opened.close()


def test_the_limit_of_all_pods_meets_the_stack_where_the_kernel_kills(window, tmp_path):
    """The line follows what the system uses, below the pods, and the topmost band touches it at the first kill."""
    path = _scenario_page(tmp_path)
    opened = Visit(window, path)
    page = opened.page
    assert page.locator(".marks .cause").first.text_content() == "limit of all pods, 6Gi, reached"
    limit, stack = (
        page.locator(f".panel.memory {each}").last.get_attribute("d") for each in (".threshold.pods", ".band")
    )
    x = float(re.match(r"M([\d.]+)", page.locator(".mark .through").first.get_attribute("d"))[1])
    at_kill = next(y for at, y in _points(limit) if abs(at - x) < 0.2)
    assert min(y for at, y in _points(stack) if abs(at - x) < 0.2) == pytest.approx(at_kill, abs=0.3)
    assert opened.complaints == []
    opened.close()


def _points(path):
    return [tuple(map(float, point.split())) for point in path[1:].removesuffix("Z").split("L")]


def _scenario_page(folder):
    (folder / "pods.yaml").write_text(PODS)
    (folder / "limit.yaml").write_text(LIMIT)
    assert main(["simulate", str(folder / "limit.yaml"), "--html", str(folder / "limit.html"), "-o", "csv"]) == 0
    return folder / "limit.html"


PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: web, resources: {requests: {memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: leak}
spec: {restartPolicy: Never, containers: [{name: leak, image: leak, resources: {requests: {memory: 100Mi}}}]}
"""
LIMIT = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: limit}
spec:
  duration: 20s
  manifests: [pods.yaml]
  nodes:
    - name: node
      capacity: {memory: 8Gi, cpu: "4"}
      system: {memory: 1Gi over 10s}
      kubelet: {systemReserved: {memory: 2Gi}, evictionHard: {memory.available: 100Mi}}
  workloads:
    - {workload: default/web, demand: {memory: 1Gi}}
    - {workload: default/leak, demand: {memory: 10Gi over 9s}}
"""


def test_a_page_without_a_run_says_what_it_is_for(window, tmp_path):
    path = tmp_path / "bare.html"
    path.write_text(PAGE.read_text())
    opened = Visit(window, path)
    assert "podqos simulate" in opened.page.locator("main").inner_text()
    opened.close()
