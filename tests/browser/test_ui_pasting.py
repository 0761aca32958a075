"""An OOM log that is pasted into the page: explained as by the command, by keyboard alone, and not kept."""

from __future__ import annotations

import re

import pytest

from browser.settling import resize
from browser.test_layout import CUT, WIDTHS, open_page
from browser.test_ui_saved import _saved
from kernel.oom_logs import CARRIERS, POD, ROWS, cgroup, machine
from podqos.serve.sessions import PASTE_BYTES
from podqos.serve.work import pasted_autopsy

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

SECRET = "a line that is of no interest to anyone"
LOG = "\n".join(map(CARRIERS["syslog"], [SECRET, *cgroup(ROWS, 102, "java (main) [x]")]))
TWO = "\n".join(map(CARRIERS["syslog"], [*machine(), *cgroup(ROWS, 102, "java (main) [x]")]))
UID = POD.rpartition("-pod")[2].removesuffix(".slice").replace("_", "-")
KNOWN = f"""apiVersion: v1
kind: Pod
metadata: {{name: db-0, namespace: shop, uid: {UID}}}
spec:
  containers: [{{name: db, image: i, resources: {{limits: {{memory: 1Gi}}, requests: {{memory: 100Mi}}}}}}]
"""
KILLED = """status:
  containerStatuses:
  - name: db
    restartCount: 3
    lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: "2026-01-05T15:19:27Z"}}
"""
_PASTE = """([place, text, times]) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text.repeat(times));
  const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
  document.querySelector(place).dispatchEvent(event);
}"""


@pytest.fixture(scope="module")
def empty(serve):
    return serve()


def paste(page, text, place="textarea", times=1):
    page.evaluate(_PASTE, [place, text, times])


def explained(page, text, what=".kills"):
    page.get_by_role("textbox").fill(text)
    page.keyboard.press("Control+Enter")
    expect(page.locator(what)).not_to_have_count(0)


def test_an_empty_page_leads_to_the_box_and_the_answer_is_that_of_the_command(visit, empty):
    opened = visit(empty)
    page = opened.open()
    page.get_by_role("link", name="Autopsy", exact=True).click()
    expect(page.locator("h1")).to_have_text("Autopsy")
    expect(page.get_by_role("button", name="Explain")).to_be_disabled()
    expect(page.locator(".examples")).to_contain_text("kubectl describe pod")
    assert opened.violations() == []
    page.get_by_role("textbox").fill(LOG)
    page.get_by_role("button", name="Explain").click()
    expected = pasted_autopsy(LOG.encode(), None)
    expect(page.locator(".headline")).to_have_text(expected.page.deaths[0].what)
    expect(page.locator(".kill .verdict")).to_have_text(re.compile(re.escape(expected.page.deaths[0].verdict[1:])))
    expect(page.get_by_label("the command", exact=True)).to_have_text("podqos autopsy -")
    assert opened.violations() == []


def test_an_answer_that_is_incomplete_says_what_was_read_and_what_to_run_next(visit, empty):
    opened = visit(empty)
    page = opened.open("#/autopsy")
    text = KNOWN.replace("spec:", "spec:\n  nodeName: worker-3") + KILLED
    explained(page, text, "#next-steps")
    expected = pasted_autopsy(text.encode(), None).page
    expect(page.locator(".headline")).to_have_text(expected.lead)
    expect(page.locator("main > p.quiet")).to_have_text(expected.read)
    commands = [step.command for step in expected.next_steps]
    expect(page.locator(".steps pre")).to_have_text(commands)
    assert any("worker-3" in command for command in commands)
    assert opened.violations() == []


def test_wherever_the_focus_is_what_is_pasted_lands_in_the_box(visit, empty):
    page = visit(empty).open("#/autopsy")
    paste(page, LOG, "h1")
    expect(page.get_by_role("textbox")).to_have_value(LOG)
    expect(page.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".kill")).to_have_count(1)


def test_the_keyboard_alone_leads_from_one_log_to_the_next(visit, empty):
    page = visit(empty).open("#/autopsy")
    explained(page, LOG)
    page.keyboard.press("p")
    expect(page.get_by_role("textbox")).to_be_focused()  # with what was pasted before selected
    page.keyboard.insert_text("nothing of interest")
    page.keyboard.press("Control+Enter")
    expect(page.locator("main")).to_contain_text("The same on the command line")
    expect(page.get_by_role("textbox")).to_have_value("nothing of interest")
    page.go_back()
    page.go_back()
    expect(page.locator(".kill")).to_have_count(1)


def test_more_than_may_be_pasted_is_said_before_it_is_sent(visit, empty):
    page = visit(empty).open("#/autopsy")
    paste(page, "x" * 1024, times=PASTE_BYTES // 1024 + 1)
    expect(page.get_by_role("alert")).to_contain_text("8Mi of text; at most 8Mi can be pasted")
    expect(page.get_by_role("textbox")).to_have_value("")


def test_of_a_long_text_the_beginning_is_shown_and_all_of_it_is_explained(visit, empty):
    opened = visit(empty)
    page = opened.open("#/autopsy")
    quiet = "Jan  5 15:19:28 node-1 kernel: [ 5864.8] nothing of interest\n" * 50
    paste(page, "".join(f"{quiet}{LOG.replace('failcnt 12', f'failcnt {number}')}\n" for number in range(100)))
    expect(page.get_by_role("textbox")).to_have_count(0)  # with megabytes in it, a field no longer reacts
    expect(page.locator("pre.long")).to_contain_text("more lines")
    assert opened.violations() == []
    page.keyboard.press("Control+Enter")
    expect(page.locator(".headline")).to_contain_text("100 OOM kills")
    page.keyboard.press("p")
    expect(page.locator("pre.long")).to_be_focused()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("textbox")).to_be_focused()


def test_a_text_that_cannot_be_read_says_why_and_stays(visit, empty):
    opened = visit(empty)
    opened.expected = "status of 422"
    page = opened.open("#/autopsy")
    snapshot = '{"apiVersion":"podqos.dev/v1alpha1","kind":"ClusterSnapshot"}'
    page.get_by_role("textbox").fill(snapshot)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_have_text("pasted: a snapshot of a cluster (open it as a file)")
    expect(page.get_by_role("textbox")).to_have_value(snapshot)


def test_the_pods_of_the_source_name_the_victim_unless_that_is_not_wanted(visit, serve, tmp_path):
    (tmp_path / "pod.yaml").write_text(KNOWN)
    page = visit(serve(tmp_path / "pod.yaml")).open("#/autopsy")
    explained(page, LOG)
    expect(page.locator(".kill b").first).to_have_text("shop/db-0 (db)")
    expect(page.locator(".tree .container .key")).to_have_text("container db")
    expect(page.get_by_label("the command", exact=True)).to_have_text("podqos autopsy - -f pod.yaml")
    page.get_by_role("link", name="Paste another").click()
    page.get_by_label("Match victims to the pods").uncheck()
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".kill b").first).to_have_text(f"pod {UID}")


def test_a_saved_page_holds_the_answer_without_the_text_and_says_how_to_explain_another(visit, empty, window, tmp_path):
    page = visit(empty).open("#/autopsy")
    explained(page, TWO)
    page.keyboard.press("p")
    explained(page, LOG)
    expect(page.locator(".kill")).to_have_count(1)
    headline = page.locator(".headline").inner_text()
    path = _saved(page, tmp_path)
    assert SECRET not in path.read_text()
    assert "2 OOM kills" not in path.read_text()  # of what was pasted before
    saved = open_page(window, path, 1280)
    assert saved.locator(".headline").inner_text() == headline
    expect(saved.locator(".tree li")).to_have_count(5)
    saved.get_by_role("link", name="Paste another").click()
    expect(saved.get_by_role("textbox")).to_have_count(0)
    expect(saved.get_by_label("the command", exact=True)).to_have_text("dmesg | podqos autopsy -")


def test_what_was_pasted_is_gone_after_a_reload(visit, empty):
    page = visit(empty).open("#/autopsy")
    explained(page, LOG)
    page.reload()
    expect(page.locator(".headline")).to_have_text("The pasted text was not stored: paste it again")
    expect(page.get_by_role("textbox")).to_have_value("")


def test_the_box_and_the_answer_fit_at_every_width_in_both_colours(visit, empty):
    opened = visit(empty)
    page = opened.open("#/autopsy")
    for is_explained in (False, True):
        if is_explained:
            explained(page, LOG)
            page.get_by_text("Memory as a table").click()
        for width in WIDTHS:
            resize(page, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CUT) == [], width
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert opened.violations() == [], scheme
