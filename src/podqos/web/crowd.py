"""Which connections a server has, and which of them it closes first when there are too many.

A client that has sent nothing, or only part of its first request, is worth less than one that is waiting for its next
request, and that less than one that is being answered. Clients without a complete request compete among themselves, so
that a flood of them closes neither the connections of known visitors nor those of other addresses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import Protocol


class Standing(Enum):
    """What a connection is worth."""

    CLOSING = auto()
    """It was refused, and may still read why."""
    INCOMPLETE = auto()
    """It is silent, in its TLS handshake, or has sent part of a request."""
    IDLE = auto()
    """Its requests are answered."""
    STALLED = auto()
    """It does not read its answer, or only slowly."""
    BUSY = auto()
    """Its request is being answered."""


class Member(Protocol):
    """A connection."""

    standing: Standing | None
    origin: str
    since: float
    """When it connected, or its last answer was sent."""
    body_bytes: int
    """Of its incomplete request."""

    def body_rate(self, now: float) -> float:
        """Return the bytes per second at which the body arrives; infinite while that is not known."""
        ...

    def holds_alone(self) -> bool:
        """Whether bytes of answers are freed if it is closed."""
        ...

    def refuse(self, status: int, why: str) -> None:
        """Answer with an error, and close."""
        ...

    def push_out(self) -> None:
        """Close at once."""
        ...


class Crowd:
    """The connections of a server, in the order in which they reached their standing."""

    def __init__(self) -> None:
        self.all: set[Member] = set()
        self._placed: dict[Standing, dict[Member, None]] = {standing: {} for standing in Standing}
        self._incomplete: dict[str, dict[Member, None]] = {}
        """By the address they come from."""
        self._busy: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.all)

    def move(self, member: Member, standing: Standing) -> None:
        """Note what a connection is worth now."""
        self._leave(member)
        self.all.add(member)
        member.standing = standing
        self._placed[standing][member] = None
        if standing is Standing.INCOMPLETE:
            self._incomplete.setdefault(member.origin, {})[member] = None
        elif standing is Standing.BUSY:
            self._busy[member.origin] = self._busy.get(member.origin, 0) + 1

    def remove(self, member: Member) -> None:
        """Forget a closed connection."""
        self._leave(member)
        member.standing = None
        self.all.discard(member)

    def _leave(self, member: Member) -> None:
        standing = member.standing
        if standing is None:
            return
        del self._placed[standing][member]
        if standing is Standing.INCOMPLETE:
            same = self._incomplete[member.origin]
            del same[member]
            if not same:
                del self._incomplete[member.origin]
        elif standing is Standing.BUSY:
            left = self._busy[member.origin] - 1
            if left:
                self._busy[member.origin] = left
            else:
                del self._busy[member.origin]

    def those(self, standing: Standing) -> Iterator[Member]:
        """Return the connections of a standing, the longest first."""
        return iter(self._placed[standing])

    def least_useful(self, newcomer: Member, most: int) -> Member | None:
        """Return the connection to close for a newcomer; None: all others are being answered."""
        closing = self._first(Standing.CLOSING)
        if closing is not None:
            return closing
        incomplete, idle = self._oldest_of_most(newcomer), self._first(Standing.IDLE)
        if incomplete is not None and idle is not None:
            has_flood = len(self._placed[Standing.INCOMPLETE]) > most // 2
            return incomplete if has_flood or incomplete.since < idle.since else idle
        return idle or self._first(Standing.STALLED) or incomplete

    def _first(self, standing: Standing) -> Member | None:
        return next(iter(self._placed[standing]), None)

    def _oldest_of_most(self, newcomer: Member) -> Member | None:
        """Return the oldest incomplete connection of the address that has most of them."""
        if not self._incomplete:
            return None
        same = max(self._incomplete.values(), key=len)
        return next((member for member in same if member is not newcomer), None)

    def is_overworked(self, member: Member, most: int) -> bool:
        """Whether too many requests are being answered, or too many of them come from one address."""
        busy = len(self._placed[Standing.BUSY])
        return busy >= most * 3 // 4 or (busy >= most // 2 and self._busy.get(member.origin, 0) * 2 > busy)


@lru_cache(1024)
def origin_of(address: str) -> str:
    """Return what the connections of one client have in common: its address, or its IPv6 network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if known.version == 4:
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))
