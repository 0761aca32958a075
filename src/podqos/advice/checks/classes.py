"""PQ101–PQ104 and PQ302: pods with a class that was not intended."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Fact
from podqos.advice.checks.kinds_of_pods import is_completed_by_operator, runs_until_done
from podqos.advice.checks.references import DAEMON_BACKOFF, DAEMON_TOLERATIONS, OOM, QOS, RANKING
from podqos.advice.checks.repair import patch_of, with_edits
from podqos.advice.checks.view import Repair, View
from podqos.amounts import listed, verb
from podqos.eviction.ranking import Ranking, ranking_keys
from podqos.eviction.signals import RankKey, Signal
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceRequirements
from podqos.orders.usage import NOMINAL
from podqos.qos.classes import ResourcePlace, deciding_resources
from podqos.qos.edits import Edit, edits_to_guaranteed

# A request of at least this share of its limit was meant to be equal: 4G and 4Gi are 93 %.
_NEARLY = 0.9
# What a container that states nothing is assumed to get in comparisons.
_SMALL = {CPU: Quantity.parse("100m"), MEMORY: Quantity.parse("128Mi")}
THE_POD = "the pod"
"""What states resources where it is no container."""
_DAEMON_SET = "DaemonSet"
NOT_SCALED = "PQ601"
"""Says that an autoscaler lacks requests."""

DAEMON_COMES_BACK = (
    "the DaemonSet controller makes it tolerate memory-pressure: once evicted, it returns to the same node and is "
    "evicted again"
)

# ---- PQ101 -------------------------------------------------------------------------------------------------------


class Spoiler(Struct, frozen=True, gc=False):
    """A resource of a container that keeps its pod from being Guaranteed."""

    container: str
    resource: str
    request: str | None
    limit: str | None


class NearlyGuaranteed(Fact, frozen=True, gc=False):
    """A pod that is Burstable because of a few fields."""

    in_order: tuple[str, ...]
    """Containers that are complete; empty where requests only nearly equal limits."""
    spoilers: tuple[Spoiler, ...]

    def sentence(self, _: str) -> str:
        """Return which fields of which containers, beside those that are complete."""
        missing: dict[str, list[str]] = {}
        clauses = []
        for spoiler in self.spoilers:
            if spoiler.limit is None or spoiler.limit == "0":
                missing.setdefault(spoiler.container, []).append(f"no {spoiler.resource} limit")
            else:
                requests = f"{spoiler.container} requests {spoiler.request or 'no'} {spoiler.resource}"
                clauses.append(f"{requests} but its limit is {spoiler.limit}")
        spoilt = listed([*(f"{name} has {' and '.join(limits)}" for name, limits in missing.items()), *clauses])
        return f"{spoilt}, unlike {listed(self.in_order)}" if self.in_order else spoilt

    def cause(self) -> str:
        """Return what keeps it from being safe."""
        names = list(dict.fromkeys(spoiler.container for spoiler in self.spoilers if spoiler.container != THE_POD))
        who = f"{listed(names)} {verb(names, 'keeps', 'keep')}" if names else "its own requests and limits keep"
        return f"{who} it from being Guaranteed"


def find_accidental_burstable(view: View) -> None:
    """Find pods that are Burstable although most of their containers are set up to be Guaranteed."""
    if view.qos_class is not QOSClass.BURSTABLE or view.stored_class is QOSClass.GUARANTEED or view.pod.is_partial:
        return
    spec = view.defaulted.spec
    if spec.resources is None and not any(map(_has_limits, spec.containers)):
        return
    places = list(deciding_resources(view.defaulted, view.options.profile))
    spoiled = [_spoiled(resources) for _, resources in places]
    if not _is_mostly_complete(places, spoiled) and not all(_is_nearly_complete(resources) for _, resources in places):
        return
    found = [(place, resources, names) for (place, resources), names in zip(places, spoiled, strict=True) if names]
    if not found:
        return
    in_order = tuple(place.container for (place, _), names in zip(places, spoiled, strict=True) if not names)
    spoilers = tuple(_spoiler(place, resources, name) for place, resources, names in found for name in names)
    edits = edits_to_guaranteed(view.pod, view.options.profile)
    first = found[0][0]
    view.report(
        accidental_burstable,
        f"{first.path}.resources",
        NearlyGuaranteed(in_order, spoilers),
        patch_of(edits, view, Choice.RESOURCES),
        container=first.container or None,
        repair=Repair(lambda: _repaired(view.pod, edits)),
    )


def _has_limits(container: Container) -> bool:
    """Whether a container can be complete, or nearly so: most that are not show it here."""
    resources = container.resources
    cpu, memory = resources.limits.get(CPU), resources.limits.get(MEMORY)
    if cpu is None or memory is None:
        return False
    requests = resources.requests
    return requests[CPU].nanos >= _NEARLY * cpu.nanos and requests[MEMORY].nanos >= _NEARLY * memory.nanos


def _repaired(pod: Pod, edits: Sequence[Edit]) -> Pod | None:
    """Return the pod as Guaranteed. Which amounts are chosen changes nothing about the class, and little otherwise."""
    chosen = [
        edit if edit.value is not None else replace(edit, value=_SMALL[edit.path.rpartition(".")[2]]) for edit in edits
    ]
    return with_edits(pod, chosen)


def _spoiled(resources: ResourceRequirements) -> list[str]:
    """Return the resources that keep a container, looked at alone, from being Guaranteed."""
    limits, requests = resources.limits, resources.requests
    return [name for name in QOS_RESOURCES if not limits.get(name) or requests.get(name) != limits[name]]


def _is_mostly_complete(
    places: Sequence[tuple[ResourcePlace, ResourceRequirements]], spoiled: Sequence[list[str]]
) -> bool:
    """Whether at least half of the memory is in containers that are complete: the rest was forgotten."""
    complete = others = 0
    for (_, resources), names in zip(places, spoiled, strict=True):
        amounts = (resources.requests.get(MEMORY, ZERO).nanos, resources.limits.get(MEMORY, ZERO).nanos)
        if names:
            others += max(amounts)
        else:
            complete += max(amounts)
    return complete > 0 and complete >= others


def _is_nearly_complete(resources: ResourceRequirements) -> bool:
    for name in QOS_RESOURCES:
        limit = resources.limits.get(name)
        if not limit or resources.requests.get(name, ZERO).nanos < _NEARLY * limit.nanos:
            return False
    return True


def _spoiler(place: ResourcePlace, resources: ResourceRequirements, name: str) -> Spoiler:
    request, limit = resources.requests.get(name), resources.limits.get(name)
    return Spoiler(
        place.container or THE_POD,
        name,
        None if request is None else str(request),
        None if limit is None else str(limit),
    )


@check("PQ101", "accidental-burstable", WARNING, QOS, OOM, rule=find_accidental_burstable)
def accidental_burstable() -> Example:
    """PQ101: A container keeps the pod from being Guaranteed.

    A pod is Guaranteed only if every container, init containers included, has cpu and memory limits equal to its
    requests. One sidecar without limits makes the whole pod Burstable: its main container loses the oom_score_adj of
    -997, and under memory pressure the kubelet evicts the pod along with the batch jobs as soon as it uses more than it
    requests.

    Fix: Give the container limits equal to its requests. It is then throttled at its cpu limit and killed at its memory
    limit: look up what it uses at its peak, and raise request and limit together if that is more. Because of that
    cost, --fix adds limits only with --only PQ101.
    """
    return Example(
        examples.pod(
            examples.container(
                "article-service", 'cpu: "2", memory: 4Gi', 'cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi'
            ),
            examples.container("envoy-sidecar", "cpu: 100m, memory: 128Mi", "ephemeral-storage: 1Gi", image="envoy"),
            name="article-service",
        )
    )


# ---- PQ102–PQ104 -------------------------------------------------------------------------------------------------


class NothingSet(Fact, frozen=True, gc=False):
    """A pod without a request or limit of cpu or memory."""

    kind: str
    containers: tuple[str, ...]
    serves: str | None = None
    """What brings it the traffic of users, or the annotation that says so."""
    priority: int = 0
    autoscaler: str | None = None
    """The HorizontalPodAutoscaler that needs requests and cannot scale it."""
    priority_counts: bool = True
    """Whether the kubelet ranks by priority: among pods over their requests, as this one always is."""
    is_spared: bool = False
    """Whether it is critical, so that the kubelet never evicts it."""

    def sentence(self, _: str) -> str:
        """Return which containers request nothing, and why it matters."""
        asked = f"{listed(self.containers)} {verb(self.containers, 'requests', 'request')} no cpu and no memory"
        if self.serves is not None and not self.serves.startswith("annotation "):
            asked = f"{asked}, and {self.serves} sends it users' traffic"
        elif self.kind == _DAEMON_SET and not self.is_spared:
            asked = f"{asked}, and {DAEMON_COMES_BACK}"
        if self.autoscaler is not None:
            asked = f"{asked}; HorizontalPodAutoscaler {self.autoscaler} cannot scale it"
        if self.priority <= 0:
            return asked
        return f"{asked}; {_what_priority_does(self.priority, counts=self.priority_counts)}"

    def cause(self) -> str:
        """Return what it lacks."""
        return "it requests nothing"


def find_best_effort(view: View) -> None:
    """Find BestEffort pods that are not expendable, each once: that users wait for it matters most.

    One that policies reject has that finding, and one that its autoscaler cannot scale PQ601. A priority is part of it:
    the kernel ignores that.
    """
    if view.stored_class is not QOSClass.BEST_EFFORT or view.is_refused or view.is_protected:
        return
    if is_completed_by_operator(view.workload):
        return
    kind = view.workload.kind
    priority = 0 if view.stored.is_critical else view.priority
    priority_counts = RankKey.PRIORITY in ranking_keys(Ranking(Signal.MEMORY, profile=view.options.profile))
    needs_requests = view.scaled_by is not None and bool(view.utilization_metrics)
    if view.serves is not None and view.options.runs(user_facing_best_effort.id):
        check = user_facing_best_effort
    elif needs_requests and view.options.runs(NOT_SCALED):
        return
    else:
        check = daemon_set_best_effort if kind == _DAEMON_SET else best_effort
        is_repeated = check is best_effort and runs_until_done(view.workload)
        if view.is_expendable or is_repeated or not view.options.runs(check.id):
            if priority > 0:
                facts = PriorityWithoutRequests(priority, priority_counts)
                patch = view.choose(Choice.RESOURCES, *_request_paths(view))
                covered = Repair(lambda: _covered(view.pod), is_assumed=True)
                view.report(priority_without_requests, "spec.priorityClassName", facts, patch, repair=covered)
            return
    containers = view.pod.spec.containers
    autoscaler = view.scaled_by.name if view.scaled_by is not None and needs_requests else None
    names = tuple(container.name for container in containers)
    view.report(
        check,
        "spec.containers[0].resources" if containers else "spec",
        NothingSet(kind, names, view.serves, priority, autoscaler, priority_counts, view.standing.is_spared),
        view.choose(Choice.RESOURCES, *_request_paths(view)),
        repair=Repair(lambda: _covered(view.pod), is_assumed=True),
    )


def _covered(pod: Pod) -> Pod:
    """Return the pod as it would be if it requested the memory that it is taken to use, and no more."""
    memory = {MEMORY: NOMINAL}
    resources = ResourceRequirements(limits=memory, requests=memory)
    containers = tuple(replace(container, resources=resources) for container in pod.spec.containers)
    return replace(pod, spec=replace(pod.spec, containers=containers))


def _what_priority_does(priority: int, *, counts: bool) -> str:
    effect = "delays its eviction, not an OOM kill" if counts else "delays neither its eviction nor an OOM kill"
    return f"its priority of {priority:,} {effect}"


def _request_paths(view: View) -> list[str]:
    """Return where the requests of regular containers stand."""
    return [f"spec.containers[{index}].resources.requests" for index in range(len(view.pod.spec.containers))]


_RESOURCES = "spec.containers[0].resources"
_REQUESTS, _LIMITS = ({"cpu": "500m", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"})


@check("PQ102", "accidental-best-effort", WARNING, QOS, OOM, rule=find_best_effort)
def best_effort() -> Example:
    """PQ102: A long-running workload requests nothing.

    Without any request or limit the pod is BestEffort. The kernel adds 1000 to its score, so it is nearly always
    killed before pods with a request. Any usage exceeds its request, so the kubelet evicts it among the first. And the
    scheduler places it on nodes that are already full.

    Fix: Request what the containers need; one memory request is enough to be Burstable. If the pod is expendable, say
    so with the annotation podqos.dev/restart-cost: none.
    """
    return Example(
        examples.pod(examples.container() + "      resources: {}\n"),
        chosen={f"{_RESOURCES}.requests": _REQUESTS, f"{_RESOURCES}.limits": _LIMITS},
    )


@check("PQ103", "daemonset-best-effort", WARNING, QOS, OOM, DAEMON_TOLERATIONS, DAEMON_BACKOFF, rule=find_best_effort)
def daemon_set_best_effort() -> Example:
    """PQ103: A DaemonSet requests nothing.

    Its pods are the first to be evicted and killed on every node. The DaemonSet controller adds a toleration for
    node.kubernetes.io/memory-pressure, which no manifest can remove: an evicted pod returns to the same node within
    seconds, exceeds its request again and is evicted again, until the controller's back-off (1 s, doubled up to 15 min)
    keeps it away. Its service to the node (logs, metrics, network) is missing exactly when it is needed.

    Fix: Request what the containers need. With a memory request that covers their usage, the pod is not evicted before
    others and stays. If the pods are expendable, say so with the annotation podqos.dev/restart-cost: none.
    """
    return Example(
        examples.daemon_set(),
        chosen={
            f"spec.template.{_RESOURCES}.requests": {"cpu": "50m", "memory": "200Mi"},
            f"spec.template.{_RESOURCES}.limits": {"memory": "200Mi", "ephemeral-storage": "1Gi"},
        },
    )


@check("PQ104", "user-facing-best-effort", ERROR, QOS, OOM, rule=find_best_effort)
def user_facing_best_effort() -> Example:
    """PQ104: A user-facing workload requests nothing.

    Users' traffic reaches it, and it is BestEffort: the kernel kills it before every batch job that requests anything
    at all, and the kubelet evicts it among the first. Users are the first to notice. User-facing means that an Ingress,
    a Gateway API route, or a Service of type LoadBalancer or NodePort leads to it, or that it has the annotation
    podqos.dev/latency-sensitive. Workloads that only other pods reach (a ClusterIP, headless, metrics or webhook
    Service) get PQ102.

    Fix: Request what the containers use at their peak. Guaranteed (limits equal to requests for every container) is
    safest, at a price: CPU is throttled at the limit, and the peak is reserved all the time.
    """
    return Example(
        examples.documents(examples.pod(examples.container(), metadata=", labels: {app: web}"), examples.SERVICE),
        chosen={f"{_RESOURCES}.requests": {"cpu": "1", "memory": "1Gi"}, f"{_RESOURCES}.limits": _LIMITS},
    )


# ---- PQ302 -------------------------------------------------------------------------------------------------------


class PriorityWithoutRequests(Fact, frozen=True, gc=False):
    """A priority that the kernel ignores."""

    priority: int
    priority_counts: bool = True
    """Whether the kubelet ranks by priority: among pods over their requests, as this one always is."""

    def sentence(self, _: str) -> str:
        """Return the class, and what the priority does."""
        return f"{QOSClass.BEST_EFFORT}; {_what_priority_does(self.priority, counts=self.priority_counts)}"

    def cause(self) -> str:
        """Return what it lacks."""
        return "it requests nothing"


@check("PQ302", "high-priority-best-effort", WARNING, f"{RANKING} (rankMemoryPressure)", OOM, rule=find_best_effort)
def priority_without_requests() -> Example:
    """PQ302: A BestEffort pod has a priority.

    Priority decides preemption and eviction, but not whom the kernel kills: with an oom_score_adj of 1000 the pod is
    among the first. The kubelet evicts pods that exceed their requests before all others, and a pod that requests
    nothing always does; only among these does a higher priority delay its eviction (up to 1.8 the class came first, and
    the priority did not count at all). Where PQ102, PQ103 or PQ104 says that the pod requests nothing, it says this
    too.

    Fix: Add requests, or remove the priority.
    """
    return Example(
        examples.documents(
            examples.PRIORITY_CLASSES,
            """\
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    spec:
      priorityClassName: latency-critical
      restartPolicy: Never
      containers:
        - name: report
          image: report
""",
        ),
        chosen={
            "spec.template.spec.containers[0].resources.requests": {"cpu": "500m", "memory": "512Mi"},
            "spec.template.spec.containers[0].resources.limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"},
        },
    )
