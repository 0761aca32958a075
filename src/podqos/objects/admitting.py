"""Admits workloads of files: the pod that the API server would store, given the policies in the files.

A pod that it would reject becomes a problem, at its place in the file.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.chain import admit
from podqos.admission.created import as_created, as_in_template
from podqos.admission.policies import AdmissionPlugin
from podqos.admission.refusal import Refusal
from podqos.admission.relevance import Question, judge, rejected, with_names
from podqos.admission.stored import with_assumed_classes
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.objects.objects import FoundWorkload, Objects
from podqos.placement.node_rules import unmeetable_bounds
from podqos.text.admission import exempt


def never_admitted(found: FoundWorkload, objects: Objects, profile: Profile) -> Refusal | None:
    """Return why no pod of a workload can ever be created; what a quota has no room for today it may have tomorrow.

    Classes that are not in the files are assumed to exist.
    """
    pod = as_created(found.workload)
    policies, _ = with_assumed_classes(objects.namespace_policies(found.source).of(pod.metadata.namespace), pod)
    return admit(pod, replace(policies, resource_quotas=()), profile).refusal


def admitted_pod(
    found: FoundWorkload,
    objects: Objects,
    profile: Profile,
    question: Question = Question.SURVIVAL,
    plugins: tuple[AdmissionPlugin, ...] = (),
) -> Pod | None:
    """Return the pod as the API server would store it; None, with a problem, if it would reject it.

    Rejected fields that do not matter for the question are warnings. ``plugins`` are enabled in addition to defaults.
    """
    workload, pod = found.workload, found.workload.pod
    bounds = judge(unmeetable_bounds(pod), question)
    errors = bounds.decisive
    policies = objects.namespace_policies(found.source).of(pod.metadata.namespace)
    enabled = replace(policies, enabled_plugins=plugins) if plugins else policies
    admission = admit(as_created(workload), enabled, profile, question=question)
    if admission.override is not None and admission.override.exempt is not None:
        objects.warn(found, f"ClusterResourceOverride {exempt(admission.override, admission.override.exempt)}")
    if admission.refusal is not None and admission.refusal.field_errors:
        errors += admission.refusal.field_errors
    elif admission.refusal is not None:
        objects.refuse(found, admission.refusal.message)
    objects.report(found, errors)
    if errors or not admission.allowed:
        return None
    objects.tolerate(found, rejected(workload, (*bounds.tolerated, *admission.tolerated), objects.written(found)))
    return with_names(as_in_template(admission.pod, workload))
