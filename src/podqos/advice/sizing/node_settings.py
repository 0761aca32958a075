"""A kubelet's settings for a node: reservations, eviction thresholds and grace.

Reservations: what is measured outside all pods, with a margin; otherwise by capacity, in the steps that managed
clusters use (less per unit the larger the machine). Hard threshold: so much that the kubelet acts before the kernel
with the wanted probability while memory grows at the wanted rate, as the forecast has it for a node whose system uses
all that is reserved (``survival.plain_node``). Soft threshold: so much that it acts before the hard one, with its grace
period, at a tenth of that rate: a leak instead of a burst. The soft thresholds are added to ``systemReserved``, as OKD
advises, so that pods within their allocatable never meet them.

Sources: the steps: Google Kubernetes Engine, "Plan node sizes" (memory and CPU reservations); nodefs and imagefs:
Kubernetes v1.36 pkg/kubelet/apis/config/v1beta1/defaults_linux.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import API_VERSION, KIND, kubelet_configuration
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.orders.exhaustion import SOFT
from podqos.orders.growing import GrowingNode, GrowthLevel
from podqos.orders.plain_node import PlainNode, least_hard_bytes

Setting = str | int | list[str] | dict[str, str]

MIB, GIB = 1 << 20, 1 << 30

# So much of the first 4Gi, of the next 4Gi, …, in thousandths.
_MEMORY_STEPS = ((4 * GIB, 250), (4 * GIB, 200), (8 * GIB, 100), (112 * GIB, 60), (None, 20))
# So much of the first core, of the second, …, in ten thousandths of a core.
_CPU_STEPS = ((1000, 600), (1000, 100), (2000, 50), (None, 25))
# On top of what was measured outside pods, and where nothing was.
_MEASURED_MARGIN = Fraction(6, 5)
_SYSTEM_MEMORY_BYTES = 256 * MIB
_SYSTEM_CPU_MILLI = 100
_FILLS_IN_SECONDS = 600
# A leak, against a burst.
_SOFT_GROWTH = Fraction(1, 10)
_HARD_NODEFS_PERCENT, _SOFT_NODEFS_PERCENT = 10, 15
_SOFT_NODEFS_GRACE_SECONDS = 120


class NodeNeeds(Struct, frozen=True, rename="camel"):
    """A node, and the growth its thresholds have to withstand."""

    memory_bytes: int
    cpu_milli: int
    nodefs_bytes: int | None = None
    """Size of the filesystem of the kubelet's files; without it, disk has only the kubelet's own defaults."""
    system_memory_bytes: int | None = None
    """Measured outside all pods, kubelet and runtime included."""
    system_cpu_milli: int | None = None
    growth_bytes_per_second: int | None = None
    """How fast memory may grow before the kubelet loses the race; None: so fast that the node fills in ten minutes."""
    probability: Fraction = Fraction(1)
    """With which it must win at that rate, over the phase of its loop."""
    soft_grace_seconds: int = 90
    pod_grace_seconds: int = 30
    """What a pod may take to stop at a soft eviction, whatever it asks for."""

    @property
    def growth(self) -> int:
        """The growth to withstand, in bytes per second."""
        return self.growth_bytes_per_second or max(1, self.memory_bytes // _FILLS_IN_SECONDS)


class Reservations(Struct, frozen=True):
    """What is held back for the kubelet and the system."""

    kube_memory_bytes: int
    kube_cpu_milli: int
    system_memory_bytes: int
    """With the soft threshold in it."""
    system_cpu_milli: int


class NodeThresholds(Struct, frozen=True, rename="camel"):
    """The eviction thresholds that a node needs, and what they withstand."""

    memory_bytes: int
    cpu_milli: int
    growth_bytes_per_second: int
    """What the hard threshold withstands."""
    hard_wins: Fraction
    """The probability that it acts before the kernel, at that rate."""
    kernel_keeps_bytes: int
    """The mark at which the kernel kills."""
    hard_bytes: int
    soft_bytes: int
    soft_growth_bytes_per_second: int


class NodeSettings(NodeThresholds, frozen=True, rename="camel"):
    """The same, with all settings of the node's kubelet."""

    configuration: dict[str, Setting]
    """The KubeletConfiguration."""


def advise_node(needs: NodeNeeds) -> NodeSettings:
    """Work out the settings of a node."""
    kept_bytes = machine(needs.memory_bytes).watermarks.min_bytes
    # Any thresholds do: others are tried in their place.
    node = _node(needs, _configuration(needs, reservations(needs, 0), MIB, MIB))
    # At least one look's worth above the mark, so that a threshold is never below where the kernel acts.
    least_bytes = _whole_mib(kept_bytes + MIB)
    hard_bytes = max(least_bytes, least_hard_bytes(node, needs.growth, needs.probability) or needs.memory_bytes)
    soft_growth = max(1, int(needs.growth * _SOFT_GROWTH))
    soft_bytes = max(_soft_bytes(node, needs, hard_bytes, soft_growth), _whole_mib(hard_bytes * 5 // 4))
    configuration = _configuration(needs, reservations(needs, soft_bytes), hard_bytes, soft_bytes)
    return NodeSettings(
        memory_bytes=needs.memory_bytes,
        cpu_milli=needs.cpu_milli,
        growth_bytes_per_second=needs.growth,
        hard_wins=_tried(needs, configuration, node.hard_levels(hard_bytes)),
        kernel_keeps_bytes=kept_bytes,
        hard_bytes=hard_bytes,
        soft_bytes=soft_bytes,
        soft_growth_bytes_per_second=soft_growth,
        configuration=configuration,
    )


def reservations(needs: NodeNeeds, soft_bytes: int) -> Reservations:
    """Return what a node with this soft threshold holds back."""
    kube_memory = _whole_mib(_steps(needs.memory_bytes, _MEMORY_STEPS, 1000))
    kube_cpu = _steps(needs.cpu_milli, _CPU_STEPS, 10_000)
    system_memory, system_cpu = _SYSTEM_MEMORY_BYTES, _SYSTEM_CPU_MILLI
    if needs.system_memory_bytes is not None:
        # What was measured holds the kubelet too: what its share does not cover is the system's.
        system_memory = max(0, _whole_mib(int(needs.system_memory_bytes * _MEASURED_MARGIN)) - kube_memory)
    if needs.system_cpu_milli is not None:
        system_cpu = max(_SYSTEM_CPU_MILLI, int(needs.system_cpu_milli * _MEASURED_MARGIN) - kube_cpu)
    return Reservations(kube_memory, kube_cpu, system_memory + soft_bytes, system_cpu)


def _configuration(needs: NodeNeeds, reserved: Reservations, hard_bytes: int, soft_bytes: int) -> dict[str, Setting]:
    """Return the settings as a KubeletConfiguration.

    Naming one hard threshold drops the kubelet's defaults of the others, so all of them are written.
    """
    system = {"cpu": _milli(reserved.system_cpu_milli), "memory": _bytes(reserved.system_memory_bytes)}
    soft = {"memory.available": _bytes(soft_bytes)}
    grace = {"memory.available": _duration(needs.soft_grace_seconds)}
    if needs.nodefs_bytes is not None:
        # The kubelet works shares out in floating point, and may end a little above.
        soft_nodefs_bytes = -(-needs.nodefs_bytes * _SOFT_NODEFS_PERCENT // 100)
        system["ephemeral-storage"] = _bytes(_whole_mib(soft_nodefs_bytes) + MIB)
        soft["nodefs.available"] = f"{_SOFT_NODEFS_PERCENT}%"
        grace["nodefs.available"] = _duration(_SOFT_NODEFS_GRACE_SECONDS)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "kubeReserved": {"cpu": _milli(reserved.kube_cpu_milli), "memory": _bytes(reserved.kube_memory_bytes)},
        "systemReserved": system,
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {
            "memory.available": _bytes(hard_bytes),
            "nodefs.available": f"{_HARD_NODEFS_PERCENT}%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
            "imagefs.inodesFree": "5%",
        },
        "evictionSoft": soft,
        "evictionSoftGracePeriod": grace,
        "evictionMaxPodGracePeriod": needs.pod_grace_seconds,
        "evictionPressureTransitionPeriod": "5m0s",
    }


def _node(needs: NodeNeeds, configuration: dict[str, Setting]) -> GrowingNode:
    """Return the node with these settings, while its system uses what they reserve, as the forecast knows it."""
    node = PlainNode(needs.memory_bytes, kubelet_configuration(configuration, "")).with_reserved_in_use()
    # Advice that reserves more than that is refused (see ``questions.advise``), and pods need something to grow into.
    return replace(node, system_bytes=min(node.system_bytes, needs.memory_bytes // 2)).growing()


def _soft_bytes(node: GrowingNode, needs: NodeNeeds, hard_bytes: int, growth: int) -> int:
    """Return the least soft threshold, in whole MiB, that acts before the hard one at this growth, at every phase."""
    hard = node.hard_levels(hard_bytes)

    def acts_first(mebibytes: int) -> bool:
        soft = GrowthLevel(Signal.MEMORY, mebibytes * MIB, SOFT, needs.soft_grace_seconds * SECOND_US)
        return node.first_by(growth, (*hard, soft)).get(soft) == 1

    return bisect_left(range(needs.memory_bytes // MIB), True, key=acts_first) * MIB


def _tried(needs: NodeNeeds, configuration: dict[str, Setting], hard: Sequence[GrowthLevel]) -> Fraction:
    """Return how likely the hard thresholds of these settings are first at the growth that was asked for."""
    return _node(needs, configuration).kubelet_first(needs.growth, hard)


def _steps(amount: int, steps: Sequence[tuple[int | None, int]], of: int) -> int:
    """Return the shares of an amount, step by step, rounded up."""
    total = Fraction(0)
    for width, share in steps:
        part = amount if width is None else min(amount, width)
        total += Fraction(part * share, of)
        amount -= part
    return -(-total // 1)


def _whole_mib(amount_bytes: int) -> int:
    return -(-amount_bytes // MIB) * MIB


def _bytes(amount_bytes: int) -> str:
    return str(Quantity.of_units(amount_bytes, "BinarySI"))


def _milli(amount_milli: int) -> str:
    return str(Quantity.of_milli(amount_milli))


def _duration(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
