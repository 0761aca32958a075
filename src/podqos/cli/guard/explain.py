"""Explain what the guard decided about a pod: which threshold, which usage, why this pod, which was next, what helps.

Everything comes from the guard's journal, which is read from disk, including what the kernel and the kubelet did.

  podqos guard explain shop/batch-7
  podqos guard explain -n shop batch-7 -o json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from podqos.cli.guard.run_options import add_state_option
from podqos.cli.main import EXIT_OK
from podqos.cli.node.client import add_pod_arguments, pod_named
from podqos.cli.output import add_output_options, emit
from podqos.errors import InputError

SUMMARY = "why it chose a pod, which was next, what would have saved it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos guard explain``."""
    add_pod_arguments(parser, is_required=False)  # --schema does without
    add_state_option(parser)
    add_output_options(parser, ("text", "json", "yaml"), "podqos.survival.shadow:GuardExplanation")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation."""
    from podqos.reading.guard_journal import entries_of
    from podqos.report.node.guard import explanation_lines
    from podqos.survival.shadow import explanation
    from podqos.wording import listed

    pod = "/".join(pod_named(arguments))
    found = explanation(entries_of(Path(arguments.state)), pod)
    if not found.decisions and not found.deaths:
        name = pod.partition("/")[2]
        pods = {entry.pod for entry in entries_of(Path(arguments.state)) if (entry.pod or "").endswith(f"/{name}")}
        meant = (
            f"it has entries about {listed(sorted(filter(None, pods)))}"
            if pods
            else "`podqos guard journal` shows everything"
        )
        raise InputError(f"the journal has no entries about {pod}", where=arguments.state, fix=meant)
    emit(found, arguments, explanation_lines)
    return EXIT_OK
