"""``podqos help``: all commands by task, and where to start with a problem."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from podqos.cli.command_list import GROUPS
from podqos.cli.terminal import help_columns

SUMMARY = "which pod dies first when a node runs out of memory, why, and the lines that change it"
EXIT_CODES = "0 success, 1 findings, 2 bad input, 3 host or cluster error, 70 internal error, 130 interrupted"
STARTS = {
    "My pod was OOMKilled or evicted": "autopsy -n shop db-0",
    "Which pod is evicted first?": "rank worker-1",
    "Why is my pod Burstable?": "explain deploy/",
    "A gate in CI": "check deploy/",
    "Is my kubelet sane?": "check kubelet.yaml",
    "Sizes from usage": "advise deploy/ --usage usage.csv",
    "Will it fit?": "place deploy/ nodes.yaml",
    "Explain it to my boss": "ui deploy/ --html page.html",
}
"""Problem → the command to try first, with example names for files, nodes and pods."""


def overview(program: str) -> str:
    """Return the overview of all commands."""
    return "\n".join(_lines(program, help_columns()))


def _lines(program: str, width: int) -> Iterator[str]:
    yield f"usage: {program} COMMAND [OPTIONS]"
    yield ""
    yield from wrap(f"{program}: {SUMMARY}.", width)
    margin = 2 + max(len(name) for group in GROUPS.values() for name in group) + 2
    for title, commands in GROUPS.items():
        yield ""
        yield f"{title}:"
        for name, (_, summary) in commands.items():
            yield from _row(name, summary, margin, width)
    yield ""
    yield "Where to start:"
    margin = 2 + max(map(len, STARTS)) + 2
    for problem, command in STARTS.items():
        yield from _row(problem, f"{program} {command}", margin, width)
    yield ""
    yield from wrap(f"`{program} help COMMAND` shows the options of a command.", width)
    yield from wrap(f"Exit codes: {EXIT_CODES}.", width)


def _row(term: str, text: str, margin: int, width: int) -> Iterator[str]:
    first, *others = wrap(text, max(width - margin, 20))
    yield f"  {term:{margin - 2}}{first}"
    yield from (f"{'':{margin}}{line}" for line in others)
