"""What lines say besides the kernel's reports: evictions, what nodes went through, other killers, and what was read.

Nothing in them is trusted. Pods, nodes and events are Kubernetes' own values, as far as a text has them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct, field

from podqos.agent.journal import Entry
from podqos.agent.reasons import LocalStorageExceeded, UnderPressure
from podqos.eviction.messages import EvictionMessage
from podqos.model.event import Event
from podqos.model.node import Node
from podqos.model.pod import QOSClass
from podqos.model.pod_fate import FatedPod

SIGKILL = "SIGKILL"


class EvictionCause(StrEnum):
    """Why a pod had to go, or could not begin."""

    NODE_PRESSURE = "NodePressure"
    """The node was short of something; the kubelet ranked its pods, and this one was first."""
    LOCAL_STORAGE_LIMIT = "LocalStorageLimit"
    """The pod exceeded a limit of its own."""
    NOT_ADMITTED = "NotAdmitted"
    """It never ran: the node was short of something when it came."""
    NO_ROOM = "NoRoom"
    """It never ran: its requests did not fit into what the node had left when it came."""
    CRITICAL_POD = "CriticalPod"
    """The kubelet made room for a critical pod."""
    NODE_SHUTDOWN = "NodeShutdown"
    """The node was shutting down."""
    NOT_ADMITTED_AT_SHUTDOWN = "NotAdmittedAtShutdown"
    """It never ran: the node was shutting down when it came."""
    EVICTION_API = "EvictionAPI"
    """Someone asked for it: kubectl drain, an autoscaler."""
    PREEMPTED_BY_SCHEDULER = "PreemptedByScheduler"
    """The scheduler made room for a pod of higher priority."""
    TAINT = "Taint"
    """The node has a taint that the pod does not tolerate."""
    POD_GC = "PodGC"
    """Its node is gone."""
    NODE_LOST = "NodeLost"
    """Its node no longer reported, and it was deleted."""
    OTHER = "Other"
    """Something else calls it an eviction: the message says what."""
    UNKNOWN = "Unknown"
    """It was evicted, or deleted on purpose; the reason is not in the text."""


class TraceSource(StrEnum):
    """Where a trace was found."""

    EVENT = "event"
    STATUS = "status"
    KUBELET_LOG = "kubeletLog"
    JOURNAL = "journal"
    MESSAGE = "message"
    """The message by itself: it does not name the pod."""


class EvictionTrace(Struct, frozen=True, gc=False):
    """What one place says about the eviction of a pod."""

    source: TraceSource
    pod: str
    """namespace/name; the name alone, or nothing, where a text says no more."""
    cause: EvictionCause
    at: str = ""
    node: str = ""
    uid: str = ""
    text: str = ""
    """The message as it was found."""
    message: EvictionMessage | None = None
    signal: str = ""
    """Where it is said: a message names the resource alone."""
    ranked: tuple[str, ...] = ()
    """All pods in the order of eviction, as the log has them."""
    because: UnderPressure | LocalStorageExceeded | None = None
    """What the journal of a podqos node says, which decided itself."""
    is_by_guard: bool = False
    """Whether ``podqos guard`` evicted it, by the kubelet's rule."""


class SignKind(StrEnum):
    """What a node went through."""

    SYSTEM_OOM = "SystemOOM"
    """The kubelet saw the machine run out of memory; before 1.21 also a cgroup, on kernels since 5.0."""
    OOM_KILLING = "OOMKilling"
    """The node problem detector saw a kill."""
    UNIT_OOM_KILLED = "UnitOOMKilled"
    """systemd saw the kernel kill a process of a unit."""
    CONTAINER_OOM_KILLED = "ContainerOOMKilled"
    """The container runtime saw the kernel kill a process of a container."""
    OOMD_KILLED_NOTHING = "OomdKilledNothing"
    """systemd-oomd looked for a cgroup to kill, or failed to kill one."""
    EARLYOOM_TRIGGERED = "EarlyoomTriggered"
    """earlyoom made the kernel's OOM killer act (sysrq f): its option -k."""
    INIT_OOM_KILLED = "InitOOMKilled"
    """The kernel killed the runtime's own process before a container started: its limit is too low for that."""
    THRESHOLD_MET = "EvictionThresholdMet"
    PRESSURE_BEGAN = "PressureBegan"
    PRESSURE_ENDED = "PressureEnded"
    RECLAIMED = "Reclaimed"
    """Cleaning up was enough: no pod was evicted."""
    NOTHING_TO_EVICT = "NothingToEvict"
    CLEAN_UP_TIMED_OUT = "CleanUpTimedOut"
    """An evicted pod was not gone in time, and the next one was looked for."""
    REBOOTED = "Rebooted"
    NOT_READY = "NotReady"
    """Its kubelet no longer reported, or reported that it cannot run pods."""


OOM_SIGNS = (
    SignKind.SYSTEM_OOM,
    SignKind.OOM_KILLING,
    SignKind.UNIT_OOM_KILLED,
    SignKind.CONTAINER_OOM_KILLED,
    SignKind.INIT_OOM_KILLED,
)
"""What tells of a kill by the kernel."""


class NodeSign(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Something that a node went through."""

    kind: SignKind
    at: str = ""
    node: str = ""
    condition: str = ""
    """Of PressureBegan and PressureEnded: MemoryPressure, DiskPressure or PIDPressure."""
    resource: str = ""
    pid: int | None = None
    process: str = ""
    """Who was killed, where that is said."""
    kill: int | None = None
    """The kill that it is about: its place among ``kills``, from 0."""
    pod: str = ""
    times: int = 1
    unit: str = ""
    """systemd's, of UnitOOMKilled."""
    container_id: str = ""
    """Of ContainerOOMKilled, and of SystemOOM where that is said."""
    is_machines: bool = False
    """Of SystemOOM: whether the kubelet is known to be one that does not take a cgroup's OOM for the machine's."""


class Killer(StrEnum):
    """A program that kills before the kernel has to."""

    SYSTEMD_OOMD = "systemd-oomd"
    EARLYOOM = "earlyoom"
    TALOS = "talos"


class KillBasis(StrEnum):
    """What a userspace killer went by."""

    MEMORY_PRESSURE = "memoryPressure"
    """Tasks stalled for memory (PSI) longer than allowed."""
    MEMORY_AND_SWAP = "memoryAndSwap"
    """Both memory and swap were used beyond a share."""
    SWAP = "swap"
    LOW_MEMORY = "lowMemory"
    """Too little memory was available."""
    RULE = "rule"
    """A rule of its configuration, which has a name."""
    UNKNOWN = "unknown"
    """The lines at hand do not say."""


class UserspaceKill(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A kill by a program, with the figures it logged."""

    killer: Killer
    basis: KillBasis
    at: str = ""
    host: str = ""
    victim: str = ""
    """The process, or the unit; empty where only a cgroup is named."""
    pid: int | None = None
    cgroup: str = ""
    """The cgroup that was killed as a whole."""
    reason: str = ""
    """As logged."""
    signal: str = SIGKILL
    """The last one that was sent."""
    rule: str = ""
    """The killer's own name for what acted."""
    pressure_percent: float | None = None
    pressure_limit_percent: float | None = None
    pressure_of: str = ""
    """The cgroup whose pressure it was."""
    pressure_duration: str = ""
    """How long the pressure has to last, as logged."""
    memory_used_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_limit_percent: float | None = None
    """The share at which the killer acts: used for systemd-oomd, available for earlyoom."""
    swap_used_bytes: int | None = None
    swap_free_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_limit_percent: float | None = None
    """Likewise."""
    rss_bytes: int | None = None
    """What the victim used."""
    oom_score_adj: int | None = None
    processes: int | None = None
    """How many died with the cgroup, where that is logged."""
    pod_uid: str = ""
    container_id: str = ""
    qos_class: QOSClass | None = None
    pod: str = ""
    """namespace/name, where manifests or a snapshot know the uid."""
    container: str = ""


class FailureKind(StrEnum):
    """What a program ran out of."""

    JAVA_HEAP = "JavaHeap"
    JAVA_GC_OVERHEAD = "JavaGCOverhead"
    JAVA_METASPACE = "JavaMetaspace"
    JAVA_DIRECT_MEMORY = "JavaDirectMemory"
    JAVA_ARRAY_SIZE = "JavaArraySize"
    """One array longer than the JVM can have: no amount of memory helps."""
    JAVA_THREADS = "JavaThreads"
    JAVA_NATIVE = "JavaNative"
    """The JVM asked the system for memory, and did not get it."""
    JAVA_OTHER = "JavaOther"
    NODE_HEAP = "NodeHeap"
    GO = "Go"
    PYTHON = "Python"


class ProgramFailure(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A program's own out-of-memory error, once for all of its kind on a host."""

    kind: FailureKind
    message: str
    """As logged the first time."""
    at: str = ""
    """When first; empty where the line does not say."""
    last_at: str = ""
    host: str = ""
    times: int = 1
    is_fatal: bool = False
    """Whether the program says that it ended because of it."""
    limit_bytes: int | None = None
    """Its own limit, where it says so."""
    wanted_bytes: int | None = None
    """What it asked for, where it says so."""


class PastedPod(FatedPod, frozen=True, gc=False, rename="camel"):
    """A pod as far as a text tells."""

    is_whole: bool = False
    """Whether its containers with their requests and its class are known: only then it can be ranked."""
    is_terminating: bool = False
    """Whether it is being deleted; the text does not say since when."""
    is_from_runtime: bool = False
    """Whether a container runtime shows it (``docker inspect``): it has one container, and perhaps no name."""

    @property
    def key(self) -> str:
        """``namespace/name``; the name alone where the text has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    @property
    def is_being_deleted(self) -> bool:
        """Whether something deleted it."""
        return self.is_terminating


class Mention(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line that speaks of a kill, in words that prove none or that were not understood."""

    line: int
    """Its number in its log, from 1."""
    word: str
    """What it says, such as OOMKilled."""
    text: str
    """What is around that word."""
    log: int = 0
    """In which of several logs, from 0."""


class WhatWasRead(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How much was read, by kind."""

    lines: int = 0
    """Of logs, and of files with objects."""
    bytes: int = 0
    kernel_messages: int = 0
    kubelet_messages: int = 0
    journal_entries: int = 0
    """Of a podqos node, or of a simulation."""
    is_sampled: bool = False
    """A log is large: messages are counted at its beginning alone."""
    unread_bytes: int = 0
    """What was not read closely, because too many lines speak of kills and tell of none."""
    is_report_limit: bool = False
    """Whether there are more reports than are read."""
    is_broken: bool = False
    """Whether lines of a report are broken where nothing tells how to join them."""
    oom_reports: int = 0
    pods: int = 0
    workloads: int = 0
    """Deployments and the like, which have no status of containers."""
    nodes: int = 0
    events: int = 0
    containers: int = 0
    """As container runtimes show them, such as ``docker inspect``."""
    program_messages: int = 0
    """Of other killers than the kernel, and of programs that ran out of their own memory."""
    is_binary: bool = False
    """Nothing in it is text."""
    logs: tuple[str, ...] = ()
    """Names of files; - is standard input."""
    files: tuple[str, ...] = ()
    """With pods, nodes or events."""
    snapshot: str = ""
    cluster: str = ""
    """The name of a live cluster."""
    context: str = ""
    """The one that was asked for, where it is not the current one."""
    pod: str = ""
    """namespace/name, if there is only one."""
    node: str = ""
    """The node of the pods, or the host of the log, if there is only one."""
    lacks_journal: bool = False
    """journalctl said that it has nothing, a shell that there is no journalctl, or the log is of a system without."""
    is_talos: bool = False
    """The log is one of Talos, which nobody can log in to."""
    debug_pods: tuple[str, ...] = ()
    """Pods that ``kubectl debug`` says it made to read a log."""
    selector: str = ""
    """Of a Deployment or the like that kubectl describes: the options that find its pods."""
    mention: Mention | None = None
    """The first line that speaks of a kill, the plainest words first; of a large log near its beginning."""

    @property
    def is_given(self) -> bool:
        """Whether there was anything that could be read."""
        return bool(self.bytes or self.logs or self.files or self.snapshot or self.cluster)

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to read."""
        return not (self.bytes or self.pods or self.nodes or self.events or self.workloads or self.cluster)

    @property
    def is_of_kubernetes(self) -> bool:
        """Whether anything says that the logs are those of nodes."""
        objects = self.pods or self.nodes or self.events or self.workloads
        return bool(objects or self.kubelet_messages or self.cluster or self.snapshot or self.debug_pods)

    @property
    def is_recognised(self) -> bool:
        """Whether anything in it was a log of the kernel or the kubelet, or an object."""
        return any(
            (
                self.kernel_messages,
                self.kubelet_messages,
                self.journal_entries,
                self.oom_reports,
                self.pods,
                self.workloads,
                self.nodes,
                self.events,
                self.containers,
                self.selector,
                self.program_messages,
                self.cluster,
            )
        )


class Said(Struct):
    """What logs and texts say, besides the kernel's OOM reports."""

    traces: list[EvictionTrace] = field(default_factory=list)
    signs: list[NodeSign] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)
    """Entries of podqos' own."""
    kills: list[UserspaceKill] = field(default_factory=list)
    failures: list[ProgramFailure] = field(default_factory=list)
    pods: list[PastedPod] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    """Of evictions whose pod is not in the text."""
    read: WhatWasRead = WhatWasRead()


_SECONDS = re.compile(r"\d{9,11}(?:\.\d{1,9})?", re.ASCII)
_DATED = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)
_YEARLESS = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)", re.ASCII)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4096)
def seconds_of(at: str, near: float | None = None) -> float | None:
    """Return a time as seconds since 1970; None where it does not say that much.

    Logs leave out the year: it is that of a time that is ``near``, where one is known.
    """
    if _SECONDS.fullmatch(at):
        return float(at)
    dated = _DATED.fullmatch(at)
    if dated is not None and dated[1] in MONTHS:
        at = f"{dated[4]}-{MONTHS.index(dated[1]) + 1:02}-{int(dated[2]):02}T{dated[3]}"
    found_day = _YEARLESS.match(at)
    if found_day is not None and near is not None and found_day[1] in MONTHS:
        year = datetime.fromtimestamp(near, UTC).year
        at = f"{year:04}-{MONTHS.index(found_day[1]) + 1:02}-{int(found_day[2]):02}T{found_day[3]}"
    try:
        found = datetime.fromisoformat(
            at[:40].replace(",", ".").replace(" +", "+").replace(" -", "-")
        )  # Go has a space
    except ValueError:
        return None
    if found.year <= 1:
        return None  # Go's for none at all
    try:
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


def seconds_apart(one: str, other: str) -> float | None:
    """Return how much later the second of two moments is; None where that is not known."""
    second = seconds_of(other)
    if second is None:
        second = seconds_of(other, 0.0)  # without a year: that of the other one, which has none either
    if second is None:
        return None
    first = seconds_of(one, second)
    return None if first is None else second - first
