"""Lines of an OOM report that follow each other, read in one go: rows, frames and figures many at a time.

A line that may begin, decide or end a report is not read here: it needs a closer look.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from podqos.kernel.oom_circumstances import BY_HAND
from podqos.kernel.oom_evidence import is_only_context, is_repeated
from podqos.kernel.oom_reading import HEADER, ROW, read_figures, read_frames, read_line
from podqos.kernel.oom_report import OOMReport
from podqos.kernel.task_table import MOST_TASKS, read_rows, rows_end

_FRAME = (
    r" {0,4}+(?:\[<[0-9a-f]{8,16}+>\] )?(?:\? )?[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+"
    r"(?: \[\w{1,60}+\])?"
)
_FRAMES = re.compile(r"(?:(?:" + _FRAME + r"| {0,4}+</?(?:TASK|IRQ|NMI|EOI)>|Call Trace:)\n)+", re.ASCII)
_FIGURES = re.compile(r"(?:[a-z_]{3,40}+ [0-9]{1,17}+\n)+")
_ALONE = re.compile(
    r"oom|ill(?:ed)? process|ut of [Mm]emory|Tasks in |Kernel panic|page allocation |vmalloc|Show Memory|"
    + re.escape(BY_HAND)
)
"""Of a line that has to be read by itself."""


class Reading(NamedTuple):
    """What is known of lines before they are read."""

    is_other: bool
    """Whether the machine's memory may be shown for something else."""
    has_another: bool
    """Whether another report of the same kernel waits for its kill: their lines may be mixed."""
    may_be_broken: bool
    """Whether nothing carries them: then one without an end goes on in the next."""


class ReadLines(NamedTuple):
    """What was read of lines."""

    end: int
    """So many of them."""
    silent: int
    """So many of the last ones tell nothing of an OOM."""


NOTHING_READ = ReadLines(0, 0)


def read_lines(report: OOMReport, texts: Sequence[str], how: Reading) -> ReadLines:
    """Read lines of a report before its kill, up to one that needs a closer look."""
    lines = "\n".join([*texts, ""])
    position = number = silent = 0
    while number < len(texts):
        end = _read_many(report, lines, position, is_other=how.is_other)
        if end > position:
            number += lines.count("\n", position, end)
            position, silent = end, 0
            continue
        text = texts[number]
        if _is_alone(report, text, how):
            break
        silent = 0 if text and read_line(report, text, is_other=how.is_other) else silent + 1
        position += len(text) + 1
        number += 1
    return ReadLines(number, silent)


def is_unended(row: re.Match[str], columns: tuple[str, ...]) -> bool:
    """Whether the name is missing at the end of a row."""
    return len(row[2].split(None, len(columns))) <= len(columns)


def _read_many(report: OOMReport, lines: str, start: int, *, is_other: bool) -> int:
    """Read the lines of one kind from a position on, where there are many of the kind; return where they end."""
    if lines[start] == "[":
        return _read_table(report, lines, start)
    if report.columns is None:
        if report.statistics is not None and (figures := _FIGURES.match(lines, start)):
            read_figures(report, figures[0], is_other=is_other)
            return figures.end()
        if frames := _FRAMES.match(lines, start):
            read_frames(report, frames[0], is_other=is_other)
            return frames.end()
    return start


def _read_table(report: OOMReport, lines: str, start: int) -> int:
    """Read the rows that follow each other from a position on; return where they end."""
    if report.columns is None or report.is_old_rule:
        return start
    if len(report.tasks) >= MOST_TASKS:
        end = rows_end(report.columns, lines, start)
        report.is_cut |= end > start
        return end
    return read_rows(report.columns, report.tasks, lines, start)


def _is_alone(report: OOMReport, text: str, how: Reading) -> bool:
    """Whether a line has to be read by itself."""
    if (how.has_another or is_only_context(report)) and is_repeated(report, text):
        return True
    if text.startswith("["):
        if row := ROW.match(text):
            return how.may_be_broken and (report.columns is None or is_unended(row, report.columns))
        return not (text.endswith(" name") and HEADER.match(text))
    return _ALONE.search(text) is not None
