"""Change one operator at a time in the packages that decide, and see whether the fast tests notice.

    .venv/bin/python tools/mutate.py [--each 40] [--seed 1] [PACKAGE …] > survivors.txt

Draws so many changes per package (``<`` for ``<=``, ``and`` for ``or``, ``min`` for ``max``, ``n + 1`` for ``n`` …),
applies each in a copy of ``src`` and runs the tests of the package and those that name the changed module. A change
that no test notices is printed as a difference; the last lines are the rates. Not part of ``make test``: it takes
seconds to a minute a change. A survivor is a missing test, or a change that means the same.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("qos", "eviction", "kernel", "agent", "placement", "admission", "survival", "policy", "advice", "sim")
TIMEOUT_SECONDS = 300
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.FloorDiv: ast.Mult,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield nodes that can be changed, and what they become."""
    skipped = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Assert) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        match node:
            case ast.Compare(ops=[op]) if type(op) in OPERATORS:
                yield node, ast.Compare(node.left, [OPERATORS[type(op)]()], node.comparators)  # type: ignore[list-item]
            case ast.BoolOp(op=op):
                yield node, ast.BoolOp(OPERATORS[type(op)](), node.values)  # type: ignore[arg-type]
            case ast.BinOp(op=op) if type(op) in OPERATORS:
                yield node, ast.BinOp(node.left, OPERATORS[type(op)](), node.right)  # type: ignore[arg-type]
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
                yield node, operand
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield node, ast.Call(ast.Name(NAMES[name]), node.args, node.keywords)
            case ast.Break():
                yield node, ast.Continue()
            case ast.Continue():
                yield node, ast.Break()
            case ast.Constant(value=int(value)) if type(value) is int:
                yield node, ast.Constant(value + 1)


def changed(source: str, node: ast.AST, becomes: ast.AST) -> str:
    """Return a source with one node replaced."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
    end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
    text = ast.unparse(becomes)
    if isinstance(becomes, ast.expr) and not isinstance(becomes, ast.Constant):
        text = f"({text})"
    whole = source.encode()
    return (whole[:begin] + text.encode() + whole[end:]).decode()


def tests_of(package: str, module: Path) -> list[str]:
    """Return the tests of a package, and those that name a module of it."""
    dotted = ".".join(module.relative_to(ROOT / "src").with_suffix("").parts)
    found = {str(path) for path in (ROOT / "tests").rglob("test_*.py") if dotted in path.read_text()}
    own = ROOT / "tests" / package
    return sorted(found | ({str(own)} if own.is_dir() else set()))


def is_noticed(package: str, module: Path, text: str) -> bool:
    """Whether a test fails with another text of a module."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "src")
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        copy.joinpath(module.relative_to(ROOT / "src")).write_text(text)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "-m", "not slow", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PODQOS_EXAMPLES": "20"}
        try:
            done = subprocess.run(  # noqa: S603 - our own tests
                [*command, *tests_of(package, module)],
                cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def drawn(package: str, count: int, seed: int) -> list[tuple[Path, ast.AST, ast.AST]]:
    """Draw changes from all modules of a package."""
    found = []
    for path in sorted((ROOT / "src" / "podqos" / package).rglob("*.py")):
        found += [(path, *change) for change in changes(ast.parse(path.read_text()))]
    return random.Random(seed).sample(found, min(count, len(found)))  # noqa: S311 - no secret


def main() -> None:
    """Try changes, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", default=PACKAGES)
    parser.add_argument("--each", type=int, default=40, metavar="N", help="changes per package (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rates = []
    for package in options.packages:
        survived = tried = 0
        for path, node, becomes in drawn(package, options.each, options.seed):
            source = path.read_text()
            text = changed(source, node, becomes)
            tried += 1
            if not is_noticed(package, path, text):
                survived += 1
                name = str(path.relative_to(ROOT))
                print("\n".join(difflib.unified_diff(source.split("\n"), text.split("\n"), name, name, "", "", 1, "")))
            print(f"{package}: {survived} of {tried} survived", file=sys.stderr, flush=True)
        rates.append(f"{package}: {survived} of {tried} changes survived ({survived / max(1, tried):.0%})")
    print("\n".join(rates))


if __name__ == "__main__":
    main()
