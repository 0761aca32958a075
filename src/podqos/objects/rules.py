"""What is known of a cluster in addition to its files, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.manifest.problems import Severity

if TYPE_CHECKING:
    from podqos.manifest.custom_kind import CustomKind
    from podqos.model.policy import PriorityClass, RuntimeClass


class ReadingRules(Struct, frozen=True, kw_only=True):
    """What is known of a cluster in addition to its files, and how they are read."""

    namespace: str = "default"
    """The namespace of objects without one."""
    directory: str = ""
    """The directory that relative file names start from."""
    doubles: Severity = Severity.WARNING
    """The severity of a policy that is defined twice; the first counts."""
    stated: tuple[PriorityClass | RuntimeClass, ...] = ()
    """Classes of the cluster that are in no file; they take precedence over those that are."""
    version: tuple[int, int] | None = None
    """Of Kubernetes, where it is known: some kubelet settings have no effect in some versions."""
    kinds: Mapping[str, CustomKind] = {}
    """Custom resources with pods, in addition to the well-known ones."""
