"""What each command line printed when it was last recorded. ``make golden`` records again; read the difference."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from outputs.commands import ROOT, Line, command_lines, shown_lines
from outputs.further import WRITTEN, further_lines
from outputs.input_files import directory, piped
from outputs.page_values import value_lines, value_of
from podqos.cli.main import main

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
FURTHER = Path(__file__).with_name("recorded-further.jsonl.gz")
MESSAGES = Path(__file__).with_name("messages.txt")
WIDTHS = (80, 120)
_PROMPT = "$ podqos "
_DATA = re.compile(r'<script id="run" type="application/json">(.*?)</script>', re.DOTALL)
_WHEN = re.compile(r'"(savedAt|changedAt)": "[^"]*"')
_SIZE = re.compile(r"\([\d,]+ bytes\)")
"""Of a page it is also that of the program in it."""


class Output(Struct, frozen=True, omit_defaults=True):
    """What one command line led to."""

    line: Line
    code: int
    text: str
    files: dict[str, str] = {}
    """What it wrote, by name; of a page the data in it, over several lines."""
    messages: str = ""
    """What it said on standard error. These are kept apart, as text, to be read."""


class _Terminal(io.TextIOWrapper):
    """What takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def output_of(line: Line, width: int | None = None, at: Path = ROOT) -> Output:
    """Run a command line in a directory, on a terminal of some width or in a pipe."""
    words, given = (line[: line.index("<")], piped(line[-1])) if "<" in line else (line, b"")
    printed = (_Terminal if width else io.TextIOWrapper)(io.BytesIO(), encoding="utf-8", newline="")
    messages = io.StringIO()
    environment = {"COLUMNS": str(width), "NO_COLOR": "1", "KUBECONFIG": os.devnull}
    with (
        patch.dict(os.environ, environment),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        contextlib.redirect_stderr(messages),
        contextlib.redirect_stdout(printed),
        contextlib.chdir(at),
    ):
        code = main([*words])
    printed.flush()
    text = printed.buffer.getvalue().decode()  # type: ignore[attr-defined]
    files = {} if at == ROOT else dict(_taken(at))
    return Output(line, code, text, files, _SIZE.sub("(… bytes)", messages.getvalue()))


def _taken(at: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that were written into a directory, which has only directories of its own, and remove them."""
    for path in sorted(at.iterdir()):
        if path.is_file():
            yield path.name, _readable(path.read_text())
            path.unlink()
    for path in sorted((at / WRITTEN).rglob("*")):
        if path.is_file():
            yield path.relative_to(at).as_posix(), path.read_text()
    shutil.rmtree(at / WRITTEN, ignore_errors=True)


def _readable(text: str) -> str:
    """Return a file as it is compared: a page is its data, one value a line, without the moment it was written."""
    data = _DATA.search(text)
    if data is None:
        return text
    return _WHEN.sub(r'"\1": ""', msgspec.json.format(data[1], indent=1))


def further_output(line: Line, at: Path) -> Output:
    """Return what one of the further lines leads to, or a value that no command prints."""
    if line in VALUES:
        return Output(line, 0, value_of(line))
    return output_of(line, at=at)


VALUES = frozenset(value_lines())


def recorded(path: Path = RECORDED) -> dict[Line, Output]:
    """Return what was recorded, by command line."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
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


def messages() -> dict[str, str]:
    """Return what was said on standard error, by the line as it is written there."""
    parts = (part.partition("\n") for part in f"\n{MESSAGES.read_text()}".split(f"\n{_PROMPT}")[1:])
    return {head: text for head, _, text in parts}


def written(line: Line, code: int | None = None) -> str:
    """Return a line as ``messages.txt`` has it, with its exit code."""
    words = shlex.join(line).replace("\n", "\\n").replace("'<'", "<")
    return words if code is None else f"{words} (exit {code})"


def _transcript(width: int) -> Path:
    return Path(__file__).with_name(f"terminal-{width}.txt")


def record() -> None:
    """Write all outputs down again."""
    said: list[Output] = []
    for width in WIDTHS:
        outputs = [output_of(line, width) for line in shown_lines()]
        texts = (f"{_PROMPT}{' '.join(each.line)} (exit {each.code})\n{each.text}" for each in outputs)
        _transcript(width).write_text("\n".join(texts))
    said += outputs
    outputs = [output_of(line) for line in command_lines()]
    _keep(RECORDED, outputs)
    record_further([*said, *outputs])


def record_further(others: Iterable[Output] = ()) -> None:
    """Write down the further outputs, and what these and others said on standard error."""
    with directory() as at:
        outputs = [further_output(line, at) for line in (*further_lines(), *value_lines())]
    _keep(FURTHER, outputs)
    commands = [*others, *(each for each in outputs if each.line not in VALUES)]
    parts = (f"{_PROMPT}{written(each.line, each.code)}\n{each.messages}" for each in commands)
    MESSAGES.write_text("\n".join(parts))


def _keep(path: Path, outputs: Iterable[Output]) -> None:
    lines = [msgspec.json.encode(replace(each, messages="")) for each in outputs]
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines), 9, mtime=0))
