"""Everything that a person reads, so that phrases we have given up can be looked for in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
RETIRED = Path(__file__).with_name("retired.txt")
# It lists the retired phrases itself.
VOCABULARY = ROOT / "docs/internals/words.md"
_TEXTS = (
    "*.md",
    "action.yml",
    "bench/*.md",
    "deploy/**/*.yaml",
    "docs/**/*.md",
    "docs/exporter/*",
    "scenarios/**/*.md",
    "scenarios/*.yaml",
    "viewer/src/**/*.ts",
    "viewer/src/**/*.tsx",
)
# A changelog quotes what was there before; the viewer's types are made from the schemas when it is built.
_NOT_READ = {VOCABULARY, ROOT / "CHANGELOG.md", ROOT / "viewer/src/schema.ts"}


class Retired(Struct, frozen=True):
    """A phrase that does not come back, and what to say instead."""

    old: str
    new: str


def retired() -> list[Retired]:
    """Return the retired phrases, each once."""
    lines = [line for line in RETIRED.read_text().splitlines() if line and not line.startswith("#")]
    pairs = dict(line.split(" => ", 1) for line in lines)
    return [Retired(old.strip(), new.strip()) for old, new in pairs.items()]


def occurrences(phrases: list[Retired]) -> Iterator[str]:
    """Yield where a phrase occurs, as ``path:line: what to say instead``."""
    patterns = {phrase: as_words(phrase.old) for phrase in phrases}
    # The longest word inside a phrase: a text without it need not be searched.
    anchors = {phrase: max(pattern.split()[1:-1], key=len, default=None) for phrase, pattern in patterns.items()}
    for path in _files():
        text = path.read_text(encoding="utf-8")
        is_code = path.suffix == ".py"
        # Adjacent literals are one text; which of them are read by people is only asked where there is a hit.
        whole = as_words(_BETWEEN_LITERALS.sub("", text) if is_code else text)
        words = {*whole.split()}
        hits = [
            phrase
            for phrase, pattern in patterns.items()
            if (anchors[phrase] is None or anchors[phrase] in words) and pattern in whole
        ]
        if not hits:
            continue
        for line, part in _literals(path, text) if is_code else _paragraphs(text):
            said = as_words(part)
            for phrase in hits:
                if patterns[phrase] in said:
                    yield f"{path.relative_to(ROOT)}:{line}: not {phrase.old!r} but {phrase.new!r}"


def as_words(text: str) -> str:
    """Return a text in lower case on one line."""
    return " ".join(text.lower().split())


_BETWEEN_LITERALS = re.compile(r"""["']\s*\n\s*[rfRF]*["']""")


def _files() -> Iterator[Path]:
    for pattern in _TEXTS:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path.is_file() and path not in _NOT_READ)
    yield from sorted((ROOT / "src").rglob("*.py"))


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page, each with its first line; a line of code is part of one."""
    start = 1
    for part in re.split(r"(\n\s*\n)", text):
        if part.strip():
            yield start, part
        start += part.count("\n")


def _literals(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield what code can print: its string literals, and docstrings where they are the help on a command."""
    statements = [*ast.walk(ast.parse(text))]
    is_help = "cli" in path.parts
    # Docstrings, those of attributes included; and the parts of f-strings, which are taken together.
    passed_over = {id(node.value) for node in statements if isinstance(node, ast.Expr) and not is_help}
    passed_over |= {id(part) for node in statements if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in statements:
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            yield node.lineno, node.value
