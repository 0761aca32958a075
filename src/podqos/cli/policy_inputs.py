"""The objects that ``podqos policy`` tests, and the policies it applies."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from podqos.advice.checks.configuration import demands_of
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments
from podqos.cli.inputs import stored_policies
from podqos.cli.options import rendering_of, stated_classes
from podqos.cli.progress import progress_line
from podqos.cli.selecting import select, selection_of
from podqos.errors import InvalidOption
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.objects.selection import namespace_of
from podqos.policy.model import Policy
from podqos.reading.cluster_part import Part
from podqos.reading.configuration import configuration_for
from podqos.reading.configured import FILE_NAME, configured_kinds
from podqos.reading.gathering import existing_files, manifest_files
from podqos.reading.loading import load


def judged_objects(arguments: argparse.Namespace) -> Objects:
    """Return the objects of the files; if these are only policies, add the pods of the cluster."""
    object_arguments(arguments)
    given = [*(arguments.files or ()), *arguments.policies]
    if given.count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="use files for the rest")
    rendering = rendering_of(arguments)
    files = Inputs([])
    if arguments.files or arguments.kustomize or not arguments_name_cluster(arguments):
        files = manifest_files(arguments.files, "judge", rendering)
        files = files.only(file for file in files.files if not file.path.endswith(FILE_NAME))
    policies = (existing_files(arguments.policies),) if arguments.policies else ()
    if not arguments_name_cluster(arguments):
        return _load(arguments, files, policies)
    if files.files and load(files, kinds=configured_kinds(files.paths)).workloads:
        stored = stored_policies(arguments)
        return _load(arguments, files, (*policies, *(() if stored is None else (stored,))))
    kinds = tuple(kind for kind, _ in getattr(arguments, "objects", ()))
    declared = any(kind != "pod" for kind in kinds)
    cluster = cluster_of(arguments, Part(usage=False, workloads=declared, named_kinds=kinds))
    assert cluster is not None
    own = cluster.declared() if declared else cluster.running()
    both = Inputs([*own.files, *files.files], files.problems, own.assumptions)
    return _load(arguments, both, policies)


def _load(arguments: argparse.Namespace, inputs: Inputs, policies: tuple[Inputs, ...]) -> Objects:
    selection = selection_of(arguments)

    def loaded(files: Inputs) -> Objects:
        return load(
            files,
            policies=policies,
            namespace=namespace_of(selection),
            progress=progress_line("reading file"),
            stated=stated_classes(arguments),
            kinds=configured_kinds(files.paths),
        )

    objects = loaded(inputs)
    places = {found.source for found in objects.workloads}
    idle = {
        policy.found.source.path
        for policy in objects.own_policies
        if not any(objects.is_about(policy, path) for path in places)
    }
    if idle:
        # A directory of policies alone is meant for what is elsewhere.
        objects = loaded(inputs.only(replace(file, scope=None) if file.path in idle else file for file in inputs.files))
    return select(objects, selection)


def given_policies(arguments: argparse.Namespace, objects: Objects) -> tuple[Policy, ...] | None:
    """Return the configuration's policy if the files have none; None, with a note, if it is invalid."""
    if objects.own_policies or not arguments.files:
        return ()
    config = configuration_for(list(arguments.files), None)
    objects.note(*config.problems)
    return None if objects.errors else demands_of(config.configuration, FILE_NAME)
