"""Lines are taken apart many at a time wherever they need no closer look: that says what each says by itself."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.carriers import CARRIERS, dmesg, folded, wrapped
from kernel.oom_logs import ROWS, cgroup, killed, machine
from podqos.kernel.carriers import text_lines
from podqos.kernel.carriers.plain_lines import PlainLines, WrappedLines
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.message import Message

TRACE = ["Call Trace:", " <TASK>", "dump_stack+0x5/0x60", " ? out_of_memory+0xea/0x100 [kernel]", " </TASK>"]
FIGURES = ["anon 4096", "workingset_refault_file 17", "active_anon:1 inactive_anon:22 isolated_anon:333"]
OTHERS = [
    "eth0: link is up",
    "[T12] 1000 pages RAM",
    "anon 4096 bytes",
    "[  102]  1000",
    "a [pid] b",
    "",
    "  ",
    "\t[ 1 ]",
]
REPORT = [*machine()[:2], *TRACE, *machine()[2:], *FIGURES, *cgroup(ROWS, 102, "java (main) [x]"), killed()]


def _read(lines: list[str]) -> list[Message]:
    unwrapper = Unwrapper()
    return [*unwrapper.read(lines), *unwrapper.end()]


# Where half of a line is struck over, the beginning of a message is taken for a prefix, and lines read singly lose it.
@pytest.mark.parametrize(
    "carrier", [name for name, make in CARRIERS.items() if isinstance(make(REPORT[:1]), str) and name != "struck over"]
)
def test_whatever_carries_lines_many_say_what_each_says(monkeypatch, carrier):
    lines = CARRIERS[carrier](REPORT * 3).split("\n")
    at_once = _read(lines)
    monkeypatch.setattr(PlainLines, "read", lambda _, lines: [None] * len(lines))
    monkeypatch.setattr(text_lines, "read_bare", lambda lines: [None] * len(lines))
    monkeypatch.setattr(WrappedLines, "read_broken", lambda _, lines, __: [(None, 1)] * len(lines))
    assert at_once == _read(lines)


NAMES = ["java", "worker process", "php-fpm", "kworker/0:1", "a b c", "pages", "Mem-Info:"]
ROWS_AND_OTHERS = st.one_of(
    st.sampled_from([*REPORT, *OTHERS]),
    st.builds(
        "[{:7d}] {:5d} {:7d} {:8d} {:8d} {:8d} {:8d} {:13d} {}".format,
        *[st.integers(0, 4_000_000) for _ in range(7)],
        st.integers(-1000, 1000),
        st.sampled_from(NAMES),
    ),
)


@given(st.lists(ROWS_AND_OTHERS, min_size=20, max_size=60), st.integers(30, 120), st.booleans(), st.sampled_from("> |"))
def test_wherever_lines_are_broken_many_say_what_each_says(texts, width, is_hard, quoting):
    make = (folded if is_hard else wrapped)(width, dmesg, quoting)
    lines = make([*REPORT, *REPORT, *texts, *REPORT]).split("\n")
    at_once = _read(lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WrappedLines, "read_broken", lambda _, lines, __: [(None, 1)] * len(lines))
        assert at_once == _read(lines)


@given(st.lists(st.one_of(ROWS_AND_OTHERS, st.text(string.printable, max_size=40)), min_size=1, max_size=40))
def test_lines_that_nothing_carries_say_what_each_says(texts):
    known = [*REPORT, *REPORT, *REPORT]
    lines = [*known, *(text.replace("\n", " ") for text in texts)]
    at_once = _read(lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_lines, "read_bare", lambda lines: [None] * len(lines))
        assert at_once == _read(lines)
