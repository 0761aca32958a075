"""What advice would do to classes and kill orders: the workloads as they are against the workloads as advised.

One pod of each workload stands for all. Memory is what was measured (the 95th percentile), or what the workload
requests now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.matrix import Because, Description, PriorityTier
from podqos.advice.sizing.node_settings import NodeAdvice
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.assumed_usage import assumed_usage
from podqos.survival.drift import (
    Identity,
    Overtaking,
    Standing,
    Version,
    VersionWorkload,
    WorkloadChange,
    drift,
)


class WorkloadAdvice(Struct, frozen=True, rename="camel"):
    """What one workload should have."""

    workload: str
    source: str
    description: Description | None
    """Null without a description: then only sizes are advised."""
    like: str
    """The service of the matrix in the same case."""
    because: tuple[Because, ...]
    reasons: tuple[str, ...]
    """The same in words, which ``report`` adds."""
    wanted_class: QOSClass
    before: Standing | None
    after: Standing | None
    priority_class: str | None
    """Null where the priority stays."""
    containers: tuple[ContainerAdvice, ...]
    moved_ahead: tuple[Overtaking, ...]
    """Workloads it would now be killed or evicted before."""
    moved_back: tuple[Overtaking, ...]
    refusal: str
    """Why the API server would not store the advised pod; empty where it would."""


class AdviceReport(Listing[WorkloadAdvice], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos advise -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    workloads: tuple[WorkloadAdvice, ...] = ()
    priority_classes: tuple[PriorityTier, ...] = ()
    node: NodeAdvice | None = None
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Advice"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[WorkloadAdvice, ...]:
        return self.workloads


class Advised(Struct, frozen=True):
    """A workload before and after; pods as the API server stores them."""

    identity: Identity
    before: Pod | None
    """None for a workload that does not exist yet."""
    after: Pod
    memory_bytes: Mapping[str, int] = {}
    """What its containers were measured to use."""


def effect(
    workloads: Sequence[Advised], settings: CgroupSettings, profile: Profile = LATEST
) -> dict[Identity, WorkloadChange]:
    """Compare both states of all workloads on one node."""
    node_memory_bytes = settings.node_memory_bytes
    old = _version(workloads, node_memory_bytes, is_after=False)
    new = _version(workloads, node_memory_bytes, is_after=True)
    return {each.identity: each for each in drift(old, new, Ranking(Signal.MEMORY, profile=profile), settings)}


def _version(workloads: Sequence[Advised], node_memory_bytes: int, *, is_after: bool) -> Version:
    entries = []
    usages = []
    for each in workloads:
        stored = each.after if is_after else each.before
        if stored is None:
            continue
        pod = replace(stored, metadata=replace(stored.metadata, uid=str(each.identity)))
        entries.append(VersionWorkload(each.identity, pod, (pod.metadata.uid,)))
        usages.append(assumed_usage(pod, each.before, each.memory_bytes))
    return Version(tuple(entries), Snapshot(NodeUsage(node_memory_bytes), tuple(usages)))
