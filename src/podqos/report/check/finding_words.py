"""Findings in words: what was found, what follows for survival, what to write.

Every sentence renders data of the finding; nothing is decided here. There is one entry per kind of fact, in one table,
so that a new kind cannot be forgotten: a test holds the table against ``advice.facts``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podqos.advice.checks import facts as f
from podqos.advice.checks.finding import Choice, Consequence, EditValue, Effect, FieldEdit, Finding, Patch, Standing
from podqos.eviction.threshold_warnings import WarningKind
from podqos.model.pod import QOSClass
from podqos.report.admission.changes import listed
from podqos.report.text.words import mebibytes


def reason(finding: Finding) -> str:
    """Return what was found, without a full stop: ``envoy-sidecar has no cpu limit and no memory limit``."""
    return _WORDS[type(finding.facts)](finding.facts, finding.container or "")


def consequence(finding: Finding) -> str:
    """Return what follows for survival."""
    told = finding.consequence
    if told.effect is Effect.NODE:
        return _of_a_node(told)
    if told.effect is Effect.DISK:
        return _NO_DISK if told.disk_request == "0" else _DISK.format(request=told.disk_request)
    if told.effect is Effect.NOT_CREATED:
        return "no pod is created or placed: what dies is not replaced"
    if told.now is None:
        return ""
    compared = _compared(told)
    if not compared:
        return _standing(told.now, told.repaired)
    return f"{compared}; {_standing(told.now, told.repaired)}"


def patch(finding: Finding) -> str:
    """Return what to write, or what has to be chosen first."""
    found = finding.patch
    if found.is_complete:
        return "; ".join(edit_text(edit) for edit in found.edits)
    return _choice(found)


# ---- what was found ----------------------------------------------------------------------------------------------


def _nearly_guaranteed(facts: f.NearlyGuaranteed, _: str) -> str:
    missing: dict[str, list[str]] = {}
    clauses = []
    for spoiler in facts.spoilers:
        if spoiler.limit is None or spoiler.limit == "0":
            missing.setdefault(spoiler.container, []).append(f"no {spoiler.resource} limit")
        else:
            request = spoiler.request or "nothing"
            clauses.append(f"{spoiler.container} requests {request} of its {spoiler.resource} limit {spoiler.limit}")
    spoilt = listed([*(f"{name} has {' and '.join(limits)}" for name, limits in missing.items()), *clauses])
    return f"{spoilt}, while {listed(facts.in_order)} {_is(facts.in_order)} complete" if facts.in_order else spoilt


def _nothing_set(facts: f.NothingSet, _: str) -> str:
    asked = f"{listed(facts.containers)} {_ask(facts.containers)} for no cpu and no memory"
    if facts.kind == "DaemonSet":
        return f"{asked}, and {_DAEMON_COMES_BACK}"
    return f"{asked}, and {facts.serves} sends it traffic" if _is_service(facts.serves) else asked


def _is_service(serves: str | None) -> bool:
    return serves is not None and serves.startswith("Service ")


def _limit_far_above_request(facts: f.LimitFarAboveRequest, container: str) -> str:
    return (
        f"{container} may use {facts.limit} of memory, {facts.ratio:.1f}× the {facts.request} it requests "
        f"(at most {facts.allowed_ratio:g}×)"
    )


def _no_disk_limit(facts: f.NoDiskLimit, _: str) -> str:
    return f"{listed(facts.containers)} {_has(facts.containers)} no ephemeral-storage limit"


def _unbounded_volume(facts: f.UnboundedVolume, _: str) -> str:
    where = "in memory" if facts.in_memory else "on the node's disk"
    return f"the emptyDir {facts.volume} {where} has no size limit"


def _class_change(facts: f.ClassChange, _: str) -> str:
    classes = f"{facts.before} becomes {facts.after}"
    if not facts.sources:
        return classes
    who = listed(facts.sources)
    return f"{classes} by {who}, through {listed(facts.containers)}" if facts.containers else f"{classes} by {who}"


def _small_sidecar(facts: f.SmallSidecar, container: str) -> str:
    return (
        f"{container} has an oom_score_adj of {facts.oom_score_adj}, while {facts.main}, which it serves, "
        f"has {facts.main_oom_score_adj}"
    )


_DAEMON_COMES_BACK = (
    "the DaemonSet controller lets it tolerate memory-pressure: evicted, it comes back to the same node and is evicted "
    "again"
)


def _comes_back(facts: f.ComesBack, _: str) -> str:
    exceeding = listed(tuple(map(_may_exceed, facts.containers)))
    if facts.tolerated_by is None:
        return f"{exceeding}, and {_DAEMON_COMES_BACK}"
    return (
        f"{exceeding}, and {facts.tolerated_by} tolerates memory-pressure: evicted, it can come back to the same node "
        "and is evicted again"
    )


def _may_exceed(each: f.MayExceed) -> str:
    may = "all memory there is" if each.limit is None else f"{each.limit} of memory"
    beyond = "and requests none" if each.request is None else f"and requests {each.request}"
    return f"{each.container or 'the pod'} may use {may} {beyond}"


def _two_defaults(facts: f.TwoDefaults, _: str) -> str:
    offers = [f"{name} {amount}" for name, amount in zip(facts.limit_ranges, facts.amounts, strict=True)]
    return f"the default {facts.resource} {facts.side.removesuffix('s')} can be that of {' or '.join(offers)}"


def _over_quota(facts: f.OverQuota, _: str) -> str:
    return f"ResourceQuota {facts.quota} lets {facts.admitted} of {facts.pods} pods in: {facts.message}"


def _no_priority(facts: f.NoPriority, _: str) -> str:
    higher = "has one" if facts.higher_priority is None else f"has {facts.higher_priority:,}"
    return f"no priorityClassName, so priority {facts.priority:,}; {facts.higher} {higher}"


def _contradiction(facts: f.PriorityContradictsClass, _: str) -> str:
    own = f"{facts.qos_class} with priority {facts.priority:,}"
    if facts.other is None or facts.other_priority is None:
        return own
    return f"{own}, below {facts.other}, which is {facts.other_class} with {facts.other_priority:,}"


def _unknown_class(facts: f.UnknownPriorityClass, _: str) -> str:
    known = f"; there are {listed(facts.known)}" if facts.known else ""
    return f"there is no PriorityClass {facts.class_name}{known}"


def _memory_unwatched(facts: f.MemoryUnwatched, _: str) -> str:
    named = f"evictionHard names {listed(facts.named)}" if facts.named else "evictionHard is empty"
    return f"{named} and so drops the default for memory.available"


def _soft_without_grace(facts: f.SoftWithoutGrace, _: str) -> str:
    if facts.grace_period is None:
        return f"the soft threshold of {facts.signal} has no grace period: the kubelet does not start"
    return f"the soft threshold of {facts.signal} has a grace period of {facts.grace_period} and acts at once"


def _kernel_first(facts: f.KernelFirst, _: str) -> str:
    return (
        f"at {mebibytes(facts.growth_bytes_per_second)} a second the {mebibytes(facts.threshold_bytes)} below the "
        f"threshold are gone before the kubelet, which looks every {facts.interval_seconds} s, has seen it: "
        f"it is first in {facts.kubelet_first:.0%} of cases, with {mebibytes(facts.needed_bytes)} always"
    )


def _soft_not_covered(facts: f.SoftNotCovered, _: str) -> str:
    return (
        f"pods may request {mebibytes(facts.allocatable_bytes)} of {facts.resource}, but the soft threshold of "
        f"{mebibytes(facts.soft_bytes)} is met when they use {mebibytes(facts.usable_before_soft_bytes)}"
    )


def _swap(facts: f.SwapHidesPressure, _: str) -> str:
    behavior = facts.swap_behavior or "not set"
    return f"failSwapOn is false and swapBehavior {behavior}: memory.available does not fall while pods swap"


def _not_enforced(facts: f.PodsNotEnforced, _: str) -> str:
    named = f"names {listed(facts.enforced)} and not pods" if facts.enforced else "does not name pods"
    return f"enforceNodeAllocatable {named}"


def _no_effect(facts: f.NoEffect, _: str) -> str:
    why = {
        WarningKind.UNUSED_GRACE_PERIOD: "there is no soft threshold for it",
        WarningKind.CONTAINERFS_IGNORED: "the kubelet overwrites it with that of nodefs or imagefs",
        WarningKind.NEVER_MET: "nothing is ever less",
    }
    return f"{facts.setting} of {facts.signal} does nothing: {why[WarningKind(facts.kind)]}"


def _overcommitted(facts: f.Overcommitted, _: str) -> str:
    largest = f"; most by {listed(facts.largest)}" if facts.largest else ""
    return (
        f"limits add up to {facts.limits} of {facts.resource}, {facts.ratio:.2f}× the {facts.allocatable} allocatable "
        f"on {_nodes(facts.nodes)} (budget {facts.budget:g}×){largest}"
    )


def _overfull(facts: f.Overfull, _: str) -> str:
    return (
        f"{facts.requests} of {facts.resource} is requested, {facts.allocatable} allocatable on {_nodes(facts.nodes)}"
    )


_WORDS: dict[type[f.Fact], Callable[..., str]] = {
    f.NearlyGuaranteed: _nearly_guaranteed,
    f.NothingSet: _nothing_set,
    f.LimitFarAboveRequest: _limit_far_above_request,
    f.RequestFollowsLimit: lambda facts, container: (
        f"{container} states a memory limit of {facts.limit} and no request, which becomes the same"
    ),
    f.NoMemoryLimit: lambda facts, container: f"{container} requests {facts.request} of memory and has no limit",
    f.NoDiskLimit: _no_disk_limit,
    f.UnboundedVolume: _unbounded_volume,
    f.RequestAboveLimit: lambda facts, container: (
        f"{container} requests {facts.request} of {facts.resource}, more than its limit {facts.limit}"
    ),
    f.Refused: lambda facts, _: facts.message,
    f.ClassChange: _class_change,
    f.SmallSidecar: _small_sidecar,
    f.FractionalCPU: lambda facts, container: (
        f"{container} asks for {facts.cpu} cpu, which is no whole number of cores"
    ),
    f.ComesBack: _comes_back,
    f.ZeroAmount: lambda facts, container: f"{container} has a {facts.resource} {facts.side[:-1]} of zero",
    f.ImplausibleAmount: lambda facts, container: (
        f"{container} has a {facts.resource} {facts.side[:-1]} of {facts.amount}; {facts.meant} was probably meant"
    ),
    f.HiddenLimit: lambda facts, container: (
        f"LimitRange {facts.limit_range} gives {container}, which requests {facts.request}, "
        f"a memory limit of {facts.limit}"
    ),
    f.TwoDefaults: _two_defaults,
    f.Unstated: lambda facts, _: (
        f"ResourceQuota {facts.quota} demands {listed(facts.resources)} of {listed(facts.containers)}"
    ),
    f.OverQuota: _over_quota,
    f.NoPriority: _no_priority,
    f.PriorityContradictsClass: _contradiction,
    f.SystemPriority: lambda facts, _: f"{facts.class_name} is for the system's own pods",
    f.UnknownPriorityClass: _unknown_class,
    f.BudgetIsNoShield: lambda facts, _: (
        f"PodDisruptionBudget {facts.budget} covers it, and it is {facts.qos_class}: node pressure asks no budget"
    ),
    f.MemoryUnwatched: _memory_unwatched,
    f.SoftAfterHard: lambda facts, _: (
        f"the soft threshold of {facts.signal}, {facts.soft}, is not above the hard one, {facts.hard}"
    ),
    f.SoftWithoutGrace: _soft_without_grace,
    f.KernelFirst: _kernel_first,
    f.SoftNotCovered: _soft_not_covered,
    f.NothingReserved: lambda facts, _: f"neither kubeReserved nor systemReserved names {listed(facts.resources)}",
    f.SwapHidesPressure: _swap,
    f.PodsNotEnforced: _not_enforced,
    f.ReclaimsTooMuch: lambda facts, _: (
        f"after {facts.signal} falls below {facts.threshold} the kubelet evicts until "
        f"{facts.minimum_reclaim} more is free"
    ),
    f.NoEffect: _no_effect,
    f.GraceCut: lambda facts, _: (
        f"a soft eviction gives {facts.workload} {facts.given_seconds} s of the {facts.stated_seconds} s it states"
    ),
    f.KubeletRefuses: lambda facts, _: facts.message,
    f.OverReserved: lambda facts, _: (
        f"{facts.reserved} of {facts.resource} is held back from pods, and the node has {facts.capacity}"
    ),
    f.QOSCgroupsOff: lambda *_: "cgroupsPerQOS is false",
    f.Overcommitted: _overcommitted,
    f.Overfull: _overfull,
    f.LargerThanAnyNode: lambda facts, _: (
        f"the pod requests {facts.request} of {facts.resource}; the largest node, {facts.node}, has {facts.largest}"
    ),
}


# ---- what follows ------------------------------------------------------------------------------------------------


def _compared(told: Consequence) -> str:
    """Say who outlives the subject, if anybody does."""
    clauses = []
    if told.evicted_before is not None:
        clauses.append(f"the kubelet evicts it before {told.evicted_before}")
    if told.killed_before is not None:
        whom = "it" if told.killed_before == told.evicted_before else told.killed_before
        clauses.append(f"the kernel kills it before {whom}" if whom != "it" else "the kernel kills it before, too")
    if not clauses:
        return ""
    who = "because of this, " if told.repaired is not None else ""
    return f"{who}when memory runs short and all use what they may, {' and '.join(clauses)}"


def _standing(now: Standing, repaired: Standing | None) -> str:
    evicted = "never evicted" if now.is_spared else _EVICTED[now.qos_class]
    text = f"{now.qos_class}, oom_score_adj {now.oom_score_adj} ({now.container}), {evicted}"
    if repaired is None or repaired == now:
        return text
    after = f"{repaired.qos_class}, oom_score_adj {repaired.oom_score_adj}"
    return f"{text}; otherwise {after}"


_EVICTED = {
    QOSClass.BEST_EFFORT: "evicted as soon as memory runs short",
    QOSClass.BURSTABLE: "evicted once it uses more than it requests",
    QOSClass.GUARANTEED: "evicted last, as it cannot use more than it requests",
}


_NO_DISK = "when the disk runs full, it is among the first to be evicted, as it requests no ephemeral-storage"
_DISK = "when the disk runs full, evicted first once it uses more than the {request} of ephemeral-storage it requests"


def _of_a_node(told: Consequence) -> str:
    if told.first_killed is None:
        return "when memory runs short, the kernel chooses who dies, by size and oom_score_adj"
    if told.first_killed == told.first_evicted:
        return f"whoever acts first takes {told.first_killed}"
    return (
        f"when memory runs short and all use what they may, the kernel kills {told.first_killed} first, "
        f"where the kubelet would evict {told.first_evicted}"
    )


# ---- what to write -----------------------------------------------------------------------------------------------


def edit_text(edit: FieldEdit) -> str:
    """Return one field to write: ``path: value``."""
    if edit.value is None:
        return f"remove {edit.path}"
    was = f" (was {edit.replaces})" if edit.replaces else ""
    return f"{edit.path}: {_value(edit.value)}{was}"


def _value(value: EditValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {text}' for key, text in value.items())}}}"
    return str(value)


_CHOICES = {
    Choice.RESOURCES: "choose requests and limits that fit what the containers use",
    Choice.MEMORY_LIMIT: "choose a memory limit",
    Choice.EPHEMERAL_STORAGE_LIMIT: "choose an ephemeral-storage limit",
    Choice.VOLUME_SIZE_LIMIT: "choose a size limit",
    Choice.PRIORITY_CLASS: "choose a PriorityClass",
    Choice.SMALLER_LIMITS: "choose whose limits to lower, or add nodes",
    Choice.SMALLER_REQUESTS: "choose whose requests to lower, or add nodes",
    Choice.ONE_DEFAULT: "choose which LimitRange gives the default",
    Choice.RESERVATION: "choose what to reserve, from what the daemons use",
    Choice.SIDECAR_FORM: "make the pod Guaranteed, or the sidecar an init container with restartPolicy: Always",
    Choice.AMOUNT: "choose an amount that the API server takes",
    Choice.THRESHOLD: "choose a setting that the kubelet takes",
    Choice.INJECTOR_RESOURCES: "choose what the injected containers request and are limited to",
    Choice.QUOTA: "raise the quota, or ask for fewer or smaller pods",
}


def _choice(found: Patch) -> str:
    assert found.needs_choice is not None
    text = _CHOICES[found.needs_choice]
    if found.candidates:
        text = f"{text}: {' or '.join(found.candidates)}"
    return f"{text} ({', '.join(found.paths)})" if found.paths else text


# ---- words -------------------------------------------------------------------------------------------------------


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _ask(names: Sequence[str]) -> str:
    return "asks" if len(names) == 1 else "ask"


def _nodes(count: int) -> str:
    return "the node" if count == 1 else f"{count} nodes"
