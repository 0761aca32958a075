"""Tour a content platform: eight services on one node, an incident, its cause, and its fix.

Every chapter is a command that can be run by hand in the directory of the scenarios, with that command's own output.
The last one writes a page to click through, podqos-demo.html, into the directory the demo was called from; it opens
without a server.
"""

from __future__ import annotations

import argparse
import os
import sys

from podqos.cli.main import EXIT_FINDINGS, EXIT_OK, main
from podqos.cli.output import print_lines
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError
from podqos.reading.shipped_scenarios import scenario_dir
from podqos.report.text.style import Style, wrapped
from podqos.web.ui.settings import LISTEN

PAGE = "podqos-demo.html"
ADDRESS = f"http://{LISTEN}/"
_RANKED = "-f content-platform/platform --usage content-platform/usage.csv --node-memory 64Gi"
_ACCIDENTAL = "content-platform/accidental"

# The command of each chapter and what there is to see.
CHAPTERS = {
    "explain -f content-platform/platform -o table --node-memory 64Gi": """
    A news site on one node of 16 cores and 64Gi: three user-facing services, three batch jobs that fill the gaps, two
    expendable helpers. Which class does each have, and why?
    """,
    f"check -f {_ACCIDENTAL}/article-service.yaml --min-severity warning": """
    One day article-service was evicted before the batch jobs, and it took four hours to find out why. Its manifest of
    that day looks complete. What would have caught it?
    """,
    "simulate accidental-burstable": """
    The same day in a simulation that makes the decisions of the kubelet and the kernel:
    """,
    f"check -f {_ACCIDENTAL}/article-service.yaml --min-severity warning --diff": """
    The fix is two lines, and nothing else in the file changes:
    """,
    "simulate accidental-burstable-fixed": """
    The same day with the fix:
    """,
    f"admit -f content-platform/platform/log-collector.yaml --policies {_ACCIDENTAL}/limit-range.yaml": """
    The same can happen to a pod that was not changed. Production's LimitRange was copied into the namespace of the log
    collector, which was meant to be BestEffort, the first to go:
    """,
    f"rank {_RANKED}": """
    One busy afternoon memory runs short: which pods does the kubelet evict, which does the kernel kill, in which order?
    """,
    f"forecast {_RANKED} --kubelet-config content-platform/node/kubelet.yaml --growing log-collector --rate 2Mi/s": """
    And which of the two acts first? The kubelet checks every ten seconds, the kernel acts at once:
    """,
    "simulate race": """
    Faster than the kubelet can check: memory is gone within a second.
    """,
    f"ui race --html {PAGE}": """
    All of it to look at instead of reading: every moment of that second, who goes first and why, what would change it.
    """,
}

_NEXT = (
    "Try your own: podqos explain -f FILE|DIRECTORY|-, podqos check -f DIRECTORY, podqos scenario new",
    "On this machine's own kernel, as root: podqos rehearse race, podqos node run   (podqos --help lists all)",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos demo``."""
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run every chapter; the demo fails if one of them does. Findings are the point of some."""
    style = style_for(arguments.color)
    page = os.path.join(os.getcwd(), PAGE)
    os.chdir(scenario_dir("content-platform").parent)
    has_viewer = _has_viewer()
    for number, (command, story) in enumerate(CHAPTERS.items(), start=1):
        _print_story(number, story, command, style)
        actual = [page if word == PAGE else word for word in command.split()]
        if not has_viewer and "--html" in actual:
            print("   (The page is not built: `make viewer`, with npm, makes it.)", end="\n\n", flush=True)
            continue
        code = main([*actual, *(() if actual[0] == "ui" else ("--color", arguments.color))])
        if code not in {EXIT_OK, EXIT_FINDINGS}:
            return code
        print()
    print_lines(_NEXT)
    if has_viewer:
        print_lines(["", f"The page, as a file: file://{page}", f"Served, with your own files: podqos ui   {ADDRESS}"])
    return 0


def _print_story(number: int, story: str, command: str, style: Style) -> None:
    text = wrapped(" ".join(story.split()), style, "   ", f"{number}. ")
    asked = wrapped(f"$ podqos {command}", style, "       ", "   ")
    print_lines([*map(style.strong, text), *map(style.faint, asked), ""])
    sys.stdout.flush()


def _has_viewer() -> bool:
    from podqos.library.simulation import built_viewer

    try:
        built_viewer()
    except HostError:
        return False
    return True
