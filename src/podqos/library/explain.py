"""Explain the class of every workload as stored: why, and what follows from it.

``explain`` answers for objects. ``Explaining`` does the same for files, as ``podqos explain`` needs it: on all cores
where that pays, and without keeping more of a large list than a line per container.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.relevance import Question, tolerated, with_names
from podqos.admission.stored import Stored, Storing
from podqos.admission.validation import validate_resources
from podqos.controls import cell
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption, of_version
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.objects.assumptions import (
    KUBELET_SETTINGS,
    NO_POLICIES,
    added_containers,
    missing_classes,
    node_memory,
    policy_scopes,
    scoped_policies,
)
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.objects import FoundWorkload, Objects, Progress, custom_kinds
from podqos.objects.other_objects import FoundObject, NotJudged
from podqos.objects.selection import Selection, namespace_of
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime, stock_node
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.reading.files import are_larger, source_of, with_data
from podqos.reading.loading import load
from podqos.survival.decision import Decision, ExplainSettings, decide

if TYPE_CHECKING:
    from podqos.answers.explanation import Explanation, ExplanationList
    from podqos.manifest.pod_kinds import CustomKind
    from podqos.model.node import Node
    from podqos.model.policy import PriorityClass, RuntimeClass
    from podqos.objects.kubelet_node import Kubelet
    from podqos.qos.run_flags import Engine
    from podqos.reading.large_list import Part
    from podqos.survival.pod_sets import PodSets

# Below this a second process costs more than it saves.
_WORTH_FORKING_BYTES = 1 << 20
_LARGEST_PIECE = 32  # files that are explained together
AUTOSCALERS = ("VerticalPodAutoscaler", "HorizontalPodAutoscaler")


class ExplainOptions(Struct, frozen=True, kw_only=True):
    """The node that pods are explained for, and the Kubernetes version."""

    node_memory_bytes: int | None = None
    """None: of the Node that a pod is bound to, else of the smallest Node among the objects, or 64Gi."""
    node_swap_bytes: int = 0
    cores: int | None = None
    """None where unknown: the CPU share of all pods together is then left open."""
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
        assumptions = (*of_version(self.profile), *assumptions)
        score = KUBELET_OOM_SCORE_ADJ
        if self.kubelet is None:
            cgroups = stock_node(
                memory_bytes,
                cores=self.cores,
                swap_bytes=self.node_swap_bytes,
                cgroup_version=self.cgroup_version,
                profile=self.profile,
            )
            assumptions += (KUBELET_SETTINGS,)
        else:
            # What reads a configuration takes longer to load than a pod to explain.
            from podqos.objects.kubelet_node import cgroups_of, rules_of

            assumptions = tuple(dict.fromkeys((*rules_of(self.kubelet, self.profile), *assumptions)))
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

    def settings_by_node(self, nodes: Iterable[Node]) -> dict[str, ExplainSettings]:
        """Return the settings for pods that are bound to a node, by its name; none where its memory is stated."""
        if self.node_memory_bytes is not None:
            return {}
        sizes = {node.name: node_memory(None, (node,)) for node in nodes}
        known = {name: memory_bytes for name, (memory_bytes, assumptions) in sizes.items() if not assumptions}
        made = {size: replace(self, node_memory_bytes=size).settings()[0] for size in set(known.values())}
        return {name: made[size] for name, size in known.items()}


def explain(objects: Objects, options: ExplainOptions | None = None) -> ExplanationList:
    """Return what each workload is as the API server stores it; policies among the objects are applied.

    Workloads that the API server would not store are left out, and are among the problems of the objects.
    """
    options, nodes = options or ExplainOptions(), list(objects.of(_node_model()))
    settings, assumptions = options.settings(nodes)
    objects.check_policies()
    explained = explain_objects(objects, settings, by_node=options.settings_by_node(nodes))
    return explanation_list([explained], settings, (*assumptions, *policy_scopes(objects)), objects)


def explanation_list(
    explained: Sequence[Explained],
    settings: ExplainSettings,
    assumptions: tuple[Assumption, ...],
    objects: Objects | None = None,
) -> ExplanationList:
    """Put together what was explained piece by piece."""
    from podqos.answers.explanation import ExplanationList, explain_node
    from podqos.survival.pod_sets import PodSets

    pods = reduce(PodSets.plus, (each.pods for each in explained if each.pods is not None), PodSets())
    return ExplanationList(
        items=tuple(item for each in explained for item in each.items),
        kubernetes_version=settings.profile.version_text,
        node_memory_bytes=settings.node_memory_bytes,
        node=explain_node(pods.counted, settings),
        assumptions=(*assumptions, *further_assumptions(explained, objects)),
    )


def further_assumptions(explained: Sequence[Explained], objects: Objects | None = None) -> tuple[Assumption, ...]:
    """Return what was assumed about the cluster that stores the pods."""
    meets_none = any(each.as_written for each in explained) and not any(each.policies for each in explained)
    no_policies = (NO_POLICIES,) if meets_none else ()
    unknown = dict.fromkeys(name for each in explained for name in each.unknown)
    kinds = {kind for each in explained for kind in each.kinds}
    unread = () if objects is None else objects.assumptions
    return (*no_policies, *unread, *missing_classes(unknown, objects), *added_containers(kinds))


class Explained(Struct):
    """What some objects gave."""

    items: list[Explanation] = []
    rows: str = ""
    """For CSV, which is for many pods: the finished lines instead of explanations."""
    classes: Counter[QOSClass] = Counter()
    problems: list[Problem] = []
    others: int = 0
    """Objects that hold no pod and are no policies, and documents that are no Kubernetes objects."""
    unparsed: int = 0
    """Of these, documents that were not parsed: their kind was enough."""
    pods: PodSets | None = None
    """For the outputs that show the node as well."""
    as_written: int = 0
    """Pods that no API server has stored yet."""
    policies: int = 0
    holders: list[str] = []
    """Files with what counts for the pods of other files, too: policies, Nodes, autoscalers."""
    with_pods: list[str] = []
    """Files with pods that the answer is about."""
    unknown: Counter[tuple[str, str]] = Counter()
    """Kind and name of classes that pods name and that were not given, with the number of pods."""
    refused: int = 0
    """Pods that policies of the input do not let in."""
    unjudged: list[NotJudged] = []
    """Objects whose pods cannot be read from them, and that are not among the problems."""
    kinds: Counter[str] = Counter()
    """The kinds of the workloads."""
    neighbours: int = 0
    """Pods that count but that the answer is not about."""


def explain_objects(
    objects: Objects,
    settings: ExplainSettings,
    output: str = "json",
    surroundings: Objects | None = None,
    *,
    by_node: Mapping[str, ExplainSettings],
) -> Explained:
    """Explain the workloads of objects, as stored with the policies among them, or among their surroundings.

    ``by_node`` are the settings for pods that are bound to a node that is known.
    """
    explained = _without_workloads(objects)
    if not objects.workloads:
        explained.problems = sorted(objects.problems)
        return explained
    everything = accepted = list(_accepted(objects, _storing(surroundings or objects, settings.profile)))
    if objects.selection is not None:
        accepted = [(found, stored) for found, stored in everything if objects.takes(found)]
        explained.neighbours = len(everything) - len(accepted)
    own = [by_node.get(stored.pod.spec.node_name, settings) for _, stored in accepted]
    decisions = [decide(stored.pod, each) for (_, stored), each in zip(accepted, own, strict=True)]
    autoscalers = None
    if output != "csv":
        from podqos.objects.autoscaling import Autoscalers

        autoscalers = Autoscalers(surroundings or objects)
    explained.classes = Counter([decision.qos_class for decision in decisions])
    explained.problems = sorted(objects.problems)
    explained.as_written = sum(not found.workload.is_stored for found, _ in accepted)
    explained.unknown = Counter((missing.kind, missing.name) for _, stored in accepted for missing in stored.unknown)
    explained.refused = sum(stored.refusal is not None for _, stored in accepted)
    explained.kinds = Counter([found.workload.kind for found, _ in accepted])
    explained.with_pods = list(dict.fromkeys(found.source for found, _ in accepted))
    if autoscalers is None:
        explained.rows = _rows(decisions)
        return explained
    from podqos.answers.explanation import explain_pod

    explained.items = [
        explain_pod(
            found.workload,
            stored,
            decision,
            objects.source_name(found),
            each,
            taken_for=found.place.taken_for,
            vertical=autoscalers.vertical(found),
            horizontal=autoscalers.horizontal(found),
            in_full=output not in {"table", "name"},
        )
        for (found, stored), decision, each in zip(accepted, decisions, own, strict=True)
    ]
    if output not in {"table", "wide", "name"}:
        from podqos.survival.pod_sets import pod_sets

        if explained.neighbours:
            decisions = [decide(stored.pod, settings) for _, stored in everything]
        explained.pods = pod_sets((found.workload for found, _ in everything), decisions, settings)
    return explained


def _without_workloads(objects: Objects) -> Explained:
    """Return what is said about all other objects."""
    parsed = [found for found in objects.others if found.other.is_parsed]
    policies = [found for found in parsed if found.is_decisive]
    others = [found for found in parsed if found.other.kind == "Node" or found.other.kind in AUTOSCALERS]
    return Explained(
        others=sum(_is_left_out(found) for found in objects.others) + objects.skipped,
        unparsed=len(objects.others) - len(parsed),
        policies=len(policies),
        holders=list(dict.fromkeys(found.source.path for found in (*policies, *others))),
    )


def _accepted(objects: Objects, storing: Callable[[str], Storing]) -> Iterator[tuple[FoundWorkload, Stored]]:
    """Yield the workloads as they are stored; what the API server refuses of their resources is reported."""
    for found in objects.workloads:
        # What comes from an API server has passed its validation.
        errors = () if found.workload.is_live else validate_resources(found.workload.pod)
        if errors:
            objects.report(found, errors)
        else:
            objects.tolerate(found, tolerated(found.workload, Question.CLASS))
            workload = found.workload
            yield found, storing(found.source).store(replace(workload, pod=with_names(workload.pod)))


def _is_left_out(found: FoundObject) -> bool:
    """Whether an object of a file was read in vain; a cluster is asked for what is of use only."""
    return not (found.is_stored or found.source.cluster or (found.other.is_parsed and found.is_decisive))


def _storing(objects: Objects, profile: Profile) -> Callable[[str], Storing]:
    """Return what stores the pods of a file, by the policies that apply to it."""
    by_scopes: dict[tuple[str, ...], Storing] = {}
    if not objects.has_policies:
        without = Storing(None, profile)
        return lambda _: without

    def storing(source: str) -> Storing:
        scopes = objects.scopes(source)
        if scopes not in by_scopes:
            by_scopes[scopes] = Storing(objects.cluster(source), profile)
        return by_scopes[scopes]

    return storing


class Explaining:
    """Explains the pods of files, in their order; ``output`` is what for, as ``podqos explain -o`` names it.

    ``stated`` are classes of the cluster that are in no file, ``stored`` is what else the cluster has, ``kinds`` are
    custom resources that hold pods, each with the path to its template.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: ExplainOptions,
        output: str,
        progress: Progress | None = None,
        *,
        stated: Sequence[PriorityClass | RuntimeClass] = (),
        stored: Inputs | None = None,
        kinds: Mapping[str, str] | None = None,
        selection: Selection | None = None,
    ) -> None:
        self._inputs = inputs
        self._stored = stored
        self._options = options
        self._output = output
        self._progress = progress
        self._stated = stated
        self._stated_kinds = kinds
        self._kinds = custom_kinds(kinds)
        self._selection = selection
        self._objects = Objects(namespace_of(selection), stated=stated, directory=os.getcwd())
        self._objects.selection = selection
        """What holds the policies and Nodes."""
        self.settings, self.assumptions = options.settings()
        """What counts for the pods that have been explained so far, and what was assumed about their node."""
        self._by_node: dict[str, ExplainSettings] = {}

    def explained(self) -> Iterator[Explained]:
        """Yield what the files give; all cores work where that pays."""
        files = self._inputs.files
        paths = self._inputs.paths
        is_large = STDIN not in paths and are_larger(paths, _WORTH_FORKING_BYTES)
        if (
            is_large
            and len(files) == 1
            and self._output == "csv"
            and not self._inputs.problems
            and not self._selection
            and self._stored is None
        ):
            parts = _explained_parts(paths[0], self.settings)
            if parts:
                yield from parts
                return
        if is_large and len(files) > 1 and self._stored is None:
            yield from self._spread()
            return
        objects = load(
            self._inputs,
            policies=() if self._stored is None else (self._stored,),
            namespace=namespace_of(self._selection),
            progress=self._progress,
            stated=self._stated,
            kinds=self._stated_kinds,
            skips_services=True,
        )
        objects.selection = self._selection
        self._surrounded_by(objects)
        self.assumptions += policy_scopes(objects)
        yield explain_objects(objects, self.settings, self._output, by_node=self._by_node)

    def further_assumptions(self, explained: Sequence[Explained]) -> tuple[Assumption, ...]:
        """Return what was assumed about the cluster that stores the pods."""
        return further_assumptions(explained, self._objects)

    def whole(self, explained: Sequence[Explained]) -> ExplanationList:
        """Put together everything that was explained."""
        return explanation_list(explained, self.settings, self.assumptions, self._objects)

    def _surrounded_by(self, objects: Objects) -> None:
        """Let Nodes and policies count."""
        self._objects = objects
        nodes = list(objects.of(_node_model()))
        self.settings, self.assumptions = self._options.settings(nodes)
        self._by_node = self._options.settings_by_node(nodes)
        objects.check_policies()

    def _spread(self) -> Iterator[Explained]:
        """Yield what the files give, several at a time.

        Policies and Nodes count for the pods of other files, too, and few repositories hold any: where some turn up,
        the files they count for are explained again with them.
        """
        from podqos.library.engines.fan_out import usable_cores

        files = {file.path: file for file in self._inputs.files}
        pieces = _pieces(list(files.values()), usable_cores())
        explained = list(self._fan_out(pieces))
        holders = [path for each in _flat(explained) for path in each.holders]
        objects = Objects(namespace_of(self._selection), stated=self._stated, directory=os.getcwd())
        objects.selection = self._selection
        objects.note(*self._inputs.problems)
        for file in map(files.__getitem__, holders):
            objects.add(source_of(file, self._kinds, skips_services=True))
        before = self.settings
        self._surrounded_by(objects)
        has_autoscalers = any(found.other.kind in AUTOSCALERS for found in objects.others)
        if has_autoscalers and self._output != "csv":
            from podqos.objects.autoscaling import Autoscalers

            Autoscalers(objects)  # notes what is wrong with them
        if holders:
            applies_to_all = (
                self.settings != before
                or self._by_node
                or has_autoscalers
                or any(found.is_policy and found.source.scope is None for found in objects.others)
            )
            again = [
                number
                for number, piece in enumerate(pieces)
                if applies_to_all or any(objects.scopes(file.path) for file in piece)
            ]
            for number, result in zip(again, self._fan_out([pieces[number] for number in again]), strict=True):
                explained[number] = result
            with_pods = [path for each in _flat(explained) for path in each.with_pods]
            limited = [
                source.path
                for source in objects.policy_sources()
                if source.path not in objects.alternatives
                and any(source.scope not in objects.scopes(path) for path in with_pods)
            ]
            self.assumptions += scoped_policies(limited, objects.alternatives)
        problems = [problem for each in _flat(explained) for problem in each.problems]
        yield Explained(problems=sorted((*objects.problems, *problems)))
        yield from _flat(explained)

    def _fan_out(self, pieces: Sequence[Sequence[InputFile]]) -> Iterator[list[Explained]]:
        """Yield what each piece gives, with the policies and Nodes that are known so far."""
        from podqos.library.engines.fan_out import fan_out, usable_cores

        task = partial(
            _explain_files,
            settings=self.settings,
            output=self._output,
            surroundings=self._objects,
            kinds=self._kinds,
            by_node=self._by_node,
        )
        return fan_out(task, pieces, usable_cores(), self._progress and partial(_told_files, self._progress, pieces))


def _pieces(files: Sequence[InputFile], workers: int) -> list[Sequence[InputFile]]:
    """Cut files into pieces: large, because each has its costs, but enough of them to keep all workers busy."""
    size = max(1, min(_LARGEST_PIECE, len(files) // (8 * workers)))
    return [files[start : start + size] for start in range(0, len(files), size)]


def _told_files(progress: Progress, pieces: Sequence[Sequence[InputFile]], done: int, _total: int) -> None:
    """Tell the progress in files instead of pieces."""
    progress(sum(map(len, pieces[:done])), sum(map(len, pieces)))


def _flat(explained: Iterable[Iterable[Explained]]) -> Iterator[Explained]:
    return chain.from_iterable(explained)


def _explain_files(
    files: Sequence[InputFile],
    *,
    settings: ExplainSettings,
    output: str,
    surroundings: Objects,
    kinds: Mapping[str, CustomKind],
    by_node: Mapping[str, ExplainSettings],
) -> list[Explained]:
    """Explain some files together; but those with policies one by one, which may contradict each other."""
    groups: list[Objects] = []
    is_open = False  # whether the last group takes more files
    # One after the other: system calls between the steps of reading would slow these down.
    held = [with_data(file) for file in files]
    sources = [source_of(each, kinds, skips_services=True) for each in held]
    for source in sources:
        has_policies = source.reading.has_policies
        if has_policies or not is_open:
            groups.append(Objects(surroundings.namespace, directory=surroundings.directory))
            groups[-1].selection = surroundings.selection
        is_open = not has_policies
        groups[-1].add(source)
    explained = []
    for objects in groups:
        explained.append(explain_objects(objects, settings, output, surroundings, by_node=by_node))
        explained[-1].unjudged = objects.unjudged
    return explained


def _explained_parts(path: str, settings: ExplainSettings) -> list[Explained]:
    """Return what the parts of a large list give; nothing where the file has to be read as a whole."""
    from podqos.library.engines.fan_out import fan_out, usable_cores
    from podqos.reading.large_list import cut

    parts = cut(path, usable_cores())
    task: Callable[[Part], Explained | None] = partial(_explain_part, settings=settings)
    explained = [each for each in fan_out(task, parts, len(parts)) if each is not None]
    return explained if len(explained) == len(parts) else []


def _explain_part(part: Part, settings: ExplainSettings) -> Explained | None:
    """Explain one part of a large list; None where the file has to be read as a whole."""
    from podqos.reading.large_list import read_part

    pods = read_part(part)
    if pods is None:
        return None
    decisions = [decide(pod, settings) for pod in pods]
    return Explained(classes=Counter([decision.qos_class for decision in decisions]), rows=_rows(decisions))


def _node_model() -> type[Node]:
    from podqos.model.node import Node

    return Node


def _rows(decisions: Sequence[Decision]) -> str:
    """Return the lines of ``-o csv``."""
    lines = []
    for decision in decisions:
        metadata = decision.pod.metadata
        start = f"{metadata.namespace_or_default},{metadata.name or metadata.generate_name}"
        qos_class = decision.qos_class.value
        if decision.pod.is_windows:
            lines += [f"{start},{score.container},{qos_class},\n" for score in decision.oom_scores]
        else:
            lines += [f"{start},{score.container},{qos_class},{score.value}\n" for score in decision.oom_scores]
    text = "".join(lines)
    # Names in Kubernetes need no quotes; anything else shows here and goes through the csv module.
    if (
        '"' in text
        or "\r" in text
        or text.count(",") != 4 * len(lines)
        or text.count("\n") != len(lines)
        or _has_formulas(text)
    ):
        return _quoted_rows(decisions)
    return text


def _has_formulas(text: str) -> bool:
    """Whether a cell may begin like a formula; a score below zero does not count."""
    scores = sum(text.count(f",{qos_class},-") for qos_class in QOSClass)
    return (
        text.count(",-") != scores
        or any(f"{end}{start}" in text for end in ",\n" for start in "=+@\t")
        or "\n-" in text
        or text.startswith(tuple("=+-@\t"))
    )


def _quoted_rows(decisions: Sequence[Decision]) -> str:
    from csv import writer
    from io import StringIO

    text = StringIO()
    table = writer(text, lineterminator="\n")
    for decision in decisions:
        metadata = decision.pod.metadata
        namespace, name = metadata.namespace_or_default, metadata.name or metadata.generate_name
        for score in decision.oom_scores:
            value = "" if decision.pod.is_windows else score.value
            table.writerow(map(cell, (namespace, name, score.container, decision.qos_class.value, value)))
    return text.getvalue()
