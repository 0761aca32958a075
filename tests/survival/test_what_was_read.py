"""How much was read: counted, and of a very large log estimated."""

from __future__ import annotations

import io

import pytest

from podqos.answers import log_marks
from podqos.answers.log_tally import LogTally
from podqos.survival.autopsy.what_was_read import WhatWasRead
from podqos.words.next_steps import read_words


def _read(log: bytes, part: int) -> WhatWasRead:
    tally = LogTally()
    stream = tally.counting(io.BytesIO(log))
    while stream.read(part):
        pass
    return tally.added_to(WhatWasRead())


@pytest.mark.parametrize("end", [b"\n", b"\r", b""])
def test_the_lines_of_a_log_are_counted_and_those_of_a_very_large_one_estimated(monkeypatch, end):
    log = (b"Jan  5 15:19:27 node-7 cron[1]: session opened" + (end or b"\n")) * 20_000 + (b"" if end else b"x" * 20)
    read = _read(log, 1 << 10)
    assert (read.lines, read.is_line_count_estimated) == (20_000 if end else 20_001, False)
    assert read_words(read).startswith(f"Read {read.lines:,} lines")
    monkeypatch.setattr(log_marks, "VERY_LARGE", 1 << 16)
    large = _read(log, 1 << 10)
    assert large.is_line_count_estimated
    assert abs(large.lines - read.lines) < 200
    assert read_words(large).startswith("Read about 20,000 lines")


def test_a_log_that_is_just_too_large_to_be_counted_is_still_counted(monkeypatch):
    monkeypatch.setattr(log_marks, "VERY_LARGE", 1 << 16)
    read = _read(b"a line\n" * ((1 << 16) // 7 + 100), 1 << 10)
    assert (read.lines, read.is_line_count_estimated) == ((1 << 16) // 7 + 100, False)
