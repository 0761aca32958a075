"""podqos: who is slowed, who is killed, in which order, and why.

``load`` reads files; ``explain``, ``check``, ``rank`` and the rest answer as the commands of those names do, with the
values that ``-o json`` prints (docs/library.md). Below them are the decisions themselves: ``classify``, ``oom_scores``.

The public names are those in ``__all__``. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podqos.admission.defaulting import defaulted
    from podqos.advice.checks.baseline import Baseline
    from podqos.advice.checks.bundle import CheckOptions
    from podqos.advice.checks.configuration import Ignore
    from podqos.advice.checks.finding import FailOn, FindingSeverity, Patch
    from podqos.advice.checks.gate import CheckSummary, Gate
    from podqos.advice.sizing.description import DescribedWorkload
    from podqos.advice.sizing.effect import WorkloadAdvice
    from podqos.advice.sizing.matrix import Description
    from podqos.advice.sizing.node_settings import NodeNeeds
    from podqos.advice.sizing.samples import ContainerSamples
    from podqos.agent.journal import Entry
    from podqos.errors import InputError
    from podqos.eviction.ranking import Policy
    from podqos.eviction.signals import Layout, Signal
    from podqos.library.admit import admit
    from podqos.library.advise import advise, advise_node, advised_manifests
    from podqos.library.blast_radius import blast
    from podqos.library.check import check
    from podqos.library.checking.baseline import read_baseline
    from podqos.library.cpu import cpu
    from podqos.library.drift import drift
    from podqos.library.explain import ExplainOptions, explain
    from podqos.library.forecast import forecast
    from podqos.library.inputs.files import Rendering
    from podqos.library.inputs.injecting import read_injectors
    from podqos.library.inputs.kubelet_node import Kubelet, load_kubelet
    from podqos.library.inputs.objects import FoundWorkload, Objects, load
    from podqos.library.inputs.scenario_files import InvalidScenario, ScenarioReading, load_scenario, read_scenario
    from podqos.library.inputs.versions import load_version
    from podqos.library.node_state import NodeState, kubelet_state, node_state, read_state
    from podqos.library.place import PlaceOptions, place
    from podqos.library.rank import rank
    from podqos.library.rehearsal import Rehearsed, rehearse
    from podqos.library.simulation import Run, simulate
    from podqos.library.sweeping import sweep
    from podqos.library.thresholds import thresholds
    from podqos.manifest.problems import Problem, Severity
    from podqos.manifest.reading import read
    from podqos.model.assumption import Assumption
    from podqos.model.kubelet_config import KubeletConfiguration
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.model.snapshot import Snapshot
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.cgroup_settings import CgroupVersion
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.report.admission.value import AdmissionList, AdmissionReport
    from podqos.report.advice.value import AdviceReport
    from podqos.report.check.value import CheckReport, FindingReport
    from podqos.report.explain.explanation import Explanation, ExplanationList
    from podqos.report.placement.value import PlacementReport
    from podqos.report.simulation.view import RunView
    from podqos.report.survival.cpu import CpuReport
    from podqos.report.survival.drift import DriftReport
    from podqos.report.survival.forecast import ForecastReport
    from podqos.report.survival.ranking import RankReport
    from podqos.report.survival.thresholds import ThresholdsReport
    from podqos.report.text.encoding import json_bytes
    from podqos.sim.blast import BlastRadius
    from podqos.sim.scenario.scenario import Scenario
    from podqos.sim.summary import RunSummary
    from podqos.sim.sweep import Sweep
    from podqos.sim.variation import Variation
    from podqos.survival.drift import Allowed, WorkloadDrift
    from podqos.survival.forecast import Forecast
    from podqos.survival.orders import both_orders
    from podqos.survival.places import EvictionPlace, KillPlace
    from podqos.survival.usage_file import UsageRow
    from podqos.version import __version__

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "AdmissionList": "podqos.report.admission.value",
    "AdmissionReport": "podqos.report.admission.value",
    "AdviceReport": "podqos.report.advice.value",
    "Allowed": "podqos.survival.drift",
    "Assumption": "podqos.model.assumption",
    "Baseline": "podqos.advice.checks.baseline",
    "BlastRadius": "podqos.sim.blast",
    "CgroupVersion": "podqos.qos.cgroup_settings",
    "CheckOptions": "podqos.advice.checks.bundle",
    "CheckReport": "podqos.report.check.value",
    "CheckSummary": "podqos.advice.checks.gate",
    "ContainerSamples": "podqos.advice.sizing.samples",
    "CpuReport": "podqos.report.survival.cpu",
    "DescribedWorkload": "podqos.advice.sizing.description",
    "Description": "podqos.advice.sizing.matrix",
    "DriftReport": "podqos.report.survival.drift",
    "Entry": "podqos.agent.journal",
    "EvictionPlace": "podqos.survival.places",
    "ExplainOptions": "podqos.library.explain",
    "Explanation": "podqos.report.explain.explanation",
    "ExplanationList": "podqos.report.explain.explanation",
    "FailOn": "podqos.advice.checks.finding",
    "FindingReport": "podqos.report.check.value",
    "FindingSeverity": "podqos.advice.checks.finding",
    "Forecast": "podqos.survival.forecast",
    "ForecastReport": "podqos.report.survival.forecast",
    "FoundWorkload": "podqos.library.inputs.objects",
    "Gate": "podqos.advice.checks.gate",
    "Ignore": "podqos.advice.checks.configuration",
    "InputError": "podqos.errors",
    "InvalidScenario": "podqos.library.inputs.scenario_files",
    "KillPlace": "podqos.survival.places",
    "Kubelet": "podqos.library.inputs.kubelet_node",
    "KubeletConfiguration": "podqos.model.kubelet_config",
    "Layout": "podqos.eviction.signals",
    "NodeNeeds": "podqos.advice.sizing.node_settings",
    "NodeState": "podqos.library.node_state",
    "Objects": "podqos.library.inputs.objects",
    "Patch": "podqos.advice.checks.finding",
    "PlaceOptions": "podqos.library.place",
    "PlacementReport": "podqos.report.placement.value",
    "Pod": "podqos.model.pod",
    "Policy": "podqos.eviction.ranking",
    "Problem": "podqos.manifest.problems",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "RankReport": "podqos.report.survival.ranking",
    "Rendering": "podqos.library.inputs.files",
    "Rehearsed": "podqos.library.rehearsal",
    "Run": "podqos.library.simulation",
    "RunSummary": "podqos.sim.summary",
    "RunView": "podqos.report.simulation.view",
    "Scenario": "podqos.sim.scenario.scenario",
    "ScenarioReading": "podqos.library.inputs.scenario_files",
    "Severity": "podqos.manifest.problems",
    "Signal": "podqos.eviction.signals",
    "Snapshot": "podqos.model.snapshot",
    "Sweep": "podqos.sim.sweep",
    "ThresholdsReport": "podqos.report.survival.thresholds",
    "UsageRow": "podqos.survival.usage_file",
    "Variation": "podqos.sim.variation",
    "WorkloadAdvice": "podqos.advice.sizing.effect",
    "WorkloadDrift": "podqos.survival.drift",
    "__version__": "podqos.version",
    "admit": "podqos.library.admit",
    "advise": "podqos.library.advise",
    "advise_node": "podqos.library.advise",
    "advised_manifests": "podqos.library.advise",
    "blast": "podqos.library.blast_radius",
    "both_orders": "podqos.survival.orders",
    "check": "podqos.library.check",
    "classify": "podqos.qos.classes",
    "cpu": "podqos.library.cpu",
    "defaulted": "podqos.admission.defaulting",
    "drift": "podqos.library.drift",
    "explain": "podqos.library.explain",
    "forecast": "podqos.library.forecast",
    "json_bytes": "podqos.report.text.encoding",
    "kubelet_state": "podqos.library.node_state",
    "load": "podqos.library.inputs.objects",
    "load_kubelet": "podqos.library.inputs.kubelet_node",
    "load_scenario": "podqos.library.inputs.scenario_files",
    "load_version": "podqos.library.inputs.versions",
    "node_state": "podqos.library.node_state",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.library.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.library.rank",
    "read": "podqos.manifest.reading",
    "read_baseline": "podqos.library.checking.baseline",
    "read_injectors": "podqos.library.inputs.injecting",
    "read_scenario": "podqos.library.inputs.scenario_files",
    "read_state": "podqos.library.node_state",
    "rehearse": "podqos.library.rehearsal",
    "simulate": "podqos.library.simulation",
    "sweep": "podqos.library.sweeping",
    "thresholds": "podqos.library.thresholds",
}

__all__ = [
    "AdmissionList",
    "AdmissionReport",
    "AdviceReport",
    "Allowed",
    "Assumption",
    "Baseline",
    "BlastRadius",
    "CgroupVersion",
    "CheckOptions",
    "CheckReport",
    "CheckSummary",
    "ContainerSamples",
    "CpuReport",
    "DescribedWorkload",
    "Description",
    "DriftReport",
    "Entry",
    "EvictionPlace",
    "ExplainOptions",
    "Explanation",
    "ExplanationList",
    "FailOn",
    "FindingReport",
    "FindingSeverity",
    "Forecast",
    "ForecastReport",
    "FoundWorkload",
    "Gate",
    "Ignore",
    "InputError",
    "InvalidScenario",
    "KillPlace",
    "Kubelet",
    "KubeletConfiguration",
    "Layout",
    "NodeNeeds",
    "NodeState",
    "Objects",
    "Patch",
    "PlaceOptions",
    "PlacementReport",
    "Pod",
    "Policy",
    "Problem",
    "Profile",
    "Quantity",
    "RankReport",
    "Rehearsed",
    "Rendering",
    "Run",
    "RunSummary",
    "RunView",
    "Scenario",
    "ScenarioReading",
    "Severity",
    "Signal",
    "Snapshot",
    "Sweep",
    "ThresholdsReport",
    "UsageRow",
    "Variation",
    "WorkloadAdvice",
    "WorkloadDrift",
    "__version__",
    "admit",
    "advise",
    "advise_node",
    "advised_manifests",
    "blast",
    "both_orders",
    "check",
    "classify",
    "cpu",
    "defaulted",
    "drift",
    "explain",
    "forecast",
    "json_bytes",
    "kubelet_state",
    "load",
    "load_kubelet",
    "load_scenario",
    "load_version",
    "node_state",
    "oom_scores",
    "parse_version",
    "place",
    "pod_cgroups",
    "rank",
    "read",
    "read_baseline",
    "read_injectors",
    "read_scenario",
    "read_state",
    "rehearse",
    "simulate",
    "sweep",
    "thresholds",
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
