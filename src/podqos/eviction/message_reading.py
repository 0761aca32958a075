"""The messages of evicted pods read back: what ``messages`` writes, and the wordings of older kubelets.

A message comes out of an Event, a pod's status or a log, and nothing in it is trusted: what is no sentence of the
kubelet's is left out, and an amount that is none is not known.

Sources: Kubernetes v1.3 to v1.36 pkg/kubelet/eviction/{helpers,eviction_manager}.go.
"""

from __future__ import annotations

import re
from enum import StrEnum
from string import Formatter

from msgspec import Struct

from podqos.errors import InvalidQuantity
from podqos.eviction import messages
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.signals import INODES, PIDS, SIGNALS, NodeCondition, Signal
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY

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


_LOW = _pattern(messages.NODE_WAS_LOW)
_MET = _pattern(messages.THRESHOLD_MET)
_POD_USED = _pattern(messages.POD_USED)
_CONTAINERS_USED = (_pattern(messages.CONTAINER_USED), _pattern(messages.CONTAINER_USED_OLD))
_CUT = re.compile(
    rf"Container (?P<container>{_FIELDS['container']}) was using (?P<used>{_AMOUNT}),(?:\s|$)"
    rf"(?:request is (?P<request>{_AMOUNT}),)?"
)
"""A message whose end is missing, as where a table or a screen ends; an amount that a comma follows is whole."""
_EXCEEDED = [
    *((kind, _pattern(template)) for kind, template in messages.STORAGE_EXCEEDED.items()),
    # Kubernetes 1.7 to 1.10, in events alone: the pod's status names "EmptyDir" or "ephemeral-storage" as what is low.
    (LocalStorageLimit.EMPTY_DIR, re.compile(rf'emptyDir usage exceeds the limit "(?P<limit>{_AMOUNT})"')),
    (LocalStorageLimit.POD, re.compile(r"pod ephemeral local storage usage exceeds the total limit of containers")),
    (
        LocalStorageLimit.CONTAINER,
        re.compile(rf'container\'s ephemeral local storage usage exceeds the limit "(?P<limit>{_AMOUNT})"'),
    ),
]
_CONDITIONS = (
    _pattern(messages.NODE_HAD_CONDITION),
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
