"""The commands by task, and the parser of each.

Start-up time counts, so only the module of the chosen subcommand is imported. A command module has two functions:
``add_arguments(parser)`` and ``run(arguments) -> exit code``.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol

from podqos.cli.parser import CommandParser

# task → command → its module under podqos.cli.commands, and its summary in `podqos help`
GROUPS = {
    "Manifests": {
        "explain": ("explain", "every pod's QoS class, why, and the edit that makes it Guaranteed"),
        "check": ("check", "find and fix what fails when memory runs short; a CI gate"),
        "drift": ("drift", "what a change does to QoS classes, oom scores and kill orders"),
        "advise": ("advise", "requests, limits, QoS class from usage; kubelet settings"),
        "admit": ("admit", "what the API server does to a pod: LimitRange, quota, defaults"),
        "policy": ("policy", "requirements for pods: test manifests, export to CEL"),
    },
    "Nodes": {
        "rank": ("rank", "eviction order and OOM kill order of a node's pods, and why"),
        "autopsy": ("autopsy", "why a pod was OOMKilled or evicted: from logs, files, a cluster"),
        "place": ("place", "capacity: where pods land, which stay pending and why"),
        "cpu": ("cpu", "CPU share of each pod under full contention"),
        "thresholds": ("thresholds", "kubelet settings: allocatable, eviction thresholds, what is wrong"),
    },
    "Clusters": {
        "snapshot": ("snapshot", "save a live cluster to a file that every command can read"),
        "ui": ("ui", "explore in a browser: who dies first, why, what would change it"),
        "overview": ("overview", "a cluster on one screen: headroom, next victims, findings"),
        "exporter": ("exporter", "Prometheus metrics of a live cluster"),
        "webhook": ("webhook", "admission webhook: reject, warn about or fix pods by policy"),
    },
    "What if": {
        "simulate": ("simulate", "run a scenario in virtual time: what is killed, when and why"),
        "forecast": ("forecast", "a container grows: does the kubelet or the kernel act first?"),
        "blast": ("blast", "blast radius of a leak in each pod: which others die, how soon"),
        "scenario": ("scenario", "create, validate and list scenario files"),
    },
    "Real machine": {
        "node": ("node", "run pods on this machine: real cgroups, the kubelet's evictions"),
        "rehearse": ("rehearse", "run a scenario on this kernel and compare with the simulation"),
        "guard": ("guard", "next to a kubelet: evict in milliseconds; dry run by default"),
    },
    "Other": {
        "demo": ("demo", "guided tour: eight services, an incident, the fix; no cluster"),
        "eval": ("evaluate", "decisions for other programs: JSON lines in, JSON lines out"),
        "schema": ("schema", "JSON Schema of what a command prints, or of a file"),
        "completion": ("completion", "shell completion for bash, zsh and fish"),
        "help": ("help", "help for a command"),
    },
}
COMMANDS = {name: each for group in GROUPS.values() for name, each in group.items()}


class Command(Protocol):
    """The functions of a command module."""

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
