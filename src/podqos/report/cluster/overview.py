"""``podqos overview``: nodes by headroom, who dies next on each, and what is wrong by namespace, as value and text."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.answers.node_figures import NextVictim, NodeOverview, Share
from podqos.answers.overview import Overview
from podqos.naming import stated_with
from podqos.report.text.style import Style, columns
from podqos.wording import counted, mebibytes
from podqos.words.headroom import bound_by, briefly

# People read a screenful; programs get everything.
_WIDE = stated_with("output", "wide")
_NODES_SHOWN = 20
_NAMESPACES_SHOWN = 12
_NAMES_SHOWN = 4


def wide(whole: Overview, style: Style) -> list[str]:
    """Return the overview with all nodes and namespaces, and all that is known of them."""
    return text(whole, style, is_wide=True)


def text(whole: Overview, style: Style, *, is_wide: bool = False) -> list[str]:
    """Return the overview as lines for one screen."""
    least = _least_headroom(whole)
    lines = [*([style.strong(least)] if least else []), headline(whole)]
    if whole.verdict:
        lines.append(style.alarm(whole.verdict))
    lines += ["", *_nodes(whole, style, is_wide=is_wide)]
    if whole.pending:
        lines += ["", f"{counted(len(whole.pending), 'pod')} without a node: {_some(whole.pending)}"]
    if whole.stored_otherwise:
        others = counted(len(whole.stored_otherwise), "pod")
        lines += [
            "",
            f"{others} whose stored class differs from what their resources give: {_some(whole.stored_otherwise)}",
        ]
    if any(namespace.objects or is_wide for namespace in whole.namespaces):
        lines += ["", *_namespaces(whole, style, is_wide=is_wide)]
    return lines


def _least_headroom(whole: Overview) -> str | None:
    """Return where headroom is least; None where it is not known of any node."""
    known = [(node.headroom_bytes, node.name, node) for node in whole.nodes if node.headroom_bytes is not None]
    if not known:
        return None
    left, name, node = min(known, key=lambda entry: entry[:2])
    qualified = _in_parentheses(briefly(node.headroom))
    if left < 0:
        return f"{name} is {mebibytes(-left)} past its eviction threshold{qualified}."
    return f"Least headroom: {name}, {mebibytes(left)}{qualified} before eviction."


def headline(whole: Overview) -> str:
    """Return how large the cluster is, and when that was."""
    pods = sum(whole.classes.values())
    classes = _classes(whole.classes)
    version = f"Kubernetes {whole.server_version}: " if whole.server_version else ""
    taken = f"; {whole.taken_at}" if whole.taken_at else ""
    return f"{version}{counted(len(whole.nodes), 'node')}, {counted(pods, 'pod')} ({classes}){taken}"


def _classes(classes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in classes.items())


def _nodes(whole: Overview, style: Style, *, is_wide: bool) -> Iterator[str]:
    shown = whole.nodes if is_wide else whole.nodes[:_NODES_SHOWN]
    rows = [
        (
            node.name,
            "?" if node.headroom_bytes is None else _headroom(node, node.headroom_bytes, style),
            f"{node.pods}/{node.most_pods}" if node.most_pods is not None else str(node.pods),
            _percent(node.memory.used_by_pods, node.memory.allocatable),
            _percent(node.memory.requests, node.memory.allocatable),
            _times(node.memory),
            _percent(node.cpu.requests, node.cpu.allocatable),
            *((_times(node.cpu), "–" if node.headroom is None else bound_by(node.headroom)) if is_wide else ()),
            _victim(node.next_evicted),
            _victim(node.next_killed),
            ", ".join(node.conditions),
        )
        for node in shown
    ]
    cpu = ("CPU REQUESTED", "CPU LIMITS", "EVICTS BY") if is_wide else ("CPU REQUESTED",)
    headers = ("NODE", "HEADROOM", "PODS", "MEMORY USED", "REQUESTED", "LIMITS", *cpu)
    yield from columns((*headers, "EVICTED NEXT", "KILLED NEXT", "CONDITIONS"), rows, style)
    if len(whole.nodes) > len(shown):
        yield style.faint(f"and {counted(len(whole.nodes) - len(shown), 'more node')} with more headroom ({_WIDE})")
    yield from (style.alarm(f"{node.name}: {node.problem}") for node in whole.nodes if node.problem)


def _namespaces(whole: Overview, style: Style, *, is_wide: bool) -> Iterator[str]:
    wrong = [namespace for namespace in whole.namespaces if namespace.objects or is_wide]
    shown = wrong if is_wide else wrong[:_NAMESPACES_SHOWN]
    rows = [
        (
            overview.namespace or "(cluster)",
            str(overview.score),
            str(overview.errors or "–"),
            str(overview.warnings or "–"),
            str(overview.objects or "–"),
            *((_classes(overview.classes) or "–",) if is_wide else ()),
        )
        for overview in shown
    ]
    headers = ("NAMESPACE", "SCORE", "ERRORS", "WARNINGS", "OBJECTS AFFECTED", *(("PODS",) if is_wide else ()))
    yield from columns(headers, rows, style)
    if len(wrong) > len(shown):
        yield style.faint(f"and {counted(len(wrong) - len(shown), 'more namespace')} ({_WIDE})")


def _headroom(node: NodeOverview, headroom_bytes: int, style: Style) -> str:
    """Return what is left until the kubelet evicts, and by what; or that the kernel kills before."""
    killed, remarks = node.kernel_left_bytes, [briefly(node.headroom)]
    if killed is not None and killed <= headroom_bytes:
        # In whole MiB, as thresholds are: the two amounts are compared.
        remarks.append(f"OOM kill after {_signed(killed >> 20 << 20, style)}")
    return f"{_signed(headroom_bytes, style)}{_in_parentheses(*remarks)}"


def _in_parentheses(*remarks: str) -> str:
    text = ", ".join(filter(None, remarks))
    return f" ({text})" if text else ""


def _signed(size_bytes: int, style: Style) -> str:
    return mebibytes(size_bytes) if size_bytes >= 0 else style.alarm(f"−{mebibytes(-size_bytes)}")


def _percent(part: int | None, whole: int) -> str:
    return "?" if part is None else f"{part / whole:.0%}" if whole else "–"


def _times(share: Share) -> str:
    return f"{share.limits / share.allocatable:.2f}×" if share.allocatable else "–"


def _victim(victim: NextVictim | None) -> str:
    return "–" if victim is None else victim.pod


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more
