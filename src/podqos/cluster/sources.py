"""Pure: the answer of one source, or the assumption made without it."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from podqos.cluster.resources import Model
from podqos.errors import ClusterError
from podqos.model.assumption import Assumption


class Found(Struct, Generic[Model], frozen=True):
    """The answer of a source; None if it has none, with the reason in the assumptions."""

    value: Model | None = None
    assumptions: tuple[Assumption, ...] = ()
    is_silent: bool = False
    """Whether there was no usable response: it may answer later."""


def missing(what: str, error: ClusterError, state_with: str) -> Assumption:
    """Return the assumption for a source that does not answer."""
    return Assumption(what, f"not known: {error.what}", state_with)
