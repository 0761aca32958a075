"""podqos: who is slowed, who is killed, in which order, and why.

``load`` reads files; ``explain``, ``check``, ``admit``, ``place`` and ``cpu`` answer as the commands of those names do,
with the values that ``-o json`` prints (docs/library.md). Below them are the decisions themselves: ``classify``,
``oom_scores``.

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
    from podqos.errors import InputError
    from podqos.eviction.ranking import rank
    from podqos.library.admit import admit
    from podqos.library.check import check
    from podqos.library.checking.baseline import read_baseline
    from podqos.library.cpu import cpu
    from podqos.library.explain import ExplainOptions, explain
    from podqos.library.inputs.kubelet_node import Kubelet, load_kubelet
    from podqos.library.inputs.objects import FoundWorkload, Objects, load
    from podqos.library.place import PlaceOptions, place
    from podqos.manifest.problems import Problem, Severity
    from podqos.manifest.reading import read
    from podqos.model.assumption import Assumption
    from podqos.model.pod import Pod
    from podqos.model.profile import Profile, parse_version
    from podqos.model.quantity import Quantity
    from podqos.qos.cgroup import pod_cgroups
    from podqos.qos.classes import classify
    from podqos.qos.oom import oom_scores
    from podqos.report.admission.value import AdmissionList, AdmissionReport
    from podqos.report.check.value import CheckReport, FindingReport
    from podqos.report.explain.explanation import Explanation, ExplanationList
    from podqos.report.placement.value import PlacementReport
    from podqos.report.survival.cpu import CpuReport
    from podqos.report.text.encoding import json_bytes
    from podqos.survival.orders import both_orders

__version__ = "0.1.0"

# public name → the module that defines it
_PUBLIC: dict[str, str] = {
    "AdmissionList": "podqos.report.admission.value",
    "AdmissionReport": "podqos.report.admission.value",
    "Assumption": "podqos.model.assumption",
    "Baseline": "podqos.advice.checks.baseline",
    "CheckOptions": "podqos.advice.checks.bundle",
    "CheckReport": "podqos.report.check.value",
    "CheckSummary": "podqos.advice.checks.gate",
    "CpuReport": "podqos.report.survival.cpu",
    "ExplainOptions": "podqos.library.explain",
    "Explanation": "podqos.report.explain.explanation",
    "ExplanationList": "podqos.report.explain.explanation",
    "FailOn": "podqos.advice.checks.finding",
    "FindingReport": "podqos.report.check.value",
    "FindingSeverity": "podqos.advice.checks.finding",
    "FoundWorkload": "podqos.library.inputs.objects",
    "Gate": "podqos.advice.checks.gate",
    "Ignore": "podqos.advice.checks.configuration",
    "InputError": "podqos.errors",
    "Kubelet": "podqos.library.inputs.kubelet_node",
    "Objects": "podqos.library.inputs.objects",
    "Patch": "podqos.advice.checks.finding",
    "PlaceOptions": "podqos.library.place",
    "PlacementReport": "podqos.report.placement.value",
    "Pod": "podqos.model.pod",
    "Problem": "podqos.manifest.problems",
    "Profile": "podqos.model.profile",
    "Quantity": "podqos.model.quantity",
    "Severity": "podqos.manifest.problems",
    "admit": "podqos.library.admit",
    "both_orders": "podqos.survival.orders",
    "check": "podqos.library.check",
    "classify": "podqos.qos.classes",
    "cpu": "podqos.library.cpu",
    "defaulted": "podqos.admission.defaulting",
    "explain": "podqos.library.explain",
    "json_bytes": "podqos.report.text.encoding",
    "load": "podqos.library.inputs.objects",
    "load_kubelet": "podqos.library.inputs.kubelet_node",
    "oom_scores": "podqos.qos.oom",
    "parse_version": "podqos.model.profile",
    "place": "podqos.library.place",
    "pod_cgroups": "podqos.qos.cgroup",
    "rank": "podqos.eviction.ranking",
    "read": "podqos.manifest.reading",
    "read_baseline": "podqos.library.checking.baseline",
}

__all__ = [
    "AdmissionList",
    "AdmissionReport",
    "Assumption",
    "Baseline",
    "CheckOptions",
    "CheckReport",
    "CheckSummary",
    "CpuReport",
    "ExplainOptions",
    "Explanation",
    "ExplanationList",
    "FailOn",
    "FindingReport",
    "FindingSeverity",
    "FoundWorkload",
    "Gate",
    "Ignore",
    "InputError",
    "Kubelet",
    "Objects",
    "Patch",
    "PlaceOptions",
    "PlacementReport",
    "Pod",
    "Problem",
    "Profile",
    "Quantity",
    "Severity",
    "__version__",
    "admit",
    "both_orders",
    "check",
    "classify",
    "cpu",
    "defaulted",
    "explain",
    "json_bytes",
    "load",
    "load_kubelet",
    "oom_scores",
    "parse_version",
    "place",
    "pod_cgroups",
    "rank",
    "read",
    "read_baseline",
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
