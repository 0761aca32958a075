"""Explain every pod in the manifests: its QoS class, why it has that class, and what follows from it.

Shows the smallest edit that makes the pod Guaranteed and the oom_score_adj of its containers; with -v also its cgroups
and the equivalent flags of `docker run` and `podman run`.

Reads Pods, everything with a pod template, Lists and kubectl output, as YAML or JSON. Pods are shown as the API server
stores them: policies in the files (LimitRange, PriorityClass, RuntimeClass, ClusterResourceOverride) are applied to
every pod that does not come from a cluster already. Problems are reported on standard error as file:line:column, and
everything else is still explained.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from msgspec.structs import replace

from podqos.amounts import counted
from podqos.cli import options
from podqos.cli.cluster import profile_of
from podqos.cli.inputs import given_files, read_objects, say_skipped, stored_policies
from podqos.cli.output import add_output_options, emit, object_name
from podqos.cli.problems import print_problems
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.model.assumption import Assumption
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime
from podqos.questions.explain import NodeSettings, csv_rows, explain, table, text, wide


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos explain``."""
    add_manifest_options(parser)
    about = (
        "text: a block per pod; table: one line per pod; wide: one line per container with its cgroup; csv: "
        "namespace, pod, container, class, oom_score_adj; json and yaml: everything"
    )
    formats = ("text", "table", "wide", "csv", "json", "yaml", "name")
    add_output_options(parser, formats, "podqos.questions.explain:ExplanationList", about)
    options.add_node_memory_option(parser, "the node's memory, which determines the oom scores of Burstable pods")
    options.add_value_option(parser, "--node-swap", options.amount_or_zero_option, "the node's swap (default: none)")
    options.add_cores_option(parser, "the node's cores, for the CPU share of all pods (default: unknown)")
    options.add_kubelet_option(parser)
    options.add_version_option(parser)
    # Without a default: what the node of a pod says, if it does.
    options.add_choice_option(parser, "--cgroup", CgroupVersion, "cgroup version (default: the node's own, or v2)")
    about = "cgroup driver (default: from --kubelet-config, the node's own, or systemd)"
    options.add_choice_option(parser, "--driver", CgroupDriver, about)
    options.add_choice_option(
        parser, "--runtime", Runtime, "container runtime (default: the node's own, or containerd)"
    )
    about = "container engine to print run flags for (default: docker)"
    parser.add_argument("--engine", choices=("docker", "podman"), default="docker", help=about)
    about = "exit with 1 if a pod has this class or a lower one"
    options.add_choice_option(parser, "--fail-on", QOSClass, about)
    about = (
        "with -o text: also show the cgroup hierarchy, every run flag (set or not) with the reason, and the oom scores "
        "of the node's own processes"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    inputs, stated = given_files(arguments, "explain", under=True), options.stated_classes(arguments)
    policies, selection, profile = stored_policies(arguments), selection_of(arguments), profile_of(arguments)
    kubelet = options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version)
    is_plain = not (policies or stated or selection or kubelet or inputs.problems) and len(inputs.files) == 1
    if arguments.output == "csv" and is_plain:
        from podqos.cli.large_list import explained_list

        (file,) = inputs.files
        found = explained_list(file.path, arguments.node_memory, profile, has_header=not arguments.no_headers)
        if found is not None:
            return _exit_code(0, found, arguments)
    in_full = arguments.output in {"wide", "json", "yaml"} or (arguments.output == "text" and arguments.verbose)
    own: dict[str, NodeSettings] = {}
    assumed: tuple[Assumption, ...] = ()
    if in_full:
        from podqos.cli.own_settings import own_settings

        own, assumed = own_settings(arguments, selection)
    objects = read_objects(inputs, stated, selection, version=profile.version, policies=policies)
    answer = explain(
        objects,
        node_memory_bytes=arguments.node_memory,
        node_swap_bytes=arguments.node_swap or 0,
        cores=arguments.cores,
        kubelet=kubelet,
        profile=profile,
        cgroup_version=arguments.cgroup or CgroupVersion.V2,
        cgroup_driver=arguments.driver,
        runtime=arguments.runtime or Runtime.CONTAINERD,
        engine=arguments.engine,
        own=own,
        in_full=in_full,
    )
    answer = replace(answer, assumptions=(*answer.assumptions, *assumed))
    errors = print_problems(objects.problems)
    lines = {"table": table, "wide": wide}.get(arguments.output, partial(text, verbose=arguments.verbose))
    if answer.items or arguments.output in {"json", "yaml", "csv"}:
        emit(
            answer,
            arguments,
            lines,
            csv_rows,
            lambda found: (object_name(each.kind, each.name) for each in found.items),
        )
    refused = sum(item.refusal is not None for item in answer.items)
    if refused and arguments.output not in {"text", "json", "yaml"}:
        several = "s are" if refused > 1 else " is"
        print(f"{refused} pod{several} rejected by policies in the input; `podqos admit` shows why", file=sys.stderr)
    say_skipped(objects, errors, found=counted(len(answer.items), "pod"), verb="explained", without="pods")
    return _exit_code(errors, {item.qos_class for item in answer.items}, arguments)


def _exit_code(errors: int, classes: set[QOSClass], arguments: argparse.Namespace) -> int:
    if errors or not classes:
        return 2
    worst = min(classes, key=lambda qos_class: CLASS_RANK[qos_class])
    return int(arguments.fail_on is not None and CLASS_RANK[worst] <= CLASS_RANK[arguments.fail_on])
