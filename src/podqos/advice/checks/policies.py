"""PQ201–PQ207: what policies and injectors make of a pod, and no line of its manifest shows."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.admission.chain import Step, StepResult
from podqos.admission.changes import Change, Why
from podqos.admission.injectors import INJECTORS, Injection, inject
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.limit_range_bounds import Bound, Fault, LimitRangeDenied
from podqos.admission.policies import Policies
from podqos.admission.quota import QuotaDenied
from podqos.admission.workloads import WorkloadAdmission
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.facts import ClassChange, HiddenLimit, OverQuota, Refused, TwoDefaults, Unstated
from podqos.advice.checks.finding import Choice, Consequence, FieldEdit, Finding, Patch
from podqos.advice.checks.suppression import suppression_by
from podqos.advice.checks.view import Context, View
from podqos.errors import InvalidManifest
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import PodStatus, QOSClass
from podqos.model.policy import LimitRange
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, NO_RESOURCES, QOS_RESOURCES, ResourceRequirements
from podqos.qos.classes import classify

_LIMIT_RANGER = (Step.LIMIT_RANGER, Step.LIMIT_RANGER_AGAIN, Step.CLUSTER_RESOURCE_OVERRIDE)
_OVERRIDE = "the ClusterResourceOverride"
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
    edits = tuple(_written_out(view, change.path, change.resource, change.after) for change in changes)
    sources = tuple(dict.fromkeys(change.source or _OVERRIDE for change in changes))
    view.report(
        "PQ201",
        changes[0].path.rpartition(".")[0] if changes else "spec",
        ClassChange(admission.class_defaulted, admission.class_reached, sources, tuple(containers)),
        Patch(edits),
        repaired=lambda: view.defaulted,
    )


def _hidden_limits(view: View, admission: WorkloadAdmission) -> None:
    """PQ202: containers that state a memory request and get their limit from a LimitRange."""
    for change in _changes(admission):
        if change.why is not Why.LIMIT_RANGE_DEFAULT or change.resource != MEMORY:
            continue
        request = _written(view, change).requests.get(MEMORY)
        if request:
            view.report(
                "PQ202",
                change.path.removesuffix(".limits"),
                HiddenLimit(str(request), str(change.after), change.source),
                Patch((FieldEdit(f"{view.prefix}{change.path}.memory", str(change.after)),)),
                container=_container(view, change),
            )


def _refused(view: View, admission: WorkloadAdmission) -> None:
    refusal = admission.refusal
    assert refusal is not None
    denied = refusal.denied
    if isinstance(denied, QuotaDenied) and denied.unstated:
        resources = tuple(name for name, _ in denied.unstated)
        containers = tuple(dict.fromkeys(name for _, names in denied.unstated for name in names))
        facts = Unstated(denied.quota, resources, containers)
        paths = tuple(path for name, path in _resource_paths(view).items() if name in containers)
        view.report(
            "PQ206",
            paths[0] if paths else "spec",
            facts,
            Patch(needs_choice=Choice.RESOURCES, paths=tuple(view.prefix + path for path in paths)),
        )
    elif isinstance(denied, QuotaDenied):
        over = OverQuota(denied.quota, admission.pods, admission.admitted, denied.message)
        view.report("PQ207", "spec", over, Patch(needs_choice=Choice.QUOTA))
    elif isinstance(denied, LimitRangeDenied):
        broken = denied.violations[0]
        facts_refused = Refused(str(admission.refused_by), denied.message, broken.subject.limit_range)
        path = _resource_paths(view).get(broken.subject.container, "spec")
        view.report(
            "PQ203",
            path,
            facts_refused,
            _within_bounds(view, denied),
            container=broken.subject.container or None,
        )
    elif admission.refused_by is Step.VALIDATION:
        _above_default(view, admission)


def _above_default(view: View, admission: WorkloadAdmission) -> None:
    """PQ203, where a default limit is smaller than the request it was put beside."""
    edits = []
    sources: dict[str, None] = {}
    for change in _changes(admission):
        request = _written(view, change).requests.get(change.resource)
        if change.why is Why.LIMIT_RANGE_DEFAULT and request is not None and request > change.after:
            edits.append(_written_out(view, change.path, change.resource, request))
            sources[change.source] = None
    if edits and admission.refusal is not None:
        errors = admission.refusal.field_errors
        facts = Refused(str(admission.refused_by), "; ".join(map(str, errors)), ", ".join(sources))
        view.report("PQ203", errors[0].path, facts, Patch(tuple(edits)))


def _within_bounds(view: View, denied: LimitRangeDenied) -> Patch:
    """Return the amounts that keep to the bounds, where each broken bound says which."""
    edits: list[FieldEdit] = []
    paths = _resource_paths(view)
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
        edits += [_written_out(view, f"{paths[name]}.{side}", violation.resource, violation.allowed) for side in sides]
    return Patch(tuple({edit.path: edit for edit in edits}.values()))


def _written_out(view: View, path: str, resource: str, amount: Quantity) -> FieldEdit:
    """Return the edit of one amount of a list that stands at ``path`` from the pod."""
    *container, side = parse_path(path)
    written = _written_at(view, format_path(container))
    was = (written.limits if side == "limits" else written.requests).get(resource)
    field = view.prefix + format_path((*container, side, resource))
    return FieldEdit(field, str(amount), None if was is None else str(was))


def conflicting_defaults(context: Context) -> Iterator[Finding]:
    """PQ204: two LimitRanges of a namespace that default one resource differently. It is about the LimitRanges."""
    for limit_ranges, conflict in _conflicts(context):
        owner = next(each for each in limit_ranges if each.metadata.name == conflict.limit_ranges[-1])
        subject = context.surroundings.subject("LimitRange", owner.metadata.name, owner.metadata.namespace)
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


def _conflicts(context: Context) -> Iterator[tuple[list[LimitRange], ConflictingDefaults]]:
    """Yield what the LimitRanges of a namespace disagree about, with the LimitRanges."""
    by_namespace: dict[str, list[LimitRange]] = {}
    for limit_range in context.cluster.policies.limit_ranges:
        by_namespace.setdefault(limit_range.metadata.namespace, []).append(limit_range)
    for _, limit_ranges in sorted(by_namespace.items()):
        for conflict in Policies(limit_ranges=tuple(limit_ranges)).conflicts():
            yield limit_ranges, conflict


def injected(view: View) -> None:
    """PQ205: a class that an injector lowers. What runs already shows what was injected."""
    if view.workload.is_live:
        return
    for name in view.options.inject:
        try:
            injection = inject(view.pod, name)
        except InvalidManifest as error:
            facts = Refused(f"{name} injector", error.what)
            path = (view.prefix + error.where,)
            view.report("PQ112", error.where, facts, Patch(needs_choice=Choice.AMOUNT, paths=path))
            continue
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
                repaired=lambda: view.stored,
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
    """Return the name of the container that a change is about; nothing for the pod as a whole."""
    paths = _resource_paths(view)
    return next((name for name, path in paths.items() if change.path.startswith(f"{path}.")), "")


def _written(view: View, change: Change) -> ResourceRequirements:
    """Return what the manifest says where a policy changed something."""
    return _written_at(view, change.path.rpartition(".")[0])


def _written_at(view: View, path: str) -> ResourceRequirements:
    containers = (*view.pod.spec.containers, *view.pod.spec.init_containers)
    places = _resource_paths(view)
    return next((each.resources for each in containers if places[each.name] == path), NO_RESOURCES)


def _resource_paths(view: View) -> dict[str, str]:
    """Return where the resources of each container stand, counted from the pod, by its name."""
    spec = view.pod.spec
    lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
    return {
        container.name: f"spec.{field}[{index}].resources"
        for field, containers in lists
        for index, container in enumerate(containers)
    }
