"""A question that several commands answer, and how to read the answer of each.

To add a command: write a ``Reader`` beside those of its question (``tests/agreement/questions/``), with what it says as
JSON and what it prints. A new question is a new file there with a ``QUESTION``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from agreement.asking import Asking
from agreement.printed import agrees
from agreement.settings import Setting

Answers = Mapping[object, object]
"""What is answered, by what it is about: pods, containers, resources. Not every command speaks of all of them."""


class Reader(NamedTuple):
    """How to read one command's answer. The first of a question's readers is the reference."""

    command: str
    """As the command list has it, with more words where a command is asked in several ways."""
    answer: Callable[[Asking], Answers]
    """From JSON."""
    printed: Callable[[Asking], Answers] | None = None
    """From the text for people; None where the text does not say."""
    when: Callable[[Setting], bool] = lambda _: True
    """Whether the command can be asked about a setting at all: it may have no option for a part of it."""


class Question(NamedTuple):
    """A question, with all that answer it."""

    name: str
    readers: tuple[Reader, ...]


class Disagreement(NamedTuple):
    """Two answers to one question."""

    question: str
    seed: int
    command: str
    how: str
    """``json`` or ``text``."""
    about: object
    expected: object
    found: object

    def __str__(self) -> str:
        """Return it in one line."""
        return (
            f"seed {self.seed}: {self.question}: {self.command} ({self.how}) says {self.found!r} about {self.about!r}, "
            f"not {self.expected!r}"
        )


def disagreements(question: Question, asking: Asking, answered: set[tuple[str, str, str]]) -> list[Disagreement]:
    """Return where answers differ; notes in ``answered`` which readers said anything."""
    first, *_ = question.readers
    reference: Answers | None = None
    found: list[Disagreement] = []
    seed = asking.setting.seed
    for reader in question.readers:
        if not reader.when(asking.setting):
            assert reader is not first, "the reference answers for every setting"
            continue
        for how, read in (("json", reader.answer), ("text", reader.printed)):
            if read is None:
                continue
            try:
                answers = read(asking)
            except Exception as error:  # noqa: BLE001
                found.append(Disagreement(question.name, seed, reader.command, how, "", "an answer", repr(error)))
                continue
            if answers:
                answered.add((question.name, reader.command, how))
            if reference is None:
                reference = answers
            for about, value in answers.items():
                expected = reference.get(about, "nothing")
                if not agrees(expected, value):
                    found.append(Disagreement(question.name, seed, reader.command, how, about, expected, value))
    return found
