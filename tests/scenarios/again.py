"""A run again with what is said to save a pod, to see whether it was saved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.agent.reasons import OOMKill, UnderPressure
from podqos.kernel.build import PAGE_BYTES
from podqos.model.pod import Pod
from podqos.orders.counterfactual import Counterfactual
from podqos.sim.hindsight import hindsights
from podqos.sim.record import NodeRecord, Recorder, recorded_nodes
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.summary import workload_of


def recorded(scenario: Scenario) -> tuple[FinishedRun, dict[str, NodeRecord]]:
    """Run a scenario and return also what was recorded of its nodes."""
    recorder = Recorder()
    return simulate(scenario, recorder=recorder), recorder.nodes


def manifest_counterfactuals(
    done: FinishedRun, records: dict[str, NodeRecord]
) -> Iterator[tuple[Entry, Counterfactual]]:
    """Yield every change of a manifest that is said to save a pod, with the kill that it is about."""
    for found in hindsights(done.entries, recorded_nodes(done.scenario, records)):
        yield from (
            (found.entry, counterfactual)
            for counterfactual in found.counterfactuals
            if counterfactual.saves and counterfactual.pod is not None
        )


def is_spared(done: FinishedRun, entry: Entry, scenario: Scenario) -> bool | None:
    """Say whether a pod that was taken is not, at that moment, in another scenario; None if its run differs before.

    Up to the kill the same has to have happened in both runs, or they are not about the same moment: nor are they where
    a pod that became Burstable is reclaimed from in another order, and so uses another amount, by more than a page. The
    moment is one pass of the kubelet, or one OOM, which may take several.
    """
    before = list(done.entries)
    place = next(at for at, each in enumerate(before) if each is entry)
    again = list(simulate(scenario).entries)
    if _happened(before[:place]) != _happened(again[:place]):
        return None
    together = takewhile(lambda each: _cause(each) == _cause(entry), again[place:])
    taken = next((each for each in together if each.pod == entry.pod), None)
    if taken is None:
        return True
    return False if abs(_usage(taken) - _usage(entry)) <= PAGE_BYTES else None


def _usage(entry: Entry) -> int:
    return entry.because.usage if isinstance(entry.because, UnderPressure) else 0


def _happened(entries: list[Entry]) -> list[tuple[object, ...]]:
    return [(each.time_us, each.node, each.kind, each.pod, each.container) for each in entries]


def _cause(entry: Entry) -> tuple[object, ...]:
    because = entry.because
    return entry.time_us, entry.node, type(because), because.domain if isinstance(because, OOMKill) else None


def rewritten(scenario: Scenario, pod: Pod, key: str) -> Scenario:
    """Return the scenario with the resources, volumes and priority of a pod in the manifest that it comes from."""
    owner = workload_of(key, {f"{each.namespace}/{each.name}" for each in scenario.workloads})

    def changed(workload: ScenarioWorkload) -> ScenarioWorkload:
        if f"{workload.namespace}/{workload.name}" != owner:
            return workload
        spec = replace(
            workload.pod.spec,
            containers=pod.spec.containers,
            init_containers=pod.spec.init_containers,
            resources=pod.spec.resources,
            volumes=pod.spec.volumes,
            priority=pod.spec.priority,
        )
        status = replace(workload.pod.status, qos_class=None)
        return replace(workload, pod=replace(workload.pod, spec=spec, status=status))

    return replace(scenario, workloads=tuple(map(changed, scenario.workloads)))
