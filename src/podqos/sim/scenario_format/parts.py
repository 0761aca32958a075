"""The base of all parts of a scenario file."""

from __future__ import annotations

from msgspec import Struct


class Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts: fields are in camel case, and unknown ones are rejected."""
