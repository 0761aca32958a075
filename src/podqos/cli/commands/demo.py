"""Walk through one incident on a platform of eight services: the accident, who is evicted and why, and two fixes.

It needs no cluster and no files. It writes a page to explore, podqos-demo.html, to the current directory, or to the
directory for temporary files if that one is read-only. The page opens without a server.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.cli.main import EXIT_OK, program_name
from podqos.cli.terminal import add_colour_option, help_columns, style_for
from podqos.controls import one_line
from podqos.errors import HostError
from podqos.report.text.style import Style, wrapped

if TYPE_CHECKING:
    from podqos.library.simulation import Run

PAGE = "podqos-demo.html"
ACCIDENT = "accidental-burstable"
UNDERSIZED = "accidental-burstable-undersized"
FIXED = "accidental-burstable-fixed"

_OWN_FILES = {
    "check .": "what is wrong, and the fix",
    "explain .": "the QoS class of each pod, and why",
    "rank .": "which pods are evicted and OOM-killed first",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos demo``."""
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tell the story, write the page, and return the exit code."""
    from podqos.answers.explain import ExplainOptions, explain
    from podqos.library.check import check
    from podqos.library.simulation import simulate
    from podqos.reading.loading import load
    from podqos.reading.scenario_files import load_scenario
    from podqos.reading.shipped_scenarios import scenario_dir
    from podqos.report.simulation import incident as story

    # A story is wrapped wherever it goes, as help texts are.
    style = replace(style_for(arguments.color), width=help_columns())
    folder = scenario_dir("content-platform")
    manifest = _from_here(folder / "accidental" / "article-service.yaml")
    accident, undersized, fixed = (simulate(load_scenario(name)) for name in (ACCIDENT, UNDERSIZED, FIXED))
    options = ExplainOptions(node_memory_bytes=accident.report.nodes[0].memory_bytes)
    finding = check(load(manifest)).items[0]
    incident = story.Incident(
        platform=explain(load(str(folder / "platform")), options),
        finding=finding,
        accident=accident.report,
        undersized=undersized.report,
        fixed=fixed.report,
        peak_bytes=story.peak_bytes(accident.scenario, finding),
    )
    program = program_name()
    runs = (f"{program} simulate {scenario}" for scenario in (ACCIDENT, UNDERSIZED, FIXED))
    _print(_path_lines(style), end="")
    for part in story.story(incident, (f"{program} check {_quoted(manifest)}", *runs), style):
        _print(part)
    _print([*_page_lines(accident, style), *_own_files(style)], end="")
    return EXIT_OK


def _page_lines(accident: Run, style: Style) -> list[str]:
    """Write the page, and return where it is."""
    from tempfile import mkdtemp

    from podqos.reading.written_files import write_file

    try:
        page = accident.html().encode()
    except HostError as error:  # not built
        return wrapped(str(error), style, "")
    path = os.path.abspath(PAGE)
    try:
        try:
            write_file(path, page)
        except HostError:  # a read-only directory
            path = os.path.join(mkdtemp(prefix="podqos-"), PAGE)
            write_file(path, page)
    except (HostError, OSError) as error:
        return wrapped(f"The page was not written: {error}", style, "")
    return [f"Explore it: {Path(path).as_uri()}", f"Or live:    {program_name()} ui {ACCIDENT}"]


def _own_files(style: Style) -> list[str]:
    commands = {f"{program_name()} {command}": about for command, about in _OWN_FILES.items()}
    width = max(map(len, commands)) + 2
    lines = ["In a directory with your own manifests:"]
    for command, about in commands.items():
        lines += wrapped(about, style, " " * (width + 2), f"  {command:{width}}")
    return lines


def _path_lines(style: Style) -> list[str]:
    """Return what makes the shell find the commands that follow, if it would not."""
    from shutil import which

    program = os.path.abspath(sys.argv[0])
    known = which("podqos")
    is_known = known is not None and _without_suffix(known) == _without_suffix(program)
    if is_known or os.path.basename(_without_suffix(program)) != "podqos":
        return []
    folder = os.path.dirname(program)
    comment = "  # so that this shell finds podqos"
    setting = f'set "PATH={folder};%PATH%"' if os.name == "nt" else f"export PATH={_quoted(folder)}:$PATH{comment}"
    return [style.faint(f"$ {setting}")]


def _without_suffix(program: str) -> str:
    """Return the file of a program, without the suffix that only Windows has, and not always."""
    return os.path.splitext(os.path.normcase(os.path.realpath(program)))[0]


def _from_here(path: Path) -> str:
    """Return a path that is valid in the current directory: relative to it if the file is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _quoted(path: str) -> str:
    """Return a path as a word of the shell."""
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline([path])
    from shlex import quote

    return quote(path)


def _print(lines: Iterable[str], end: str = "\n") -> None:
    sys.stdout.writelines(f"{one_line(line)}\n" for line in lines)
    sys.stdout.write(end)
    sys.stdout.flush()
