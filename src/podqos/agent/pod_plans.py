"""What a pod gets on a node, computed once per spec: replicas only differ in their names.

A cache without decisions: the answers come from ``qos`` and ``placement``. Worlds with many pods or many identical
nodes share one (``AgentConfig.plans``); without it, everything is computed every time.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.agent.reasons import Promised
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import ResourceList
from podqos.placement.demand import counted
from podqos.qos.cgroup import Cgroup, CgroupContent, cgroup_contents, tier_cgroups
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests, tier_requests
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import OOMScore, oom_scores

_MOST_KEPT = 10_000


class PodPlan(Struct, frozen=True):
    """What all pods with a spec get."""

    pod: Pod
    """One of them: while it is referenced, no other spec can have its id in memory."""
    qos_class: QOSClass
    requests: Mapping[str, int]
    """Millicores for CPU, whole units for everything else."""
    tier: TierRequests
    """What it adds to the cgroup of its class."""
    contents: tuple[CgroupContent, ...]
    scores: tuple[OOMScore, ...]
    promised: Promised


class PodPlans:
    """The plans for one kind of node."""

    def __init__(self, cgroups: CgroupSettings, profile: Profile, allocatable: ResourceList) -> None:
        self._cgroups = cgroups
        self._profile = profile
        self.allocatable: Mapping[str, int] = counted(allocatable)
        """What pods may request in total, in the units of ``PodPlan.requests``."""
        self._pods: dict[tuple[int, int, int], PodPlan] = {}
        self._tiers: dict[TierRequests, tuple[Cgroup, ...]] = {}
        self._changed: dict[tuple[TierRequests, TierRequests], tuple[Cgroup, ...]] = {}

    def of(self, pod: Pod) -> PodPlan:
        """Return what a pod gets."""
        # Everything about a pod that matters here; labels and names do not.
        key = id(pod.spec), id(pod.metadata.annotations), id(pod.status)
        plan = self._pods.get(key)
        if plan is None:
            if len(self._pods) >= _MOST_KEPT:
                self._pods.clear()
            plan = self._pods[key] = self._plan(pod)
        return plan

    def changed_tiers(self, before: TierRequests, after: TierRequests) -> tuple[Cgroup, ...]:
        """Return the class cgroups that change with the total of requests."""
        known = self._changed.get((before, after))
        if known is None:
            if len(self._changed) >= _MOST_KEPT:
                self._changed.clear()
            old, new = self._tiers_of(before), self._tiers_of(after)
            known = self._changed[before, after] = tuple(cgroup for cgroup in new if cgroup not in old)
        return known

    def _tiers_of(self, requests: TierRequests) -> tuple[Cgroup, ...]:
        known = self._tiers.get(requests)
        if known is None:
            if len(self._tiers) >= _MOST_KEPT:
                self._tiers.clear()
            known = self._tiers[requests] = tier_cgroups(requests, self._cgroups, self._profile)
        return known

    def _plan(self, pod: Pod) -> PodPlan:
        cgroups, profile = self._cgroups, self._profile
        qos_class = qos_class_of(pod, profile)
        scores = oom_scores(pod, qos_class, cgroups.node_memory_bytes, profile)
        return PodPlan(
            pod,
            qos_class,
            counted(pod_requests(pod, pod_level=profile.pod_level_resources)),
            tier_requests((pod,), profile),
            cgroup_contents(pod, qos_class, cgroups, profile),
            scores,
            Promised(qos_class, {score.container: score.value for score in scores}),
        )
