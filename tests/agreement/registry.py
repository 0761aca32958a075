"""All questions that more than one command answers, and the commands that answer none of them."""

from __future__ import annotations

from agreement.question import Question
from agreement.questions import answer, growth, headroom, orders, pods, room, saving

QUESTIONS: tuple[Question, ...] = tuple(
    each
    for module in (pods, orders, growth, headroom, room, answer, saving)
    for each in vars(module).values()
    if isinstance(each, Question)
)

NO_QUESTION = {
    "policy": "judges by rules of its own",
    "snapshot": "writes down what other commands read",
    "webhook": "answers one review at a time, with what `check` and `policy` decide",
    "scenario": "writes and validates files",
    "node": "runs on this machine",
    "rehearse": "runs on this machine, and compares with `simulate` itself",
    "guard": "runs on this machine",
    "autopsy": "is about what happened, not about what would",
    "demo": "shows the output of other commands",
    "completion": "is about the command line",
    "help": "is about the command line",
    "schema": "describes what the other commands print",
}
