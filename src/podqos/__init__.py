"""podqos: who is slowed, who is killed, in which order, and why.

``load`` reads files; ``explain``, ``admit``, ``place`` and ``cpu`` answer as the commands of those names do, with the
values that ``-o json`` prints (docs/library.md). Below them are the decisions themselves: ``classify``, ``oom_scores``.

The public names are those in ``__all__``. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podqos.admission.defaulting import defaulted
    from podqos.agent.journal import Entry
    from podqos.errors import InputError
    from podqos.eviction.ranking import Policy, rank
    from podqos.library.admit import admit
    from podqos.library.blast_radius import blast
    from podqos.library.cpu import cpu
    from podqos.library.explain import ExplainOptions, explain
    from podqos.library.inputs.kubelet_node import Kubelet, load_kubelet
    from podqos.library.inputs.objects import FoundWorkload, Objects, load
    from podqos.library.inputs.scenario_files import InvalidScenario, ScenarioReading, load_scenario, read_scenario
    from podqos.library.place import PlaceOptions, place
    from podqos.library.rehearsal import Rehearsed, rehearse
    from podqos.library.simulation import Run, simulate
    from podqos.library.sweeping import sweep
    from podqos.manifest.problems import Problem, Severity
    from podqos.manifest.reading import read
    from podqos.model.assumption import Assumption
    from podqos.model.kubelet_config import KubeletConfiguration
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.model.snapshot import Snapshot
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.report.admission.value import AdmissionList, AdmissionReport
    from podqos.report.explain.explanation import Explanation, ExplanationList
    from podqos.report.placement.value import PlacementReport
    from podqos.report.simulation.view import RunView
    from podqos.report.survival.cpu import CpuReport
    from podqos.sim.blast import BlastRadius
    from podqos.sim.scenario.scenario import Scenario
    from podqos.sim.summary import RunSummary
    from podqos.sim.sweep import Sweep
    from podqos.sim.variation import Variation
    from podqos.survival.orders import both_orders
    from podqos.version import __version__

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "AdmissionList": "podqos.report.admission.value",
    "AdmissionReport": "podqos.report.admission.value",
    "Assumption": "podqos.model.assumption",
    "BlastRadius": "podqos.sim.blast",
    "CpuReport": "podqos.report.survival.cpu",
    "Entry": "podqos.agent.journal",
    "ExplainOptions": "podqos.library.explain",
    "Explanation": "podqos.report.explain.explanation",
    "ExplanationList": "podqos.report.explain.explanation",
    "FoundWorkload": "podqos.library.inputs.objects",
    "InputError": "podqos.errors",
    "InvalidScenario": "podqos.library.inputs.scenario_files",
    "Kubelet": "podqos.library.inputs.kubelet_node",
    "KubeletConfiguration": "podqos.model.kubelet_config",
    "Objects": "podqos.library.inputs.objects",
    "PlaceOptions": "podqos.library.place",
    "PlacementReport": "podqos.report.placement.value",
    "Pod": "podqos.model.pod",
    "Policy": "podqos.eviction.ranking",
    "Problem": "podqos.manifest.problems",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "Rehearsed": "podqos.library.rehearsal",
    "Run": "podqos.library.simulation",
    "RunSummary": "podqos.sim.summary",
    "RunView": "podqos.report.simulation.view",
    "Scenario": "podqos.sim.scenario.scenario",
    "ScenarioReading": "podqos.library.inputs.scenario_files",
    "Severity": "podqos.manifest.problems",
    "Snapshot": "podqos.model.snapshot",
    "Sweep": "podqos.sim.sweep",
    "Variation": "podqos.sim.variation",
    "__version__": "podqos.version",
    "admit": "podqos.library.admit",
    "blast": "podqos.library.blast_radius",
    "both_orders": "podqos.survival.orders",
    "classify": "podqos.qos.classes",
    "cpu": "podqos.library.cpu",
    "defaulted": "podqos.admission.defaulting",
    "explain": "podqos.library.explain",
    "load": "podqos.library.inputs.objects",
    "load_kubelet": "podqos.library.inputs.kubelet_node",
    "load_scenario": "podqos.library.inputs.scenario_files",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.library.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.eviction.ranking",
    "read": "podqos.manifest.reading",
    "read_scenario": "podqos.library.inputs.scenario_files",
    "rehearse": "podqos.library.rehearsal",
    "simulate": "podqos.library.simulation",
    "sweep": "podqos.library.sweeping",
}

__all__ = [
    "AdmissionList",
    "AdmissionReport",
    "Assumption",
    "BlastRadius",
    "CpuReport",
    "Entry",
    "ExplainOptions",
    "Explanation",
    "ExplanationList",
    "FoundWorkload",
    "InputError",
    "InvalidScenario",
    "Kubelet",
    "KubeletConfiguration",
    "Objects",
    "PlaceOptions",
    "PlacementReport",
    "Pod",
    "Policy",
    "Problem",
    "Profile",
    "Quantity",
    "Rehearsed",
    "Run",
    "RunSummary",
    "RunView",
    "Scenario",
    "ScenarioReading",
    "Severity",
    "Snapshot",
    "Sweep",
    "Variation",
    "__version__",
    "admit",
    "blast",
    "both_orders",
    "classify",
    "cpu",
    "defaulted",
    "explain",
    "load",
    "load_kubelet",
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
