"""Lines of an OOM report that follow each other, read in one go: rows, frames and figures many at a time.

They come without what carries them (``alike_lines``). A line that may begin, decide or end a report, or that the
carrier may have left something of, is not read here: it needs a closer look.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podqos.kernel.carriers.text_lines import is_special
from podqos.kernel.carriers.tokens import start_of
from podqos.kernel.oom_circumstances import BY_HAND
from podqos.kernel.oom_evidence import is_repeated
from podqos.kernel.oom_reading import HEADER, ROW, read_figures, read_frames, read_line
from podqos.kernel.oom_report import OOMReport
from podqos.kernel.task_table import MOST_TASKS, read_rows, rows_end

_MOST_SILENT = 8
"""Lines that tell nothing: those after them are better passed over."""
_MOST_CHARACTERS = 2048
_BRACKET = ord("[")
_FRAME = (
    rb" {0,4}+(?:\[<[0-9a-f]{8,16}+>\] )?(?:\? )?[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+"
    rb"(?: \[\w{1,60}+\])?"
)
_FRAMES = re.compile(rb"(?:(?:" + _FRAME + rb"| {0,4}+</?(?:TASK|IRQ|NMI|EOI)>|Call Trace:) {0,4}+\r?+\n)+")
_FIGURES = re.compile(rb"(?:[a-z_]{3,40}+ [0-9]{1,17}+\r?+\n)+")
_JOINED = ("{", "', ", "=3D")


class Reading(NamedTuple):
    """What is known of lines before they are read."""

    is_other: bool
    """Whether the machine's memory may be shown for something else."""
    names_kernel: bool
    """Whether what carried them names the kernel: then they do not."""
    has_another: bool
    """Whether another report of the same kernel waits for its kill: their lines may be mixed."""


class ReadLines(NamedTuple):
    """How far lines were read."""

    end: int
    silent: int
    """So many of the last ones tell nothing of an OOM."""


def read_lines(report: OOMReport, lines: bytes, how: Reading) -> ReadLines:
    """Read lines of a report before its kill, up to one that needs a closer look."""
    position = silent = 0
    is_other = how.is_other
    while position < len(lines) and silent < _MOST_SILENT:
        end = _read_many(report, lines, position, is_other=is_other)
        if end > position:
            position, silent = end, 0
            continue
        end = lines.index(b"\n", position)
        text = lines[position:end].decode(errors="replace").rstrip()
        if _is_alone(text) or ("kernel" in text and not how.names_kernel and "kernel_" not in text):
            break
        if how.has_another and is_repeated(report, text):
            break
        if text and read_line(report, text, is_other=is_other):
            silent = 0
        elif start_of(text) > 0:
            break
        else:
            silent += 1
        position = end + 1
    return ReadLines(position, silent)


def read_table(report: OOMReport, lines: bytes, start: int, limit: int) -> int:
    """Read the rows that follow each other from a position on; return where they end."""
    if report.columns is None or report.is_old_rule:
        return start
    if len(report.tasks) >= MOST_TASKS:
        end = rows_end(report.columns, lines, start, limit)
        report.is_cut |= end > start
        return end
    return read_rows(report.columns, report.tasks, lines, start, limit)


def _read_many(report: OOMReport, lines: bytes, start: int, *, is_other: bool) -> int:
    """Read the lines of one kind from a position on, where there are many of the kind; return where they end."""
    if lines[start] == _BRACKET:
        return read_table(report, lines, start, len(lines))
    has_figures = report.statistics is not None and report.columns is None
    if has_figures and (figures := _FIGURES.match(lines, start)):
        read_figures(report, figures[0].decode(), is_other=is_other)
        return figures.end()
    if frames := _FRAMES.match(lines, start):
        read_frames(report, frames[0].decode(), is_other=is_other)
        return frames.end()
    return start


def _is_alone(text: str) -> bool:
    """Whether a line has to be read by itself."""
    if text.startswith("["):
        return not (ROW.match(text) or (text.endswith(" name") and HEADER.match(text)))
    return (
        "oom" in text
        or " process" in text
        or "ut of memory" in text
        or text.startswith(("Tasks in ", "Kernel panic"))
        or "page allocation " in text
        or "vmalloc" in text
        or "Show Memory" in text
        or BY_HAND in text
        or is_special(text)
        or len(text) > _MOST_CHARACTERS
        or any(mark in text for mark in _JOINED)
        or text.endswith(("=", "["))
    )
