"""What would have saved a pod, tried in a whole run: the scenario again, with the change in place from its beginning.

The moment of a kill says what would have spared the pod then. Demand goes on afterwards: only a second run tells
whether the pod lives to its end, and who dies in its place. That takes as long as the first run, so that only so many
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice

from msgspec.structs import replace

from podqos.admission.validation import validate_resources
from podqos.agent.journal import Entry, Kind, is_kill
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.orders.counterfactual import (
    Counterfactual,
    PodChange,
    SecondRun,
    edits_between,
    resources_of,
    with_limit,
    with_request,
)
from podqos.sim.hindsight import DeathHindsight
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.scenario.replicas import workload_of
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.summary import first_pods, run_summary

MOST_DOUBLED = 3
"""How often a request or limit is doubled that spares a pod for a moment only."""
MOST_EVENTS = 2_000
"""How many events, pods and nodes second runs may have together, each as many as the first run."""


def run_again(run: FinishedRun, found: Iterable[DeathHindsight]) -> Iterator[DeathHindsight]:
    """Yield kills with what would have changed them, of each workload's first kill tried in second runs.

    What a workload's later kills ask for and was not tried is about their moment.
    """
    left, known = MOST_EVENTS, dict[str, _SecondRuns]()
    size = run.tallies.events + sum(workload.replicas for workload in run.scenario.workloads)
    size += sum(node.count for node in run.scenario.nodes)
    workloads = {f"{workload.namespace}/{workload.name}": workload for workload in run.scenario.workloads}
    for hindsight in found:
        name = workload_of(hindsight.entry.pod or "", workloads)
        tried = [
            counterfactual
            for counterfactual in hindsight.counterfactuals
            if counterfactual.saves and counterfactual.pod is not None
        ]
        if name is None or (name not in known and left < size * len(tried)):
            yield hindsight
            continue
        if name not in known:
            known[name] = _SecondRuns(run, name, workloads[name])
            left -= size * known[name].run(tried, left // size - len(tried))
        yield replace(hindsight, counterfactuals=tuple(map(known[name].told, hindsight.counterfactuals)))


class _SecondRuns:
    """A scenario, to be run again with changes to one of its workloads."""

    def __init__(self, run: FinishedRun, name: str, workload: ScenarioWorkload) -> None:
        self._scenario = run.scenario
        self._name, self._workload = name, workload
        self._names = {f"{workload.namespace}/{workload.name}" for workload in run.scenario.workloads}
        self._first = run
        self._done: list[tuple[_Written, Counterfactual]] = []

    @cached_property
    def _died(self) -> set[str]:
        return set(_victims(self._first.entries))

    @cached_property
    def _waiting(self) -> dict[str, int]:
        return _never_ran(self._first)

    def run(self, changes: Iterable[Counterfactual], further: int) -> int:
        """Try changes, larger ones where demand grows beyond what spared the pod for a moment.

        ``further`` is how many of those may be tried. Returns how many runs there were.
        """
        runs = 0
        for change in changes:
            if change.pod is not None:
                larger = islice(_larger(change, self._workload.pod), max(0, further))
                found = list(_until_saved(map(self._tried, chain((change,), larger))))
                further -= len(found) - 1
                runs += len(found)
                self._done.append((_written(change.pod), next((one for one in found if one.saves), found[0])))
        return runs

    def told(self, counterfactual: Counterfactual) -> Counterfactual:
        """Return a change with what became of a second run with it, if there was one."""
        if counterfactual.pod is None:
            return counterfactual
        written = _written(counterfactual.pod)
        return next((found for other, found in self._done if other == written), counterfactual)

    def _tried(self, counterfactual: Counterfactual) -> Counterfactual:
        assert counterfactual.pod is not None
        return replace(counterfactual, second_run=self._second(counterfactual.pod))

    def _second(self, changed: Pod) -> SecondRun:
        run = simulate(_with(self._scenario, self._workload, changed))
        entries = run.entries
        own = (
            entry.time_us
            for entry in entries
            if is_kill(entry) and entry.pod is not None and workload_of(entry.pod, self._names) == self._name
        )
        died_us = next(own, None)
        waiting = _never_ran(run)
        pending = tuple(name for name, pods in waiting.items() if pods > self._waiting.get(name, 0))
        instead = tuple(pod for pod in _victims(entries) if pod not in self._died)
        return SecondRun(died_us, instead, pending, is_pending=self._name in pending)


def _victims(entries: Sequence[Entry]) -> list[str]:
    """Return the pods that are killed, evicted or preempted, by their first names, in the order of time."""
    firsts = first_pods(entries)
    gone = (entry.pod for entry in entries if entry.pod and (is_kill(entry) or entry.kind is Kind.PREEMPTED))
    return list(dict.fromkeys(firsts.get(pod, pod) for pod in gone))


def _never_ran(run: FinishedRun) -> dict[str, int]:
    """Return how many pods of each workload found no node."""
    return {workload.workload: workload.never_ran for workload in run_summary(run).workloads}


def _until_saved(tried: Iterable[Counterfactual]) -> Iterator[Counterfactual]:
    """Yield changes up to the first that saves the pod."""
    for counterfactual in tried:
        yield counterfactual
        if counterfactual.saves:
            return


def _larger(counterfactual: Counterfactual, before: Pod) -> Iterator[Counterfactual]:
    """Yield the same request or limit of memory doubled, and doubled again, as far as the API server stores it."""
    pod, amount = counterfactual.pod, counterfactual.amount
    is_sized = counterfactual.change in {PodChange.REQUEST, PodChange.LIMIT} and counterfactual.resource == MEMORY
    if pod is None or amount is None or not is_sized or pod.spec.resources is not None:
        return
    container = counterfactual.container or pod.running_containers[0].name
    stated = resources_of(pod, container)
    old = resources_of(before, container).requests.get(MEMORY)
    requested = 0 if old is None else old.value
    for doubled in range(1, MOST_DOUBLED + 1):
        made, size = pod, amount << doubled
        if stated.limits.get(MEMORY) == Quantity.of_units(amount, "BinarySI"):
            made = with_limit(made, container, MEMORY, size)
        if stated.requests.get(MEMORY) == Quantity.of_units(amount, "BinarySI"):
            made = with_request(made, container, MEMORY, size)
        if validate_resources(made):
            return
        # As many pods request more as did before.
        added = dict(counterfactual.added)
        if MEMORY in added:
            added[MEMORY] = added[MEMORY] * (size - requested) // (amount - requested)
        yield replace(counterfactual, amount=size, pod=made, edits=edits_between(before, made), added=added)


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
    return replace(
        scenario,
        workloads=tuple(
            made if scenario_workload is workload else scenario_workload for scenario_workload in scenario.workloads
        ),
    )
