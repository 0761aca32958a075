"""Explain the class of every workload as stored: why, and what follows from it.

``explain`` answers for objects. ``explain_objects`` answers for some of them, as far as an output needs it, and
``together`` puts several such answers together: many files are explained on all cores like that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.relevance import Question, tolerated, with_names
from podqos.admission.stored import PodStore, Stored
from podqos.admission.validation import validate_resources
from podqos.manifest.kinds import NAMESPACE, POLICY_GROUPS
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption, of_version
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.objects.assumptions import (
    KUBELET_SETTINGS,
    NO_POLICIES,
    added_containers,
    kept_scores,
    missing_classes,
    node_memory,
    policy_scopes,
)
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.other_objects import FoundObject, NotJudged
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime, stock_node
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.survival.node.decision import ExplainSettings, PodDecision, decide

if TYPE_CHECKING:
    from podqos.answers.explanation import Explanation, ExplanationList
    from podqos.model.node import Node
    from podqos.objects.kubelet_node import Kubelet
    from podqos.qos.run_flags import Engine
    from podqos.survival.node.pod_sets import PodSets

Key = TypeVar("Key")
AUTOSCALERS = ("VerticalPodAutoscaler", "HorizontalPodAutoscaler")
COUNTED_ELSEWHERE = (*(kind for kind in POLICY_GROUPS if kind != NAMESPACE), "Node", *AUTOSCALERS)
"""The kinds that count for the pods of other files, too."""


class Detail(IntEnum):
    """How much of an explanation is wanted; what follows from the decisions takes most of the time."""

    DECISIONS = 0
    """Class and scores of each pod, not explained."""
    LINES = 1
    """Explained without edits, cgroups and run flags."""
    BLOCKS = 2
    """With the edits that would change the class."""
    PODS = 3
    """Pods in full."""
    NODE = 4
    """Everything: pods, and the node they share."""


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
    own: Mapping[str, NodeSettings] = {}
    """What nodes say of themselves, by name: applies to pods that are bound to them."""
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

    def nodes(self, nodes: Iterable[Node] = ()) -> ExplainedNodes:
        """Return what pods are explained for where these Nodes are known."""
        known = list(nodes)
        settings, assumptions = self.settings(known)
        reported = frozenset(name for name, own in self.own.items() if own.kubelet is not None)
        return ExplainedNodes(settings, self._settings_by_node(known), assumptions, reported)

    def _settings_by_node(self, nodes: Iterable[Node]) -> dict[str, ExplainSettings]:
        """Return the settings for pods that are bound to a node, by its name; none where its memory is stated."""
        if self.node_memory_bytes is not None:
            return {}
        sizes = {node.name: node_memory(None, (node,)) for node in nodes}
        known = {name: memory_bytes for name, (memory_bytes, assumptions) in sizes.items() if not assumptions}
        made = {size: replace(self, node_memory_bytes=size).settings()[0] for size in set(known.values())}
        own = {
            name: settings.applied(replace(self, node_memory_bytes=known[name])).settings()[0]
            for name, settings in self.own.items()
            if name in known
        }
        return {name: made[size] for name, size in known.items()} | own


class NodeSettings(Struct, frozen=True):
    """What a node says of itself; None where it does not, or where it is stated instead."""

    kubelet: Kubelet | None = None
    profile: Profile | None = None
    """The rules of its kubelet's version."""
    runtime: Runtime | None = None
    cgroup_version: CgroupVersion | None = None

    def applied(self, options: ExplainOptions) -> ExplainOptions:
        """Return options for this node."""
        return replace(
            options,
            kubelet=self.kubelet or options.kubelet,
            profile=self.profile or options.profile,
            runtime=self.runtime or options.runtime,
            cgroup_version=self.cgroup_version or options.cgroup_version,
        )


class ExplainedNodes(Struct, frozen=True):
    """What pods are explained for."""

    settings: ExplainSettings
    """The node of pods that are bound to none, or to one that is not known."""
    by_name: Mapping[str, ExplainSettings]
    """Nodes that are known."""
    assumptions: tuple[Assumption, ...]
    """What was assumed about the node."""
    reported: frozenset[str] = frozenset()
    """The nodes whose kubelets report their settings."""

    def about(self, names: Collection[str]) -> ExplainedNodes:
        """Return the same for pods that are bound to nodes of these names only, of which one may be empty.

        If these nodes are alike and their kubelets report their settings, so is the node that pods share.
        """
        first, *others = [self.by_name.get(name) for name in names] or [None]
        if first is None or any(other != first for other in others) or not self.reported.issuperset(names):
            return self
        known = tuple(assumption for assumption in self.assumptions if assumption != KUBELET_SETTINGS)
        return replace(self, settings=first, assumptions=known)

    def of(self, pod: Pod) -> ExplainSettings:
        """Return the node that a pod is bound to, else the one for all others."""
        return self.by_name.get(pod.spec.node_name, self.settings)


class Explained(Struct, frozen=True, kw_only=True):
    """What some objects gave."""

    items: tuple[Explanation, ...] = ()
    decisions: tuple[PodDecision, ...] = ()
    """With ``Detail.DECISIONS``: in place of explanations."""
    classes: Counter[QOSClass] = Counter()
    problems: tuple[Problem, ...] = ()
    others: int = 0
    """Objects that hold no pod and are no policies, and documents that are no Kubernetes objects."""
    pods: PodSets | None = None
    """For the outputs that show the node as well."""
    as_written: int = 0
    """Pods that no API server has stored yet."""
    policies: int = 0
    holders: tuple[str, ...] = ()
    """Files with what counts for the pods of other files, too: policies, Nodes, autoscalers."""
    with_pods: tuple[str, ...] = ()
    """Files with pods that the answer is about."""
    unknown: Counter[tuple[str, str]] = Counter()
    """Kind and name of classes that pods name and that were not given, with the number of pods."""
    refused: int = 0
    """Pods that policies of the input do not let in."""
    unjudged: tuple[NotJudged, ...] = ()
    """Objects whose pods cannot be read from them."""
    kinds: Counter[str] = Counter()
    """The kinds of the workloads."""
    neighbours: int = 0
    """Pods that count but that the answer is not about."""
    kept_scores: tuple[Assumption, ...] = ()
    """Scores of containers that may have started before their requests were resized."""


def explain(objects: Objects, options: ExplainOptions | None = None) -> ExplanationList:
    """Return what each workload is as the API server stores it; policies among the objects are applied.

    Workloads that the API server would not store are left out, and are among the problems of the objects.
    """
    nodes = (options or ExplainOptions()).nodes(nodes_among(objects))
    objects.check_policies()
    objects.check_kubelets()
    explained = explain_objects(objects, nodes)
    assumptions = (*nodes.assumptions, *policy_scopes(objects), *further_assumptions(explained, objects))
    return explanation_list(explained, nodes.settings, assumptions)


def nodes_among(objects: Objects) -> Sequence[Node]:
    """Return the Nodes among objects."""
    from podqos.model.node import Node

    return objects.of(Node)


def explanation_list(
    explained: Explained, settings: ExplainSettings, assumptions: tuple[Assumption, ...]
) -> ExplanationList:
    """Return the published answer."""
    from podqos.answers.explanation import ExplanationList, explain_node
    from podqos.survival.node.pod_sets import PodSets

    return ExplanationList(
        items=explained.items,
        kubernetes_version=settings.profile.version_text,
        node_memory_bytes=settings.node_memory_bytes,
        node=explain_node((explained.pods or PodSets()).counted, settings),
        assumptions=assumptions,
    )


def further_assumptions(explained: Explained, objects: Objects) -> tuple[Assumption, ...]:
    """Return what was assumed about the cluster that stores the pods."""
    no_policies = (NO_POLICIES,) if explained.as_written and not explained.policies else ()
    missing = missing_classes(explained.unknown, objects)
    of_kinds = added_containers(set(explained.kinds))
    return (*no_policies, *objects.assumptions, *missing, *of_kinds, *explained.kept_scores)


def explain_objects(
    objects: Objects, nodes: ExplainedNodes, detail: Detail = Detail.NODE, surroundings: Objects | None = None
) -> Explained:
    """Explain the workloads of objects, as stored with the policies among them, or among their surroundings."""
    without_pods = _without_workloads(objects)
    if not objects.workloads:
        return replace(without_pods, problems=tuple(sorted(objects.problems)))
    around = surroundings or objects
    everything = accepted = list(_accepted(objects, _storing(around, nodes.settings.profile)))
    if objects.selection is not None:
        accepted = [(found, stored) for found, stored in everything if objects.takes(found)]
    own = [nodes.of(stored.pod) for _, stored in accepted]
    decisions = [decide(stored.pod, settings) for (_, stored), settings in zip(accepted, own, strict=True)]
    pods = None
    if detail >= Detail.NODE:
        from podqos.survival.node.pod_sets import pod_sets

        is_all = len(everything) == len(accepted)
        of_all = decisions if is_all else [decide(stored.pod, nodes.settings) for _, stored in everything]
        pods = pod_sets((found.workload for found, _ in everything), of_all, nodes.settings)
    items: tuple[Explanation, ...] = ()
    if detail > Detail.DECISIONS:
        items = tuple(_items(objects, around, zip(accepted, decisions, own, strict=True), detail))
    return replace(
        without_pods,
        items=items,
        decisions=tuple(decisions) if detail is Detail.DECISIONS else (),
        classes=Counter([decision.qos_class for decision in decisions]),
        problems=tuple(sorted(objects.problems)),
        pods=pods,
        as_written=sum(not found.workload.is_stored for found, _ in accepted),
        unknown=Counter((missing.kind, missing.name) for _, stored in accepted for missing in stored.unknown),
        refused=sum(stored.refusal is not None for _, stored in accepted),
        kinds=Counter([found.workload.kind for found, _ in accepted]),
        with_pods=tuple(dict.fromkeys(found.source for found, _ in accepted)),
        neighbours=len(everything) - len(accepted),
        kept_scores=kept_scores(stored.pod for _, stored in accepted),
    )


def together(parts: Sequence[Explained]) -> Explained:
    """Return as one what was explained piece by piece."""
    if len(parts) == 1:
        return parts[0]
    from podqos.survival.node.pod_sets import PodSets

    pods = [part.pods for part in parts if part.pods is not None]
    return Explained(
        items=tuple(item for part in parts for item in part.items),
        decisions=tuple(decision for part in parts for decision in part.decisions),
        classes=_total(part.classes for part in parts),
        problems=tuple(sorted({problem for part in parts for problem in part.problems})),
        others=sum(part.others for part in parts),
        pods=reduce(PodSets.plus, pods) if pods else None,
        as_written=sum(part.as_written for part in parts),
        policies=sum(part.policies for part in parts),
        holders=tuple(path for part in parts for path in part.holders),
        with_pods=tuple(path for part in parts for path in part.with_pods),
        unknown=_total(part.unknown for part in parts),
        refused=sum(part.refused for part in parts),
        unjudged=tuple(item for part in parts for item in part.unjudged),
        kinds=_total(part.kinds for part in parts),
        neighbours=sum(part.neighbours for part in parts),
        kept_scores=tuple(dict.fromkeys(assumption for part in parts for assumption in part.kept_scores)),
    )


def _total(counters: Iterable[Counter[Key]]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for counter in counters:
        total.update(counter)
    return total


_Judged = tuple[tuple[FoundWorkload, Stored], PodDecision, ExplainSettings]
"""A workload as it is stored, what was decided about its pods, and for which node."""


def _items(objects: Objects, around: Objects, judged: Iterable[_Judged], detail: Detail) -> Iterator[Explanation]:
    """Yield what is said about each workload."""
    from podqos.answers.explanation import DecidedPod, explain_pod
    from podqos.objects.autoscaling import Autoscalers

    autoscalers = Autoscalers(around)
    for (found, stored), decision, settings in judged:
        decided = DecidedPod(
            workload=found.workload,
            stored=stored,
            decision=decision,
            settings=settings,
            source=objects.source_name(found),
            taken_for=found.place.taken_for,
            vertical=autoscalers.vertical(found),
            horizontal=autoscalers.horizontal(found),
        )
        yield explain_pod(decided, with_edits=detail >= Detail.BLOCKS, in_full=detail >= Detail.PODS)


def _without_workloads(objects: Objects) -> Explained:
    """Return what is said about all other objects."""
    return Explained(
        others=sum(_is_left_out(found) for found in objects.others) + objects.skipped,
        policies=sum(found.is_decisive for found in objects.others),
        holders=holders_among(objects),
    )


def holders_among(objects: Objects) -> tuple[str, ...]:
    """Return the files with what counts for the pods of other files, too."""
    policies = [found for found in objects.others if found.is_decisive]
    others = [found for found in objects.others if found.other.kind == "Node" or found.other.kind in AUTOSCALERS]
    return tuple(dict.fromkeys(found.source.path for found in (*policies, *others)))


def _accepted(objects: Objects, storing: Callable[[str], PodStore]) -> Iterator[tuple[FoundWorkload, Stored]]:
    """Yield the workloads as they are stored; what the API server refuses of their resources is reported."""
    for found in objects.workloads:
        # What comes from an API server has passed its validation.
        errors = () if found.workload.is_live else validate_resources(found.workload.pod)
        if errors:
            objects.report(found, errors)
        else:
            objects.tolerate(found, tolerated(found.workload, Question.CLASS, objects.written(found)))
            workload = found.workload
            yield found, storing(found.source).store(replace(workload, pod=with_names(workload.pod)))


def _is_left_out(found: FoundObject) -> bool:
    """Whether an object of a file was read in vain; a cluster is asked for what is of use only."""
    return not (found.is_stored or found.source.cluster or found.is_decisive)


def _storing(objects: Objects, profile: Profile) -> Callable[[str], PodStore]:
    """Return what stores the pods of a file, by the policies that apply to it."""
    by_scopes: dict[tuple[str, ...], PodStore] = {}
    if not objects.has_policies:
        without = PodStore(None, profile)
        return lambda _: without

    def storing(source: str) -> PodStore:
        scopes = objects.scopes(source)
        if scopes not in by_scopes:
            by_scopes[scopes] = PodStore(objects.cluster(source), profile)
        return by_scopes[scopes]

    return storing
