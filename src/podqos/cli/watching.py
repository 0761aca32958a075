"""``--watch``: an answer about a live cluster, repeated."""

from __future__ import annotations

import argparse
import gc
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, TextIO

from podqos.cli import options
from podqos.cli.options import Parser
from podqos.cli.output import FOR_PEOPLE
from podqos.cli.streams import GuardedStream
from podqos.cli.terminal import output_columns
from podqos.errors import InvalidOption
from podqos.model.time_units import SECOND_US
from podqos.reading.cluster_part import Part
from podqos.report.text.style import Style, windowed

if TYPE_CHECKING:
    from podqos.reading.mirror import Mirror

_LEAST_US = SECOND_US // 10
_PAUSE_SECONDS = 0.05
_MOST_WAIT_SECONDS = 3.0
"""So long an answer waits for usage that is being measured; then it uses what is known."""
_SOONEST_SECONDS = 1.0
"""A terminal is redrawn when something changes, but not more often."""


def add_watch_options(parser: Parser) -> None:
    """Declare ``--watch``."""
    about = (
        "keep watching the live cluster until Ctrl-C or q: a terminal is redrawn, other outputs get one "
        "block per answer"
    )
    parser.add_argument("-w", "--watch", action="store_true", help=about)
    about = "with --watch: time between two answers; a terminal is also redrawn when the cluster changes"
    options.add_value_option(parser, "--interval", _interval, about, "TIME", default="5s")


def _interval(text: str, option: str) -> int:
    return options.duration_option(text, option, _LEAST_US)


def answered(arguments: argparse.Namespace, part: Callable[[], Part], answer: Callable[[], int]) -> int:
    """Answer once, or with ``--watch`` until interrupted; return the exit code.

    ``part`` returns which part of the cluster the answer needs, ``answer`` prints it about ``arguments.cluster``.
    """
    if not arguments.watch:
        return answer()
    if arguments.snapshot is not None:
        raise InvalidOption("a snapshot does not change", where="--watch", fix="remove --watch or --snapshot")
    from podqos.cluster.cluster import connect
    from podqos.reading.mirror import Mirror
    from podqos.words.data_age import data_age_sentence

    gc.enable()  # this may go on for days
    seconds = arguments.interval / SECOND_US
    is_redrawn = sys.stdout.isatty() and arguments.output in FOR_PEOPLE
    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster, suppress(KeyboardInterrupt):
        say = _nothing if is_redrawn else _say  # on a screen it is shown while it lasts
        wanted = part()
        mirror = Mirror(cluster, wanted, usage_seconds=seconds, say=say)
        mirror.start()
        mirror.measure_in_background()
        while not _is_ready(mirror, wanted):
            sleep(_PAUSE_SECONDS)

        def again() -> None:
            mirror.wait_for_usage(min(seconds, _MOST_WAIT_SECONDS) if wanted.usage else 0)
            error = mirror.fatal or mirror.usage_error
            if error is not None:
                raise error
            arguments.cluster = mirror.known()
            answer()
            age = arguments.cluster.age
            if age is not None and arguments.output in FOR_PEOPLE:
                print(f"\n{data_age_sentence(age)}")

        if is_redrawn:
            _redraw(mirror, again, seconds)
        else:
            _repeat(again, seconds, arguments.output)
    return 0


def _is_ready(mirror: Mirror, part: Part) -> bool:
    """Whether there is something to answer from, or never will be."""
    is_read = mirror.is_complete and (mirror.is_measured or not part.usage)
    return is_read or mirror.fatal is not None or mirror.usage_error is not None


def _redraw(mirror: Mirror, again: Callable[[], None], seconds: float) -> None:
    """Draw the answer at intervals, and soon after a change; errors are shown above it."""
    from podqos.cli.screen import whole_screen

    known, lines = mirror.changes, _captured(again)  # before the screen: an error now leaves the terminal alone
    with whole_screen() as screen:
        while True:
            began, drawn, soon = monotonic(), None, min(seconds, _SOONEST_SECONDS)
            while monotonic() < began + (soon if mirror.changes != known else seconds):
                told, style, height = mirror.troubles, Style(width=output_columns(sys.stdout)), screen.height
                if drawn != (told, style, height):
                    drawn = told, style, height
                    screen.draw(windowed([*(f"podqos: {each}" for each in told), *lines], style, height))
                if screen.is_left(_PAUSE_SECONDS):
                    return
            known, lines = mirror.changes, _captured(again)


def _captured(again: Callable[[], None]) -> list[str]:
    """Return the lines that an answer writes to a terminal, and then those of its messages."""
    answer, messages = _Terminal(sys.stdout), io.StringIO()
    with redirect_stdout(answer), redirect_stderr(messages):
        again()
    return [*answer.getvalue().splitlines(), *messages.getvalue().splitlines()]


class _Terminal(io.StringIO):
    """Captures output meant for a terminal."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()


def _repeat(again: Callable[[], None], seconds: float, output: str) -> None:
    """Print the answer at intervals, until nothing reads it any more."""
    is_first = True
    while not (isinstance(sys.stdout, GuardedStream) and sys.stdout.is_discarded):
        began = monotonic()
        if not is_first and output != "json":
            # Documents of YAML and blocks of text are kept apart; values of JSON need nothing.
            print("---" if output == "yaml" else "")
        is_first = False
        again()
        sys.stdout.flush()
        while monotonic() < began + seconds:
            sleep(_PAUSE_SECONDS)


def _nothing(_: str) -> None:
    pass


def _say(what: str) -> None:
    print(f"podqos: {what}", file=sys.stderr, flush=True)
