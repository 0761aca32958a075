"""The files of a command: read with a line of progress, and their problems printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from podqos.cli.progress import progress_line
from podqos.cli.selecting import select
from podqos.library.inputs.objects import Objects, load
from podqos.library.inputs.selection import Selection, namespace_of
from podqos.manifest.problems import Problem, Severity


def read_objects(files: Sequence[str], selection: Selection | None = None) -> Objects:
    """Read all files, of whose workloads an answer is about some; tell a person who waits how far it is."""
    objects = load(*files, namespace=namespace_of(selection), progress=progress_line("reading file"))
    return select(objects, selection)


def print_problems(problems: Iterable[Problem]) -> int:
    """Print what is wrong with the input, in its order, and return how many errors there are."""
    ordered = sorted(problems)
    for problem in ordered:
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in ordered)
