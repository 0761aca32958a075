"""Both kill orders of a node's pods, with usage from a file."""

from __future__ import annotations

from typing import Unpack

from podqos.answers import rank as answers
from podqos.answers.node_state import NodeState
from podqos.answers.places import RankReport
from podqos.answers.rank import RankKeywords, RankRequest
from podqos.library.node_state import Usage, usage_rows
from podqos.objects.objects import Objects


def rank(objects: Objects | NodeState, usage: Usage | None = None, **options: Unpack[RankKeywords]) -> RankReport:
    """Rank the pods of a node twice, each place with the numbers that decide it.

    ``usage`` is a usage file or its rows; without it pods are assumed to use what they request. ``policy`` None is that
    of the Kubernetes version. ``hard``: whether a hard threshold was met. ``pods_memory_bytes`` limits all pods
    together, if the kubelet's configuration does not. ``remedies``: whether to try what saves the first pod of each
    order, which is the default here. ``node``, ``system_memory_bytes`` and ``refuse_impossible`` are
    as for ``node_state``.
    """
    options.setdefault("remedies", True)
    return answers.rank(objects, RankRequest(usage=usage_rows(usage), **options))
