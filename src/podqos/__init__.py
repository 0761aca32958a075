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
    from podqos.agent.journal import Entry
    from podqos.errors import InputError
    from podqos.eviction.ranking import Policy, rank
    from podqos.library.blast_radius import blast
    from podqos.library.inputs.scenario_files import InvalidScenario, ScenarioReading, load_scenario, read_scenario
    from podqos.library.rehearsal import Rehearsed, rehearse
    from podqos.library.simulation import Run, simulate
    from podqos.library.sweeping import sweep
    from podqos.manifest.reading import read
    from podqos.model.kubelet_config import KubeletConfiguration
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.model.snapshot import Snapshot
    from podqos.placement.place import place
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.report.simulation.view import RunView
    from podqos.sim.blast import BlastRadius
    from podqos.sim.scenario.scenario import Scenario
    from podqos.sim.summary import RunSummary
    from podqos.sim.sweep import Sweep
    from podqos.sim.variation import Variation
    from podqos.survival.orders import both_orders
    from podqos.version import __version__

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "BlastRadius": "podqos.sim.blast",
    "Entry": "podqos.agent.journal",
    "InputError": "podqos.errors",
    "InvalidScenario": "podqos.library.inputs.scenario_files",
    "KubeletConfiguration": "podqos.model.kubelet_config",
    "Pod": "podqos.model.pod",
    "Policy": "podqos.eviction.ranking",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "Rehearsed": "podqos.library.rehearsal",
    "Run": "podqos.library.simulation",
    "RunSummary": "podqos.sim.summary",
    "RunView": "podqos.report.simulation.view",
    "Scenario": "podqos.sim.scenario.scenario",
    "ScenarioReading": "podqos.library.inputs.scenario_files",
    "Snapshot": "podqos.model.snapshot",
    "Sweep": "podqos.sim.sweep",
    "Variation": "podqos.sim.variation",
    "__version__": "podqos.version",
    "admit": "podqos.admission.chain",
    "blast": "podqos.library.blast_radius",
    "both_orders": "podqos.survival.orders",
    "classify": "podqos.qos.classes",
    "defaulted": "podqos.admission.defaulting",
    "load_scenario": "podqos.library.inputs.scenario_files",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.placement.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.eviction.ranking",
    "read": "podqos.manifest.reading",
    "read_scenario": "podqos.library.inputs.scenario_files",
    "rehearse": "podqos.library.rehearsal",
    "simulate": "podqos.library.simulation",
    "sweep": "podqos.library.sweeping",
}

__all__ = [
    "BlastRadius",
    "Entry",
    "InputError",
    "InvalidScenario",
    "KubeletConfiguration",
    "Pod",
    "Policy",
    "Profile",
    "Quantity",
    "Rehearsed",
    "Run",
    "RunSummary",
    "RunView",
    "Scenario",
    "ScenarioReading",
    "Snapshot",
    "Sweep",
    "Variation",
    "__version__",
    "admit",
    "blast",
    "both_orders",
    "classify",
    "defaulted",
    "load_scenario",
    "oom_scores",
    "parse_version",
    "place",
    "pod_cgroups",
    "rank",
    "read",
    "read_scenario",
    "rehearse",
    "simulate",
    "sweep",
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
