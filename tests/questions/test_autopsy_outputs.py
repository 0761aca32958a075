"""``podqos autopsy`` for people: a screen, a post-mortem, the data of a page. Nothing in a log is trusted."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernel.oom_logs import CARRIERS, FORMS, cgroup, killed, machine, read
from podqos.logs.said import EvictionCause
from podqos.manifest.encoding import SLOT, embedded
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_death import Death, Eviction, Manner
from podqos.questions.autopsy_headline import headline
from podqos.questions.autopsy_oom import Examiner
from podqos.questions.autopsy_text import MOST_CHARACTERS, SCREEN, code, death_lines, markdown, plain, text
from podqos.questions.autopsy_words import worded
from podqos.text.style import Style, visible_length

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


def autopsies(lines) -> Autopsy:
    examiner = Examiner()
    deaths = tuple(worded(examiner.examine(report)) for report in read(lines))
    return Autopsy(deaths, headline=headline(deaths, 0))


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
    for kill in autopsies(map(CARRIERS["syslog"], lines)).deaths:
        for told in (death_lines(kill, NARROW), death_lines(kill, Style(width=80, colour=True))):
            assert len(told) <= SCREEN
            assert max(map(visible_length, told)) <= 80


def test_an_eviction_with_a_long_message_never_takes_more_than_a_screen():
    pod = f"{'n' * 63}/{'p' * 253}"
    found = Eviction(EvictionCause.OTHER, message="word " * 900)
    eviction = worded(Death(Manner.EVICTION, "another", pod=pod, eviction=found))
    told = death_lines(eviction, NARROW)
    assert len(told) <= SCREEN
    assert len(death_lines(eviction, NARROW, verbose=True)) > SCREEN


def test_more_is_shown_when_asked_for():
    (kill,) = autopsies(crowd()).deaths
    assert len(death_lines(kill, NARROW, verbose=True)) > len(kill.ranking)


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
    view = autopsies(machine([(7, 0, 90_000, 1, 0, 0, name)], kill=killed(7, name)))
    made = embedded(f"<html>{SLOT}</html>", view)
    data = re.fullmatch(r'<html><script id="run" type="application/json">(.*)</script></html>', made, re.DOTALL)[1]
    assert "<" not in data
    assert json.loads(data)["deaths"][0]["ranking"][0]["name"] == name.strip()


def test_the_next_one_died_too_where_the_group_was_killed():
    lines = cgroup([(7, 1000, 9_000, 1, 0, 0, "big"), (8, 1000, 10, 1, 0, 0, "small")], 7, "big")
    both = ["Tasks in /x are going to be killed due to memory.oom.group set", killed(7, "big"), killed(8, "small")]
    (alone,), (together,) = autopsies(lines).deaths, autopsies([*lines, *both]).deaths
    assert alone.next.startswith("small (pid 8), ")
    assert alone.next.endswith(" behind")
    assert together.next == f"{alone.next}; it died as well"


@pytest.mark.parametrize(
    ("last", "what"),
    [
        ("Out of memory: Kill process 102 (java) score 570 or sacrifice child", "was chosen; the log ends before"),
        ("Out of memory and no killable processes...", "the kernel found no killable process."),
        ("something else", "the kill itself is not in the log."),
    ],
)
def test_what_happened_is_told_where_no_kill_is(last, what):
    (kill,) = autopsies(machine(kill=last)).deaths
    assert what in kill.what
