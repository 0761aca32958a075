"""How large each package is, and which files are too long: numbers that fall, and rise only with a reason.

A package that grows fails a test. Delete something; or raise its number in a commit that says why. The file of numbers,
``ratchets.toml``, is written again by::

    python tests/ratchets.py

No file has more than 800 lines. Those that have are listed, and may only shrink.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src/podqos"
HELD = Path(__file__).with_suffix(".toml")
LONGEST = 800
_MARGIN = 50
"""A package may grow by less than so many lines (statements: half of it) before it counts."""

Counts = dict[str, dict[str, int]]
"""What is counted → package or file → how much."""


def counted() -> Counts:
    """Count what there is now."""
    counts: Counts = {"lines": {}, "statements": {}, "long-files": {}}
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE), path.read_text()
        package, lines = name.parts[0] if len(name.parts) > 1 else "podqos", text.count("\n")
        statements = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
        counts["lines"][package] = counts["lines"].get(package, 0) + lines
        counts["statements"][package] = counts["statements"].get(package, 0) + statements
        if lines > LONGEST:
            counts["long-files"][name.as_posix()] = lines
    return counts


def held() -> Counts:
    """Return the numbers that may not be exceeded."""
    return tomllib.loads(HELD.read_text())


def grown(before: Counts, now: Counts) -> list[str]:
    """Return what exceeds its number, in words."""
    return [
        f"{what} of {name}: {most} -> {number}"
        for what, numbers in now.items()
        for name, number in numbers.items()
        if number > (most := before[what].get(name, 0))
    ]


def written(now: Counts) -> str:
    """Return the file that holds these numbers, rounded up so that not every line needs a commit of its own."""
    lines = ["# What may only fall, or rise in a commit that says why: see ratchets.py."]
    for what, numbers in now.items():
        step = {"lines": _MARGIN, "statements": _MARGIN // 2}.get(what, 1)
        lines += ["", f"[{what}]", *(f'"{name}" = {-(-number // step) * step}' for name, number in numbers.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    HELD.write_text(written(counted()))
