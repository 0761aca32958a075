"""``scenario from-usage``: a scenario that replays the recorded pods with their usage.

Every recorded pod becomes a Pod of its own, with the name it had, the spec of the workload that it belongs to, and the
node that it was on, if that is known. It comes with its first sample and goes after its last one. No controller
replaces it: the pods that replaced it then are recorded, too.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.admission.relevance import Question
from podqos.advice.sizing.coverage import GAP_STEPS, usual_step_us
from podqos.advice.sizing.matching import container_of, owner_of
from podqos.amounts import counted
from podqos.errors import InputError, InvalidArgument
from podqos.model.node import Node
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.profile import LATEST
from podqos.model.resources import ResourceList
from podqos.model.time_units import DAY_US, SECOND_US
from podqos.naming import naming
from podqos.objects.admitting import admitted_pod
from podqos.objects.objects import Objects
from podqos.orders.drift import Identity
from podqos.reading.files import read_bytes
from podqos.sim.scenario_format.recorded_usage import (
    Measure,
    Point,
    RecordedPod,
    RecordedUsage,
    Replayed,
    thinned,
)
from podqos.sim.scenario_format.writing import (
    Part,
    manifests_text,
    node_part,
    pod_manifest,
    scenario_text,
    seconds_text,
)

if TYPE_CHECKING:
    from podqos.reading.queried_usage import QueriedUsage

# As the API server has it (apimachinery/pkg/util/validation: IsDNS1123Subdomain); names become those of files.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# What controllers add to their own names; a plain number is what podqos itself and people write.
_RANDOM = r"-[a-z0-9]{5}"
_SUFFIXES = {
    kind: re.compile(rf"-\d+|{suffix}")
    for kind, suffix in {
        "Pod": "",
        "Deployment": rf"-[a-z0-9]{{1,10}}{_RANDOM}",
        "ReplicaSet": _RANDOM,
        "ReplicationController": _RANDOM,
        "DaemonSet": _RANDOM,
        "StatefulSet": r"-\d+",
        "Job": rf"(-\d+)?{_RANDOM}",
        "CronJob": rf"-\d+(-\d+)?{_RANDOM}",
    }.items()
}
_ENDS_BY_ITSELF = ("Job", "CronJob")
_MOST_NODES = 100_000
_LONGEST_US = 10 * 366 * DAY_US


class UsageFile(Struct, frozen=True):
    """A file of samples; ``measure`` is what it holds if its series have no known name."""

    path: str
    measure: Measure | None = None


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """Settings that are not in the files."""

    name: str
    node_count: int | None = None
    """Number of nodes, if the pods' nodes are unknown."""
    node_capacity: ResourceList = {}


class Replay(Struct, frozen=True):
    """A scenario, and which samples were used."""

    files: Mapping[str, str]
    """The files' texts by path. The first is the scenario."""
    told: Replayed


class _Series(Struct, frozen=True):
    container: str
    measure: Measure
    points: list[Point]
    hold: bool


class _Pod(Struct, frozen=True):
    recorded: RecordedPod
    identity: Identity
    spec: Pod
    series: tuple[_Series, ...]

    @property
    def key(self) -> str:
        return f"{self.identity.namespace}/{self.recorded.name}"

    @property
    def node(self) -> str:
        return self.recorded.node or self.spec.spec.node_name

    @property
    def times_us(self) -> list[int]:
        return sorted({time_us for series in self.series for time_us, _ in series.points})


def replay(
    objects: Objects, usage: Iterable[UsageFile], options: ReplayOptions, queried: QueriedUsage | None = None
) -> Replay:
    """Return a scenario of recorded usage and manifests; raises ``InputError`` if no pod can run."""
    recorded = RecordedUsage()
    for file in usage:
        stem = os.path.splitext(os.path.basename(file.path))[0]
        recorded.take(file.path, read_bytes(file.path), stem, file.measure)
    if queried is not None:
        recorded.take_series("Prometheus", queried.memory, Measure.MEMORY)
        recorded.take_series("Prometheus", queried.cpu, Measure.CPU)
    return _ReplayMaker(objects, recorded, options).replay()


class _ReplayMaker:
    """Builds a scenario."""

    def __init__(self, objects: Objects, recorded: RecordedUsage, options: ReplayOptions) -> None:
        self._objects = objects
        self._recorded = recorded
        self._options = options
        self._unmatched: dict[str, str] = {}
        self._keys: set[str] = set()
        self._step_us = SECOND_US
        self._specs: dict[Identity, Pod] = {}
        for found in objects.latest():
            workload = found.workload
            pod = workload.pod if workload.is_live else admitted_pod(found, objects, LATEST, Question.PLACEMENT)
            if pod is not None:
                name = workload.metadata.name or workload.metadata.generate_name.rstrip("-")
                self._specs[Identity(workload.metadata.namespace_or_default, workload.kind, name)] = pod

    def replay(self) -> Replay:
        pods = [pod for pod in map(self._matched, self._recorded.pods.values()) if pod is not None]
        if not pods:
            reasons = "; ".join(f"{pod}: {why}" for pod, why in list(self._unmatched.items())[:3])
            what = "none of the recorded pods belongs to a workload of the manifests"
            raise InputError(what, fix=reasons or "give manifests of the same namespace with " + naming("files"))
        begin_us = min(pod.times_us[0] for pod in pods)
        end_us = max(pod.times_us[-1] for pod in pods)
        self._step_us = max(usual_step_us(pod.times_us) for pod in pods)
        if end_us - begin_us > _LONGEST_US:
            years = (end_us - begin_us) // (365 * DAY_US)
            what = f"the samples span {years:,} years"
            raise InputError(what, fix="write times as seconds, milliseconds or RFC 3339")
        folder = self._options.name
        files: dict[str, str] = {}
        parts, kept = [], 0
        for pod in sorted(pods, key=lambda pod: (pod.times_us[0], pod.key)):
            path = f"usage/{pod.identity.namespace}_{pod.recorded.name}.csv"
            text, own = self._table(pod, begin_us)
            kept += own
            files[f"{folder}/{path}"] = text
            parts.append(self._part(pod, f"{folder}/{path}", begin_us, end_us))
        manifest = f"{folder}/pods.yaml"
        duration_us = end_us - begin_us + self._step_us
        spec: Part = {
            "description": self._description(pods),
            "duration": seconds_text(duration_us),
            "manifests": [manifest],
            "nodes": self._nodes(pods),
            "workloads": parts,
        }
        scenario = {f"{folder}.yaml": scenario_text(folder, spec), manifest: manifests_text(map(_manifest, pods))}
        identities = {pod.identity for pod in pods}
        told = Replayed(
            pods=len(pods),
            workloads=len(identities),
            unmatched=self._unmatched,
            samples=sum(len(series.points) for pod in pods for series in pod.series),
            kept=kept,
            irregular={what: count for what, count in Counter(self._recorded.irregular).items() if count},
            without_samples=tuple(str(spec) for spec in sorted(self._specs) if spec not in identities),
            unplaced=sum(not pod.node for pod in pods),
        )
        return Replay({**scenario, **files}, told)

    def _matched(self, recorded: RecordedPod) -> _Pod | None:
        """Return a pod with its workload, or None."""
        identity = owner_of(recorded.key, self._specs) if _NAME.fullmatch(recorded.name) else None
        if identity is None or not _names_so(identity, recorded.name):
            self._unmatched[recorded.key] = "no workload in the manifests has such pods"
            return None
        spec = self._specs[identity]
        series: dict[tuple[str, Measure], _Series] = {}
        for container, measure, points, hold in self._recorded.measured(recorded):
            name = container_of(container, spec)
            if name is None:
                self._unmatched[f"{recorded.key} {container}".strip()] = f"{identity} has no such container"
                continue
            # One that is named comes after one that is not, and counts.
            series[name, measure] = _Series(name, measure, points, hold)
        if not series:
            self._unmatched.setdefault(recorded.key, "it has no numeric samples")
            return None
        key = f"{identity.namespace}/{recorded.name}"
        if key in self._keys:
            self._unmatched[recorded.key] = f"{key} was also recorded under another name"
            return None
        self._keys.add(key)
        return _Pod(recorded, identity, spec, tuple(series.values()))

    # ---- what is written -----------------------------------------------------------------------------------------

    def _table(self, pod: _Pod, begin_us: int) -> tuple[str, int]:
        """Return the samples of a pod as CSV, and how many there are."""
        columns = [_column(series) for series in pod.series]
        rows: dict[int, dict[str, str]] = {}
        kept = 0
        for series, column in zip(pod.series, columns, strict=True):
            points = thinned(series.points, 0, hold=series.hold)
            kept += len(points)
            for time_us, value in points:
                text = str(value) if series.measure is Measure.MEMORY else f"{value}m"
                rows.setdefault(time_us - begin_us, {})[column] = text
        lines = [",".join(["time", *columns])]
        for time_us, values in sorted(rows.items()):
            lines.append(",".join([seconds_text(time_us), *(values.get(column, "") for column in columns)]))
        return "\n".join(lines) + "\n", kept

    def _part(self, pod: _Pod, path: str, begin_us: int, end_us: int) -> Part:
        times_us = pod.times_us
        step_us = usual_step_us(times_us) if len(times_us) > 1 else self._step_us
        came_us, gone_us = times_us[0] - begin_us, times_us[-1] + step_us - begin_us
        part: Part = {"workload": f"Pod/{pod.key}"}
        if came_us >= step_us:
            part["arrives"] = seconds_text(came_us)
        is_gone = end_us - times_us[-1] >= GAP_STEPS * step_us
        if is_gone and pod.identity.kind not in _ENDS_BY_ITSELF:
            part["deleted"] = seconds_text(gone_us)
        if pod.node:
            part["nodes"] = [pod.node]
        containers: dict[str, Part] = {}
        for series in pod.series:
            samples: Part = {"file": path, "column": _column(series)}
            if series.hold:
                samples["hold"] = True
            containers.setdefault(series.container, {})[series.measure.value] = {"samples": samples}
        if is_gone and pod.identity.kind in _ENDS_BY_ITSELF:
            for container in pod.spec.spec.containers:
                containers.setdefault(container.name, {})["exits"] = {"after": seconds_text(gone_us - came_us)}
        part["containers"] = containers
        return part

    def _nodes(self, pods: Sequence[_Pod]) -> list[Part]:
        known = {node.name: node for node in self._objects.of(Node)}
        names = list(dict.fromkeys(pod.node for pod in pods if pod.node))
        if not names and self._options.node_count is None:
            names = list(known)
        if not names or self._options.node_count is not None:
            count = 1 if self._options.node_count is None else self._options.node_count
            if not 0 < count <= _MOST_NODES:
                raise InvalidArgument(
                    f"{count} is not a number of nodes", where=naming("nodes"), fix=f"1 to {_MOST_NODES:,}"
                )
            names += [name for name in (f"node-{number}" for number in range(count)) if name not in names]
        return [self._node(name, known.get(name)) for name in names]

    def _node(self, name: str, node: Node | None) -> Part:
        return node_part(name, node, self._options.node_capacity or ({} if node is None else node.status.capacity))

    def _description(self, pods: Sequence[_Pod]) -> str:
        return (
            f"{counted(len(pods), 'recorded pod')} as on that day, with usage as recorded. "
            "The whole working set counts as private memory, of which the kernel can reclaim nothing; "
            "what runs outside of pods is not recorded."
        )


def _names_so(identity: Identity, pod: str) -> bool:
    """Whether a controller gives its pods such names; for an unknown kind, any name that begins with its own."""
    suffix = _SUFFIXES.get(identity.kind)
    return suffix is None or pod == identity.name or suffix.fullmatch(pod.removeprefix(identity.name)) is not None


def _column(series: _Series) -> str:
    return f"{series.container}.{series.measure.value}"


def _manifest(pod: _Pod) -> Part:
    metadata = ObjectMeta(
        name=pod.recorded.name,
        namespace=pod.identity.namespace,
        uid=f"{pod.identity.namespace}_{pod.recorded.name}",
        labels=pod.spec.metadata.labels,
    )
    return pod_manifest(pod.spec, metadata)
