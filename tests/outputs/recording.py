"""What each command line printed when it was last recorded. ``make golden`` records again; read the difference."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path

import msgspec
from msgspec import Struct

from outputs.commands import ROOT, Line, command_lines
from podqos.cli.main import main

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")


class Output(Struct, frozen=True):
    """What one command line led to."""

    line: Line
    code: int
    text: str


def output_of(line: Line) -> Output:
    """Run a command line at the root of the repository."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = main([*line])
    printed.flush()
    return Output(line, code, printed.buffer.getvalue().decode())  # type: ignore[attr-defined]


def recorded() -> dict[Line, Output]:
    """Return what was recorded, by command line."""
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines()
    outputs = [msgspec.json.decode(line, type=Output) for line in lines]
    return {output.line: output for output in outputs}


def record() -> None:
    """Write all outputs down again."""
    outputs = [msgspec.json.encode(output_of(line)) for line in command_lines()]
    RECORDED.write_bytes(gzip.compress(b"".join(line + b"\n" for line in outputs), 9, mtime=0))
