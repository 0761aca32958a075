"""``podqos --help``: what there is to ask, by task, in one screen."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from podqos.cli.command_list import GROUPS
from podqos.cli.terminal import help_columns

SUMMARY = "which pod dies first when a node runs out of memory, why, and the lines that change it"
EXIT_CODES = "0 success, 1 findings, 2 bad input, 3 host or cluster error, 70 internal error, 130 interrupted"


def overview(program: str) -> str:
    """Return the commands by task."""
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
            first, *others = wrap(summary, max(width - margin, 20))
            yield f"  {name:{margin - 2}}{first}"
            yield from (f"{'':{margin}}{line}" for line in others)
    yield ""
    yield from wrap(f"`{program} help COMMAND` has the options; `{program} --version` the version.", width)
    yield from wrap(f"Exit codes: {EXIT_CODES}.", width)
