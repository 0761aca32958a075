"""The options of ``podqos advise``: its goal, the nodes it is tested on, where it is written, and kubelet settings."""

from __future__ import annotations

import argparse
from fractions import Fraction
from functools import partial

from podqos.cli import options
from podqos.cli.counted_nodes import add_counted_nodes_options
from podqos.cli.options import add_value_option, amount_option, amount_or_zero_option, milli_option
from podqos.errors import InvalidOption
from podqos.library.numbers import positive_number
from podqos.model.resources import CPU, MEMORY

GOALS = ("guaranteed", "cheapest", "safest")
PATCH_TOOLS = ("kubectl", "kustomize", "helm")
_PRICE_EXAMPLE = "cpu=0.032,memory=0.004"


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """Declare the goal of advice and the nodes it is tested on."""
    trial = parser.add_argument_group("testing the advice")
    about = "advise every workload, even without a description or usage: make it Guaranteed, as cheap as usage "
    trial.add_argument("--goal", choices=GOALS, help=f"{about}allows, or as safe as possible")
    about = "price of a core and of a GiB per hour, in any currency, to show the cost per month (730 hours)"
    options.add_value_option(trial, "--price", _prices, about, _PRICE_EXAMPLE)
    add_counted_nodes_options(trial)


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """Declare where advice is written."""
    writing = parser.add_argument_group("applying the advice")
    about = "print patches: kubectl commands, kustomize files, or Helm values"
    writing.add_argument("--patch", choices=PATCH_TOOLS, help=about)
    about = "write the advice into this manifest, changing only the lines concerned"
    options.add_list_option(writing, "--apply-to", "FILE", about)


def _prices(text: str, option: str) -> tuple[float, float]:
    """Read ``cpu=0.032,memory=0.004``: the prices of a core and of a GiB."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        try:
            number = float(Fraction(amount))
        except (ValueError, ZeroDivisionError):
            number = -1.0
        if name not in {CPU, MEMORY} or number < 0:
            raise InvalidOption(f"{part.strip()!r} is not a price", where=option, fix=f"write {_PRICE_EXAMPLE}")
        found[name] = number
    return found.get(CPU, 0.0), found.get(MEMORY, 0.0)


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options about a node."""
    node = parser.add_argument_group("kubelet settings")
    node.add_argument("--node", action="store_true", help="advise kubelet settings")
    add_value_option(node, "--cores", milli_option, "the node's cores, for example 16", "CPU")
    add_value_option(
        node, "--nodefs-capacity", amount_option, "size of the node's filesystem, for soft disk thresholds"
    )
    add_value_option(node, "--system-memory", amount_or_zero_option, "measured memory usage outside pods")
    add_value_option(node, "--system-cpu", milli_option, "measured CPU usage outside pods, for example 300m", "CPU")
    about = "memory growth per second to withstand (default: the node fills up in ten minutes, but at least 50Mi)"
    add_value_option(node, "--growth", amount_option, about)
    share = partial(positive_number, what="probability", example="0.95", most=1)
    add_value_option(
        node,
        "--probability",
        share,
        "how often the kubelet should act before the kernel, from 0 to 1",
        "P",
        default="1",
    )
    node.add_argument(
        "--soft-grace", metavar="SECONDS", type=int, default=90, help="grace period of soft thresholds (default: 90)"
    )
    node.add_argument(
        "--pod-grace",
        metavar="SECONDS",
        type=int,
        default=30,
        help="longest grace period of pods evicted by a soft threshold (default: 30)",
    )
