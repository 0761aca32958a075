"""What ``podqos explain`` says once about all pods together: the cgroups above them, for the pods at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.model.pod import Workload
from podqos.qos.cgroup import tier_cgroups
from podqos.qos.cgroup_tiers import TierRequests, tier_requests
from podqos.qos.oom import component_scores
from podqos.report.explain.decision import Decision, Settings
from podqos.report.explain.explanation import CgroupExplanation, NodeExplanation, cgroup_explanation
from podqos.report.explain.lines import files_text
from podqos.report.text.components import component_reports, component_table
from podqos.report.text.style import Style, columns
from podqos.wording import mebibytes

_POD = "Pod"
_ENDED = ("Succeeded", "Failed")


class PodSet(Struct, frozen=True):
    """Pods that are taken to be on one node."""

    pods: int = 0
    requests: TierRequests = TierRequests()
    nodes: frozenset[str] = frozenset()
    """The nodes on which they run now."""

    def plus(self, other: PodSet) -> PodSet:
        """Return all pods of both."""
        return PodSet(self.pods + other.pods, self.requests.plus(other.requests), self.nodes | other.nodes)


class PodSets(Struct, frozen=True):
    """The pods of some files, told apart by where they come from."""

    written: PodSet = PodSet()
    """One pod of each manifest."""
    running: PodSet = PodSet()
    """Pods of a cluster."""
    controllers: PodSet = PodSet()
    """One pod of each controller of a cluster: what its pods are made from."""

    def plus(self, other: PodSets) -> PodSets:
        """Return all pods of both."""
        return PodSets(
            self.written.plus(other.written),
            self.running.plus(other.running),
            self.controllers.plus(other.controllers),
        )

    @property
    def counted(self) -> PodSet:
        """Every pod once: where a list of a cluster has pods, its controllers add nothing."""
        return self.written.plus(self.running if self.running.pods else self.controllers)


def pod_sets(workloads: Iterable[Workload], decisions: Iterable[Decision], settings: Settings) -> PodSets:
    """Return the pods behind decisions, without those that have ended."""
    pairs = [pair for pair in zip(workloads, decisions, strict=True) if pair[1].pod.status.phase not in _ENDED]
    return PodSets(
        _pod_set([decision for workload, decision in pairs if not workload.is_live], settings),
        _pod_set([decision for workload, decision in pairs if workload.is_live and workload.kind == _POD], settings),
        _pod_set([decision for workload, decision in pairs if workload.is_live and workload.kind != _POD], settings),
    )


def _pod_set(decisions: Sequence[Decision], settings: Settings) -> PodSet:
    pods = [decision.pod for decision in decisions]
    nodes = frozenset(pod.spec.node_name for pod in pods if pod.spec.node_name)
    return PodSet(len(pods), tier_requests(pods, settings.profile), nodes)


def explain_node(pods: PodSet, settings: Settings) -> NodeExplanation:
    """Render what follows for the node into the documented shape."""
    return NodeExplanation(
        pods=pods.pods,
        assumption=_assumption(pods, settings),
        cgroups=tuple(map(cgroup_explanation, tier_cgroups(pods.requests, settings.cgroups))),
        components=component_reports(component_scores(settings.kubelet_oom_score_adj), settings.machine_bytes),
    )


def node_text(node: NodeExplanation, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the lines that follow those of the pods."""
    if node.cgroups:
        lines = [style.strong(f"Above the pods: {node.assumption}")]
        rows = [(each.path or "–", files_text(each), _reasons(each)) for each in node.cgroups]
        lines += columns(("CGROUP", "VALUES", "BECAUSE"), rows, style, indent="  ")
    else:
        lines = ["Above the pods: nothing; with cgroupsPerQOS: false the kubelet makes no cgroups for classes and pods"]
    return [*lines, "", *component_table(node.components, style)] if verbose else lines


def _assumption(pods: PodSet, settings: Settings) -> str:
    node = f"node of {mebibytes(settings.node_memory_bytes)}"
    if pods.pods == 1:
        return f"one pod alone on a {node}"
    elsewhere = f" (they run on {len(pods.nodes)})" if len(pods.nodes) > 1 else ""
    count = f"all {pods.pods}" if pods.pods else "no"
    return f"{count} pods on one {node}{elsewhere}, one of each workload"


def _reasons(cgroup: CgroupExplanation) -> str:
    return "; ".join(dict.fromkeys(file.reason for file in cgroup.files if file.value is not None))
