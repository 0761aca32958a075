"""The output of ``podqos explain`` as a value: the documented JSON shape, from which all other outputs follow.

It renders a ``PodDecision`` and what follows from it. The shape is stable: fields are added, never renamed or removed,
and ``docs/schema/explain.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import container_names
from podqos.admission.stored import Stored
from podqos.answers.admission_changes import ChangeReport, change_report
from podqos.answers.containers import ContainerAmounts, amounts, typed_containers
from podqos.model.assumption import Assumption
from podqos.model.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from podqos.model.listing import Listing
from podqos.model.pod import Container, QOSClass, Workload
from podqos.model.resized import pending_resize
from podqos.qos.cgroup import Cgroup, pod_cgroups, tier_cgroups
from podqos.qos.classes import class_per_resource, classify
from podqos.qos.edits import Edit, edits_to_guaranteed
from podqos.qos.oom import OOMScore
from podqos.qos.run_flags import ContainerFlags, run_flags
from podqos.survival.node.components import ComponentReport, components, idle_score
from podqos.survival.node.decision import ExplainSettings, PodDecision
from podqos.survival.node.pod_sets import PodSet
from podqos.survival.orders.vertical_scaling import ScaledPod, VerticalScaling, vertical_scaling
from podqos.wording import mebibytes
from podqos.words import qos as words


class FlagExplanation(Struct, frozen=True):
    """One flag of ``docker run`` or ``podman run``; ``value`` is null where it is left out."""

    name: str
    status: str
    value: str | None
    reason: str


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


class HorizontalScaling(Struct, frozen=True, rename="camel"):
    """The bounds of a HorizontalPodAutoscaler."""

    autoscaler: str
    min_replicas: int
    max_replicas: int


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


class DecidedPod(Struct, frozen=True, kw_only=True):
    """A pod as it is stored, what was decided about it, and what else its explanation tells."""

    workload: Workload
    stored: Stored
    decision: PodDecision
    settings: ExplainSettings
    """The node that the decision is for."""
    source: str
    """The file that it is of, or its cluster."""
    taken_for: str = ""
    """The kind that was assumed if the text names none."""
    vertical: VerticalPodAutoscaler | None = None
    """What changes its resources."""
    horizontal: HorizontalPodAutoscaler | None = None
    """What changes the number of its replicas."""


def explain_pod(decided: DecidedPod, *, with_edits: bool = True, in_full: bool = True) -> Explanation:
    """Render one decision about a stored pod.

    ``with_edits``: with what would make it Guaranteed. Not ``in_full``: without cgroups and run flags, which take most
    of the time and are not always shown.
    """
    workload, stored, decision, settings = decided.workload, decided.stored, decided.decision, decided.settings
    vertical, horizontal = decided.vertical, decided.horizontal
    pod = decision.pod
    as_written = classify(workload.pod, settings.profile).qos_class
    names = container_names(pod)
    is_guaranteed = decision.classification.qos_class is QOSClass.GUARANTEED
    edits: Sequence[Edit] = ()
    flags: Sequence[ContainerFlags | None] = [None] * len(decision.oom_scores)
    cgroups: Sequence[Cgroup] = ()
    if with_edits and not is_guaranteed:
        edits = edits_to_guaranteed(workload.pod, settings.profile)
    if in_full:
        flags = run_flags(pod, decision.qos_class, settings.cgroups, settings.engine, settings.profile)
        cgroups = pod_cgroups(pod, decision.qos_class, settings.cgroups, settings.profile)
    scaling = None if vertical is None else vertical_scaling(pod, vertical, settings)
    replicas = None
    if horizontal is not None:
        spec = horizontal.spec
        replicas = HorizontalScaling(horizontal.metadata.name, spec.min_replicas, spec.max_replicas)
    return Explanation(
        kind=workload.kind,
        namespace=workload.metadata.namespace_or_default,
        name=workload.metadata.name or workload.metadata.generate_name,
        source=decided.source,
        replicas=workload.replicas,
        qos_class=decision.qos_class,
        qos_class_as_written=as_written,
        qos_class_computed=decision.classification.qos_class,
        decided_by=decision.classification.decided_by,
        reason=words.why_class(decision.classification),
        edits_to_guaranteed=tuple(replace(edit, path=workload.at(edit.path)) for edit in edits),
        containers=tuple(
            _container(kind, container, None if pod.is_windows else score, own, settings)
            for (kind, container), score, own in zip(typed_containers(pod), decision.oom_scores, flags, strict=True)
        ),
        cgroups=() if pod.is_windows else tuple(map(cgroup_explanation, cgroups)),
        priority=pod.spec.priority or 0,
        priority_class_name=pod.spec.priority_class_name,
        policy_changes=tuple(change_report(change, names) for change in stored.changes),
        refusal=None if stored.refusal is None else stored.refusal.message,
        notes=(*_notes(stored, decision, as_written, decided.taken_for), *_scaling_notes(scaling, replicas)),
        vertical_scaling=scaling,
        horizontal_scaling=replicas,
    )


def _notes(stored: Stored, decision: PodDecision, as_written: QOSClass, taken_for: str) -> Iterator[str]:
    pod, computed = decision.pod, decision.classification.qos_class
    if taken_for:
        yield words.taken_for(taken_for)
    if as_written is not computed or stored.drift:
        also = ", too" if as_written is computed else ""
        yield f"as written it would be {as_written}{also}; {_why_not_as_written(stored)}"
    if decision.qos_class is not computed:
        yield f"its status says {decision.qos_class}, which the kubelet uses; its resources give {computed}"
    unmet = pending_resize(stored.pod)
    if unmet is not None:
        yield words.unmet_resize(unmet)
    for missing in stored.unknown:
        yield words.missing_class(missing, pod)
    for policy in stored.unapplied:
        yield words.unapplied(policy, pod.metadata.namespace_or_default)


def _scaling_notes(vertical: VerticalScaling | None, horizontal: HorizontalScaling | None) -> Iterator[str]:
    if vertical is not None:
        bounds = (("minAllowed", vertical.at_min_allowed), ("maxAllowed", vertical.at_max_allowed))
        at = "; ".join(f"at {name} {_scaled(pod, name)}" for name, pod in bounds)
        by = f"VerticalPodAutoscaler {vertical.autoscaler} ({vertical.update_mode})"
        yield f"{by} changes its resources at run time; {at}"
    if horizontal is not None:
        bounds_text = f"{horizontal.min_replicas} to {horizontal.max_replicas}"
        yield f"HorizontalPodAutoscaler {horizontal.autoscaler} runs {bounds_text} of these pods"


def _scaled(pod: ScaledPod, bound: str) -> str:
    scores = ", ".join(
        f"{score.container} {f'unknown, no {bound} for memory' if score.oom_score_adj is None else score.oom_score_adj}"
        for score in pod.containers
    )
    return f"{pod.qos_class} (oom_score_adj {scores})"


def _why_not_as_written(stored: Stored) -> str:
    """Return what changed the class, step by step: policies, or defaulting alone."""
    if not stored.drift:
        return "the API server copies limits to missing requests"
    from podqos.words.admission import why_drift

    if len(stored.drift) == 1:
        return why_drift(stored.drift[0])
    return "; ".join(f"{why_drift(step)}: {step.class_after}" for step in stored.drift)


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


def cgroup_explanation(cgroup: Cgroup) -> CgroupExplanation:
    """Return one directory in the documented shape."""
    files = (
        CgroupFileExplanation(file.name, file.text, file.because.rule, words.because_of(file.because))
        for file in cgroup.files
    )
    return CgroupExplanation(cgroup.level, cgroup.container, cgroup.path, cgroup.oci_path, tuple(files))


def explain_node(pods: PodSet, settings: ExplainSettings) -> NodeExplanation:
    """Return what the pods mean for the node, in the documented shape."""
    return NodeExplanation(
        pods=pods.pods,
        assumption=_assumption(pods, settings),
        cgroups=tuple(map(cgroup_explanation, tier_cgroups(pods.requests, settings.cgroups, settings.profile))),
        components=components(settings.kubelet_oom_score_adj, settings.machine_bytes),
    )


def _assumption(pods: PodSet, settings: ExplainSettings) -> str:
    node = f"node of {mebibytes(settings.node_memory_bytes)}"
    if pods.pods == 1:
        return f"one pod alone on a {node}"
    elsewhere = f" (they run on {len(pods.nodes)})" if len(pods.nodes) > 1 else ""
    count = f"all {pods.pods}" if pods.pods else "no"
    return f"{count} pods on one {node}{elsewhere}, one of each workload"
