"""``podqos advise --node``: the options about a node, and its kubelet's settings as a KubeletConfiguration."""

from __future__ import annotations

import argparse
from fractions import Fraction

from msgspec.structs import replace

from podqos.advice.sizing.node_settings import NodeNeeds
from podqos.cli.options import amount_option, stated_node_memory
from podqos.cli.output import print_documents, print_value, say_assumptions
from podqos.errors import InvalidOption, InvalidQuantity
from podqos.library.advise import advise_node
from podqos.library.inputs.assumptions import node_memory
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options about a node."""
    node = parser.add_argument_group("a node's kubelet")
    node.add_argument("--node", action="store_true", help="advise the settings of a kubelet")
    node.add_argument("--cores", metavar="CPU", help="cores of the node, for example 16")
    node.add_argument(
        "--nodefs-capacity", metavar="QUANTITY", help="size of its filesystem, for soft thresholds of disk"
    )
    node.add_argument("--system-memory", metavar="QUANTITY", help="memory measured outside all pods")
    node.add_argument("--system-cpu", metavar="CPU", help="cpu measured outside all pods, for example 300m")
    node.add_argument(
        "--growth", metavar="QUANTITY", help="memory growth per second to hold against (default: full in ten minutes)"
    )
    node.add_argument(
        "--probability",
        metavar="P",
        default="1",
        help="with which the kubelet must come before the kernel (default: 1)",
    )
    node.add_argument("--soft-grace", metavar="SECONDS", type=int, default=90, help="(default: 90)")
    node.add_argument("--pod-grace", metavar="SECONDS", type=int, default=30, help="(default: 30)")


def run_for_node(arguments: argparse.Namespace, profile: Profile) -> int:
    """Advise, print, and return the exit code."""
    given = {
        "-f": arguments.files,
        "--describe": arguments.describe,
        "--usage": arguments.usage,
        "--ask": arguments.ask,
        "--kubelet-config": arguments.kubelet_config,
    }
    for option, value in given.items():
        if value:
            raise InvalidOption(f"--node and {option} exclude each other", fix="advise workloads in a run of its own")
    memory_bytes, assumptions = node_memory(stated_node_memory(arguments.node_memory), ())
    report = replace(advise_node(_needs(arguments, memory_bytes), profile), assumptions=assumptions)
    assert report.node is not None
    if arguments.output in {"json", "yaml"}:
        print_value(report, arguments.output)
        return 0
    if arguments.output == "text":
        from podqos.report.advice.lines import node_comments

        print("\n".join(node_comments(report.node)))
    print_documents([report.node.configuration])
    say_assumptions(report.assumptions)
    return 0


def _needs(arguments: argparse.Namespace, memory_bytes: int) -> NodeNeeds:
    if arguments.cores is None:
        raise InvalidOption(
            "the cores of the node are not known", where="--node", fix="give them, for example --cores 16"
        )
    return NodeNeeds(
        memory_bytes=memory_bytes,
        cpu_milli=_milli(arguments.cores, "--cores"),
        nodefs_bytes=_optional(arguments.nodefs_capacity, "--nodefs-capacity"),
        system_memory_bytes=_optional(arguments.system_memory, "--system-memory"),
        system_cpu_milli=None if arguments.system_cpu is None else _milli(arguments.system_cpu, "--system-cpu"),
        growth_bytes_per_second=_optional(arguments.growth, "--growth"),
        probability=_probability(arguments.probability),
        soft_grace_seconds=_seconds(arguments.soft_grace, "--soft-grace"),
        pod_grace_seconds=_seconds(arguments.pod_grace, "--pod-grace"),
    )


def _optional(text: str | None, option: str) -> int | None:
    return None if text is None else amount_option(text, option)


def _milli(text: str, option: str) -> int:
    try:
        milli = Quantity.parse(text).milli_value
    except InvalidQuantity as error:
        raise InvalidOption(f"{text!r}: {error}", where=option, fix="for example 16 or 500m") from error
    if milli <= 0:
        raise InvalidOption(f"{text!r} is not an amount above zero", where=option, fix="for example 16 or 500m")
    return milli


def _probability(text: str) -> Fraction:
    try:
        share = Fraction(text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise InvalidOption(f"{text!r} is no probability", where="--probability", fix="for example 0.95")
    return share


def _seconds(value: int, option: str) -> int:
    if value < 1:
        raise InvalidOption(f"{value} is not an amount above zero", where=option, fix="for example 90")
    return value
