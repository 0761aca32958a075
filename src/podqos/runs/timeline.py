"""A run for the terminal."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import groupby, islice
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.amounts import mebibytes, size, span, two_units
from podqos.eviction.signals import INODES, PIDS, SIGNALS, Signal
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import MINUTE_US, SECOND_US
from podqos.naming import stated_with
from podqos.runs.view import ClosestCall, EventView, Kill, NodeView, RunView, many, share_words
from podqos.sim.cpu_outcome import CpuOutcome
from podqos.sim.record import FREEING, UNTOLD
from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.text.journal import share
from podqos.text.saving import saving_words
from podqos.text.style import Style, columns, visible_length, wrapped
from podqos.text.tables import Table

# What the node reports meanwhile.
_BESIDE = (Kind.OBSERVED, Kind.CONDITION_CHANGED)
_FEWEST = 2


class _Event(Protocol):
    """What an event has to have."""

    @property
    def time_us(self) -> int: ...
    @property
    def kind(self) -> Kind: ...


E = TypeVar("E", bound=_Event)


class Again(Struct, frozen=True):
    """Evictions of a pod after the first one shown, with no events of other pods between them."""

    pod: str
    """Its first name."""
    times: int
    since_us: int
    """When the first one happened."""
    until_us: int
    first_away_us: int
    """From the first eviction until the pod ran again."""
    last_away_us: int
    """The same for its last return."""


def condensed(events: Sequence[E], first: Callable[[E], str | None]) -> Iterator[Sequence[E] | Again]:
    """Yield runs of events; a run in which one pod is evicted repeatedly becomes one ``Again``.

    ``first`` returns the first name of an event's pod.
    """
    start = at = 0
    while at < len(events):
        event, at = events[at], at + 1
        if event.kind is not Kind.EVICTED:
            continue
        pod = first(event)
        end = after = at
        while after < len(events) and (events[after].kind in _BESIDE or first(events[after]) == pod):
            after += 1
            if events[after - 1].kind is Kind.EVICTED:
                end = after
        rounds = events[at:end]
        if pod is not None and sum(event.kind is Kind.EVICTED for event in rounds) >= _FEWEST:
            yield events[start:at]
            yield _again(pod, event, rounds)
            start = at = end
    yield events[start:]


def _again(pod: str, told: E, rounds: Sequence[E]) -> Again:
    ended_us, away_us, times = told.time_us, [], 0
    for event in rounds:
        if event.kind is Kind.STARTED:
            away_us.append(event.time_us - ended_us)
        elif event.kind is Kind.EVICTED:
            ended_us, times = event.time_us, times + 1
    return Again(pod, times, told.time_us, ended_us, away_us[0] if away_us else 0, away_us[-1] if away_us else 0)


def again(repetition: Again) -> str:
    """Return that a pod was evicted repeatedly."""
    return f"{repetition.pod.partition('/')[2]} came back and was evicted {repetition.times} more times"


def away(repetition: Again) -> str:
    """Return how long the pod was away between evictions."""
    first, last = (f"{us / SECOND_US:g} s" for us in (repetition.first_away_us, repetition.last_away_us))
    return f"away for {first} each time" if first == last else f"away for {first} at first, {last} at the end"


CSV_HEADINGS = (
    "slowed",
    "cpu_wanted_seconds",
    "cpu_granted_seconds",
    "cpu_denied_seconds",
    "least_share",
    "mean_share",
    "slowdown",
    "throttled_periods",
    "work_done",
    "work_unfinished",
    "work_taken_seconds",
    "work_alone_seconds",
)
"""One for every field of ``CpuOutcome``."""


def csv_cells(cpu: CpuOutcome | None) -> Sequence[object]:
    """Return the cells of a workload; those of one that got all it wanted are empty."""
    if cpu is None:
        return 0, *(None for _ in CSV_HEADINGS[1:])
    values = ((name, getattr(cpu, name)) for name in cpu.__struct_fields__)
    return tuple(value / SECOND_US if name.endswith("_us") else value for name, value in values)


def cpu_table(summary: RunSummary, style: Style) -> list[str]:
    """Return a row for each workload that was short of CPU or had work to do."""
    rows = [(row, row.cpu) for row in summary.workloads if row.cpu is not None]
    if not rows:
        return []
    has_periods, has_work = (
        any(cpu.throttled_periods for _, cpu in rows),
        any(cpu.work_done + cpu.work_unfinished for _, cpu in rows),
    )
    headers = ["WORKLOAD", "SHORT OF CPU", "CPU WANTED", "GRANTED", "DENIED", "LEAST SHARE", "MEAN SHARE"]
    headers += [
        *(["THROTTLED PERIODS"] if has_periods else []),
        "SLOWDOWN",
        *(["WORK DONE", "TOOK", "ALONE"] if has_work else []),
    ]
    return columns(headers, [_row(row, cpu, has_periods, has_work) for row, cpu in rows], style)


def _row(row: WorkloadSummary, cpu: CpuOutcome, has_periods: bool, has_work: bool) -> list[str]:
    return [
        row.workload,
        f"{cpu.slowed}/{row.pods}",
        *map(cpu_seconds, (cpu.wanted_us, cpu.granted_us)),
        cpu_seconds(cpu.denied_us) if cpu.denied_us else "–",
        *map(share_words, (cpu.least_share, cpu.mean_share)),
        *([f"{cpu.throttled_periods:,}" if cpu.throttled_periods else "–"] if has_periods else []),
        "no progress" if cpu.slowdown is None else f"{cpu.slowdown:,.3g}×",
        *(_work(cpu) if has_work else []),
    ]


def _work(cpu: CpuOutcome) -> list[str]:
    """Return how often work was done, how long that took on average, and how long it takes alone."""
    works = cpu.work_done + cpu.work_unfinished
    spans = (
        f"{time_us / cpu.work_done / SECOND_US:,.1f} s" if time_us else "–"
        for time_us in (cpu.work_taken_us, cpu.work_alone_us)
    )
    return [f"{cpu.work_done}/{works}" if works else "–", *spans]


def cpu_seconds(time_us: int) -> str:
    """Return an amount of CPU time: ``60 cpu-s``, ``1.5 cpu-s``."""
    seconds = time_us / SECOND_US
    return f"{seconds:,.0f} cpu-s" if seconds >= 100 or seconds == round(seconds) else f"{seconds:.3g} cpu-s"


_BAR_COLUMNS = 16
# On a narrower terminal there is no bar, so that the events have room.
_WIDE = 100
# With less room than this an event goes on below its time.
_LEAST_COLUMNS = 24
_MOST_LINES = 400
_REPEATED_SHOWN = 3
# From this many on, workloads that fared the same are one row.
_ALIKE = 4
# Less than one part in so many left is a near miss: where nothing else happened, and where something did.
_NEAR_ALONE, _NEAR = 4, 8
_NUMBERS = re.compile(r"\d+")
_TOGETHER = {Kind.STARTED: "started", Kind.THROTTLED: "short of CPU", Kind.DELETED: "deleted", Kind.LOST: "lost"}
_AS_BEFORE = FREEING | {Kind.LOST}
_KILLS = (Kind.OOM_KILLED, Kind.EVICTED)
_COUNTED = {INODES: "inodes", PIDS: "pids"}
_CSV_NAMES = {"qos_class": "class", "downtime_us": "downtime_seconds", "throttled_us": "cpu_short_seconds"}
_SIGNS = {By.KERNEL: "◆", By.KUBELET: "●"}


def timeline(view: RunView, style: Style) -> list[str]:
    """Return the whole report."""
    return [
        *heading(view, style),
        *_cluster(view, style),
        *(line for node in view.nodes for line in _node(view, node, style)),
        *ending(view, style),
    ]


def csv_table(summary: RunSummary) -> Table:
    """Return headings, and a row per workload: its fields, with times in seconds."""
    names = [name for name in WorkloadSummary.__struct_fields__ if name != "cpu"]
    headings = [*(_CSV_NAMES.get(name, name) for name in names), *CSV_HEADINGS]
    return headings, (
        (
            *(getattr(row, name) / SECOND_US if name.endswith("_us") else getattr(row, name) for name in names),
            *csv_cells(row.cpu),
        )
        for row in summary.workloads
    )


def seconds(time_us: int, digits: int = 3) -> str:
    """Return a time as text: ``1.000 s``, ``12 min 5.0 s``, ``3 h 20 min``."""
    if time_us < 2 * MINUTE_US:
        return f"{time_us / SECOND_US:.{digits}f} s"
    minutes, rest_us = divmod(time_us, MINUTE_US)
    if minutes < 120 and rest_us == 0:
        return f"{minutes} min"
    if minutes < 120:
        return f"{minutes} min {rest_us / SECOND_US:.{min(digits, 1)}f} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def heading(view: RunView, style: Style) -> list[str]:
    """Return what ran, and the outcome."""
    facts = (
        seconds(view.end_us, 0) if view.end_us % SECOND_US == 0 else seconds(view.end_us),
        f"seed {view.seed}",
        f"Kubernetes {view.kubernetes_version}",
        f"{view.policy} ranking",
    )
    lines = [f"{style.strong(view.name)}  {style.faint(' · '.join(facts))}"]
    lines += map(style.strong, wrapped(view.headline, style, ""))
    if view.closest is not None and _is_told(view.closest, view.summary):
        lines += wrapped(_near_miss(view.closest), style, "")
    if view.description:
        lines += wrapped(view.description, style, "")
    return lines


def _is_told(closest: ClosestCall, summary: RunSummary) -> bool:
    """Whether it was a near miss."""
    parts = _NEAR_ALONE if summary.untouched == summary.pods else _NEAR
    return closest.available_bytes * parts < closest.memory_bytes


def _near_miss(closest: ClosestCall) -> str:
    left, threshold = size(_whole(closest.available_bytes)), size(_whole(closest.threshold_bytes))
    when = seconds(closest.time_us, 0)
    return f"Closest: {closest.node}, {left} left at {when} (evictions or OOM kills below {threshold})."


def _whole(amount_bytes: int) -> int:
    """Return an amount without what is less than a mebibyte."""
    return amount_bytes - amount_bytes % 2**20


# ---- the cluster -----------------------------------------------------------------------------------------------------


def _cluster(view: RunView, style: Style) -> list[str]:
    """Return what happened to workloads as a whole, and to pods that no node has seen.

    On a single node that stands among what happened there.
    """
    seen = _seen_on(view, {node.name for node in view.nodes})
    events = [event for event in view.events if not event.node and not _is_about(event, seen)]
    if not events or len(view.nodes) == 1:
        return []
    width = max(len(seconds(event.time_us)) for event in events)
    body = [
        line
        for time_us, together in groupby(events, key=lambda event: event.time_us)
        for number, event in enumerate(together)
        for line in _block(f"{'' if number else seconds(time_us):>{width}}  ", (event.text,), " " * (width + 4), style)
    ]
    return ["", style.strong("cluster"), *style.shown(body, _MOST_LINES)]


def _seen_on(view: RunView, nodes: Container[str]) -> set[str]:
    """Return the pods to which something happened on some nodes, and the first ones of those that replaced others."""
    events = [event for event in view.events if event.node in nodes]
    return {pod for event in events for pod in (event.pod, event.first_pod) if pod is not None}


def _is_about(event: EventView, pods: Container[str]) -> bool:
    """Whether an event is about one of some pods, or about what replaces one."""
    return event.pod in pods or event.first_pod in pods


# ---- one node --------------------------------------------------------------------------------------------------------


def _node(view: RunView, node: NodeView, style: Style) -> list[str]:
    lead = Signal.MEMORY.value if node.panels[0] == MEMORY else node.panels[0]
    thresholds = ", ".join(threshold.statement for threshold in node.thresholds if threshold.signal == lead)
    facts = f"{mebibytes(node.memory_bytes)}, {node.cpu_milli / 1000:g} cores" + (
        f"; {thresholds}" if thresholds else ""
    )
    lines = ["", f"{style.strong(node.name)}  {style.faint(facts)}"]
    body = [line for block in _blocks(view, node, style) for line in block]
    shown = style.shown(body, _MOST_LINES)
    lines += shown
    if len(shown) < len(body):
        left_out = len(body) - len(shown)
        lines.append(style.faint(f"… and {left_out:,} more lines; {stated_with('output', 'wide')} has everything"))
    return lines


def _blocks(view: RunView, node: NodeView, style: Style) -> Iterator[list[str]]:
    kills = _listed_once([kill for kill in view.kills if kill.node == node.name], view)
    is_alone = len(view.nodes) == 1
    seen = _seen_on(view, {node.name})
    events = [
        event
        for event in view.events
        if (event.node == node.name or (not event.node and (is_alone or _is_about(event, seen))))
        and event.kind not in UNTOLD
    ]
    # Whoever cuts a run short wants to see that moment.
    ends = [view.end_us] if any(change.startswith("spec.duration=") for change in view.changes) else []
    width = max((len(seconds(time_us)) for time_us in (*ends, *(event.time_us for event in events))), default=0)

    def start(time_us: int, *, before: bool) -> str:
        return f"{seconds(time_us).rjust(width)}  {_gauge(node, time_us, style, before=before)}  "

    for part in condensed(events, lambda event: event.first_pod or event.pod):
        if isinstance(part, Again):
            deque(islice(kills, part.times), maxlen=0)
            what = style.alarm(f"{_SIGNS[By.KUBELET]} {again(part)}")
            since = f"Since {seconds(part.since_us, 1)}; {away(part)}."
            yield _block(start(part.until_us, before=True), (what, since), " " * (width + 4), style)
            continue
        for time_us, together in groupby(part, key=lambda event: event.time_us):
            each = list(together)
            beginning = start(time_us, before=any(event.kind in _AS_BEFORE for event in each))
            for texts in _told(each, kills, style):
                yield _block(beginning, texts, " " * (width + 4), style)
                beginning = " " * visible_length(beginning)
    for time_us in ends:
        yield _block(start(time_us, before=False), ("the run ends",), " " * (width + 4), style)


def _listed_once(kills: Sequence[Kill], view: RunView) -> Iterator[Kill]:
    """Yield kills, a workload's later ones without what would have saved them: that is said of its first."""
    workloads = {pod.key: pod.workload for pod in view.pods}
    seen = set[str]()
    for kill in kills:
        workload = workloads.get(kill.pod, kill.pod)
        yield replace(kill, savings=()) if workload in seen else kill
        seen.add(workload)


def _told(events: Sequence[EventView], kills: Iterator[Kill], style: Style) -> Iterator[list[str]]:
    """Yield what happened at one time: lines, each with those that explain it."""
    for (kind, is_over), alike in groupby(events, key=lambda event: (event.kind, event.is_over)):
        each = list(alike)
        if kind in _KILLS:
            yield from (_killed(next(kills, None), event, style) for event in each)
        elif kind in _TOGETHER and len(each) > 1:
            names = dict.fromkeys(event.pod.partition("/")[2] for event in each if event.pod is not None)
            yield [f"{'no longer ' if is_over else ''}{_TOGETHER[kind]}: {', '.join(names)}"]
        else:
            yield from ([event.text] for event in each)


def _killed(kill: Kill | None, event: EventView, style: Style) -> list[str]:
    if kill is None:  # one of very many
        return [event.text]
    places = [
        f"{who} #{place}"
        for who, place in (("OOM kill order", kill.kernel_place), ("eviction order", kill.kubelet_place))
        if place is not None
    ]
    rank = style.faint(f"  {', '.join(places)}") if places else ""
    told = [(saving.saves, saving_words(saving)) for saving in kill.savings]
    saved = [text for saves, text in told if saves]
    saved = [f"{'or' if at else 'saved'} by: {text}" for at, text in enumerate(saved)] or [
        f"not saved by: {text}" for _, text in told[:1]
    ]
    return [
        f"{kill_title(kill, style)}{rank}",
        *kill.reasons,
        *saved,
    ]


def kill_title(kill: Kill, style: Style) -> str:
    """Return who was killed or evicted, by whom, and its class."""
    qos_class = f" ({style.qos_class(kill.qos_class)})" if kill.qos_class is not None else ""
    return f"{style.alarm(f'{_SIGNS[kill.by]} {kill.title}')}{qos_class}"


def _block(start: str, texts: Sequence[str], indent: str, style: Style) -> list[str]:
    column = visible_length(start)
    is_wide = style.width is None or style.width - column >= _LEAST_COLUMNS
    first = wrapped(texts[0], style, " " * column if is_wide else indent, start)
    return [*map(str.rstrip, first), *(line for text in texts[1:] for line in wrapped(text, style, indent))]


def _gauge(node: NodeView, time_us: int, style: Style, *, before: bool) -> str:
    """Return a bar of what the node's story is about, and what is left of it, just ``before`` an event or after it."""
    times = node.times_us
    if not times:
        return ""
    at = bisect_left(times, time_us) if before else bisect_right(times, time_us) - 1
    used, words, is_short = _measured(node, min(max(at, 0), len(times) - 1), time_us)
    full = round(_BAR_COLUMNS * min(1.0, used))
    is_wide = style.width is None or style.width >= _WIDE
    bar = "█" * full + "░" * (_BAR_COLUMNS - full) + " " if is_wide else ""
    return style.alarm(f"{bar}{words}") if is_short else f"{bar}{words}"


def _measured(node: NodeView, index: int, time_us: int) -> tuple[float, str, bool]:
    """Return the share in use, what is left in words, and whether that is too little, at a moment or soon after it."""
    lead = node.panels[0]
    if lead == CPU:
        wanted = sum(pod.cpu_wanted_milli[index] or 0 for pod in node.pods)
        granted = sum(pod.cpu_granted_milli[index] or 0 for pod in node.pods)
        return granted / node.cpu_milli, f"{f'{wanted / 1000:g}':>6} cores wanted", wanted > granted
    series = next((signal for signal in node.signals if signal.signal == lead), None)
    signal = Signal.MEMORY if series is None else series.signal
    lefts, capacity = (node.available_bytes, node.memory_bytes) if series is None else (series.left, series.capacity)
    left, resource = max(0, _on_the_way(lefts, node.times_us, index, time_us)), SIGNALS[signal].resource
    whole = size(_whole(left)) if left >= 2**20 else "nothing"
    words = f"{left:,}" if resource in _COUNTED else whole
    tightest = max((threshold.amount for threshold in node.thresholds if threshold.signal == signal), default=0)
    what = "" if signal is Signal.MEMORY else f"{_COUNTED.get(resource, 'disk')} "
    return 1 - left / capacity, f"{words:>8} {what}left", left < tightest


def _on_the_way(column: Sequence[int], times: Sequence[int], index: int, time_us: int) -> int:
    """Return an amount at a time after a moment: between two moments everything is linear."""
    one, passed_us = column[index], time_us - times[index]
    if passed_us <= 0 or index + 1 == len(times):
        return one
    return one + (column[index + 1] - one) * passed_us // (times[index + 1] - times[index])


# ---- the end ---------------------------------------------------------------------------------------------------------


def ending(view: RunView, style: Style) -> list[str]:
    """Return how it ended."""
    summary = view.summary
    lines = []
    by = {"OOM kills by limit reached": summary.oom_kills_by_level, "evictions by signal": summary.evictions_by_signal}
    for what, counts in by.items():
        if counts:
            lines.append(f"{what}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
    lines += _repeated(summary)
    hidden = summary.nodes - len(view.nodes)
    if not view.nodes and hidden:
        for victims in view.worth_showing or ():
            taken = [(victims.oom_kills, "OOM kill"), (victims.evictions, "eviction")]
            lines.append(f"{victims.node}: {', '.join(many(count, what) for count, what in taken if count)}")
        lines.append(f"{summary.nodes:,} nodes; {stated_with('node', 'NAME')} shows one")
    elif hidden > 0:
        another = f"{stated_with('node', 'NAME')} shows another"
        lines.append(f"{len(view.nodes)} of {summary.nodes:,} nodes are shown above; {another}")
    rows = [
        (
            _names(alike),
            style.qos_class(row.qos_class),
            f"{row.priority}",
            f"{row.untouched}/{row.pods}",
            *([_some(row.never_ran)] if summary.never_ran else []),
            _some(row.oom_kills),
            _some(row.evictions),
            _some(row.restarts),
            _span(row.downtime_us),
            _span(row.throttled_us),
            *([_some(row.refused)] if summary.refused else []),
        )
        for alike in _alike(summary.workloads, style)
        for row in (alike[0],)
    ]
    never_ran = ["NEVER RAN"] if summary.never_ran else []
    refused = ["DENIED"] if summary.refused else []
    figures = ("UNAFFECTED", *never_ran, "OOM KILLS", "EVICTED", "RESTARTS", "DOWN", "CPU SHORT", *refused)
    headers = ("WORKLOAD", "CLASS", "PRIORITY", *figures)
    cpu = cpu_table(summary, style)
    tables = ["", *columns(headers, rows, style), *([""] if cpu else []), *cpu, *_services(summary, style)]
    return [*tables, *([""] if lines else []), *lines]


def _services(summary: RunSummary, style: Style) -> list[str]:
    """Return what became of requests, one line per service."""
    if not summary.services:
        return []
    rows = [
        (
            service.workload,
            f"{service.requests:,}",
            share(service.errors, service.requests) if service.errors else "–",
            f"{service.highest_utilisation_permille / 10:.0f} %",
            "–" if service.worst_p99_us is None else span(service.worst_p99_us),
            two_units(service.worst_p99_at_us),
            _span(service.overloaded_us),
        )
        for service in summary.services
    ]
    headers = ("SERVICE", "REQUESTS", "ERRORS", "PEAK UTILISATION", "WORST P99", "AT", "OVERLOADED")
    return ["", *columns(headers, rows, style)]


def _alike(rows: Sequence[WorkloadSummary], style: Style) -> list[Sequence[WorkloadSummary]]:
    """Return workloads, many of a namespace that fared the same together, where the first of them is.

    Those whose names differ by a number only come first; others have to be more.
    """
    if style.is_wide:
        return [[row] for row in rows]
    placed: dict[str, Sequence[WorkloadSummary]] = {}
    for least, kin in ((_ALIKE, _family), (2 * _ALIKE, _namespace)):
        groups: dict[WorkloadSummary, list[WorkloadSummary]] = {}
        for row in rows:
            if row.workload not in placed:
                groups.setdefault(replace(row, workload=kin(row.workload)), []).append(row)
        placed |= {row.workload: group for group in groups.values() if len(group) >= least for row in group}
    parts = (placed.get(row.workload, (row,)) for row in rows)
    return [part for row, part in zip(rows, parts, strict=True) if part[0] is row]


def _family(workload: str) -> str:
    return _NUMBERS.sub("0", workload)


def _namespace(workload: str) -> str:
    return workload.partition("/")[0]


def _names(alike: Sequence[WorkloadSummary]) -> str:
    """Return the name of a workload, or the first and the last of many, and how many they are."""
    first = alike[0].workload
    return first if len(alike) == 1 else f"{first} … {alike[-1].workload.partition('/')[2]} × {len(alike)}"


def _repeated(summary: RunSummary) -> Iterator[str]:
    for eviction in summary.repeated_evictions[:_REPEATED_SHOWN]:
        when = f"from {seconds(eviction.first_us, 1)} to {seconds(eviction.last_us, 1)}"
        yield f"evicted repeatedly: {eviction.pod} {eviction.times:,} times, {when}"
    more = len(summary.repeated_evictions) - _REPEATED_SHOWN
    if more > 0:
        yield f"evicted repeatedly: {many(more, 'more pod')}"


def _some(count: int) -> str:
    return f"{count:,}" if count else "–"


def _span(time_us: int) -> str:
    return seconds(time_us, 1) if time_us else "–"
