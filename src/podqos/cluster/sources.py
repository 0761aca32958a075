"""Pure: what one source knows, or what is assumed because it does not."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from podqos.cluster.resources import Model
from podqos.errors import ClusterError
from podqos.model.assumption import Assumption


class Found(Struct, Generic[Model], frozen=True):
    """What a source says; None where it says nothing, and then the assumptions have the reason."""

    value: Model | None = None
    assumptions: tuple[Assumption, ...] = ()


def missing(what: str, error: ClusterError, state_with: str) -> Assumption:
    """Return what it means that a source does not answer."""
    return Assumption(what, f"not known: {error.what}", state_with)
