"""The race between kernel and kubelet while a container grows: which acts first, how likely, and which pod dies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction

from podqos.agent.memory import memory_notification
from podqos.answers.node_state import NodeState, check_fits
from podqos.answers.watched_memory import watched_memory
from podqos.errors import InvalidOption
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy
from podqos.library.node_state import node_state
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import PodUsage
from podqos.model.time_units import SECOND_US
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.objects.objects import Objects
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.forecast import SYSTEM, CurvePoint, ForecastReport
from podqos.survival.forecast import forecast as forecast_growth
from podqos.survival.growing import OF_SYSTEM, GrowingNode, Growth, Watch
from podqos.survival.usage_file import UsageRow
from podqos.words.forecast import worded

DEFAULT_RATES = (16 << 20, 128 << 20, 1 << 30)
"""Bytes per second."""
_SHOWN_PODS = 3
_CURVE_RATES = tuple(1 << exponent for exponent in range(20, 34))


def forecast(
    objects: Objects | NodeState,
    usage: str | os.PathLike[str] | Iterable[UsageRow] | None = None,
    *,
    growing: str,
    rates: Sequence[int] = DEFAULT_RATES,
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    wanted: Fraction = Fraction(99, 100),
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US,
    statistics_age_us: int = 0,
    reaction_us: int = 0,
    fast_path: bool = False,
    policy: Policy | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> ForecastReport:
    """Forecast what becomes of a container that grows at these rates, in bytes per second.

    ``growing`` is a pod, or ``pod:container``; ``system`` is what runs besides pods. ``wanted`` is how often the
    kubelet is to act first, for which the settings are computed. The kubelet's checks use statistics of
    ``statistics_age_us``; ``reaction_us`` passes from its decision until memory is freed; ``fast_path`` checks as soon
    as a hard threshold is met, as ``podqos node`` does.
    """
    state = node_state(objects, usage, node_memory_bytes=node_memory_bytes, profile=profile)
    kubelet = kubelet or state.kubelet or DEFAULT_KUBELET
    check_fits(state, profile)
    snapshot = state.snapshot
    watched = watched_memory(state, profile, kubelet=kubelet, cgroup_version=cgroup_version)
    watch = Watch(
        watched.exhaustion,
        watched.limit_bytes,
        # As for ``place``: what the Node states counts where the kubelet's settings are not given.
        requestable_bytes=None if kubelet.is_stated else state.allocatable_bytes,
        interval_us=interval_us,
        statistics_age_us=statistics_age_us,
        reaction_us=reaction_us,
        notification=memory_notification(kubelet.config, cgroup_version, fast_path=fast_path),
        policy=policy,
    )
    chosen = [entry for entry in snapshot.pods if entry.pod.key not in state.neighbours]
    node = GrowingNode(snapshot, watched.settings, _growing(growing, chosen), watch, profile)

    return ForecastReport(
        kubernetes_version=profile.version_text,
        node_memory_bytes=snapshot.node.memory_bytes,
        interval_seconds=interval_us / SECOND_US,
        growths=tuple(worded(forecast_growth(node, rate, wanted=wanted)) for rate in rates),
        curve=tuple(CurvePoint(rate, node.kubelet_first(rate)) for rate in _CURVE_RATES),
        assumptions=state.resting_on(kubelet, profile),
    )


def _growing(text: str, pods: Sequence[PodUsage]) -> Growth:
    """Return the pod and the container that are meant, or the daemons, unless a pod is called that."""
    names = sorted(entry.pod.key for entry in pods)
    more = f" and {len(names) - _SHOWN_PODS} more" if len(names) > _SHOWN_PODS else ""
    some = f"one of {', '.join(names[:_SHOWN_PODS])}{more}"
    name, _, container = text.partition(":")
    if not name:
        fix = f"{some}, or {SYSTEM} for what runs besides pods"
        raise InvalidOption("no growing pod given", where="--growing", fix=fix)
    found = [entry for entry in pods if name in {entry.pod.key, entry.pod.metadata.name}]
    if not found:
        # The name of a workload will do where it has one pod.
        found = [entry for entry in pods if f"/{entry.pod.key}-".find(f"/{name}-") >= 0]
    if not found and text == SYSTEM:
        return OF_SYSTEM
    if len(found) != 1:
        close = get_close_matches(name, [*names, *(key.partition("/")[2] for key in names)], 1)
        what = f"{name} matches several pods" if found else f"there is no pod {name}"
        raise InvalidOption(what, where="--growing", fix=f"did you mean {close[0]}?" if close and not found else some)
    containers = [usage.name for usage in found[0].containers]
    if not container and len(containers) == 1:
        container = containers[0]
    if container not in containers:
        what = f"{name} has no container {container}" if container else f"{name} has several containers"
        raise InvalidOption(what, where="--growing", fix=f"add one of them: {name}:{containers[0]}")
    return Growth(found[0].pod.metadata.uid, container)
