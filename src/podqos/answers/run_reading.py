"""Turn a run and the recordings of its nodes into the value that is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import CPUThrottled, OOMKill, ThrottledBy
from podqos.answers.palette import shade
from podqos.answers.places import EvictionPlace, KillPlace, rank_report
from podqos.answers.run_assumptions import of_run
from podqos.answers.run_story import Reach, RunSpan, drawn_until_us, story
from podqos.answers.run_view import ClosestCall, ContainerView, EventView, Kill, NodeView, PodView, RunView
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.qos.oom import oom_scores
from podqos.sim.hindsight import DeathHindsight, WholeRecord, hindsights, noted_hindsights
from podqos.sim.node.notes import UNTOLD, NodeNotes
from podqos.sim.node.recording import NodeRecord, ThresholdLine
from podqos.sim.recorded_node import RecordedNode, recorded_nodes
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.second_run import run_again
from podqos.sim.series import (
    EvictionRank,
    KernelRank,
    OrdersView,
    PodSeries,
    condition_spans,
    moments_of_orders,
    noted_series,
    pod_series,
    signal_series,
    workload_cpu,
)
from podqos.sim.summary import RunSummary, first_pods, outage_ends, run_summary
from podqos.survival.orders.orders import both_orders
from podqos.survival.orders.outlook import outlook
from podqos.words.counterfactual import Telling, kubelet_in_time, saving
from podqos.words.journal import cause, line, reasons, subject, verb
from podqos.words.outcome import affected_words, headline
from podqos.words.qos import oom_rule
from podqos.words.ranking import amount

Rank = TypeVar("Rank", EvictionRank, KernelRank)

_MOST_EVENTS = 5000
_CLASSES = tuple(QOSClass)
# What a picture does not end before.
_TOLD = frozenset({Kind.OOM_KILLED, Kind.EVICTED, Kind.RECLAIMED, Kind.OBSERVED, Kind.LOST})


def run_view(run: FinishedRun, records: Mapping[str, NodeRecord]) -> RunView:
    """Return what is shown of a run; ``records`` are those of the nodes to show, in that order."""
    nodes = recorded_nodes(run, records)
    pods = tuple(pod for node in nodes.values() for pod in _pods(node))
    of_shown = [entry for entry in run.entries if entry.node in nodes or not entry.node]
    kills = tuple(_kill(found, nodes[found.entry.node]) for found in run_again(run, hindsights(of_shown, nodes)))
    firsts, summary = first_pods(of_shown), run_summary(run)
    ends = outage_ends(run, of_shown)
    return replace(
        _outcome(run, summary),
        pods=pods,
        nodes=tuple(
            _with_story(
                _node(
                    node,
                    {pod.key: index for index, pod in enumerate(pods) if pod.node == name},
                    of_shown,
                    [kill for kill in kills if kill.node == name],
                ),
                [entry for entry in of_shown if entry.node == name],
                [end_us for pod, end_us in ends.items() if pod in node.record.pods],
                RunSpan(int(run.end_us), tuple(kill.time_us for kill in kills if kill.node == name)),
            )
            for name, node in nodes.items()
        ),
        kills=kills,
        events=tuple(_event(entry, firsts) for entry in of_shown[:_MOST_EVENTS]),
    )


def _outcome(run: FinishedRun, summary: RunSummary) -> RunView:
    """Return what is shown of a run whichever nodes are."""
    scenario = run.scenario
    return RunView(
        name=scenario.name,
        description=_description(scenario),
        seed=scenario.seed,
        end_us=int(run.end_us),
        kubernetes_version=scenario.profile.version_text,
        policy=scenario.policy or Policy(scenario.profile.eviction_ranking),
        summary=summary,
        pods=(),
        nodes=(),
        kills=(),
        events=(),
        assumptions=of_run(run),
        headline=headline(summary),
        affected=affected_words(summary),
        changes=scenario.changes,
    )


def told_view(
    run: FinishedRun,
    notes: Mapping[str, NodeNotes],
    whole: WholeRecord,
    summary: RunSummary,
    closest: ClosestCall | None = None,
) -> RunView:
    """Return what words need of a run: its series have the times of the journal only, and there are no orders.

    ``whole`` records a node in full where notes do not reach back far enough.
    """
    nodes = recorded_nodes(run, {name: _noted_record(of_node) for name, of_node in notes.items()})
    of_shown = [entry for entry in run.entries if entry.node in nodes or not entry.node]
    decided = run_again(run, noted_hindsights(of_shown, nodes, notes, whole))
    kills = tuple(_kill(hindsight, nodes[hindsight.entry.node]) for hindsight in decided)
    victims = [(kill.node, kill.pod) for kill in kills]
    told = [entry for entry in of_shown if entry.kind not in UNTOLD]
    firsts = first_pods(of_shown)
    short = {entry.node for entry in of_shown if isinstance(entry.because, CPUThrottled) and not _is_over(entry)}
    return replace(
        _outcome(run, summary),
        pods=tuple(
            _pod(nodes[name].record.pods[key], nodes[name].qos_class(key), "", nodes[name])
            for name, key in dict.fromkeys(victims)
        ),
        nodes=tuple(
            _told_node(node, notes[name], [kill for kill in kills if kill.node == name], is_cpu_short=name in short)
            for name, node in nodes.items()
        ),
        kills=kills,
        events=tuple(_event(entry, firsts) for entry in told[:_MOST_EVENTS]),
        closest=closest,
    )


def _noted_record(notes: NodeNotes) -> NodeRecord:
    return NodeRecord(notes.name, notes.spec, notes.thresholds, notes.pods, evictions=notes.evictions)


def _told_node(node: RecordedNode, notes: NodeNotes, kills: Sequence[Kill], *, is_cpu_short: bool) -> NodeView:
    left = [max(0, available) for available in notes.left.get(Signal.MEMORY, ())]
    memory = notes.extents.get(Signal.MEMORY)
    view = replace(
        _node(node, {}, (), ()),
        times_us=tuple(notes.times_us),
        available_bytes=tuple(left),
        free_bytes=(),
        system_bytes=(),
        pods=(PodSeries(0, (), (), (), tuple(notes.cpu_wanted_milli), tuple(notes.cpu_granted_milli)),),
        signals=tuple(noted_series(notes)),
    )
    reach = Reach(
        (view.memory_bytes, view.memory_bytes) if memory is None else (max(0, memory.least), max(0, memory.most)),
        {series.signal: max(0, notes.extents[series.signal].least) for series in view.signals},
        is_cpu_short,
    )
    return replace(view, panels=story(view, kills, reach))


def _description(scenario: Scenario) -> str:
    """Return what a scenario is about. What its author says of it need not hold for changed values."""
    if not scenario.changes:
        return scenario.description
    left_out = " The scenario's description is omitted, because it may no longer apply." if scenario.description else ""
    return f"With {', '.join(scenario.changes)}.{left_out}"


def _event(entry: Entry, firsts: Mapping[str, str]) -> EventView:
    first = firsts.get(entry.pod) if entry.pod is not None else None
    who = entry.by, entry.pod, entry.container
    return EventView(entry.time_us, entry.node, entry.kind, *who, line(entry), first, _is_over(entry))


def _is_over(entry: Entry) -> bool:
    """Whether a shortage of CPU ends."""
    return isinstance(entry.because, CPUThrottled) and entry.because.throttled_by is ThrottledBy.NOTHING


def _kill(found: DeathHindsight, node: RecordedNode) -> Kill:
    entry, because = found.entry, found.entry.because
    assert entry.pod is not None
    by = By.KERNEL if isinstance(because, OOMKill) else By.KUBELET
    would_evict = because.would_evict if isinstance(because, OOMKill) else None
    return Kill(
        time_us=entry.time_us,
        node=entry.node,
        by=entry.by or By.KUBELET,
        pod=entry.pod,
        qos_class=node.qos_class(entry.pod),
        container=entry.container,
        title=f"{subject(entry)} {verb(entry)}",
        reasons=reasons(entry),
        because=because,
        kernel_place=found.kernel_place,
        kubelet_place=found.kubelet_place,
        would_evict=None if would_evict is None else would_evict.pod,
        savings=(
            *(saving(counterfactual, Telling(by)) for counterfactual in found.counterfactuals),
            *(() if found.in_time is None else (kubelet_in_time(found.in_time, entry.pod),)),
        ),
        cause=cause(entry),
    )


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _node(node: RecordedNode, places: Mapping[str, int], entries: Iterable[Entry], kills: Sequence[Kill]) -> NodeView:
    """Return what is shown of a node; ``places`` are those of its pods in the run's list."""
    record, moments = node.record, node.record.moments
    cgroups = node.settings.agent.cgroups
    limit = cgroups.node_allocatable.get(MEMORY) if cgroups.enforce_node_allocatable else None
    view = NodeView(
        name=record.name,
        memory_bytes=record.spec.memory_bytes,
        swap_bytes=record.spec.swap_bytes,
        cpu_milli=record.spec.cpu_milli,
        kernel_min_bytes=node.settings.machine.watermarks.min_bytes,
        pods_limit_bytes=None if limit is None else limit.value,
        thresholds=tuple(map(_worded, record.thresholds)),
        times_us=tuple(moment.time_us for moment in moments),
        available_bytes=tuple(max(0, moment.available_bytes) for moment in moments),
        free_bytes=tuple(max(0, moment.free_bytes) for moment in moments),
        system_bytes=tuple(moment.system_bytes for moment in moments),
        pods=tuple(pod_series(moments, places)),
        signals=tuple(signal_series(record)),
        conditions=tuple(condition_spans(entries, record.name)),
        orders=tuple(_orders(node, places, {kill.time_us for kill in kills})),
        looks=record.looks_until(moments[-1].time_us if moments else 0),
    )
    workloads = {place: node.workloads[key] for key, place in places.items()}
    return replace(view, panels=story(view, kills), workload_cpu=tuple(workload_cpu(view.pods, workloads)))


def _with_story(view: NodeView, entries: Iterable[Entry], ends: Iterable[int], run: RunSpan) -> NodeView:
    """Return what is shown of a node, with until when pictures of it are drawn."""
    told = [entry.time_us for entry in entries if entry.kind in _TOLD]
    pressed = [run.end_us if span.end_us is None else span.end_us for span in view.conditions]
    return replace(view, drawn_until_us=drawn_until_us(run, max((*told, *pressed, *ends), default=0)))


def _worded(threshold: ThresholdLine) -> ThresholdLine:
    least = amount(threshold.amount, SIGNALS[threshold.signal].resource)
    grace = "" if threshold.hard else f" for {threshold.grace_period_seconds} s"
    return replace(threshold, statement=f"{threshold.signal} < {least}{grace}")


def _orders(node: RecordedNode, places: Mapping[str, int], kill_times: set[int]) -> Iterator[OrdersView]:
    agent = node.settings.agent
    for moment in moments_of_orders(node.record.moments, kill_times):
        snapshot = node.snapshot(moment)
        if not snapshot.pods:
            continue
        seen = outlook(snapshot, agent.cgroups, agent.profile)
        report = rank_report(snapshot, both_orders(snapshot, node.ranking, agent.cgroups, seen.domain), seen)
        yield OrdersView(
            time_us=moment.time_us,
            available_bytes=report.node.available_bytes,
            kernel_left_bytes=report.node.kernel_left_bytes,
            kubelet=tuple(_rank(EvictionRank, place, places) for place in report.eviction_order),
            kernel=tuple(_rank(KernelRank, kill_place, places) for kill_place in report.kill_order),
            reversed_pairs=report.reversed_pairs,
        )


def _rank(kind: type[Rank], place: EvictionPlace | KillPlace, places: Mapping[str, int]) -> Rank:
    """Return a place in an order, with its pod as an index into the run's list."""
    return kind(places[place.pod], *(getattr(place, field) for field in kind.__struct_fields__[1:]))


# ---- pods ------------------------------------------------------------------------------------------------------------


def _pods(node: RecordedNode) -> Iterator[PodView]:
    """Yield the pods of a node in the order in which pictures stack them: by class, high priority first."""

    def stacking(pod: Pod) -> tuple[int, int, str]:
        return _CLASSES.index(node.qos_class(pod.key)), -(pod.spec.priority or 0), pod.key

    for pod in sorted(node.record.pods.values(), key=stacking):
        qos_class = node.qos_class(pod.key)
        yield _pod(pod, qos_class, shade(qos_class, pod.key), node)


def _pod(pod: Pod, qos_class: QOSClass, colour: str, node: RecordedNode) -> PodView:
    agent = node.settings.agent
    memory_bytes = agent.cgroups.node_memory_bytes
    scores = {score.container: score for score in oom_scores(pod, qos_class, memory_bytes, agent.profile)}
    return PodView(
        pod.key,
        node.record.name,
        node.workloads[pod.key],
        qos_class,
        pod.spec.priority or 0,
        colour,
        tuple(
            ContainerView(
                container.name,
                scores[container.name].value,
                oom_rule(scores[container.name], memory_bytes),
                *_amounts(container.resources.requests, container.resources.limits),
            )
            for container in pod.running_containers
        ),
        *_amounts(pod_requests(pod), pod_limits(pod)),
    )


def _amounts(requests: ResourceList, limits: ResourceList) -> tuple[int | None, ...]:
    """Return memory in bytes and cpu in thousandths, each requested and limited: the last fields of both views."""
    return (
        *(each[MEMORY].value if MEMORY in each else None for each in (requests, limits)),
        *(each[CPU].milli_value if CPU in each else None for each in (requests, limits)),
    )
