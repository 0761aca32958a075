"""Container usage from every source the options name: tables, Prometheus, the cluster itself."""

from __future__ import annotations

import argparse

from podqos.advice.sizing.samples import COLUMNS, ContainerSamples, read_samples
from podqos.answers.advise import identity_of
from podqos.answers.known_usage import measured_samples, recommended_samples
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments
from podqos.cli.prometheus import queried
from podqos.cli.usage_files import table_bytes
from podqos.model.assumption import Assumption
from podqos.objects.objects import Objects
from podqos.reading.cluster_part import Part

ONE_MOMENT = Assumption("usage over time", "as measured at one moment", "--prometheus, or --usage")


def usage_of(
    arguments: argparse.Namespace, objects: Objects
) -> tuple[tuple[ContainerSamples, ...], tuple[Assumption, ...]]:
    """Return the samples of all sources, and what is assumed about them."""
    samples: list[ContainerSamples] = []
    assumptions: list[Assumption] = []
    if arguments.usage is not None:
        samples += read_samples(arguments.usage, table_bytes(arguments.usage, COLUMNS))
    if arguments.cpu_usage is not None:
        samples += read_samples(arguments.cpu_usage, table_bytes(arguments.cpu_usage, COLUMNS), unnamed="cpu")
    found = queried(arguments, _namespaces(objects), with_kills=True)
    if found is not None:
        samples += found.samples()
        assumptions += found.assumptions
    cluster = cluster_of(arguments) if arguments_name_cluster(arguments) else None
    if cluster is not None and not _names_samples(arguments):
        samples += measured_samples(cluster)
        assumptions += [ONE_MOMENT] if samples else []
    recommended, assumed = recommended_samples(objects, samples)
    return (*samples, *recommended), (*assumptions, *assumed)


def _names_samples(arguments: argparse.Namespace) -> bool:
    return any(value is not None for value in (arguments.usage, arguments.cpu_usage, arguments.prometheus))


def read_metrics(arguments: argparse.Namespace) -> None:
    """Read a live cluster with usage from metrics.k8s.io, unless other samples are given."""
    object_arguments(arguments)
    if not arguments.files and not arguments.kustomize and not _names_samples(arguments):
        cluster_of(arguments, Part(usage=False, metrics=True))


def _namespaces(objects: Objects) -> tuple[str, ...]:
    """Return the namespaces of the workloads: Prometheus is queried for these only."""
    names = {identity_of(workload).namespace for workload in objects.latest(warn=False) if objects.takes(workload)}
    return () if "" in names else tuple(sorted(names))
