"""Admits all pods of workloads, one after another: what controllers add, and what quotas have room for.

The pods of a workload are alike, so one of them goes through the chain and the others only through the quotas. What one
workload uses of a quota is gone for the next. Where a pod ends up is the business of placement.

Source: Kubernetes v1.36 pkg/controller/daemon/util/daemonset_util.go; a controller creates its pods one by one and
leaves those it was rejected for later.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.as_written import Fields, fields_of
from podqos.admission.chain import Admission, Step, StepResult, admit, in_namespace
from podqos.admission.changes import Change, FieldChange, Why
from podqos.admission.created import as_created, as_in_template
from podqos.admission.defaulting import rounded
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.pod_validation import validate_pod
from podqos.admission.policies import ClusterPolicies, NamespacePolicies, Policies
from podqos.admission.quota import charge_more
from podqos.admission.refusal import Refusal, forbidden_holder, forbidden_pod, invalid_holder
from podqos.admission.relevance import Question
from podqos.admission.resize import resize
from podqos.admission.resize_node import KnownNodes
from podqos.admission.tolerations import with_daemon_set_tolerations
from podqos.admission.workload_validation import holder_errors
from podqos.manifest.kinds import is_served
from podqos.manifest.plain import Plain
from podqos.model.pod import Pod, QOSClass, Workload
from podqos.model.policy import ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.qos.classes import classify

_OF_MANIFEST = (Step.DAEMON_SET_CONTROLLER, Step.DEFAULTING)
_LIMIT_RANGE_DEFAULTS = (Why.LIMIT_RANGE_DEFAULT, Why.LIMIT_RANGE_DEFAULT_REQUEST)


class Operation(StrEnum):
    """The operation requested of the API server."""

    CREATE = "create"
    RESIZE = "resize"


class WorkloadAdmission(Struct, frozen=True):
    """The outcome for a workload's pods."""

    workload: Workload
    operation: Operation
    first: Admission
    """The outcome for its first pod."""
    pods: int
    """How many there should be. A DaemonSet, which has one on each node, counts as one."""
    admitted: int
    refused_by: Step | None = None
    """The rejection of the first pod that was not admitted."""
    refusal: Refusal | None = None
    written: Plain = None
    """The object as written, where all of its fields count."""

    @property
    def class_as_written(self) -> QOSClass:
        """Its class by the manifest alone."""
        return self.first.steps[0].class_before

    @property
    def class_defaulted(self) -> QOSClass:
        """Its class after defaulting, which is part of what a manifest means."""
        return next(result.class_after for result in self.first.steps if result.step is Step.DEFAULTING)

    @property
    def class_reached(self) -> QOSClass:
        """The class as stored, or as of the step before the rejection."""
        return self.first.steps[-1].class_after

    @property
    def conflicts(self) -> tuple[ConflictingDefaults, ...]:
        """The pod's defaults that depend on an undefined order."""
        got = {
            (change.path.rpartition(".")[2], change.resource)
            for result in self.first.steps
            for change in result.changes
            if isinstance(change, Change) and change.why in _LIMIT_RANGE_DEFAULTS
        }
        return tuple(conflict for conflict in self.first.conflicts if (conflict.side, conflict.resource) in got)

    @property
    def holder_is_stored(self) -> bool:
        """Whether the object around a template exists though its pods do not, and its controller keeps trying.

        It does unless it is wrong as written, or the namespace is not there. Of objects that are not Kubernetes' own
        only the template is judged.
        """
        if not self.workload.pod_path or self.refused_by is Step.NAMESPACE_LIFECYCLE:
            return False
        if self.refusal is not None and self.refusal.is_of_holder:
            return False
        return is_served(self.workload.kind, self.written) or not validate_pod(self.workload.pod)


class Admissions:
    """Admits workloads one after another, under the policies of a cluster.

    Policies that apply to a workload alone are given with it; what is used of a quota is counted over all of them.
    """

    def __init__(
        self, cluster: ClusterPolicies, profile: Profile = LATEST, question: Question = Question.ADMISSION
    ) -> None:
        self._profile = profile
        self._question = question
        """What is asked about the pods; what does not matter for it refuses none."""
        self._given = NamespacePolicies(cluster)
        self._used: dict[int, ResourceQuota] = {}
        """Each quota with what is used of it now, by the identity of the one that was given."""

    def create(
        self, workload: Workload, given: NamespacePolicies | None = None, written: Plain = None
    ) -> WorkloadAdmission:
        """Create a workload and its pods. ``written``: the object, if all of its fields count."""
        policies = (given or self._given).of(workload.metadata.namespace)
        first = self._first(workload, self._now(policies), written)
        outcome = WorkloadAdmission(workload, Operation.CREATE, first, _pods(workload), 0, written=written)
        return self._count(outcome, policies)

    def _first(self, workload: Workload, policies: Policies, written: Plain) -> Admission:
        """Take one pod of a workload through admission, unless the object around it is rejected."""
        first = _admit_first(workload, policies, self._profile, self._question)
        refusal = None
        if not workload.is_live and is_served(workload.kind, written):
            refusal = self._holder_refusal(workload, policies, fields_of(written))
        if refusal is None:
            return first
        # No pod exists yet: only what its manifest means is known.
        before = tuple(result for result in first.steps if result.step in _OF_MANIFEST)
        step = Step.VALIDATION if refusal.is_of_holder else Step.NAMESPACE_LIFECYCLE
        pod = rounded(workload.pod)
        return Admission(pod, before, step, refusal, conflicts=first.conflicts, override=first.override)

    def _holder_refusal(self, workload: Workload, policies: Policies, written: Fields) -> Refusal | None:
        """Return why the object around a template is not stored."""
        terminating = in_namespace(policies.namespace, workload.metadata.namespace)
        if isinstance(terminating, Refusal):
            return terminating
        if terminating is not None:
            return forbidden_holder(workload.kind, workload.metadata, terminating)
        errors = holder_errors(workload.kind, written, workload.pod)
        return invalid_holder(workload.kind, workload.metadata, errors) if errors else None

    def resize(
        self,
        old: Pod,
        workload: Workload,
        pods: int = 1,
        given: NamespacePolicies | None = None,
        nodes: KnownNodes | None = None,
    ) -> WorkloadAdmission:
        """Resize pods like ``old`` to the workload's current resources."""
        policies = (given or self._given).of(workload.metadata.namespace)
        first = resize(old, workload.pod, self._now(policies), self._profile, nodes)
        return self._count(WorkloadAdmission(workload, Operation.RESIZE, first, pods, 0), policies, old)

    def _now(self, policies: Policies) -> Policies:
        """Return policies with what is used of the quotas."""
        quotas = tuple(self._used.get(id(quota), quota) for quota in policies.resource_quotas)
        return replace(policies, resource_quotas=quotas) if quotas else policies

    def _count(self, outcome: WorkloadAdmission, policies: Policies, old: Pod | None = None) -> WorkloadAdmission:
        """Charge the quotas of the namespace for every pod there is room for."""
        first, pods = outcome.first, outcome.pods
        if not first.allowed:
            return replace(outcome, refused_by=first.refused_by, refusal=first.refusal)
        if pods < 1:
            return outcome
        more, decision = charge_more(first.pod, first.quotas, pods - 1, old)
        for given, charged in zip(policies.resource_quotas, decision.quotas, strict=True):
            self._used[id(given)] = charged
        if decision.denied is None:
            return replace(outcome, admitted=pods)
        made = first.pod if old is not None else as_created(outcome.workload, 1 + more)
        refusal = forbidden_pod(made, decision.denied)
        return replace(outcome, admitted=1 + more, refused_by=Step.RESOURCE_QUOTA, refusal=refusal)


def _pods(workload: Workload) -> int:
    """Return how many pods a workload asks for. A PodTemplate only keeps a template for others."""
    if workload.kind == "PodTemplate":
        return 0
    return 1 if workload.replicas is None else workload.replicas


def _admit_first(workload: Workload, policies: Policies, profile: Profile, question: Question) -> Admission:
    """Take one pod through what its controller does and then through the chain."""
    pod = as_created(workload)
    record: list[Change | FieldChange] = []
    if workload.kind == "DaemonSet":
        pod = with_daemon_set_tolerations(pod, record)
    admission = admit(pod, policies, profile, question)
    admission = replace(admission, pod=as_in_template(admission.pod, workload))
    if workload.kind != "DaemonSet":
        return admission
    qos_class = classify(workload.pod, profile).qos_class
    by_controller = StepResult(Step.DAEMON_SET_CONTROLLER, tuple(record), qos_class, qos_class)
    return replace(admission, steps=(by_controller, *admission.steps))
