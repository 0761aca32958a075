"""What an answer rests on that nobody stated: the value taken, and how to state it.

An assumption travels with the answer as data, as a reason does, and every command says all of them once, at the end.
"""

from __future__ import annotations

from msgspec import Struct


class Assumption(Struct, frozen=True, order=True, rename="camel"):
    """One thing that was taken for granted."""

    what: str
    """Such as ``node memory``, or ``priority of class batch``."""
    value: str
    """What was taken, such as ``64Gi``."""
    state_with: str
    """How to state it instead: an option, or the object to add to the input."""
