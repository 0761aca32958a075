"""Questions on the terminal: a line each, with the choices and what an empty answer means."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from podqos.advice.sizing.matrix import BurstPattern, Description, RestartCost
from podqos.errors import InputError, InvalidOption


def check_terminal() -> None:
    """Raise if there is no terminal to ask on."""
    if not sys.stdin.isatty():
        fix = "describe the workloads with annotations or --describe FILE, or run it in a terminal"
        raise InvalidOption("cannot ask: standard input is not a terminal", where="--ask", fix=fix)


def ask_description(name: str) -> Description:
    """Ask what a workload is like."""
    print(f"{name}:", file=sys.stderr)
    is_sensitive = _ask("  Do users wait for its responses?", ("yes", "no"), "no") == "yes"
    cost = RestartCost(_ask("  What does a restart cost?", tuple(RestartCost), RestartCost.LOW))
    burst = BurstPattern(_ask("  How does its usage vary?", tuple(BurstPattern), BurstPattern.STEADY))
    keeps_state = slow_start = False
    if not is_sensitive:
        keeps_state = _ask("  Does it keep state that cannot be rebuilt?", ("yes", "no"), "no") == "yes"
        slow_start = _ask("  Is it slow to become useful after a start?", ("yes", "no"), "no") == "yes"
    return Description(is_sensitive, cost, burst, keeps_state, slow_start)


def ask_name() -> str:
    """Ask for the name of the workload."""
    return _line("Name of the workload: ") or "workload"


def _ask(question: str, choices: Sequence[str], default: str) -> str:
    """Ask until the answer is one of the choices, or an unambiguous prefix of one."""
    while True:
        answer = _line(f"{question} [{'/'.join(choices)}] ({default}): ").lower() or default
        fitting = [choice for choice in choices if choice.startswith(answer)]
        if answer in choices or len(fitting) == 1:
            return answer if answer in choices else fitting[0]
        print(f"  one of {', '.join(choices)}", file=sys.stderr)


def _line(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise InputError("the input ended before every question was answered", fix="answer every question")
    return line.strip()
