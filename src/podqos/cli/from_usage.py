"""``podqos scenario from-usage``: read samples, write the scenario, and report which samples were used."""

from __future__ import annotations

import argparse
from fractions import Fraction

from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.output import print_lines, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.prometheus import queried
from podqos.errors import InvalidOption
from podqos.manifest.samples import read_number
from podqos.reading.loading import load
from podqos.reading.scenario_writing import write_files
from podqos.reading.usage_replay import ReplayOptions, UsageFile, replay
from podqos.report.simulation.replay import replay_lines
from podqos.sim.scenario_format.recorded_usage import Measure


def run(arguments: argparse.Namespace) -> int:
    """Write the scenario, print what it contains, and return the exit code."""
    usage = [
        *(UsageFile(path) for path in arguments.usage),
        *(UsageFile(path, Measure.MEMORY) for path in arguments.memory),
        *(UsageFile(path, Measure.CPU) for path in arguments.cpu),
    ]
    if not usage and arguments.prometheus is None:
        fix = "give a CSV file, a Prometheus result, or --prometheus URL"
        raise InvalidOption("no usage samples to replay", where="--usage", fix=fix)
    if not arguments.files:
        raise InvalidOption("no manifests", where="-f", fix="give the pods' manifests")
    objects = load(*arguments.files, namespace=arguments.namespace or "default")
    options = ReplayOptions(
        name=arguments.name,
        node_count=arguments.nodes,
        node_capacity=arguments.node_capacity or {},
        tolerance=_part(arguments.tolerance),
    )
    found = queried(arguments)
    made = replay(objects, usage, options, found)
    if print_problems(objects.problems):
        return EXIT_BAD_INPUT
    write_files(made.files)
    print_lines(list(replay_lines(made.told)))
    print(f"next: podqos simulate {arguments.name}.yaml")
    say_assumptions(() if found is None else found.assumptions)
    return EXIT_OK


def _part(text: str) -> Fraction:
    percent = read_number(text.removesuffix("%"))
    if percent is None or not text.endswith("%") or not 0 <= percent <= 100:
        raise InvalidOption(f"{text!r} is not a percentage", where="--tolerance", fix="0% to 100%, for example 1%")
    return percent / 100
