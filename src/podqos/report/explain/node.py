"""What ``podqos explain`` says about all pods together: the cgroups above them, and the node's own processes."""

from __future__ import annotations

from podqos.qos.cgroup import tier_cgroups
from podqos.report.explain.explanation import CgroupExplanation, NodeExplanation, cgroup_explanation
from podqos.report.explain.lines import files_text
from podqos.report.text.components import component_table
from podqos.report.text.style import Style, columns
from podqos.survival.components import components
from podqos.survival.decision import ExplainSettings
from podqos.survival.pod_sets import PodSet
from podqos.wording import listed, mebibytes


def explain_node(pods: PodSet, settings: ExplainSettings) -> NodeExplanation:
    """Return what the pods mean for the node, in the documented shape."""
    return NodeExplanation(
        pods=pods.pods,
        assumption=_assumption(pods, settings),
        cgroups=tuple(map(cgroup_explanation, tier_cgroups(pods.requests, settings.cgroups, settings.profile))),
        components=components(settings.kubelet_oom_score_adj, settings.machine_bytes),
    )


def node_text(node: NodeExplanation, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the lines that follow those of the pods."""
    if node.cgroups:
        lines = [style.strong(f"Above the pods: {node.assumption}")]
        rows = [(each.path or "–", files_text(each), _reasons(each)) for each in node.cgroups]
        lines += columns(("CGROUP", "VALUES", "BECAUSE"), rows, style, indent="  ")
        lines.append(f"  All of these are directories below {_mounts(node)}.")
    else:
        lines = ["Above the pods: nothing; with cgroupsPerQOS: false the kubelet makes no cgroups for classes and pods"]
    return [*lines, "", *component_table(node.components, style)] if verbose else lines


def _assumption(pods: PodSet, settings: ExplainSettings) -> str:
    node = f"node of {mebibytes(settings.node_memory_bytes)}"
    if pods.pods == 1:
        return f"one pod alone on a {node}"
    elsewhere = f" (they run on {len(pods.nodes)})" if len(pods.nodes) > 1 else ""
    count = f"all {pods.pods}" if pods.pods else "no"
    return f"{count} pods on one {node}{elsewhere}, one of each workload"


def _mounts(node: NodeExplanation) -> str:
    """Return where the kernel shows the tree: once, or on cgroup v1 once for every controller."""
    controllers = {file.name.partition(".")[0] for each in node.cgroups for file in each.files}
    is_v1 = any(file.name in {"cpu.shares", "memory.limit_in_bytes"} for each in node.cgroups for file in each.files)
    return listed([f"/sys/fs/cgroup/{name}" for name in sorted(controllers)]) if is_v1 else "/sys/fs/cgroup"


def _reasons(cgroup: CgroupExplanation) -> str:
    return "; ".join(dict.fromkeys(file.reason for file in cgroup.files if file.value is not None))
