"""The class of every workload as stored, why, and what follows from it.

``explain`` answers for objects. ``Explaining`` does the same for files, as ``podqos explain`` needs it: on all cores
where that pays, and without keeping more of a large list than a line per container.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.stored import Stored, Storing
from podqos.admission.validation import validate_resources
from podqos.library.inputs.assumptions import (
    KUBELET_SETTINGS,
    NO_POLICIES,
    has_policies,
    is_decisive_policy,
    missing_classes,
    node_memory,
)
from podqos.library.inputs.files import STDIN, total_bytes
from podqos.library.inputs.objects import FoundWorkload, Objects, Progress, load
from podqos.library.inputs.selection import Selection, namespace_of
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime, stock_node
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.survival.decision import Decision, ExplainSettings, decide

if TYPE_CHECKING:
    from podqos.admission.policies import Cluster
    from podqos.library.inputs.kubelet_node import Kubelet
    from podqos.library.inputs.large_list import Part
    from podqos.model.node import Node
    from podqos.qos.run_flags import Engine
    from podqos.report.explain.explanation import Explanation, ExplanationList
    from podqos.survival.pod_sets import PodSets

# Below this a second process costs more than it saves.
_WORTH_FORKING_BYTES = 1 << 20


class ExplainOptions(Struct, frozen=True, kw_only=True):
    """The node that pods are explained for, and the Kubernetes version."""

    node_memory_bytes: int | None = None
    """None: of the smallest Node among the objects, or 64Gi."""
    node_swap_bytes: int = 0
    cores: int | None = None
    """None where they are not known: the CPU share of all pods together is then left open."""
    kubelet: Kubelet | None = None
    """None: one with the kubelet's defaults."""
    profile: Profile = LATEST
    cgroup_version: CgroupVersion = CgroupVersion.V2
    cgroup_driver: CgroupDriver | None = None
    """None: the kubelet's."""
    runtime: Runtime = Runtime.CONTAINERD
    engine: Engine = "docker"
    """Whose run flags are shown."""

    def settings(self, nodes: Iterable[Node] = ()) -> tuple[ExplainSettings, tuple[Assumption, ...]]:
        """Return the node in full, and what had to be assumed for it."""
        memory_bytes, assumptions = node_memory(self.node_memory_bytes, nodes)
        score = KUBELET_OOM_SCORE_ADJ
        if self.kubelet is None:
            cgroups = stock_node(
                memory_bytes, cores=self.cores, swap_bytes=self.node_swap_bytes, cgroup_version=self.cgroup_version
            )
            assumptions += (KUBELET_SETTINGS,)
        else:
            # What reads a configuration takes longer to load than a pod to explain.
            from podqos.library.inputs.kubelet_node import cgroups_of

            score = self.kubelet.config.oom_score_adj
            cgroups = cgroups_of(
                self.kubelet,
                memory_bytes=memory_bytes,
                cores=self.cores,
                swap_bytes=self.node_swap_bytes,
                cgroup_version=self.cgroup_version,
                profile=self.profile,
            )
        driver = self.cgroup_driver or cgroups.cgroup_driver
        cgroups = replace(cgroups, cgroup_driver=driver, runtime=self.runtime)
        return ExplainSettings(cgroups, self.profile, self.engine, score), assumptions


def explain(objects: Objects, options: ExplainOptions | None = None) -> ExplanationList:
    """Return what each workload is as the API server stores it; policies among the objects are applied.

    Workloads that the API server would not store are left out, and are among the problems of the objects.
    """
    settings, assumptions = (options or ExplainOptions()).settings(objects.of(_node_model()))
    return explanation_list([explain_objects(objects, settings, _cluster(objects))], settings, assumptions)


def explanation_list(
    explained: Sequence[Explained], settings: ExplainSettings, assumptions: tuple[Assumption, ...]
) -> ExplanationList:
    """Put together what was explained piece by piece."""
    from podqos.report.explain.explanation import ExplanationList
    from podqos.report.explain.node import explain_node
    from podqos.survival.pod_sets import PodSets

    pods = reduce(PodSets.plus, (each.pods for each in explained if each.pods is not None), PodSets())
    return ExplanationList(
        items=tuple(item for each in explained for item in each.items),
        kubernetes_version=".".join(map(str, settings.profile.version)),
        node_memory_bytes=settings.node_memory_bytes,
        node=explain_node(pods.counted, settings),
        assumptions=(*assumptions, *further_assumptions(explained)),
    )


def further_assumptions(explained: Sequence[Explained]) -> tuple[Assumption, ...]:
    """Return what was assumed about the cluster that stores the pods."""
    meets_none = any(each.as_written for each in explained) and not any(each.policies for each in explained)
    no_policies = (NO_POLICIES,) if meets_none else ()
    return (*no_policies, *missing_classes(name for each in explained for name in each.unknown))


class Explained(Struct):
    """What some objects gave."""

    items: list[Explanation] = []
    rows: str = ""
    """For CSV, which is for many pods: the finished lines instead of explanations."""
    classes: Counter[QOSClass] = Counter()
    problems: list[Problem] = []
    others: int = 0
    """Objects that hold no pod and are no policies, and documents that are no Kubernetes objects."""
    pods: PodSets | None = None
    """For the outputs that tell of the node as well."""
    as_written: int = 0
    """Pods that no API server has stored yet."""
    policies: int = 0
    nodes: int = 0
    unknown: Counter[tuple[str, str]] = Counter()
    """Kind and name of classes that pods name and that were not given, with the number of pods."""
    refused: int = 0
    """Pods that policies of the input do not let in."""
    neighbours: int = 0
    """Pods that count and that the answer is not about."""


def explain_objects(
    objects: Objects, settings: ExplainSettings, cluster: Cluster | None, output: str = "json"
) -> Explained:
    """Explain the workloads of objects, as stored with the policies of a cluster."""
    storing = Storing(cluster, settings.profile)
    accepted: list[tuple[FoundWorkload, Stored]] = []
    for found in objects.workloads:
        # What comes from an API server has passed its validation.
        errors = () if found.workload.is_live else validate_resources(found.workload.pod)
        if errors:
            objects.report(found, errors)
        else:
            accepted.append((found, storing.store(found.workload)))
    everything, neighbours = accepted, 0
    if objects.selection is not None:
        accepted = [(found, stored) for found, stored in everything if objects.takes(found)]
        neighbours = len(everything) - len(accepted)
    decisions = [decide(stored.pod, settings) for _, stored in accepted]
    policies = sum(is_decisive_policy(found.other) for found in objects.others)
    explained = Explained(
        classes=Counter([decision.qos_class for decision in decisions]),
        problems=sorted(objects.problems),
        others=len(objects.others) - policies + objects.skipped,
        as_written=sum(not found.workload.is_stored for found, _ in accepted),
        policies=policies,
        nodes=sum(found.other.kind == "Node" for found in objects.others),
        unknown=Counter((missing.kind, missing.name) for _, stored in accepted for missing in stored.unknown),
        refused=sum(stored.refusal is not None for _, stored in accepted),
        neighbours=neighbours,
    )
    if output == "csv":
        explained.rows = _rows(decisions)
        return explained
    from podqos.report.explain.explanation import explain_pod

    explained.items = [
        explain_pod(found.workload, stored, decision, found.source, settings, taken_for=found.place.taken_for)
        for (found, stored), decision in zip(accepted, decisions, strict=True)
    ]
    if output not in {"table", "wide", "name"}:
        from podqos.survival.pod_sets import pod_sets

        if neighbours:
            decisions = [decide(stored.pod, settings) for _, stored in everything]
        explained.pods = pod_sets((found.workload for found, _ in everything), decisions, settings)
    return explained


class Explaining:
    """Explains the pods of files, in their order; ``output`` is what for, as ``podqos explain -o`` names it."""

    def __init__(
        self,
        files: list[str],
        options: ExplainOptions,
        output: str,
        progress: Progress | None = None,
        selection: Selection | None = None,
    ) -> None:
        self._files = files
        self._options = options
        self._output = output
        self._progress = progress
        self._selection = selection
        self.settings, self.assumptions = options.settings()
        """What counts for the pods that have been explained so far, and what was assumed about their node."""

    def explained(self) -> Iterator[Explained]:
        """Yield what the files give; all cores work where that pays."""
        is_large = STDIN not in self._files and total_bytes(self._files) >= _WORTH_FORKING_BYTES
        if is_large and len(self._files) == 1 and self._output == "csv" and self._selection is None:
            parts = _explained_parts(self._files[0], self.settings)
            if parts:
                yield from parts
                return
        if is_large and len(self._files) > 1:
            yield from self._spread()
            return
        objects = load(*self._files, namespace=namespace_of(self._selection), progress=self._progress)
        objects.selection = self._selection
        cluster = self._surrounded_by(objects)
        yield explain_objects(objects, self.settings, cluster, self._output)

    def _surrounded_by(self, objects: Objects) -> Cluster | None:
        """Let Nodes and policies count, and return the policies."""
        self.settings, self.assumptions = self._options.settings(objects.of(_node_model()))
        return _cluster(objects)

    def _spread(self) -> Iterator[Explained]:
        """Yield what each file gives.

        Policies and Nodes count for the pods of all files, and few repositories hold any: only where some turn up is
        everything explained again with them.
        """
        from podqos.library.engines.fan_out import fan_out, usable_cores

        task = self._task(None)
        explained = list(fan_out(task, self._files, usable_cores(), self._progress))
        holders = [path for path, each in zip(self._files, explained, strict=True) if each.policies or each.nodes]
        objects = load(*holders, namespace=namespace_of(self._selection))
        cluster = self._surrounded_by(objects)
        if holders:
            yield Explained(problems=sorted(objects.problems))
            explained = list(fan_out(self._task(cluster), self._files, usable_cores(), self._progress))
        yield from explained

    def _task(self, cluster: Cluster | None) -> Callable[[str], Explained]:
        return partial(
            _explain_file, settings=self.settings, output=self._output, cluster=cluster, selection=self._selection
        )


def _explain_file(
    path: str, settings: ExplainSettings, output: str, cluster: Cluster | None, selection: Selection | None
) -> Explained:
    objects = Objects(namespace_of(selection))
    objects.selection = selection
    objects.add_file(path)
    return explain_objects(objects, settings, cluster, output)


def _explained_parts(path: str, settings: ExplainSettings) -> list[Explained]:
    """Return what the parts of a large list give; nothing where the file has to be read as a whole."""
    from podqos.library.engines.fan_out import fan_out, usable_cores
    from podqos.library.inputs.large_list import cut

    parts = cut(path, usable_cores())
    task: Callable[[Part], Explained | None] = partial(_explain_part, settings=settings)
    explained = [each for each in fan_out(task, parts, len(parts)) if each is not None]
    return explained if len(explained) == len(parts) else []


def _explain_part(part: Part, settings: ExplainSettings) -> Explained | None:
    """Explain one part of a large list; None where the file has to be read as a whole."""
    from podqos.library.inputs.large_list import read_part

    pods = read_part(part)
    if pods is None:
        return None
    decisions = [decide(pod, settings) for pod in pods]
    return Explained(classes=Counter([decision.qos_class for decision in decisions]), rows=_rows(decisions))


def _cluster(objects: Objects) -> Cluster | None:
    return objects.cluster() if has_policies(objects) else None


def _node_model() -> type[Node]:
    from podqos.model.node import Node

    return Node


def _rows(decisions: Sequence[Decision]) -> str:
    """Return the lines of ``-o csv``."""
    lines = []
    for decision in decisions:
        metadata = decision.pod.metadata
        start = f"{metadata.namespace or 'default'},{metadata.name or metadata.generate_name}"
        qos_class = decision.qos_class.value
        lines += [f"{start},{score.container},{qos_class},{score.value}\n" for score in decision.oom_scores]
    text = "".join(lines)
    # Names in Kubernetes need no quotes; what is no proper name shows here and is written with care.
    if '"' in text or "\r" in text or text.count(",") != 4 * len(lines) or text.count("\n") != len(lines):
        return _quoted_rows(decisions)
    return text


def _quoted_rows(decisions: Sequence[Decision]) -> str:
    from csv import writer
    from io import StringIO

    text = StringIO()
    table = writer(text, lineterminator="\n")
    for decision in decisions:
        metadata = decision.pod.metadata
        namespace, name = metadata.namespace or "default", metadata.name or metadata.generate_name
        for score in decision.oom_scores:
            table.writerow((namespace, name, score.container, decision.qos_class.value, score.value))
    return text.getvalue()
