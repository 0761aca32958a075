"""What a program's own settings let it take, and the memory limit that is enough for that.

A heap or a cache is the program's, and its owner decides about it: nothing here changes one. A limit that is too small
for it kills sooner or later, however little was measured so far, so that none is advised below ``least_limit``. Where
that is more than usage asks for, the setting is what is oversized, and the advice says so.

``manifest.runtime_memory`` reads the settings; which of them are wrong as they are is for ``checks`` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.plain import Plain
from podqos.manifest.runtime_memory import MemorySetting, Runtime, memory_settings
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceList

_MIB = 1 << 20


class Room(Struct, frozen=True):
    """How much of a limit a setting may take, and what else the process needs."""

    largest: Fraction
    """Of the limit; a warning above it."""
    usual: Fraction
    """With a limit that is newly chosen."""
    beside: str
    rest_bytes: int = 128 * _MIB
    """What the process needs however small the setting is, where a limit is newly chosen."""


ROOM = {
    Runtime.JAVA: Room(
        Fraction(80, 100),
        Fraction(75, 100),
        "metaspace, code cache, thread stacks and direct buffers come on top",
    ),
    Runtime.NODE: Room(Fraction(85, 100), Fraction(80, 100), "new space, code and buffers come on top"),
    Runtime.DOTNET: Room(Fraction(90, 100), Fraction(80, 100), "native memory and thread stacks come on top"),
    # While it saves, pages that are written to are copied: up to all of them.
    Runtime.REDIS: Room(
        Fraction(90, 100),
        Fraction(50, 100),
        "fragmentation, client buffers and copies made while saving come on top",
    ),
    Runtime.MEMCACHED: Room(Fraction(90, 100), Fraction(85, 100), "connections and the hash table come on top"),
    Runtime.POSTGRES: Room(Fraction(50, 100), Fraction(40, 100), "connections, work_mem and maintenance come on top"),
    Runtime.MYSQL: Room(Fraction(85, 100), Fraction(75, 100), "connections and their buffers come on top"),
    Runtime.MONGODB: Room(Fraction(80, 100), Fraction(60, 100), "connections, sorts and index builds come on top"),
    # A soft limit that the garbage collector works towards: only one above the limit cannot help.
    Runtime.GO: Room(
        Fraction(1), Fraction(90, 100), "the garbage collector does not speed up before the OOM kill", rest_bytes=0
    ),
}


class ProgramSetting(Struct, frozen=True, rename="camel"):
    """The setting of a program that asks for the largest memory limit."""

    runtime: Runtime | None
    """Null where it is not known whether there is one: commands and environments of clusters are not read."""
    setting: str
    """As it is written: ``-Xmx3g``."""
    path: str
    """The field, from the pod: ``spec.containers[0].env[1].value``."""
    variable: str
    """The environment variable; empty where the command says so."""
    amount_bytes: int | None
    """What it lets the program use; null where it is a share of the limit, or not known here."""
    share_percent: int | None
    """Of the limit; null where it is an amount."""
    held_by: str
    """What holds an amount that is not known: ``ConfigMap app``."""
    least_limit_bytes: int | None
    """No smaller limit is advised; null where none is known to be enough."""
    decides: bool = False
    """Whether usage alone asks for a smaller limit, or for one where none is known to be enough."""


def program_setting(
    container: Plain, path: str, requests: ResourceList, limits: ResourceList, most_bytes: int
) -> ProgramSetting | None:
    """Return the setting that asks for the largest limit; None where a container has none.

    ``container`` is as written, ``path`` where it is in the pod; ``most_bytes`` is the most that was measured.
    """
    limit = limits.get(MEMORY)
    before = limit.value if limit else None
    found = [
        ProgramSetting(
            runtime=setting.runtime,
            setting=setting.text,
            path=setting.path,
            variable=setting.variable,
            amount_bytes=None if setting.share is not None else setting.amount_bytes,
            share_percent=None if setting.share is None else int(setting.share * 100),
            held_by=setting.unknown,
            least_limit_bytes=_least_bytes(setting, before, most_bytes),
        )
        for setting in _settings(container, path, requests, limits)
        if not setting.is_malformed
    ]
    return max(found, key=lambda each: (each.least_limit_bytes is None, each.least_limit_bytes or 0), default=None)


def unread_setting(path: str, limits: ResourceList) -> ProgramSetting:
    """Return what counts where commands and environments are not read, because they may hold secrets."""
    limit = limits.get(MEMORY)
    return ProgramSetting(None, "", path, "", None, None, "the cluster", limit.value if limit else None)


def _settings(container: Plain, path: str, requests: ResourceList, limits: ResourceList) -> Iterator[MemorySetting]:
    """Yield the settings; an amount that follows the limit, because it refers to it, as a share."""
    stated = {
        f"{side}.memory": amounts[MEMORY].value
        for side, amounts in (("requests", requests), ("limits", limits))
        if amounts.get(MEMORY)
    }
    now = memory_settings(container, path, stated)
    doubled = memory_settings(container, path, {name: 2 * amount for name, amount in stated.items()})
    for setting, other in zip(now, doubled, strict=True):
        if setting.amount_bytes == other.amount_bytes or not setting.amount_bytes:
            yield setting
        else:
            largest = max(stated.values())
            yield replace(setting, amount_bytes=None, share=Fraction(setting.amount_bytes, largest))


def _least_bytes(setting: MemorySetting, before: int | None, most_bytes: int) -> int | None:
    """Return the smallest limit that may be advised; the one of today is enough where no check warns of it."""
    if setting.unknown:
        return before
    if setting.share is not None:
        # It shrinks with the limit, and has to hold what was used until now: how much of that was heap is unknown.
        room = _rounded_up(Fraction(most_bytes) / setting.share) if setting.share else 0
        return room if before is None else min(before, room)
    amount, room_for = setting.amount_bytes or 0, ROOM[setting.runtime]
    usual = _rounded_up(max(amount / room_for.usual, Fraction(amount + room_for.rest_bytes)))
    if before is None or before * room_for.largest < amount:
        return usual
    return min(before, usual)


def _rounded_up(amount: Fraction) -> int:
    return -(-amount // _MIB) * _MIB


def with_room(
    setting: ProgramSetting, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], *, had_limit: bool
) -> tuple[dict[str, Quantity], dict[str, Quantity], ProgramSetting]:
    """Return requests and limits that leave the program what its setting lets it take."""
    new_requests, new_limits = dict(requests), dict(limits)
    limit, least_bytes = limits.get(MEMORY), setting.least_limit_bytes
    if limit is None or (least_bytes is not None and limit.value >= least_bytes):
        return new_requests, new_limits, setting
    if least_bytes is not None:
        new_limits[MEMORY] = Quantity.of_units(least_bytes, "BinarySI")
        if requests.get(MEMORY) == limit:
            new_requests[MEMORY] = new_limits[MEMORY]
    elif not had_limit:
        del new_limits[MEMORY]
    return new_requests, new_limits, replace(setting, decides=True)
