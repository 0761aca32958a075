"""Read the files of a command, with a line of progress, and print their problems."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podqos.amounts import counted
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments
from podqos.cli.options import rendering_of
from podqos.cli.progress import progress_line
from podqos.cli.selecting import select
from podqos.errors import InvalidOption
from podqos.objects.files import Inputs
from podqos.objects.objects import Objects
from podqos.objects.other_objects import FoundObject, count_not_judged
from podqos.objects.selection import Selection, namespace_of
from podqos.parallel import over_cores
from podqos.reading.cluster_part import POLICIES, Part
from podqos.reading.configured import configured_kinds
from podqos.reading.gathering import applied_files, manifest_files
from podqos.reading.loading import LoadRequest, load_all

if TYPE_CHECKING:
    from podqos.model.policy import PriorityClass, RuntimeClass

_SCENARIO = re.compile(rb"^kind: *Scenario\s*$", re.MULTILINE)
_HEAD_BYTES = 4096


def given_files(
    arguments: argparse.Namespace,
    verb: str,
    *,
    in_order_of_apply: bool = False,
    declared: bool = False,
    beside: bool = False,
    under: bool = False,
) -> Inputs:
    """Return the files that ``-f`` and ``-k`` name, or the objects of a cluster; ``verb`` says what for.

    ``declared``: of a cluster the workloads, instead of the pods that run. ``beside``: files may come on top of it.
    ``under``: files may come instead of its objects, and be judged by its policies (``stored_policies``).
    """
    object_arguments(arguments)
    kinds = tuple(kind for kind, _ in getattr(arguments, "objects", ()))
    declared = declared or any(kind != "pod" for kind in kinds)
    has_files = bool(arguments.files or arguments.kustomize)
    if has_files and not (beside or under) and arguments_name_cluster(arguments):
        raise InvalidOption("files and a cluster cannot be combined", fix="give one of them")
    refuse_scenarios(arguments.files or ())
    is_judge = under and has_files
    cluster = None if is_judge else cluster_of(arguments, Part(usage=False, workloads=declared, named_kinds=kinds))
    found = Inputs([])
    if cluster is None or has_files:
        rendering = rendering_of(arguments)
        gathered = applied_files if in_order_of_apply else manifest_files
        found = gathered(arguments.files, verb, rendering)
    if cluster is not None:
        own = cluster.declared() if declared else cluster.running()
        found = Inputs([*own.files, *found.files], found.problems, own.assumptions)
    return found


def refuse_scenarios(given: Sequence[str]) -> None:
    """Raise if only scenarios are given, and say which manifests they refer to."""
    if given and all(map(_is_scenario, given)):
        fix = f"`podqos simulate {given[0]}` runs it; give the manifests it refers to"
        raise InvalidOption("this is a scenario, which has no pods of its own", where=given[0], fix=fix)


def _is_scenario(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    return _SCENARIO.search(head) is not None and b"podqos.dev/" in head


def stored_policies(arguments: argparse.Namespace) -> Inputs | None:
    """Return the cluster's policies for the given files; None unless the options name both files and a cluster."""
    has_files = bool(arguments.files or arguments.kustomize)
    cluster = cluster_of(arguments, POLICIES) if has_files else None
    return None if cluster is None else cluster.policies()


def read_objects(
    inputs: Inputs | str,
    stated: Iterable[PriorityClass | RuntimeClass] = (),
    selection: Selection | None = None,
    *,
    full_statuses: bool = False,
    version: tuple[int, int] | None = None,
    policies: Inputs | None = None,
) -> Objects:
    """Read all files, with progress on a terminal. The answer covers the workloads that ``selection`` selects.

    ``policies`` are those of a cluster. ``full_statuses``: pods that a cluster keeps have their full status.
    """
    kinds = configured_kinds(inputs.paths if isinstance(inputs, Inputs) else [inputs])
    request = LoadRequest(
        policies=() if policies is None else (policies,),
        namespace=namespace_of(selection),
        stated=stated,
        version=version,
        kinds=kinds,
        full_statuses=full_statuses,
    )
    return select(load_all((inputs,), request, over_cores(progress_line("reading file"))), selection)


def say_skipped(objects: Objects, errors: int, *, found: str, verb: str, without: str) -> None:
    """Print in one line what was left out, if anything was: ``1 pod explained; skipped 3 objects without pods``."""

    def counts(other: FoundObject) -> bool:
        return other.is_policy or other.other.kind == "Node" if "policies" in without else other.is_decisive

    # A cluster is asked for what is of use only.
    skipped = objects.skipped + sum(
        not (other.is_stored or other.source.cluster or counts(other)) for other in objects.others
    )
    left_out = [f"skipped {counted(skipped, 'object')} without {without}"] if skipped else []
    left_out += [counted(errors, "error")] if errors else []
    unjudged, is_none = count_not_judged(objects.unjudged), found.startswith("0 ")
    if left_out or unjudged or is_none:
        summary = f"{f'no {found[2:]}' if is_none else found} {verb}"
        print("; ".join(filter(None, (summary, unjudged, ", ".join(left_out)))), file=sys.stderr)
