"""The options of ``podqos advise``: its goal, the nodes it is tested on, and where it is written."""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.counted_nodes import add_counted_nodes_options

GOALS = ("guaranteed", "cheapest", "safest")
PATCH_TOOLS = ("kubectl", "kustomize")


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """Declare the goal of advice and the nodes it is tested on."""
    trial = parser.add_argument_group("testing the advice")
    about = "advise every workload, even without a description or usage: make it Guaranteed, as cheap as usage "
    trial.add_argument("--goal", choices=GOALS, help=f"{about}allows, or as safe as possible")
    add_counted_nodes_options(trial)


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """Declare where advice is written."""
    writing = parser.add_argument_group("applying the advice")
    about = "print patches: kubectl commands, or kustomize files"
    writing.add_argument("--patch", choices=PATCH_TOOLS, help=about)
    about = "write the advice into this manifest, changing only the lines concerned"
    options.add_list_option(writing, "--apply-to", "FILE", about)
