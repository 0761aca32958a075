"""The kubelet's side of ``podqos autopsy`` in words: evictions, containers killed, what nodes went through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.message_reading import QuotedUsage
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.naming import stated_with
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_savings import EvictionSaving
from podqos.survival.autopsy.eviction_scene import AutopsyPod, EvictionReason, UsageSource
from podqos.survival.autopsy.eviction_traces import EvictionCause, NodeSign, SignKind, TraceSource
from podqos.survival.autopsy.savings import SavedBy
from podqos.survival.autopsy.terminations import EXIT_BY_SIGKILL, ContainerTermination, TerminationCause
from podqos.wording import counted, listed
from podqos.words import ranking
from podqos.words.autopsy_death import NEXT, NOT_RANKED, AutopsyDeath, Fact, RankedRow
from podqos.words.moments import moment

_MOST_NAMED = 5
_ID_CHARACTERS = 12
_COLUMNS = ("POD", "CLASS", "PRIORITY", "USED", "REQUEST", "FIGURE")
_NAMED = {
    True: "{by} evicted the pod {its} rule names",
    False: "{by} evicted another pod than {its} rule names",
    None: "cannot be verified",
}
"""Whether the victim is the one that the rule names."""
_PODS = f"give {stated_with('files')}, {stated_with('snapshot')} or {stated_with('context')}"
_WHY = {
    EvictionReason.FIRST: "it ranks first, no matter what the others used",
    EvictionReason.FIRST_IN_LOG: "it ranks first in the node's own log",
    EvictionReason.FIRST_AS_MEASURED: "it ranks first with the last measured usage of the others",
    EvictionReason.OWN_LIMIT: "it exceeded its own limit; other pods don't matter",
    EvictionReason.OTHER_IS_FIRST: "{rivals} ranks before it, no matter what it used, unless it was not on the "
    "node then",
    EvictionReason.IS_CRITICAL: "it is critical, and the kubelet never evicts critical pods",
    EvictionReason.USAGE_DECIDES: "it depends on the usage of {rivals} at that moment, which is unknown",
    EvictionReason.PODS_UNKNOWN: f"the other pods on the node are unknown ({_PODS})",
    EvictionReason.POD_UNKNOWN: f"its requests and priority are unknown ({_PODS})",
    EvictionReason.NO_MESSAGE: "the eviction message is missing",
    EvictionReason.SIGNAL_UNKNOWN: "the message doesn't say what ran short",
}
_HAPPENED = {
    EvictionCause.NODE_PRESSURE: "The node was low on {resource}: {pod} was evicted.",
    EvictionCause.LOCAL_STORAGE_LIMIT: "{pod} exceeded its own local storage limit and was evicted.",
    EvictionCause.NOT_ADMITTED: "{pod} was not admitted: the node had {conditions}.",
    EvictionCause.NO_ROOM: "{pod} was not admitted: its requests did not fit into what the node had left.",
    EvictionCause.CRITICAL_POD: "{pod} was evicted to admit a critical pod.",
    EvictionCause.NODE_SHUTDOWN: "{pod} was terminated: the node was shutting down.",
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN: "{pod} was not admitted: the node was shutting down.",
    EvictionCause.EVICTION_API: "{pod} was evicted on request (Eviction API, e.g. kubectl drain).",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "{pod} was preempted by the scheduler for a pod of higher priority.",
    EvictionCause.TAINT: "{pod} was deleted: it does not tolerate a taint of its node.",
    EvictionCause.POD_GC: "{pod} was deleted: its node is gone.",
    EvictionCause.NODE_LOST: "{pod} was deleted: its node stopped reporting.",
    EvictionCause.OTHER: "{pod} was evicted, but not by the kubelet's rules.",
    EvictionCause.UNKNOWN: "{pod} was evicted; the text does not say why.",
}
_CAUSES = {
    EvictionCause.NODE_PRESSURE: "node low on {resource}",
    EvictionCause.LOCAL_STORAGE_LIMIT: "its own storage limit",
    EvictionCause.NOT_ADMITTED: "node under pressure",
    EvictionCause.NO_ROOM: "no room on the node",
    EvictionCause.CRITICAL_POD: "a critical pod",
    EvictionCause.NODE_SHUTDOWN: "node shutdown",
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN: "node shutdown",
    EvictionCause.EVICTION_API: "eviction on request",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "preemption",
    EvictionCause.TAINT: "a taint",
    EvictionCause.POD_GC: "node gone",
    EvictionCause.NODE_LOST: "node not reporting",
    EvictionCause.OTHER: "something else",
    EvictionCause.UNKNOWN: "unknown",
}
_BY = {
    EvictionCause.EVICTION_API: "user",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "scheduler",
    EvictionCause.TAINT: "control plane",
    EvictionCause.POD_GC: "control plane",
    EvictionCause.NODE_LOST: "control plane",
    EvictionCause.OTHER: "another",
    EvictionCause.UNKNOWN: "unknown",
}
_LIMITS = {
    LocalStorageLimit.EMPTY_DIR: "emptyDir volume",
    LocalStorageLimit.POD: "ephemeral storage of the pod",
    LocalStorageLimit.CONTAINER: "ephemeral storage of container",
}
_FROM = {
    UsageSource.MESSAGE: "",
    UsageSource.MEASURED: "measured",
    UsageSource.ASSUMED: "assumed",
    UsageSource.JOURNAL: "",
}
_SOURCES = {
    TraceSource.EVENT: "the Event",
    TraceSource.STATUS: "the pod's status",
    TraceSource.KUBELET_LOG: "the kubelet's log",
    TraceSource.JOURNAL: "a podqos journal",
    TraceSource.MESSAGE: "the message alone",
}
_IN_BYTES = {MEMORY, EPHEMERAL_STORAGE}
_LEAST_BYTES = 1 << 20
_CHANGED = {
    SavedBy.USAGE: "use {more} less",
    SavedBy.REQUEST: "request {amount}{of} ({more} more)",
    SavedBy.LIMIT: "a limit of {amount}{of}",
    SavedBy.CLASS: "make it Guaranteed: limits equal to requests, {amount} of memory in total; CPU is throttled at "
    "its limit",
    SavedBy.PRIORITY: "priority {number}",
    SavedBy.THRESHOLD: "an eviction threshold of {amount} ({more} lower)",
    SavedBy.NODE_SIZE: "a node with {advised} more memory",
}
_ENDED = {
    TerminationCause.KERNEL: "OOM-killed: see above",
    TerminationCause.KERNEL_UNREPORTED: "OOM-killed, without a report in the logs",
    TerminationCause.KERNEL_OF_CHILD: "another process in it was OOM-killed, {so}",
    TerminationCause.USERSPACE_KILLER: "killed by {killer}, not by the kernel: see above",
    TerminationCause.EVICTION: "killed with its pod, which was evicted: see above",
    TerminationCause.PROBE: "failed its probe and was stopped by the kubelet{late}",
    TerminationCause.GRACE_PERIOD: "was stopped with SIGTERM but did not exit within its grace period",
    TerminationCause.NODE_LOST: "the kubelet lost track of it: the node restarted, or something else removed it",
    TerminationCause.SIGKILL: "killed with SIGKILL, sender unknown; {shown}",
    TerminationCause.SIGTERM: "stopped with SIGTERM, as for a rollout, a deletion or a failed probe; not an OOM kill",
    TerminationCause.CRASH: "crashed with {signal}; not an OOM kill",
    TerminationCause.EXIT: "exited by itself; not an OOM kill",
    TerminationCause.UNKNOWN: "keeps ending and is restarted; how it ended is not in the input",
}
_SIGNALS = {
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    11: "SIGSEGV",
    31: "SIGSYS",
}
_A_POD = "a pod"


def amount(number: int, resource: str) -> str:
    """Return an amount of a resource as text."""
    return ranking.amount(number, resource) if number else "0"


def of_eviction(eviction: PodEviction) -> AutopsyDeath:
    """Return an eviction in words."""
    conditions = listed(eviction.conditions) or "pressure"
    resource = eviction.resource or "something"
    ranked = eviction.ranking if len(eviction.ranking) > 1 else ()
    what = _HAPPENED[eviction.cause].format(pod=eviction.pod or _A_POD, resource=resource, conditions=conditions)
    if not eviction.pod and "does not say" not in what:
        what = f"{what.removesuffix('.')}; the text does not say which."
    if eviction.is_by_guard:
        what = f"{what.removesuffix('.')} by podqos guard."
    return AutopsyDeath(
        by="podqos guard" if eviction.is_by_guard else _BY.get(eviction.cause, "kubelet"),
        at=eviction.at,
        host=eviction.node,
        who=eviction.pod or _A_POD,
        what=what if eviction.pod else f"{what[:1].upper()}{what[1:]}",
        verdict=_verdict(eviction),
        follows_rule=eviction.follows_rule,
        cause=_CAUSES[eviction.cause].format(resource=resource),
        next=_next(eviction),
        saved_by=tuple(_saving(saving, eviction) for saving in eviction.saved_by if _can_be_set(saving, eviction)),
        facts=tuple(_facts(eviction)),
        columns=_COLUMNS,
        ranking=tuple(_row(autopsy_pod, eviction) for autopsy_pod in ranked),
        candidates=eviction.candidates,
        unit="pod",
        pod=eviction.pod,
        qos_class=str(eviction.qos_class or ""),
    )


def _verdict(eviction: PodEviction) -> str:
    if eviction.reason is EvictionReason.NOT_RANKED:
        return NOT_RANKED
    rivals = _named(eviction.rivals)
    by, its = ("podqos guard", "the kubelet's") if eviction.is_by_guard else ("the kubelet", "its")
    named = _NAMED[eviction.follows_rule].format(by=by, its=its)
    return f"{named}: {_WHY[eviction.reason].format(rivals=rivals)}"


def _next(eviction: PodEviction) -> str:
    if eviction.runner_up is not None:
        used = amount(eviction.runner_up.usage, eviction.resource)
        return f"{eviction.runner_up.pod} ({used} used, {_FROM[eviction.runner_up.usage_from] or 'reported'})"
    is_first = eviction.reason in {EvictionReason.FIRST, EvictionReason.FIRST_IN_LOG}
    return eviction.rivals[0] if eviction.rivals and is_first else ""


def _facts(eviction: PodEviction) -> Iterator[Fact]:
    if short := _short(eviction):
        yield Fact("short", short)
    if eviction.limit_kind is not None:
        limit = "" if eviction.limit_bytes is None else f": limit {amount(eviction.limit_bytes, 'memory')}"
        yield Fact("limit", f"{_LIMITS[eviction.limit_kind]} {eviction.limit_name}".rstrip() + limit)
    if eviction.containers:
        yield Fact("used", "; ".join(_used(container, eviction.resource) for container in eviction.containers))
    if eviction.qos_class is not None:
        yield Fact("pod", f"{eviction.qos_class}, priority {eviction.priority or 0}")
    if eviction.message and not eviction.containers and eviction.threshold is None:
        yield Fact("message", eviction.message)
    when = ", ".join(filter(None, (moment(eviction.at), eviction.node and f"node {eviction.node}")))
    source = listed([_SOURCES[source] for source in eviction.found_in])
    yield Fact("at", f"{when}, from {source}") if when else Fact("source", source)


def _used(each: QuotedUsage, resource: str) -> str:
    used, request = ("?" if number is None else amount(number, resource) for number in (each.used, each.request))
    return f"container {each.name}: {used}, request {request}"


def _short(eviction: PodEviction) -> str:
    if eviction.available is None or eviction.threshold is None:
        return ""
    left, threshold = (amount(number, eviction.resource) for number in (eviction.available, eviction.threshold))
    if eviction.resource in _IN_BYTES and {left[-2:], threshold[-2:]} == {"Mi", "Gi"}:
        left, threshold = (f"{number / 2**20:.0f}Mi" for number in (eviction.available, eviction.threshold))
    others = [signal for signal in eviction.possible_signals if signal != eviction.signal]
    other = f" (or {listed(others)}: the message does not say)" if others else ""
    return f"{eviction.signal or eviction.resource} {left}, threshold {threshold}{other}"


def _named(pods: Sequence[str]) -> str:
    more = [f"{len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
    return listed([*pods[:_MOST_NAMED], *more]) or "other pods"


def _can_be_set(saving: EvictionSaving, eviction: PodEviction) -> bool:
    """Whether an amount is one that somebody would set: not a few KiB."""
    if saving.change is SavedBy.NODE_SIZE:
        return saving.advised is not None
    is_bytes = eviction.resource in _IN_BYTES and saving.change in {SavedBy.USAGE, SavedBy.THRESHOLD}
    return not is_bytes or saving.more is None or saving.more >= _LEAST_BYTES


def _saving(each: EvictionSaving, eviction: PodEviction) -> str:
    more, changed = ("?" if each is None else amount(each, eviction.resource) for each in (each.more, each.amount))
    of = f" for {each.container}" if each.container else ""
    advised = "" if each.advised is None else amount(each.advised, eviction.resource)
    words = _CHANGED[each.change].format(more=more, amount=changed, of=of, number=each.amount, advised=advised)
    assumed = ", if its usage was as assumed" if each.is_assumed else ""
    return f"{words} ({each.instead} is evicted instead{assumed})" if each.instead else words


def _row(each: AutopsyPod, eviction: PodEviction) -> RankedRow:
    used = f"{'≥ ' if each.is_at_least else ''}{amount(each.usage, eviction.resource)}"
    marks = ["evicted"] * (each.pod == eviction.pod) + [each.spared] * bool(each.spared)
    return RankedRow(
        name=each.pod,
        cells=(
            str(each.qos_class or "–"),
            f"{each.priority:,}",
            used,
            amount(each.request, eviction.resource),
            _FROM[each.usage_from] or "–",
        ),
        mark=", ".join(marks),
        used=each.usage,
        standing=NEXT if eviction.runner_up is not None and each.pod == eviction.runner_up.pod else "",
    )


def ended_words(each: ContainerTermination) -> str:
    """Return how a container ended, without details."""
    survived = (
        "and the container is still running"
        if each.exit_code is None
        else f"and the container then exited with code {each.exit_code}"
    )
    signal = _SIGNALS.get((each.exit_code or 0) - 128, "a signal")
    late = ", but did not exit within its grace period" if each.exit_code == EXIT_BY_SIGKILL else ""
    shown = "its status does not say OOMKilled" if each.reason else "nothing here shows whether it was OOM-killed"
    words = _ENDED[each.cause].format(so=survived, signal=signal, late=late, killer=each.killer, shown=shown)
    return f"{container_words(each)}: {words}"


def termination_words(each: ContainerTermination) -> str:
    """Return how a container ended."""
    known = each.exit_code is not None
    status = f"{each.reason or 'exit'} {each.exit_code}" if known else each.reason
    whole = "killed as a group (memory.oom.group)" if each.is_group_kill else ""
    details = [status, each.at, whole, counted(each.restarts, "restart") if each.restarts else ""]
    told = ", ".join(filter(None, details))
    return ended_words(each) + (f" ({told})" if told else "")


def container_words(ended: ContainerTermination) -> str:
    """Return a container, with its pod where it has one."""
    name = ended.container or ended.container_id[:_ID_CHARACTERS]
    if not name:
        return f"a container of {ended.pod}" if ended.pod else "a container"
    return f"{ended.pod}, container {name}" if ended.pod else f"container {name}"


_SIGNS = {
    SignKind.SYSTEM_OOM: "{system}{victim}{report}",
    SignKind.OOM_KILLING: "the kernel OOM-killed {process}{inside}{report}",
    SignKind.UNIT_OOM_KILLED: "the kernel OOM-killed a process of {unit}{report}",
    SignKind.CONTAINER_OOM_KILLED: "the kernel OOM-killed a process in {container}{report}",
    SignKind.OOMD_KILLED_NOTHING: "systemd-oomd considered killing a cgroup; no kill is logged",
    SignKind.EARLYOOM_TRIGGERED: "earlyoom made the kernel's OOM killer act (SysRq f), because of its option -k",
    SignKind.INIT_OOM_KILLED: "the kernel OOM-killed the runtime's own process while it started a container: the "
    "memory limit is too low to start it",
    SignKind.THRESHOLD_MET: "an eviction threshold was crossed{of}",
    SignKind.PRESSURE_BEGAN: "{condition} began",
    SignKind.PRESSURE_ENDED: "{condition} ended",
    SignKind.RECLAIMED: "cleanup freed enough {resource}: no eviction",
    SignKind.NOTHING_TO_EVICT: "the node was low on {resource}, and no pod could be evicted",
    SignKind.CLEAN_UP_TIMED_OUT: "{pod} was evicted but not gone in time",
    SignKind.REBOOTED: "the node restarted",
    SignKind.NOT_READY: "{whose} became NotReady",
}


def oom_sign_words(sign: NodeSign) -> str:
    """Return what a node's event says about an OOM kill, as a sentence."""
    on = f" on {sign.node}" if sign.node and sign.kind is not SignKind.INIT_OOM_KILLED else ""
    return f"{_sign_words(sign)}{on}"


def sign_words(each: NodeSign) -> str:
    """Return what a node went through, when and where."""
    words = _sign_words(each)
    times = f" ({each.times} times)" if each.times > 1 else ""
    where = " ".join(filter(None, (moment(each.at), each.node)))
    return f"{where}: {words}{times}" if where else f"{words}{times}"


def _system_words(each: NodeSign) -> str:
    """Return what an event of the kubelet's proves: the kernel's report, where it is known, says what was full."""
    if each.kill is not None:
        return "the kubelet saw an OOM"
    if each.is_machines:
        return "the machine ran out of memory"
    return "the machine ran out of memory, or a cgroup did (kubelets before 1.21 report both as SystemOOM)"


def _sign_words(each: NodeSign) -> str:
    victim = f": {each.process} (pid {each.pid}) was killed" if each.pid is not None else ""
    return _SIGNS[each.kind].format(
        system=_system_words(each),
        victim=victim,
        process="a process" if each.pid is None else f"{each.process} (pid {each.pid})",
        resource=each.resource or "something",
        of=f": {each.resource}" if each.resource else "",
        condition=each.condition,
        pod=each.pod or _A_POD,
        whose=f"the node of {each.pod}" if each.pod else "the node",
        unit=each.unit or "a unit",
        inside=f" in {each.unit}" if each.unit else "",
        container=f"container {each.container_id[:_ID_CHARACTERS]}" if each.container_id else each.pod or "a container",
        report="" if each.kill is None else ": see above",
    )
