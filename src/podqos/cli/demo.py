"""Tell the story of a content platform: eight services on one node, who is what, and what was overlooked.

Every chapter is a command that can be repeated by hand; its output is the command's own.
"""

from __future__ import annotations

import argparse
import os
import sys

from podqos.cli.main import EXIT_FINDINGS, EXIT_OK, main
from podqos.cli.scenarios import scenario_dir
from podqos.cli.terminal import add_colour_option, style_for
from podqos.report.style import wrapped

_NODE = ["--node-memory", "64Gi"]

# The command of each chapter (paths are relative to the scenario) and what there is to see.
CHAPTERS = {
    """
    A news site on one node of 16 cores and 64Gi: three services that readers wait for, three batch jobs that fill the
    gaps, two helpers that nobody misses for an hour. Who is what, and why?
    """: ["explain", "-f", "platform", "-o", "table", *_NODE],
    """
    One day article-service was evicted before the batch jobs, and it took four hours to find out why. This is its
    manifest of that day:
    """: ["explain", "-f", "accidental/article-service.yaml", *_NODE],
    """
    The same with those two lines. Now the kernel takes everything else first:
    """: ["explain", "-f", "accidental/article-service-fixed.yaml", *_NODE],
    """
    The same can happen to a pod that nobody touches. Somebody copied production's LimitRange into the namespace of the
    log collector, which was to be BestEffort, the first to go:
    """: ["admit", "-f", "platform/log-collector.yaml", "--policies", "accidental/limit-range.yaml"],
    """
    Where does it all run, and how much of the node is promised more than once?
    """: ["place", "-f", "platform", "-f", "node"],
    """
    And when memory runs out one busy afternoon: whom does the kubelet evict, whom does the kernel kill, in which order?
    """: ["rank", "-f", "platform", "--usage", "usage.csv", *_NODE],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos demo``."""
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run every chapter; the demo fails if one of them does. That there are findings is the point of some."""
    style = style_for(arguments.color)
    os.chdir(scenario_dir("content-platform"))
    for number, (story, command) in enumerate(CHAPTERS.items(), start=1):
        text = wrapped(" ".join(story.split()), style, "   ")
        print(style.strong(f"{number}. {text[0].strip()}"), *map(style.strong, text[1:]), sep="\n")
        print(style.faint(f"   $ podqos {' '.join(command)}"), end="\n\n")
        sys.stdout.flush()
        code = main([*command, "--color", arguments.color])
        if code not in {EXIT_OK, EXIT_FINDINGS}:
            return code
        print()
    print("Now your own: podqos explain -f FILE|DIRECTORY|-   (podqos --help lists the other commands)")
    print("For real, on a share of this machine: sudo podqos node run --manifests scenarios/node/pods --memory 512Mi")
    return 0
