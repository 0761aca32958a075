"""How old what is known about a followed cluster is."""

from __future__ import annotations

from msgspec import Struct


class DataAge(Struct, frozen=True, rename="camel"):
    """How old the data of a followed cluster is, in seconds."""

    objects_seconds: float
    """Since the API server last confirmed that nodes, pods and all other objects are up to date."""
    usage_seconds: float | None
    """Since the usage of nodes was last read; null where that has not succeeded yet."""
    trouble: str = ""
    """Why it is not newer; empty if nothing is wrong."""
