"""``podqos check -o github``: workflow commands, which GitHub shows beside the changed lines of a pull request.

Source: actions/toolkit packages/core/src/command.ts (escapeData, escapeProperty).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.advice.checks.finding import FindingSeverity
from podqos.answers.findings import CheckReport, FindingReport
from podqos.manifest.problems import Position, Problem
from podqos.naming import published
from podqos.objects.files import file_behind
from podqos.report.check.table import is_shown
from podqos.words.fixes import patch_lines

_COMMANDS = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "notice"}


def github(report: CheckReport, problems: Iterable[Problem] = (), *, verbose: bool = False) -> Iterator[str]:
    """Yield one command for each problem of the input and each finding.

    Suppressed findings are left out, and so are infos, as in the table: GitHub shows ten annotations of a step at most.
    """
    for problem in problems:
        parts = (problem.subject, problem.field, problem.what)
        title = ": ".join(filter(None, parts))
        file = "" if problem.subject else problem.source
        message = "\n".join((published(problem.fix) or title, *problem.details))
        yield _command(problem.severity, file, (problem.line, problem.column), title, message)
    for item in report.items:
        if item.suppression is None and is_shown(item, report, verbose=verbose):
            title = f"{item.check} {item.check_name}: {item.title}"
            file = item.source if item.line else ""
            yield _command(_COMMANDS[item.severity], file, (item.line, item.column), title, _message(item))


def _command(name: str, file: str, position: Position, title: str, message: str) -> str:
    properties = {"title": title}
    rendered = file_behind(file)
    if rendered is not None:  # whose lines are others
        properties = {"file": rendered, "title": title}
    elif file:  # what comes from a cluster has none
        # A file that cannot be opened has no lines.
        line, column = (str(max(1, number)) for number in position)
        properties = {"file": file, "line": line, "col": column, "title": title}
    written = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{escape_data(message)}"


def _message(item: FindingReport) -> str:
    container = f", container {item.container}" if item.container else ""
    is_rendered = file_behind(item.source) is not None
    field = f" {item.path}" if item.path and (is_rendered or not item.line) else ""
    also = f"also: {item.also_text}" if item.also else ""
    lines = [f"{item.subject}{field}{container}: {item.reason}", item.consequence, also]
    return "\n".join(filter(None, [*lines, *patch_lines(item.patch)]))


def escape_data(text: str) -> str:
    """Escape a message, which ends at a line break."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property, which ends at a colon or comma."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
