"""The commands that the documents tell a reader to type, the help included."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from documents.grammar import Grammar, grammars

ROOT = Path(__file__).resolve().parents[2]
# A changelog and measurements are about their day.
PAGES = sorted(
    path
    for pattern in ("*.md", ".github/**/*.md", "docs/**/*.md", "scenarios/**/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)

_PROGRAMS = r"(?:sudo|podqos|kubectl|make|pip|pipx|git|cp|ssh|cat|cd|curl|helm|kustomize|source|\.venv/bin/[\w-]+) "
_SHELL = {"sh", "bash", "console"}
# What stands for something else: a synopsis, or an example that leaves it to the reader.
_OPEN = re.compile(
    r"…|[\[\]]|(?<![\w$-])(?:COMMAND|DIR|FAMILY|FILE|KIND|N|NAME|NEW|OLD|PID|POD|QUANTITY|SCENARIO|SHELL|VALUE)(?![\w-])"
)


@cache
def _words(text: str) -> tuple[str, ...]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return tuple(lexer)


class Command(Struct, frozen=True):
    """A command line, and what the page shows of its output."""

    page: str
    line: int
    text: str
    shown: tuple[str, ...] = ()
    is_inline: bool = False

    @property
    def words(self) -> list[str]:
        """Its words as a shell splits them, operators apart, without a comment."""
        return [*_words(self.text)]

    @property
    def is_open(self) -> bool:
        """Whether it leaves something to the reader: a synopsis."""
        return _OPEN.search(self.text) is not None

    @property
    def is_name(self) -> bool:
        """Whether it only names a command, as prose does."""
        return self.is_inline and [*below(self.words[1:])[1]] == []


def below(words: list[str]) -> tuple[Grammar | None, list[str]]:
    """Return the command that words begin with, and the words after it."""
    found, rest = _GRAMMARS.get(words[0]) if words else None, words[1:]
    while found is not None and rest and (sub := {each.name: each for each in found.below}.get(rest[0])):
        found, rest = sub, rest[1:]
    return found, rest if found is not None else words


_GRAMMARS = grammars()


def commands_of(page: Path) -> list[Command]:
    """Return the commands of a page, in their order."""
    return sorted({*_in_blocks(page), *_inline(page)}, key=lambda each: (each.line, each.text))


def help_commands() -> Iterator[Command]:
    """Yield the examples in the help on commands."""
    for name, grammar in _GRAMMARS.items():
        for text in re.findall(r"^ +(podqos .+?)(?:  .*)?$", grammar.description, re.MULTILINE):
            yield Command(f"podqos {name} --help", 0, text)


def _in_blocks(page: Path) -> Iterator[Command]:
    name = str(page.relative_to(ROOT))
    for start, language, block in blocks(page.read_text()):
        is_shell = language in _SHELL
        has_prompts = any(line.startswith("$ ") for line in block)
        if not (is_shell or language == ""):
            continue
        if is_shell and not has_prompts:
            # A script: its lines belong together.
            yield Command(name, start, "\n".join(block))
            continue
        for index, line in enumerate(block):
            if line.startswith("$ "):
                shown = takewhile(lambda each: not each.startswith("$ "), block[index + 1 :])
                yield Command(name, start + index, line[2:], tuple(each for each in shown if each))
            elif not has_prompts and re.match(_PROGRAMS, line):
                yield Command(name, start + index, line)


def blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the blocks of code of a page: the number of the first line, the language of its fence, its lines."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if fence := re.match(r"( *)```(\w*)", lines[number]):
            inside = [*takewhile(lambda line: not line.lstrip().startswith("```"), lines[number + 1 :])]
            yield number + 2, fence[2] or "text", [line.removeprefix(fence[1]) for line in inside]
            number += len(inside) + 2
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            inside = [*takewhile(lambda line: not line or line.startswith("    "), lines[number:])]
            while not inside[-1]:
                inside.pop()
            margin = re.match(" *", inside[0])
            yield number + 1, "", [line.removeprefix(margin[0] if margin else "") for line in inside]
            number += len(inside)
        else:
            number += 1


def prose(text: str) -> str:
    """Return a page with its blocks of code blanked out, every line where it was."""
    lines = text.splitlines()
    for start, _, block in blocks(text):
        lines[start - 1 : start - 1 + len(block)] = [""] * len(block)
    return "\n".join("" if line.lstrip().startswith("```") else line for line in lines)


def _inline(page: Path) -> Iterator[Command]:
    text = prose(page.read_text())
    for span in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        code = " ".join(span[1].replace("\\|", "|").split())
        if re.match(r"(?:sudo )?podqos \w|make \w|pipx? \w|.*[|(] *podqos \w|kubectl podqos ", code):
            line = text.count("\n", 0, span.start()) + 1
            yield Command(str(page.relative_to(ROOT)), line, code, is_inline=True)
