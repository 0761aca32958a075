"""What would have saved a pod, tried in a whole run: the scenario again, with the change in place from its beginning.

The moment of a kill says what would have spared the pod then. Demand goes on afterwards: only a second run tells
whether the pod lives to its end, and who dies in its place. That takes as long as the first run, so that only so many
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.model.pod import Pod
from podqos.sim.hindsight import Hindsight
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.summary import first_pods, workload_of
from podqos.survival.comparison import is_kill
from podqos.survival.counterfactual.counterfactual import Counterfactual, SecondRun

MOST_EVENTS = 2_000
"""How many events, pods and nodes second runs may have together, each as many as the first run."""


def run_again(run: FinishedRun, found: Iterable[Hindsight]) -> Iterator[Hindsight]:
    """Yield kills with what would have changed them, of each workload's first kill tried in second runs.

    What a workload's later kills ask for and was not tried is about their moment.
    """
    left, known = MOST_EVENTS, dict[str, _SecondRuns]()
    size = run.tallies.events + sum(each.replicas for each in run.scenario.workloads)
    size += sum(each.count for each in run.scenario.nodes)
    workloads = {f"{each.namespace}/{each.name}": each for each in run.scenario.workloads}
    for hindsight in found:
        name = workload_of(hindsight.entry.pod or "", workloads)
        tried = [each for each in hindsight.counterfactuals if each.saves and each.pod is not None]
        if name is None or (name not in known and left < size * len(tried)):
            yield hindsight
            continue
        if name not in known:
            left -= size * len(tried)
            known[name] = _SecondRuns(run, name, workloads[name])
            known[name].run(tried)
        yield replace(hindsight, counterfactuals=tuple(map(known[name].told, hindsight.counterfactuals)))


class _SecondRuns:
    """A scenario, to be run again with changes to one of its workloads."""

    def __init__(self, run: FinishedRun, name: str, workload: ScenarioWorkload) -> None:
        self._scenario = run.scenario
        self._name, self._workload = name, workload
        self._names = {f"{each.namespace}/{each.name}" for each in run.scenario.workloads}
        self._died = set(_victims(run.entries))
        self._done: list[tuple[_Written, SecondRun]] = []

    def run(self, tried: Iterable[Counterfactual]) -> None:
        """Try changes."""
        self._done += [(_written(each.pod), self._second(each.pod)) for each in tried if each.pod is not None]

    def told(self, counterfactual: Counterfactual) -> Counterfactual:
        """Return a change with what became of a second run with it, if there was one."""
        if counterfactual.pod is None:
            return counterfactual
        written = _written(counterfactual.pod)
        second = next((second for other, second in self._done if other == written), None)
        return replace(counterfactual, second_run=second)

    def _second(self, changed: Pod) -> SecondRun:
        entries = simulate(_with(self._scenario, self._workload, changed)).entries
        own = (
            entry.time_us
            for entry in entries
            if is_kill(entry) and entry.pod is not None and workload_of(entry.pod, self._names) == self._name
        )
        died_us = next(own, None)
        return SecondRun(died_us, tuple(pod for pod in _victims(entries) if pod not in self._died))


def _victims(entries: Sequence[Entry]) -> list[str]:
    """Return the pods that are killed or evicted, by their first names, in the order of time."""
    firsts = first_pods(entries)
    return list(dict.fromkeys(firsts.get(entry.pod, entry.pod) for entry in entries if is_kill(entry) and entry.pod))


_Written = tuple[object, ...]


def _written(pod: Pod) -> _Written:
    """Return what a change of a manifest can change."""
    spec = pod.spec
    return spec.containers, spec.init_containers, spec.resources, spec.volumes, spec.priority


def _with(scenario: Scenario, workload: ScenarioWorkload, changed: Pod) -> Scenario:
    """Return the scenario with another manifest of a workload; all else of its pods stays."""
    spec = replace(
        workload.pod.spec,
        containers=changed.spec.containers,
        init_containers=changed.spec.init_containers,
        resources=changed.spec.resources,
        volumes=changed.spec.volumes,
        priority=changed.spec.priority,
    )
    pod = replace(workload.pod, spec=spec, status=replace(workload.pod.status, qos_class=None))
    made = replace(workload, pod=pod)
    return replace(scenario, workloads=tuple(made if each is workload else each for each in scenario.workloads))
