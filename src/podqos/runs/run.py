"""A run, and all that is shown of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind, is_kill
from podqos.agent.reasons import CPUThrottled, OOMKill, OOMLevel, ThrottledBy
from podqos.amounts import amount
from podqos.errors import InvalidArgument
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import SIGNALS, Signal
from podqos.manifest.encoding import embedded
from podqos.model.assumption import Assumption
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.naming import naming
from podqos.orders.memory import outlook
from podqos.orders.orders import EvictionPlace, KillPlace, both_orders
from podqos.qos.oom import oom_scores
from podqos.questions.rank import rank_report
from podqos.runs.drawing import run_svg
from podqos.runs.layout import with_pictures
from podqos.runs.view import (
    ClosestCall,
    ContainerView,
    EventView,
    Kill,
    NodeVictims,
    NodeView,
    PodView,
    RunSpan,
    RunView,
    affected_words,
    drawn_until_us,
    headline,
    story,
)
from podqos.sim.hindsight import DeathHindsight, hindsights
from podqos.sim.record import (
    UNTOLD,
    Moment,
    NodeRecord,
    RecordedNode,
    Recorder,
    ThresholdLine,
    deadliest_nodes,
    recorded_nodes,
)
from podqos.sim.run import FinishedRun, Progress
from podqos.sim.run import simulate as run_to_the_end
from podqos.sim.scenario.assumptions import assumptions_of
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.second_run import run_again
from podqos.sim.series import (
    EvictionRank,
    KernelRank,
    OrdersView,
    condition_spans,
    moments_of_orders,
    pod_series,
    signal_series,
    workload_cpu,
)
from podqos.sim.summary import RunSummary, first_pods, outage_ends, run_summary
from podqos.text.journal import cause, line, reasons, subject, verb
from podqos.text.qos import oom_rule
from podqos.text.saving import kubelet_in_time, saving
from podqos.text.svg import shade

_FEW_NODES = 12
"""So many nodes are recorded and shown without being asked for; of more, those with most victims."""

_DRAWN_TOGETHER = 3
"""So many nodes are drawn in one picture without being asked for."""


def simulate(
    scenario: Scenario,
    *,
    nodes: Sequence[str] | None = None,
    record: bool = True,
    check: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a scenario from beginning to end.

    ``nodes`` are those to show (by default all of a few, of many those with most victims). Without ``record`` the run
    is faster, and made again if its report is asked for. ``check`` verifies the simulator's invariants after every
    event. ``progress`` gets the time reached, in microseconds, and the number of events now and then.
    """
    names = _known(scenario, nodes)
    recorder = Recorder(only=names) if record and names is not None else None
    done = run_to_the_end(scenario, recorder=recorder, check=check, progress=progress)
    return Run(done, names, {} if recorder is None else recorder.nodes, progress)


class Run:
    """A scenario that has been run."""

    def __init__(
        self,
        done: FinishedRun,
        names: Sequence[str] | None,
        records: Mapping[str, NodeRecord],
        progress: Progress | None,
    ) -> None:
        self._done = done
        self._names = names
        self._records = records
        self._progress = progress

    @property
    def scenario(self) -> Scenario:
        """What was run."""
        return self._done.scenario

    @property
    def journal(self) -> Sequence[Entry]:
        """Everything observed, decided and done, with reasons, in order of time."""
        return self._done.entries

    @cached_property
    def summary(self) -> RunSummary:
        """How it ended, in all and per workload."""
        return run_summary(self._done)

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the run takes from models, and from versions that are only approximate."""
        return of_run(self._done)

    @cached_property
    def report(self) -> RunView:
        """All that is shown of a run: what ``podqos simulate -o json`` prints."""
        return self._view(self._shown)

    @cached_property
    def words(self) -> RunView:
        """What the terminal shows: the same without what only pictures need. Of many nodes none, unless asked for."""
        view = self._view(self._names or (), orders=False)
        return view if self._names is not None else replace(view, worth_showing=self._worth_showing())

    def _worth_showing(self) -> tuple[NodeVictims, ...]:
        kinds = Counter((entry.node, entry.kind) for entry in self.journal)
        return tuple(
            NodeVictims(name, kinds[name, Kind.OOM_KILLED], kinds[name, Kind.EVICTED])
            for name in deadliest_nodes(self.journal)[:_FEW_NODES]
        )

    @cached_property
    def _shown(self) -> Sequence[str]:
        """The nodes that are shown."""
        if self._names is not None:
            return self._names
        return deadliest_nodes(self.journal)[:_FEW_NODES] or self.scenario.node_names[:1]

    def _view(self, names: Sequence[str], *, orders: bool = True) -> RunView:

        if names and not self._records:
            recorder = Recorder(only=names)
            run_to_the_end(self.scenario, recorder=recorder, progress=self._progress)
            self._records = recorder.nodes
        records = {name: self._records[name] for name in names if name in self._records}
        return run_view(self._done, records, orders=orders)

    def html(self, viewer: str) -> str:
        """Return a self-contained page to view the run in a browser; ``viewer`` is the built page."""
        return embedded(viewer, with_pictures(self.report))

    def svg(self, *nodes: str) -> str:
        """Return a picture of some nodes; by default of all where they are few, otherwise of the first with victims."""
        for name in nodes:
            if name not in self._shown:
                raise InvalidArgument(f"node {name!r} is not shown", fix="choose others with " + naming("node"))
        names = [*dict.fromkeys(nodes)] or self._shown
        if not nodes and len(names) > _DRAWN_TOGETHER:
            killed = {entry.node for entry in self.journal if is_kill(entry)}
            names = [min(names, key=lambda name: name not in killed)]
        report = self.report if "report" in self.__dict__ or len(names) == len(self._shown) else self._view(names)
        drawn = {node.name: node for node in report.nodes}
        if not drawn:
            raise InvalidArgument(
                "nothing to draw: none of the nodes existed during the run", fix="choose others with " + naming("node")
            )
        return run_svg(report, *(drawn[name] for name in names if name in drawn))


def _known(scenario: Scenario, given: Sequence[str] | None) -> Sequence[str] | None:
    """Return the nodes to show; None where the run has to tell."""
    known = scenario.node_names
    if given is None:
        return known if len(known) <= _FEW_NODES else None
    for name in given:
        if name not in known:
            some = ", ".join(known[:5])
            raise InvalidArgument(f"no such node: {name!r}", where=naming("node"), fix=f"such as {some}")
    return list(dict.fromkeys(given))


Rank = TypeVar("Rank", EvictionRank, KernelRank)

_MOST_EVENTS = 5000
_OWN_LIMITS = frozenset({OOMLevel.CONTAINER.value, OOMLevel.POD.value})
_CLASSES = tuple(QOSClass)
# What a picture does not end before.
_TOLD = frozenset({Kind.OOM_KILLED, Kind.EVICTED, Kind.RECLAIMED, Kind.OBSERVED, Kind.LOST})


def run_view(run: FinishedRun, records: Mapping[str, NodeRecord], *, orders: bool = True) -> RunView:
    """Return what is shown of a run; ``records`` are those of the nodes to show, in that order.

    Words do without ``orders`` at every moment, and without events that are not told.
    """
    nodes = recorded_nodes(run.scenario, records)
    pods = tuple(pod for node in nodes.values() for pod in _pods(node))
    of_shown = [entry for entry in run.entries if entry.node in nodes or not entry.node]
    kills = tuple(_kill(found, nodes[found.entry.node]) for found in run_again(run, hindsights(of_shown, nodes)))
    firsts, summary = first_pods(of_shown), run_summary(run)
    ends = outage_ends(run, of_shown)
    shown = of_shown if orders else [entry for entry in of_shown if entry.kind not in UNTOLD]
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
                    orders=orders,
                ),
                [entry for entry in of_shown if entry.node == name],
                [end_us for pod, end_us in ends.items() if pod in node.record.pods],
                RunSpan(int(run.end_us), tuple(kill.time_us for kill in kills if kill.node == name)),
            )
            for name, node in nodes.items()
        ),
        kills=kills,
        events=tuple(_event(entry, firsts) for entry in shown[:_MOST_EVENTS]),
        closest=_closest_call(summary, nodes.values()),
    )


def _closest_call(summary: RunSummary, nodes: Iterable[RecordedNode]) -> ClosestCall | None:
    """Return where memory came closest to an eviction or an OOM kill for the whole node; None where there was one."""
    if summary.evictions_by_signal or not summary.oom_kills_by_level.keys() <= _OWN_LIMITS:
        return None

    def reaches() -> Iterator[tuple[int, str, Moment, int, int]]:
        for node in nodes:
            record = node.record
            marks = (threshold.amount for threshold in record.thresholds if threshold.signal is Signal.MEMORY)
            threshold_bytes = max((node.settings.machine.watermarks.min_bytes, *marks))
            if record.moments:
                least = min(record.moments, key=lambda moment: moment.available_bytes)
                room = least.available_bytes - threshold_bytes
                yield room, record.name, least, threshold_bytes, record.spec.memory_bytes

    closest = min(reaches(), key=lambda reach: reach[:2], default=None)
    if closest is None:
        return None
    _, name, moment, threshold_bytes, memory_bytes = closest
    return ClosestCall(name, moment.time_us, max(0, moment.available_bytes), threshold_bytes, memory_bytes)


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
            *(saving(counterfactual, by) for counterfactual in found.counterfactuals),
            *(() if found.in_time is None else (kubelet_in_time(found.in_time, entry.pod),)),
        ),
        cause=cause(entry),
    )


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _node(
    node: RecordedNode, places: Mapping[str, int], entries: Iterable[Entry], kills: Sequence[Kill], *, orders: bool
) -> NodeView:
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
        orders=tuple(_orders(node, places, {kill.time_us for kill in kills})) if orders else (),
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


_PROBED = frozenset({Kind.UNHEALTHY.value, Kind.READINESS_CHANGED.value})


def of_run(run: FinishedRun) -> tuple[Assumption, ...]:
    """Return what a run assumes."""
    found = [*assumptions_of(run.scenario)]
    if run.services:
        how = "random arrivals, equal shares for ready pods, one queue per pod in order of arrival"
        found.append(Assumption("load, queues and latency of services", f"a queueing model ({how})", ""))
    if _PROBED & run.tallies.kinds.keys():
        how = "10 cpu-ms unless demand.probeCost says otherwise, slowed like the container, queued like a request"
        found.append(Assumption("response time of probes", f"a model ({how})", ""))
    return tuple(found)
