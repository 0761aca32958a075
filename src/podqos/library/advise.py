"""Advice about workloads and what they should have as objects, from files or from what was read already."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

from podqos.advice.sizing.description import DescribedWorkload, read_descriptions
from podqos.advice.sizing.samples import ContainerSamples, read_samples
from podqos.answers import advise as answer
from podqos.answers.advice import AdviceReport
from podqos.manifest.plain import Plain
from podqos.objects.objects import Objects
from podqos.reading.files import read_bytes

T = TypeVar("T")

SamplesOf = str | os.PathLike[str] | Sequence[ContainerSamples]
"""What containers used: a file, or what was read from one."""
DescriptionsOf = str | os.PathLike[str] | Sequence[DescribedWorkload]
"""The same for descriptions of workloads."""


def advise(
    objects: Objects,
    *,
    samples: SamplesOf = (),
    descriptions: DescriptionsOf = (),
    **options: Unpack[answer.AdviceKeywords],
) -> AdviceReport:
    """Advise class, priority and sizes of every workload that something is known about.

    A workload is described by its annotations or by ``descriptions``; one that is described but not among the objects
    is new. ``samples`` are what containers used. Options are
    ``goal``, ``node_count`` nodes of ``node_capacity``, ``node_memory_bytes``, ``kubelet`` and ``profile``.
    """
    request = answer.AdviceRequest(
        samples=_read(samples, read_samples),
        descriptions=_read(descriptions, read_descriptions),
        **options,
    )
    return answer.advise(objects, request)


def advised_manifests(
    objects: Objects, report: AdviceReport, *, patches: bool = False, descriptions: DescriptionsOf = ()
) -> list[dict[str, Plain]]:
    """Return the objects that advice asks for: priority classes, then every workload as advised.

    With ``patches`` only what changes, as strategic merge patches; a new workload is whole all the same.
    """
    return answer.advised_manifests(objects, report, _read(descriptions, read_descriptions), patches=patches)


def _read(given: str | os.PathLike[str] | Sequence[T], reader: Callable[[str, bytes], Sequence[T]]) -> Sequence[T]:
    """Return what a file holds, or what was read from one already."""
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        return reader(path, read_bytes(path))
    return given
