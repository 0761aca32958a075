"""Userspace kills and programs' own out-of-memory errors in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.survival.autopsy.program_failures import FailureKind, ProgramFailure
from podqos.survival.autopsy.userspace_kill import SIGKILL, KillBasis, Killer, UserspaceKill
from podqos.wording import counted, mebibytes
from podqos.words.autopsy import process, short_path
from podqos.words.autopsy_death import AutopsyDeath, Fact
from podqos.words.moments import moment

_ID_CHARACTERS = 12
NAMES = {
    Killer.SYSTEMD_OOMD: "systemd-oomd",
    Killer.EARLYOOM: "earlyoom",
    Killer.TALOS: "Talos' OOM handler",
}
_RULES = {
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_PRESSURE): "of the cgroups below the one under pressure, the one with the "
    "most reclaim activity (pgscan)",
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_AND_SWAP): "the cgroup that uses the most swap",
    (Killer.SYSTEMD_OOMD, KillBasis.SWAP): "the cgroup that uses the most swap",
    (Killer.EARLYOOM, KillBasis.LOW_MEMORY): "the process with the highest oom_score, unless its options prefer or "
    "avoid names",
    (Killer.TALOS, KillBasis.MEMORY_PRESSURE): "the highest-ranked cgroup of pods, BestEffort before Burstable "
    "(OOMConfig)",
}
_SETTINGS = {
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_PRESSURE): "ManagedOOMMemoryPressureLimit= of the unit, or "
    "DefaultMemoryPressureLimit= in oomd.conf",
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_AND_SWAP): "SwapUsedLimit= in oomd.conf",
    (Killer.SYSTEMD_OOMD, KillBasis.SWAP): "SwapUsedLimit= in oomd.conf",
    (Killer.SYSTEMD_OOMD, KillBasis.RULE): "the rule in oomd's configuration",
    (Killer.EARLYOOM, KillBasis.LOW_MEMORY): "earlyoom's options -m and -s",
    (Killer.TALOS, KillBasis.MEMORY_PRESSURE): "triggerExpression of the OOMConfig document",
}
_CAUSES = {
    KillBasis.MEMORY_PRESSURE: "memory pressure",
    KillBasis.MEMORY_AND_SWAP: "memory and swap used up",
    KillBasis.SWAP: "swap used up",
    KillBasis.LOW_MEMORY: "low memory",
    KillBasis.RULE: "a rule of its own",
    KillBasis.UNKNOWN: "",
}


def of_userspace_kill(kill: UserspaceKill) -> AutopsyDeath:
    """Return a kill in words."""
    name = NAMES[kill.killer]
    died = f"{name} {'killed' if kill.signal == SIGKILL else f'sent {kill.signal} to'} {victim_words(kill)}"
    because = because_words(kill)
    rule = _RULES.get((kill.killer, kill.basis))
    verdict = f"decided by {name}, not by the kernel's badness"
    return AutopsyDeath(
        by=kill.killer.value,
        at=kill.at,
        host=kill.host,
        who=_who(kill),
        what=f"Not the kernel: {died}{f', because {because}' if because else ''}.",
        verdict=verdict + (f": {rule}" if rule else ""),
        cause=_CAUSES[kill.basis],
        facts=tuple(_facts(kill)),
    )


def victim_words(kill: UserspaceKill) -> str:
    """Return who was killed."""
    if kill.victim:
        is_unit = kill.killer is Killer.SYSTEMD_OOMD
        who = short_path(kill.victim) if is_unit else process(kill.victim, None)
    elif kill.cgroup:
        who = f"everything in {short_path(kill.cgroup)}"
    else:
        who = f"a cgroup below {short_path(kill.pressure_of)}" if kill.pressure_of else "a cgroup"
    details = [] if kill.pid is None else [f"pid {kill.pid}"]
    if kill.rss_bytes is not None:
        details.append(f"{mebibytes(kill.rss_bytes)} used")
    if kill.processes is not None:
        details.append(f"{kill.processes:,} {'process' if kill.processes == 1 else 'processes'}")
    of = f" of {kill.pod}" if kill.pod else ""
    return f"{who}{_bracketed(details)}{of}"


def _bracketed(details: Iterable[str]) -> str:
    words = ", ".join(details)
    return f" ({words})" if words else ""


def because_words(kill: UserspaceKill) -> str:
    """Return what the killer went by, with its figures."""
    match kill.basis:
        case KillBasis.MEMORY_PRESSURE:
            return _pressure(kill)
        case KillBasis.MEMORY_AND_SWAP | KillBasis.SWAP:
            return _used(kill)
        case KillBasis.LOW_MEMORY:
            return _low(kill)
        case KillBasis.RULE:
            pressure = "" if kill.pressure_percent is None else f" (memory pressure {kill.pressure_percent:g} %)"
            return f"its rule {kill.rule!r} applied{pressure}"
        case KillBasis.UNKNOWN:
            return "" if kill.pressure_percent is None else f"memory pressure was {kill.pressure_percent:g} %"


def _pressure(kill: UserspaceKill) -> str:
    of = f" in {short_path(kill.pressure_of)}" if kill.pressure_of else ""
    lasting = f" for more than {kill.pressure_duration}" if kill.pressure_duration else ""
    limit = "its threshold" if kill.pressure_limit_percent is None else f"{kill.pressure_limit_percent:g} %"
    if kill.pressure_percent is None:
        return f"memory pressure{of} was above {limit}{lasting}"
    return f"memory pressure{of} was {kill.pressure_percent:g} %, above {limit}{lasting}"


def _used(kill: UserspaceKill) -> str:
    parts = []
    if kill.memory_used_bytes is not None and kill.memory_total_bytes:
        parts.append(f"{mebibytes(kill.memory_used_bytes)} of {mebibytes(kill.memory_total_bytes)} memory")
    if kill.swap_used_bytes is not None and kill.swap_total_bytes is not None:
        parts.append(f"{mebibytes(kill.swap_used_bytes)} of {mebibytes(kill.swap_total_bytes)} swap")
    return f"{' and '.join(parts)} were used, more than {kill.swap_limit_percent:g} %"


def _low(kill: UserspaceKill) -> str:
    available = "" if kill.memory_available_bytes is None else mebibytes(kill.memory_available_bytes)
    total = "" if not kill.memory_total_bytes else f" of {mebibytes(kill.memory_total_bytes)}"
    words = f"{available}{total} memory was available" if available else "too little memory was available"
    if kill.memory_limit_percent is not None:
        words += f", {kill.memory_limit_percent:g} % or less"
    if kill.swap_free_bytes is not None and kill.swap_total_bytes:
        words += f", and {mebibytes(kill.swap_free_bytes)} of {mebibytes(kill.swap_total_bytes)} swap was free"
    return words


def _who(kill: UserspaceKill) -> str:
    if kill.pod:
        return f"{kill.pod} ({kill.container})" if kill.container else kill.pod
    if kill.pod_uid:
        return f"pod {kill.pod_uid}"
    return process(kill.victim, None) if kill.victim else short_path(kill.cgroup) or "–"


def _facts(kill: UserspaceKill) -> Iterator[Fact]:
    if setting := _SETTINGS.get((kill.killer, kill.basis)):
        yield Fact("setting", setting)
    if pod := kill.pod or kill.pod_uid:
        container = kill.container or kill.container_id[:_ID_CHARACTERS]
        known = [f"container {container}"] * bool(container) + [str(kill.qos_class)] * (kill.qos_class is not None)
        yield Fact("pod", f"{pod} ({', '.join(known)})" if known else pod)
    if kill.cgroup and (kill.victim or len(short_path(kill.cgroup)) < len(kill.cgroup)):
        yield Fact("cgroup", kill.cgroup)
    if kill.reason:
        yield Fact("logged", kill.reason)
    when = (moment(kill.at), kill.host and f"host {kill.host}")
    if any(when):
        yield Fact("at", ", ".join(filter(None, when)))


_RAN_OUT = {
    FailureKind.JAVA_HEAP: (
        "the JVM",
        "its heap is full",
        "-Xmx or -XX:MaxRAMPercentage, within the container's limit",
    ),
    FailureKind.JAVA_GC_OVERHEAD: (
        "the JVM",
        "its heap is nearly full, and garbage collection takes almost all of its time",
        "-Xmx or -XX:MaxRAMPercentage, within the container's limit",
    ),
    FailureKind.JAVA_METASPACE: ("the JVM", "its classes do not fit", "-XX:MaxMetaspaceSize; the heap is not involved"),
    FailureKind.JAVA_DIRECT_MEMORY: (
        "the JVM",
        "its direct buffers do not fit",
        "-XX:MaxDirectMemorySize (default: as much as the heap), outside the heap",
    ),
    FailureKind.JAVA_ARRAY_SIZE: ("the JVM", "one array is longer than an array can be", "none; change the program"),
    FailureKind.JAVA_THREADS: (
        "the JVM",
        "it cannot create a thread",
        "podPidsLimit, pids.max and ulimit -u, or native memory; a larger heap makes it worse",
    ),
    FailureKind.JAVA_NATIVE: (
        "the JVM",
        "the system refused it memory",
        "a smaller heap (-Xmx), or a node with more memory",
    ),
    FailureKind.JAVA_OTHER: ("the JVM", "it ran out of its own memory", ""),
    FailureKind.NODE_HEAP: (
        "Node.js",
        "its heap is full",
        "--max-old-space-size (NODE_OPTIONS), within the container's limit",
    ),
    FailureKind.GO: (
        "the Go runtime",
        "the system refused it memory",
        "ulimit -v or vm.overcommit_memory=2 (at its memory limit, a container is OOM-killed instead)",
    ),
    FailureKind.PYTHON: (
        "Python",
        "the system refused it memory",
        "ulimit -v or vm.overcommit_memory (at its memory limit, a container is OOM-killed instead)",
    ),
}


def program(failure: ProgramFailure) -> str:
    """Return which program failed."""
    return _RAN_OUT[failure.kind][0]


def failure_headline(failures: tuple[ProgramFailure, ...]) -> str:
    """Return what programs' own errors amount to where nothing else is known."""
    first = failures[0]
    who, what, _ = _RAN_OUT[first.kind]
    times = f" ({first.times:,} times)" if first.times > 1 else ""
    more = f" And {counted(len(failures) - 1, 'other failure')}." if len(failures) > 1 else ""
    return f"Not the kernel: {who}, because {what}{times}.{more} No OOM kill in the log."


def failure_words(failure: ProgramFailure) -> str:
    """Return a program's failure."""
    who, what, setting = _RAN_OUT[failure.kind]
    details = []
    if failure.limit_bytes is not None:
        details.append(f"limit {mebibytes(failure.limit_bytes)}")
    if failure.wanted_bytes is not None:
        details.append(f"{mebibytes(failure.wanted_bytes)} wanted")
    if failure.times > 1:
        details.append(f"{failure.times:,} times")
    if failure.is_fatal:
        details.append("the program exited")
    where = " ".join(filter(None, (moment(failure.at), failure.host)))
    words = f"{who}: {what}{_bracketed(details)}"
    setting = f". Setting: {setting}" if setting else ""
    return f"{f'{where}: ' if where else ''}{words}{setting}. Logged: {failure.message}"
