"""``podqos place`` as text and CSV: how full the nodes are, where pods are placed, what is pending and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podqos.answers.placement import NodeReport, OvercommitReport, PendingReport, PlacementReport
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.naming import stated_with
from podqos.placement.outcome import Status
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.wording import mebibytes
from podqos.words.placement_reasons import reason_words, rounded_amount

# People read a screenful; programs get everything.
_NODES_SHOWN = 40
_OVERCOMMIT_SHOWN = 20
_WORKLOADS_SHOWN = 60
_PLACES_SHOWN = 6
_OVER_BUDGET_SHOWN = 5
_PENDING_SHOWN = 12
_REASONS_SHOWN = 8
_SCORES_SHOWN = 5


def text(whole: PlacementReport, style: Style, *, verbose: bool = False) -> list[str]:
    """Return the whole report as lines; ``verbose`` also with the scores that decided."""
    lines = [_headline(whole), "", *_node_table(whole.nodes, style)]
    lines += ["", *_overcommit_table(whole.nodes, style), *_over_budget(whole.nodes, style)]
    lines += ["", *_workload_table(whole, style)]
    for title, part in (
        ("Pending", _pending_lines(whole.pending, style)),
        ("Displaced", [f"  {d.pod} was preempted on {d.node} by {d.by}" for d in whole.displaced]),
        ("Scores", _score_lines(whole, style) if verbose else []),
        ("Soft thresholds", _soft_lines(whole, style)),
        ("Memory ceilings by class (qosReserved)", _ceiling_lines(whole.nodes, style)),
    ):
        if part:
            lines += ["", style.strong(title), *part]
    return lines


def _headline(whole: PlacementReport) -> str:
    counts = Counter(pod.status for pod in whole.pods)
    on_nodes = counts[Status.PLACED] + counts[Status.BOUND]
    words = [f"{on_nodes:,} of {len(whole.pods):,} pods are placed on {_number(len(whole.nodes), 'node')}"]
    others = (
        Status.PENDING,
        Status.GATED,
        Status.DISPLACED,
        Status.FINISHED,
        Status.ELSEWHERE,
    )
    words += [f"{counts[status]:,} {status.lower()}" for status in others if counts[status]]
    return "; ".join(words)


def _node_table(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    rows = [
        (
            node.name,
            f"{node.pods}/{node.allowed_pods}",
            *(cell for resource in ("cpu", "memory") for cell in (_used(node, resource), _left(node, resource))),
        )
        for node in style.shown(nodes, _NODES_SHOWN)
    ]
    headers = ("NODE", "PODS", "CPU", "LEFT", "MEMORY", "LEFT")
    return columns(headers, rows, style) + _more(len(nodes) - len(rows), "node")


def _used(node: NodeReport, resource: str) -> str:
    used, of = node.requested.get(resource, "0"), node.allocatable.get(resource, "0")
    return f"{used} of {of} ({node.fullness.get(resource, 0.0):.0%})"


def _left(node: NodeReport, resource: str) -> str:
    left = node.remaining.get(resource, "0")
    return f"−{_told(resource, left[1:])}" if left.startswith("-") else _told(resource, left)


def _told(resource: str, text: str) -> str:
    """Return an amount of the report as people read it."""
    return rounded_amount(MEMORY, Quantity.parse(text).value) if resource == MEMORY else text


def _overcommit_table(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """Return the three ratios of each node, a line per resource; the name only once."""
    shown = style.shown(nodes, _OVERCOMMIT_SHOWN)
    rows = [
        (
            "" if number else node.name,
            resource,
            _told(resource, report.limits),
            _against_budget(report, style),
            _times(report.limits_to_requests),
            f"{_times(report.others_limits_to_what_guaranteed_leave)} of {_told(resource, report.guaranteed_leave)}",
            str(report.pods_without_limit or "–"),
        )
        for node in shown
        for number, (resource, report) in enumerate(node.overcommit.items())
    ]
    header = ("NODE", "LIMITS", "SUM", "÷ ALLOCATABLE", "÷ REQUESTS", "OTHERS ÷ REST", "NO LIMIT")
    lines = columns(header, rows, style) + _more(len(nodes) - len(shown), "node")
    return lines + [style.faint(line) for line in wrapped(_OTHERS, style, "  ")]


_OTHERS = "others ÷ rest: limits of all but Guaranteed pods ÷ what Guaranteed pods leave"


def _against_budget(overcommit: OvercommitReport, style: Style) -> str:
    words = _times(overcommit.limits_to_allocatable)
    return style.strong(f"{words} > {overcommit.budget:g}×") if overcommit.exceeds_budget else words


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def _over_budget(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """List the nodes over budget, with the pods that contribute most."""
    told = []
    for node in nodes:
        for resource, overcommit in node.overcommit.items():
            if overcommit.exceeds_budget:
                who = ", ".join(f"{pod} by {beyond}" for pod, beyond in overcommit.largest_beyond_request.items())
                told.append(f"{node.name}: {resource} limits over budget; furthest above their requests: {who}")
    shown = style.shown(told, _OVER_BUDGET_SHOWN)
    lines = [line for words in shown for line in wrapped(words, style, "  ")]
    return ["", *lines, *_more(len(told) - len(shown), "more", " over budget")] if told else []


def _workload_table(whole: PlacementReport, style: Style) -> list[str]:
    homes: dict[tuple[str, str], Counter[str]] = {}
    for pod in whole.pods:
        homes.setdefault((pod.namespace, pod.workload), Counter())[pod.node or f"({pod.status.lower()})"] += 1
    rows = [
        (namespace, workload, str(sum(places.values())), _where(places, style))
        for (namespace, workload), places in style.shown(list(homes.items()), _WORKLOADS_SHOWN)
    ]
    lines = columns(("NAMESPACE", "WORKLOAD", "PODS", "WHERE"), rows, style)
    return lines + _more(len(homes) - len(rows), "workload")


def _score_lines(whole: PlacementReport, style: Style) -> list[str]:
    """Return, for the first placed pod of each workload, what every plugin gave the best nodes."""
    firsts = {(pod.namespace, pod.workload): pod for pod in reversed(whole.pods) if pod.scores}
    if not firsts:
        return ["  too many pods and nodes to compare, or no choice"]
    lines = []
    shown = style.shown(list(firsts.values())[::-1], _WORKLOADS_SHOWN)
    for pod in shown:
        lines.append(f"  {pod.namespace}/{pod.name}")
        best = sorted(pod.scores, key=lambda score: -score.total)
        shown_scores = style.shown(best, _SCORES_SHOWN)
        for score in shown_scores:
            points = ", ".join(f"{plugin} {number}" for plugin, number in score.points.items())
            lines += wrapped(f"{score.node}: {score.total} ({points})", style, "    ")
        lines += [f"  {line}" for line in _more(len(best) - len(shown_scores), "node")]
        if pod.equally_good:
            told = f"{_number(len(pod.equally_good), 'node')} equally good; the real scheduler picks one at random"
            lines += wrapped(told, style, "    ")
    return lines + _more(len(firsts) - len(shown), "workload")


def _pending_lines(pending: Sequence[PendingReport], style: Style) -> list[str]:
    lines = []
    shown = style.shown(pending, _PENDING_SHOWN)
    for group in shown:
        lines.append(f"  {', '.join(group.workloads)}: {_number(len(group.pods), 'pod')}")
        said = [group.message or "reasons not computed: too many"]
        if group.nobody_matches:
            said.append("its required pod affinity matches no pod")
        elif group.circle:
            said.append(f"circular affinity: {' → '.join((*group.circle, group.circle[0]))}")
        elif group.waits_for:
            said.append(f"it waits for {', '.join(group.waits_for)}, which is also pending")
        lines += [line for words in said for line in wrapped(words, style, "    ")]
        lines += [f"      {words}" for words in _by_words(group, style)]
    return lines + _more(len(pending) - len(shown), "kind", " of pending pods")


def _by_words(group: PendingReport, style: Style) -> list[str]:
    """Return the reasons, grouped by nodes with the same ones."""
    nodes: dict[str, list[str]] = {}
    for refusal in group.nodes:
        nodes.setdefault("; ".join(map(reason_words, refusal.reasons)), []).append(refusal.node)
    shown = style.shown(list(nodes.items()), _REASONS_SHOWN)
    more = _more(len(nodes) - len(shown), "more reason", " with other numbers")
    return [*(f"{_few(names)}: {words}" for words, names in shown), *(line.strip() for line in more)]


def _soft_lines(whole: PlacementReport, style: Style) -> list[str]:
    lines = []
    for soft in whole.soft_thresholds:
        allocatable, threshold, usable = (
            mebibytes(amount.value) for amount in (soft.allocatable, soft.soft, soft.usable_before_soft)
        )
        told = (
            f"pods may request {allocatable} of {soft.resource}, but the soft threshold of {threshold} is crossed once "
            f"they use {usable}: systemReserved should cover the threshold too"
        )
        lines += wrapped(told, style, "  ")
    return lines


def _ceiling_lines(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    """Return the memory left to the lower classes, grouped by equal ceilings."""
    names: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for node in nodes:
        if node.memory_ceilings:
            names.setdefault(tuple(node.memory_ceilings.items()), []).append(node.name)
    told = [
        f"{_few(own)}: {', '.join(f'{name} {mebibytes(Quantity.parse(text).value)}' for name, text in ceilings)}"
        for ceilings, own in names.items()
    ]
    shown = style.shown(told, _NODES_SHOWN)
    lines = [line for words in shown for line in wrapped(words, style, "  ")]
    return lines + _more(len(told) - len(shown), "more", " with other ceilings")


def _where(places: Counter[str], style: Style) -> str:
    told = [place if number == 1 else f"{place} ×{number}" for place, number in places.items()]
    shown = style.shown(told, _PLACES_SHOWN)
    more = len(told) - len(shown)
    return ", ".join(shown) + (f" and {_number(more, 'more node')}" if more > 0 else "")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({_number(len(names), 'node')})"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 or what == 'more' else 's'}"


def _more(count: int, what: str, rest: str = "") -> list[str]:
    return [f"  … and {_number(count, what)}{rest}; {stated_with('output', 'wide')} has them all"] if count > 0 else []


def csv_rows(whole: PlacementReport) -> Table:
    """Return headings, and a row per pod: its fields and why it waits."""
    messages = {key: group.message or "" for group in whole.pending for key in group.pods}
    return ("namespace", "pod", "workload", "status", "node", "message"), (
        (
            pod.namespace,
            pod.name,
            pod.workload,
            pod.status,
            pod.node or "",
            messages.get(f"{pod.namespace}/{pod.name}", ""),
        )
        for pod in whole.pods
    )
