"""The race between kernel and kubelet while a container grows, with usage from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from podqos.answers import forecast as answers
from podqos.answers.forecast import ForecastReport, GrowthKeywords, GrowthRequest
from podqos.answers.node_state import NodeState
from podqos.library.node_state import Usage, usage_rows
from podqos.objects.objects import Objects


def forecast(
    objects: Objects | NodeState,
    usage: Usage | None = None,
    *,
    growing: str | Mapping[str, int | None],
    **options: Unpack[GrowthKeywords],
) -> ForecastReport:
    """Forecast what becomes of a container that grows at these ``rates``, in bytes per second.

    ``growing`` is a pod, or ``pod:container``; ``system`` is what runs besides pods; or several of them, each with a
    rate of its own or None. ``wanted`` is how often the
    kubelet is to act first, for which the settings are computed. The kubelet's checks use statistics of
    ``statistics_age_us``; ``reaction_us`` passes from its decision until memory is freed; ``fast_path`` checks as soon
    as a hard threshold is met, as ``podqos node`` does. ``node``, ``system_memory_bytes`` and ``refuse_impossible`` are
    as for ``node_state``.
    """
    return answers.forecast(objects, GrowthRequest(growing=growing, usage=usage_rows(usage), **options))
