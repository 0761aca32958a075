"""Assumptions behind an answer: what was not stated, the assumed value, and how to state it.

An assumption is part of the answer as data, like a reason, and every command prints all of them once, at the end.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.profile import RECORDED, Profile, version_text
from podqos.naming import stated_with


class Assumption(Struct, frozen=True, order=True, rename="camel"):
    """One assumption."""

    what: str
    """Such as ``node memory``, or ``priority of class batch``."""
    value: str
    """The assumed value, such as ``64Gi``."""
    state_with: str
    """How to state it instead: an option, or the object to add to the input."""


def of_version(profile: Profile) -> tuple[Assumption, ...]:
    """Return that the rules of a version are approximate, where no recorded answers hold them to upstream."""
    if not profile.is_approximate:
        return ()
    how = (
        f"read from a release candidate's source; {stated_with('kubernetes_version', version_text(RECORDED))} is exact"
    )
    return (Assumption(f"rules of Kubernetes {profile.version_text}", "approximate", how),)
