"""``podqos rank`` as text and CSV: the two orders one below the other, and where they disagree.

Each function takes the documented value and returns lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from podqos.answers.places import EvictionPlace, KillPlace, NodeSummary, RankReport
from podqos.eviction.signals import Signal
from podqos.model.resources import MEMORY
from podqos.report.text.components import component_table
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.report.text.tables import csv_table as csv_of
from podqos.wording import counted, listed, mebibytes
from podqos.words.counterfactual import FATES, saving_words
from podqos.words.headroom import headroom_sentence
from podqos.words.ranking import amount, key_words

_BECAUSE = "REASON"
_POINTS = "SHARE + ADJ = POINTS"

_CSV: Mapping[str, Callable[[EvictionPlace, KillPlace | None], object]] = {
    "pod": lambda place, _: place.pod,
    "class": lambda place, _: place.qos_class,
    "priority": lambda place, _: place.priority,
    "eviction_place": lambda place, _: place.place,
    "kernel_place": lambda place, _: place.kernel_place,
    "usage": lambda place, _: place.usage,
    "request": lambda place, _: place.request,
    "evicted_before_next_by": lambda place, _: place.before_next_by,
    "spared": lambda place, _: place.spared,
    "oom_score_adj": lambda _, kill: kill and kill.oom_score_adj,
    "badness_bytes": lambda _, kill: kill and kill.badness_bytes,
    "killed_before_next_by": lambda _, kill: kill and kill.before_next_by,
    "share_points": lambda _, kill: kill and kill.share_points,
    "points": lambda _, kill: kill and kill.points,
}


def table(report: RankReport, style: Style, top: int | None = None) -> list[str]:
    """Return both orders, or the first ``top`` of each, and where they disagree."""
    threshold = "hard" if report.hard else "soft"
    where = "the machine" if report.node.oom_cgroup == "/" else report.node.oom_cgroup
    return [
        *wrapped(headline(report), style, ""),
        "",
        style.strong(f"Eviction order (kubelet), first to last: {report.signal}, {threshold}, policy {report.policy}"),
        *_evictions(report, style, top),
        "",
        style.strong(f"OOM kill order (kernel), first to last, when {where} runs out of memory"),
        *_kills(report, style, top),
        *(line for text in _without_process(report) for line in wrapped(text, style, "")),
        "",
        *_remedies(report, style),
        *component_table(report.components, style),
        "",
        *(line for text in _remarks(report) for line in wrapped(text, style, "")),
    ]


def headline(report: RankReport) -> str:
    """Return which pod is first in each order, among the pods that are shown."""
    evicted = next((place for place in report.eviction_order if not place.spared), None)
    killed = next(iter(report.kill_order), None) if report.resource == MEMORY else None
    # Others that are not shown may come before them.
    shown_before = 0 if evicted is None else report.eviction_order.index(evicted)
    is_first = (evicted is None or evicted.place == shown_before + 1) and (killed is None or killed.place == 1)
    among = "" if is_first else "Of the pods shown, "
    if killed is None:
        return f"{among}{evicted.pod} is evicted first." if evicted is not None else "No pod can be evicted."
    if evicted is None:
        return f"No pod can be evicted; {killed.pod} ({killed.container}) is OOM-killed first."
    if evicted.pod == killed.pod:
        return f"{among}{evicted.pod} is evicted first and OOM-killed first."
    return f"{among}{evicted.pod} is evicted first, {killed.pod} ({killed.container}) is OOM-killed first."


def wide(report: RankReport, style: Style, top: int | None = None) -> list[str]:
    """Return a line per pod, in the order of eviction, with its places in both orders and all that decides them."""
    first = {kill.pod: kill for kill in reversed(report.kill_order)}
    rows = []
    for place in report.eviction_order[:top]:
        kill = first.get(place.pod)
        rows.append((
            place.pod,
            style.qos_class(place.qos_class),
            str(place.priority),
            f"spared: {place.spared}" if place.spared else str(place.place),
            str(place.kernel_place or "–"),
            _uses(place, report.resource),
            amount(place.request, report.resource) if place.request else "–",
            kill.container if kill else "–",
            str(kill.oom_score_adj) if kill else "–",
            _signed(kill.badness_bytes) if kill else "–",
            key_words(place.before_next_by),
            str((kill and kill.before_next_by) or "–"),
        ))  # fmt: skip
    headers = ("POD", "CLASS", "PRIORITY", "EVICTED", "KILLED", "USES", "REQUESTS", "CONTAINER", "ADJ", "BADNESS")
    return columns((*headers, "EVICTED BY", "KILLED BY"), rows, style)


def csv_table(report: RankReport, top: int | None = None) -> tuple[Iterable[str], Iterator[list[object]]]:
    """Return headings and a row per pod, in the order of eviction; the kernel's figures are its first container's."""
    first = {kill.pod: kill for kill in reversed(report.kill_order)}
    shown = report.eviction_order[:top]
    return _CSV, ([column(place, first.get(place.pod)) for column in _CSV.values()] for place in shown)


def workload_table(report: RankReport, style: Style, top: int | None = None) -> list[str]:
    """Return a line per workload, in the order in which they lose a pod."""
    shown = report.workloads[:top]
    rows = [
        (
            str(number),
            f"{workload.kind} {workload.name}",
            ", ".join(map(style.qos_class, workload.qos_classes)),
            str(workload.pods),
            f"spared: {workload.spared}" if workload.spared else _places(workload.first_evicted, workload.last_evicted),
            _places(workload.first_killed, workload.last_killed),
        )
        for number, workload in enumerate(shown, 1)
    ]
    pods = sum(workload.pods for workload in report.workloads)
    threshold = "hard" if report.hard else "soft"
    title = f"Workloads by the first pod to be evicted: {report.signal}, {threshold}, policy {report.policy}"
    return [
        *wrapped(headline(report), style, ""),
        "",
        style.strong(title),
        *columns(("#", "WORKLOAD", "CLASS", "PODS", "EVICTED", "OOM-KILLED"), rows, style),
        *_rest(len(report.workloads) - len(shown), "workload"),
        "",
        *wrapped(f"Places of the first and last pod among {counted(pods, 'pod')}, in both kill orders.", style, ""),
    ]


def workload_csv(report: RankReport, top: int | None = None) -> Table:
    """Return headings, and a row per workload."""
    columns = ("kind", "name", "pods", "first_evicted", "last_evicted", "first_killed", "last_killed", "spared")
    return csv_of(report.workloads[:top], *columns)


def _places(first: int | None, last: int | None) -> str:
    if first is None:
        return "–"
    return str(first) if first == last else f"{first} … {last}"


def _rest(count: int, noun: str) -> list[str]:
    """Return how many are not shown."""
    return [f"… and {counted(count, f'more {noun}')}"] if count > 0 else []


def _evictions(report: RankReport, style: Style, top: int | None) -> list[str]:
    shown = report.eviction_order[:top]
    rows = [
        (
            str(place.place),
            place.pod,
            style.qos_class(place.qos_class),
            str(place.priority),
            _uses(place, report.resource),
            amount(place.request, report.resource) if place.request else "–",
            str(place.kernel_place or "–"),
            f"spared: {place.spared}" if place.spared else place.reason,
        )
        for place in shown
    ]
    lines = columns(("#", "POD", "CLASS", "PRIORITY", "USES", "REQUESTS", "KILLED #", _BECAUSE), rows, style)
    return lines + _rest(len(report.eviction_order) - len(shown), "pod")


def _kills(report: RankReport, style: Style, top: int | None) -> list[str]:
    shown = report.kill_order[:top]
    rows = [
        (
            str(kill.place),
            kill.pod,
            kill.container,
            style.qos_class(kill.qos_class),
            ("" if kill.processes == 1 else f"{kill.processes} × ") + _used(kill.used_bytes, kill.is_measured),
            _points(kill),
            _signed(kill.badness_bytes),
            str(kill.oom_score),
            str(kill.eviction_place),
            kill.reason,
        )
        for kill in shown
    ]
    headers = ("#", "POD", "CONTAINER", "CLASS", "USES", _POINTS, "BADNESS", "SCORE", "EVICTED #", _BECAUSE)
    return columns(headers, rows, style) + _rest(len(report.kill_order) - len(shown), "container")


def _remedies(report: RankReport, style: Style) -> Iterator[str]:
    """Yield what saves the first of each order, lines of YAML below what they change."""
    for remedies in report.remedies:
        who = remedies.pod if remedies.container is None else f"{remedies.pod} ({remedies.container})"
        yield style.strong(f"What saves {who}, the first to be {FATES[remedies.by]}")
        saving = [remedy for remedy in remedies.remedies if remedy.saves]
        for remedy in saving:
            yield from wrapped(saving_words(remedy), style, "    ", "  ")
            yield from (f"      {line}" for line in remedy.edits)
        if remedies.unknown:
            yield from wrapped(remedies.unknown, style, "    ", "  ")
        elif not saving:
            yield "  No tested change to its manifest, nor lower usage."
            yield from (
                line
                for remedy in remedies.remedies
                for line in wrapped(f"not: {saving_words(remedy)}", style, "    ", "  ")
            )
        yield ""


def _without_process(report: RankReport) -> Iterator[str]:
    """Yield which pods are in no order of the kernel's, and which containers of the others."""
    nothing_runs = {place.pod for place in report.eviction_order if place.kernel_place is None}
    reasons: dict[str, list[str]] = {}
    for container in report.without_process:
        name = container.pod if container.pod in nothing_runs else f"{container.container} of {container.pod}"
        reasons.setdefault(container.reason, []).append(name)
    for reason, names in reasons.items():
        because = f"the node reports {reason}" if reason else "no container has started"
        yield f"No process to kill{'' if reason else ' yet'}, because {because}: {listed([*dict.fromkeys(names)])}."


def _signed(size_bytes: int) -> str:
    return mebibytes(size_bytes) if size_bytes >= 0 else f"−{mebibytes(-size_bytes)}"


def _points(kill: KillPlace) -> str:
    """Return the reckoning of the badness in thousandths of the memory that ran out."""
    adjustment = f"{'−' if kill.oom_score_adj < 0 else '+'} {abs(kill.oom_score_adj)}"
    if not kill.is_measured:
        return f"? {adjustment}"
    return f"{kill.share_points:.1f} {adjustment} = {kill.points:.1f}".replace("-", "−")


def _uses(place: EvictionPlace, resource: str) -> str:
    if place.usage is not None:
        return amount(place.usage, resource)
    return "?" if place.kernel_place else "not running"


def _used(used_bytes: int, is_measured: bool) -> str:
    return mebibytes(used_bytes) if is_measured else "?"


def _agreement(report: RankReport) -> str:
    """Return that the orders agree, and why their places may differ all the same."""
    kernel = [place.kernel_place for place in report.eviction_order if place.kernel_place]
    if kernel == sorted(kernel):
        return "Both orders agree."
    return "Both orders agree; places differ only between pods that tie in one of them."


def _available(node: NodeSummary) -> str:
    """Return what the kubelet sees, for pods first where that decides."""
    of_machine = f"{_signed(node.available_bytes)} of {mebibytes(node.memory_bytes)}"
    of_pods, limit_bytes = node.pods_available_bytes, node.pods_memory_bytes
    is_of_pods = node.headroom is not None and node.headroom.signal is Signal.ALLOCATABLE_MEMORY
    if not is_of_pods or of_pods is None or limit_bytes is None:
        return f"The kubelet sees {of_machine} available."
    return (
        f"The kubelet sees {_signed(of_pods)} of {mebibytes(limit_bytes)} available to pods, "
        f"{of_machine} on the machine."
    )


def _remarks(report: RankReport) -> Iterator[str]:
    node = report.node
    if report.problem:
        what = f"{report.problem[0].upper()}{report.problem[1:]}"
        yield f"{what}: usage is assumed or stale. Both orders use it anyway."
    # In whole MiB, as headroom is: the two amounts are compared.
    kernel_left = node.kernel_left_bytes >> 20 << 20
    left = mebibytes(kernel_left) if kernel_left > 0 else "nothing"
    headroom = headroom_sentence(node.headroom)
    is_kernel_first = node.kernel_first and node.headroom is not None
    first = "As memory fills up, the kernel kills before the kubelet evicts. " if is_kernel_first else ""
    yield f"{first}{headroom} Headroom before an OOM kill: {left}. {_available(node)}"
    if not report.disagreements:
        yield "The orders disagree only about other pods." if report.reversed_pairs else _agreement(report)
        return
    pairs = f"{report.reversed_pairs} pair{'s' if report.reversed_pairs > 1 else ''}"
    listed_pairs = len(report.disagreements)
    only = "" if listed_pairs == report.reversed_pairs else f"; {listed_pairs} of them"
    yield f"The orders disagree about {pairs} of pods{only}:"
    for pair in report.disagreements:
        kubelet = f"the kubelet evicts {pair.evicted_first} before {pair.killed_first} ({pair.evicted_by})"
        if pair.spared is not None:
            kubelet = f"the kubelet evicts {pair.evicted_first} and never {pair.killed_first} ({pair.spared})"
        yield f"  {kubelet}, the kernel kills {pair.killed_first} first ({pair.killed_by})"
