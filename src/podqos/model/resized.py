"""What a Pod object shows of a resize in place: which resources its node runs it with, and which score may be older.

The kubelet writes cgroups when it resizes a pod, and nothing else. The ``oom_score_adj`` of a process is set when its
container starts, from the requests of that moment, and stays until the container starts again. That there were other
requests shows in ``managedFields``, which say who resized what and when, and in ``generation``, which grows with every
change of the spec (binding is none). What they were shows in the pod's own ``status.resources`` (1.36), which keep the
memory request of the pod's start, and where ``kubectl apply`` made the pod: its annotation has the manifest.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction, doPodResizeAction,
updatePodContainerResources), kuberuntime_container_linux.go (the score is part of what a container is created with),
pkg/kubelet/kubelet_pods.go (convertToAPIPodLevelResourcesStatus), pkg/registry/core/pod/strategy.go
(updatePodGeneration).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from podqos.model.effective import as_allocated
from podqos.model.pod import POD_RESIZE_IN_PROGRESS, POD_RESIZE_PENDING, Container, Pod, QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import MEMORY, NO_RESOURCES

_RESIZE = "resize"


class _Amounts(Struct, frozen=True, gc=False):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}

    @property
    def memory_request(self) -> Quantity | None:
        """As the API server stores it: a missing request is the limit."""
        stated = self.requests.get(MEMORY, self.limits.get(MEMORY))
        try:
            return None if stated is None else Quantity.parse(str(stated))
        except ValueError:
            return None


class _AppliedContainer(Struct, frozen=True, gc=False):
    name: str = ""
    resources: _Amounts = _Amounts()


class _AppliedSpec(Struct, frozen=True, gc=False, rename="camel"):
    containers: tuple[_AppliedContainer, ...] = ()
    init_containers: tuple[_AppliedContainer, ...] = ()
    resources: _Amounts | None = None


class AppliedPod(Struct, frozen=True, gc=False):
    """The manifest in the annotation of ``kubectl apply``, with its resources only."""

    spec: _AppliedSpec = _AppliedSpec()


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_APPLIED = json.Decoder(AppliedPod)


def applied_pod(annotation: str) -> AppliedPod | None:
    """Return the resources of the manifest that a pod was made from; None if the annotation cannot be read."""
    try:
        return _APPLIED.decode(annotation)
    except DecodeError:
        return None


class OlderScore(Struct, frozen=True, gc=False):
    """A container that runs with the score of a memory request that the object no longer has, or may do so."""

    container: str
    resized_at: str = ""
    """When its request was resized; empty where it is only known that the spec has changed since the pod was made."""
    request: Quantity | None = None
    """The request that it started with; None where that is not known."""


def as_started(pod: Pod) -> tuple[Pod, frozenset[str]]:
    """Return a pod with the memory requests that its containers started with, and the containers where they differ.

    Those that are not known are as they are now.
    """
    older = {score.container: score.request for score in older_scores(pod) if score.request is not None}
    if not older:
        return pod, frozenset()
    spec = pod.spec
    containers, init_containers = (
        tuple(_with_request(container, older.get(container.name)) for container in of_kind)
        for of_kind in (spec.containers, spec.init_containers)
    )
    own, applied = spec.resources, _applied(pod)
    if own is not None and applied is not None and applied.spec.resources is not None:
        request = applied.spec.resources.memory_request
        if request is not None and MEMORY in own.requests:
            own = replace(own, requests={**own.requests, MEMORY: request})
    started = replace(spec, containers=containers, init_containers=init_containers, resources=own)
    return replace(pod, spec=started), frozenset(older)


def _with_request(container: Container, request: Quantity | None) -> Container:
    if request is None:
        return container
    requests = {**container.resources.requests, MEMORY: request}
    return replace(container, resources=replace(container.resources, requests=requests))


class UnmetAmount(Struct, frozen=True, gc=False):
    """An amount that a spec states and its node does not give yet."""

    container: str
    """Empty for the pod as a whole."""
    side: str
    """requests or limits."""
    resource: str
    stated: Quantity
    actual: Quantity


class UnmetResize(Struct, frozen=True, gc=False):
    """A resize that is not done."""

    state: str
    """Deferred, Infeasible or InProgress, as the conditions say; empty where they do not say."""
    amounts: tuple[UnmetAmount, ...]


def pending_resize(pod: Pod) -> UnmetResize | None:
    """Return which amounts of a pod's spec its node does not run it with yet; None where it has all of them."""
    running = as_allocated(pod)
    if running is pod:
        return None
    state = "InProgress" if any(item.type == POD_RESIZE_IN_PROGRESS for item in pod.status.conditions) else ""
    pending = next((item.reason for item in pod.status.conditions if item.type == POD_RESIZE_PENDING), state)
    return UnmetResize(pending, tuple(_unmet(pod, running)))


def _unmet(pod: Pod, running: Pod) -> Iterator[UnmetAmount]:
    levels = [("", pod.spec.resources or NO_RESOURCES, running.spec.resources or NO_RESOURCES)]
    for wanted, had in (
        (pod.spec.containers, running.spec.containers),
        (pod.spec.init_containers, running.spec.init_containers),
    ):
        pairs = zip(wanted, had, strict=True)
        levels += [(container.name, container.resources, actual.resources) for container, actual in pairs]
    for name, stated, actual in levels:
        for side, before, after in (
            ("requests", stated.requests, actual.requests),
            ("limits", stated.limits, actual.limits),
        ):
            for resource, amount in before.items():
                if after[resource] != amount:
                    yield UnmetAmount(name, side, resource, amount, after[resource])


def older_scores(pod: Pod) -> tuple[OlderScore, ...]:
    """Return the containers of a running pod whose score is that of earlier requests, or may be.

    Only Burstable pods have scores that depend on requests. A resize that its kubelet has not allocated changed
    nothing yet, and a container that started after the resize, or that a resize restarts, has the new score.
    """
    if pod.status.qos_class is not QOSClass.BURSTABLE or pod.is_node_critical or pod.metadata.generation == 1:
        return ()
    return tuple(
        OlderScore(container.name, resized_at, _first_request(pod, container, resized_at))
        for container, resized_at in _resized(pod)
    )


def _resized(pod: Pod) -> Iterator[tuple[Container, str]]:
    """Yield the containers that run since before a resize of memory, and when that was; empty where it is not known."""
    status = pod.status
    statuses = {item.name: item for item in (*status.container_statuses, *status.init_container_statuses)}
    first, now = _first_total(pod), status.allocated_resources.get(MEMORY)
    for container in pod.running_containers:
        run_status = statuses.get(container.name)
        running = None if run_status is None or run_status.state is None else run_status.state.running
        if run_status is None or running is None or container.restarts_for(MEMORY):
            continue
        stated = container.resources.requests.get(MEMORY)
        if run_status.allocated_resources and run_status.allocated_resources.get(MEMORY) != stated:
            continue
        if pod.metadata.managed_fields:
            resized_at = _resized_at(pod, container)
            if resized_at and (running.started_at or "") <= resized_at:
                yield container, resized_at
        elif first != now if first is not None and now is not None else pod.metadata.generation > 1:
            yield container, ""


def _first_request(pod: Pod, container: Container, resized_at: str) -> Quantity | None:
    """Return the memory request that a container started with; None where neither status nor annotation shows it."""
    others = [item for item in pod.running_containers if item.name != container.name]
    if resized_at:
        is_alone = not any(_resized_at(pod, item) for item in others)
    else:
        restarts = {item.name: item.restart_count for item in pod.status.container_statuses}
        is_alone = not others and restarts.get(container.name) == 0
    total = _first_total(pod)
    if not is_alone or total is None:
        return _request_applied(pod, container)
    first = total - sum((item.resources.requests.get(MEMORY, ZERO) for item in others), ZERO)
    is_telling = first >= ZERO and first != container.resources.requests.get(MEMORY)
    return first if is_telling else _request_applied(pod, container)


def _first_total(pod: Pod) -> Quantity | None:
    """Return the memory request of the whole pod when it began to run; None where its status does not tell.

    Kubelets of 1.36 mean to report what the cgroup has, which has no memory request, and so repeat the first one.
    """
    spec, resources = pod.spec, pod.status.resources
    has_others = len(pod.running_containers) < len(spec.containers) + len(spec.init_containers)
    if resources is None or spec.resources is not None or spec.overhead or has_others:
        return None
    return resources.requests.get(MEMORY)


def _request_applied(pod: Pod, container: Container) -> Quantity | None:
    applied = _applied(pod)
    if applied is None:
        return None
    of_kinds = (*applied.spec.containers, *applied.spec.init_containers)
    return next((known.resources.memory_request for known in of_kinds if known.name == container.name), None)


def _applied(pod: Pod) -> AppliedPod | None:
    annotation = pod.metadata.annotations.get(LAST_APPLIED)
    return None if annotation is None else applied_pod(annotation)


def _resized_at(pod: Pod, container: Container) -> str:
    """Return when a memory request was last resized that the score depends on: the container's, or the pod's."""
    times = (
        entry.time or ""
        for entry in pod.metadata.managed_fields
        if entry.subresource == _RESIZE and entry.fields_v1 is not None
        if entry.fields_v1.spec.owns_memory_request(container.name)
    )
    return max(times, default="")
