"""What benchmarks measured, kept to be compared: a JSON line per figure in bench/history.jsonl.

Every script appends; commit the lines of a release, or of a change that should be seen. ``bench/compare.py`` reads
them. Less is always better, so figures are times, sizes and ratios, never rates.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

import podqos

ROOT = Path(__file__).resolve().parents[1]
HISTORY = Path(os.environ.get("BENCH_HISTORY") or ROOT / "bench/history.jsonl")


class Figure(msgspec.Struct, frozen=True):
    """One thing that was measured."""

    name: str
    value: float
    unit: Literal["s", "ms", "bytes", "ratio"]
    """A ratio is to something else within the same run, and can be compared between machines."""
    version: str
    commit: str
    """Of the code, with a + if src differs from it."""
    date: str
    machine: str


def record(name: str, value: float, unit: Literal["s", "ms", "bytes", "ratio"]) -> None:
    """Keep a figure."""
    figure = Figure(name, value, unit, podqos.__version__, _commit(), datetime.now(UTC).date().isoformat(), _machine())
    with HISTORY.open("ab") as file:
        file.write(msgspec.json.encode(figure) + b"\n")


def figures(path: Path = HISTORY) -> list[Figure]:
    """Return everything that was kept, oldest first."""
    return [msgspec.json.decode(line, type=Figure) for line in path.read_bytes().splitlines()] if path.exists() else []


@cache
def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("+" if git("status", "--short", "src") else "")


@cache
def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")] or [platform.machine()]
    return f"{models[0]}, {os.cpu_count()} cores, Python {platform.python_version()}"
