"""Make decisions for other programs: JSON lines in, JSON lines out.

Reads {"id", "input"} lines from standard input and answers each with an {"id", "result"} line at once. A line that
cannot be answered gets an {"id", "error"} line, and the next one is read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module

import msgspec

from podqos.errors import PodqosError

# family → the module under podqos.cli.eval that answers it
FAMILIES = (
    "quantity",
    "qos",
    "oom",
    "cgroup",
    "limitrange",
    "priority",
    "admission",
    "workload_admission",
    "resize",
    "allocatable",
    "scheduling_fit",
    "scheduling",
    "thresholds",
    "eviction_rank",
    "eviction_manager",
)

Evaluate = Callable[[dict[str, object]], dict[str, object]]


class EvalQuestion(msgspec.Struct):
    """One input line."""

    id: str | int | None = None
    input: dict[str, object] = {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos eval``."""
    parser.add_argument("family", choices=FAMILIES, metavar="FAMILY", help=f"one of {', '.join(FAMILIES)}")


def run(arguments: argparse.Namespace) -> int:
    """Answer every line of standard input."""
    evaluate: Evaluate = import_module(f"podqos.cli.eval.{arguments.family}").evaluate
    decoder = msgspec.json.Decoder(EvalQuestion)
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        if line.strip():
            output.write(msgspec.json.encode(answer(line, decoder, evaluate)) + b"\n")
            output.flush()
    return 0


def answer(line: bytes, decoder: msgspec.json.Decoder[EvalQuestion], evaluate: Evaluate) -> dict[str, object]:
    """Return the output object for one input line."""
    try:
        question = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {"id": None, "error": f"not a valid input line: {error}"}
    try:
        return {"id": question.id, "result": evaluate(question.input)}
    except (PodqosError, msgspec.ValidationError) as error:
        return {"id": question.id, "error": str(error)}
    except KeyError as error:
        return {"id": question.id, "error": f"invalid input: the field {error} is missing"}
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        # The families' inputs are plain JSON of other programs: a missing or ill-typed field ends here.
        return {"id": question.id, "error": f"invalid input: {type(error).__name__}: {error}"}
