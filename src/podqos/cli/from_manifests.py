"""Manifests as a scenario, with what their pods use and what grows: run directly, or written to files."""

from __future__ import annotations

import argparse
import os
import re

from podqos.cli import options
from podqos.cli.output import say_assumptions
from podqos.cli.problems import print_problems
from podqos.errors import HostError, InputError, InvalidOption

_SCENARIO = re.compile(rb"""(?m)(?:^|[{,])\s*["']?kind["']?\s*:\s*["']?Scenario\b""")
_DEFAULT_RATE = "16Mi/s"
_OPTIONS = {"--usage": "usage", "--growing": "growing", "--rate": "rate", "--node-memory": "node_memory"}


def add_manifest_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare what is said of the pods of manifests that are simulated."""
    parser.add_argument("--usage", metavar="FILE", help="of manifests: usage of the pods, as CSV or YAML, as for rank")
    parser.add_argument(
        "--growing",
        metavar="POD[:CONTAINER][=RATE]",
        action="append",
        default=[],
        help="of manifests: a pod, a workload or system that grows, as for forecast; may be repeated",
    )
    about = f"growth rate, such as 64Mi/s or 2Gi/h (default: {_DEFAULT_RATE})"
    options.add_value_option(parser, "--rate", options.rate_option, about, "QUANTITY/s")
    options.add_node_memory_option(parser, default="that of the Node in the files, or 64Gi")


def names_manifests(arguments: argparse.Namespace, path: str | None) -> bool:
    """Whether a path is one of manifests, and no scenario; raise if what is said of manifests is said of a scenario."""
    if path is None or is_scenario(path):
        for option, name in _OPTIONS.items():
            if getattr(arguments, name):
                raise InvalidOption("needs manifests", where=option, fix="give a file or a directory of them")
        return False
    return True


def is_scenario(path: str) -> bool:
    """Whether a path names a scenario, or nothing that exists: then reading it says so."""
    from podqos.reading.files import read_bytes

    if os.path.isdir(path):
        return False
    if not os.path.isfile(path):  # standard input and pipes can be read only once, and a device may have no end
        return True
    try:
        return _SCENARIO.search(read_bytes(path)) is not None
    except (InputError, HostError):
        return True


def files_of(arguments: argparse.Namespace, path: str, name: str, duration_us: int) -> dict[str, str]:
    """Return the files of the scenario of some manifests, itself first; raise if they cannot be read."""
    from podqos.questions.node import node_state
    from podqos.reading.loading import load
    from podqos.reading.usage import read_usage
    from podqos.runs.manifests import manifest_scenario

    growing: dict[str, int | None] = {}
    for text in arguments.growing:
        what, equals, rate = text.partition("=")
        growing[what] = options.rate_option(rate, "--growing") if equals else None
    objects = load(path)
    try:
        rows = None if arguments.usage is None else read_usage(arguments.usage)
        state = node_state(objects, usage=rows, node_memory_bytes=arguments.node_memory)
    finally:
        errors = print_problems(objects.problems)
    if errors:
        raise InputError("the manifests have errors", where=path, fix="see above")
    say_assumptions(state.growing_on)
    rate = arguments.rate or options.rate_option(_DEFAULT_RATE, "--rate")
    return manifest_scenario(objects, state, name, growing=growing, rate=rate, duration_us=duration_us)
