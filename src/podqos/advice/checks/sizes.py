"""PQ105–PQ110, PQ114–PQ115 and PQ119: amounts that are valid but do not fit together."""

from __future__ import annotations

import re
from fractions import Fraction

from msgspec.structs import replace

from podqos.advice.checks import examples
from podqos.advice.checks.check import INFO, WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.classes import accidental_burstable
from podqos.advice.checks.finding import Choice, Effect, Fact, Patch
from podqos.advice.checks.references import OOM, RANKING
from podqos.advice.checks.repair import with_edits
from podqos.advice.checks.toleration import is_told_with_return
from podqos.advice.checks.unsized import is_told_as_unsized
from podqos.advice.checks.view import Repair, View
from podqos.amounts import listed, shown_ratio, verb
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.qos.edits import Edit
from podqos.qos.oom import oom_scores

_MEBIBYTE = 1 << 20
_MEGABYTE = 10**6
# So close to 1000 that a container is killed almost as early as one without requests.
LIKE_NOTHING = 990
# How much lower the score of the container it serves must be.
FAR_BELOW = 20
# So little beyond its request hardly matters to a node.
_LITTLE_BYTES = 256 << 20
# Beside less, hardly any share is lost.
_SOME_CPU = Quantity.parse("100m")
_LOCAL_STORAGE = "Kubernetes: pkg/kubelet/eviction/eviction_manager.go (localStorageEviction)"


# ---- PQ105–PQ107 -------------------------------------------------------------------------------------------------


def memory_amounts(view: View) -> None:
    """Look at the memory request and limit of each container that keeps running."""
    if view.pod.spec.resources is not None and pod_level_is_set(view.pod):
        return
    for container, path in view.resources(only_running=True):
        request, limit = container.resources.requests.get(MEMORY), container.resources.limits.get(MEMORY)
        if request and limit:
            if request.nanos != limit.nanos and not is_told_with_return(view, container.name):
                _far_apart(view, container, path, request, limit)
        elif limit and request is None:
            _follows(view, container, path, limit)
        elif request and limit is None and not is_told_with_return(view, container.name):
            _unlimited(view, container, path, request)


class LimitFarAboveRequest(Fact, frozen=True, gc=False):
    """A container that may use many times what it reserves."""

    request: str
    limit: str
    ratio: float
    allowed_ratio: float

    def sentence(self, container: str) -> str:
        """Return both amounts and how far they are apart."""
        return (
            f"{container} may use {self.limit} of memory, {self.ratio:.1f}× the {self.request} it requests "
            f"(at most {self.allowed_ratio:g}×)"
        )

    def cause(self) -> str:
        """Return what is out of proportion."""
        return "its memory limit is far above its request"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "when it uses more than it requests, other pods are evicted in its place"


def _far_apart(view: View, container: Container, path: str, request: Quantity, limit: Quantity) -> None:
    allowed = view.options.memory_ratio
    if limit.nanos * allowed.denominator <= request.nanos * allowed.numerator or view.has_ratio(MEMORY):
        return
    if any(view.is_in_wrong_unit(MEMORY, str(amount)) for amount in (request, limit)):
        return
    edit = Edit(f"{path}.requests.memory", min(_share(limit, allowed), limit), request)
    # 500Mi beside 2Gi was meant as a quarter.
    is_nearly = edit.value is not None and 10 * edit.value.nanos < 11 * request.nanos
    is_little = limit.value - request.value < _LITTLE_BYTES or is_nearly or view.standing.is_spared
    view.report(
        replace(limit_far_above_request, severity=INFO) if is_little else limit_far_above_request,
        edit.path,
        LimitFarAboveRequest(
            str(request), str(limit), shown_ratio(Fraction(limit.nanos, request.nanos)), float(allowed)
        ),
        Patch.write(view.edit(edit.path, edit.value, request)),
        container=container.name,
        repair=Repair(lambda: with_edits(view.pod, (edit,))),
    )


def _share(limit: Quantity, divisor: Fraction) -> Quantity:
    """Return a limit divided, in its own units: a quarter of 512M is 128M, of 1Gi 256Mi; odd ones are rounded up."""
    needed = -(-limit.value * divisor.denominator // divisor.numerator)
    grain = _MEBIBYTE if limit.format == "BinarySI" else _MEGABYTE
    return Quantity.of_units(-(-needed // grain) * grain if needed >= grain else needed, limit.format)


@check("PQ105", "memory-request-far-below-limit", WARNING, RANKING, OOM, rule=memory_amounts, fix_on_request=True)
def limit_far_above_request() -> Example:
    """PQ105: The memory limit is many times the request.

    The scheduler reserves the request, the kernel allows the limit. A pod that uses up to its limit is far above its
    request, which is what the kubelet ranks by: of two pods with the same priority, the one further above its request
    is evicted first. The small request also gives it a high oom_score_adj. An info where the difference is less than
    256Mi or the request lacks less than a tenth, and for critical pods, which are never evicted.

    Fix: Raise the request towards actual usage, or lower the limit. The amount shown is the smallest that passes the
    check.
    """
    return Example(examples.web("cpu: 500m, memory: 256Mi", 'cpu: "1", memory: 8Gi, ephemeral-storage: 1Gi'))


class RequestFollowsLimit(Fact, frozen=True, gc=False):
    """A container whose memory request is not written and becomes its limit."""

    limit: str

    def sentence(self, container: str) -> str:
        """Return what the request becomes."""
        return f"{container} has a memory limit of {self.limit} but no request, so the request defaults to the limit"


def _follows(view: View, container: Container, path: str, limit: Quantity) -> None:
    view.report(
        request_follows_limit,
        f"{path}.limits.memory",
        RequestFollowsLimit(str(limit)),
        Patch.write(view.edit(f"{path}.requests.memory", limit)),
        container=container.name,
    )


@check(
    "PQ106",
    "memory-limit-without-request",
    INFO,
    "Kubernetes: pkg/apis/core/v1/defaults.go",
    effect=Effect.STANDING,
    rule=memory_amounts,
)
def request_follows_limit() -> Example:
    """PQ106: The memory request is missing and defaults to the limit.

    The API server copies a missing request from the limit. That may be intended (it is one way to be Guaranteed), but
    raising the limit later also raises what the pod reserves, and a pod that no longer fits stays pending with no
    request in its manifest to explain it.

    Fix: Set the request.
    """
    return Example(examples.web("cpu: 500m", 'cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi'))


class NoMemoryLimit(Fact, frozen=True, gc=False):
    """A container that may take all memory there is."""

    request: str

    def sentence(self, container: str) -> str:
        """Return what it states instead."""
        return f"{container} requests {self.request} of memory and has no limit"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "if it leaks, other pods are evicted in its place until the node runs out of memory"


def _unlimited(view: View, container: Container, path: str, request: Quantity) -> None:
    if view.has_found(accidental_burstable):
        return  # which gives it a limit
    if view.admission is not None and _is_limited(view.admission.first.pod, container.name):
        return  # by a LimitRange, of which PQ202 or PQ203 tells
    view.report(
        no_memory_limit,
        f"{path}.requests.memory",
        NoMemoryLimit(str(request)),
        view.choose(Choice.MEMORY_LIMIT, f"{path}.limits.memory"),
        container=container.name,
    )


def _is_limited(pod: Pod, name: str) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(container.name == name and MEMORY in container.resources.limits for container in containers)


@check(
    "PQ107",
    "memory-request-without-limit",
    WARNING,
    "Linux: Documentation/admin-guide/cgroup-v2.rst (memory.max)",
    OOM,
    rule=memory_amounts,
)
def no_memory_limit() -> Example:
    """PQ107: A container can use all of its node's memory.

    With a limit, a container that leaks memory is killed in its own cgroup, alone. Without one it grows until the node
    runs out. Then the kubelet evicts or the kernel kills, and the victim may be another pod.

    Fix: Set a memory limit.
    """
    return Example(
        examples.web("cpu: 500m, memory: 512Mi", "ephemeral-storage: 1Gi"),
        chosen={"spec.containers[0].resources.limits.memory": "1Gi"},
    )


# ---- PQ108–PQ110 -------------------------------------------------------------------------------------------------


class NoDiskLimit(Fact, frozen=True, gc=False):
    """Containers that may fill the node's disk."""

    containers: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return which."""
        return f"{listed(self.containers)} {verb(self.containers, 'has', 'have')} no ephemeral-storage limit"


def disk_limits(view: View) -> None:
    """Find containers that may fill the node's disk. BestEffort pods have a more urgent finding."""
    if view.stored_class is QOSClass.BEST_EFFORT:
        return
    unlimited = {
        f"spec.containers[{index}].resources": container.name
        for index, container in enumerate(view.stored.spec.containers)
        if EPHEMERAL_STORAGE not in container.resources.limits and container.name not in view.workload.added
    }
    if unlimited:
        paths = [f"{path}.limits.ephemeral-storage" for path in unlimited]
        patch = view.choose(Choice.EPHEMERAL_STORAGE_LIMIT, *paths)
        view.report(no_disk_limit, next(iter(unlimited)), NoDiskLimit(tuple(unlimited.values())), patch)


@check("PQ108", "no-ephemeral-storage-limit", INFO, _LOCAL_STORAGE, effect=Effect.DISK, rule=disk_limits)
def no_disk_limit() -> Example:
    """PQ108: Containers can fill the node's disk.

    Logs, the writable layer and emptyDir volumes share the node's disk. A container that exceeds its limit is evicted
    alone; without a limit it can fill the disk until the kubelet evicts pods for DiskPressure, this one or others.

    Fix: Set limits.ephemeral-storage.
    """
    return Example(
        examples.web("cpu: 500m, memory: 512Mi", 'cpu: "1", memory: 1Gi'),
        chosen={"spec.containers[0].resources.limits.ephemeral-storage": "1Gi"},
    )


class UnboundedVolume(Fact, frozen=True, gc=False):
    """An emptyDir without a size limit."""

    volume: str
    in_memory: bool

    def sentence(self, _: str) -> str:
        """Return which, and where it is."""
        where = "in memory" if self.in_memory else "on the node's disk"
        return f"the emptyDir {self.volume} {where} has no size limit"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "files there count as memory: the container is OOM-killed at its limit, and again after each restart"


_SHARED_MEMORY = re.compile(r"(?:.*-)?(?:d?shm|shared-mem(?:ory)?)(?:-.*)?")


def volumes(view: View) -> None:
    """Find emptyDir volumes without a size limit, in memory and on disk."""
    for index, volume in enumerate(view.pod.spec.volumes):
        directory = volume.empty_dir
        if directory is None or directory.size_limit:
            continue
        in_memory = directory.medium == "Memory"
        path = f"spec.volumes[{index}].emptyDir"
        check = memory_volume if in_memory else disk_volume
        if in_memory and not all(container.resources.limits.get(MEMORY) for container in view.stored.spec.containers):
            check = replace(check, effect=Effect.ORDER)  # what grows without a limit is the pod
        view.report(
            replace(check, severity=INFO) if in_memory and _SHARED_MEMORY.fullmatch(volume.name) else check,
            path,
            UnboundedVolume(volume.name, in_memory),
            view.choose(Choice.VOLUME_SIZE_LIMIT, f"{path}.sizeLimit"),
        )


_CACHE = examples.web(*examples.USUAL) + "  volumes:\n    - name: cache\n      emptyDir: {}\n"
_SIZE_LIMIT = "spec.volumes[0].emptyDir.sizeLimit"


@check(
    "PQ109",
    "memory-volume-without-size-limit",
    WARNING,
    "Kubernetes: pkg/volume/emptydir/empty_dir.go (calculateEmptyDirMemorySize)",
    effect=Effect.LIMIT,
    rule=volumes,
)
def memory_volume() -> Example:
    """PQ109: A memory-backed volume has no size limit.

    Data written to an emptyDir with medium Memory counts as memory of the container that wrote it. It is neither freed
    when that container restarts nor swapped out. Without a size limit it can grow to the pod's memory limit, and the
    container is then killed again as soon as it starts. An info for shared memory, known by the usual names of volumes
    at /dev/shm (`dshm`, `shm`): its size is up to the program.

    Fix: Set emptyDir.sizeLimit, and include it in the memory limit.
    """
    return Example(
        _CACHE.replace("emptyDir: {}", "emptyDir: {medium: Memory}"),
        chosen={_SIZE_LIMIT: "64Mi"},
    )


@check("PQ110", "volume-without-size-limit", INFO, _LOCAL_STORAGE, effect=Effect.DISK, rule=volumes)
def disk_volume() -> Example:
    """PQ110: An emptyDir has no size limit.

    A volume that exceeds its size limit only gets its own pod evicted. Without one it can fill the node's disk, and the
    kubelet then evicts for DiskPressure the pod furthest above its ephemeral-storage request.

    Fix: Set emptyDir.sizeLimit.
    """
    return Example(_CACHE, chosen={_SIZE_LIMIT: "1Gi"})


# ---- PQ114 -------------------------------------------------------------------------------------------------------


class SmallSidecar(Fact, frozen=True, gc=False):
    """A small container that the kernel kills long before the one it serves."""

    oom_score_adj: int
    main: str
    main_oom_score_adj: int

    def sentence(self, container: str) -> str:
        """Return its score beside that of the main container."""
        return (
            f"{container} has an oom_score_adj of {self.oom_score_adj}, while {self.main}, which it serves, "
            f"has {self.main_oom_score_adj}"
        )


def find_small_sidecar(view: View) -> None:
    """Find a container that counts as nothing in a pod that must not die.

    Init containers that restart are left out: their score follows that of the container they serve.
    """
    spec = view.stored.spec
    if len(spec.containers) < 2 or view.stored_class is not QOSClass.BURSTABLE:
        return
    if view.has_found(accidental_burstable):  # whose fix makes it Guaranteed
        return
    if view.priority < view.options.important_priority and view.serves is None and not view.context.is_served(view.pod):
        return
    scores = oom_scores(view.stored, QOSClass.BURSTABLE, view.context.node_memory_bytes, view.options.profile)
    regular = scores[: len(spec.containers)]
    main = min(regular, key=lambda score: score.value)
    for index, score in enumerate(regular):
        is_small = score.value >= LIKE_NOTHING and score.value - main.value >= FAR_BELOW
        if is_small and not is_told_as_unsized(view, spec.containers[index]):
            view.report(
                small_sidecar,
                f"spec.containers[{index}].resources",
                SmallSidecar(score.value, main.container, main.value),
                view.choose(Choice.SIDECAR_FORM, f"spec.containers[{index}]"),
                container=score.container,
            )


_LABELS = ", labels: {app: web}"
_MAIN = examples.container("web", 'cpu: "1", memory: 4Gi', 'cpu: "2", memory: 8Gi, ephemeral-storage: 1Gi')
_PROXY = ("cpu: 50m, memory: 32Mi", 'cpu: "1", memory: 64Mi, ephemeral-storage: 1Gi')
_AS_INIT_CONTAINER = "  initContainers:\n" + examples.container("proxy", *_PROXY).replace(
    "      resources:", "      restartPolicy: Always\n      resources:"
)


@check("PQ114", "small-sidecar-dies-first", WARNING, OOM, "KEP-753: sidecar containers", rule=find_small_sidecar)
def small_sidecar() -> Example:
    """PQ114: A small sidecar of an important pod is among the first to be OOM-killed.

    The oom_score_adj of a Burstable container follows from its own memory request, not the pod's. A sidecar with a
    small request ends up near 999: when the node runs out of memory the kernel kills it right after the BestEffort
    pods, and without its proxy the pod serves no traffic, no matter its priority.

    Fix: Make the sidecar an init container with restartPolicy: Always, whose score follows the main container's. Or
    make the pod Guaranteed, which throttles every container at its CPU limit and reserves everything it may use.
    """
    return Example(
        examples.documents(
            examples.pod(_MAIN, examples.container("proxy", *_PROXY), metadata=_LABELS), examples.SERVICE
        ),
        good=examples.documents(examples.pod(_MAIN, metadata=_LABELS, spec=_AS_INIT_CONTAINER), examples.SERVICE),
    )


# ---- PQ115 -------------------------------------------------------------------------------------------------------


class FractionalCPU(Fact, frozen=True, gc=False):
    """A Guaranteed container whose cores are not whole, under a static CPU manager."""

    cpu: str

    def sentence(self, container: str) -> str:
        """Return how many cores it asks for."""
        return f"{container} requests {self.cpu} cpu, which is not a whole number of cores"


def find_fractional_cpu(view: View) -> None:
    """Find Guaranteed containers that a static CPU manager leaves in the shared pool."""
    if view.stored_class is not QOSClass.GUARANTEED or not view.context.has_static_cpu_manager:
        return
    if view.stored.spec.resources is not None:
        return
    for index, container in enumerate(view.stored.spec.containers):
        limit = container.resources.limits[CPU]
        if limit.milli_value % 1000 == 0:
            continue
        written = view.pod.spec.containers[index].resources
        whole = Quantity.of_units(limit.value)
        path = f"spec.containers[{index}].resources"
        edits = [view.edit(f"{path}.limits.cpu", whole, written.limits.get(CPU))]
        if CPU in written.requests:
            edits.append(view.edit(f"{path}.requests.cpu", whole, written.requests[CPU]))
        facts = FractionalCPU(str(limit))
        view.report(fractional_cpu, f"{path}.limits.cpu", facts, Patch.write(*edits), container=container.name)


@check(
    "PQ115",
    "fractional-cpu-under-static-policy",
    INFO,
    "Kubernetes: pkg/kubelet/cm/cpumanager/policy_static.go (guaranteedCPUs)",
    effect=Effect.STANDING,
    rule=find_fractional_cpu,
    fix_on_request=True,
)
def fractional_cpu() -> Example:
    """PQ115: A Guaranteed container gets no exclusive cores.

    The static CPU manager gives exclusive cores only to Guaranteed containers that request a whole number of them. A
    container with 1500m shares the pool with the rest: it survives memory pressure, but its neighbours can still slow
    it down.

    Fix: Request whole cores.
    """
    return Example(
        examples.documents(
            examples.web("cpu: 1500m, memory: 1Gi", "cpu: 1500m, memory: 1Gi, ephemeral-storage: 1Gi"),
            examples.kubelet("""\
cpuManagerPolicy: static
systemReserved: {cpu: "1", memory: 1Gi}
evictionHard: {memory.available: 1Gi, nodefs.available: 10%}
"""),
        )
    )


# ---- PQ119 -------------------------------------------------------------------------------------------------------


class NoCPURequest(Fact, frozen=True, gc=False):
    """A container without a cpu request beside others that have one."""

    other: str
    request: str
    """What the other requests."""

    def sentence(self, container: str) -> str:
        """Return which has none, beside one that does."""
        return f"{container} requests no cpu, while {self.other} requests {self.request}"

    def harm(self) -> str:
        """Return what happens to pods that are never evicted, or last."""
        return "on a busy node it gets the smallest share of the CPU"


def find_no_cpu_request(view: View) -> None:
    """Find containers that share the pod's cpu with others and were given no share of it.

    A request of zero is a statement, and a pod's own resources cover all of its containers.
    """
    spec = view.stored.spec
    if len(spec.containers) + len(spec.init_containers) < 2 or (
        spec.resources is not None and pod_level_is_set(view.stored)
    ):
        return
    if view.has_found(accidental_burstable) or view.is_refused:
        return  # which gives it one
    if any(metric.name == CPU and not metric.container for metric in view.utilization_metrics):
        return  # of which PQ601 tells
    stored = (*spec.containers, *spec.init_containers)
    regular = len(spec.containers)
    running = [
        (container, path)
        for number, (container, (_, path)) in enumerate(zip(stored, view.resources(), strict=True))
        if number < regular or container.is_sidecar
    ]
    largest = max(running, key=lambda each: each[0].resources.requests.get(CPU, ZERO))[0]
    request = largest.resources.requests.get(CPU, ZERO)
    if request < _SOME_CPU:
        return
    for container, path in running:
        if CPU not in container.resources.requests and not is_told_as_unsized(view, container):
            view.report(
                no_cpu_request,
                path,
                NoCPURequest(largest.name, str(request)),
                view.choose(Choice.RESOURCES, f"{path}.requests.cpu"),
                container=container.name,
            )


@check(
    "PQ119",
    "no-cpu-request",
    WARNING,
    "Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (calculateLinuxResources)",
    effect=Effect.NONE,
    rule=find_no_cpu_request,
)
def no_cpu_request() -> Example:
    """PQ119: A container requests no CPU, while others in the pod do.

    The kernel divides a busy node's CPU by requests. A container without one gets the smallest weight, 2 shares
    compared with 512 for a container that requests 500m. On a busy node it barely runs, and a proxy or an agent that
    doesn't run blocks the pod's traffic or its probes. Reported if another container requests at least 100m.

    Fix: Give it a CPU request.
    """
    proxy = examples.container("proxy", "memory: 128Mi", "memory: 256Mi, ephemeral-storage: 1Gi")
    return Example(
        examples.pod(examples.container("web", *examples.USUAL), proxy),
        chosen={"spec.containers[1].resources.requests.cpu": "50m"},
    )
