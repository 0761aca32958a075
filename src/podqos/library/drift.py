"""What a change to manifests does to both kill orders, with usage from a file."""

from __future__ import annotations

import os
from typing import Unpack

from podqos.answers import drift as answers
from podqos.answers.drift import DriftKeywords, DriftReport, DriftRequest
from podqos.library.node_state import Usage, usage_rows
from podqos.objects.objects import Objects


def drift(old: Objects, new: Objects, usage: Usage | None = None, **options: Unpack[DriftKeywords]) -> DriftReport:
    """Compare two versions of manifests, workload by workload.

    ``usage`` is a usage file or its rows; without measurements, pods of both versions are assumed to use what the
    older one requests. ``names`` are those of the versions. ``allowed`` says what does not count as worse.
    """
    file = os.fspath(usage) if isinstance(usage, (str, os.PathLike)) else None
    return answers.drift(old, new, DriftRequest(usage=usage_rows(usage) or (), usage_file=file, **options))
