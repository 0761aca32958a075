"""What is known of a cluster besides its files, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.manifest.problems import Severity

if TYPE_CHECKING:
    from podqos.manifest.pod_kinds import CustomKind
    from podqos.model.policy import PriorityClass, RuntimeClass


class ReadingRules(Struct, frozen=True, kw_only=True):
    """What is known of a cluster besides its files, and how they are read."""

    namespace: str = "default"
    """That of objects which name none."""
    directory: str = ""
    """Where the names of files begin that are not absolute."""
    doubles: Severity = Severity.WARNING
    """How bad it is that a policy is given twice; the first counts."""
    stated: tuple[PriorityClass | RuntimeClass, ...] = ()
    """Classes of the cluster that are in no file; they count before those that are."""
    kinds: Mapping[str, CustomKind] = {}
    """Custom resources that hold pods, besides the well-known ones."""
