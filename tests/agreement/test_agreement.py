"""One question, one answer: drawn settings are asked through every command that answers the same question.

``PODQOS_EXAMPLES=2000`` asks about so many settings, ``PODQOS_DRAW=N`` about others (from N million on). The name of a
test has its seed, which gives the same setting for ever.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agreement.asking import Asking
from agreement.headlines import HEADLINES
from agreement.question import disagreements
from agreement.registry import NO_QUESTION, QUESTIONS
from agreement.settings import drawn
from podqos.cli.command_list import COMMANDS

FAST, ALL = 10, int(os.environ.get("PODQOS_EXAMPLES") or 24)
_DRAW = os.environ.get("PODQOS_DRAW", "0")
_BEGIN = 1_000_000 * (int(_DRAW) if _DRAW.isdecimal() else 1)
SEEDS = [
    pytest.param(_BEGIN + seed, marks=[pytest.mark.slow] if seed >= FAST else [], id=f"seed-{_BEGIN + seed}")
    for seed in range(ALL)
]


@cache
def _asked(seed: int) -> tuple[list[str], frozenset[tuple[str, str, str]]]:
    """Return where answers differ, and which readers said anything."""
    found: list[str] = []
    answered: set[tuple[str, str, str]] = set()
    with TemporaryDirectory() as directory:
        asking = Asking(drawn(seed), Path(directory))
        for question in QUESTIONS:
            found += map(str, disagreements(question, asking, answered))
        for command, headline in HEADLINES.items():
            try:
                headline(asking)
            except AssertionError as error:
                found.append(f"seed {seed}: the headline of {command}: {error}")
    return found, frozenset(answered)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_command_that_answers_a_question_gives_the_same_answer(seed):
    found, _ = _asked(seed)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_reader_finds_an_answer_to_read():
    """A reader whose command prints something else now would find nothing to disagree with."""
    expected = {
        (question.name, reader.command, how)
        for question in QUESTIONS
        for reader in question.readers
        for how, read in (("json", reader.answer), ("text", reader.printed))
        if read is not None
    }
    said: set[tuple[str, str, str]] = set()
    for seed in range(ALL):  # some apply to few settings
        said |= _asked(seed)[1]
        if seed >= FAST and said == expected:
            break
    assert said == expected


def test_every_command_answers_a_question_here_or_is_said_to_answer_none():
    """A new command: add its reader to a question in ``agreement/questions``, or say in ``NO_QUESTION`` why not."""
    asked = {reader.command.split()[0] for question in QUESTIONS for reader in question.readers} | {*HEADLINES}
    assert {*COMMANDS} - asked == {*NO_QUESTION}
    assert all(NO_QUESTION.values())
