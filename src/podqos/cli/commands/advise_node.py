"""``podqos advise --node``: a kubelet's settings as a KubeletConfiguration."""

from __future__ import annotations

import argparse

from podqos.advice.sizing.node_settings import NodeNeeds
from podqos.answers.advise import advise_node
from podqos.cli.cluster import profile_of
from podqos.cli.output import print_documents, print_lines, print_value, say_assumptions
from podqos.cli.selecting import selection_of
from podqos.cli.terminal import style_of
from podqos.errors import InvalidOption
from podqos.objects.assumptions import node_memory


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
            raise InvalidOption(f"--node and {option} cannot be combined", fix="run it again for the workloads")
    if arguments.output in {"csv", "html"}:
        raise InvalidOption(
            f"-o {arguments.output} applies to workloads only", where="--node", fix="use text, json or yaml"
        )
    if arguments.output == "name" or selection_of(arguments) is not None:
        raise InvalidOption(
            "-n, -l, --kind, --name and -o name apply to workloads only", where="--node", fix="leave them out"
        )
    memory_bytes, assumptions = node_memory(arguments.node_memory, ())
    report = advise_node(_needs(arguments, memory_bytes), profile_of(arguments), assumptions)
    assert report.node is not None
    if arguments.output in {"json", "yaml"}:
        print_value(report, arguments.output)
        return 0
    if arguments.output == "text":
        from podqos.report.advice.lines import node_comments

        print_lines(node_comments(report.node, style_of(arguments)))
    print_documents([report.node.configuration])
    say_assumptions(report.assumptions)
    return 0


def _needs(arguments: argparse.Namespace, memory_bytes: int) -> NodeNeeds:
    if arguments.cores is None:
        raise InvalidOption("the node's number of cores is missing", where="--node", fix="for example --cores 16")
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
        raise InvalidOption(f"must be above zero, not {value}", where=option, fix="for example 90")
    return value
