"""``podqos advise --node``: the options about a node, and its kubelet's settings as a KubeletConfiguration."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.advice.sizing.node_settings import NodeNeeds
from podqos.answers.advise import advise_node
from podqos.cli.cluster import profile_of
from podqos.cli.options import add_value_option, amount_option, milli_option
from podqos.cli.output import print_documents, print_lines, print_value, say_assumptions
from podqos.cli.selecting import selection_of
from podqos.cli.terminal import style_for
from podqos.errors import InvalidOption
from podqos.library.numbers import positive_number
from podqos.objects.assumptions import node_memory


def add_node_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options about a node."""
    node = parser.add_argument_group("a node's kubelet")
    node.add_argument("--node", action="store_true", help="advise the settings of a kubelet")
    add_value_option(node, "--cores", milli_option, "cores of the node, for example 16", "CPU")
    add_value_option(node, "--nodefs-capacity", amount_option, "size of its filesystem, for soft thresholds of disk")
    add_value_option(node, "--system-memory", amount_option, "memory measured outside pods")
    add_value_option(node, "--system-cpu", milli_option, "cpu measured outside pods, for example 300m", "CPU")
    about = "memory growth per second to withstand (default: full in ten minutes, and what check assumes)"
    add_value_option(node, "--growth", amount_option, about)
    share = partial(positive_number, what="probability", example="0.95", most=1)
    add_value_option(node, "--probability", share, "that the kubelet acts before the kernel", "P", default="1")
    node.add_argument("--soft-grace", metavar="SECONDS", type=int, default=90, help="(default: 90)")
    node.add_argument("--pod-grace", metavar="SECONDS", type=int, default=30, help="(default: 30)")


def run_for_node(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    given = {
        "-f": arguments.files,
        "--describe": arguments.describe,
        "--usage": arguments.usage,
        "--ask": arguments.ask,
        "--kubelet-config": arguments.kubelet_config,
        "--goal": arguments.goal,
        "--price": arguments.price,
        "--nodes": arguments.nodes,
        "--patch": arguments.patch,
        "--apply-to": arguments.apply_to,
    }
    for option, value in given.items():
        if value:
            raise InvalidOption(f"--node and {option} cannot be combined", fix="advise workloads in a separate run")
    if arguments.output in {"csv", "html"}:
        raise InvalidOption(f"-o {arguments.output} is about workloads", where="--node", fix="use text, json or yaml")
    if arguments.output == "name" or selection_of(arguments) is not None:
        raise InvalidOption(
            "-n, -l, --kind, --name and -o name are about workloads", where="--node", fix="leave them out"
        )
    memory_bytes, assumptions = node_memory(arguments.node_memory, ())
    report = advise_node(_needs(arguments, memory_bytes), profile_of(arguments), assumptions)
    assert report.node is not None
    if arguments.output in {"json", "yaml"}:
        print_value(report, arguments.output)
        return 0
    if arguments.output == "text":
        from podqos.report.advice.lines import node_comments

        print_lines(node_comments(report.node, style_for(arguments.color)))
    print_documents([report.node.configuration])
    say_assumptions(report.assumptions)
    return 0


def _needs(arguments: argparse.Namespace, memory_bytes: int) -> NodeNeeds:
    if arguments.cores is None:
        raise InvalidOption("the number of cores is missing", where="--node", fix="give them, for example --cores 16")
    return NodeNeeds(
        memory_bytes=memory_bytes,
        cpu_milli=arguments.cores,
        nodefs_bytes=arguments.nodefs_capacity,
        system_memory_bytes=arguments.system_memory,
        system_cpu_milli=arguments.system_cpu,
        growth_bytes_per_second=arguments.growth,
        probability=arguments.probability,
        soft_grace_seconds=_seconds(arguments.soft_grace, "--soft-grace"),
        pod_grace_seconds=_seconds(arguments.pod_grace, "--pod-grace"),
    )


def _seconds(value: int, option: str) -> int:
    if value < 1:
        raise InvalidOption(f"{value} is not an amount above zero", where=option, fix="for example 90")
    return value
