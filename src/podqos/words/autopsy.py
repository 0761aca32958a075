"""What ran out, what was behind it and what would have saved the victim: parts of sentences, for every output."""

from __future__ import annotations

from podqos.kernel.cgroup import ROOT
from podqos.kernel.oom_report import Constraint
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.autopsy import OOMAutopsy
from podqos.survival.autopsy.causes import AutopsyCause, Cause
from podqos.survival.autopsy.savings import SavedBy, Saving
from podqos.survival.autopsy.shortage import Shortage, ShortageKind
from podqos.survival.counterfactual.pod_changes import HEADROOM_PERCENT, in_mebibytes, with_headroom
from podqos.wording import listed, mebibytes

_NAME_CHARACTERS = 24
_PATH_CHARACTERS = 60
_KIB, _MIB = 1 << 10, 1 << 20
_WHOSE = {CgroupLevel.CONTAINER: "the container", CgroupLevel.POD: "the pod"}
_PARTS = {
    Cause.TMPFS: "tmpfs and shared memory hold {held}",
    Cause.KERNEL_MEMORY: "the kernel's own memory (slab, page tables, stacks) holds {held}",
    Cause.PAGE_CACHE: "page cache that could not be dropped holds {held}",
    Cause.UNACCOUNTED: "{held} is not accounted for in the report: drivers, huge pages or a balloon",
}
_CHANGED = {
    SavedBy.USAGE: "using at least {more} less",
    SavedBy.LIMIT: "a limit of {offered}: the {more} that were missing, plus {percent} % headroom",
    SavedBy.NODE_SIZE: "a machine with at least {more} more memory",
    SavedBy.CLASS: "class Guaranteed: limits equal to requests, {amount} or more; CPU is throttled at its limit",
    SavedBy.PRIORITY: "priority class system-node-critical",
    SavedBy.THRESHOLD: "an eviction threshold of {amount} ({more} higher)",
}


def process(name: str, pid: int | None) -> str:
    """Return a process; its name as far as a line has room: the kernel's own have at most 15 characters."""
    if not name and pid is not None:
        return f"pid {pid}"
    known = name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…"
    return known if pid is None else f"{known} (pid {pid})"


def amount(count: int) -> str:
    """Return bytes for people, also a few of them."""
    return f"{-(-count // _KIB)}Ki" if 0 < count < _MIB else mebibytes(count)


def cause_words(cause: AutopsyCause, kill: OOMAutopsy) -> str:
    """Return a cause with its figures."""
    held = "" if cause.held_bytes is None else amount(cause.held_bytes)
    against = "" if cause.against_bytes is None else amount(cause.against_bytes) if cause.against_bytes else "nothing"
    who = process(cause.name, cause.pid)
    match cause.cause:
        case Cause.OWN_LIMIT:
            return f"{_WHOSE.get(kill.scope, 'the cgroup')} reached its own limit: {held} of {against}"
        case Cause.OWN_USE:
            asked = _request(cause, against)
            most = f"{asked}, further above its request than any other" if asked else ", more than any other"
            return f"the victim's own usage: {who} uses {held}{most}"
        case Cause.NEIGHBOUR:
            return f"a neighbour: {who} uses {held}{_request(cause, against)}"
        case Cause.SYSTEM_DAEMONS:
            known = f"{against} is reserved for them" if against else "their reservation is not known"
            return f"processes outside pods use {held}, and {known}"
        case Cause.NOT_COUNTED:
            return (
                f"the kubelet saw {held} free, above its threshold of {against}: it counts inactive page cache as free"
            )
        case Cause.THRESHOLD:
            growth = cause.growth_bytes_per_second
            faster = "" if growth is None else f" at more than {amount(growth)}/s"
            return f"memory ran out{faster}, before the kubelet's next check after its threshold of {against}"
        case Cause.ELSEWHERE:
            return elsewhere_words(kill.shortage) if kill.shortage is not None else ""
        case _:
            of = f" of {against}" if cause.cause is not Cause.UNACCOUNTED else ""
            volumes = f"; the pod's in-memory volumes: {listed(cause.volumes)}" if cause.volumes else ""
            return f"{_PARTS[cause.cause].format(held=held)}{of}{volumes}"


def _request(cause: AutopsyCause, against: str) -> str:
    if against:
        return f" and requests {against}"
    share = cause.request_thousandths
    return "" if share is None else f" and requests {share / 10:g} % of the node"


def elsewhere_words(shortage: Shortage) -> str:
    """Return why memory that was free was of no use."""
    free = amount(shortage.free_elsewhere_bytes)
    match shortage.kind:
        case ShortageKind.FRAGMENTATION:
            return f"{amount(shortage.usage_bytes)} was free, but not in one contiguous block"
        case ShortageKind.PAGE_FAULT:
            return "a page fault failed; the report does not say what was short"
        case ShortageKind.SYSRQ:
            return "someone triggered the OOM killer by hand (sysrq f)"
        case ShortageKind.NODES:
            return f"{free} was free on NUMA nodes the process may not use"
        case ShortageKind.ZONES:
            return f"{free} was free in zones that cannot serve the request"
        case _:
            return ""


def shortage_words(kill: OOMAutopsy) -> str:
    """Return what ran out, and how far; empty where the report does not say."""
    where = "" if kill.cgroup == ROOT else short_path(kill.cgroup)
    found = kill.shortage
    if found is None:
        return where
    used, limit = amount(found.usage_bytes), amount(found.limit_bytes)
    lacking = "" if found.lacking_bytes is None else f", {amount(found.lacking_bytes)} short"
    if found.counter == "free":
        among = (
            " where the process may allocate"
            if kill.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}
            else ""
        )
        return f"{used} free{among}; the kernel keeps {limit}{lacking}"
    return f"{where}: {found.counter} {used} of {limit}{lacking}".removeprefix(": ")


def short_path(path: str) -> str:
    """Return a cgroup's path as far as a line has room: its end tells cgroups apart, of ids their beginning."""
    if len(path) <= _PATH_CHARACTERS:
        return path
    last = path.rpartition("/")[2]
    room = _PATH_CHARACTERS - 2
    return f"…/{last}" if len(last) <= room else f"…/{last[: room // 2]}…{last[-(room // 4) :]}"


def _offered(least_bytes: int | None) -> str:
    """Return a limit that is more than just enough, in whole mebibytes."""
    return "" if least_bytes is None else str(in_mebibytes(with_headroom(least_bytes)))


def saving_words(saving: Saving, kill: OOMAutopsy) -> str:
    """Return a change that would have saved the victim, and who would have died in its place."""
    more = "" if saving.more_bytes is None else amount(saving.more_bytes)
    total = "" if saving.amount_bytes is None else amount(saving.amount_bytes)
    if saving.change is SavedBy.REQUEST:
        known = f"a request of {total} or more" if total else "a higher request"
        as_class = f", which makes it {saving.qos_class}" if saving.qos_class is not None else ""
        words = f"{known} (oom_score_adj {saving.oom_score_adj}){as_class}"
    elif saving.change is SavedBy.NODE_SIZE and kill.scope is CgroupLevel.KUBEPODS:
        words = f"at least {more} more memory for pods: a larger node, or smaller reservations"
    else:
        words = _CHANGED[saving.change].format(
            more=more, amount=total, offered=_offered(saving.amount_bytes), percent=HEADROOM_PERCENT
        )
    if saving.instead is not None:
        return f"{words}; {process(saving.instead.name, saving.instead.pid)} would have died instead"
    return words
