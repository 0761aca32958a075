"""What ``podqos explain`` says about all pods together: the cgroups above them, and the node's own processes."""

from __future__ import annotations

from podqos.answers.explanation import CgroupExplanation, NodeExplanation
from podqos.report.explain.lines import files_text
from podqos.report.text.components import component_table
from podqos.report.text.style import Style, columns
from podqos.wording import listed


def node_text(node: NodeExplanation, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the lines that follow those of the pods."""
    if node.cgroups:
        lines = [style.strong(f"Above the pods: {node.assumption}")]
        rows = [(cgroup.path or "–", files_text(cgroup), _reasons(cgroup)) for cgroup in node.cgroups]
        lines += columns(("CGROUP", "VALUES", "REASON"), rows, style, indent="  ")
        lines.append(f"  These are all directories under {_mounts(node)}.")
    else:
        lines = [
            "Above the pods: nothing. With cgroupsPerQOS: false, the kubelet creates no cgroups for classes and pods"
        ]
    return [*lines, "", *component_table(node.components, style)] if verbose else lines


def _mounts(node: NodeExplanation) -> str:
    """Return where the kernel shows the tree: once, or on cgroup v1 once for every controller."""
    controllers = {file.name.partition(".")[0] for cgroup in node.cgroups for file in cgroup.files}
    is_v1 = any(
        file.name in {"cpu.shares", "memory.limit_in_bytes"} for cgroup in node.cgroups for file in cgroup.files
    )
    return listed([f"/sys/fs/cgroup/{name}" for name in sorted(controllers)]) if is_v1 else "/sys/fs/cgroup"


def _reasons(cgroup: CgroupExplanation) -> str:
    return "; ".join(dict.fromkeys(file.reason for file in cgroup.files if file.value is not None))
