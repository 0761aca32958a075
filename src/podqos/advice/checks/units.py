"""What an amount in the wrong unit was probably meant to be, from how it is written.

An amount is implausible where no container can run with it, or no machine has that much. Its unit often shows what was
meant: ``cpu: 500M`` is 500m, ``memory: 512m`` is 512Mi. Where it does not (``memory: 4``, ``cpu: 500``) there are only
likely readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.model.node import Node
from podqos.model.quantity import NANOS, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceRequirements

_MI, _TI, _PI = (1 << power for power in (20, 40, 50))
# The largest machine that can be rented (Amazon's u7inh-32tb.480xlarge), and disks that none has.
_LARGEST_MACHINE = {CPU: 1920, MEMORY: 32 * _TI, EPHEMERAL_STORAGE: _PI}
# Fewer cores than the first are not looked at, fewer than the second only beside next to no memory; machines with more
# than the third are rare and have much memory.
_SEVERAL_CORES, _MANY_CORES, _RARE_CORES = 20, 100, 448
_ROUND = 5
_BYTES_PER_CORE, _LEAST_BYTES_PER_CORE = 256 * _MI, 8 * _MI
# A memory limit of so little in thousandths of a byte was meant in bytes; larger ones are sums that a program wrote.
_LEAST_BYTES_IN_MILLI = 6 * _MI
# No container runs in less than a mebibyte, and the kubelet counts no less than a thousandth of a core.
_LEAST_NANOS = {CPU: NANOS // 1000, MEMORY: _MI * NANOS, EPHEMERAL_STORAGE: _MI * NANOS}
# Readings outside of these are not what people write.
_LIKELY_MILLI = (10, 128_000)
_LIKELY_CORES = (1, 128)
_LIKELY_BYTES = (_MI, _TI)
# From here on a number without a unit can only be mebibytes, and with m as well.
_PLAIN_WITHOUT_UNIT, _PLAIN_WITH_M = 64, 16
_MOST_MEBIBYTES = 1 << 16

_WRITTEN = re.compile(r"\+?([0-9]+(?:\.[0-9]+|))([numkMGTPE]i?|Ki|)")
_SMALLER = {"E": "PTGM", "P": "TGM", "T": "GM", "G": "M"}


class Meant(Struct, frozen=True, gc=False):
    """What was probably meant by an implausible amount."""

    readings: tuple[str, ...]
    """The likely ones, the likeliest first; none where there is no telling."""
    is_plain: bool
    """Whether there is only one that makes sense."""


class Stated(Struct, frozen=True, gc=False):
    """One amount of a container, or of a pod."""

    name: str
    """Of the resource."""
    side: str
    """``limits`` or ``requests``."""
    amount: Quantity


class Machines:
    """What the nodes at hand have, or else the largest machine that can be rented."""

    def __init__(self, nodes: Iterable[Node], memory_bytes: int | None = None) -> None:
        """Take the nodes, or, without any, the memory that a node is stated to have."""
        self._nodes = tuple(nodes)
        self._memory_bytes = memory_bytes

    def hold(self, name: str, amount: Quantity) -> bool:
        """Whether a machine has as much of a resource: one of the nodes, where they say what they have."""
        known = [node.status.capacity[name] for node in self._nodes if name in node.status.capacity]
        if known:
            return amount <= max(known)
        most = self._memory_bytes if name == MEMORY and self._memory_bytes else _LARGEST_MACHINE[name]
        return amount.nanos <= most * NANOS

    def have(self, name: str, amount: Quantity) -> bool:
        """Whether one of the nodes at hand has as much."""
        return any(name in node.status.capacity and amount <= node.status.capacity[name] for node in self._nodes)


def is_implausible(stated: Stated, beside: ResourceRequirements, machines: Machines) -> bool:
    """Whether an amount of cpu, memory or ephemeral storage was probably meant in another unit."""
    name, amount = stated.name, stated.amount
    if amount.nanos <= 0 or name not in _LEAST_NANOS:
        return False
    if is_too_little(name, amount):
        return True
    if name != CPU:
        if stated.side == "limits" and amount.written.endswith("m") and amount.value < _LEAST_BYTES_IN_MILLI:
            return True
        return amount.nanos > _LARGEST_MACHINE[name] * NANOS and not machines.have(name, amount)
    if amount.nanos < _SEVERAL_CORES * NANOS or machines.have(name, amount):
        return False
    if amount.nanos < _MANY_CORES * NANOS:
        return _is_tiny(amount.value, beside)
    if amount.nanos > _LARGEST_MACHINE[name] * NANOS:
        return True
    # A round number looks like thousandths, unless the rest of the container is as large.
    is_round = amount.nanos % (_ROUND * NANOS) == 0 and not amount.written.endswith("m")
    return (is_round or amount.nanos > _RARE_CORES * NANOS) and not _is_large(amount.value, beside)


def is_too_little(name: str, amount: Quantity) -> bool:
    """Whether no container runs with so little cpu, memory or ephemeral storage; zero is a statement."""
    if amount.nanos <= 0 or name not in _LEAST_NANOS:
        return False
    return amount.nanos < _LEAST_NANOS[name]


def _is_large(cores: int, beside: ResourceRequirements) -> bool:
    """Whether a container asks for as much memory as goes with so many cores, or for devices."""
    sides: tuple[Mapping[str, Quantity], ...] = (beside.requests, beside.limits)
    if any("/" in name for side in sides for name in side):
        return True
    return any(MEMORY in side and side[MEMORY].value >= cores * _BYTES_PER_CORE for side in sides)


def _is_tiny(cores: int, beside: ResourceRequirements) -> bool:
    """Whether a container with so many cores may use next to no memory."""
    limit = beside.limits.get(MEMORY)
    return limit is not None and 0 < limit.value < cores * _LEAST_BYTES_PER_CORE


def meant(name: str, amount: Quantity, machines: Machines) -> Meant:
    """Return what was probably meant by an implausible amount."""
    written = _WRITTEN.fullmatch(amount.written or str(amount))
    if written is None:
        return Meant((), is_plain=False)
    number, unit = written.groups()
    readings, is_plain = (_cores if name == CPU else _bytes)(number, unit, amount)
    if name == EPHEMERAL_STORAGE and not unit and is_plain:
        readings, is_plain = [*readings, *_likely_bytes(f"{number}Gi")], False  # disks are counted in gibibytes, too
    possible = tuple(dict.fromkeys(reading for reading in readings if machines.hold(name, Quantity.parse(reading))))
    return Meant(possible, is_plain and len(possible) == 1)


def _cores(number: str, unit: str, amount: Quantity) -> tuple[list[str], bool]:
    if amount.nanos < _LEAST_NANOS[CPU]:
        # 0.5m for 0.5; 500u and 500n for 500m.
        milli = Quantity.parse(number if unit == "m" else f"{number}m")
        return _likely_milli(milli), False
    if unit == "m":
        # 500000m, perhaps converted twice.
        return _likely_milli(Quantity(amount.nanos // 1000)), False
    as_milli = _likely_milli(Quantity.parse(f"{number}m"))
    if unit in {"M", "Mi"} and as_milli:
        return as_milli, True
    cores = Quantity.parse(number)
    as_cores = [str(cores)] if unit and _LIKELY_CORES[0] <= cores.value <= _LIKELY_CORES[1] else []
    return [*as_cores, *as_milli], False


def _likely_milli(amount: Quantity) -> list[str]:
    is_likely = not amount.finer_than_milli and _LIKELY_MILLI[0] <= amount.milli_value <= _LIKELY_MILLI[1]
    return [f"{amount.milli_value}m"] if is_likely else []


def _bytes(number: str, unit: str, amount: Quantity) -> tuple[list[str], bool]:
    if unit == "m" and "." not in number and int(number) >= _MI:
        return _likely_bytes(number), False  # bytes, with a unit that they do not have
    if amount.nanos >= _LEAST_NANOS[MEMORY]:
        smaller = _SMALLER.get(unit[:1], "")
        return _likely_bytes(*(f"{number}{each}{unit[1:]}" for each in smaller)), False
    if "." in number:
        return _likely_bytes(f"{number}Gi") if unit in {"", "m"} else [], False
    count = int(number)
    if unit in {"", "m"} and count > _MOST_MEBIBYTES:
        return _likely_bytes(f"{number}Ki"), False
    least = _PLAIN_WITH_M if unit == "m" else _PLAIN_WITHOUT_UNIT
    if unit in {"", "m"} and count < least:
        return _likely_bytes(f"{number}Mi", f"{number}Gi"), False
    return _likely_bytes(f"{number}Mi"), unit in {"", "m"}


def _likely_bytes(*texts: str) -> list[str]:
    least, most = _LIKELY_BYTES
    return [text for text in texts if least <= Quantity.parse(text).value <= most]
