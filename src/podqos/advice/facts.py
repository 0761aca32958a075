"""The facts of each check, as data: which container, which resource, which numbers.

One structure per kind of fact, tagged with its name, so that a finding written as JSON can be read back. Several checks
may share one. Wording them is the business of ``report.finding_words``.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from podqos.model.pod import QOSClass


class Fact(Struct, frozen=True, gc=False, tag_field="type", tag=True):
    """The base of all facts; a finding's facts are one of the structures below."""


class Spoiler(Struct, frozen=True, gc=False):
    """A container that keeps its pod from being Guaranteed."""

    container: str
    resource: str
    request: str | None
    limit: str | None


class NearlyGuaranteed(Fact, frozen=True, gc=False):
    """A pod that is Burstable because of a few fields."""

    guaranteed_containers: tuple[str, ...]
    """Those that are in order."""
    spoilers: tuple[Spoiler, ...]


class NothingSet(Fact, frozen=True, gc=False):
    """A pod without a request or limit of cpu or memory."""

    kind: str
    containers: tuple[str, ...]
    selected_by: str | None = None
    """The Service that sends it traffic."""
    qos_class: QOSClass = QOSClass.BEST_EFFORT


Facts: TypeAlias = NearlyGuaranteed | NothingSet
