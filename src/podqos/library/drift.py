"""What a change to manifests does to both kill orders: two versions on the same node, with the same memory usage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from podqos.admission.injectors import CustomInjector, Injector
from podqos.errors import InputError, InvalidOption
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.library.node_state import usage_rows
from podqos.model.node import Node
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import NodeUsage
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, judged_cgroups, rules_of
from podqos.objects.objects import Objects
from podqos.reading.drift_usage import both_versions
from podqos.reading.versions import version_workloads
from podqos.survival.drift import NOTHING_ALLOWED, Allowed, DriftReport, Identity
from podqos.survival.drift import drift as compare
from podqos.survival.usage_file import UsageRow
from podqos.words.drift import worded


def drift(
    old: Objects,
    new: Objects,
    usage: str | os.PathLike[str] | Iterable[UsageRow] | None = None,
    *,
    names: tuple[str, str] = ("old", "new"),
    injectors: Sequence[Injector | CustomInjector] = (),
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    allowed: Allowed = NOTHING_ALLOWED,
    profile: Profile = LATEST,
) -> DriftReport:
    """Compare two versions of manifests, workload by workload.

    ``usage`` is a usage file or its rows; without measurements, pods of both versions are assumed to use what the
    older one requests. ``names`` are those of the versions. ``allowed`` says what does not count as worse.
    """
    rows = () if usage is None else usage_rows(usage)
    named = [row.pod for row in rows]
    before, after = (version_workloads(each, injectors, named, profile) for each in (old, new))
    if not before and not after:
        raise InputError("no workloads in either version", fix="name files or directories with manifests")
    _check_allowed(allowed, {*before, *after})
    memory_bytes, assumptions = node_memory(node_memory_bytes, new.of(Node) or old.of(Node))
    of_cluster = dict.fromkeys(assumed for each in (old, new) for assumed in cluster_assumptions(each))
    kubelet = kubelet or DEFAULT_KUBELET
    settings = judged_cgroups(kubelet, memory_bytes=memory_bytes, profile=profile)
    versions, of_usage = both_versions(rows, before, after, NodeUsage(memory_bytes))
    found = compare(*versions, Ranking(Signal.MEMORY, profile=profile), settings, allowed)
    return DriftReport(
        old=names[0],
        new=names[1],
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        usage=os.fspath(usage) if isinstance(usage, (str, os.PathLike)) else None,
        injectors=tuple(injector.name for injector in injectors),
        workloads=tuple(map(worded, found)),
        assumptions=(
            *rules_of(kubelet, profile),
            *assumptions,
            *of_usage,
            *(() if kubelet.is_stated else (KUBELET_SETTINGS,)),
            *of_cluster,
        ),
    )


def _check_allowed(allowed: Allowed, identities: Iterable[Identity]) -> None:
    known = {name for each in identities for name in (each.name, f"{each.namespace}/{each.name}")}
    for name in sorted(allowed.workloads - known):
        raise InvalidOption(f"there is no workload {name}", where="--allow", fix="name one of the manifests")
