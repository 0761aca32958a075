"""The recorded nodes of a run with their settings: what is asked about their kills afterwards starts here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.pod import QOSClass
from podqos.model.snapshot import Snapshot
from podqos.qos.classes import qos_class_of
from podqos.sim.node.recording import Moment, NodeRecord
from podqos.sim.node.settings import SimNodeSettings, node_settings
from podqos.sim.run import FinishedRun
from podqos.sim.summary import workload_of
from podqos.survival.comparison import is_kill
from podqos.survival.counterfactual.counterfactual import Surroundings


class RecordedNode(Struct, frozen=True):
    """A node, its settings, and what was recorded of it."""

    record: NodeRecord
    settings: SimNodeSettings
    workloads: Mapping[str, str]
    """What its pods come from, by key."""

    @property
    def ranking(self) -> Ranking:
        """How its kubelet ranks for a hard threshold of memory."""
        eviction = self.settings.agent.eviction
        return Ranking(Signal.MEMORY, self.settings.layout, eviction.policy, hard=True, profile=eviction.profile)

    def qos_class(self, pod: str) -> QOSClass:
        """Return the class of a pod."""
        return qos_class_of(self.record.pods[pod], self.settings.agent.profile)

    def surroundings(self, pod: str) -> Surroundings:
        """Return what a change of a pod's manifest has to respect on this node."""
        name = self.workloads[pod]
        alike = frozenset(pod.metadata.uid for key, pod in self.record.pods.items() if self.workloads[key] == name)
        return Surroundings(self.settings.agent.known_plans.allocatable, alike)

    def snapshot(self, moment: Moment) -> Snapshot:
        """Return the pods of which anything runs at a moment: the others cannot be killed."""
        snapshot = self.record.snapshot(moment)
        return replace(snapshot, pods=tuple(used for used in snapshot.pods if used.containers))


def recorded_nodes(run: FinishedRun, records: Mapping[str, NodeRecord]) -> dict[str, RecordedNode]:
    """Return the nodes by name, in the order of ``records``."""
    scenario = run.scenario
    workloads = {f"{workload.namespace}/{workload.name}": None for workload in scenario.workloads}
    settings: dict[str, SimNodeSettings] = {}
    for group in scenario.nodes:
        names = [name for name in map(group.name_of, range(group.count)) if name in records]
        if names:
            settings |= dict.fromkeys(names, node_settings(group.spec, scenario.profile, scenario.policy))
    return {
        name: RecordedNode(
            _from_its_start(record), settings[name], {key: workload_of(key, workloads) or key for key in record.pods}
        )
        for name, record in records.items()
    }


def deadliest_nodes(entries: Iterable[Entry]) -> list[str]:
    """Return the nodes with kills or evictions, most of them first."""
    counts = Counter(entry.node for entry in entries if is_kill(entry))
    return sorted(counts, key=lambda name: (-counts[name], name))


def _from_its_start(record: NodeRecord) -> NodeRecord:
    """Return a record in which the pods that are there from the beginning are no step."""
    beginning = sum(moment.time_us == 0 for moment in record.moments)
    return replace(record, moments=record.moments[max(0, beginning - 1) :])
