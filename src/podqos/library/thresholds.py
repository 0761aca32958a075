"""What a kubelet leaves to pods, and when it evicts them."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.answers.thresholds import ThresholdsReport, thresholds_report
from podqos.errors import InvalidConfiguration, InvalidOption
from podqos.eviction.signals import Layout, Signal, containerfs_follows
from podqos.model.assumption import Assumption
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.objects.assumptions import node_memory
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet, rules_of
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.survival.exhaustion import exhaustion
from podqos.survival.plain_node import PlainNode, kubelet_sure_growth, with_sure_growth


def thresholds(
    kubelet: Kubelet | None = None,
    *,
    node_memory_bytes: int | None = None,
    cpu: Quantity | None = None,
    capacities: Mapping[Signal, int] | None = None,
    layout: Layout = Layout.SINGLE,
    profile: Profile = LATEST,
    swap_bytes: int | None = None,
    assumed: tuple[Assumption, ...] = (),
    system_memory_bytes: int = 0,
) -> ThresholdsReport:
    """Explain a kubelet's reservations and thresholds on a node: amounts, the order in which they act, warnings.

    ``capacities`` are those of other signals, such as ``Signal.NODEFS``; shares of an unknown capacity stay shares.
    ``swap_bytes`` is the node's swap, where that is known: without any, no pod can swap. ``assumed`` is what these rest
    on already. ``system_memory_bytes`` is used outside all pods: how fast memory may grow for the kubelet to act before
    the kernel is what ``forecast`` says of such a node, for a pod without a limit.
    """
    kubelet = kubelet or DEFAULT_KUBELET
    memory_bytes, assumptions = node_memory(node_memory_bytes, ())
    if system_memory_bytes >= memory_bytes:
        raise InvalidOption("it is not less than the node's memory", where="--system-memory", fix="for example 1Gi")
    known = {Signal.MEMORY: memory_bytes, **(capacities or {})}
    if layout in {Layout.SINGLE, Layout.CONTAINERS_APART}:
        _follow(known, Signal.IMAGEFS, Signal.NODEFS)
        _follow(known, Signal.IMAGEFS_INODES, Signal.NODEFS_INODES)
    for signal, source in zip(
        (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES), containerfs_follows(layout) or (), strict=False
    ):
        _follow(known, signal, source)
    try:
        allocatable = memory_allocatable(kubelet.config, known, cpu)
        found = exhaustion(
            kubelet.config, known, layout=layout, allocatable=allocatable, profile=profile, swap_bytes=swap_bytes
        )
        node = PlainNode(memory_bytes, kubelet.config, system_memory_bytes, profile=profile)
        found, sure_growth = with_sure_growth(found, node), kubelet_sure_growth(node)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(error.what, where=error.where or kubelet.path or "", fix=error.fix) from error
    rests_on = (*rules_of(kubelet, profile), *assumptions, *assumed)
    return thresholds_report(found, profile, rests_on, sure_growth)


def _follow(capacities: dict[Signal, int], signal: Signal, source: Signal) -> None:
    """Take a filesystem that is not apart to be as large as the one it is on."""
    if source in capacities:
        capacities.setdefault(signal, capacities[source])
