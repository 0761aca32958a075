"""Settings of kubelets and of the cluster that would help the advised workloads, as published.

``qosReserved`` keeps memory that Guaranteed pods have requested from pods of other classes; a ClusterResourceOverride
makes requests a share of limits, for a whole namespace at once. Both are OpenShift's ways to overcommit.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from podqos.advice.sizing.tried import Fate

SHARES = (100, 75, 50, 25)
"""Percentages of ``qosReserved`` that are tried, the strictest first."""


class SettingKind(StrEnum):
    """What is set."""

    QOS_RESERVED = "QOSReserved"
    RESOURCE_OVERRIDE = "ClusterResourceOverride"


class SettingAdvice(Struct, frozen=True, rename="camel"):
    """A setting that would help, tried with all workloads as advised."""

    setting: SettingKind
    configuration: dict[str, Any]
    """What to write: part of a KubeletConfiguration, or an object."""
    about: tuple[str, ...]
    """Nodes or workloads."""
    tried: Fate
    text: str
    """What it does, and why it would help."""
