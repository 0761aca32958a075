"""From a scenario, its journal and a recording to the value that is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.eviction.ranking import Policy
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import oom_scores
from podqos.report.simulation.journal_words import is_kill, line
from podqos.report.simulation.kills import kills
from podqos.report.simulation.node_series import ShownNode, node_view
from podqos.report.simulation.view import ContainerView, EventView, PodView, RunView
from podqos.report.text.palette import shade
from podqos.report.text.words import oom_rule
from podqos.sim.node.recording import NodeRecord
from podqos.sim.node.settings import SimNodeSettings, node_settings
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import first_pods, run_summary, workload_of

_MOST_EVENTS = 5000
_CLASSES = tuple(QOSClass)


def run_view(run: FinishedRun, records: Mapping[str, NodeRecord]) -> RunView:
    """Put together what is shown of a run; ``records`` are of the nodes in focus, in the order to show them."""
    scenario = run.scenario
    pods = tuple(_pods(scenario, records, _settings(scenario, records)))
    shown = shown_nodes(run, records, pods)
    of_shown = [entry for entry in run.entries if entry.node in shown or not entry.node]
    found = tuple(kills(of_shown, shown))
    firsts = first_pods(of_shown)
    times = {name: {kill.time_us for kill in found if kill.node == name} for name in shown}
    return RunView(
        name=scenario.name,
        description=scenario.description,
        seed=scenario.seed,
        end_us=int(run.end_us),
        kubernetes_version=".".join(map(str, scenario.profile.version)),
        policy=scenario.policy or Policy(scenario.profile.eviction_ranking),
        summary=run_summary(run),
        pods=pods,
        nodes=tuple(node_view(node, of_shown, times[name]) for name, node in shown.items()),
        kills=found,
        events=tuple(_event(entry, firsts) for entry in of_shown[:_MOST_EVENTS]),
    )


def shown_nodes(
    run: FinishedRun, records: Mapping[str, NodeRecord], pods: Sequence[PodView] | None = None
) -> dict[str, ShownNode]:
    """Return the nodes in focus, by name, with their settings and their pods."""
    settings = _settings(run.scenario, records)
    if pods is None:
        pods = tuple(_pods(run.scenario, records, settings))
    return {name: _shown(record, settings[name], pods) for name, record in records.items()}


def deadliest_nodes(entries: Iterable[Entry]) -> list[str]:
    """Return the nodes on which anybody was killed, most kills first."""
    counts = Counter(entry.node for entry in entries if is_kill(entry))
    return sorted(counts, key=lambda name: (-counts[name], name))


def node_names(scenario: Scenario) -> Iterator[str]:
    """Yield the names of a scenario's nodes."""
    for group in scenario.nodes:
        yield from (group.name_of(index) for index in range(group.count))


def _settings(scenario: Scenario, wanted: Container[str]) -> dict[str, SimNodeSettings]:
    found: dict[str, SimNodeSettings] = {}
    for group in scenario.nodes:
        names = [name for index in range(group.count) if (name := group.name_of(index)) in wanted]
        if names:
            settings = node_settings(group.spec, scenario.profile, scenario.policy)
            found |= dict.fromkeys(names, settings)
    return found


def _shown(record: NodeRecord, settings: SimNodeSettings, pods: Sequence[PodView]) -> ShownNode:
    own = {pod.key: index for index, pod in enumerate(pods) if pod.node == record.name}
    # What is there from the beginning is not drawn as a step.
    beginning = sum(moment.time_us == 0 for moment in record.moments)
    record = replace(record, moments=record.moments[max(0, beginning - 1) :])
    return ShownNode(
        record,
        settings,
        own,
        {key: pods[index].qos_class for key, index in own.items()},
        {key: pods[index].workload for key, index in own.items()},
    )


def _event(entry: Entry, firsts: Mapping[str, str]) -> EventView:
    first = firsts.get(entry.pod) if entry.pod is not None else None
    return EventView(entry.time_us, entry.node, entry.kind, entry.by, entry.pod, entry.container, line(entry), first)


# ---- pods ----------------------------------------------------------------------------------------------------------


def _pods(
    scenario: Scenario, records: Mapping[str, NodeRecord], settings: Mapping[str, SimNodeSettings]
) -> Iterator[PodView]:
    """Yield the pods of the nodes shown as pictures stack them: by class, the important first."""
    workloads = {f"{each.namespace}/{each.name}": None for each in scenario.workloads}
    for name, record in records.items():
        order = sorted(record.pods.values(), key=lambda pod: _stacking(pod, scenario.profile))
        counts: Counter[QOSClass] = Counter()
        for pod in order:
            qos_class = qos_class_of(pod, scenario.profile)
            colour = shade(qos_class, counts[qos_class])
            counts[qos_class] += 1
            yield _pod(pod, name, workload_of(pod.key, workloads) or pod.key, colour, settings[name])


def _stacking(pod: Pod, profile: Profile) -> tuple[int, int, str]:
    return _CLASSES.index(qos_class_of(pod, profile)), -(pod.spec.priority or 0), pod.key


def _pod(pod: Pod, node: str, workload: str, colour: str, settings: SimNodeSettings) -> PodView:
    agent = settings.agent
    qos_class = qos_class_of(pod, agent.profile)
    memory_bytes = agent.cgroups.node_memory_bytes
    scores = {score.container: score for score in oom_scores(pod, qos_class, memory_bytes, agent.profile)}
    requests, limits = pod_requests(pod), pod_limits(pod)
    return PodView(
        key=pod.key,
        node=node,
        workload=workload,
        qos_class=qos_class,
        priority=pod.spec.priority or 0,
        colour=colour,
        containers=tuple(
            ContainerView(
                name=each.name,
                oom_score_adj=scores[each.name].value,
                oom_reason=oom_rule(scores[each.name], memory_bytes),
                memory_request_bytes=_bytes(each.resources.requests),
                memory_limit_bytes=_bytes(each.resources.limits),
                cpu_request_milli=_milli(each.resources.requests),
                cpu_limit_milli=_milli(each.resources.limits),
            )
            for each in pod.running_containers
        ),
        memory_request_bytes=_bytes(requests),
        memory_limit_bytes=_bytes(limits),
        cpu_request_milli=_milli(requests),
        cpu_limit_milli=_milli(limits),
    )


def _bytes(amounts: ResourceList) -> int | None:
    return amounts[MEMORY].value if MEMORY in amounts else None


def _milli(amounts: ResourceList) -> int | None:
    return amounts[CPU].milli_value if CPU in amounts else None
