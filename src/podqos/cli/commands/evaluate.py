"""Make decisions for other programs: JSON lines in, JSON lines out.

Reads {"id", "input"} lines from standard input and answers each with an {"id", "result"} line at once. A line that
cannot be answered gets an {"id", "error"} line, and the next one is read.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from podqos.cli.families import FAMILIES, Answer, Input, evaluate
from podqos.errors import PodqosError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos eval``."""
    parser.add_argument("family", choices=[*FAMILIES], metavar="FAMILY", help=f"one of {', '.join(FAMILIES)}")


def run(arguments: argparse.Namespace) -> int:
    """Answer every line of standard input."""
    decoder = msgspec.json.Decoder(EvalQuestion)
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        if line.strip():
            output.write(msgspec.json.encode(_answered(line, decoder, arguments.family)) + b"\n")
            output.flush()
    return 0


class EvalQuestion(msgspec.Struct):
    """One input line."""

    id: str | int | None = None
    input: Input = {}


def _answered(line: bytes, decoder: msgspec.json.Decoder[EvalQuestion], family: str) -> Answer:
    """Return the output object for one input line."""
    try:
        question = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {"id": None, "error": f"not a valid input line: {error}"}
    try:
        return {"id": question.id, "result": evaluate(family, question.input)}
    except (PodqosError, msgspec.ValidationError) as error:
        return {"id": question.id, "error": str(error)}
    except KeyError as error:
        return {"id": question.id, "error": f"invalid input: the field {error} is missing"}
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        # The families' inputs are plain JSON of other programs: a missing or ill-typed field ends here.
        return {"id": question.id, "error": f"invalid input: {type(error).__name__}: {error}"}
