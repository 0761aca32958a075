"""Walk through one incident on a platform of eight services: the accident, who is evicted and why, and two fixes.

It needs no cluster and no files. It writes a page to explore, podqos-demo.html, to the current directory. The page
opens without a server.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from podqos.cli.main import EXIT_OK, program_name
from podqos.cli.output import print_lines
from podqos.cli.terminal import add_colour_option, help_columns, style_for
from podqos.errors import HostError
from podqos.text.style import wrapped

PAGE = "podqos-demo.html"
DAYS = ("accidental-burstable", "accidental-burstable-undersized", "accidental-burstable-fixed")
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
    from podqos.api import check
    from podqos.questions.explain import explain
    from podqos.reading.built_page import built_viewer
    from podqos.reading.loading import load
    from podqos.reading.scenario_files import load_scenario
    from podqos.reading.shipped_scenarios import scenario_dir
    from podqos.reading.written_files import write_file
    from podqos.runs.incident import Incident, peak_bytes, story
    from podqos.runs.run import simulate

    style = replace(style_for(arguments.color), width=help_columns())  # wrapped wherever it goes, as help texts are
    folder, here = scenario_dir("content-platform"), Path.cwd()
    manifest = folder / "accidental" / "article-service.yaml"
    shown = manifest.relative_to(here) if manifest.is_relative_to(here) else manifest
    days = [simulate(load_scenario(name)) for name in DAYS]
    accident, undersized, fixed = (day.report for day in days)
    finding = check(load(str(manifest))).items[0]
    platform = explain(load(str(folder / "platform")), node_memory_bytes=accident.nodes[0].memory_bytes)
    told = Incident(platform, finding, accident, undersized, fixed, peak_bytes(days[0].scenario, finding))
    program = program_name()
    commands = [f"{program} check {quote(str(shown))}", *(f"{program} simulate {name}" for name in DAYS)]
    for part in story(told, commands, style):
        print_lines([*part, ""])
    try:
        write_file(PAGE, days[0].html(built_viewer()).encode())
        ending = [f"Explore it: {Path(PAGE).absolute().as_uri()}", f"Or live:    {program} ui {DAYS[0]}"]
    except HostError as error:  # not built, or a read-only directory
        ending = wrapped(f"The page was not written: {error}", style, "")
    own = (f"  {f'{program} {command}':{len(program) + 12}}{about}" for command, about in _OWN_FILES.items())
    print_lines([*ending, "In a directory with your own manifests:", *own])
    return EXIT_OK
