"""Follow every pod in manifests through the API server, step by step, and show where its QoS class changes.

Workloads and the policies that decide about them (LimitRange, ResourceQuota, PriorityClass, RuntimeClass, Namespace,
ClusterResourceOverride) may stand in the same files; --policies names files in which only policies count. All
replicas are charged to the quotas, in the order of the files. A namespace exists unless --policies lists namespaces
and this one is neither there nor in -f.

Exit codes: 0 all pods are admitted, with the class their manifests mean; 1 something is refused, or admission changes a
class other than by defaulting (a request copied from its limit); 2 bad input, invalid policies included.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.decoding import read_pod
from podqos.admission.policies import Cluster
from podqos.admission.refusal import Refusal
from podqos.admission.resource_override import PROFILES
from podqos.admission.workloads import Admissions
from podqos.cli.options import add_filename_option, add_schema_option, add_version_option
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InvalidOption
from podqos.library.inputs.files import STDIN, existing_files, manifest_files, with_progress
from podqos.library.inputs.policies import PolicyCollector
from podqos.library.inputs.sources import Source
from podqos.manifest.contents import Refused
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import Place
from podqos.model.pod import Workload
from podqos.model.profile import Profile, parse_version
from podqos.report.admission.value import AdmissionList, AdmissionReport, Locate, report, report_unread
from podqos.report.text.words import taken_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos admit``."""
    add_filename_option(parser)
    parser.add_argument(
        "--policies",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="policies of the cluster, such as `kubectl get ns,limits,quota,pc,runtimeclass -A -o yaml` prints them; "
        "may be repeated",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        default="default",
        help="namespace of objects that name none (default: default)",
    )
    parser.add_argument(
        "--override-profile",
        choices=tuple(PROFILES),
        help="which generation of ClusterResourceOverride reads its configuration: okd-3.9 (namespaces opt out, a "
        "LimitRange may refuse the result) or current (namespaces opt in) (default: by the shape of its object)",
    )
    parser.add_argument(
        "--resize",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="the pods of -f with other resources: resize them in place once they are admitted; may be repeated",
    )
    add_version_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "table", "csv", "json", "yaml"),
        default="text",
        help="text: every step of every workload; table: a line per workload; csv, json and yaml (default: text)",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Admit, print, and return the exit code."""
    if arguments.schema:
        from podqos.cli.output import print_schema

        print_schema(AdmissionList)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    _check_options(arguments, profile)
    inputs = read_inputs(arguments)
    tally = Tally(inputs)
    if tally.policies_are_sound:
        # Where results are printed as they come, they show themselves how far it is.
        is_streamed = arguments.output in {"text", "csv"}
        items = inputs.items if is_streamed else with_progress(inputs.items, "workload")
        _print(tally.counting(_reports(items, inputs, profile)), arguments, profile, inputs.cluster)
    return tally.close()


# ---- inputs ------------------------------------------------------------------------------------------------------


class Item(Struct, frozen=True):
    """A workload, or an object that should be one and is not in order, and where it stands."""

    source: Source
    place: Place
    what: Workload | Refused
    namespace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name: what is resized has the same as its resized version."""
        return self.what.kind, self.namespace, self.what.metadata.name


class Inputs(Struct, frozen=True):
    """Everything the files hold."""

    items: list[Item]
    resizes: dict[tuple[str, str, str], Item]
    cluster: Cluster
    problems: list[Problem]
    policy_problems: list[Problem]
    """Those that leave it open what the policies are."""
    others: int
    """Objects that are neither workloads nor policies, and documents that are no Kubernetes objects."""


def _check_options(arguments: argparse.Namespace, profile: Profile) -> None:
    given = [*(arguments.files or ()), *arguments.policies, *arguments.resize]
    if given.count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="name files for the rest")
    if arguments.resize and not profile.in_place_resize:
        raise InvalidOption(
            f"Kubernetes {_version(profile)} cannot resize pods in place", where="--resize", fix="use 1.33 or newer"
        )


def read_inputs(arguments: argparse.Namespace) -> Inputs:
    """Read all files, and put the policies together."""
    namespace = arguments.namespace
    sources = [Source(path) for path in manifest_files(arguments.files, "admit")]
    described = [Source(path) for path in _beyond(arguments.policies, sources)]
    resized = [Source(path) for path in existing_files(arguments.resize)] if arguments.resize else []
    policies = PolicyCollector(namespace)
    taken = sum(policies.take(source) for source in sources)
    for source in described:
        policies.take(source, are_stored=True)
    cluster = policies.cluster(PROFILES[arguments.override_profile] if arguments.override_profile else None)
    if arguments.override_profile and cluster.policies.override is None and not policies.problems:
        what = "there is no override for it"
        raise InvalidOption(what, where="--override-profile", fix="add a ClusterResourceOverride to the files")
    items = [item for source in sources for item in _items(source, namespace)]
    resizes = [item for source in resized for item in _items(source, namespace)]
    return Inputs(
        items=items,
        resizes={item.key: item for item in resizes},
        cluster=cluster,
        problems=[*_problems(sources), *_problems(resized), *_strangers(resizes, items)],
        policy_problems=[*_problems_beside_workloads(described), *policies.problems],
        others=sum(len(source.reading.others) + source.reading.skipped for source in sources) - taken,
    )


def _beyond(given: list[str], sources: list[Source]) -> list[str]:
    """Return the files of ``--policies`` that ``-f`` does not name already."""
    known = {os.path.realpath(source.path) for source in sources}
    return [path for path in existing_files(given) if os.path.realpath(path) not in known] if given else []


def _problems(sources: list[Source]) -> Iterator[Problem]:
    return (problem for source in sources for problem in source.reading.problems)


def _problems_beside_workloads(sources: list[Source]) -> Iterator[Problem]:
    of_workloads = {problem for source in sources for refused in source.reading.refused for problem in refused.problems}
    return (problem for problem in _problems(sources) if problem not in of_workloads)


def _strangers(resizes: list[Item], items: list[Item]) -> Iterator[Problem]:
    """Yield what is to be resized and is not there."""
    known = {item.key for item in items}
    for item in resizes:
        kind, namespace, name = item.key
        if item.key not in known:
            what = f"there is no {kind} {namespace}/{name} to resize"
            yield item.source.problem(item.place, ("metadata", "name"), what, "give it with -f, as it is now")


def _items(source: Source, namespace: str) -> list[Item]:
    """Return what a file holds, in its order."""
    reading = source.reading
    items = []
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        own = workload.metadata.namespace or namespace
        items.append(Item(source, place, _in_namespace(workload, own), own))
    if reading.refused:
        items += [
            Item(source, refused.place, refused, refused.metadata.namespace or namespace) for refused in reading.refused
        ]
        items.sort(key=lambda item: (item.place.chunk.start, item.place.document, item.place.path))
    return items


def _in_namespace(workload: Workload, namespace: str) -> Workload:
    pod = workload.pod
    return replace(
        workload,
        metadata=replace(workload.metadata, namespace=namespace),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=namespace)),
    )


# ---- reports -----------------------------------------------------------------------------------------------------


def _reports(items: Iterable[Item], inputs: Inputs, profile: Profile) -> Iterator[AdmissionReport]:
    """Yield what becomes of each workload, in the order of the files."""
    admissions = Admissions(inputs.cluster, profile)
    for item in items:
        if isinstance(item.what, Refused):
            yield _noted(_unread(item, item.what), item)
            continue
        resized = inputs.resizes.get(item.key)
        old, pods = item.what.pod, 1
        if resized is None or not item.what.is_live:
            outcome = admissions.create(item.what)
            yield _noted(report(outcome, item.source.path, _locate(item)), item)
            old, pods = outcome.first.pod, outcome.admitted
        if resized is not None and isinstance(resized.what, Workload) and pods:
            outcome = admissions.resize(old, resized.what, pods)
            yield _noted(report(outcome, resized.source.path, _locate(resized)), resized)


def _noted(item_report: AdmissionReport, item: Item) -> AdmissionReport:
    """Say what was assumed where the text names no kind."""
    kind = item.place.taken_for
    return replace(item_report, notes=(taken_for(kind),)) if kind else item_report


def _locate(item: Item) -> Locate:
    return lambda path: item.source.lookup.locate(item.place, path)


def _unread(item: Item, refused: Refused) -> AdmissionReport:
    path = POD_HOLDERS[refused.kind].pod_path
    read = read_pod(item.source.lookup.plain(item.place), refused.kind, refused.api_version, path)
    return report_unread(refused, read if isinstance(read, Refusal) else None, item.namespace, item.source.path)


# ---- output ------------------------------------------------------------------------------------------------------


def _print(
    reports: Iterable[AdmissionReport], arguments: argparse.Namespace, profile: Profile, cluster: Cluster
) -> None:
    from podqos.report.admission import lines

    style = style_for(arguments.color)
    match arguments.output:
        case "text":
            for item in reports:
                print("\n".join(lines.text(item, style)))
        case "table":
            print("\n".join(lines.table(list(reports), style)))
        case "csv":
            from csv import writer

            rows = writer(sys.stdout, lineterminator="\n")
            rows.writerow(lines.CSV_HEADER)
            rows.writerows(map(lines.csv_row, reports))
        case notation:
            from podqos.cli.output import print_value

            override = cluster.policies.override_profile.name if cluster.policies.override else None
            print_value(AdmissionList(tuple(reports), _version(profile), override), notation)


def _version(profile: Profile) -> str:
    return ".".join(map(str, profile.version))


class Tally:
    """What was found over all files. Problems are printed at once, the sum at the end."""

    def __init__(self, inputs: Inputs) -> None:
        self._others = inputs.others
        self._workloads = 0
        self._findings = 0
        problems = sorted([*inputs.problems, *inputs.policy_problems])
        for problem in problems:
            print(problem, file=sys.stderr)
        self._errors = _errors(problems)
        self.policies_are_sound = not _errors(inputs.policy_problems)

    def counting(self, reports: Iterable[AdmissionReport]) -> Iterator[AdmissionReport]:
        """Pass the reports on and count what is in them."""
        for item in reports:
            self._workloads += 1
            self._findings += item.is_finding
            yield item

    def close(self) -> int:
        """Say in a line what was left out, and return the exit code."""
        left_out = []
        if self._others:
            left_out.append(f"{self._others} without pods or policies skipped")
        if self._errors:
            left_out.append(f"{self._errors} error{'s' if self._errors > 1 else ''}")
        found = self._workloads
        if left_out or not found:
            counted = f"{found or 'no'} workload{'s' if found != 1 else ''} followed"
            print("; ".join(filter(None, (counted, ", ".join(left_out)))), file=sys.stderr)
        if self._errors or not found:
            return 2
        return 1 if self._findings else 0


def _errors(problems: Iterable[Problem]) -> int:
    return sum(problem.severity is Severity.ERROR for problem in problems)
