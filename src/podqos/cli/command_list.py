"""The commands by task, and the parser of each.

Start-up time counts, so only the module of the chosen subcommand is imported. A command module has two functions:
``add_arguments(parser)`` and ``run(arguments) -> exit code``.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol

from podqos.cli.parser import CommandParser

# task → command → its module under podqos.cli.commands, and what it does, as `podqos --help` lists them
GROUPS = {
    "Manifests": {
        "explain": ("explain", "the QoS class of every pod, why, and what follows from it"),
        "check": ("check", "what fails when memory runs short, and the fix; a gate for CI"),
        "drift": ("drift", "what a change does to classes, oom scores and kill orders"),
        "advise": ("advise", "the class, priority and sizes workloads should have; kubelets, too"),
        "admit": ("admit", "what the API server does with manifests, step by step"),
        "policy": ("policy", "what the owner of a cluster demands of pods, and what violates it"),
    },
    "Nodes": {
        "rank": ("rank", "which pods are evicted and killed first on a node, and why"),
        "place": ("place", "where pods land, which stay pending and why, how full nodes get"),
        "cpu": ("cpu", "how much CPU each pod gets when all use as much as they can"),
        "thresholds": ("thresholds", "a kubelet's eviction thresholds: what they mean, what is wrong"),
    },
    "Clusters": {
        "snapshot": ("snapshot", "write down a live cluster, for every command to take"),
        "ui": ("ui", "a page to look at: who dies first, why, what would change it"),
        "overview": ("overview", "a cluster on one screen: headroom, who dies next, what is wrong"),
        "exporter": ("exporter", "metrics of a live cluster for Prometheus"),
        "webhook": ("webhook", "refuse, warn about and mend pods at admission, by policy"),
    },
    "What if": {
        "simulate": ("simulate", "a scenario in virtual time: what is killed, when and why"),
        "forecast": ("forecast", "a container grows: kernel or kubelet first, and which pod dies"),
        "blast": ("blast", "every pod leaks in turn: which others die, how soon"),
        "sweep": ("sweep", "a scenario under many values and seeds: how workloads fare"),
        "scenario": ("scenario", "scenario files: validate, create, list; their schema for editors"),
    },
    "Real machine": {
        "node": ("node", "run pods here with the same rules: real cgroups, real eviction"),
        "rehearse": ("rehearse", "run a scenario on this kernel and compare with the simulation"),
        "guard": ("guard", "beside a kubelet: its own eviction in milliseconds, explained"),
        "autopsy": ("autopsy", "OOM kills in a kernel log: what was full, who died, by which rule"),
    },
    "Other": {
        "demo": ("demo", "a guided tour of a platform of eight services; needs no cluster"),
        "eval": ("evaluate", "decisions for other programs: JSON lines in, JSON lines out"),
        "completion": ("completion", "completion of commands and options for bash, zsh and fish"),
        "help": ("help", "help on a command; the manual page with --man"),
    },
}
COMMANDS = {name: each for group in GROUPS.values() for name, each in group.items()}


class Command(Protocol):
    """What a command module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the work and return the exit code."""


def parser_of(name: str, program: str = "podqos") -> tuple[CommandParser, Command]:
    """Return the parser of one command, and the command."""
    command: Command = import_module(f"podqos.cli.commands.{COMMANDS[name][0]}")
    parser = CommandParser(prog=f"{program} {name}", description=command.__doc__)
    command.add_arguments(parser)
    return parser, command
