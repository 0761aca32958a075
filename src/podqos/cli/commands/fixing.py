"""``podqos check --fix`` and ``--diff``: show the changes, write them, and report the outcome for each finding.

``advice.fixing`` decides what to write. A file is written whole or not at all. If one cannot be written, the others
still are. The text of standard input goes to standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from msgspec.structs import replace

from podqos.advice.fixes.fixing import Fixes
from podqos.errors import HostError
from podqos.objects.files import STDIN
from podqos.reading.written_files import replace_file
from podqos.report.check.fixes import diff_lines, summary_lines
from podqos.report.text.style import Style


def print_diff(fixes: Fixes, style: Style) -> None:
    """Print what would change, as a unified diff."""
    for file in fixes.files:
        for line in diff_lines(file, style):
            sys.stdout.write(line + "\n")


def write_fixes(fixes: Fixes, stdin: bytes | None = None, stdin_name: str = STDIN) -> dict[str, HostError]:
    """Write every file that changes, and return what went wrong, by file.

    ``stdin`` is what was read from standard input, if anything was: its text goes on, changed or not.
    ``stdin_name`` is what it is called; a file of that name is not written.
    """
    errors: dict[str, HostError] = {}
    for file in fixes.files:
        if file.source == stdin_name:
            stdin = file.after
            continue
        try:
            replace_file(file.source, file.before, file.after)
        except HostError as error:
            errors[file.source] = error
    if stdin is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(stdin)
        sys.stdout.buffer.flush()
    return errors


def print_summary(
    fixes: Fixes,
    style: Style,
    *,
    is_written: bool,
    errors: Mapping[str, HostError] | None = None,
    with_patches: bool = True,
) -> None:
    """Report on standard error what was fixed, what was not and why, and how to do it by hand."""
    errors = errors or {}
    done = replace(fixes, files=tuple(file for file in fixes.files if file.source not in errors))
    if done.files or done.refused or not errors:
        for line in summary_lines(done, style, is_written=is_written, with_patches=with_patches):
            print(line, file=sys.stderr)
    for error in errors.values():
        print(style.alarm(str(error)), file=sys.stderr)
