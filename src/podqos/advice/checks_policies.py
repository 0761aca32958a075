"""PQ201–PQ207: what policies and injectors make of a pod, and no line of its manifest shows."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.admission.chain import Step, StepResult
from podqos.admission.changes import Change, Why
from podqos.admission.injectors import INJECTORS, Injection, inject
from podqos.admission.limit_range_bounds import Bound, Fault, LimitRangeDenied
from podqos.admission.quota import QuotaDenied
from podqos.admission.workloads import WorkloadAdmission
from podqos.advice.catalogue import CHECKS
from podqos.advice.facts import ClassChange, HiddenLimit, OverQuota, Refused, TwoDefaults, Unstated
from podqos.advice.finding import Choice, Consequence, FieldEdit, Finding, Patch
from podqos.advice.suppression import suppression_by
from podqos.advice.view import DEFAULT_NAMESPACE, Context, View
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import PodStatus, QOSClass
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES
from podqos.qos.classes import classify

_LIMIT_RANGER = (Step.LIMIT_RANGER, Step.LIMIT_RANGER_AGAIN, Step.CLUSTER_RESOURCE_OVERRIDE)
_CLASS_RANK = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


def policies(view: View) -> None:
    """PQ201–PQ203, PQ206, PQ207: what the policies of the namespace do to the pods of one workload."""
    admission = view.admission
    if admission is None:
        return
    if admission.refusal is not None:
        _refused(view, admission)
        if not admission.first.allowed:
            return
    _class_changed(view, admission)
    _hidden_limits(view, admission)


def _class_changed(view: View, admission: WorkloadAdmission) -> None:
    """PQ201: the LimitRange trap."""
    if admission.class_defaulted is admission.class_reached:
        return
    changes = list(_changes(admission))
    containers = dict.fromkeys(_container(view, change) for change in changes)
    edits = tuple(
        FieldEdit(format_path(parse_path(f"{view.prefix}{change.path}.{change.resource}")), str(change.after))
        for change in changes
    )
    sources = tuple(dict.fromkeys(change.source for change in changes if change.source))
    view.report(
        "PQ201",
        "spec.containers[0].resources",
        ClassChange(admission.class_defaulted, admission.class_reached, sources, tuple(containers)),
        Patch(edits),
        repaired=view.defaulted,
    )


def _hidden_limits(view: View, admission: WorkloadAdmission) -> None:
    """PQ202: containers that state a memory request and get their limit from a LimitRange."""
    for change in _changes(admission):
        if change.why is not Why.LIMIT_RANGE_DEFAULT or change.resource != MEMORY:
            continue
        steps = parse_path(change.path)
        spec = view.pod.spec
        container = (spec.containers if steps[1] == "containers" else spec.init_containers)[int(steps[2])]
        request = container.resources.requests.get(MEMORY)
        if request:
            view.report(
                "PQ202",
                change.path.removesuffix(".limits"),
                HiddenLimit(str(request), str(change.after), change.source),
                Patch((FieldEdit(f"{view.prefix}{change.path}.memory", str(change.after)),)),
                container=container.name,
            )


def _refused(view: View, admission: WorkloadAdmission) -> None:
    refusal = admission.refusal
    assert refusal is not None
    denied = refusal.denied
    if isinstance(denied, QuotaDenied) and denied.unstated:
        resources = tuple(name for name, _ in denied.unstated)
        containers = tuple(dict.fromkeys(name for _, names in denied.unstated for name in names))
        facts = Unstated(denied.quota, resources, containers)
        view.report("PQ206", "spec.containers[0].resources", facts, Patch(needs_choice=Choice.RESOURCES))
    elif isinstance(denied, QuotaDenied):
        over = OverQuota(denied.quota, admission.pods, admission.admitted, denied.message)
        view.report("PQ207", "spec", over, Patch(needs_choice=Choice.QUOTA))
    elif isinstance(denied, LimitRangeDenied):
        source = denied.violations[0].subject.limit_range if denied.violations else ""
        facts_refused = Refused(str(admission.refused_by), denied.message, source)
        view.report("PQ203", "spec.containers[0].resources", facts_refused, _within_bounds(view, denied))
    elif admission.refused_by is Step.VALIDATION:
        # The manifest alone is valid, or nobody would have asked: a default stands below a request.
        _above_default(view, admission)


def _above_default(view: View, admission: WorkloadAdmission) -> None:
    assert admission.refusal is not None
    sources = tuple(dict.fromkeys(change.source for change in _changes(admission) if change.source))
    errors = admission.refusal.field_errors
    message = "; ".join(str(error) for error in errors)
    path = errors[0].path if errors else "spec"
    edits = []
    for change in _changes(admission):
        if change.why is Why.LIMIT_RANGE_DEFAULT:
            steps = parse_path(change.path)
            spec = view.pod.spec
            container = (spec.containers if steps[1] == "containers" else spec.init_containers)[int(steps[2])]
            request = container.resources.requests.get(change.resource)
            if request is not None and request > change.after:
                edits.append(FieldEdit(f"{view.prefix}{change.path}.{change.resource}", str(request)))
    patch = Patch(tuple(edits)) if edits else Patch(needs_choice=Choice.AMOUNT)
    view.report("PQ203", path, Refused(str(admission.refused_by), message, ", ".join(sources)), patch)


def _within_bounds(view: View, denied: LimitRangeDenied) -> Patch:
    """Return the amounts that keep to the bounds, where each broken bound says which."""
    edits: dict[str, FieldEdit] = {}
    paths = {
        container.name: f"{view.prefix}spec.{field}[{index}].resources"
        for field, containers in (
            ("containers", view.pod.spec.containers),
            ("initContainers", view.pod.spec.init_containers),
        )
        for index, container in enumerate(containers)
    }
    amounts = {each.name: each.resources for each in (*view.pod.spec.containers, *view.pod.spec.init_containers)}
    for violation in denied.violations:
        name = violation.subject.container
        if not name or violation.bound is Bound.MAX_LIMIT_REQUEST_RATIO:
            return Patch(needs_choice=Choice.AMOUNT)
        is_max = violation.bound is Bound.MAX
        sides = ["limits"] if is_max or violation.fault is Fault.LIMIT else ["requests"]
        other = amounts[name].requests if is_max else amounts[name].limits
        beyond = other.get(violation.resource)
        if beyond is not None and (beyond > violation.allowed if is_max else beyond < violation.allowed):
            sides.append("requests" if is_max else "limits")
        for side in sides:
            path = f"{paths[name]}.{side}.{violation.resource}"
            edits[path] = FieldEdit(path, str(violation.allowed))
    return Patch(tuple(edits.values()))


def conflicting_defaults(context: Context) -> Iterator[Finding]:
    """PQ204: two LimitRanges of a namespace that default one resource differently. It is about the LimitRanges."""
    for namespace, conflict in context.conflicts():
        last = conflict.limit_ranges[-1]
        owner = next(
            each
            for each in context.surroundings.cluster.policies.limit_ranges
            if each.metadata.name == last and (each.metadata.namespace or DEFAULT_NAMESPACE) == namespace
        )
        subject = context.surroundings.subject("LimitRange", last, owner.metadata.namespace)
        amounts = tuple(map(str, conflict.amounts))
        yield Finding(
            "PQ204",
            CHECKS["PQ204"].severity,
            subject,
            "spec.limits",
            TwoDefaults(conflict.side, conflict.resource, conflict.limit_ranges, amounts),
            Consequence(CHECKS["PQ204"].effect),
            Patch(needs_choice=Choice.ONE_DEFAULT, paths=("spec.limits",), candidates=conflict.limit_ranges),
            suppression=suppression_by("PQ204", owner.metadata.annotations),
        )


def injected(view: View) -> None:
    """PQ205: a class that an injector lowers."""
    for name in view.options.inject:
        injection = inject(view.pod, name)
        if not injection.added:
            continue
        after = view.context.admit(replace(view.workload, pod=replace(injection.pod, status=PodStatus())))
        qos_class = classify(after.first.pod, view.options.profile).qos_class
        if _CLASS_RANK[qos_class] < _CLASS_RANK[view.stored_class]:
            added = tuple(dict.fromkeys(each.container.name for each in injection.added))
            view.report(
                "PQ205",
                "metadata.annotations",
                ClassChange(view.stored_class, qos_class, (name,), added),
                _injector_patch(view, injection),
                now=after.first.pod,
                repaired=view.stored,
            )


def _injector_patch(view: View, injection: Injection) -> Patch:
    """Return the annotations that give what is injected requests equal to its limits."""
    known = INJECTORS.get(injection.injector)
    resources = injection.added[-1].container.resources
    keys = {} if known is None else {(each.side, each.resource): each.key for each in known.annotations}
    amounts = {name: resources.limits.get(name) or resources.requests.get(name) for name in QOS_RESOURCES}
    paths = {
        (side, name): f"{view.prefix}metadata.annotations[{key}]"
        for (side, name), key in sorted(keys.items())
        if name in {CPU, MEMORY}
    }
    if not paths or not all(amounts.values()):
        return Patch(needs_choice=Choice.INJECTOR_RESOURCES, paths=tuple(paths.values()))
    annotations = view.pod.metadata.annotations
    return Patch(
        tuple(
            FieldEdit(path, str(amounts[name]), annotations.get(keys[side, name]))
            for (side, name), path in paths.items()
        )
    )


def _changes(admission: WorkloadAdmission) -> Iterator[Change]:
    for result in _policy_steps(admission):
        for change in result.changes:
            if isinstance(change, Change):
                yield change


def _policy_steps(admission: WorkloadAdmission) -> Iterator[StepResult]:
    return (result for result in admission.first.steps if result.step in _LIMIT_RANGER)


def _container(view: View, change: Change) -> str:
    steps = parse_path(change.path)
    spec = view.pod.spec
    if len(steps) < 3:
        return ""
    return (spec.containers if steps[1] == "containers" else spec.init_containers)[int(steps[2])].name
