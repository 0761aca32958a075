"""Lines that only look like the OOM killer's are passed over after a while, and a report after them is found still."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.carriers import CARRIERS
from kernel.oom_logs import cgroup, killed, machine
from podqos.answers import log_marks, oom_reports
from podqos.answers.kubelet_side import KubeletSide
from podqos.answers.log_marks import Needle
from podqos.answers.oom_reports import reports
from podqos.kernel import oom_blocks, oom_reading, task_table
from podqos.kernel.carriers import cleaning, tokens
from podqos.kernel.carriers.cleaning import cleaned
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.oom_marks import is_kernels_own, next_own
from podqos.survival.autopsy.what_was_read import WhatWasRead

ROWS = [(pid, 1000, 1000 + pid, 10, 0, 100, f"worker {pid}") for pid in range(100, 140)]
LINES = [*machine(ROWS, kill=killed(139, "worker 139"))]
NEAR = "".join(
    f"Jan  5 15:19:27 node-7 app[{at}]: {words}\n"
    for at in range(300)
    for words in (f"Killed process {at} by hand", "oom-kill: none today", f"oom_reaper {at}", f"fine {at}")
)
"""Lines with the words of the OOM killer."""


def _read(text: str):
    found = list(reports(io.BytesIO(text.encode()), KubeletSide()))
    return [(report.chosen, list(report.victims), report.constraint, list(report.tasks)) for report in found]


def _lines_read(monkeypatch, text: str) -> int:
    fed = []
    read = Unwrapper.read
    with monkeypatch.context() as patched:
        patched.setattr(Unwrapper, "read", lambda self, lines: fed.extend(lines) or read(self, lines))
        _read(text)
    return len(fed)


def _without_limit(monkeypatch):
    for limit in ("_PATIENCE", "_PATIENCE_LATER"):
        monkeypatch.setattr(oom_reports, limit, 1 << 40)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_report_is_found_after_lines_that_only_look_like_one(monkeypatch, carrier):
    text = "".join(NEAR.splitlines(keepends=True)[:120]) + CARRIERS[carrier](LINES)
    monkeypatch.setattr(oom_reports, "_PATIENCE", 20)
    found = _read(text)
    _without_limit(monkeypatch)
    assert found == _read(text)


@pytest.mark.parametrize("limit", ["first", "later"])
def test_lines_that_only_look_like_reports_are_passed_over_after_a_while(monkeypatch, limit):
    before = "" if limit == "first" else ("x" * 120 + "\n") * 3000
    monkeypatch.setattr(oom_reports, "_PATIENCE" if limit == "first" else "_PATIENCE_LATER", 200)
    other = _lines_read(monkeypatch, before)
    assert _lines_read(monkeypatch, before + NEAR) < other + 500
    _without_limit(monkeypatch)
    assert _lines_read(monkeypatch, before + NEAR) > other + 1000


def test_a_mark_that_tells_nothing_is_believed_for_fewer_lines_each_time(monkeypatch):
    told = "Jan  5 15:19:27 node-7 app[1]: oom-kill:constraint= is what we grep for\n" + "anything\n" * 500
    monkeypatch.setattr(oom_reports, "_PATIENCE", 200)
    assert _lines_read(monkeypatch, NEAR + told * 20) < _lines_read(monkeypatch, NEAR) + 4000
    assert _read(NEAR + told * 20 + "".join(f"[1.5] {line}\n" for line in LINES))[-1][0] == 139


def test_what_a_runtime_prints_is_read_to_its_end_and_what_only_begins_so_is_not(monkeypatch):
    container = (
        '  "Id": "{:064x}",\n  "State": {{\n    "OOMKilled": true,\n    "ExitCode": 137\n  }},\n' + "  other,\n" * 40
    )
    text = "".join(container.format(at) for at in range(300))
    monkeypatch.setattr(oom_reports, "_PATIENCE", 200)
    assert _lines_read(monkeypatch, text) == len(text.splitlines())
    assert _lines_read(monkeypatch, container.format(1) + "anything\n" * 90_000) < 50_000


def test_every_event_of_a_log_of_events_is_read(monkeypatch):
    event = '{{"kind":"Event","involvedObject":{{"kind":"Pod","name":"web-{}"}},"reason":"Pulled","message":"{}"}}\n'
    text = "".join(event.format(at, "image " * 200) for at in range(600))
    monkeypatch.setattr(oom_reports, "_PATIENCE", 3000)
    side = KubeletSide()
    list(reports(io.BytesIO(text.encode()), side))
    assert side.read_in(WhatWasRead()).events == 600


@pytest.mark.parametrize(
    ("line", "is_own", "is_begun"),
    [
        ("Killed process 7 (java) total-vm:1kB", True, True),
        ("Killed process 7 (java (main) [x]), UID 0, total-vm", True, True),
        ("Killed process 7, UID 33, (php) total-vm:1kB", True, True),
        ("Killed process 7 (java)\n", True, True),
        ("Killed process 7 (ja\n", False, True),
        ("Killed process\n", False, True),
        ("Killed process 7 by hand\n", False, False),
        ("oom-kill:constraint=CONSTRAINT_NONE", True, True),
        ("oom-kill:const\n", False, True),
        ("oom-kill:const ants\n", False, False),
        ("oom-killer: gfp_mask=0xcc0", True, True),
        ("oom-killer is off\n", False, False),
        ("oom_reaper: reaped process 7", True, True),
    ],
)
def test_a_mark_is_the_kernels_own_where_its_line_goes_on_so_or_ends(line, is_own, is_begun):
    assert is_kernels_own(line.encode(), 0, may_be_broken=False) is is_own
    assert is_kernels_own(line.encode(), 0, may_be_broken=True) is is_begun


PARTS = [
    *(
        "Killed process ",
        "7 (java)",
        "7 (ja",
        ", UID 3,",
        " total-vm:1kB",
        "oom-kill",
        ":constraint=",
        "er: gfp_mask=0x",
    ),
    *("oom_reaper", ": reaped process ", ": unable to ", "anon-rss:", "memory.oom.group set", "\n", " ", "9", "=", "x"),
]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.integers(0, 60), st.integers(0, 300), st.booleans())
def test_the_next_mark_of_the_kernels_own_is_the_first_that_is_one(parts, position, limit, may_be_broken):
    text = "".join(parts).encode()
    limit = min(limit, len(text))
    own = [at for at in range(position, limit) if is_kernels_own(text, at, may_be_broken=may_be_broken)]
    assert next_own(text, position, limit, may_be_broken=may_be_broken) == min(own, default=limit)


@pytest.mark.parametrize(
    "form", ["{}\r\r", "\t\t1\toom-kill:\t{}", '"{}","2026-01-05",""oom-kill:"" x', "15:19\n[1.2] oom-kill: {}"]
)
def test_where_a_word_is_everywhere_it_is_searched_for_with_what_follows_it(monkeypatch, form):
    looked_at = []
    own = oom_reports.is_kernels_own
    monkeypatch.setattr(
        oom_reports, "is_kernels_own", lambda *where, **how: looked_at.append(where) or own(*where, **how)
    )
    noise = "".join(form.format(f"oom-kill:{at:x}") + "\n" for at in range(40_000))
    report = "".join(f"[1.5] {line}\n" for line in LINES)
    assert [victims for _, victims, _, _ in _read(noise + report + noise)] == [[139]]
    assert len(looked_at) < 4_000


def test_rows_beyond_the_most_that_are_kept_are_passed_over(monkeypatch):
    text = "".join(f"[1.5] {line}\n" for line in LINES)
    _, _, _, whole = _read(text)[0]
    for module in (oom_blocks, oom_reading, task_table):
        monkeypatch.setattr(module, "MOST_TASKS", 20)
    ((_, victims, _, kept),) = _read(text)
    assert kept == whole[:20]
    assert victims == [139]


@given(
    st.lists(st.sampled_from(["Evict", "Evicted x", "Evict!\n", "vict", " E", "\n"]), max_size=60), st.integers(0, 40)
)
def test_words_that_are_everywhere_are_found_in_the_same_places(parts, position):
    chunk = "".join(parts).encode()
    needle = Needle(b"Evict", re.compile(rb"Evict(?:ed|!)"), beside=re.compile(rb"!|v"))
    places = [place.start() for place in re.finditer(rb"Evict(?:ed|!)", chunk) if place.start() >= position]
    near = [place for place in places if needle._is_beside(chunk, place)]
    with pytest.MonkeyPatch.context() as patched:
        for most in (0, 1, 1000):
            patched.setattr(log_marks, "_MOST_MISSES", most)
            assert needle.find(chunk, position) == (near[0] if near else -1)


@given(st.sampled_from([*LINES, *cgroup(ROWS, 139, "worker 139")]), st.text(max_size=12), st.integers(0, 30))
def test_messages_are_found_where_they_are_without_a_look_at_their_first_character(line, before, cut):
    every = re.compile(tokens._FORMS)
    text = before + line[cut:]
    assert [found.span() for found in tokens._START.finditer(text)] == [found.span() for found in every.finditer(text)]


@given(st.text(st.one_of(st.characters(), st.sampled_from([*map(chr, cleaning._PLAIN)])), max_size=40))
def test_only_lines_with_odd_characters_are_translated(line):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cleaning, "_NOT_PLAIN", re.compile(""))
        translated = cleaned(line)
    assert cleaned(line) == translated
