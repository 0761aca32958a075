"""The forecast of a growing container, with the settings of the sliders.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.answers.forecast import CurvePoint, ForecastReport
from podqos.answers.page.what_if import KubeletEdit


class ForecastRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    growing: str = ""
    """``namespace/name:container``; empty: the one whose growth does most harm."""
    node: str = ""
    """Empty: that of the pod, or the node with least headroom."""
    kubelet: KubeletEdit = KubeletEdit()
    interval_seconds: float = 10
    """Between two eviction checks."""
    rate_bytes_per_second: int = 128 << 20
    fast_path: bool = False
    """Whether the agent is told as soon as a threshold is met, as ``podqos node`` is."""


class ForecastView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    node: str
    growing: str
    threshold_bytes: int
    available_bytes: int
    """Before anything grows, as the kubelet counts."""
    report: ForecastReport
    """What ``podqos forecast`` says, at one rate, with the curve over all rates."""
    race: str
    """When memory runs out and when thresholds are met, in words."""
    as_it_is: tuple[CurvePoint, ...]
    """The curve with the node's own settings."""
    choices: tuple[str, ...]
    """What can grow, as ``namespace/name:container``: first what no limit of its own ends, most memory first."""
    verdict: str = ""
    """How the growth ends, as one sentence."""
    by_rate: str = ""
    """Who acts first at which growth rates."""
    chosen: str = ""
    """Why this container is shown where none was named, or that no growth can use up the node."""
    classes: dict[str, str] = {}
    """Of the pods that may die, by ``namespace/name``."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ForecastView"
