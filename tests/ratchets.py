"""What the house still has too much of, by file: numbers that may only fall.

Outside ``cli`` nothing knows how an option is spelled: texts name the field (``podqos.naming``), and ``cli`` says which
option that is. No function has more than six parameters: what belongs together has a name. ``ratchets.toml`` holds how
much a file has too much. Who lowers a number writes it down::

    python tests/ratchets.py

It lowers what has fallen and raises nothing. ``test_architecture.py`` compares.
"""

from __future__ import annotations

import ast
import re
import tomllib
from argparse import Action
from collections.abc import Iterator
from pathlib import Path

from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.parser import CommandParser, subcommands

SOURCE = Path(__file__).resolve().parents[1] / "src/podqos"
HELD = Path(__file__).with_suffix(".toml")
MOST_PARAMETERS = 6
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")

# Files whose texts with two hyphens are options of other programs, a command line in full, or documentation.
OTHERS = {
    "controllers/drain.py": "kubectl drain",
    "host/runtimes/containerd.py": "ctr",
    "host/runtimes/podman.py": "podman",
    "host/runtimes/runc.py": "runc",
    "library/missing_page.py": "pip, pipx and uv",
    "qos/run_flags.py": "docker run and podman run",
    "reading/live_log.py": "journalctl",
    "survival/autopsy/next_step.py": "kubectl, journalctl, and podqos autopsy in full",
    "survival/autopsy/next_steps.py": "kubectl and journalctl",
    "report/check/document.py": "docs/reference/checks.md, the page about podqos check",
    "reading/revisions.py": "git",
    "web/guard_installation.py": "podqos guard, in the manifest of a DaemonSet",
    "web/installation.py": "podqos exporter and webhook, in the manifest of a Deployment",
}

Counts = dict[str, dict[str, int]]
"""What is counted → file, from the package on → how often."""


def counted() -> Counts:
    """Count what there is now."""
    own = {name for command in COMMANDS for each in options_of(parser_of(command)[0]) for name in each.option_strings}
    counts: Counts = {"flags": {}, "invalid-option": {}, "parameters": {}}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text()
        tree = ast.parse(text)
        counts["parameters"][name] = parameters_beyond(MOST_PARAMETERS, tree)
        if not name.startswith("cli/") and ("InvalidOption" in text or not own.isdisjoint(_OPTION.findall(text))):
            said = () if name in OTHERS else _texts(tree)
            counts["flags"][name] = sum(option in own for text in said for option in _OPTION.findall(text))
            counts["invalid-option"][name] = sum(_is_invalid_option(node) for node in ast.walk(tree))
    return {what: {file: number for file, number in files.items() if number} for what, files in counts.items()}


def options_of(parser: CommandParser) -> Iterator[Action]:
    """Yield the options of a command and of what is below it."""
    for action in parser._actions:
        if action.option_strings:
            yield action
        for below in subcommands(action).values():
            yield from options_of(below)


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings: those that somebody may be shown."""
    nodes = list(ast.walk(tree))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def parameters_beyond(most: int, tree: ast.AST) -> int:
    """Return how many parameters functions have beyond so many; ``self``, ``cls`` and ``*names`` are not counted."""
    functions = [node.args for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    numbers = [
        sum(each.arg not in {"self", "cls"} for each in (*found.posonlyargs, *found.args, *found.kwonlyargs))
        for found in functions
    ]
    return sum(number - most for number in numbers if number > most)


def _is_invalid_option(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "InvalidOption"


def held() -> Counts:
    """Return the numbers that may not be exceeded."""
    return tomllib.loads(HELD.read_text())


def lowered(before: Counts, now: Counts) -> Counts:
    """Return the numbers that have fallen, and of the others those before."""
    return {
        what: {
            file: min(number, now[what].get(file, 0)) for file, number in files.items() if now[what].get(file, 0)
        }
        for what, files in before.items()
    }  # fmt: skip


def write(counts: Counts) -> None:
    """Hold these numbers."""
    lines = ["# What may only fall: see ratchets.py."]
    for what, files in counts.items():
        lines += ["", f"[{what}]", *(f'"{file}" = {number}' for file, number in sorted(files.items()))]
    HELD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(lowered(held(), counted()) if HELD.exists() else counted())
