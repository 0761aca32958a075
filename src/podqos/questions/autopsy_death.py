"""A death as ``podqos autopsy`` has it: who was killed by whom, why, by which figures, and what would have saved it.

A kill of the kernel's, an eviction, a kill by a program and the end of a container are all the same value. It is
examined first (``autopsy_oom``, ``autopsy_eviction``, ``autopsy_ended``), then what several sources tell of it is put
together (``autopsy``), and in the end it is put into words (``autopsy_words``), which every output shows.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.eviction.messages import QuotedUsage
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.signals import NodeCondition, RankKey, Signal
from podqos.kernel.oom import OldRule
from podqos.logs.report import Constraint
from podqos.logs.said import EvictionCause, TraceSource, UserspaceKill
from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import CgroupLevel


class Manner(StrEnum):
    """What kind of death it is."""

    OOM_KILL = "OOMKill"
    """The kernel was short of memory."""
    EVICTION = "Eviction"
    """A pod was removed from its node, or not let in."""
    PROGRAM = "ProgramKill"
    """A program killed before the kernel had to, such as systemd-oomd."""
    CONTAINER = "ContainerEnd"
    """A container was killed, by its status."""


class Reason(StrEnum):
    """Why a death follows from the rule or not, or why that cannot be told."""

    HIGHEST = "Highest"
    """The process that was chosen has the highest badness."""
    HIGHEST_WITH_SWAP = "HighestWithSwap"
    """It has if the machine has enough swap, which a cgroup's report does not say."""
    HIGHEST_BY_PRIVILEGE = "HighestByPrivilege"
    """It has if it was not privileged, which the table does not say: kernels before 4.17 favour CAP_SYS_ADMIN."""
    NONE_KILLABLE = "NoneKillable"
    """Every task is exempt, and none was killed."""
    ORIGIN = "Origin"
    """It turns swap or KSM off, which fills memory: the kernel kills such a process before all others."""
    ASKED = "Asked"
    """The process that asked for memory dies: vm.oom_kill_allocating_task is set."""
    OTHER_IS_HIGHER = "OtherIsHigher"
    DID_NOT_ASK = "DidNotAsk"
    """vm.oom_kill_allocating_task is set, and another process died than the one that asked."""
    IS_EXEMPT = "IsExempt"
    """It has an oom_score_adj of -1000 and is never chosen."""
    NO_TABLE = "NoTable"
    """The report has no task table (rate limited, vm.oom_dump_tasks=0, or cut)."""
    TABLE_IS_CUT = "TableIsCut"
    NOT_IN_TABLE = "NotInTable"
    TOTAL_UNKNOWN = "TotalUnknown"
    """The limit or the size of the machine is missing, and the scores differ."""
    NO_VICTIM = "NoVictim"
    """The report ends before the kill."""
    PANIC = "Panic"
    """vm.panic_on_oom is set: the kernel panics, and kills nothing."""
    NO_REPORT = "NoReport"
    """Something else tells of the kernel's kill; its report is not there."""

    FIRST = "First"
    """It is the first in the kubelet's ranking, whatever the other pods used."""
    FIRST_IN_LOG = "FirstInLog"
    """It is the first of those that the kubelet's log, or a journal of podqos, ranks and that may be evicted."""
    FIRST_AS_MEASURED = "FirstAsMeasured"
    """It is the first with what the other pods used at another moment."""
    OWN_LIMIT = "OwnLimit"
    """It exceeded a limit of its own; other pods do not matter."""
    OTHER_IS_FIRST = "OtherIsFirst"
    """Another pod comes first, whatever it used."""
    IS_CRITICAL = "IsCritical"
    USAGE_DECIDES = "UsageDecides"
    """What the other pods used decides, and that is not known."""
    PODS_UNKNOWN = "PodsUnknown"
    POD_UNKNOWN = "PodUnknown"
    """The pod's own requests and priority are not known."""
    SIGNAL_UNKNOWN = "SignalUnknown"
    """What the node was short of is not said."""
    NO_MESSAGE = "NoMessage"
    """Why it was evicted is not in the text."""
    NOT_RANKED = "NotRanked"
    """No ranking decides about it."""


class Cause(StrEnum):
    """What was behind an OOM."""

    OWN_LIMIT = "OwnLimit"
    """The container, or its pod, reached its own limit."""
    OWN_USE = "OwnUse"
    """The victim is the one that was furthest above its request."""
    NEIGHBOUR = "Neighbour"
    """Another process is above its request: further than the victim, or it asked for the memory and uses more. Where
    none is above its request: the largest."""
    SYSTEM_DAEMONS = "SystemDaemons"
    """What runs beside pods used more than the node reserves for it."""
    PAGE_CACHE = "PageCache"
    """Page cache that the kernel could not drop in time."""
    NOT_COUNTED = "PageCacheNotCounted"
    """The kubelet saw more than its threshold as free, because it does not count inactive page cache as used."""
    TMPFS = "Tmpfs"
    """tmpfs, volumes in memory and shared memory: no process of the ranking is charged for what none maps."""
    KERNEL_MEMORY = "KernelMemory"
    """Slab, page tables, stacks of the kernel."""
    THRESHOLD = "ThresholdTooLow"
    """The kubelet's threshold was crossed, and memory ran out before its next pass: the race."""
    SWAPOFF = "SwapOff"
    """The victim was turning off swap: what was there came back into memory."""
    KSM_OFF = "KSMOff"
    """The victim was turning off KSM: equal pages that had been merged became many again."""
    HUGE_PAGES = "HugePages"
    """Memory set aside for huge pages, used or not: nothing else can have it."""
    UNLISTED = "NotInTable"
    """Memory of processes that the table does not have: such as were ending, or had been killed before."""
    UNACCOUNTED = "Unaccounted"
    """Memory that no figure of the report accounts for: drivers, a balloon."""
    ELSEWHERE = "MemoryElsewhere"
    """There was memory, and it was of no use (``Shortage.kind`` says why)."""


class DeathCause(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something behind an OOM, with the figures that decide."""

    cause: Cause
    words: str = ""
    held_bytes: int | None = None
    """How much: what the process uses, or the part of memory holds; of PageCacheNotCounted and ThresholdTooLow what the
    kubelet saw as free."""
    against_bytes: int | None = None
    """What that is measured by: the limit or the machine, a request, a reservation, a threshold."""
    pid: int | None = None
    """Of OwnUse and Neighbour: the process, or the largest of those with its name."""
    name: str = ""
    request_thousandths: int | None = None
    """Of the memory of its node: what its oom_score_adj says it requests."""
    growth_bytes_per_second: int | None = None
    """Of ThresholdTooLow: memory was lost faster than this, or the kubelet would have been first."""
    is_default: bool = False
    """Whether the threshold is the kubelet's default, because its settings are not stated."""
    processes: int = 1
    """How many of that name hold it together: where no kubelet gives them requests, a program counts as one."""
    unused_bytes: int | None = None
    """Of HugePages: the part that nobody uses; of PageCache: the part that is still to be written."""
    volumes: tuple[str, ...] = ()
    """Of Tmpfs: the volumes in memory that the victim's pod has, where its manifest is known."""


class SavedBy(StrEnum):
    """What is changed, of the victim of an OOM or of an evicted pod."""

    REQUEST = "request"
    """It requests more memory, which lowers its oom_score_adj and what it uses beyond its request."""
    CLASS = "class"
    """Its pod is Guaranteed: limits equal to requests, in memory and CPU."""
    LIMIT = "limit"
    """The limit that was reached is higher."""
    PRIORITY = "priority"
    """Its pod has a higher one; to the kernel that counts only as system-node-critical, the score of Guaranteed."""
    USAGE = "usage"
    """The victim uses less."""
    THRESHOLD = "threshold"
    """Of an OOM a higher eviction threshold: the kubelet acts before the kernel has to. Of an eviction a lower one."""
    HUGE_PAGES = "hugePages"
    """Less memory is set aside for huge pages, of which some are not used."""
    NODE_SIZE = "nodeSize"
    """The node has more memory."""


class DeathSaving(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A change that saves the victim: the decision was made again with it. With one page less of it the victim dies."""

    change: SavedBy
    words: str = ""
    """Empty where only the least is known, such as that a few pages more were enough: nobody can set that."""
    more: int | None = None
    """How much more; of ``usage``, and of an eviction's ``threshold``, how much less. Bytes, inodes or processes."""
    amount: int | None = None
    """The least that saves it: the request, limit, threshold or machine, what the victim uses; the priority."""
    advised: int | None = None
    """The amount to set, with a margin; it was tried, too. Of an evicted pod's ``nodeSize`` how much more."""
    oom_score_adj: int | None = None
    """What the victim would have had, where that saves it."""
    qos_class: QOSClass | None = None
    """What its pod would have been, where that changes."""
    container: str = ""
    """Whose request or limit, where the pod has several; of an emptyDir's limit the volume."""
    instead: str = ""
    """The process or pod that would have died in its place. Empty: none."""
    is_assumed: bool = False
    """Whether it rests on what that pod used, which is assumed."""


class Process(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A process that was killed, or that stands out."""

    name: str
    pid: int | None = None
    """None where a journal names the container alone."""
    oom_score_adj: int | None = None
    badness: int | None = None
    rss_bytes: int | None = None
    swap_bytes: int | None = None


class Fact(Struct, frozen=True, gc=False):
    """Something known about a death, after its label."""

    label: str
    words: str


class UsageSource(StrEnum):
    """Where a figure is from."""

    MESSAGE = "message"
    """The eviction's own message: exact, for what it quotes."""
    MEASURED = "measured"
    """The kubelet, at another moment."""
    ASSUMED = "assumed"
    """Nothing is known; the request stands in."""
    JOURNAL = "journal"


class RankedRow(Struct, frozen=True, rename="camel", gc=False):
    """A candidate, process or pod; the first victim first."""

    name: str
    cells: tuple[str, ...] = ()
    """What else the columns say."""
    mark: str = ""
    """killed, chosen, evicted, why it was spared, or nothing."""
    used: int | None = None
    """What it used: bytes, inodes or processes; None for a process that is never chosen."""
    added: int = 0
    """What oom_score_adj adds to that, or takes off."""
    standing: str = ""
    """``next in line`` for who would have been the next victim, ``ranked higher`` for who ranks before the victim."""
    behind: str = ""
    """How far its score is behind that of the victim, as an amount of memory; empty where that is not known."""
    pid: int | None = None
    oom_score_adj: int | None = None
    badness: int | None = None
    """Pages; None for one that is exempt, or where the total is not known."""
    swap_bytes: int | None = None
    priority: int | None = None
    request: int | None = None
    over_request: bool | None = None
    usage_from: UsageSource | None = None
    is_at_least: bool = False
    """Whether it may have used more: a message leaves out containers within their requests."""
    qos_class: QOSClass | None = None
    before_next_by: RankKey | None = None
    log_place: int | None = None
    """Its place in the ranking of the kubelet's log."""


class MemoryPart(Struct, frozen=True, gc=False):
    """A part of a bar."""

    name: str
    bytes: int
    kind: str = ""
    """anon, file, shmem, rss, kernel, other or swap: what it is drawn as."""


class TreeRow(Struct, frozen=True, rename="camel", gc=False):
    """A bar of the picture of memory: what ran out, a pod, a container, a process; parents first, largest first."""

    depth: int
    kind: str
    """machine, cgroup, pod, container, process, others, or unknown."""
    name: str
    parts: tuple[MemoryPart, ...] = ()
    """What it holds, swap last; empty where the report does not say."""
    used_bytes: int | None = None
    limit_bytes: int | None = None
    """Its limit; of the machine its memory."""
    mark: str = ""
    """killed, or nothing."""


class ShortageKind(StrEnum):
    """Why there was no page to be had."""

    LIMIT = "limit"
    """A cgroup reached its limit."""
    WATERMARKS = "watermarks"
    """What could serve the request was down to what the kernel keeps."""
    FRAGMENTATION = "fragmentation"
    """There was memory, but not so many pages in one piece (order > 0)."""
    ZONES = "zones"
    """The zones that could serve the request were short; zones that could not had memory."""
    NODES = "nodes"
    """The memory nodes that a cpuset or a policy allows were short; others had memory."""
    PAGE_FAULT = "pageFault"
    """A page fault failed (gfp_mask=0): the report does not say what was short, maybe a cgroup's memory."""
    SYSRQ = "sysrq"
    """The kill was asked for by hand (sysrq f)."""
    FREED = "freed"
    """There was enough when the report was written: a process had ended, or had just been killed."""


class MemoryParts(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What the memory that ran out held; None where the report does not say."""

    anon_bytes: int | None = None
    """Of processes."""
    file_bytes: int | None = None
    """Page cache, without tmpfs."""
    inactive_file_bytes: int | None = None
    """The part of it that the kubelet counts as free."""
    dirty_bytes: int | None = None
    """The part of it that is written to disk first, or is being written."""
    shmem_bytes: int | None = None
    """tmpfs, volumes in memory and shared memory."""
    kernel_bytes: int | None = None
    """The kernel's own that it cannot give back: slab, page tables, stacks."""
    other_bytes: int | None = None
    """Of the machine: what no figure of the report accounts for, such as drivers or a balloon."""
    huge_page_bytes: int | None = None
    """Of the machine: set aside for huge pages, used or not."""
    free_huge_page_bytes: int | None = None
    """The part of it that nobody uses."""


class Shortage(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What ran out, and how far."""

    counter: str
    """memory, memory+swap or kmem of a cgroup; free for the machine."""
    usage_bytes: int
    """What is used of a limit; what is free of the machine."""
    limit_bytes: int
    """The limit; of the machine the kernel's reserve (the sum of its min watermarks)."""
    kind: ShortageKind
    lacking_bytes: int | None = None
    """By how much: what was asked for beyond what could be had. None where the report does not say."""
    failures: int | None = None
    """How often the limit was met before (failcnt); None for the machine."""
    free_elsewhere_bytes: int = 0
    """What was free where the request could not be served."""
    zones: tuple[str, ...] = ()
    """Of the machine: those that could serve the request."""
    block_bytes: int | None = None
    """With fragmentation: what was asked for in one piece."""
    swap_usage_bytes: int | None = None
    swap_limit_bytes: int | None = None
    """How much it may use; 0: it cannot swap. None where the report does not say, or nothing limits it."""
    parts: MemoryParts = MemoryParts()


class Call(StrEnum):
    """What called the OOM killer."""

    ALLOCATION = "allocation"
    """A request for memory that could not be served."""
    PAGE_FAULT = "pageFault"
    """A page fault that failed (gfp_mask=0): whose memory was short is not said."""
    SYSRQ = "sysrq"
    """Someone, by hand (sysrq f): nothing ran out."""


class Inside(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The processes of the one pod, container or service whose limit was reached: only they were candidates."""

    processes: int
    largest: tuple[Process, ...] = ()
    own_scores: tuple[Process, ...] = ()
    """Whose oom_score_adj is not what the kubelet gave the container: the process, or a parent, set it."""
    own_scores_left_out: int = 0
    container_oom_score_adj: int | None = None
    """What the kubelet gave it, where that is known."""
    survivors: int | None = None
    """Processes that live on, because memory.oom.group is not set; None where that is not known."""


class OOM(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The figures of one OOM."""

    scope: CgroupLevel
    """Which level ran out."""
    constraint: Constraint = Constraint.UNKNOWN
    cgroup: str = ""
    """The cgroup that ran out; / is the machine. Empty where nothing says which."""
    victim_cgroup: str = ""
    """Empty where the report does not say."""
    trigger: Process | None = None
    """The process that asked for memory; it need not be the one that dies."""
    order: int | None = None
    """It asked for 2^order pages at once."""
    call: Call = Call.ALLOCATION
    chosen: Process | None = None
    """The process that the kernel chose. A victim with another pid is its child, or died with its group."""
    total_pages: int | None = None
    """What a thousandth of is a point of oom_score_adj: the limit and swap, or RAM and swap."""
    page_bytes: int = 4096
    swap_pages_needed: int | None = None
    """With HighestWithSwap: how much."""
    runner_up: Process | None = None
    """The one that would have died in place of the chosen one."""
    margin_pages: int | None = None
    """How much the runner-up lacked."""
    shortage: Shortage | None = None
    inside: Inside | None = None
    old_rules: tuple[OldRule, ...] = ()
    """In what this kernel's rule differs from today's."""
    group: str = ""
    """The cgroup that died as one (memory.oom.group)."""
    kernel: str = ""

    @property
    def limit_bytes(self) -> int | None:
        """The container's memory limit, if that was reached."""
        is_own = self.scope is CgroupLevel.CONTAINER and self.shortage is not None
        return self.shortage.limit_bytes if is_own and self.shortage and self.shortage.counter == "memory" else None


class Eviction(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The figures of one eviction."""

    cause: EvictionCause
    found_in: tuple[TraceSource, ...] = ()
    message: str = ""
    """The kubelet's, as it was found."""
    is_by_guard: bool = False
    """Whether ``podqos guard`` evicted it in the kubelet's place, by the kubelet's rule."""
    resource: str = ""
    """memory, ephemeral-storage, inodes or pids."""
    signal: Signal | None = None
    """What the ranking is made for: the likeliest of ``possibleSignals``."""
    possible_signals: tuple[Signal, ...] = ()
    """A message names the resource, which several signals share."""
    threshold: int | None = None
    """Bytes, inodes or processes."""
    available: int | None = None
    containers: tuple[QuotedUsage, ...] = ()
    """Those above their requests, with what they used."""
    limit_kind: LocalStorageLimit | None = None
    limit_name: str = ""
    limit_bytes: int | None = None
    conditions: tuple[NodeCondition, ...] = ()
    """For which it was not admitted."""
    runner_up: RankedRow | None = None
    """The pod that would have been evicted in its place."""
    rivals: tuple[str, ...] = ()
    """With UsageDecides: the pods that may have come first; if first in the log: the next there, if it is unknown."""


class EndCause(StrEnum):
    """Who killed a container, or what killed something in it, as far as its status and what else is known say."""

    KERNEL = "Kernel"
    """The kernel, out of memory."""
    KERNEL_OF_CHILD = "KernelOfChild"
    """The kernel killed another process of the container; its first one survived that, or ended by itself after it."""
    PROGRAM = "Program"
    """A program killed it before the kernel had to."""
    EVICTION = "Eviction"
    """The kubelet ended it with its pod."""
    PROBE = "Probe"
    """It failed its liveness or startup probe, and the kubelet stopped it."""
    GRACE_PERIOD = "GracePeriod"
    """It was told to stop, and did not within its grace period."""
    NODE_LOST = "NodeLost"
    """The kubelet no longer found it: the node restarted, or it was removed behind the kubelet's back."""
    SIGKILL = "Sigkill"
    """It was killed, and nothing is left that says by whom."""
    SIGTERM = "Sigterm"
    """It was asked to stop, and did."""
    CRASH = "Crash"
    """Nobody killed it: a signal that a program brings upon itself, such as SIGSEGV."""
    EXIT = "Exit"
    """Nobody killed it: it exited by itself."""
    UNKNOWN = "Unknown"
    """It ends again and again, and nothing says how: all that a table shows of it is CrashLoopBackOff."""


class ContainerEnd(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How a container ended, by its status."""

    pod: str
    container: str
    cause: EndCause
    at: str = ""
    node: str = ""
    reason: str = ""
    """As its status has it: OOMKilled, Error, ContainerStatusUnknown."""
    exit_code: int | None = None
    """None: it runs, or the text does not say."""
    restarts: int = 0
    container_id: str = ""
    is_from_runtime: bool = False
    """Whether the container runtime shows it, and not the status of a pod."""
    is_previous: bool = False
    """Whether it runs again, or waits to."""
    memory_limit_bytes: int | None = None
    """The limit in force, by its status or else its manifest; null where there is none, or ``isLimitUnknown``."""
    stated_limit_bytes: int | None = None
    """The limit its manifest states, where that is not the one in force: a resize was not done."""
    is_limit_unknown: bool = False
    """Whether nothing says if it has a limit."""


class Death(Struct, frozen=True, rename="camel"):
    """What happened, why to this one, and what would have saved it."""

    manner: Manner
    by: str
    """kernel, kubelet, podqos guard, a program, or who else ended it."""
    what: str = ""
    """What happened, as a sentence."""
    who: str = ""
    """The pod, or the process where that is not known."""
    when: str = ""
    """As it was found: a date, or seconds since the machine started."""
    where: str = ""
    """The node, or the host of the log."""
    why: str = ""
    """Why this one, and whether the rule says so."""
    follows_rule: bool | None = None
    reason: Reason = Reason.NOT_RANKED
    cause: str = ""
    """The main cause in two or three words."""
    causes: tuple[DeathCause, ...] = ()
    """The main cause first; none where the report lacks the figures."""
    next: str = ""
    """Who was next."""
    saved_by: tuple[DeathSaving, ...] = ()
    """The smallest change first."""
    evidence: tuple[Fact, ...] = ()
    """What else is known."""
    rule: str = ""
    """How candidates are compared."""
    columns: tuple[str, ...] = ()
    """Of the ranking: the name's, and those of the cells."""
    ranking: tuple[RankedRow, ...] = ()
    """Without those that earlier OOMs in the log killed."""
    candidates: int = 0
    """How many there were."""
    unit: str = "task"
    tree: tuple[TreeRow, ...] = ()
    """Who held the memory at that moment."""
    victims: tuple[Process, ...] = ()
    pod: str = ""
    """``namespace/name``, where it is known."""
    container: str = ""
    pod_uid: str = ""
    container_id: str = ""
    qos_class: QOSClass | None = None
    priority: int | None = None
    times: int = 1
    """Of an event: how often."""
    oom: OOM | None = None
    eviction: Eviction | None = None
    program: UserspaceKill | None = None
    status: ContainerEnd | None = None
    """Of the container, where a status tells of it, too."""

    @property
    def is_ranked(self) -> bool:
        """Whether there is a ranking to show: of a journal only the evicted pod itself is known."""
        return len(self.ranking) > (self.eviction is not None)


NEXT = "next in line"
FIRST = "ranked higher"
MOST_BYTES = 1 << 62
"""Of what is added up over the tasks of a table: nothing in a log is trusted, and JSON's integers end at 64 bits."""
