"""What ran out, what was behind it and what would have saved the victim: parts of sentences, for every output."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.kernel.cgroup import ROOT
from podqos.kernel.oom_report import Constraint
from podqos.qos.cgroup_paths import CgroupLevel, is_runtime_container
from podqos.survival.autopsy.autopsy import OOMAutopsy
from podqos.survival.autopsy.causes import AutopsyCause, Cause
from podqos.survival.autopsy.savings import SavedBy, Saving
from podqos.survival.autopsy.shortage import Shortage, ShortageKind
from podqos.survival.counterfactual.pod_changes import HEADROOM_PERCENT
from podqos.wording import counted, listed, mebibytes

_NAME_CHARACTERS = 24
_PATH_CHARACTERS = 60
_KIB, _MIB = 1 << 10, 1 << 20
_WHOSE = {CgroupLevel.CONTAINER: "the container", CgroupLevel.POD: "the pod"}
_PARTS = {
    Cause.TMPFS: "tmpfs and shared memory hold {held}",
    Cause.KERNEL_MEMORY: "the kernel's own memory (slab, page tables, stacks) holds {held}",
    Cause.PAGE_CACHE: "page cache that could not be dropped holds {held}",
    Cause.HUGE_PAGES: "huge pages hold {held}",
    Cause.UNLISTED: "processes that are not in the table, such as ones that were ending, hold {held}",
    Cause.UNACCOUNTED: "{held} is not accounted for in the report: drivers or a balloon",
}
_CHANGED = {
    SavedBy.USAGE: "using at least {more} less",
    SavedBy.CLASS: "class Guaranteed: limits equal to requests, {amount} or more, with CPU throttled at its limit",
    SavedBy.PRIORITY: "priority class system-node-critical",
    SavedBy.THRESHOLD: "an eviction threshold of {amount} ({more} higher)",
}
_PART_NAMES = (
    ("anon_bytes", "anon"),
    ("file_bytes", "page cache"),
    ("shmem_bytes", "tmpfs and shared memory"),
    ("kernel_bytes", "kernel"),
)
_LEAST_PART = 100  # a hundredth of the limit: less is not worth a word
_OTHER_PART = 20


def is_of_container(kill: OOMAutopsy) -> bool:
    """Whether a container reached its limit, also one that no kubelet started."""
    is_beside = kill.scope in {CgroupLevel.SYSTEM, CgroupLevel.CGROUP} and is_runtime_container(kill.cgroup)
    return kill.scope is CgroupLevel.CONTAINER or is_beside


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
    """Return a cause with its figures; empty where it is no more than what ran out."""
    held = "" if cause.held_bytes is None else amount(cause.held_bytes)
    against = "" if cause.against_bytes is None else amount(cause.against_bytes) if cause.against_bytes else "nothing"
    who = process(cause.name, cause.pid)
    match cause.cause:
        case Cause.OWN_LIMIT:
            return _own_limit_words(kill, held, against)
        case Cause.OWN_USE:
            asked = _request(cause, against)
            most = f"{asked}, further above its request than any other" if asked else ", more than any other"
            return f"the victim's own usage: {_users(cause, who, held)}{most}"
        case Cause.NEIGHBOUR:
            return f"a neighbour: {_users(cause, who, held)}{_request(cause, against)}"
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
        case Cause.SWAPOFF:
            return f"{who} was turning off swap, and what was swapped out did not fit into memory"
        case Cause.KSM_OFF:
            return f"{who} was turning off KSM, and the pages that had been merged did not fit into memory"
        case Cause.ELSEWHERE:
            return elsewhere_words(kill.shortage) if kill.shortage is not None else ""
        case _:
            of = f" of {against}" if cause.cause is not Cause.UNACCOUNTED else ""
            volumes = f"; the pod's in-memory volumes: {listed(cause.volumes)}" if cause.volumes else ""
            return f"{_PARTS[cause.cause].format(held=held)}{of}{_unused(cause)}{volumes}"


def _unused(cause: AutopsyCause) -> str:
    """Return what of it is not in use, or not yet written."""
    if cause.cause is Cause.HUGE_PAGES:
        unused = f", {amount(cause.unused_bytes)} of it unused" if cause.unused_bytes else ""
        return f"{unused}; only programs that ask for huge pages can use them"
    if cause.cause is Cause.PAGE_CACHE and cause.unused_bytes:
        return f", {amount(cause.unused_bytes)} of it not yet written to disk"
    return ""


def _users(cause: AutopsyCause, who: str, held: str) -> str:
    """Return which processes use how much."""
    if cause.processes == 1:
        return f"{who} uses {held}"
    return f"{cause.processes:,} {process(cause.name, None)} processes use {held} together"


def _own_limit_words(kill: OOMAutopsy, held: str, limit: str) -> str:
    """Return what filled a limit, and which processes are the largest."""
    parts = [] if kill.shortage is None else list(_filling(kill.shortage))
    by = f": {' + '.join(parts)}" if parts else "" if held == limit else f": {held} in use"
    of = f" of {limit}" if limit else ""
    whose = "the container" if is_of_container(kill) else _WHOSE.get(kill.scope, "the cgroup")
    words = f"{whose} reached its own limit{of}{by}"
    inside = kill.inside
    if inside is None or not inside.largest:
        return words if of or by else ""  # the first line says so already
    largest = [
        f"{process(each.name, each.pid)} {amount(each.rss_bytes)}"
        + (f" (and {amount(each.swap_bytes)} in swap)" if each.swap_bytes else "")
        for each in inside.largest
    ]
    of = f" of {inside.processes:,}" if inside.processes > len(largest) else ""
    return f"{words}; largest {'process' if len(largest) == 1 else 'processes'}{of}: {listed(largest)}"


def _filling(shortage: Shortage) -> Iterator[str]:
    """Yield what the memory below a limit was, the largest part first."""
    parts = [(getattr(shortage.parts, name) or 0, words) for name, words in _PART_NAMES]
    if shortage.counter == "memory+swap":
        parts.append((shortage.swap_usage_bytes or 0, "swap"))
    for size, words in sorted(parts, key=lambda part: -part[0]):
        if size * _LEAST_PART >= shortage.limit_bytes > 0:
            yield f"{words} {amount(size)}"
    other = shortage.usage_bytes - sum(size for size, _ in parts)
    if any(size for size, _ in parts) and other * _OTHER_PART >= shortage.limit_bytes > 0:
        yield f"other {amount(other)}"


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
            block = amount(shortage.block_bytes or 0)
            return f"{amount(shortage.usage_bytes)} was free, but no contiguous {block} that the request could use"
        case ShortageKind.PAGE_FAULT:
            return "a page fault failed; the report does not say what was short"
        case ShortageKind.SYSRQ:
            return "no request for memory had failed"
        case ShortageKind.NODES:
            return f"{free} was free on NUMA nodes the process may not use"
        case ShortageKind.FREED if shortage.counter != "free":
            used, limit = amount(shortage.usage_bytes), amount(shortage.limit_bytes)
            return f"only {used} of {limit} was in use again when the report was written: a process had just ended"
        case ShortageKind.FREED:
            again = amount(shortage.usage_bytes)
            return f"{again} was free again when the report was written: a process had just ended"
        case ShortageKind.ZONES:
            return (
                f"{free} was free where the request cannot be served: in other zones, or kept for movable pages (CMA)"
            )
        case _:
            return ""


def shortage_words(kill: OOMAutopsy) -> str:
    """Return what ran out, and how far; empty where the report does not say."""
    where = "" if kill.cgroup == ROOT else short_path(kill.cgroup)
    found = kill.shortage
    if found is None:
        return where
    used, limit = amount(found.usage_bytes), amount(found.limit_bytes)
    missing = found.lacking_bytes or 0
    lacking = f", {amount(missing)} short" if missing >= _MIB else ""
    if found.counter == "free":
        among = (
            " where the process may allocate"
            if kill.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}
            else ""
        )
        if missing and found.usage_bytes > found.limit_bytes:
            # Every zone lacks something: what is free is kept, by more than the watermarks.
            return f"{used} free{among}, all of it in the kernel's reserves{lacking}"
        return f"{used} free{among}; the kernel keeps {limit}{lacking}"
    met = f", peak at the limit, reached {counted(found.failures, 'time')} so far" if found.failures else ""
    return f"{where}: {found.counter} {used} of {limit}{lacking}{met}".removeprefix(": ")


def short_path(path: str) -> str:
    """Return a cgroup's path as far as a line has room: its end tells cgroups apart, of ids their beginning."""
    if len(path) <= _PATH_CHARACTERS:
        return path
    last = path.rpartition("/")[2]
    room = _PATH_CHARACTERS - 2
    return f"…/{last}" if len(last) <= room else f"…/{last[: room // 2]}…{last[-(room // 4) :]}"


def savings_words(kill: OOMAutopsy) -> Iterator[str]:
    """Yield what would have saved the victim, as far as it says what to set."""
    return filter(None, (saving_words(saving, kill) for saving in kill.saved_by))


def saving_words(saving: Saving, kill: OOMAutopsy) -> str:
    """Return a change that would have saved the victim, and who would have died in its place.

    Empty where only the least is known, such as that a few pages more were enough: nobody can set that.
    """
    more = "" if saving.more_bytes is None else amount(saving.more_bytes)
    total = "" if saving.amount_bytes is None else amount(saving.amount_bytes)
    advised = "" if saving.advised_bytes is None else amount(saving.advised_bytes)
    if saving.change is SavedBy.REQUEST:
        known = f"a request of {advised or total}" if advised or total else "a higher request"
        as_class = f", which makes it {saving.qos_class}" if saving.qos_class is not None else ""
        enough = f"oom_score_adj {saving.oom_score_adj} or less"
        words = f"{known} ({enough}){as_class}"
    elif saving.change is SavedBy.HUGE_PAGES:
        words = f"setting aside {advised or 'nothing'} for huge pages: the rest was not in use"
    elif saving.change in {SavedBy.LIMIT, SavedBy.NODE_SIZE}:
        words = _larger_words(saving.change, advised, kill) if advised else ""
    else:
        words = _CHANGED[saving.change].format(more=more, amount=advised or total)
    if saving.instead is not None:
        return f"{words}; {process(saving.instead.name, saving.instead.pid)} would have died instead"
    return words


def _larger_words(change: SavedBy, advised: str, kill: OOMAutopsy) -> str:
    """Return a limit or a node that is large enough, with a margin."""
    is_cache = bool(kill.causes) and kill.causes[0].cause is Cause.PAGE_CACHE
    swapped = kill.shortage.swap_usage_bytes if kill.shortage is not None else None
    in_swap = " and in swap" if swapped and change is SavedBy.NODE_SIZE else ""
    above = f"({HEADROOM_PERCENT} % above what was in memory{in_swap})"
    unless = "as long as page cache does not fill that, too" if is_cache else "unless something leaks"
    if change is SavedBy.NODE_SIZE:
        if kill.scope is CgroupLevel.KUBEPODS:
            return f"{advised} of memory for pods {above}, by a larger node or smaller reservations, {unless}"
        return f"{advised} of memory in the machine {above}, {unless}"
    whose = f"a {kill.shortage.counter if kill.shortage is not None else 'memory'} limit"
    if kill.scope not in _WHOSE:
        return f"{whose} of {advised} {above}, {unless}"
    if kill.scope is CgroupLevel.POD:
        whose = f"{whose} of the pod (its containers' limits together)"
    return f"{whose} of {advised} {above}, {unless}. No request, QoS class or priority would have helped"
