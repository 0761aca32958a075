"""Write again what pages show of outputs, and their generated parts (``make golden``). Read the difference."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from documents.checks_page import document
from documents.commands import PAGES, commands_of
from documents.generated import write_generated_parts
from documents.shown import difference, shown_again
from documents.tasks import TASKS, ask, office
from documents.test_commands import runs
from documents.world import in_world, make_world, run
from test_library_examples import record as record_examples

_MARGIN = "    "


def record() -> None:
    """Bring every page up to date."""
    (Path(__file__).resolve().parents[2] / "docs/reference/checks.md").write_text(document())
    write_generated_parts()
    with tempfile.TemporaryDirectory() as directory:
        make_world(Path(directory))
        with in_world(Path(directory)):
            for page in PAGES:
                _record(page)
    with tempfile.TemporaryDirectory() as directory, office(Path(directory)) as prometheus:
        for task in TASKS:
            task.transcript.write_text(ask(task, prometheus)[1])
    record_examples()


def _record(page: Path) -> None:
    commands = [command for command in commands_of(page) if runs(command)]
    if not any(command.shown for command in commands):
        return
    # In their order, because some work on what others made.
    printed = [run(command).out for command in commands]
    lines = page.read_text().splitlines()
    # From the last to the first, so that numbers of lines stay right.
    for command, out in reversed([*zip(commands, printed, strict=True)]):
        if not command.shown or difference(command.shown, out) is None:
            continue
        end = command.line
        while end < len(lines) and (not lines[end] or lines[end].startswith(_MARGIN)):
            if lines[end].startswith(f"{_MARGIN}$ "):
                break
            end += 1
        while not lines[end - 1]:
            end -= 1
        lines[command.line : end] = [f"{_MARGIN}{line}".rstrip() for line in shown_again(command.shown, out)]
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record()
