"""What a change to manifests does to both kill orders: two versions on the same node, with the same memory usage.

The value is stable: fields are added, never renamed or removed; ``docs/schema/drift.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from podqos.admission.injectors import CustomInjector, Injector
from podqos.answers.drift_usage import both_versions
from podqos.answers.drift_versions import version_workloads
from podqos.answers.node_options import NodeKeywords, NodeOptions
from podqos.errors import InputError, InvalidArgument
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.node import Node
from podqos.model.snapshot import NodeUsage
from podqos.naming import naming
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, judged_cgroups, rules_of
from podqos.objects.objects import Objects
from podqos.survival.drift.differences import PodChange
from podqos.survival.drift.drift import (
    NOTHING_ALLOWED,
    Allowed,
    DriftStatus,
    Identity,
    Overtaking,
    ReversedPair,
    WorkloadChange,
)
from podqos.survival.drift.drift import drift as compare
from podqos.survival.drift.resizing import ResizeCost
from podqos.survival.node.usage_file import UsageRow
from podqos.words.drift import difference_words, overtaking_words, resize_words


class DriftRequest(NodeOptions, frozen=True, kw_only=True):
    """The node that both versions run on, and what is compared."""

    usage: Sequence[UsageRow] = ()
    """Pods without a row are taken to use what the older version requests."""
    usage_file: str | None = None
    """Where the rows are from."""
    names: tuple[str, str] = ("old", "new")
    """Of the versions."""
    injectors: Sequence[Injector | CustomInjector] = ()
    allowed: Allowed = NOTHING_ALLOWED
    """What does not count as worse."""


class DriftKeywords(NodeKeywords, total=False):
    """``DriftRequest`` as keyword arguments; usage, which may be a file, is an argument of its own."""

    names: tuple[str, str]
    injectors: Sequence[Injector | CustomInjector]
    allowed: Allowed


class Difference(PodChange, frozen=True):
    """One thing that changed in the pods of a workload, as the API server stores them."""

    text: str
    """The same in words."""


class ResizeVerdict(ResizeCost, frozen=True):
    """What it takes to give the running pods of a workload its new resources."""

    text: str = ""
    """The same in words."""


class WorkloadDrift(WorkloadChange, frozen=True):
    """What the change did to one workload."""

    differences: tuple[Difference, ...]
    moved_ahead: tuple[Overtaking, ...]
    """Where it goes first now."""
    moved_back: tuple[Overtaking, ...]
    """Where others go first now."""
    resize: ResizeVerdict | None = None
    """What it takes to give running pods the new resources; null where none changed."""


class DriftReport(Listing[WorkloadDrift], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos drift -o json``."""

    old: str
    new: str
    kubernetes_version: str
    node_memory_bytes: int
    usage: str | None
    """The file with what pods use; null where it is assumed."""
    injectors: tuple[str, ...]
    workloads: tuple[WorkloadDrift, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Drift"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[WorkloadDrift, ...]:
        return self.workloads

    @property
    def fails(self) -> bool:
        """Whether a workload is worse off."""
        return any(workload.fails for workload in self.workloads)

    @property
    def changed(self) -> tuple[WorkloadDrift, ...]:
        """The workloads that changed in any way, worst first."""
        shown = [workload for workload in self.workloads if workload.status is not DriftStatus.UNCHANGED]
        order = {status: place for place, status in enumerate(_WORST_FIRST)}
        return tuple(
            sorted(
                shown,
                key=lambda workload_drift: (
                    not workload_drift.fails,
                    workload_drift.is_shifted,
                    order[workload_drift.status],
                    workload_drift.workload,
                ),
            )
        )


_WORST_FIRST = (
    DriftStatus.BELOW_USAGE,
    DriftStatus.DOWNGRADED,
    DriftStatus.AHEAD,
    DriftStatus.MIXED,
    DriftStatus.ADDED,
    DriftStatus.REMOVED,
    DriftStatus.UPGRADED,
    DriftStatus.BACK,
    DriftStatus.CHANGED,
    DriftStatus.UNCHANGED,
)


def drift(old: Objects, new: Objects, request: DriftRequest) -> DriftReport:
    """Compare two versions of manifests, workload by workload."""
    rows, profile = request.usage, request.profile
    named = [row.pod for row in rows]
    before, after = (version_workloads(objects, request.injectors, named, profile) for objects in (old, new))
    if not before and not after:
        raise InputError("no workloads in either version", fix="name files or directories with manifests")
    _check_allowed(request.allowed, {*before, *after})
    memory_bytes, assumptions = node_memory(request.node_memory_bytes, new.of(Node) or old.of(Node))
    of_cluster = dict.fromkeys(assumed for objects in (old, new) for assumed in cluster_assumptions(objects))
    kubelet = request.kubelet or DEFAULT_KUBELET
    settings = judged_cgroups(kubelet, memory_bytes=memory_bytes, profile=profile)
    versions, of_usage = both_versions(rows, before, after, NodeUsage(memory_bytes))
    found = compare(*versions, Ranking(Signal.MEMORY, profile=profile), settings, request.allowed)
    return DriftReport(
        old=request.names[0],
        new=request.names[1],
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        usage=request.usage_file,
        injectors=tuple(injector.name for injector in request.injectors),
        workloads=tuple(map(_published, found)),
        assumptions=(
            *rules_of(kubelet, profile),
            *assumptions,
            *of_usage,
            *(() if kubelet.is_stated else (KUBELET_SETTINGS,)),
            *of_cluster,
        ),
    )


def _published(change: WorkloadChange) -> WorkloadDrift:
    differences = tuple(
        Difference(**asdict(difference), text=difference_words(difference)) for difference in change.differences
    )
    return WorkloadDrift(
        **{
            **asdict(change),
            "differences": differences,
            "moved_ahead": overtakings(change.moved_ahead, change.workload),
            "moved_back": overtakings(change.moved_back, change.workload),
            "resize": None if change.resize is None else resize_verdict(change.resize),
        }
    )


def overtakings(pairs: Iterable[ReversedPair], workload: str) -> tuple[Overtaking, ...]:
    """Return reversed pairs with their words, from the side of one of the two."""
    return tuple(Overtaking(**asdict(pair), text=overtaking_words(pair, workload)) for pair in pairs)


def resize_verdict(resize: ResizeCost) -> ResizeVerdict:
    """Return what a resize takes, with its words."""
    return ResizeVerdict(**asdict(resize), text=resize_words(resize))


def _check_allowed(allowed: Allowed, identities: Iterable[Identity]) -> None:
    known = {name for identity in identities for name in (identity.name, f"{identity.namespace}/{identity.name}")}
    for name in sorted(allowed.workloads - known):
        raise InvalidArgument(f"no such workload: {name}", where=naming("allow"), fix="name one from the manifests")
