"""Compare two versions of manifests: which QoS class, oom score or place in a kill order changed, and why.

OLD and NEW are files, directories, or REV:path in a git repository (`HEAD~1:deploy`, `main:./k8s`). Policies next to
the manifests (LimitRange, PriorityClass, …) are applied, and so are the injectors of --inject. Both versions are
compared on the same node with the same memory usage: that of --usage, or what the older version requests. With
--render, kustomizations and charts are rendered, those of a revision in a temporary checkout.

A workload is worse off if it is now evicted or killed before another workload that used to be killed before it, or
that ranked equal to it. Workloads are matched by kind, namespace and name.

Exit codes: 0 no workload is worse off; 1 a workload has a lower class or is killed earlier; 2 bad input.
"""

from __future__ import annotations

import argparse

from podqos.admission.injectors import INJECTORS
from podqos.cli import options
from podqos.cli.cluster import add_cluster_options, cluster_of, profile_of
from podqos.cli.output import add_output_options, emit, object_name
from podqos.cli.problems import print_problems
from podqos.cli.usage_files import usage_option
from podqos.errors import InvalidOption
from podqos.questions import drift
from podqos.reading.cluster_part import Part
from podqos.reading.configured import configured_kinds
from podqos.reading.injecting import read_injectors
from podqos.reading.revisions import path_in
from podqos.reading.versions import load_version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos drift``."""
    about = "the old version: FILE, DIR or REV:path (default: the cluster)"
    parser.add_argument("old", metavar="OLD", nargs="?", help=about)
    parser.add_argument("new", metavar="NEW", nargs="?", help="the new version: FILE, DIR or REV:path")
    about = "the new version: its objects replace those of the same name in the cluster"
    parser.add_argument("-f", "--filename", dest="file", metavar="FILE|DIR", help=about)
    add_cluster_options(parser)
    parser.add_argument("-n", "--namespace", metavar="NAME", help="only this namespace of the live cluster")
    options.add_render_option(parser, "render the kustomizations and charts of both versions")
    options.add_list_option(parser, "--policies", "FILE|DIR", "the cluster's policies, which apply to both versions")
    about = "or a file with the containers and initContainers it adds"
    about = f"add the sidecars of an injector: {', '.join(INJECTORS)}, {about}"
    options.add_list_option(parser, "--inject", "NAME|FILE", about)
    parser.add_argument("--usage", metavar="FILE", help="usage of pods, as for podqos rank (default: their requests)")
    options.add_node_memory_option(parser)
    options.add_class_options(parser)
    options.add_kubelet_option(parser)
    about = "a workload (name or namespace/name) that is allowed to be worse off"
    options.add_list_option(parser, "--allow", "NAME", about)
    options.add_version_option(parser)
    about = "markdown: for a comment on a pull request"
    formats = ("table", "json", "yaml", "csv", "markdown", "name")
    add_output_options(parser, formats, "podqos.questions.drift:DriftReport", about)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    given = [each for each in (arguments.old, arguments.new, arguments.file) if each is not None]
    cluster = cluster_of(arguments, Part(usage=False))
    if len(given) != (2 if cluster is None else 1):
        fix = "for example: podqos drift HEAD~1:deploy deploy, or podqos drift -A -f deploy"
        raise InvalidOption("two versions are required, or one and a cluster", fix=fix)
    versions = (None, given[0]) if cluster is not None else given
    profile, usage = profile_of(arguments), arguments.usage
    injectors = read_injectors(arguments.inject)
    surroundings = {
        "cluster": None if cluster is None else cluster.declared(),
        "namespace": arguments.namespace or getattr(arguments, "context_namespace", "default"),
        "policies": arguments.policies,
        "stated": options.stated_classes(arguments),
        "kinds": configured_kinds([path_in(given[-1])]),
        "rendering": options.rendering_of(arguments),
    }
    old, new = (load_version(version, **surroundings) for version in versions)
    try:
        report = drift.drift(
            old,
            new,
            usage=() if usage is None else usage_option(usage),
            usage_file=usage,
            names=(versions[0] or "the cluster", given[-1]),
            injectors=injectors,
            allowed=arguments.allow,
            node_memory_bytes=arguments.node_memory,
            kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
            profile=profile,
        )
    finally:
        # A problem in a policy file is a problem of both versions.
        errors = print_problems({*old.problems, *new.problems})
    is_markdown = arguments.output == "markdown"
    lines = (lambda value, _: [drift.markdown(value)]) if is_markdown else drift.table
    emit(report, arguments, lines, drift.csv_rows, _names)
    return 2 if errors else int(report.fails)


def _names(report: drift.DriftReport) -> list[str]:
    return [object_name(each.kind, each.name) for each in report.changed]
