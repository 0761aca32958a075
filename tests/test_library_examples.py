"""The examples of docs/reference/library.md run as they stand, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/library.md"
# An example, and what it prints.
_EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", re.DOTALL)


def examples() -> list[tuple[str, str, str | None]]:
    """Return heading, code and output of every example."""
    return [
        (section.partition("\n")[0], example["code"], example["printed"])
        for section in PAGE.read_text().split("\n## ")[1:]
        for example in _EXAMPLE.finditer(section)
    ]


def output_of(code: str, title: str = "") -> str:
    """Return what an example prints."""
    output = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(output):
        exec(compile(code, f"docs/reference/library.md ({title})", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    return output.getvalue()


def record() -> None:
    """Write down again what the examples print (``make golden``)."""
    page = _EXAMPLE.sub(
        lambda each: f"```python\n{each['code']}```\n\n```text\n{output_of(each['code'])}```\n", PAGE.read_text()
    )
    PAGE.write_text(page)


EXAMPLES = examples()


def test_every_example_of_the_page_is_found():
    assert len(EXAMPLES) == PAGE.read_text().count("```python\n") >= 3


@pytest.mark.parametrize(("title", "code", "printed"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says_in_about_twenty_lines(title, code, printed):
    assert len(code.splitlines()) <= 30, title
    assert output_of(code, title) == printed
