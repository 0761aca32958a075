"""Explain every pod in manifests: its QoS class, why, and what follows from it.

That is the smallest edit that would make it Guaranteed, the oom_score_adj of its containers, its cgroups, and the same
as flags of `docker run` and `podman run`.

Reads Pods, everything that holds a pod template, Lists and kubectl output, as YAML or JSON. Shown is the pod as the API
server stores it: policies among the files (LimitRange, PriorityClass, RuntimeClass, ClusterResourceOverride) are
applied to every pod that does not come from a cluster already. What cannot be read is reported on standard error as
file:line:column, and the rest is explained all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.field_errors import FieldError
from podqos.admission.stored import Stored, Storing
from podqos.admission.validation import validate_resources
from podqos.cli.options import (
    add_filename_option,
    add_kubelet_option,
    add_schema_option,
    add_version_option,
    amount_option,
    cores_option,
    node_memory_option,
)
from podqos.cli.progress import progress_line
from podqos.cli.terminal import add_colour_option, style_for
from podqos.library.inputs.files import STDIN, manifest_files, total_bytes
from podqos.library.inputs.sources import Source
from podqos.manifest.kinds import NAMESPACE, is_policy
from podqos.manifest.plain import parse_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.pod import QOSClass, Workload
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime, stock_node
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.report.explain.decision import Decision, Settings, decide

if TYPE_CHECKING:
    from podqos.admission.policies import Cluster
    from podqos.library.inputs.large_list import Part
    from podqos.report.explain.explanation import Explanation
    from podqos.report.explain.node import PodSets

# Below this a second process costs more than it saves.
_WORTH_FORKING_BYTES = 1 << 20

# The outputs that say everything about each pod; the others have a line for it.
_SAYS_NOTES = ("text", "json", "yaml")

_RANK = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos explain``."""
    add_filename_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "table", "wide", "csv", "json", "yaml"),
        default="text",
        help="text: a block per pod; table: a line per pod; wide: a line per container with its cgroup; "
        "csv: namespace, pod, container, class, oom_score_adj; json and yaml: everything (default: text)",
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node, which enters Burstable's oom score (default: this machine's)",
    )
    parser.add_argument("--node-swap", metavar="QUANTITY", help="swap of the node (default: none)")
    parser.add_argument(
        "--cores", metavar="N", help="cores of the node, for the CPU share of all pods (default: not known)"
    )
    add_kubelet_option(parser)
    add_version_option(parser)
    parser.add_argument("--cgroup", choices=list(CgroupVersion), default="v2", help="cgroup version (default: v2)")
    parser.add_argument(
        "--driver", choices=list(CgroupDriver), help="cgroup driver (default: that of --kubelet-config, or systemd)"
    )
    parser.add_argument(
        "--runtime", choices=list(Runtime), default="containerd", help="container runtime (default: containerd)"
    )
    parser.add_argument(
        "--engine", choices=("docker", "podman"), default="docker", help="whose run flags to show (default: docker)"
    )
    parser.add_argument(
        "--require",
        metavar="CLASS",
        choices=[QOSClass.GUARANTEED, QOSClass.BURSTABLE],
        help="exit with 1 if any pod has a lower class than this (Guaranteed or Burstable)",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="with -o text: every run flag with what became of it, and the oom scores of the node's own processes",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    if arguments.schema:
        from podqos.cli.output import print_schema
        from podqos.report.explain.explanation import ExplanationList

        print_schema(ExplanationList)
        return 0
    settings = _settings(arguments)
    tally = Tally()
    outcomes = tally.counting(_outcomes(manifest_files(arguments.files, "explain"), settings, arguments.output))
    if arguments.output == "csv":
        _print_csv(outcomes)
    elif arguments.output == "text":
        _print_text(outcomes, settings, arguments)
    else:
        _print_whole(outcomes, arguments, settings)
    return tally.close(arguments)


# ---- one file ----------------------------------------------------------------------------------------------------


class Outcome(Struct):
    """What one file gave."""

    explanations: list[Explanation] = []
    rows: str = ""
    """For ``-o csv``, which is for many pods: the finished lines instead of explanations."""
    classes: Counter[QOSClass] = Counter()
    problems: list[Problem] = []
    others: int = 0
    """Objects that hold no pod and are no policies, and documents that are no Kubernetes objects."""
    pods: PodSets | None = None
    """For the outputs that tell of the node as well."""
    policies: int = 0
    unknown: Counter[tuple[str, str]] = Counter()
    """Kind and name of classes that pods name and that were not given, with the number of pods."""
    refused: int = 0
    """Pods that policies of the input do not let in."""


def _outcomes(files: list[str], settings: Settings, output: str) -> Iterator[Outcome]:
    """Yield what each file gives, in order; all cores work where that pays."""
    is_large = STDIN not in files and total_bytes(files) >= _WORTH_FORKING_BYTES
    if is_large and len(files) == 1 and output == "csv":
        parts = _part_outcomes(files[0], settings)
        if parts:
            yield from parts
            return
    if is_large and len(files) > 1:
        yield from _spread_outcomes(files, settings, output)
        return
    sources = [Source(path) for path in files]
    cluster, problems = _policies(sources)
    if problems:
        yield Outcome(problems=problems)
    for source in sources:
        yield explain_source(source, settings, output, cluster)


def _spread_outcomes(files: list[str], settings: Settings, output: str) -> Iterator[Outcome]:
    """Yield what each file gives, computed on all cores.

    Policies count for the pods of all files, and few repositories hold any: only where some turn up is everything
    explained again with them.
    """
    from podqos.library.engines.fan_out import fan_out, usable_cores

    task = partial(explain_file, settings=settings, output=output, cluster=None)
    outcomes = list(fan_out(task, files, usable_cores(), progress_line("reading file")))
    if any(outcome.policies for outcome in outcomes):
        holders = [path for path, outcome in zip(files, outcomes, strict=True) if outcome.policies]
        cluster, problems = _policies([Source(path) for path in holders])
        yield Outcome(problems=problems)
        task = partial(explain_file, settings=settings, output=output, cluster=cluster)
        outcomes = list(fan_out(task, files, usable_cores(), progress_line("reading file")))
    yield from outcomes


def _policies(sources: Sequence[Source]) -> tuple[Cluster | None, list[Problem]]:
    """Return the policies of all files together, if there are any, and what is wrong with them."""
    if not any(map(_count_policies, sources)):
        return None, []
    from podqos.library.inputs.policies import PolicyCollector

    # A repository holds the overlays of several clusters.
    collector = PolicyCollector("default", doubles=Severity.WARNING)
    # A file that is named twice is one file.
    for source in {os.path.realpath(source.path): source for source in sources}.values():
        collector.take(source)
    cluster = collector.cluster()
    return cluster, sorted(collector.problems)


def _count_policies(source: Source) -> int:
    """Return how many policies a file holds; a namespace alone decides nothing."""
    others = source.reading.others
    return sum(is_policy(other.kind, other.api_version) and other.kind != NAMESPACE for other in others)


def explain_file(path: str, settings: Settings, output: str, cluster: Cluster | None) -> Outcome:
    """Read one file and explain the pods in it."""
    return explain_source(Source(path), settings, output, cluster)


def explain_source(source: Source, settings: Settings, output: str, cluster: Cluster | None) -> Outcome:
    """Explain the pods of a file, as stored with the policies of a cluster."""
    reading = source.reading
    storing = Storing(cluster, settings.profile)
    accepted: list[tuple[Workload, Stored, Place]] = []
    problems = list(reading.problems)
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        # What comes from an API server has passed its validation.
        refused = () if workload.is_live else validate_resources(workload.pod)
        if refused:
            problems += _located(refused, source, workload, place)
        else:
            accepted.append((workload, storing.store(workload), place))
    decisions = [decide(stored.pod, settings) for _, stored, _ in accepted]
    policies = _count_policies(source) if reading.others else 0
    outcome = Outcome(
        classes=Counter([decision.qos_class for decision in decisions]),
        problems=sorted(problems),
        others=len(reading.others) + reading.skipped - policies,
        policies=policies,
        unknown=Counter((missing.kind, missing.name) for _, stored, _ in accepted for missing in stored.unknown),
        refused=sum(stored.refusal is not None for _, stored, _ in accepted),
    )
    if output == "csv":
        outcome.rows = rows(decisions)
    else:
        from podqos.report.explain.explanation import explain

        outcome.explanations = [
            explain(workload, stored, decision, source.path, settings, taken_for=place.taken_for)
            for (workload, stored, place), decision in zip(accepted, decisions, strict=True)
        ]
        if output not in {"table", "wide"}:
            from podqos.report.explain.node import pod_sets

            outcome.pods = pod_sets((workload for workload, _, _ in accepted), decisions, settings)
    return outcome


def _part_outcomes(path: str, settings: Settings) -> list[Outcome]:
    """Return what the parts of a large list give; nothing where the file has to be read as a whole."""
    from podqos.library.engines.fan_out import fan_out, usable_cores
    from podqos.library.inputs.large_list import cut

    parts = cut(path, usable_cores())
    task = partial(explain_part, settings=settings)
    outcomes = [
        outcome for outcome in fan_out(task, parts, len(parts), progress_line("reading file")) if outcome is not None
    ]
    return outcomes if len(outcomes) == len(parts) else []


def explain_part(part: Part, settings: Settings) -> Outcome | None:
    """Explain one part of a large list; None where the file has to be read as a whole."""
    from podqos.library.inputs.large_list import read_part

    pods = read_part(part)
    if pods is None:
        return None
    decisions = [decide(pod, settings) for pod in pods]
    return Outcome(classes=Counter([decision.qos_class for decision in decisions]), rows=rows(decisions))


def _located(refused: Iterable[FieldError], source: Source, workload: Workload, place: Place) -> Iterator[Problem]:
    """Give the API server's complaints their places in the file."""
    prefix = f"{workload.pod_path}." if workload.pod_path else ""
    for error in refused:
        yield source.problem(place, parse_path(prefix + error.path), error.words)


def rows(decisions: Sequence[Decision]) -> str:
    """Return the lines of ``-o csv``."""
    lines = []
    for decision in decisions:
        metadata = decision.pod.metadata
        start = f"{metadata.namespace or 'default'},{metadata.name or metadata.generate_name}"
        qos_class = decision.qos_class.value
        lines += [f"{start},{score.container},{qos_class},{score.value}\n" for score in decision.oom_scores]
    text = "".join(lines)
    # Names in Kubernetes need no quotes; what is no proper name shows here and is written with care.
    if '"' in text or "\r" in text or text.count(",") != 4 * len(lines) or text.count("\n") != len(lines):
        return _quoted_rows(decisions)
    return text


def _quoted_rows(decisions: Sequence[Decision]) -> str:
    from csv import writer
    from io import StringIO

    text = StringIO()
    table = writer(text, lineterminator="\n")
    for decision in decisions:
        metadata = decision.pod.metadata
        namespace, name = metadata.namespace or "default", metadata.name or metadata.generate_name
        for score in decision.oom_scores:
            table.writerow((namespace, name, score.container, decision.qos_class.value, score.value))
    return text.getvalue()


# ---- options -----------------------------------------------------------------------------------------------------


def _settings(arguments: argparse.Namespace) -> Settings:
    profile = parse_version(arguments.kubernetes_version)
    memory_bytes = node_memory_option(arguments.node_memory)
    cores = None if arguments.cores is None else cores_option(arguments.cores)
    swap_bytes = 0 if arguments.node_swap is None else amount_option(arguments.node_swap, "--node-swap", "8Gi")
    version = CgroupVersion(arguments.cgroup)
    score = KUBELET_OOM_SCORE_ADJ
    if arguments.kubelet_config is None:
        cgroups = stock_node(memory_bytes, cores=cores, swap_bytes=swap_bytes, cgroup_version=version)
    else:
        # What reads a configuration takes longer to load than a pod to explain.
        from podqos.library.inputs.kubelet_node import cgroups_of, kubelet_of

        kubelet = kubelet_of(arguments.kubelet_config)
        score = kubelet.config.oom_score_adj
        cgroups = cgroups_of(
            kubelet,
            memory_bytes=memory_bytes,
            cores=cores,
            swap_bytes=swap_bytes,
            cgroup_version=version,
            profile=profile,
        )
    return Settings(
        cgroups=replace(
            cgroups,
            cgroup_driver=CgroupDriver(arguments.driver or cgroups.cgroup_driver),
            runtime=Runtime(arguments.runtime),
        ),
        profile=profile,
        engine=arguments.engine,
        kubelet_oom_score_adj=score,
    )


# ---- output ------------------------------------------------------------------------------------------------------


def _print_csv(outcomes: Iterable[Outcome]) -> None:
    sys.stdout.write("namespace,pod,container,class,oom_score_adj\n")
    for outcome in outcomes:
        sys.stdout.write(outcome.rows)


def _print_text(outcomes: Iterable[Outcome], settings: Settings, arguments: argparse.Namespace) -> None:
    from podqos.report.explain.lines import text
    from podqos.report.explain.node import PodSets, explain_node, node_text

    style = style_for(arguments.color)
    pods = PodSets()
    for outcome in outcomes:
        pods = pods.plus(outcome.pods or PodSets())
        for item in outcome.explanations:
            print("\n".join(text(item, style, verbose=arguments.verbose)))
    if pods.counted.pods:
        print("\n".join(node_text(explain_node(pods.counted, settings), style, verbose=arguments.verbose)))


def _print_whole(outcomes: Iterable[Outcome], arguments: argparse.Namespace, settings: Settings) -> None:
    """Print a format that needs everything at once: tables for their widths, JSON and YAML for their brackets."""
    found = list(outcomes)
    items = [item for outcome in found for item in outcome.explanations]
    if arguments.output in {"table", "wide"}:
        from podqos.report.explain import lines

        render = lines.table if arguments.output == "table" else lines.wide
        print("\n".join(render(items, style_for(arguments.color))))
        return
    from podqos.cli.output import print_value
    from podqos.report.explain.explanation import ExplanationList
    from podqos.report.explain.node import PodSets, explain_node

    version = ".".join(map(str, settings.profile.version))
    pods = reduce(PodSets.plus, (outcome.pods for outcome in found if outcome.pods is not None), PodSets())
    node = explain_node(pods.counted, settings)
    print_value(ExplanationList(tuple(items), version, settings.node_memory_bytes, node), arguments.output)


class Tally:
    """What was found over all files. Problems are printed as they come, the sum at the end."""

    def __init__(self) -> None:
        self.classes: Counter[QOSClass] = Counter()
        self.unknown: Counter[tuple[str, str]] = Counter()
        self.refused = 0
        self.errors = 0
        self.others = 0

    def counting(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Pass the outcomes on and count what is in them."""
        for outcome in outcomes:
            self.classes += outcome.classes
            for problem in outcome.problems:
                self.errors += problem.severity is Severity.ERROR
                print(problem, file=sys.stderr)
            self.others += outcome.others
            self.unknown += outcome.unknown
            self.refused += outcome.refused
            yield outcome

    def close(self, arguments: argparse.Namespace) -> int:
        """Say in a line what was left out, and return the exit code."""
        found = sum(self.classes.values())
        if arguments.output not in _SAYS_NOTES:
            self._tell_assumptions()
        left_out = []
        if self.others:
            left_out.append(f"{self.others} without pods skipped")
        if self.errors:
            left_out.append(f"{self.errors} error{'s' if self.errors > 1 else ''}")
        if left_out or not found:
            print(f"{found or 'no'} pod{'s' if found != 1 else ''} explained; {', '.join(left_out)}", file=sys.stderr)
        if self.errors or not found:
            return 2
        required = arguments.require and _RANK[arguments.require]
        return 1 if required and any(_RANK[qos_class] < required for qos_class in self.classes) else 0

    def _tell_assumptions(self) -> None:
        """Say what a line per pod has no room for."""
        if self.unknown:
            from podqos.report.text.words import unknown_classes

            print(unknown_classes(self.unknown), file=sys.stderr)
        if self.refused:
            several = "s are" if self.refused > 1 else " is"
            print(
                f"{self.refused} pod{several} refused by policies of the input; podqos admit says why", file=sys.stderr
            )
