"""Twelve questions of an SRE: the command that README gives answers each in its first line."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from documents.commands import ROOT, commands_of
from documents.tasks import TASKS, TRANSCRIPTS, ask, office


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory) -> Iterator[str]:
    with office(tmp_path_factory.mktemp("office")) as url:
        yield url


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_first_line_answers_the_question_and_the_rest_is_as_recorded(prometheus, task):
    ran, transcript = ask(task, prometheus)
    assert ran.code in {0, 1}, ran.err
    assert transcript == task.transcript.read_text()
    answer = "\n".join(transcript.splitlines()[2 : 2 + task.lines])
    assert re.search(task.answer, answer), answer


def test_every_command_is_the_one_that_the_readme_gives():
    given = {command.text.partition("  #")[0].strip() for command in commands_of(ROOT / "README.md")}
    assert {task.command for task in TASKS} - given == set()


def test_there_are_twelve_transcripts_and_no_others():
    assert len(TASKS) == 12
    assert {path.name for path in TRANSCRIPTS.iterdir()} == {task.transcript.name for task in TASKS}
