"""``podqos autopsy --live``: OOM kills explained as they happen."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from csv import writer
from time import sleep

from podqos.api import live_autopsy
from podqos.cli.cluster import arguments_name_cluster, cluster_of
from podqos.cli.deaths import asked_options, object_files, objects_of
from podqos.cli.output import print_lines
from podqos.cli.streams import for_programs
from podqos.cli.terminal import style_of
from podqos.controls import cell
from podqos.errors import InvalidOption
from podqos.manifest.encoding import json_line
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.files import Inputs
from podqos.objects.objects import Objects
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_text import csv_rows, text
from podqos.reading.cluster_part import Part

_FORMATS = ("text", "json", "jsonl", "csv")
_PAUSE_SECONDS = 0.05

Known = Callable[[], ClusterSnapshot | Objects | None]


def explain_live(arguments: argparse.Namespace) -> int:
    """Print every OOM kill until Ctrl-C or the end of a pipe."""
    if len(arguments.logs) > 1:
        raise InvalidOption("only one log can be followed", where="--live", fix="run podqos once for each")
    if arguments.output not in _FORMATS:
        raise InvalidOption(f"-o {arguments.output} needs a log that ends", where="--live", fix="-o text, jsonl or csv")
    if arguments.html is not None:
        raise InvalidOption("--html needs a log that ends", where="--html", fix="remove --live or --html")
    path = arguments.logs[0] if arguments.logs else None
    has_found = False
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with _known(arguments) as known:
            printing = _printing(arguments)
            for found in live_autopsy(path, known=known, say=_say, **asked_options(arguments)):
                has_found = True
                printing(found)
                sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
    return 1 if arguments.exit_code and has_found else 0


@contextmanager
def _known(arguments: argparse.Namespace) -> Iterator[Known]:
    """Return a function that looks up pods: in the live cluster at that moment, or in what was read once."""
    if not arguments_name_cluster(arguments) or arguments.snapshot is not None:
        snapshot = cluster_of(arguments)
        read = objects_of(object_files(arguments, Inputs([])), None) if snapshot is None else snapshot
        yield lambda: read
        return
    from podqos.cluster.cluster import connect
    from podqos.reading.mirror import Mirror

    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        mirror = Mirror(cluster, Part(usage=False, policies=False, workloads=False), say=_say)
        mirror.start()
        while not mirror.is_complete and mirror.fatal is None:
            sleep(_PAUSE_SECONDS)
        if mirror.fatal is not None:
            raise mirror.fatal
        arguments.cluster = mirror.snapshot()  # its version decides
        yield mirror.snapshot


def _printing(arguments: argparse.Namespace) -> Callable[[Autopsy], None]:
    if arguments.output == "text":
        style = style_of(arguments)
        return lambda found: print_lines([*text(found, style, verbose=arguments.verbose), ""], style)
    for_programs()
    if arguments.output == "csv":
        rows = writer(sys.stdout, lineterminator="\n")
        if not arguments.no_headers:
            rows.writerow(csv_rows(Autopsy())[0])
        return lambda found: rows.writerows(map(cell, row) for row in csv_rows(found)[1])
    return lambda found: print("".join(json_line(death).decode() for death in found.deaths), end="")


def _say(what: str) -> None:
    print(f"podqos: {what}", file=sys.stderr, flush=True)


def _end(*_: object) -> None:
    raise KeyboardInterrupt
