"""What each command line printed when it was last recorded. ``make golden`` records again; read the difference."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from pathlib import Path
from unittest.mock import patch

import msgspec
from msgspec import Struct

from outputs.commands import ROOT, Line, command_lines, shown_lines
from podqos.cli.main import main

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
WIDTHS = (80, 120)
_PROMPT = "$ podqos "


class Output(Struct, frozen=True):
    """What one command line led to."""

    line: Line
    code: int
    text: str


class _Terminal(io.TextIOWrapper):
    """What takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def output_of(line: Line, width: int | None = None) -> Output:
    """Run a command line at the root of the repository, on a terminal of some width or in a pipe."""
    printed = (_Terminal if width else io.TextIOWrapper)(io.BytesIO(), encoding="utf-8", newline="")
    terminal = patch.dict(os.environ, {"COLUMNS": str(width), "NO_COLOR": "1"})
    messages = contextlib.redirect_stderr(io.StringIO())
    with terminal, messages, contextlib.chdir(ROOT), contextlib.redirect_stdout(printed):
        code = main([*line])
    printed.flush()
    return Output(line, code, printed.buffer.getvalue().decode())  # type: ignore[attr-defined]


def recorded() -> dict[Line, Output]:
    """Return what was recorded, by command line."""
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines()
    outputs = [msgspec.json.decode(line, type=Output) for line in lines]
    return {output.line: output for output in outputs}


def shown(width: int) -> dict[Line, Output]:
    """Return what was recorded on a terminal of this width, by command line."""
    found = {}
    for part in f"\n{_transcript(width).read_text()}".split(f"\n{_PROMPT}")[1:]:
        head, _, text = part.partition("\n")
        *line, _, code = head.split()
        found[tuple(line)] = Output(tuple(line), int(code.strip(")")), text)
    return found


def _transcript(width: int) -> Path:
    return Path(__file__).with_name(f"terminal-{width}.txt")


def record() -> None:
    """Write all outputs down again."""
    for width in WIDTHS:
        outputs = [output_of(line, width) for line in shown_lines()]
        texts = (f"{_PROMPT}{' '.join(each.line)} (exit {each.code})\n{each.text}" for each in outputs)
        _transcript(width).write_text("\n".join(texts))
    lines = [msgspec.json.encode(output_of(line)) for line in command_lines()]
    RECORDED.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines), 9, mtime=0))
