"""Work out the effect of findings on the kill orders.

The workloads of a directory, or of all files that were named, are put on one node, and beside them, as further pods,
each as it would be but for a finding. One ranking of all of them by the kubelet and one by the kernel then answer for
every finding: both orders compare pods pairwise, so further pods do not change the order of the rest. Usage is not
measured here: ``AssumedUsage`` says what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podqos.advice.checks.finding import CheckedObject, Effect, Finding
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, Variant
from podqos.errors import InvalidConfiguration
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import RankKey, Signal
from podqos.kernel.memory import machine
from podqos.model.pod import CLASS_RANK, Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats, PodReference, PodStats
from podqos.orders.memory import OOMDomain
from podqos.orders.orders import Orders, both_orders
from podqos.orders.usage import NOMINAL_BYTES
from podqos.placement.allocatable import node_allocatable
from podqos.qos.cgroup_settings import CgroupSettings

_TIES = (RankKey.NAME, RankKey.INPUT_ORDER)


def compare(
    findings: Sequence[Finding], variants: Sequence[Variant], sketches: Sequence[Sketch], context: CheckContext
) -> list[Finding]:
    """Return the findings with their consequences for other workloads."""
    units: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        units.setdefault(context.units.get(finding.subject.source, ""), []).append(index)
    by_unit: dict[str, list[Sketch]] = {}
    for sketch in sketches:
        by_unit.setdefault(context.units.get(sketch.subject.source, ""), []).append(sketch)
    # A kubelet's configuration has no pods beside it; where there are pods of one directory only, it is theirs.
    alone = next(iter(by_unit.values())) if len(by_unit) == 1 else []
    compared = list(findings)
    for unit, indexes in units.items():
        numbers = {index: number for number, index in enumerate(indexes)}
        within = [
            replace(variant, finding=numbers[variant.finding]) for variant in variants if variant.finding in numbers
        ]
        for index, finding in zip(
            indexes,
            _compare([findings[index] for index in indexes], within, by_unit.get(unit, alone), context),
            strict=True,
        ):
            compared[index] = finding
    return compared


def _compare(
    findings: Sequence[Finding], variants: Sequence[Variant], sketches: Sequence[Sketch], context: CheckContext
) -> list[Finding]:
    """Compare workloads that belong together."""
    pods = {f"now-{index}": sketch.pod for index, sketch in enumerate(sketches) if sketch.pod is not None}
    if not pods:
        return list(findings)
    pods |= {_instead(variant.finding): variant.now for variant in variants if variant.now is not None}
    pods |= {_repaired(variant.finding): variant.repaired for variant in variants if variant.repaired is not None}
    places = _Places(_orders(pods, context))
    own = {sketch.subject: f"now-{index}" for index, sketch in enumerate(sketches) if sketch.pod is not None}
    peers = [(f"now-{index}", sketch) for index, sketch in enumerate(sketches) if sketch.pod is not None]
    peers.sort(key=lambda peer: _importance(peer[1]))
    compared = []
    for index, finding in enumerate(findings):
        uid = _instead(index) if _instead(index) in pods else own.get(finding.subject)
        compared.append(_compared(finding, uid, _repaired(index), peers, places))
    return compared


def _instead(finding: int) -> str:
    return f"instead-{finding}"


def _repaired(finding: int) -> str:
    return f"repaired-{finding}"


class _Places:
    """Where each pod stands in the two orders: a smaller number dies earlier, equals die at the same time."""

    def __init__(self, orders: Orders) -> None:
        self.eviction: dict[str, int] = {}
        self.kernel: dict[str, int] = {}
        spared = []
        place = 0
        for ranked in orders.eviction:
            uid = ranked.pod.metadata.uid
            if ranked.spared is None:
                self.eviction[uid] = place
            else:
                spared.append(uid)
            place += ranked.before_next_by not in _TIES
        # They are in the kubelet's order, after all others, and never evicted.
        self.eviction.update(dict.fromkeys(spared, len(orders.eviction) + 1))
        for killed in orders.kernel:
            self.kernel.setdefault(killed.pod.metadata.uid, -killed.worst.points)


def _compared(
    finding: Finding, uid: str | None, repaired: str, peers: Sequence[tuple[str, Sketch]], places: _Places
) -> Finding:
    consequence = finding.consequence
    if uid is None or consequence.effect is not Effect.ORDER:
        return finding
    outlived_by = [
        _outliving(order, uid, repaired if repaired in order else None, finding.subject, peers)
        for order in (places.eviction, places.kernel)
    ]
    evicted_before, killed_before = outlived_by
    outlived = replace(
        consequence,
        evicted_before=evicted_before,
        killed_before=killed_before,
        is_compared=repaired in places.eviction,
    )
    return replace(finding, consequence=outlived)


def _outliving(
    order: Mapping[str, int],
    uid: str,
    repaired: str | None,
    subject: CheckedObject,
    peers: Sequence[tuple[str, Sketch]],
) -> str | None:
    """Return the least important that dies later now, and with the patch would die earlier.

    Another version of the same object does not count.
    """
    start = order[uid]
    for other, sketch in peers:
        if (
            not _is_same(sketch.subject, subject)
            and start < order[other]
            and (repaired is None or order[other] < order[repaired])
        ):
            return sketch.subject.key
    return None


def _is_same(one: CheckedObject, other: CheckedObject) -> bool:
    """Whether two are versions of one object."""
    return (one.kind, one.key) == (other.kind, other.key)


def _importance(sketch: Sketch) -> tuple[int, int, str, str]:
    return sketch.priority, CLASS_RANK[sketch.qos_class], sketch.subject.key, sketch.subject.kind


def _orders(pods: Mapping[str, Pod], context: CheckContext) -> Orders:
    memory_bytes = context.node_memory_bytes
    snapshot = Snapshot(NodeUsage(memory_bytes), tuple(_usage(uid, pod) for uid, pod in pods.items()))
    ranking = Ranking(Signal.MEMORY, profile=context.options.profile)
    return both_orders(snapshot, ranking, CgroupSettings(node_memory_bytes=memory_bytes), _domain(context))


def _domain(context: CheckContext) -> OOMDomain | None:
    """Return what runs out of memory first: all pods together, where a kubelet limits them; None is the machine.

    The system is taken to use nothing. Of several kubelets with different settings none counts, nor does one that does
    not start, which has findings of its own.
    """
    memory_bytes = context.node_memory_bytes
    configurations = [kubelet.configuration for kubelet in context.surroundings.kubelets]
    config = configurations[0] if configurations else None
    if config is None or any(configuration != config for configuration in configurations):
        return None
    if not config.cgroups_per_qos or "pods" not in config.enforce_node_allocatable:
        return None
    try:
        divided = node_allocatable({MEMORY: Quantity.of_units(memory_bytes, "BinarySI")}, config)
    except InvalidConfiguration:
        return None
    limit_bytes = divided.enforced[MEMORY].value
    usable_bytes = memory_bytes - machine(memory_bytes).watermarks.min_bytes
    return OOMDomain(limit_bytes) if 0 < limit_bytes < usable_bytes else None


def _usage(uid: str, pod: Pod) -> PodUsage:
    named = replace(pod, metadata=replace(pod.metadata, uid=uid))
    containers = tuple(
        ContainerUsage(container.name, anon_bytes=_assumed_bytes(container, pod))
        for container in pod.running_containers
    )
    working_set_bytes = sum(usage.working_set_bytes for usage in containers)
    reference = PodReference(pod.metadata.name, pod.metadata.namespace, uid)
    return PodUsage(named, PodStats(reference, memory=MemoryStats(working_set_bytes=working_set_bytes)), containers)


def _assumed_bytes(container: Container, pod: Pod) -> int:
    """Return what a container is taken to use: its limit, or its share of the pod's, or twice its request."""
    limit = container.resources.limits.get(MEMORY)
    if limit:
        return limit.value
    own = pod.spec.resources
    if own is not None and own.limits.get(MEMORY):
        return own.limits[MEMORY].value // len(pod.running_containers)
    request = container.resources.requests.get(MEMORY)
    return 2 * request.value if request else NOMINAL_BYTES
