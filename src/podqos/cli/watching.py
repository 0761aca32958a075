"""``--watch``: an answer about a live cluster, given again and again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import count
from time import monotonic, sleep

from podqos.cli import options
from podqos.cli.options import Parser
from podqos.errors import InvalidOption
from podqos.library.cluster_part import Part
from podqos.model.time_units import SECOND_US
from podqos.report.text.controls import own

_LEAST_US = SECOND_US // 10
_PAUSE_SECONDS = 0.05
_SOONEST_SECONDS = 1.0
"""A terminal is redrawn when something changes, but not more often."""
_CLEAR = own("\x1b[H\x1b[2J")


def add_watch_options(parser: Parser) -> None:
    """Declare ``--watch``."""
    about = "go on with a live cluster until Ctrl-C: a terminal is redrawn, other outputs get block after block"
    parser.add_argument("-w", "--watch", action="store_true", help=about)
    about = "with --watch: time between two answers; a terminal is also redrawn when something changes"
    options.add_value_option(parser, "--interval", _interval, about, "TIME", default="5s")


def _interval(text: str, option: str) -> int:
    return options.duration_option(text, option, _LEAST_US)


def answered(arguments: argparse.Namespace, part: Callable[[], Part], answer: Callable[[], int]) -> int:
    """Answer once, or with ``--watch`` until it is interrupted; return the exit code.

    ``part`` returns which part of the cluster the answer needs, ``answer`` prints it about ``arguments.cluster``.
    """
    if not arguments.watch:
        return answer()
    if arguments.snapshot is not None:
        raise InvalidOption("a snapshot does not change", where="--watch", fix="leave out --watch or --snapshot")
    from podqos.cluster.cluster import connect
    from podqos.library.mirror import Mirror

    seconds = arguments.interval / SECOND_US
    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        mirror = Mirror(cluster, part(), usage_seconds=min(seconds, _SOONEST_SECONDS), say=_say)
        try:
            mirror.start()
            while not mirror.is_complete and mirror.fatal is None:
                sleep(_PAUSE_SECONDS)
            for number in count():
                if mirror.fatal is not None:
                    raise mirror.fatal
                known, began = mirror.changes, monotonic()
                arguments.cluster = mirror.snapshot()
                _begin_block(arguments.output, is_first=number == 0)
                answer()
                sys.stdout.flush()
                while monotonic() < began + seconds:
                    sleep(_PAUSE_SECONDS)
                    is_due = monotonic() >= began + _SOONEST_SECONDS
                    if is_due and sys.stdout.isatty() and mirror.changes != known:
                        break
        except KeyboardInterrupt:
            pass
    return 0


def _begin_block(output: str, *, is_first: bool) -> None:
    if sys.stdout.isatty() and output not in {"json", "yaml", "csv", "name"}:
        sys.stdout.write(_CLEAR)
    elif not is_first and output != "json":
        # Documents of YAML and blocks of text are kept apart; values of JSON need nothing.
        print("---" if output == "yaml" else "")


def _say(what: str) -> None:
    print(f"podqos: {what}", file=sys.stderr, flush=True)
