"""What an evicted pod carries: message, event annotations, condition.

These texts are part of Kubernetes' interface (people and tools search for them), so they are upstream's to the letter,
trailing blank included. Each wording stands once, rendered and read back; older kubelets' wordings are only read. A
message comes out of an Event, a pod's status or a log, and nothing in it is trusted: what is no sentence of the
kubelet's is left out, and an amount that is none is not known.

Source: Kubernetes v1.3 to v1.36 pkg/kubelet/eviction/{helpers,eviction_manager}.go; up to 1.25 without amounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from string import Formatter

from msgspec import Struct

from podqos.errors import InvalidQuantity
from podqos.eviction.pods import LocalStorageExcess, LocalStorageLimit, memory_bytes
from podqos.eviction.signals import INODES, PIDS, SIGNALS, NodeCondition, Signal
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, ZERO, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.stats import ContainerStats, PodStats

REASON = "Evicted"
PHASE = "Failed"
CONDITION, BY_KUBELET = "DisruptionTarget", "TerminationByKubelet"
"""The condition of an evicted pod, and its reason if its node ended it. It outlives a reason of the status: a pod whose
containers exit with code 0 on SIGTERM ends as ``Succeeded``, without one.
"""
MADE_ROOM = "Pod was preempted by Kubelet to accommodate a critical pod."
NODE_SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."
"""The other messages of that condition (pkg/kubelet/preemption, pkg/kubelet/nodeshutdown)."""

GUARD_COMPONENT = "podqos-guard"
"""Reports the Events of ``podqos guard``: nothing else in them differs from the kubelet's."""
GUARD_ANNOTATION = "podqos.dev/evicted-at"
"""Marks a pod that the guard evicts; changes with every eviction."""

# Each wording once: rendered here, and read back by ``message_reading``.
NODE_WAS_LOW = "The node was low on resource: {resource}. "
THRESHOLD_MET = "Threshold quantity: {threshold}, available: {available}. "
POD_USED = "Pod {pod} was using {used}, request is {request}, has larger consumption of {resource}. "
CONTAINER_USED = "Container {container} was using {used}, request is {request}, has larger consumption of {resource}. "
CONTAINER_USED_OLD = "Container {container} was using {used}, which exceeds its request of {request}. "
EMPTY_DIR_EXCEEDED = 'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
POD_STORAGE_EXCEEDED = "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
CONTAINER_STORAGE_EXCEEDED = 'Container {name} exceeded its local ephemeral storage limit "{limit}". '
NODE_HAD_CONDITION = "The node had condition: [{conditions}]. "

STORAGE_EXCEEDED = {
    LocalStorageLimit.EMPTY_DIR: EMPTY_DIR_EXCEEDED,
    LocalStorageLimit.POD: POD_STORAGE_EXCEEDED,
    LocalStorageLimit.CONTAINER: CONTAINER_STORAGE_EXCEEDED,
}


class EvictedCondition(Struct, frozen=True, gc=False):
    """The condition an evicted pod gets."""

    type: str
    status: str
    reason: str
    message: str


class Shortage(Struct, frozen=True, gc=False):
    """What the node is short of: the numbers a message quotes."""

    resource: str
    threshold: Quantity
    available: Quantity


class EvictionText(Struct, frozen=True, gc=False):
    """Message and annotations of an eviction."""

    message: str
    annotations: dict[str, str] = {}


def pressure_text(shortage: Shortage, pod: Pod, stats: PodStats | None, profile: Profile = LATEST) -> EvictionText:
    """Return what a pod carries that was evicted because the node was short of something."""
    resource = shortage.resource
    message = NODE_WAS_LOW.format(resource=resource)
    if profile.eviction_message_amounts:
        message += THRESHOLD_MET.format(threshold=shortage.threshold, available=shortage.available)
    if stats is None:
        return EvictionText(message)
    annotations: dict[str, str] = {}
    pod_request = _pod_level_memory_request(pod, stats, resource, profile)
    if pod_request is not None:
        used = _bytes(memory_bytes(stats.memory))
        request = pod_request.canonical()
        message += POD_USED.format(pod=pod.metadata.name, used=used, request=request, resource=resource)
        annotations |= {"offending_pod": pod.metadata.name, "offending_pod_usage": used}
    offenders = tuple(_containers_over_request(pod, stats, resource))
    wording = CONTAINER_USED if profile.eviction_message_amounts else CONTAINER_USED_OLD
    for name, used, request in offenders:
        message += wording.format(container=name, used=used, request=request, resource=resource)
    annotations |= {
        "offending_containers": ",".join(name for name, _, _ in offenders),
        "offending_containers_usage": ",".join(used for _, used, _ in offenders),
        "starved_resource": resource,
    }
    return EvictionText(message, annotations)


def local_storage_text(excess: LocalStorageExcess) -> EvictionText:
    """Return what a pod carries that exceeded a limit of its own."""
    return EvictionText(STORAGE_EXCEEDED[excess.kind].format(name=excess.name, limit=excess.limit.canonical()))


def disruption_condition(message: str) -> EvictedCondition:
    """Return the condition of a pod that the node itself gave up."""
    return EvictedCondition(CONDITION, "True", BY_KUBELET, message)


def node_condition_text(conditions: Iterable[NodeCondition]) -> str:
    """Return why a new pod is not admitted. Upstream lists several conditions in no order; here they are sorted."""
    return NODE_HAD_CONDITION.format(conditions=" ".join(sorted(conditions)))


def _pod_level_memory_request(pod: Pod, stats: PodStats, resource: str, profile: Profile) -> Quantity | None:
    """Return the pod-level request to quote, if any: quoted even where the pod is below it."""
    if resource != MEMORY or not profile.pod_level_resources or stats.memory is None or not pod_level_is_set(pod):
        return None
    assert pod.spec.resources is not None
    return pod.spec.resources.requests.get(MEMORY)


def _containers_over_request(pod: Pod, stats: PodStats, resource: str) -> Iterable[tuple[str, str, str]]:
    """Yield name, usage and request of the containers above their own request, in the order of the statistics.

    Ephemeral containers cannot request anything and would always be to blame, so they are left out.
    """
    requests: dict[str, Quantity] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests.setdefault(container.name, container.resources.requests.get(resource, ZERO))
    for measured in stats.containers or ():
        request = requests.get(measured.name)
        used = _container_bytes(measured, resource)
        if request is not None and used is not None and used * NANOS > request.nanos:
            yield measured.name, _bytes(used), request.canonical()


def _container_bytes(container: ContainerStats, resource: str) -> int | None:
    if resource == MEMORY:
        return container.memory.working_set_bytes if container.memory is not None else None
    if resource == EPHEMERAL_STORAGE and container.rootfs is not None and container.logs is not None:
        rootfs, logs = container.rootfs.used_bytes, container.logs.used_bytes
        return rootfs + logs if rootfs is not None and logs is not None else None
    return None


def _bytes(amount: int) -> str:
    return Quantity.of_units(amount, "BinarySI").canonical()


MOST_CHARACTERS = 16_384
"""Of a message; an Event has at most 1,024."""
_MOST_CONTAINERS = 100


class MessageKind(StrEnum):
    """What a message says."""

    PRESSURE = "pressure"
    """The node was short of something, and the pod had to go."""
    LOCAL_STORAGE = "localStorage"
    """The pod exceeded a limit of its own."""
    NOT_ADMITTED = "notAdmitted"
    """The node was short of something, and did not let the pod begin."""


class QuotedUsage(Struct, frozen=True, gc=False, rename="camel"):
    """What a container, or a pod with a request of its own, used and requested; None: no amount."""

    name: str
    used: int | None
    request: int | None


class EvictionMessage(Struct, frozen=True, gc=False):
    """What a message says, in numbers: bytes, inodes or processes."""

    kind: MessageKind
    resource: str = ""
    """memory, ephemeral-storage, inodes or pids, also where an old kubelet has another word; empty where not said."""
    signals: tuple[Signal, ...] = ()
    """Which of the signals it can have been."""
    threshold: int | None = None
    available: int | None = None
    pod: QuotedUsage | None = None
    """Of a pod with a request of its own."""
    containers: tuple[QuotedUsage, ...] = ()
    """Those above their requests; the others are not quoted."""
    limit_kind: LocalStorageLimit | None = None
    limit_name: str = ""
    limit: int | None = None
    conditions: tuple[NodeCondition, ...] = ()
    """For which a pod was not admitted."""


# What old kubelets call resources. Since 1.11 a disk's are ephemeral-storage and inodes, whichever disk it is.
_RESOURCES: dict[str, tuple[str, tuple[Signal, ...]]] = {
    "nodefs": (EPHEMERAL_STORAGE, (Signal.NODEFS,)),
    "imagefs": (EPHEMERAL_STORAGE, (Signal.IMAGEFS,)),
    "nodefsInodes": (INODES, (Signal.NODEFS_INODES,)),
    "imagefsInodes": (INODES, (Signal.IMAGEFS_INODES,)),
    **{
        resource: (resource, tuple(row.signal for row in SIGNALS.values() if row.resource == resource))
        for resource in (MEMORY, EPHEMERAL_STORAGE, INODES, PIDS)
    },
}
_FIELDS = {
    "resource": r"[A-Za-z][A-Za-z./-]{0,62}",
    "pod": r"[A-Za-z0-9.-]{1,253}",
    "container": r"[A-Za-z0-9.-]{1,253}",
    "name": r"[A-Za-z0-9.-]{1,253}",
    "conditions": r"[A-Za-z ]{0,200}",
}
_AMOUNT = r"[0-9][0-9A-Za-z.+-]{0,39}|<nil>"


def _pattern(template: str) -> re.Pattern[str]:
    """Return what finds a sentence; each name in braces is a group. Its last blank may be cut off."""
    parts = []
    for text, field, _, _ in Formatter().parse(template.rstrip()):
        parts.append(re.escape(text))
        if field is not None:
            parts.append(f"(?P<{field}>{_FIELDS.get(field, _AMOUNT)})")
    return re.compile("".join(parts))


_LOW = _pattern(NODE_WAS_LOW)
_MET = _pattern(THRESHOLD_MET)
_POD_USED = _pattern(POD_USED)
_CONTAINERS_USED = (_pattern(CONTAINER_USED), _pattern(CONTAINER_USED_OLD))
_CUT = re.compile(
    rf"Container (?P<container>{_FIELDS['container']}) was using (?P<used>{_AMOUNT}),(?:\s|$)"
    rf"(?:request is (?P<request>{_AMOUNT}),)?"
)
"""A message whose end is missing, as where a table or a screen ends; an amount that a comma follows is whole."""
_EXCEEDED = [
    *((kind, _pattern(template)) for kind, template in STORAGE_EXCEEDED.items()),
    # Kubernetes 1.7 to 1.10, in events alone: the pod's status names "EmptyDir" or "ephemeral-storage" as what is low.
    (LocalStorageLimit.EMPTY_DIR, re.compile(rf'emptyDir usage exceeds the limit "(?P<limit>{_AMOUNT})"')),
    (LocalStorageLimit.POD, re.compile(r"pod ephemeral local storage usage exceeds the total limit of containers")),
    (
        LocalStorageLimit.CONTAINER,
        re.compile(rf'container\'s ephemeral local storage usage exceeds the limit "(?P<limit>{_AMOUNT})"'),
    ),
]
_CONDITIONS = (
    _pattern(NODE_HAD_CONDITION),
    re.compile(r"The node was low on resource: \[(?P<conditions>[A-Za-z ]{1,200})\]\."),  # up to 1.13
)
_OLDEST = "The node was low on compute resources."  # up to 1.4
_EMPTY_DIR = "EmptyDir"


def read_message(text: str) -> EvictionMessage | None:
    """Return what a message says; None: it is none of the kubelet's about an eviction."""
    text = text[:MOST_CHARACTERS]
    for pattern in _CONDITIONS:
        if found := pattern.search(text):
            named = {*found["conditions"].split()}
            met = tuple(condition for condition in NodeCondition if condition in named)
            return EvictionMessage(MessageKind.NOT_ADMITTED, conditions=met)
    for kind, pattern in _EXCEEDED:
        if found := pattern.search(text):
            groups = found.groupdict()
            limit = _amount(groups.get("limit"))
            return EvictionMessage(
                MessageKind.LOCAL_STORAGE,
                EPHEMERAL_STORAGE,
                limit_kind=kind,
                limit_name=groups.get("name") or "",
                limit=limit,
            )
    if found := _LOW.search(text):
        if found["resource"] == _EMPTY_DIR:
            return EvictionMessage(MessageKind.LOCAL_STORAGE, EPHEMERAL_STORAGE, limit_kind=LocalStorageLimit.EMPTY_DIR)
        return _pressure(found["resource"], text[found.end() :])
    return EvictionMessage(MessageKind.PRESSURE) if _OLDEST in text else None


def _pressure(named: str, rest: str) -> EvictionMessage:
    resource, signals = _RESOURCES.get(named, ("", ()))
    met = _MET.match(rest.lstrip())
    pod = _POD_USED.search(rest)
    quoted = [found for pattern in _CONTAINERS_USED for found in pattern.finditer(rest)]
    if not quoted:
        quoted = list(_CUT.finditer(rest))
    return EvictionMessage(
        MessageKind.PRESSURE,
        resource,
        signals,
        None if met is None else _amount(met["threshold"]),
        None if met is None else _amount(met["available"]),
        None if pod is None else _quoted(pod, "pod"),
        tuple(_quoted(found, "container") for found in quoted[:_MOST_CONTAINERS]),
    )


def _quoted(found: re.Match[str], what: str) -> QuotedUsage:
    return QuotedUsage(found[what], _amount(found["used"]), _amount(found["request"]))


def _amount(text: str | None) -> int | None:
    try:
        value = None if text is None else Quantity.parse(text).value
    except InvalidQuantity:
        return None
    # No machine has the most that 64 bits hold: that was more.
    return value if value is None or 0 <= value < (1 << 63) - 1 else None
