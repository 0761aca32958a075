"""Problems of the input, on standard error: every error, and the first few of identical warnings about a field.

Hundreds of manifests without an image, say, are three warnings and a count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from podqos.cli.bugs import reported_bugs, wants_traceback
from podqos.cli.spelling import spelled
from podqos.manifest.problems import Problem, Severity

_MOST_ALIKE = 3
"""How many identical warnings about a field are printed with their places."""


class ProblemPrinter:
    """Prints problems as they come, each once."""

    def __init__(self) -> None:
        self._printed: set[Problem] = set()
        self._alike: dict[str, int] = {}
        self.errors = 0

    def print(self, problem: Problem) -> None:
        """Print a problem, unless enough like it were printed."""
        if problem in self._printed:
            return
        self._printed.add(problem)
        if problem.severity is Severity.ERROR:
            self.errors += 1
        elif problem.field:
            words = f"{problem.field}: {spelled(problem.what)}"
            self._alike[words] = self._alike.get(words, 0) + 1
            if self._alike[words] > _MOST_ALIKE:
                return
        if problem.traceback:
            reported_bugs.append(problem.what.removeprefix("internal error").lstrip(": "))
            if wants_traceback():
                print(problem.traceback, end="", file=sys.stderr)
        for line in problem.worded(spelled).split("\n"):  # a message is one line to the stream
            print(line, file=sys.stderr)

    def close(self) -> None:
        """Print how many were left out."""
        for words, count in self._alike.items():
            more = count - _MOST_ALIKE
            if more > 0:
                print(f"{more} more warning{'s' if more > 1 else ''} like these: {words}", file=sys.stderr)


def print_problems(problems: Iterable[Problem]) -> int:
    """Print the problems of the input in order, and return the number of errors."""
    printer = ProblemPrinter()
    for problem in sorted(problems):
        printer.print(problem)
    printer.close()
    return printer.errors
