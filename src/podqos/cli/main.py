"""The command ``podqos``: finds the subcommand and runs it.

Start-up time counts, so only the module of the chosen subcommand is imported. A command module has two functions:
``add_arguments(parser)`` and ``run(arguments) -> exit code``.

Exit codes: 0 success; 1 the command has findings; 2 bad input (files, options); 3 the host does not allow something;
130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn, Protocol

from podqos.cli.streams import discard_output, guarded_streams
from podqos.cli.terminal import help_columns
from podqos.errors import HostError, InputError
from podqos.report.text.controls import one_line

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_BAD_INPUT = 2
EXIT_HOST = 3
EXIT_INTERRUPTED = 130

# command → its module under podqos.cli, and what it does, as `podqos --help` lists it
COMMANDS = {
    "explain": ("explain", "the QoS class of every pod in manifests, why, and what follows from it"),
    "admit": ("admit", "what the API server does with manifests in their namespaces, step by step"),
    "check": ("check", "what will fail when memory runs short, why, and what to write instead; a gate for CI"),
    "place": ("place", "where pods land on nodes, which stay pending and why, which are preempted, how full nodes get"),
    "rank": ("rank", "which pods of a node the kubelet evicts and the kernel kills first, and why"),
    "cpu": ("cpu", "how much CPU each pod gets when all use as much as they can"),
    "thresholds": ("thresholds", "a kubelet's eviction thresholds: what they mean, which acts first, what is wrong"),
    "drift": ("drift", "what a change to manifests does to classes, oom scores and both kill orders"),
    "advise": ("advise", "the class, priority and sizes a workload should have; a kubelet's settings for a node"),
    "forecast": ("forecast", "whether kernel or kubelet acts first when a container grows, and which pod dies"),
    "scenario": ("scenario", "scenario files for simulations: validate, create, list, and their schema for editors"),
    "simulate": ("simulate", "what happens on nodes over time: run a scenario in virtual time"),
    "blast": ("blast", "the impact of a leak in each pod: which other pods die, how soon, and what kills them"),
    "sweep": ("sweep", "run a scenario with many values and seeds: how each workload fares"),
    "rehearse": ("rehearse", "run a scenario on this machine's kernel and compare it with the simulation"),
    "node": ("node", "run pods on this machine with the same rules: real cgroups, real eviction"),
    "demo": ("demo", "a guided tour of a content platform with eight services; needs no cluster"),
    "eval": ("evaluate", "decisions for other programs: JSON lines in, JSON lines out"),
}


class Command(Protocol):
    """What a command module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the work and return the exit code."""


def command_line() -> NoReturn:
    """Run as the program and exit at once: the kernel frees memory faster than Python does."""
    code = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):
            stream.flush()
    if "joblib" in sys.modules:
        # It has files and workers of its own to clean up.
        sys.exit(code)
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run podqos and return its exit code."""
    # A command lives for a moment and its values have no cycles: collecting garbage would only cost time.
    gc.disable()
    arguments = sys.argv[1:] if argv is None else argv
    program = "kubectl podqos" if sys.argv[0].endswith("kubectl-podqos") else "podqos"
    with guarded_streams():
        return _answer(program, arguments)


def _answer(program: str, arguments: list[str]) -> int:
    try:
        try:
            return _run(program, arguments)
        finally:
            # Also after --help, which exits by itself: what cannot be written is told below.
            sys.stdout.flush()
    except InputError as error:
        return _failed(program, f"error: {error}", EXIT_BAD_INPUT)
    except HostError as error:
        return _failed(program, f"error: {error}", EXIT_HOST)
    except KeyboardInterrupt:
        return _failed(program, "interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`podqos explain … | head`). Python would complain once more when it flushes at exit.
        discard_output()
        return EXIT_OK
    except OSError as error:
        # Files are opened where their names are known; what is left is the output.
        discard_output()
        return _failed(program, f"error: {error.filename or 'standard output'}: {error.strerror or error}", EXIT_HOST)


def _failed(program: str, what: str, code: int) -> int:
    """Say in one line why there is no answer."""
    with suppress(OSError):
        print(f"{program}: {one_line(what)}", file=sys.stderr)
    return code


def _run(program: str, argv: list[str]) -> int:
    name = argv[0] if argv and argv[0] in COMMANDS else None
    if name is None:
        # No command, --help, --version or a word we do not know: the full parser answers, without running anything.
        _overview(program).parse_args(argv or ["--help"])
        return EXIT_BAD_INPUT
    command: Command = import_module(f"podqos.cli.commands.{COMMANDS[name][0]}")
    parser = argparse.ArgumentParser(
        prog=f"{program} {name}",
        description=command.__doc__,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    arguments = parser.parse_args(argv[1:])
    if isinstance(getattr(arguments, "schema", None), str):
        from podqos.cli.output import print_schema

        print_schema(arguments.schema)
        return EXIT_OK
    code = command.run(arguments)
    sys.stdout.flush()
    return code


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter that knows its width: argparse imports half an archiver to find it out."""
    return argparse.RawDescriptionHelpFormatter(prog, width=help_columns())


def _overview(program: str) -> argparse.ArgumentParser:
    from podqos import __version__

    parser = argparse.ArgumentParser(
        prog=program,
        description="Which pods are slowed down or killed, in which order, and why: Kubernetes' QoS system, explained.",
        epilog=f"`{program} COMMAND --help` has the details. Exit codes: 0 success, 1 findings, 2 bad input, "
        "3 host error, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"podqos {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser
