"""Reading the file of a kubelet's settings."""

from __future__ import annotations

import os

from podqos.eviction.thresholds import read_kubelet
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.kubelet_notes import ignored_problems
from podqos.reading.files import read_bytes


def load_kubelet(path: str | os.PathLike[str], version: tuple[int, int] | None = None) -> Kubelet:
    """Return the kubelet that a file describes: a KubeletConfiguration, its /configz, or one of OpenShift's files.

    ``version`` is that of its Kubernetes, where it is known: some settings have no effect in some versions. Raises
    InputError where the file cannot be read, or the kubelet would not start with it.
    """
    name = os.fspath(path)
    settings = read_kubelet(name, read_bytes(name))
    problems = tuple(ignored_problems(settings, name, version=version))
    return Kubelet(settings.configuration, name, problems, settings.notation)
