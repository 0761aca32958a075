"""``podqos autopsy`` for people: a screen, a post-mortem, the data of a page. Nothing in a log is trusted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernel.oom_logs import CARRIERS, FORMS, cgroup, killed, machine, read
from podqos.cli.output import _unindented
from podqos.manifest.encoding import json_schema
from podqos.report.simulation.html import SLOT, page
from podqos.report.survival.autopsy import SCREEN, death_lines, text
from podqos.report.survival.autopsy_markdown import MOST_CHARACTERS, code, markdown, plain
from podqos.report.text.style import Style, visible_length
from podqos.survival.autopsy.autopsy import Autopsies, Examiner
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_scene import EvictionReason
from podqos.survival.autopsy.eviction_traces import EvictionCause
from podqos.words.autopsy_kills import of_kill
from podqos.words.autopsy_story import AutopsyPage, page_of
from podqos.words.evictions import of_eviction

ROOT = Path(__file__).parents[2]
NARROW = Style(width=80)
NASTY = (
    "<img src=x onerror=alert(1)>",
    "](http://evil.example)[x",
    "@octocat fixes #12",
    "`code` **bold** ~~gone~~ $x$",
    "| a | b |",
    "https://evil.example www.evil.example",
    ":boom: :+1:",
    "\x1b[2J\x1b]0;t\x07",
    "a\u202egnp.exe",
    "</script><script>alert(1)</script>",
    "&lt;b&gt; &#60;",
    "x" * 64,
    "\\",
)


def autopsies(lines) -> Autopsies:
    examiner = Examiner()
    return Autopsies(tuple(examiner.examine(report) for report in read(lines)))


def crowd(name: str = "a process", count: int = 400) -> list[str]:
    rows = [(pid, 1000, 1000 + pid, 10, 0, pid % 1000, name) for pid in range(2, count)]
    return cgroup(rows, count - 1, name)


@pytest.mark.parametrize(
    "lines",
    [
        machine(),
        *(machine(form=form) for form in FORMS),
        crowd(),
        crowd("n" * 64),
        [*machine()[:3], *machine()[-1:]],
        [killed(pid, "w" * 64) for pid in range(3)],
        [
            *crowd("member " * 6)[:-2],
            "Tasks in /kubepods/burstable/pod" + "p" * 200 + " are going to be killed due to memory.oom.group set",
            *(killed(pid, "member " * 6, why="Memory cgroup out of memory") for pid in range(2, 400)),
        ],
    ],
)
def test_a_death_never_takes_more_than_a_screen(lines):
    for kill in autopsies(map(CARRIERS["syslog"], lines)).kills:
        for told in (death_lines(of_kill(kill), NARROW), death_lines(of_kill(kill), Style(width=80, colour=True))):
            assert len(told) <= SCREEN
            assert max(map(visible_length, told)) <= 80


def test_an_eviction_with_a_long_message_never_takes_more_than_a_screen():
    pod = f"{'n' * 63}/{'p' * 253}"
    eviction = PodEviction(pod, EvictionCause.OTHER, None, EvictionReason.NOT_RANKED, message="word " * 900)
    told = death_lines(of_eviction(eviction), NARROW)
    assert len(told) <= SCREEN
    assert len(death_lines(of_eviction(eviction), NARROW, verbose=True)) > SCREEN


def test_more_is_shown_when_asked_for():
    (kill,) = autopsies(crowd()).kills
    assert len(death_lines(of_kill(kill), NARROW, verbose=True)) > len(kill.ranking)


def test_of_many_deaths_who_died_how_often_comes_first_and_the_last_in_full():
    lines = [
        line
        for pid in range(30)
        for line in machine([(900 + pid, 0, 90_000, 1, 0, 0, "hog")], kill=killed(900 + pid, "hog"))
    ]
    told = text(autopsies([*lines, *cgroup([(7, 0, 9, 1, 0, 0, "web")], 7, "web")]), NARROW)
    assert told[0] == "31 OOM kills, all explained by the rules."
    assert re.match(r"  DIED +WHO +BY +CAUSE +LAST", told[1])
    assert re.match(r"  30 +hog +kernel +its own usage", told[2])
    assert re.match(r"  1 +pod 11111111-2222-3333-4444-555555555555 +kernel +its own limit", told[3])
    assert [line for line in told if "killed." in line] == ["A container reached its limit: web (pid 7) was killed."]
    assert sum("was killed." in line for line in text(autopsies(lines), NARROW, verbose=True)) == 30


def test_a_post_mortem_has_timeline_cause_ranking_and_fix():
    told = markdown(autopsies(map(CARRIERS["syslog"], machine())))
    headings = [line for line in told if line.startswith("#")]
    assert headings == [
        "# Post-mortem: `java (main) [x]`",
        "## Timeline",
        "## What happened",
        "### Fix: what would have saved it",
        "### Ranking",
        "## Assumed",
    ]
    assert "| `Jan 5 15:19:27` | `node-1` | `java (main) [x]` | kernel | its own usage |" in told
    assert "| 1 | `java (main) [x]` | 102 | 150,300 | 587.1Mi | 0 | **killed** |" in told


def test_a_post_mortem_of_one_death_leads_with_it_and_says_it_once():
    told = markdown(autopsies(machine()))
    what = "The machine ran out of memory: java (main) \\[x\\] (pid 102) was killed."
    assert told[2] == f"**{what}**"
    assert sum(what in line for line in told) == 1


def test_what_was_free_is_not_called_full():
    told = text(autopsies(machine()), NARROW)
    assert any(line.startswith("  memory    43.0Mi free; the kernel keeps 43.9Mi") for line in told)
    assert not any(line.startswith("  full") for line in told)


def test_a_runner_up_with_the_same_badness_is_not_zero_pages_behind():
    rows = [(7, 0, 90_000, 1, 0, 0, "one"), (8, 0, 90_000, 1, 0, 0, "two")]
    told = text(autopsies(machine(rows, kill=killed(7, "one"))), NARROW)
    assert "  next      two (pid 8), with the same badness" in told


def rendered(lines) -> str:
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).render("\n".join(lines))


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_text_in_markdown(name):
    lines = markdown(autopsies(machine([(7, 0, 90_000, 1, 0, 0, name)], kill=killed(7, name))))
    html = rendered(lines)
    own = {"h1", "h2", "h3", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li"}
    assert set(re.findall(r"<(\w+)", html)) <= own
    assert html.count("<td") == rendered(
        markdown(autopsies(machine([(7, 0, 90_000, 1, 0, 0, "x")], kill=killed(7, "x"))))
    ).count("<td")
    # What GitHub does to the text afterwards, code left alone: mentions, references, addresses, emojis.
    words = re.sub(r"<code>.*?</code>|<[^>]*>", "", html)
    assert re.findall(r"@\w|#\w|://|www\.|:[a-z+-]\w*:|\x1b|\u202e", words) == []


@given(st.text("<>`*_[]()!#@:/|~$&\\^=+ abw.-1\n\t\x1b", max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_text_is_markup(text):
    for said in (f"a {plain(text)} b", code(text)):
        html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).renderInline(said)
        assert set(re.findall(r"<(\w+)", html)) <= {"code"}
        assert "<a" not in html
        assert "<img" not in html
        assert "\n" not in said


def test_a_long_post_mortem_is_cut_and_says_so():
    lines = [line for pid in range(300) for line in machine(kill=killed(pid, f"process-{pid}"))]
    told = "\n".join(markdown(autopsies(lines)))
    assert len(told) < MOST_CHARACTERS
    assert "… and 250 more." in told
    assert "more; `podqos autopsy -v` prints them all." in told


@pytest.mark.parametrize("name", NASTY)
def test_the_data_of_a_page_cannot_leave_its_element(name):
    view = page_of(autopsies(machine([(7, 0, 90_000, 1, 0, 0, name)], kill=killed(7, name))))
    made = page(f"<html>{SLOT}</html>", view)
    data = re.fullmatch(r'<html><script id="run" type="application/json">(.*)</script></html>', made, re.DOTALL)[1]
    assert "<" not in data
    assert json.loads(data)["deaths"][0]["ranking"][0]["name"] == name.strip()


def test_the_schema_of_the_page_is_published():
    schema = msgspec.json.decode(msgspec.json.encode(_unindented(json_schema(AutopsyPage))))
    assert schema == json.loads((ROOT / "docs/schema/autopsy-page.json").read_text())


def test_the_next_one_died_too_where_the_group_was_killed():
    lines = cgroup([(7, 1000, 9_000, 1, 0, 0, "big"), (8, 1000, 10, 1, 0, 0, "small")], 7, "big")
    both = ["Tasks in /x are going to be killed due to memory.oom.group set", killed(7, "big"), killed(8, "small")]
    (alone,), (together,) = autopsies(lines).kills, autopsies([*lines, *both]).kills
    assert of_kill(alone).next.startswith("small (pid 8), ")
    assert of_kill(alone).next.endswith(" behind")
    assert of_kill(together).next == f"{of_kill(alone).next}; it died as well"


@pytest.mark.parametrize(
    ("last", "what"),
    [
        ("Out of memory: Kill process 102 (java) score 570 or sacrifice child", "was chosen; the log ends before"),
        ("Out of memory and no killable processes...", "the kernel found no killable process."),
        ("something else", "the kill itself is not in the log."),
    ],
)
def test_what_happened_is_told_where_no_kill_is(last, what):
    (kill,) = autopsies(machine(kill=last)).kills
    assert what in of_kill(kill).what
