"""An edit of a pod, as a visitor makes it and as a fix proposes it."""

from __future__ import annotations

from msgspec import Struct


class PodEdit(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is written into the manifest of a pod; all pods of its workload change with it, on all nodes."""

    pod: str
    """``namespace/name``."""
    container: str = ""
    """Whose amounts; empty: the pod's own."""
    requests: dict[str, str | None] = {}
    """By resource; null removes it."""
    limits: dict[str, str | None] = {}
    priority: int | None = None
    """That of the class to give it."""
    alone: bool = False
    """Whether only this pod changes: one that runs, resized or made anew by itself."""
