"""``podqos thresholds --advise``: a kubelet's settings as a KubeletConfiguration."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli import options
from podqos.cli.options import Parser, add_value_option
from podqos.errors import InvalidOption
from podqos.manifest.written_amounts import positive_number


def add_advise_options(parser: Parser) -> None:
    """Declare what settings are advised for."""
    advice = parser.add_argument_group("advised settings")
    about = "advise reservations, eviction thresholds and grace periods, as a KubeletConfiguration"
    advice.add_argument("--advise", action="store_true", help=about)
    add_value_option(
        advice, "--system-cpu", options.milli_option, "measured CPU usage outside pods, for example 300m", "CPU"
    )
    about = "memory growth per second to withstand (default: the node fills up in ten minutes, but at least 50Mi)"
    add_value_option(advice, "--growth", options.amount_option, about)
    share = partial(positive_number, what="probability", example="0.95", most=1)
    about = "how often the kubelet should act before the kernel, from 0 to 1"
    add_value_option(advice, "--probability", share, about, "P", default="1")
    for name, default, about in (
        ("--soft-grace", 90, "grace period of soft thresholds"),
        ("--pod-grace", 30, "longest grace period of pods evicted by a soft threshold"),
    ):
        advice.add_argument(name, metavar="SECONDS", type=int, default=default, help=f"{about} (default: {default})")


def run_advise(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    from podqos.advice.sizing.node_settings import NodeNeeds
    from podqos.cli.cluster import profile_of
    from podqos.cli.output import print_documents, print_lines, print_value, say_assumptions
    from podqos.cli.terminal import style_of
    from podqos.objects.assumptions import node_memory
    from podqos.questions.advice import node_comments
    from podqos.questions.advise import advise_node

    if arguments.output == "csv":
        raise InvalidOption("-o csv has no advised settings", where="--advise", fix="use json or yaml")
    if arguments.node_cpu is None:
        raise InvalidOption("the node's number of cores is missing", where="--advise", fix="for example --node-cpu 16")
    memory_bytes, assumptions = node_memory(arguments.node_memory, ())
    needs = NodeNeeds(
        memory_bytes=memory_bytes,
        cpu_milli=arguments.node_cpu.milli_value,
        nodefs_bytes=arguments.nodefs_capacity,
        system_memory_bytes=arguments.system_memory,
        system_cpu_milli=arguments.system_cpu,
        growth_bytes_per_second=arguments.growth,
        probability=arguments.probability,
        soft_grace_seconds=_seconds(arguments.soft_grace, "--soft-grace"),
        pod_grace_seconds=_seconds(arguments.pod_grace, "--pod-grace"),
    )
    report = advise_node(needs, profile_of(arguments), assumptions)
    assert report.node is not None
    if arguments.output in {"json", "yaml"}:
        print_value(report, arguments.output)
        return 0
    print_lines(node_comments(report.node, style_of(arguments)))
    print_documents([report.node.configuration])
    say_assumptions(report.assumptions)
    return 0


def _seconds(value: int, option: str) -> int:
    if value < 1:
        raise InvalidOption(f"must be above zero, not {value}", where=option, fix="for example 90")
    return value
