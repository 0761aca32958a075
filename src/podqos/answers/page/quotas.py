"""Whether the quotas of a namespace have room for edited workloads.

Pods that run are charged for what they want more, as upstream charges a resize. Workloads of manifests are charged one
after the other, as ``podqos admit`` does it; what is refused now and was not before follows from the edits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.admission.policies import NamespacePolicies
from podqos.admission.quota import check_quotas
from podqos.admission.refusal import forbidden_pod
from podqos.admission.relevance import Question
from podqos.admission.workloads import Admissions, WorkloadAdmission
from podqos.answers.admit import policies_for
from podqos.errors import InputError
from podqos.model.pod import Pod
from podqos.model.policy import ResourceQuota
from podqos.model.profile import Profile
from podqos.objects.objects import FoundWorkload, Objects
from podqos.wording import counted

Key = tuple[str, str]


class Charged(Struct, frozen=True):
    """A workload with its edits."""

    found: FoundWorkload
    """As it is then."""
    pods: Sequence[tuple[Pod, Pod]]
    """Its pods that run, before and after."""


class Quotas:
    """The quotas of a source."""

    def __init__(self, objects: Objects, profile: Profile) -> None:
        self._objects = objects
        self._profile = profile
        self._known: dict[tuple[str, ...], NamespacePolicies] = {}
        self._before: dict[str, Mapping[Key, WorkloadAdmission]] = {}

    def check(self, edits: Sequence[Charged]) -> tuple[str, ...]:
        """Return which other workloads a quota refuses because of the edits; raise ``InputError`` for an edited one."""
        if not self._objects.of(ResourceQuota):
            return ()
        for edit in edits:
            if edit.found.workload.is_stored:
                self._check_running(edit)
        written = {_key(edit.found): edit.found for edit in edits if not edit.found.workload.is_live}
        namespaces = dict.fromkeys(workload.workload.metadata.namespace for workload in written.values())
        return tuple(words for namespace in namespaces for words in self._check_written(namespace, written))

    def _check_running(self, edit: Charged) -> None:
        found, pods = edit.found, edit.pods
        policies = self._policies(found).of(found.workload.metadata.namespace)
        if not policies.resource_quotas or not pods:
            return
        quotas: tuple[ResourceQuota, ...] = policies.resource_quotas
        for done, (old, new) in enumerate(pods):
            decision = check_quotas(new, quotas, old)
            if decision.denied is not None:
                raise _refused(forbidden_pod(new, decision.denied).message, done, len(pods))
            quotas = decision.quotas

    def _check_written(self, namespace: str, written: Mapping[Key, FoundWorkload]) -> list[str]:
        if not any(quota.metadata.namespace == namespace for quota in self._objects.of(ResourceQuota)):
            return []
        if namespace not in self._before:
            self._before[namespace] = self._admitted(namespace, {})
        before, notes = self._before[namespace], []
        for key, after in self._admitted(namespace, written).items():
            if after.refusal is None or after.admitted >= before[key].admitted:
                continue
            if key in written:
                raise _refused(after.refusal.message, after.admitted, after.pods)
            notes.append(f"{' '.join(key)} is then rejected: {after.refusal.message}")
        return notes

    def _admitted(self, namespace: str, written: Mapping[Key, FoundWorkload]) -> dict[Key, WorkloadAdmission]:
        """Create all workloads of a namespace, some of them edited."""
        admissions = Admissions(self._objects.cluster(), self._profile, Question.SURVIVAL)
        made = {}
        for found in self._objects.latest(warn=False):
            if found.workload.metadata.namespace == namespace and not found.workload.is_live:
                now = written.get(_key(found), found)
                made[_key(found)] = admissions.create(now.workload, self._policies(found))
        return made

    def _policies(self, found: FoundWorkload) -> NamespacePolicies:
        scopes = self._objects.scopes(found.source)
        if scopes not in self._known:
            self._known[scopes] = policies_for(self._objects, found.source)
        return self._known[scopes]


def _key(found: FoundWorkload) -> Key:
    return found.workload.kind, found.workload.pod.key


def _refused(message: str, admitted: int, pods: int) -> InputError:
    room = f"room for {admitted} of {counted(pods, 'pod')}" if pods > 1 else ""
    return InputError(message, fix=room)
