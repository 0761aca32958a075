"""``podqos explain``: the class of every workload as the API server stores it, why, and what follows from it.

The classes below are the documented JSON shape: fields are added, never renamed or removed, and
``docs/schema/explain.json`` is made from them. Words that several questions use are in ``text.qos``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.relevance import Question, tolerated, with_names
from podqos.admission.stored import PodStore, Stored
from podqos.admission.validation import validate_resources
from podqos.amounts import listed, mebibytes
from podqos.model.assumption import Assumption, of_version
from podqos.model.listing import Listing
from podqos.model.pod import TERMINAL_PHASES, Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
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
from podqos.orders.decision import ExplainSettings, PodDecision, decide
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion, Runtime, stock_node
from podqos.qos.classes import class_per_resource, classify
from podqos.qos.edits import Edit, edits_to_guaranteed
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ, OOMScore
from podqos.text import qos as words
from podqos.text.changes import ChangeReport, change_lines, change_report
from podqos.text.components import ComponentReport, component_table, components, idle_score
from podqos.text.style import Style, columns, labelled
from podqos.text.tables import Table

if TYPE_CHECKING:
    from fractions import Fraction

    from podqos.model.autoscaling import ContainerResourcePolicy, VerticalPodAutoscaler
    from podqos.model.node import Node
    from podqos.objects.autoscaling import Autoscalers
    from podqos.objects.kubelet_node import Kubelet
    from podqos.qos.cgroup import Cgroup
    from podqos.qos.run_flags import ContainerFlags, Engine

# ---- the answer ------------------------------------------------------------------------------------------------------


class FlagExplanation(Struct, frozen=True):
    """One flag of ``docker run`` or ``podman run``; ``value`` is null where it is left out."""

    name: str
    status: str
    value: str | None
    reason: str


class ContainerAmounts(Struct, frozen=True):
    """A container as it is stored, or as far as it got."""

    name: str
    type: str
    """``container``, ``initContainer``, ``sidecar`` or ``ephemeralContainer``."""
    requests: dict[str, str]
    limits: dict[str, str]


class ContainerExplanation(ContainerAmounts, frozen=True, rename="camel"):
    """One container: what it requests and what follows from that."""

    qos_class_per_resource: dict[str, QOSClass]
    oom_score_adj: int | None
    """Null on Windows, which has no such score."""
    oom_score_idle: int | None
    """What ``/proc/PID/oom_score`` shows on that node for a process of the container that is idle."""
    oom_rule: str
    oom_reason: str
    run_flags: tuple[FlagExplanation, ...]
    oom_score_adj_after_restart: int | None = None
    """Null unless the container runs with the score of an earlier request, from before a resize in place."""


class CgroupFileExplanation(Struct, frozen=True):
    """One file; ``value`` is null where nothing is written and the kernel's default stays."""

    name: str
    value: str | None
    rule: str
    reason: str


class CgroupExplanation(Struct, frozen=True, rename="camel"):
    """One directory of the pod, or above all pods."""

    level: str
    """``node``, ``qos``, ``pod``, ``sandbox`` or ``container``."""
    container: str
    path: str | None
    oci_path: str
    """What the OCI runtime is given; with systemd it is not a directory."""
    files: tuple[CgroupFileExplanation, ...]


class ScaledContainer(Struct, frozen=True, rename="camel"):
    """A container at one bound."""

    container: str
    oom_score_adj: int | None
    """Null where the autoscaler has no such bound for memory, and the score depends on it."""


class ScaledPod(Struct, frozen=True, rename="camel"):
    """A pod at one bound of its autoscaler."""

    qos_class: QOSClass
    containers: tuple[ScaledContainer, ...]


class VerticalScaling(Struct, frozen=True, rename="camel"):
    """What an autoscaler may make of the pods of a workload."""

    autoscaler: str
    update_mode: str
    at_min_allowed: ScaledPod
    at_max_allowed: ScaledPod


class HorizontalScaling(Struct, frozen=True, rename="camel"):
    """The bounds of a HorizontalPodAutoscaler."""

    autoscaler: str
    min_replicas: int
    max_replicas: int


class Explanation(Struct, frozen=True, rename="camel"):
    """One pod, or the pods of one workload."""

    kind: str
    namespace: str
    name: str
    source: str
    replicas: int | None
    qos_class: QOSClass
    qos_class_as_written: QOSClass
    """Before the API server's defaulting."""
    qos_class_computed: QOSClass
    """From the resources; differs from ``qosClass`` only if a live pod's status says something else."""
    decided_by: str
    reason: str
    edits_to_guaranteed: tuple[Edit, ...]
    containers: tuple[ContainerExplanation, ...]
    cgroups: tuple[CgroupExplanation, ...]
    priority: int
    """As stored: that of its priority class, or of the global default."""
    priority_class_name: str
    policy_changes: tuple[ChangeReport, ...]
    """What policies of the input wrote into the pod."""
    refusal: str | None
    """The API server's answer if policies of the input refuse the pod; the rest shows how far it got."""
    notes: tuple[str, ...]
    """Other remarks: the class as written, what was assumed, which policies were not applied."""
    vertical_scaling: VerticalScaling | None = None
    """What a VerticalPodAutoscaler of the input may make of the pods."""
    horizontal_scaling: HorizontalScaling | None = None
    """How many pods a HorizontalPodAutoscaler of the input may run."""


class NodeExplanation(Struct, frozen=True):
    """What the pods share: the cgroups above them, and the node's own processes."""

    pods: int
    """How many pods count, all assumed to be on one node: one replica of each workload, none that has ended."""
    assumption: str
    """The same in words."""
    cgroups: tuple[CgroupExplanation, ...]
    """``kubepods`` and the classes; empty with ``cgroupsPerQOS: false``."""
    components: tuple[ComponentReport, ...]


class ExplanationList(Listing[Explanation], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos explain -o json``."""

    items: tuple[Explanation, ...]
    kubernetes_version: str
    node_memory_bytes: int
    node: NodeExplanation
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ExplanationList"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[Explanation, ...]:
        return self.items


class NodeSettings(Struct, frozen=True):
    """What a node says of itself; None where it does not, or where it is stated instead."""

    kubelet: Kubelet | None = None
    profile: Profile | None = None
    """The rules of its kubelet's version."""
    runtime: Runtime | None = None
    cgroup_version: CgroupVersion | None = None


_AUTOSCALERS = frozenset({"VerticalPodAutoscaler", "HorizontalPodAutoscaler"})

# ---- the rule --------------------------------------------------------------------------------------------------------


def explain(
    objects: Objects,
    *,
    node_memory_bytes: int | None = None,
    node_swap_bytes: int = 0,
    cores: int | Fraction | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    cgroup_driver: CgroupDriver | None = None,
    runtime: Runtime = Runtime.CONTAINERD,
    engine: Engine = "docker",
    own: Mapping[str, NodeSettings] | None = None,
    in_full: bool = True,
) -> ExplanationList:
    """Return what each workload is as the API server stores it; policies among the objects are applied.

    Workloads that the API server would not store are left out, and are among the problems of the objects.

    ``node_memory_bytes`` is by default that of the Node that a pod is bound to, else of the smallest Node among the
    objects, or 64Gi. Without ``cores`` the CPU share of all pods together is left open; without ``kubelet`` it is one
    with the kubelet's defaults; ``cgroup_driver`` is by default the kubelet's. ``engine`` is whose run flags are shown.
    ``own`` is what nodes say of themselves, by name: it applies to pods that are bound to them. Not ``in_full``:
    without cgroups, run flags and the node that pods share, which take most of the time.
    """

    def node_of(memory_bytes: int, said: NodeSettings) -> ExplainSettings:
        """Return a node in full: what it says of itself, else what is stated of all nodes."""
        its_kubelet, its_profile = said.kubelet or kubelet, said.profile or profile
        its_version = said.cgroup_version or cgroup_version
        score = KUBELET_OOM_SCORE_ADJ
        if its_kubelet is None:
            cgroups = stock_node(
                memory_bytes,
                cores=cores,
                swap_bytes=node_swap_bytes,
                cgroup_version=its_version,
                profile=its_profile,
            )
        else:
            # What reads a configuration takes longer to load than a pod to explain.
            from podqos.objects.kubelet_node import cgroups_of

            score = its_kubelet.config.oom_score_adj
            cgroups = cgroups_of(
                its_kubelet,
                memory_bytes=memory_bytes,
                cores=cores,
                swap_bytes=node_swap_bytes,
                cgroup_version=its_version,
                profile=its_profile,
            )
        cgroups = replace(
            cgroups, cgroup_driver=cgroup_driver or cgroups.cgroup_driver, runtime=said.runtime or runtime
        )
        return ExplainSettings(cgroups, its_profile, engine, score)

    own = own or {}
    nodes = _nodes_among(objects)
    memory_bytes, assumed = node_memory(node_memory_bytes, nodes)
    shared = node_of(memory_bytes, NodeSettings())
    by_name: dict[str, ExplainSettings] = {}
    for node in nodes if node_memory_bytes is None else ():
        own_bytes, is_unknown = node_memory(None, (node,))
        if not is_unknown:
            by_name[node.name] = node_of(own_bytes, own.get(node.name, NodeSettings()))
    # If all pods are bound to nodes that are alike and whose kubelets report their settings, so is the one they share.
    bound = {found.workload.pod.spec.node_name for found in objects.workloads if objects.takes(found)}
    alike = {name: by_name.get(name) for name in bound}
    of_all = next(iter(alike.values()), None)
    is_reported = of_all is not None and all(name in own and own[name].kubelet is not None for name in bound)
    shares_own = is_reported and all(each == of_all for each in alike.values())
    if shares_own and of_all is not None:
        shared = of_all

    rules: tuple[Assumption, ...] = of_version(profile)
    if kubelet is not None:
        from podqos.objects.kubelet_node import rules_of

        rules = tuple(dict.fromkeys((*rules_of(kubelet, profile), *rules)))
    elif in_full and not shares_own:  # classes and scores alone do not depend on a kubelet's settings
        assumed = (*assumed, KUBELET_SETTINGS)

    objects.check_policies()
    objects.check_kubelets()
    everything = accepted = list(_accepted(objects, profile))
    if objects.selection is not None:
        accepted = [(found, stored) for found, stored in everything if objects.takes(found)]
    autoscalers = None
    if any(found.other.kind in _AUTOSCALERS for found in objects.others):
        from podqos.objects.autoscaling import Autoscalers

        autoscalers = Autoscalers(objects)
    items = tuple(
        _explanation(
            objects, found, stored, by_name.get(stored.pod.spec.node_name, shared), autoscalers, in_full=in_full
        )
        for found, stored in accepted
    )
    is_written = any(not found.workload.is_stored for found, _ in accepted)
    is_unruled = is_written and not any(found.is_decisive for found in objects.others)
    unknown = Counter((missing.kind, missing.name) for _, stored in accepted for missing in stored.unknown)
    return ExplanationList(
        items=items,
        kubernetes_version=profile.version_text,
        node_memory_bytes=memory_bytes,
        node=_node_explanation(everything, shared) if in_full else NodeExplanation(0, "", (), ()),
        assumptions=(
            *rules,
            *assumed,
            *policy_scopes(objects),
            *((NO_POLICIES,) if is_unruled else ()),
            *objects.assumptions,
            *missing_classes(unknown, objects),
            *added_containers({found.workload.kind for found, _ in accepted}),
            *kept_scores(stored.pod for _, stored in accepted),
        ),
    )


def _nodes_among(objects: Objects) -> Sequence[Node]:
    if not any(found.other.kind == "Node" for found in objects.others):
        return ()
    from podqos.model.node import Node

    return objects.of(Node)


def _accepted(objects: Objects, profile: Profile) -> Iterator[tuple[FoundWorkload, Stored]]:
    """Yield the workloads as they are stored; what the API server refuses of their resources is reported."""
    storing = _storing(objects, profile)
    for found in objects.workloads:
        # What comes from an API server has passed its validation.
        errors = () if found.workload.is_live else validate_resources(found.workload.pod)
        if errors:
            objects.report(found, errors)
        else:
            objects.tolerate(found, tolerated(found.workload, Question.CLASS, objects.written(found)))
            workload = found.workload
            yield found, storing(found.source).store(replace(workload, pod=with_names(workload.pod)))


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


def _explanation(
    objects: Objects,
    found: FoundWorkload,
    stored: Stored,
    settings: ExplainSettings,
    autoscalers: Autoscalers | None,
    *,
    in_full: bool,
) -> Explanation:
    """Say what was decided about the pods of a workload."""
    workload, decision = found.workload, decide(stored.pod, settings)
    pod, computed = decision.pod, decision.classification.qos_class
    as_written = classify(workload.pod, settings.profile).qos_class
    edits: Iterable[Edit] = ()
    if computed is not QOSClass.GUARANTEED:
        edits = edits_to_guaranteed(workload.pod, settings.profile)
    flags: Sequence[ContainerFlags | None] = [None] * len(decision.oom_scores)
    cgroups: Sequence[Cgroup] = ()
    if in_full:
        from podqos.qos.cgroup import pod_cgroups
        from podqos.qos.run_flags import run_flags

        flags = run_flags(pod, decision.qos_class, settings.cgroups, settings.engine, settings.profile)
        cgroups = pod_cgroups(pod, decision.qos_class, settings.cgroups, settings.profile)
    vertical = horizontal = None
    if autoscalers is not None:
        by, of_replicas = autoscalers.vertical(found), autoscalers.horizontal(found)
        vertical = None if by is None else vertical_scaling(pod, by, settings)
        if of_replicas is not None:
            bounds = of_replicas.spec
            horizontal = HorizontalScaling(of_replicas.metadata.name, bounds.min_replicas, bounds.max_replicas)
    names = {}
    if stored.changes:
        from podqos.admission.changes import container_names

        names = container_names(pod)
    return Explanation(
        kind=workload.kind,
        namespace=workload.metadata.namespace_or_default,
        name=workload.metadata.name or workload.metadata.generate_name,
        source=objects.source_name(found),
        replicas=workload.replicas,
        qos_class=decision.qos_class,
        qos_class_as_written=as_written,
        qos_class_computed=computed,
        decided_by=decision.classification.decided_by,
        reason=words.why_class(decision.classification),
        edits_to_guaranteed=tuple(replace(edit, path=workload.at(edit.path)) for edit in edits),
        containers=tuple(
            _container(kind, container, None if pod.is_windows else score, own_flags, settings)
            for (kind, container), score, own_flags in zip(
                typed_containers(pod), decision.oom_scores, flags, strict=True
            )
        ),
        cgroups=() if pod.is_windows else tuple(map(_cgroup_explanation, cgroups)),
        priority=pod.spec.priority or 0,
        priority_class_name=pod.spec.priority_class_name,
        policy_changes=tuple(change_report(change, names) for change in stored.changes),
        refusal=None if stored.refusal is None else stored.refusal.message,
        notes=tuple(
            _notes(stored, decision, as_written, found.place.taken_for, vertical=vertical, horizontal=horizontal)
        ),
        vertical_scaling=vertical,
        horizontal_scaling=horizontal,
    )


def _container(
    kind: str, container: Container, score: OOMScore | None, flags: ContainerFlags | None, settings: ExplainSettings
) -> ContainerExplanation:
    return ContainerExplanation(
        name=container.name,
        type=kind,
        requests=amounts(container.resources.requests),
        limits=amounts(container.resources.limits),
        qos_class_per_resource=class_per_resource(container.resources),
        oom_score_adj=None if score is None else score.value,
        oom_score_idle=None if score is None else idle_score(score.value, settings.machine_bytes),
        oom_rule="NotOnWindows" if score is None else score.rule,
        oom_reason="Windows has none" if score is None else words.oom_rule(score, settings.node_memory_bytes),
        run_flags=tuple(
            FlagExplanation(flag.name, flag.status, flag.value, words.flag_reason(flag)) for flag in flags.flags
        )
        if score is not None and flags is not None
        else (),
        oom_score_adj_after_restart=None if score is None else score.after_restart,
    )


def typed_containers(pod: Pod) -> list[tuple[str, Container]]:
    """Return all containers with their type, in the order of ``qos.oom.oom_scores``."""
    return [
        *(("container", container) for container in pod.spec.containers),
        *(
            ("sidecar" if container.is_sidecar else "initContainer", container)
            for container in pod.spec.init_containers
        ),
        *(("ephemeralContainer", container) for container in pod.spec.ephemeral_containers),
    ]


def amounts(resources: ResourceList) -> dict[str, str]:
    """Return a resource list as text, by name."""
    return {name: str(amount) for name, amount in sorted(resources.items())}


def _cgroup_explanation(cgroup: Cgroup) -> CgroupExplanation:
    files = (
        CgroupFileExplanation(file.name, file.text, file.because.rule, words.because_of(file.because))
        for file in cgroup.files
    )
    return CgroupExplanation(cgroup.level, cgroup.container, cgroup.path, cgroup.oci_path, tuple(files))


def _node_explanation(everything: Iterable[tuple[FoundWorkload, Stored]], settings: ExplainSettings) -> NodeExplanation:
    """Return what the pods mean for a node that has them all, but for those that have ended.

    Every pod counts once: where a list of a cluster has pods, its controllers add nothing.
    """
    from podqos.qos.cgroup import node_cgroups

    pods = [
        (found.workload, decide(stored.pod, settings).pod)
        for found, stored in everything
        if stored.pod.status.phase not in TERMINAL_PHASES
    ]
    runs = any(workload.is_live and workload.kind == "Pod" for workload, _ in pods)
    counted = [pod for workload, pod in pods if not workload.is_live or (workload.kind == "Pod") is runs]
    nodes = {pod.spec.node_name for pod in counted if pod.spec.node_name}
    count = f"all {len(counted)}" if counted else "no"
    elsewhere = f" (they run on {len(nodes)})" if len(nodes) > 1 else ""
    node = f"node of {mebibytes(settings.node_memory_bytes)}"
    return NodeExplanation(
        pods=len(counted),
        assumption=f"one pod alone on a {node}"
        if len(counted) == 1
        else f"{count} pods on one {node}{elsewhere}, one of each workload",
        cgroups=tuple(map(_cgroup_explanation, node_cgroups(counted, settings.cgroups, settings.profile))),
        components=components(settings.kubelet_oom_score_adj, settings.machine_bytes),
    )


# ---- autoscalers -----------------------------------------------------------------------------------------------------

# The least that the recommender recommends for a pod unless its flags say otherwise.
_FLOOR = {CPU: Quantity.parse("25m"), MEMORY: Quantity.parse("250Mi")}


def vertical_scaling(pod: Pod, autoscaler: VerticalPodAutoscaler, settings: ExplainSettings) -> VerticalScaling:
    """Return what a VerticalPodAutoscaler may make of a stored pod: its class and oom scores at both bounds.

    The autoscaler's admission webhook replaces the requests of the containers (not of init containers) by its
    recommendation, kept between ``minAllowed`` and ``maxAllowed``. A limit keeps its proportion to the request, unless
    only requests are controlled: then it stays, and the request does not exceed it. What is recommended in between
    depends on usage and is not judged here.

    Source: kubernetes/autoscaler vertical-pod-autoscaler/pkg/utils/vpa (capping.go, limit_and_request_scaling.go).
    """
    policies = {container.name: autoscaler.policy_for(container.name) for container in pod.spec.containers}
    lowest = {name: policy.min_allowed for name, policy in policies.items()}
    highest = {name: policy.max_allowed for name, policy in policies.items()}
    return VerticalScaling(
        autoscaler.metadata.name,
        autoscaler.mode,
        _at_bound(pod, policies, lowest, settings),
        _at_bound(pod, policies, highest, settings),
    )


def _at_bound(
    pod: Pod,
    policies: Mapping[str, ContainerResourcePolicy],
    bounds: Mapping[str, ResourceList],
    settings: ExplainSettings,
) -> ScaledPod:
    from podqos.controllers.vertical_resources import with_requests
    from podqos.model.autoscaling import OFF

    def scaled(container: Container) -> Container:
        """Return a container with the amounts of a bound; where there is none, with some amount."""
        requests, bound = container.resources.requests, bounds[container.name]
        return with_requests(
            container, policies[container.name], lambda each: bound.get(each) or requests.get(each) or _FLOOR[each]
        )

    containers = tuple(map(scaled, pod.spec.containers))
    spec, status = replace(pod.spec, containers=containers), replace(pod.status, qos_class=None)
    decision = decide(replace(pod, spec=spec, status=status), settings)
    is_open = {
        name
        for name, policy in policies.items()
        if policy.mode != OFF and MEMORY in policy.resources and MEMORY not in bounds[name]
    }
    depends = decision.qos_class is QOSClass.BURSTABLE
    return ScaledPod(
        decision.qos_class,
        tuple(
            ScaledContainer(score.container, None if depends and score.container in is_open else score.value)
            for score in decision.oom_scores
            if score.container in policies
        ),
    )


# ---- words -----------------------------------------------------------------------------------------------------------


def _notes(
    stored: Stored,
    decision: PodDecision,
    as_written: QOSClass,
    taken_for: str,
    *,
    vertical: VerticalScaling | None,
    horizontal: HorizontalScaling | None,
) -> Iterator[str]:
    pod, computed = decision.pod, decision.classification.qos_class
    if taken_for:
        yield words.taken_for(taken_for)
    if as_written is not computed or stored.drift:
        also = ", too" if as_written is computed else ""
        yield f"as written it would be {as_written}{also}; {_why_not_as_written(stored)}"
    if decision.qos_class is not computed:
        yield f"its status says {decision.qos_class}, which the kubelet uses; its resources give {computed}"
    if stored.pod.metadata.is_live:
        from podqos.model.resized import pending_resize

        unmet = pending_resize(stored.pod)
        if unmet is not None:
            yield words.unmet_resize(unmet)
    for missing in stored.unknown:
        yield words.missing_class(missing, pod)
    for policy in stored.unapplied:
        yield words.unapplied(policy, pod.metadata.namespace_or_default)
    if vertical is not None:
        scaled = (("minAllowed", vertical.at_min_allowed), ("maxAllowed", vertical.at_max_allowed))
        at = "; ".join(f"at {name} {_scaled_words(pod, name)}" for name, pod in scaled)
        by = f"VerticalPodAutoscaler {vertical.autoscaler} ({vertical.update_mode})"
        yield f"{by} changes its resources at run time; {at}"
    if horizontal is not None:
        bounds = f"{horizontal.min_replicas} to {horizontal.max_replicas}"
        yield f"HorizontalPodAutoscaler {horizontal.autoscaler} runs {bounds} of these pods"


def _scaled_words(pod: ScaledPod, bound: str) -> str:
    scores = ", ".join(
        f"{score.container} {f'unknown, no {bound} for memory' if score.oom_score_adj is None else score.oom_score_adj}"
        for score in pod.containers
    )
    return f"{pod.qos_class} (oom_score_adj {scores})"


def _why_not_as_written(stored: Stored) -> str:
    """Return what changed the class, step by step: policies, or defaulting alone."""
    if not stored.drift:
        return "the API server copies limits to missing requests"
    from podqos.text.admission import why_drift

    if len(stored.drift) == 1:
        return why_drift(stored.drift[0])
    return "; ".join(f"{why_drift(step)}: {step.class_after}" for step in stored.drift)


# ---- as text ---------------------------------------------------------------------------------------------------------

_LABEL = 8  # columns of a label, such as "why", within a block
_SANDBOX = "sandbox (pause)"


def text(answer: ExplanationList, style: Style, *, verbose: bool = False) -> Iterator[str]:
    """Yield a block of lines per pod; ``verbose`` adds cgroups, run flags, and the node's own processes."""
    for item in answer.items:
        yield from _block(item, style, verbose)
    if verbose and answer.node.pods:
        yield from _node_lines(answer.node, style)


def _block(item: Explanation, style: Style, verbose: bool) -> Iterator[str]:
    def labels(label: str, paragraphs: Iterable[str]) -> list[str]:
        return labelled(label, paragraphs, style, 2, _LABEL)

    count = f" × {item.replicas}" if item.replicas is not None and item.replicas != 1 else ""
    title = style.strong(f"{item.kind} {item.namespace}/{item.name}{count}")
    yield f"{title}  {style.qos_class(item.qos_class)}"
    yield from labels("why", [item.reason])
    # preemptionPolicy has no effect on quality of service.
    stored = [change for change in item.policy_changes if change.path != "spec.preemptionPolicy"]
    yield from labels("stored", change_lines(stored))
    if item.refusal is not None:
        yield from labels("denied", [item.refusal])
    for note in item.notes:
        yield from labels("note", [note])
    if item.edits_to_guaranteed:
        yield from labels("edit", _edit_lines(item.edits_to_guaranteed))
    headers = ("CONTAINER", "CPU", "MEMORY", "OOM_SCORE_ADJ", "IDLE SCORE", "REASON")
    rows = [
        (
            container.name if container.type == "container" else f"{container.name} ({container.type})",
            asked(container, CPU),
            asked(container, MEMORY),
            _score(container.oom_score_adj),
            _score(container.oom_score_idle),
            container.oom_reason,
        )
        for container in item.containers
    ]
    yield from ("", *columns(headers, rows, style, indent="  "), "")
    if not verbose:
        return
    classes = (
        f"{each.name}: {', '.join(f'{name} {qos_class}' for name, qos_class in each.qos_class_per_resource.items())}"
        for each in item.containers
    )
    yield from labels("classes", classes)
    parent, is_first = "", True
    for cgroup in item.cgroups:
        path = cgroup.path or "(rejected by the runtime)"
        if cgroup.level == "pod":
            parent = path
        else:
            shown = path.removeprefix(f"{parent}/") if parent else path
            path = f"{_SANDBOX if cgroup.level == 'sandbox' else cgroup.container}: {shown}"
        yield from labels("cgroup" if is_first else "", [path, f"  {_files_text(cgroup)}"])
        is_first = False
    given = (cgroup.oci_path for cgroup in item.cgroups if cgroup.oci_path and cgroup.oci_path != cgroup.path)
    yield from labels("oci", [f"{path}   # cgroupsPath, not a directory" for path in dict.fromkeys(given)])
    for container in item.containers:
        if container.run_flags:
            run = " ".join(f"{flag.name}={flag.value}" for flag in container.run_flags if flag.value is not None)
            yield from labels("run", [f"{container.name}: {run}"])
            flags = [
                (flag.name, flag.value or "–", words.flag_fate(flag.status, flag.value, flag.reason))
                for flag in container.run_flags
            ]
            named = (f"FLAG FOR {container.name}", "VALUE", "OUTCOME")
            yield from ("", *columns(named, flags, style, indent="  "), "")
    yield ""


def _edit_lines(edits: tuple[Edit, ...]) -> list[str]:
    several = f"these {len(edits)} lines make" if len(edits) > 1 else "this line makes"
    # A limit that is only replaced throttled before.
    throttled = any(edit.path.endswith(".limits.cpu") and not edit.replaces for edit in edits)
    cost = f", and {'throttle' if len(edits) > 1 else 'throttles'} it at that cpu limit" if throttled else ""
    return [f"{several} it Guaranteed{cost}:", *(f"  {line}" for line in words.edits(edits))]


def _node_lines(node: NodeExplanation, style: Style) -> Iterator[str]:
    """Yield what all pods share: the cgroups above them, and the node's own processes."""
    if node.cgroups:
        yield style.strong(f"Above the pods: {node.assumption}")
        rows = []
        for cgroup in node.cgroups:
            reasons = dict.fromkeys(file.reason for file in cgroup.files if file.value is not None)
            rows.append((cgroup.path or "–", _files_text(cgroup), "; ".join(reasons)))
        yield from columns(("CGROUP", "VALUES", "REASON"), rows, style, indent="  ")
        # The kernel shows the tree once, or on cgroup v1 once for every controller.
        names = {file.name for cgroup in node.cgroups for file in cgroup.files}
        roots = ["/sys/fs/cgroup"]
        if names & {"cpu.shares", "memory.limit_in_bytes"}:
            roots = [
                f"/sys/fs/cgroup/{controller}" for controller in sorted({each.partition(".")[0] for each in names})
            ]
        yield f"  These are all directories under {listed(roots)}."
    else:
        yield "Above the pods: nothing. With cgroupsPerQOS: false, the kubelet creates no cgroups for classes and pods"
    yield from ("", *component_table(node.components, style))


def table(answer: ExplanationList, style: Style) -> list[str]:
    """Return one line per pod, or workload."""
    rows = []
    for item in answer.items:
        scores = sorted({each.oom_score_adj for each in item.containers if each.oom_score_adj is not None})
        shown = f"{scores[0]} … {scores[-1]}" if len(scores) > 1 else "".join(map(str, scores)) or "–"
        rows.append((item.namespace, f"{item.kind}/{item.name}", style.qos_class(item.qos_class), shown, item.reason))
    return columns(("NAMESPACE", "NAME", "CLASS", "OOM_SCORE_ADJ", "WHY"), rows, style)


def wide(answer: ExplanationList, style: Style) -> list[str]:
    """Return one line per container, with its cgroup."""
    rows = []
    for item in answer.items:
        cgroups = {cgroup.container: cgroup for cgroup in item.cgroups if cgroup.level == "container"}
        rows += [
            (
                item.namespace,
                f"{item.kind}/{item.name}",
                container.name,
                container.type,
                style.qos_class(item.qos_class),
                asked(container, CPU),
                asked(container, MEMORY),
                _score(container.oom_score_adj),
                _files_text(cgroups[container.name]) if cgroups else "–",
                (cgroups[container.name].path or "–") if cgroups else "–",
            )
            for container in item.containers
        ]
    headers = ("NAMESPACE", "NAME", "CONTAINER", "TYPE", "CLASS", "CPU", "MEMORY", "OOM_SCORE_ADJ", "VALUES", "CGROUP")
    return columns(headers, rows, style)


CSV_HEADERS = ("namespace", "pod", "container", "class", "oom_score_adj")


def csv_rows(answer: ExplanationList) -> Table:
    """Return headings, and a row per container."""
    return CSV_HEADERS, (
        (item.namespace, item.name, container.name, item.qos_class, container.oom_score_adj)
        for item in answer.items
        for container in item.containers
    )


def _files_text(cgroup: CgroupExplanation) -> str:
    """Return what is written into a cgroup, in a line."""
    return ", ".join(f"{file.name}={file.value}" for file in cgroup.files if file.value is not None) or "nothing set"


def asked(container: ContainerAmounts, resource: str) -> str:
    """Return ``request / limit``; without a limit the node's whole capacity is the ceiling."""
    request, limit = container.requests.get(resource), container.limits.get(resource)
    return "–" if request is None and limit is None else f"{request or '–'} / {limit or 'no limit'}"


def _score(value: int | None) -> str:
    return "–" if value is None else str(value)
