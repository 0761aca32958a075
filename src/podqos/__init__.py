"""podqos: who is slowed, who is killed, in which order, and why.

The public names are those in ``__all__``. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podqos.admission.chain import admit
    from podqos.admission.defaulting import defaulted
    from podqos.eviction.ranking import rank
    from podqos.manifest.reading import read
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.placement.place import place
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.survival.orders import both_orders

__version__ = "0.1.0"

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "Pod": "podqos.model.pod",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "admit": "podqos.admission.chain",
    "both_orders": "podqos.survival.orders",
    "classify": "podqos.qos.classes",
    "defaulted": "podqos.admission.defaulting",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.placement.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.eviction.ranking",
    "read": "podqos.manifest.reading",
}

__all__ = [
    "Pod",
    "Profile",
    "Quantity",
    "__version__",
    "admit",
    "both_orders",
    "classify",
    "defaulted",
    "oom_scores",
    "parse_version",
    "place",
    "pod_cgroups",
    "rank",
    "read",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'podqos' has no attribute {name!r}") from None
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
