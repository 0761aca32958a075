"""Read the files of a command, with a line of progress, and print their problems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from podqos.cli.progress import progress_line
from podqos.library.inputs.objects import Objects, load
from podqos.manifest.problems import Problem, Severity


def read_objects(files: Sequence[str], namespace: str = "default") -> Objects:
    """Read all files, with progress on a terminal."""
    return load(*files, namespace=namespace, progress=progress_line("reading file"))


def print_problems(problems: Iterable[Problem]) -> int:
    """Print what is wrong with the input, in its order, and return how many errors there are."""
    ordered = sorted(problems)
    for problem in ordered:
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in ordered)
