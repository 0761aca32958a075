"""Decisions in words. Every sentence here renders a value; nothing is decided or computed a second time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podqos.admission.refusal import MissingObject as MissingClass
from podqos.admission.stored import Unapplied, WhyNot
from podqos.amounts import listed, mebibytes
from podqos.model.pod import Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resized import UnmetResize
from podqos.qos.cgroup_values import Rule, ValueReason
from podqos.qos.classes import Classification, MissingLimit, ResourcePlace, Unequal
from podqos.qos.edits import Edit
from podqos.qos.oom import OOMRule, OOMScore
from podqos.qos.run_flags import Flag, FlagStatus, Note


def why_class(classification: Classification) -> str:
    """Return why a pod has its class, in one sentence."""
    if classification.qos_class is QOSClass.BEST_EFFORT:
        if classification.decided_by == "pod":
            return "spec.resources is present but sets neither cpu nor memory, and it overrides the containers"
        return "no container sets a cpu or memory request or limit"
    if classification.qos_class is QOSClass.GUARANTEED:
        if classification.decided_by == "pod":
            return "the pod-level cpu and memory requests equal their limits"
        return "every container has cpu and memory limits, and requests equal limits"
    return "; ".join((*_missing_clauses(classification.missing_limits), *_unequal_clauses(classification.unequal)))


_WITHOUT_CLASS = {"PriorityClass": "priority {priority} is assumed", "RuntimeClass": "no overhead is added"}
_UNAPPLIED = {
    WhyNot.NOT_CHARGED: "is not charged here; podqos admit charges all pods in order",
    WhyNot.TAKES_NO_PART: "does not apply: namespace {namespace} has not opted in ({switch})",
}


def missing_class(missing: MissingClass, pod: Pod) -> str:
    """Return what is assumed where a pod names a class that was not given."""
    what = _WITHOUT_CLASS[missing.kind].format(priority=pod.spec.priority or 0)
    return f"{missing.kind} {missing.name} is not in the input: {what}"


_RESIZE_STATES = {
    "Deferred": "its resize waits for room on its node (Deferred)",
    "Infeasible": "its kubelet rejected its resize (Infeasible)",
    "InProgress": "its resize is in progress",
}


def unmet_resize(resize: UnmetResize) -> str:
    """Return with which amounts a pod runs whose resize is not done."""
    amounts = ", ".join(
        f"{unmet.container and f'{unmet.container} '}{unmet.side}.{unmet.resource} {amount(unmet.actual)} instead of "
        f"{amount(unmet.stated)}"
        for unmet in resize.amounts
    )
    return f"{_RESIZE_STATES.get(resize.state, 'its resize is not done')}; it runs with {amounts}"


def kept_scores(containers: Sequence[str]) -> str:
    """Return which containers have an older score than their request after a resize."""
    keep = "keeps its" if len(containers) == 1 else "keep their"
    return f"{listed(containers)} {keep} oom_score_adj until the next restart"


def taken_for(kind: str) -> str:
    """Return what was assumed of a text that names no kind."""
    return f"no kind given: read as a {kind}"


def unapplied(policy: Unapplied, namespace: str) -> str:
    """Return why a policy was not applied to a pod."""
    return f"{policy.kind} {policy.name} {_UNAPPLIED[policy.why].format(namespace=namespace, switch=policy.switch)}"


def edits(changes: tuple[Edit, ...]) -> list[str]:
    """Return the lines to write, as ``path: value``."""
    return [f"{change.path}: {amount(change.value)}{_replacing(change)}" for change in changes]


def amount(quantity: Quantity | None) -> str:
    """Return an amount, or a place to fill in."""
    return "<choose>" if quantity is None else str(quantity)


_OOM_RULES = {
    OOMRule.NODE_CRITICAL: "node-critical pod",
    OOMRule.GUARANTEED: "Guaranteed: constant",
    OOMRule.BEST_EFFORT: "BestEffort: constant",
    OOMRule.BURSTABLE: "{formula}",
    OOMRule.SIDECAR: "{formula}, from the smallest regular container",
    OOMRule.FLOOR: "{formula}, raised above every Guaranteed pod",
    OOMRule.CEILING: "{formula}, lowered below every BestEffort pod",
}


def oom_rule(score: OOMScore, node_memory_bytes: int) -> str:
    """Return why a container has its oom_score_adj."""
    formula = f"1000 − 1000 × {mebibytes(score.request_bytes or 0)} / {mebibytes(node_memory_bytes)}"
    rule = _OOM_RULES[score.rule].format(formula=formula)
    if score.after_restart is None:
        return rule
    return f"{rule}, the request that it started with; a restart makes it {score.after_restart}"


# A cgroup value in words; {amount} and {containers} are filled in from the decision.
_RULES = {
    Rule.REQUEST: "request {amount}",
    Rule.LIMIT: "limit {amount}",
    Rule.LIMIT_AS_REQUEST: "no cpu request, so the limit {amount} counts",
    Rule.POD_LEVEL_LIMIT: "the pod's limit {amount} (no limit of its own)",
    Rule.POD_REQUEST: "the pod requests {amount}",
    Rule.POD_LIMIT: "the pod's limit {amount}",
    Rule.NO_REQUEST: "nothing is requested",
    Rule.NO_LIMIT: "{containers} {have} no limit",
    Rule.BEST_EFFORT: "BestEffort",
    Rule.QUOTA_DISABLED: "cpu limits are not enforced (cpuCFSQuota: false)",
    Rule.EXCLUSIVE_CPUS: "exclusive CPUs (cpuManagerPolicy: static)",
    Rule.POD_PIDS_LIMIT: "podPidsLimit",
    Rule.NOT_REQUESTED_SIZE: "pages of this size are not requested",
    Rule.UNBOUNDED: "unlimited; the levels below decide",
    Rule.OOM_GROUP: "the container is killed as a group",
    Rule.RESERVATION: "MemoryQoS protects the request {amount} from reclaim",
    Rule.NO_RESERVATION: "MemoryQoS: nothing to protect",
    Rule.THROTTLING: "MemoryQoS throttles it before its limit",
    Rule.THROTTLING_POD: "MemoryQoS throttles the pod before its limit",
    Rule.THROTTLING_ALLOCATABLE: "MemoryQoS throttles it before the node's allocatable memory",
    Rule.NO_SWAP: "no swap",
    Rule.SWAP_SHARE: "its share of the node's swap, from request {amount}",
    Rule.SWAP_NOT_BURSTABLE: "only Burstable pods swap",
    Rule.SWAP_CRITICAL: "critical pods do not swap",
    Rule.SWAP_NO_REQUEST: "no swap without a memory request",
    Rule.SWAP_FIXED: "no swap where request equals limit",
    Rule.SWAP_REQUEST_TOO_LARGE: "no swap for a request larger than the node",
    Rule.NODE_ALLOCATABLE: "the node's allocatable",
    Rule.NODE_CAPACITY: "the node's capacity",
    Rule.TIER_REQUESTS: "requests of the class: {amount}",
    Rule.TIER_LEAST: "the minimum share, for all BestEffort pods together",
    Rule.PROTECTED_REQUESTS: "the sum of what its pods protect",
    Rule.QOS_RESERVED: "qosReserved leaves {amount} to this class",
    Rule.SANDBOX: "the runtime's own value",
}


def because_of(because: ValueReason) -> str:
    """Return why a cgroup file holds what it holds."""
    containers = " and ".join(because.containers) or "the pod"
    have = "have" if len(because.containers) > 1 else "has"
    text = _RULES[because.rule].format(amount=amount(because.amount), containers=containers, have=have)
    return f"{text} (the kernel's bound)" if because.clamped else text


_NOTES = {
    Note.OOM_SCORE: "the container's oom_score_adj",
    Note.ROOTLESS_CLAMP: "rootless podman cannot go below its own value",
    Note.BELOW_DOCKER_MINIMUM: "docker rejects less than 6 MiB",
    Note.CGROUP_VALUE: "as in its cgroup",
    Note.SOFT_LIMIT: "requests reach the kernel only with MemoryQoS",
    Note.SWAP_NEEDS_LIMIT: "swap can be limited only together with memory",
    Note.SWAP_UNKNOWN: "the kernel does not account swap",
    Note.SWAPPINESS: "the kubelet leaves the node's swappiness alone",
    Note.CPU_MANAGER: "a static CPU manager would pick whole CPUs when the container starts",
    Note.SHARED_CPUS: "it uses the shared CPU pool",
    Note.OWN_CPUS: "the static CPU manager picks exclusive CPUs at admission",
    Note.MEMORY_MANAGER: "a static memory manager would pick NUMA nodes when the container starts",
    Note.SHARED_MEMORY_NODES: "all NUMA nodes may be used",
    Note.OOM_KILLER_STAYS: "Kubernetes relies on the OOM killer",
    Note.NOT_ON_CGROUP_V2: "cgroup v2 has no such file",
    Note.KERNEL_MEMORY: "removed in Linux 5.16, Docker 23.0, podman 4.0",
    Note.WINDOWS_ONLY: "Windows only",
}


def flag_reason(flag: Flag) -> str:
    """Return what became of a flag and why."""
    parts = [because_of(flag.because) if flag.because is not None else _NOTES[flag.note]]
    if flag.also is not None:
        parts.append(_NOTES[flag.also])
    return "; ".join(parts)


_FATES = {FlagStatus.FOLLOWS: "left out: ", FlagStatus.NO_COUNTERPART: "no Kubernetes counterpart: "}


def flag_fate(status: str, value: str | None, reason: str) -> str:
    """Return what became of a flag, in a sentence."""
    return reason if value is not None else f"{_FATES.get(FlagStatus(status), '')}{reason}"


def _missing_clauses(missing: tuple[MissingLimit, ...]) -> Iterable[str]:
    by_place: dict[ResourcePlace, list[str]] = {}
    for lack in missing:
        by_place.setdefault(lack.place, []).append(lack.resource)
    for place, resources in by_place.items():
        yield f"{_named(place)} has no {' and no '.join(f'{resource} limit' for resource in resources)}"


def _unequal_clauses(unequal: tuple[Unequal, ...]) -> Iterable[str]:
    """Word the differences except missing limits, which ``_missing_clauses`` words."""
    for resource in unequal:
        for difference in resource.differences:
            if difference.limit:
                requests = f"{_named(difference.place)} requests {difference.request or 'no'} {resource.resource}"
                yield f"{requests} but its limit is {difference.limit}"


def _named(place: ResourcePlace) -> str:
    if place.is_pod:
        return "the pod"
    return f"init container {place.container}" if "initContainers" in place.path else place.container


def _replacing(change: Edit) -> str:
    return f"   # was {change.replaces}" if change.replaces is not None else ""
