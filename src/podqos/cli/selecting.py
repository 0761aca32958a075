"""Which files a command reads, and which of their workloads it reports: the shared options and how they are read."""

from __future__ import annotations

import argparse
import sys

from podqos.amounts import counted
from podqos.cli.cluster import add_cluster_options
from podqos.cli.options import Parser, add_class_options, add_render_option
from podqos.cli.parser import FILES
from podqos.errors import InvalidOption
from podqos.model.selector import LabelSelector
from podqos.objects.objects import Objects
from podqos.objects.selection import Selection, parse_selector


def add_manifest_options(parser: argparse.ArgumentParser, *, positional: bool = True) -> None:
    """Declare ``-f`` and ``-k`` as kubectl spells them, files without ``-f``, and the options that select workloads."""
    if positional:
        about = "manifests (same as -f), or objects such as deploy/web: of the live cluster, or of the files of -f"
        parser.add_argument(FILES, nargs="*", action="extend", metavar="FILE|DIR|-|KIND/NAME", help=about)
    parser.add_argument(
        "-f",
        "--filename",
        dest=FILES,
        metavar="FILE|DIR|-",
        action="append",
        help="manifests: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated",
    )
    about = (
        "render a kustomization or a Helm chart and read the result (kubectl kustomize, kustomize build, helm template)"
    )
    parser.add_argument(
        "-k", "--kustomize", metavar="DIR", action="append", default=[], help=f"{about}; may be repeated"
    )
    add_render_option(parser, "render every kustomization and chart below the directories of -f")
    add_cluster_options(parser)
    add_class_options(parser)
    _add_selection_options(parser.add_argument_group("which workloads to report (the others still count)"))


def _add_selection_options(parser: Parser) -> None:
    about = (
        "only workloads of this namespace; objects without a namespace count as in it (default: all namespaces; "
        "objects without one are in the context's, or in default)"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help=about)
    about = "only workloads with these labels, as in kubectl: app=web,tier!=cache,'env in (a,b)'"
    parser.add_argument("-l", "--selector", metavar="SELECTOR", type=parse_selector, help=about)


def selection_of(arguments: argparse.Namespace) -> Selection | None:
    """Return which workloads a command reports; None for all."""
    objects = tuple(getattr(arguments, "objects", ()))
    known = getattr(arguments, "context_namespace", "default")
    chooses = arguments.namespace is not None or arguments.selector or objects
    if not chooses and known == "default":
        return None
    selector = arguments.selector or LabelSelector()
    return Selection(arguments.namespace, selector, objects, known)


def select(objects: Objects, selection: Selection | None) -> Objects:
    """Restrict an answer to the selected workloads, and print how many were left out."""
    objects = objects.with_selection(selection)
    if selection is not None:
        workloads = (item.workload for item in objects.workloads)
        known = {(workload.kind.lower(), workload.metadata.name) for workload in workloads}
        for kind, name in selection.objects:
            if objects.workloads and (kind, name) not in known:
                fix = "-o name without names of objects lists all of them"
                raise InvalidOption(f"the input has no such {kind}", where=f"{kind}/{name}", fix=fix)
        chosen = sum(map(objects.takes, objects.workloads))
        say_left_out(chosen, len(objects.workloads) - chosen)
    return objects


def say_left_out(chosen: int, others: int, noun: str = "workload") -> None:
    """Print how many workloads the options leave out; raise if they leave out all."""
    if not chosen and others:
        fix = "widen the selection; -o name without selectors lists all names"
        raise InvalidOption(f"none of {counted(others, noun)} matches", where="-n, -l, KIND/NAME", fix=fix)
    if others:
        print(f"{others} of {counted(chosen + others, noun)} not shown; they still count", file=sys.stderr)
