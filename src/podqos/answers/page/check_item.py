"""One finding as the page shows it.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows this class.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.advice.checks.finding import FindingSeverity


class CheckItem(Struct, frozen=True, rename="camel"):
    """One finding."""

    check: str
    check_name: str
    severity: FindingSeverity
    title: str
    subject: str
    """``Deployment shop/web``."""
    namespace: str
    container: str | None
    place: str
    """File, line and column, or the field of an object of a cluster."""
    reason: str
    consequence: str
    patch: str
    """What to write, a line for each edit."""
    is_fixed: bool
    """Whether applying all fixes writes it."""
    on_request: bool
    """Whether it is written only where its check is chosen."""
    fingerprint: str
    can_be_fixed: bool = False
    """Whether a request that names its check tries to fix it."""
    also: str = ""
    """What it is about as well: copies in other files, or other objects at the same place."""
