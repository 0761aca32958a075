"""Explain every pod in the manifests: its QoS class, why it has that class, and what follows from it.

Shows the smallest edit that makes the pod Guaranteed and the oom_score_adj of its containers; with -v also its cgroups
and the equivalent flags of `docker run` and `podman run`.

Reads Pods, everything with a pod template, Lists and kubectl output, as YAML or JSON. Pods are shown as the API server
stores them: policies in the files (LimitRange, PriorityClass, RuntimeClass, ClusterResourceOverride) are applied to
every pod that does not come from a cluster already. Problems are reported on standard error as file:line:column, and
everything else is still explained. --cases explains built-in example pods instead: which requests and limits make
which class.
"""

from __future__ import annotations

import argparse
import sys

from msgspec.structs import replace

from podqos.answers.explain import Detail, ExplainOptions
from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, profile_of
from podqos.cli.inputs import given_files, stored_policies
from podqos.cli.output import add_output_options, object_name, print_lines, print_names, print_value, say_assumptions
from podqos.cli.problems import ProblemPrinter
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, say_left_out, selection_of
from podqos.cli.spelling import spelled
from podqos.cli.streams import for_programs
from podqos.cli.terminal import style_of
from podqos.errors import InvalidOption
from podqos.library.explain import ExplainedFiles, explain_files
from podqos.model.assumption import Assumption
from podqos.model.pod import CLASS_RANK, QOSClass
from podqos.objects.assumptions import KUBELET_SETTINGS
from podqos.objects.other_objects import count_not_judged, not_judged
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime
from podqos.reading.configured import configured_kinds
from podqos.reading.loading import LoadRequest
from podqos.wording import counted

# How much of an explanation an output shows without -v; the others show everything.
_DETAILS = {
    "csv": Detail.DECISIONS,
    "table": Detail.LINES,
    "name": Detail.LINES,
    "text": Detail.BLOCKS,
    "wide": Detail.PODS,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos explain``."""
    add_manifest_options(parser)
    add_output_options(
        parser,
        ("text", "table", "wide", "csv", "json", "yaml", "name"),
        "podqos.answers.explanation:ExplanationList",
        (
            "text: a block per pod; table: one line per pod; wide: one line per container with its cgroup; csv: "
            "namespace, pod, container, class, oom_score_adj; json and yaml: everything"
        ),
    )
    about = (
        "explain built-in example pods, one for each combination of requests and limits; -o text prints "
        "a table of cases"
    )
    parser.add_argument("--cases", action="store_true", help=about)
    options.add_node_memory_option(parser, "the node's memory, which determines the oom scores of Burstable pods")
    options.add_value_option(parser, "--node-swap", options.amount_or_zero_option, "the node's swap (default: none)")
    about = "the node's cores, for the CPU share of all pods (default: unknown)"
    options.add_value_option(parser, "--cores", options.cores_option, about, "N")
    options.add_kubelet_option(parser)
    options.add_version_option(parser)
    options.add_cgroup_option(parser)
    about = "cgroup driver (default: from --kubelet-config, the node's own, or systemd)"
    options.add_choice_option(parser, "--driver", CgroupDriver, about)
    about = "container runtime"
    options.add_choice_option(parser, "--runtime", Runtime, about, Runtime.CONTAINERD)
    # None: what the node of a pod says, if it does.
    parser.set_defaults(cgroup=None, runtime=None)
    parser.add_argument(
        "--engine",
        choices=("docker", "podman"),
        default="docker",
        help="container engine to print run flags for (default: docker)",
    )
    parser.add_argument(
        "--require",
        metavar="CLASS",
        choices=[QOSClass.GUARANTEED, QOSClass.BURSTABLE],
        type=lambda text: {qos_class.lower(): qos_class for qos_class in QOSClass}.get(text.lower(), text),
        help="exit with 1 if a pod's class is lower than this (Guaranteed or Burstable)",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help=(
            "with -o text: also show the cgroup hierarchy, every run flag (set or not) with the reason, and "
            "the oom scores of the node's own processes"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    if arguments.cases:
        _choose_cases(arguments)
    inputs, stated = given_files(arguments, "explain", under=True), options.stated_classes(arguments)
    stored = stored_policies(arguments)
    request = LoadRequest(
        policies=() if stored is None else (stored,),
        stated=stated,
        version=profile_of(arguments).version,
        kinds=configured_kinds(inputs.places),
        selection=selection_of(arguments),
    )
    asked, further = _options(arguments), tuple[Assumption, ...]()
    if _shows_cgroups(arguments):
        from podqos.cli.own_settings import own_settings

        found = own_settings(arguments, request.selection)
        asked, further = replace(asked, own=found.by_node), found.assumptions
    files = explain_files(inputs, asked, request, _detail(arguments), progress_line("reading file"))
    files = replace(files, assumptions=(*files.assumptions, *further))
    problems = ProblemPrinter()
    for problem in files.explained.problems:
        problems.print(problem)
    _print(files, arguments)
    return _close(files, problems, arguments)


def _shows_cgroups(arguments: argparse.Namespace) -> bool:
    """Whether the output has more than classes and scores."""
    return arguments.output in {"wide", "json", "yaml"} or (arguments.output == "text" and arguments.verbose)


def _detail(arguments: argparse.Namespace) -> Detail:
    """Return how much of an explanation is shown."""
    return (
        Detail.NODE if arguments.output == "text" and arguments.verbose else _DETAILS.get(arguments.output, Detail.NODE)
    )


def _print(files: ExplainedFiles, arguments: argparse.Namespace) -> None:
    items = files.explained.items
    match arguments.output:
        case "csv":
            for_programs()
            if not arguments.no_headers:
                sys.stdout.write("namespace,pod,container,class,oom_score_adj\n")
            for rows in files.rows:
                sys.stdout.write(rows)
        case "name":
            print_names(object_name(item.kind, item.name) for item in items)
        case "text" if arguments.cases:
            from podqos.report.explain.cases import case_table

            print_lines(case_table(items, style_of(arguments)))
        case "text":
            _print_text(files, arguments)
        case "table" | "wide" as kind:
            from podqos.report.explain import lines

            render = lines.table if kind == "table" else lines.wide
            style = style_of(arguments)
            print_lines(render(items, style), style)
        case notation:
            print_value(files.whole(), notation)


def _choose_cases(arguments: argparse.Namespace) -> None:
    """Use the built-in example pods as input."""
    from podqos.reading.shipped_scenarios import scenario_dir

    if arguments.files or arguments.kustomize or arguments_name_cluster(arguments):
        raise InvalidOption("--cases and manifests cannot be combined", fix="remove the files or --cases")
    arguments.files = [str(scenario_dir("sources") / "cases.yaml")]


def _options(arguments: argparse.Namespace) -> ExplainOptions:
    return ExplainOptions(
        node_memory_bytes=arguments.node_memory,
        node_swap_bytes=arguments.node_swap or 0,
        cores=arguments.cores,
        kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
        profile=profile_of(arguments),
        cgroup_version=arguments.cgroup or CgroupVersion.V2,
        cgroup_driver=arguments.driver,
        runtime=arguments.runtime or Runtime.CONTAINERD,
        engine=arguments.engine,
    )


def _print_text(files: ExplainedFiles, arguments: argparse.Namespace) -> None:
    from podqos.report.explain.lines import text

    style = style_of(arguments)
    for item in files.explained.items:
        print_lines(text(item, style, verbose=arguments.verbose))
    pods = files.explained.pods
    if arguments.verbose and pods is not None and pods.counted.pods:
        from podqos.answers.explanation import explain_node
        from podqos.report.explain.node import node_text

        print_lines(node_text(explain_node(pods.counted, files.settings), style, verbose=True))


def _close(files: ExplainedFiles, problems: ProblemPrinter, arguments: argparse.Namespace) -> int:
    """Print what was assumed and what was left out, one line each, and return the exit code."""
    explained = files.explained
    found = sum(explained.classes.values())
    say_left_out(found, explained.neighbours)
    named = [f"{kind}/{name}" for kind, name in getattr(arguments, "objects", ())]
    if 0 < found < len(named):
        what = f"the input has only {found} of these {len(named)} objects"
        raise InvalidOption(what, where=" ".join(named), fix="-o name without them lists all names")
    problems.close()
    errors = problems.errors
    is_case_table = arguments.cases and arguments.output == "text"
    if found and not is_case_table and arguments.output not in {"json", "yaml"}:
        _say_assumptions(files, arguments)
    for problem in not_judged(explained.unjudged):
        if problem not in explained.problems:
            print(problem.worded(spelled), file=sys.stderr)
    left_out = []
    if explained.others:
        left_out.append(f"skipped {counted(explained.others, 'object')} without pods")
    if errors:
        left_out.append(counted(errors, "error"))
    unjudged = count_not_judged(explained.unjudged)
    if left_out or unjudged or not found:
        summary = f"{found or 'no'} pod{'s' if found != 1 else ''} explained"
        print("; ".join(filter(None, (summary, unjudged, ", ".join(left_out)))), file=sys.stderr)
    if errors or not found:
        return 2
    required = arguments.require and CLASS_RANK[arguments.require]
    return 1 if required and any(CLASS_RANK[qos_class] < required for qos_class in explained.classes) else 0


def _say_assumptions(files: ExplainedFiles, arguments: argparse.Namespace) -> None:
    """Print what was assumed; classes and scores alone do not depend on kubelet settings."""
    output, shows_cgroups = arguments.output, _shows_cgroups(arguments)
    say_assumptions([assumption for assumption in files.assumptions if shows_cgroups or assumption != KUBELET_SETTINGS])
    refused = files.explained.refused
    if refused and output != "text":
        several = "s are" if refused > 1 else " is"
        print(f"{refused} pod{several} rejected by policies in the input; `podqos admit` shows why", file=sys.stderr)
