"""podqos: who is slowed, who is killed, in which order, and why.

``load`` reads files; ``explain``, ``admit``, ``place``, ``cpu``, ``rank``, ``forecast``, ``thresholds``, ``drift`` and
``advise`` answer as the commands of those names do, with the values that ``-o json`` prints (docs/library.md). Below
them are the decisions themselves: ``classify``, ``oom_scores``.

The public names are those in ``__all__``. They are loaded on first use, because the command line starts
faster when what it does not need is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podqos.admission.defaulting import defaulted
    from podqos.advice.sizing.description import DescribedWorkload
    from podqos.advice.sizing.effect import WorkloadAdvice
    from podqos.advice.sizing.matrix import Description
    from podqos.advice.sizing.node_settings import NodeNeeds
    from podqos.advice.sizing.samples import ContainerSamples
    from podqos.errors import InputError
    from podqos.eviction.ranking import Policy
    from podqos.eviction.signals import Layout, Signal
    from podqos.library.admit import admit
    from podqos.library.advise import advise, advise_node, advised_manifests
    from podqos.library.cpu import cpu
    from podqos.library.drift import drift
    from podqos.library.explain import ExplainOptions, explain
    from podqos.library.forecast import forecast
    from podqos.library.inputs.injecting import read_injectors
    from podqos.library.inputs.kubelet_node import Kubelet, load_kubelet
    from podqos.library.inputs.objects import FoundWorkload, Objects, load
    from podqos.library.inputs.versions import load_version
    from podqos.library.node_state import NodeState, kubelet_state, node_state, read_state
    from podqos.library.place import PlaceOptions, place
    from podqos.library.rank import rank
    from podqos.library.thresholds import thresholds
    from podqos.manifest.problems import Problem, Severity
    from podqos.manifest.reading import read
    from podqos.model.assumption import Assumption
    from podqos.model.kubelet_config import KubeletConfiguration
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.cgroup_settings import CgroupVersion
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.report.admission.value import AdmissionList, AdmissionReport
    from podqos.report.advice.value import AdviceReport
    from podqos.report.explain.explanation import Explanation, ExplanationList
    from podqos.report.placement.value import PlacementReport
    from podqos.report.survival.cpu import CpuReport
    from podqos.report.survival.drift import DriftReport
    from podqos.report.survival.forecast import ForecastReport
    from podqos.report.survival.ranking import RankReport
    from podqos.report.survival.thresholds import ThresholdsReport
    from podqos.survival.drift import Allowed, WorkloadDrift
    from podqos.survival.forecast import Forecast
    from podqos.survival.orders import both_orders
    from podqos.survival.places import EvictionPlace, KillPlace
    from podqos.survival.usage_file import UsageRow

__version__ = "0.1.0"

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "AdmissionList": "podqos.report.admission.value",
    "AdmissionReport": "podqos.report.admission.value",
    "AdviceReport": "podqos.report.advice.value",
    "Allowed": "podqos.survival.drift",
    "Assumption": "podqos.model.assumption",
    "CgroupVersion": "podqos.qos.cgroup_settings",
    "ContainerSamples": "podqos.advice.sizing.samples",
    "CpuReport": "podqos.report.survival.cpu",
    "DescribedWorkload": "podqos.advice.sizing.description",
    "Description": "podqos.advice.sizing.matrix",
    "DriftReport": "podqos.report.survival.drift",
    "EvictionPlace": "podqos.survival.places",
    "ExplainOptions": "podqos.library.explain",
    "Explanation": "podqos.report.explain.explanation",
    "ExplanationList": "podqos.report.explain.explanation",
    "Forecast": "podqos.survival.forecast",
    "ForecastReport": "podqos.report.survival.forecast",
    "FoundWorkload": "podqos.library.inputs.objects",
    "InputError": "podqos.errors",
    "KillPlace": "podqos.survival.places",
    "Kubelet": "podqos.library.inputs.kubelet_node",
    "KubeletConfiguration": "podqos.model.kubelet_config",
    "Layout": "podqos.eviction.signals",
    "NodeNeeds": "podqos.advice.sizing.node_settings",
    "NodeState": "podqos.library.node_state",
    "Objects": "podqos.library.inputs.objects",
    "PlaceOptions": "podqos.library.place",
    "PlacementReport": "podqos.report.placement.value",
    "Pod": "podqos.model.pod",
    "Policy": "podqos.eviction.ranking",
    "Problem": "podqos.manifest.problems",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "RankReport": "podqos.report.survival.ranking",
    "Severity": "podqos.manifest.problems",
    "Signal": "podqos.eviction.signals",
    "ThresholdsReport": "podqos.report.survival.thresholds",
    "UsageRow": "podqos.survival.usage_file",
    "WorkloadAdvice": "podqos.advice.sizing.effect",
    "WorkloadDrift": "podqos.survival.drift",
    "admit": "podqos.library.admit",
    "advise": "podqos.library.advise",
    "advise_node": "podqos.library.advise",
    "advised_manifests": "podqos.library.advise",
    "both_orders": "podqos.survival.orders",
    "classify": "podqos.qos.classes",
    "cpu": "podqos.library.cpu",
    "defaulted": "podqos.admission.defaulting",
    "drift": "podqos.library.drift",
    "explain": "podqos.library.explain",
    "forecast": "podqos.library.forecast",
    "kubelet_state": "podqos.library.node_state",
    "load": "podqos.library.inputs.objects",
    "load_kubelet": "podqos.library.inputs.kubelet_node",
    "load_version": "podqos.library.inputs.versions",
    "node_state": "podqos.library.node_state",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.library.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.library.rank",
    "read": "podqos.manifest.reading",
    "read_injectors": "podqos.library.inputs.injecting",
    "read_state": "podqos.library.node_state",
    "thresholds": "podqos.library.thresholds",
}

__all__ = [
    "AdmissionList",
    "AdmissionReport",
    "AdviceReport",
    "Allowed",
    "Assumption",
    "CgroupVersion",
    "ContainerSamples",
    "CpuReport",
    "DescribedWorkload",
    "Description",
    "DriftReport",
    "EvictionPlace",
    "ExplainOptions",
    "Explanation",
    "ExplanationList",
    "Forecast",
    "ForecastReport",
    "FoundWorkload",
    "InputError",
    "KillPlace",
    "Kubelet",
    "KubeletConfiguration",
    "Layout",
    "NodeNeeds",
    "NodeState",
    "Objects",
    "PlaceOptions",
    "PlacementReport",
    "Pod",
    "Policy",
    "Problem",
    "Profile",
    "Quantity",
    "RankReport",
    "Severity",
    "Signal",
    "ThresholdsReport",
    "UsageRow",
    "WorkloadAdvice",
    "WorkloadDrift",
    "__version__",
    "admit",
    "advise",
    "advise_node",
    "advised_manifests",
    "both_orders",
    "classify",
    "cpu",
    "defaulted",
    "drift",
    "explain",
    "forecast",
    "kubelet_state",
    "load",
    "load_kubelet",
    "load_version",
    "node_state",
    "oom_scores",
    "parse_version",
    "place",
    "pod_cgroups",
    "rank",
    "read",
    "read_injectors",
    "read_state",
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
