"""PQ201–PQ207: what policies and injectors do to a pod without a line in its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import Step
from podqos.admission.changes import Change, Why
from podqos.admission.injectors import INJECTORS, Injection, inject
from podqos.admission.limit_range_bounds import Fault, LimitRangeBound, LimitRangeDenied
from podqos.admission.policies import Policies
from podqos.admission.quota import QuotaDenied
from podqos.admission.workloads import WorkloadAdmission
from podqos.advice.checks import examples
from podqos.advice.checks.amounts import RefusedByServer, refused_resources
from podqos.advice.checks.check import ERROR, WARNING, bundle_check, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.classes import accidental_burstable
from podqos.advice.checks.finding import Choice, Effect, Fact, FieldEdit, Finding, Patch
from podqos.advice.checks.references import QOS
from podqos.advice.checks.resize import ClassChange
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext, Repair, View
from podqos.amounts import listed
from podqos.errors import InvalidManifest
from podqos.manifest.plain import format_path, parse_path
from podqos.model.pod import CLASS_RANK, PodStatus
from podqos.model.policy import LimitRange
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, NO_RESOURCES, QOS_RESOURCES, ResourceRequirements
from podqos.qos.classes import classify

_LIMIT_RANGER_STEPS = (Step.LIMIT_RANGER, Step.LIMIT_RANGER_AGAIN, Step.CLUSTER_RESOURCE_OVERRIDE)
_OVERRIDE = "the ClusterResourceOverride"
_LIMIT_RANGER = "Kubernetes: plugin/pkg/admission/limitranger/admission.go"
_QUOTA = "Kubernetes: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go"

# ---- PQ201–PQ203, PQ206, PQ207: policies of the namespace --------------------------------------------------------


def policies(view: View) -> None:
    """Find what the policies of the namespace do to the pods of a workload."""
    admission = view.admission
    if admission is None:
        return
    if admission.refusal is not None:
        denied = admission.refusal.denied
        if isinstance(denied, QuotaDenied):
            _refused_by_quota(view, admission, denied)
        elif isinstance(denied, LimitRangeDenied):
            _refused_by_limit_range(view, admission, denied)
        elif admission.refused_by is Step.VALIDATION:
            _above_default(view, admission)
        if not admission.first.allowed:
            return
    _class_changed(view, admission)
    if not view.has_found(limit_range_changes_class, accidental_burstable):  # which ask for the limits, too
        _hidden_limits(view, admission)


def _class_changed(view: View, admission: WorkloadAdmission) -> None:
    """Find the LimitRange trap."""
    if admission.class_defaulted is admission.class_reached:
        return
    changes = list(_changes(admission))
    containers = dict.fromkeys(_container(view, change) for change in changes)
    edits = [_written_out(view, change.path, change.resource, change.after) for change in changes]
    sources = tuple(dict.fromkeys(change.source or _OVERRIDE for change in changes))
    view.report(
        limit_range_changes_class,
        changes[0].path.rpartition(".")[0] if changes else "spec",
        ClassChange(admission.class_defaulted, admission.class_reached, sources, tuple(containers)),
        Patch.write(*edits),
        repair=Repair(lambda: view.defaulted),
    )


_DEFAULT_LIMITS = examples.limit_range(
    "default-limits",
    """\
default: {cpu: "1", memory: 512Mi, ephemeral-storage: 1Gi}
defaultRequest: {cpu: 100m, memory: 128Mi}
""",
)


@check("PQ201", "limit-range-changes-class", WARNING, _LIMIT_RANGER, QOS, rule=policies, fix_on_request=True)
def limit_range_changes_class() -> Example:
    """PQ201: A LimitRange changes the pod's class.

    A LimitRange sets defaults in every container that leaves something out. A pod that was BestEffort on purpose
    becomes Burstable, with a limit at which it is killed; one that was Burstable can become Guaranteed and reserve what
    it never requested. The kill orders change without a change to the manifest.

    Fix: Write the LimitRange's values into the manifest, or the intended ones.
    """
    return Example(examples.documents(examples.pod(examples.container("shell"), name="debug-tools"), _DEFAULT_LIMITS))


class HiddenLimit(Fact, frozen=True, gc=False):
    """A memory limit that no line of the manifest shows."""

    request: str
    limit: str
    limit_range: str

    def sentence(self, container: str) -> str:
        """Return the limit, and what sets it."""
        return (
            f"LimitRange {self.limit_range} gives {container}, which requests {self.request}, "
            f"a memory limit of {self.limit}"
        )

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "it is OOM-killed at that limit, however much memory the node has free"


def _hidden_limits(view: View, admission: WorkloadAdmission) -> None:
    """Find containers that state a memory request and get their limit from a LimitRange."""
    for change in _changes(admission):
        if change.why is not Why.LIMIT_RANGE_DEFAULT or change.resource != MEMORY:
            continue
        request = _written(view, change).requests.get(MEMORY)
        if request:
            view.report(
                hidden_limit,
                change.path.removesuffix(".limits"),
                HiddenLimit(str(request), str(change.after), change.source),
                Patch.write(view.edit(f"{change.path}.memory", change.after)),
                container=_container(view, change),
            )


@check("PQ202", "limit-range-hidden-maximum", WARNING, _LIMIT_RANGER, rule=policies, fix_on_request=True)
def hidden_limit() -> Example:
    """PQ202: A LimitRange sets a memory limit that the manifest does not show.

    The container sets a request but no limit, and the namespace adds one. The container is OOM-killed at that limit,
    however much memory the node has free, and nothing in the manifest shows why.

    Fix: Set the limit in the manifest, to this amount or a better one.
    """
    return Example(examples.documents(examples.web("cpu: 100m, memory: 256Mi"), _DEFAULT_LIMITS))


def _refused_by_limit_range(view: View, admission: WorkloadAdmission, denied: LimitRangeDenied) -> None:
    broken = denied.violations[0].subject
    view.report(
        refused_by_limit_range,
        _resource_paths(view).get(broken.container, "spec"),
        RefusedByServer(str(admission.refused_by), denied.message, broken.limit_range),
        _within_bounds(view, denied),
        container=broken.container or None,
    )


def _within_bounds(view: View, denied: LimitRangeDenied) -> Patch:
    """Return the amounts that keep to the bounds, where each broken bound says which."""
    edits: list[FieldEdit] = []
    paths = _resource_paths(view)
    amounts = {
        container.name: container.resources for container in (*view.pod.spec.containers, *view.pod.spec.init_containers)
    }
    for violation in denied.violations:
        name = violation.subject.container
        if not name or violation.bound is LimitRangeBound.MAX_LIMIT_REQUEST_RATIO:
            return Patch.choose(Choice.AMOUNT)
        is_max = violation.bound is LimitRangeBound.MAX
        sides = ["limits"] if is_max or violation.fault is Fault.LIMIT else ["requests"]
        other = amounts[name].requests if is_max else amounts[name].limits
        beyond = other.get(violation.resource)
        if beyond is not None and (beyond > violation.allowed if is_max else beyond < violation.allowed):
            sides.append("requests" if is_max else "limits")
        edits += [_written_out(view, f"{paths[name]}.{side}", violation.resource, violation.allowed) for side in sides]
    return Patch.write(*{edit.path: edit for edit in edits}.values())


def _above_default(view: View, admission: WorkloadAdmission) -> None:
    """Find a default limit that is smaller than the request it was put beside."""
    edits = []
    sources: dict[str, None] = {}
    for change in _changes(admission):
        request = _written(view, change).requests.get(change.resource)
        if change.why is Why.LIMIT_RANGE_DEFAULT and request is not None and request > change.after:
            edits.append(_written_out(view, change.path, change.resource, request))
            sources[change.source] = None
    if edits and admission.refusal is not None:
        errors = admission.refusal.field_errors
        facts = RefusedByServer(str(admission.refused_by), "; ".join(map(str, errors)), ", ".join(sources))
        view.report(refused_by_limit_range, errors[0].path, facts, Patch.write(*edits))


@check(
    "PQ203",
    "refused-by-limit-range",
    ERROR,
    _LIMIT_RANGER,
    effect=Effect.NOT_CREATED,
    rule=policies,
    fix_on_request=True,
)
def refused_by_limit_range() -> Example:
    """PQ203: A LimitRange rejects the pod.

    The amounts are outside its bounds, or its default limit is smaller than the request. No pod is created: a
    Deployment keeps the pods it has, and nothing replaces one that is evicted or killed.

    Fix: Stay within the bounds, or set a limit of your own. --fix never lowers a memory limit: look up the container's
    peak usage first.
    """
    return Example(
        examples.documents(
            examples.web('cpu: "1", memory: 4Gi', 'cpu: "1", memory: 4Gi, ephemeral-storage: 1Gi'),
            examples.limit_range("bounds", "max: {memory: 2Gi}\n"),
        ),
        chosen={f"spec.containers[0].resources.{side}.memory": "2Gi" for side in ("requests", "limits")},
    )


class Unstated(Fact, frozen=True, gc=False):
    """What a quota demands of every container and some do not state."""

    quota: str
    resources: tuple[str, ...]
    containers: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return what is demanded, and of which containers."""
        return f"ResourceQuota {self.quota} requires {listed(self.resources)} of {listed(self.containers)}"


class OverQuota(Fact, frozen=True, gc=False):
    """A workload of which a quota has no room for all pods."""

    quota: str
    pods: int
    admitted: int
    message: str

    def sentence(self, _: str) -> str:
        """Return how many pods there is room for, and what the API server answers."""
        return f"ResourceQuota {self.quota} admits {self.admitted} of {self.pods} pods: {self.message}"


def _refused_by_quota(view: View, admission: WorkloadAdmission, denied: QuotaDenied) -> None:
    if not denied.unstated:
        facts = OverQuota(denied.quota, admission.pods, admission.admitted, denied.message)
        view.report(quota_too_small, "spec", facts, Patch.choose(Choice.QUOTA))
        return
    resources = tuple(name for name, _ in denied.unstated)
    containers = tuple(dict.fromkeys(name for _, names in denied.unstated for name in names))
    paths = [path for name, path in _resource_paths(view).items() if name in containers]
    unstated = Unstated(denied.quota, resources, containers)
    view.report(quota_demands, paths[0] if paths else "spec", unstated, view.choose(Choice.RESOURCES, *paths))


@check(
    "PQ206",
    "quota-demands-resources",
    ERROR,
    _QUOTA,
    "Kubernetes: pkg/quota/v1/evaluator/core/pods.go",
    effect=Effect.NOT_CREATED,
    rule=policies,
)
def quota_demands() -> Example:
    """PQ206: A quota rejects pods without requests or limits.

    A quota on CPU or memory requires every container to set it, and no LimitRange in the namespace adds a default. The
    pod is rejected, and pods that die are not replaced.

    Fix: Set the resources, or add a LimitRange with defaults to the namespace.
    """
    return Example(
        examples.documents(
            examples.web("cpu: 500m, memory: 512Mi", "memory: 1Gi, ephemeral-storage: 1Gi"),
            examples.quota('limits.cpu: "10"'),
        ),
        chosen={"spec.containers[0].resources.limits.cpu": "1"},
    )


@check("PQ207", "quota-too-small", ERROR, _QUOTA, effect=Effect.FEWER, rule=policies)
def quota_too_small() -> Example:
    """PQ207: The quota has no room for all pods of the workload.

    Pods beyond the quota are rejected. The workload runs with fewer replicas than it should, and nobody notices until
    one of them is evicted and can't be replaced either.

    Fix: Raise the quota, or request less.
    """
    return Example(
        examples.documents(
            examples.deployment(3, "cpu: 500m, memory: 512Mi", 'cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi'),
            examples.quota("requests.memory: 1Gi"),
        ),
        chosen={"spec.replicas": 2},
    )


def _written_out(view: View, path: str, resource: str, amount: Quantity) -> FieldEdit:
    """Return the edit of one amount of a list that stands at ``path`` from the pod."""
    *container, side = parse_path(path)
    written = _written_at(view, format_path(container))
    was = (written.limits if side == "limits" else written.requests).get(resource)
    return view.edit(format_path((*container, side, resource)), amount, was)


def _changes(admission: WorkloadAdmission) -> Iterator[Change]:
    for result in admission.first.steps:
        if result.step in _LIMIT_RANGER_STEPS:
            yield from (change for change in result.changes if isinstance(change, Change))


def _container(view: View, change: Change) -> str:
    """Return the name of the container that a change is about; nothing for the pod as a whole."""
    paths = _resource_paths(view)
    return next((name for name, path in paths.items() if change.path.startswith(f"{path}.")), "")


def _written(view: View, change: Change) -> ResourceRequirements:
    """Return what the manifest says where a policy changed something."""
    return _written_at(view, change.path.rpartition(".")[0])


def _written_at(view: View, path: str) -> ResourceRequirements:
    return next((container.resources for container, at in view.resources() if at == path), NO_RESOURCES)


def _resource_paths(view: View) -> dict[str, str]:
    """Return where the resources of each container stand, counted from the pod, by its name."""
    return {container.name: path for container, path in view.resources()}


# ---- PQ204 -------------------------------------------------------------------------------------------------------


class TwoDefaults(Struct, frozen=True, gc=False, rename="camel"):
    """A default of which LimitRanges say different things."""

    side: str
    resource: str
    limit_ranges: tuple[str, ...]
    amounts: tuple[str, ...]

    @property
    def text(self) -> str:
        """What each of them would give."""
        offers = [f"{name} {amount}" for name, amount in zip(self.limit_ranges, self.amounts, strict=True)]
        return f"the default {self.resource} {self.side.removesuffix('s')} can come from {' or '.join(offers)}"


class UncertainDefaults(Fact, frozen=True, gc=False):
    """Everything that the LimitRanges of a namespace disagree about."""

    defaults: tuple[TwoDefaults, ...]

    def sentence(self, _: str) -> str:
        """Return what each of them would give."""
        return "; ".join(default.text for default in self.defaults)


def find_conflicting_defaults(context: CheckContext, _: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield what the LimitRanges of a namespace disagree about, at the last of them."""
    by_namespace: dict[str, list[LimitRange]] = {}
    for limit_range in (*context.policies.limit_ranges, *context.surroundings.cluster.alternatives):
        by_namespace.setdefault(limit_range.metadata.namespace, []).append(limit_range)
    for _namespace, limit_ranges in sorted(by_namespace.items()):
        conflicts = list(Policies(limit_ranges=tuple(limit_ranges)).conflicts())
        if not conflicts:
            continue
        names = {name for conflict in conflicts for name in conflict.limit_ranges}
        at_odds = [limit_range.metadata for limit_range in limit_ranges if limit_range.metadata.name in names]
        metadata = at_odds[-1]
        found = (
            TwoDefaults(conflict.side, conflict.resource, conflict.limit_ranges, tuple(map(str, conflict.amounts)))
            for conflict in conflicts
        )
        yield conflicting_defaults.finding(
            context.surroundings.subject("LimitRange", metadata.name, metadata.namespace),
            "spec.limits",
            UncertainDefaults(tuple(found)),
            Patch.choose(Choice.ONE_DEFAULT, ("spec.limits",), tuple(at_odd.name for at_odd in at_odds)),
            (metadata.annotations,),
        )


@bundle_check(
    "PQ204",
    "conflicting-limit-ranges",
    WARNING,
    _LIMIT_RANGER,
    effect=Effect.NONE,
    rule=find_conflicting_defaults,
)
def conflicting_defaults() -> Example:
    """PQ204: Two LimitRanges set different defaults for the same resource.

    Which one applies is undefined, because the API server keeps them in no order. The same manifest can be killed at
    512Mi today and at 2Gi tomorrow, and two of its replicas can have different scores.

    Fix: Let one LimitRange per namespace set the default.
    """
    return Example(
        examples.documents(
            examples.limit_range("small", "default: {memory: 512Mi}\ndefaultRequest: {memory: 256Mi}\n"),
            examples.limit_range("team", "default: {memory: 2Gi}\ndefaultRequest: {memory: 256Mi}\n"),
        ),
        chosen={"spec.limits[0].default": {"cpu": "1"}, "spec.limits[0].defaultRequest": {"cpu": "100m"}},
    )


# ---- PQ205 -------------------------------------------------------------------------------------------------------


def injected(view: View) -> None:
    """Find classes that an injector lowers. What runs already shows what was injected."""
    if view.workload.is_live:
        return
    for name in view.options.inject:
        try:
            injection = inject(view.pod, name)
        except InvalidManifest as error:
            refused = RefusedByServer(f"{name} injector", error.what)
            view.report(refused_resources, error.where, refused, view.choose(Choice.AMOUNT, error.where))
            continue
        if not injection.added:
            continue
        after = view.context.admit(replace(view.workload, pod=replace(injection.pod, status=PodStatus())))
        qos_class = classify(after.first.pod, view.options.profile).qos_class
        if CLASS_RANK[qos_class] < CLASS_RANK[view.stored_class]:
            added = tuple(dict.fromkeys(container.container.name for container in injection.added))
            view.report(
                injector_downgrade,
                "metadata.annotations",
                ClassChange(view.stored_class, qos_class, (name,), added),
                _injector_patch(view, injection),
                repair=Repair(lambda: view.stored, now=after.first.pod),
            )


def _injector_patch(view: View, injection: Injection) -> Patch:
    """Return the annotations that give what is injected requests equal to its limits."""
    known = INJECTORS.get(injection.injector)
    resources = injection.added[-1].container.resources
    annotations = () if known is None else known.annotations
    keys = {
        (annotation.side, annotation.resource): annotation.key
        for annotation in annotations
        if annotation.resource in {CPU, MEMORY}
    }
    amounts = {name: resources.limits.get(name) or resources.requests.get(name) for name in QOS_RESOURCES}
    paths = {at: f"metadata.annotations[{key}]" for at, key in sorted(keys.items())}
    if not paths or not all(amounts.values()):
        return view.choose(Choice.INJECTOR_RESOURCES, *paths.values())
    written = view.pod.metadata.annotations
    return Patch.write(*(view.edit(path, amounts[at[1]], written.get(keys[at])) for at, path in paths.items()))


@check(
    "PQ205",
    "injector-downgrade",
    WARNING,
    QOS,
    "istio: manifests/charts/istio-control/istio-discovery/files/injection-template.yaml",
    "linkerd2: charts/partials/templates/_proxy.tpl",
    "vault-k8s: agent-inject/agent/annotations.go",
    rule=injected,
)
def injector_downgrade() -> Example:
    """PQ205: An injected sidecar lowers the class.

    The manifest is Guaranteed; the pod that runs is not, because the webhook adds containers whose requests and limits
    differ or are missing. The main container loses its oom_score_adj of -997 because of a proxy that is not in the
    manifest.

    Fix: Set the injector's annotations so that its requests equal its limits. The sidecar is then throttled at its cpu
    limit and killed at its memory limit.
    """
    return Example(
        examples.web(*examples.EQUAL).replace("metadata: {name: web}", "metadata:\n  name: web"), inject=("istio",)
    )
