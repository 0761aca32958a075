"""``podqos advise``: what advice aims at, what it is tried on, and where it is written."""

from __future__ import annotations

import argparse
import os
import sys
from fractions import Fraction

from podqos.advice.sizing.goals import Goal
from podqos.answers.advice import AdviceReport
from podqos.answers.advice_effects import Prices
from podqos.answers.advised_edits import PatchTool, edited_files
from podqos.cli import options
from podqos.cli.counted_nodes import add_counted_nodes_options
from podqos.errors import HostError, InvalidOption
from podqos.manifest.edits.apply import CannotEdit
from podqos.model.resources import CPU, MEMORY
from podqos.objects.files import STDIN
from podqos.objects.objects import Objects
from podqos.reading.written_files import replace_file
from podqos.wording import counted, listed
from podqos.words.edits import reason_words

_PRICE_EXAMPLE = "cpu=0.032,memory=0.004"


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """Declare what advice aims at and is tried on."""
    trial = parser.add_argument_group("the trial")
    about = (
        "advise all workloads, whether or not anything is known about them: make them Guaranteed, as cheap as usage "
    )
    options.add_choice_option(trial, "--goal", Goal, f"{about}allows, or as safe as can be")
    about = "price of a core and of a GiB an hour, in any currency, for the cost of a month (730 hours)"
    options.add_value_option(trial, "--price", _prices, about, _PRICE_EXAMPLE)
    add_counted_nodes_options(trial)


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """Declare where advice is written."""
    writing = parser.add_argument_group("taking the advice")
    about = "print patches for a tool: kubectl commands, files for kustomize, or values for a Helm chart"
    options.add_choice_option(writing, "--patch", PatchTool, about)
    about = "write the advice into this manifest; only its lines change"
    options.add_list_option(writing, "--apply-to", "FILE", about)


def _prices(text: str, option: str) -> Prices:
    """Read ``cpu=0.032,memory=0.004``."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        try:
            number = float(Fraction(amount))
        except (ValueError, ZeroDivisionError):
            number = -1.0
        if name not in {CPU, MEMORY} or number < 0:
            raise InvalidOption(f"{part.strip()!r} is not a price", where=option, fix=f"write {_PRICE_EXAMPLE}")
        found[name] = number
    return Prices(found.get(CPU, 0.0), found.get(MEMORY, 0.0))


def apply_to(paths: list[str], objects: Objects, report: AdviceReport) -> int:
    """Write the advice into manifests, say what changed, and return how many could not be written."""
    read = {os.path.realpath(source.path): source.path for source in objects.sources if source.path != STDIN}
    sources = []
    for path in paths:
        if os.path.realpath(path) not in read:
            raise InvalidOption(f"{path} was not read", where="--apply-to", fix=f"name it with -f, too: -f {path}")
        sources.append(read[os.path.realpath(path)])
    unwritten = 0
    for file in edited_files(objects, report, sources):
        if isinstance(file.outcome, CannotEdit):
            print(f"{file.source}: not written: {reason_words(file.outcome)}", file=sys.stderr)
            unwritten += 1
        elif file.outcome.data == file.before:
            print(f"{file.source}: nothing to change", file=sys.stderr)
        else:
            try:
                replace_file(file.source, file.before, file.outcome.data)
            except HostError as error:
                print(error, file=sys.stderr)
                unwritten += 1
            else:
                changed = counted(len(file.workloads), "workload")
                print(f"{file.source}: changed {changed}: {listed(file.workloads)}", file=sys.stderr)
    say_classes(report)
    return unwritten


def say_classes(report: AdviceReport) -> None:
    """Say which priority classes the advised workloads need."""
    if report.priority_classes:
        names = listed([each.name for each in report.priority_classes])
        print(f"priority classes to create first: {names} (-o manifests prints them)", file=sys.stderr)
