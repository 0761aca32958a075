"""Other killers than the kernel, its kills as others noticed them, and programs whose own heap is full.

systemd-oomd, earlyoom and Talos act before memory runs out, and log one or two lines per kill. systemd, containerd,
CRI-O, the kubelet and runc notice what the kernel killed. The JVM, Node.js, Go and Python say that their heap is full:
then nobody was killed. Only a line of a log counts: prose about such an error is none.

Sources: systemd v247 to v261 src/oom/oomd-{manager,util}.c, src/core/{unit,cgroup,service}.c; earlyoom v1.0 to v1.9
{kill,main}.c; Talos v1.12 internal/app/machined/pkg/controllers/runtime/oom.go; containerd
internal/cri/server/events.go; Kubernetes pkg/kubelet/oom/oom_watcher_linux.go; moby daemon/container/state.go;
CRI api.proto (ContainerStatus).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from podqos.logs.carriers import Line
from podqos.logs.said import (
    SIGKILL,
    FailureKind,
    KillBasis,
    Killer,
    NodeSign,
    PastedPod,
    ProgramFailure,
    Said,
    SignKind,
    UserspaceKill,
    seconds_apart,
)
from podqos.model.pod import Container, ObjectMeta, PodSpec
from podqos.model.pod_fate import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    FullPodStatus,
)
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceRequirements
from podqos.qos.cgroup_paths import CgroupLevel, place_of

MOST_KILLS = 10_000
_MOST_FAILURES = 1_000
_MOST_HOSTS = 256
_MOST_TEXT = 400
_NEAR_SECONDS = 60.0
_MIB = 1 << 20

_DURATION = r"[\dhminsu. ]{1,24}?"
_PRESSURE = re.compile(
    r"(?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to memory pressure for (/\S{0,4000}) being "
    rf"(\d{{1,3}}\.\d\d)% > (\d{{1,3}}\.\d\d)% for > ({_DURATION}) with reclaim activity"
)
_USED = re.compile(
    r"(?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to "
    r"(?:memory used \((\d{1,19})\) / total \((\d{1,19})\) and )?"
    r"swap used \((\d{1,19})\) / total \((\d{1,19})\) being more than (\d{1,3}(?:\.\d{1,2})?)%"
)
_CUT = re.compile(
    r"\]: (?:Killed|Marked) (/\S{0,4000}) (?:for killing )?due to (memory pressure|memory|swap)\b"
    r"(?: for (/\S{0,4000}) )?"
)
"""A line whose end is missing, as where a pager cut it."""
_OLD_PRESSURE = re.compile(
    r"Memory pressure for (/\S{0,4000}) is greater than (\d{1,3}) for more than (\d{1,6}) seconds and there was reclaim"
)
_OLD_SWAP = re.compile(r"Swap used \((\d{1,19})\) / total \((\d{1,19})\) is more than (\d{1,3})%")
_RULE = re.compile(
    r"Rule '([^']{1,200})' conditions met for cgroup (/[^\s,]{0,4000})(?: \(lasting ([^)]{1,40})\))?"
    r", taking action kill"
)
_CONSIDERED = re.compile(r"Considered \d{1,10} cgroups for killing|Failed to kill (?:any )?cgroup\(s\)")
_BY_SYSTEMD = re.compile(r"(\S{1,256}): systemd-oomd killed (\d{1,10}|some) process\(es\) in this unit")

_EARLYOOM_KILL = re.compile(
    r"sending (?P<signal>SIGTERM|SIGKILL) to process (?P<pid>\d{1,10}) (?:uid \d{1,10} )?\"(?P<name>.{0,64}?)\": "
    r"(?:badness|oom_score) -?\d{1,7},(?: oom_score_adj (?P<adj>-?\d{1,5}),)? VmRSS (?P<rss>\d{1,12}) MiB"
)
_AVAILABLE = re.compile(
    r"mem avail: {0,8}(\d{1,9}) of {0,8}(\d{1,9}) MiB \( {0,3}[\d.]{1,6} ?%\), "
    r"swap free: {0,8}(\d{1,9}) of {0,8}(\d{1,9}) MiB"
)
_LOW = re.compile(
    r"[Ll]ow [Mm]emory! [Aa]t or below (?:SIG(?:TERM|KILL)|sig(?:term|kill)) limits:? "
    r"\(?mem:? {1,3}(\d{1,3}(?:\.\d{1,2})?) ?%, swap:? {1,3}(\d{1,3}(?:\.\d{1,2})?) ?%"
)
_TALOS = re.compile(
    r"Sending SIGKILL to cgroup\b.{0,400}?\"cgroup\": ?\"(/[^\"]{1,4000})\"|Sending SIGKILL to cgroup (/\S{1,4000})"
)
_TALOS_VICTIMS = re.compile(r"victim processes:.{0,400}?\"processes\": ?(?:\[([^\]]{0,8000})\]|null)")

_UNIT = re.compile(
    r"(\S{1,256}): (?:A process of this unit has been killed by the OOM killer"
    r"|The kernel OOM killer killed some processes in this unit|Failed with result '?oom-kill\b)"
)
_UNIT_NAME = re.compile(r"[^\s.]\.(?:service|scope|slice|socket|mount|swap)$")
_SCOPE = re.compile(r"[a-z-]{1,20}-([0-9a-f]{64})\.scope$")
_CONTAINER = re.compile(
    r"(?i:TaskOOM event) &?(?:TaskOOM)?\{?(?:ContainerID|container_id): ?\\{0,2}\"?([0-9a-f]{12,64})"
    r"|/tasks/oom.{0,80}?\"?container_id\"?: ?\"([0-9a-f]{12,64})\"|conmon ([0-9a-f]{12,64}) <\w{1,10}>: OOM "
)
_INIT = re.compile(r"container init was OOM-killed \(memory limit too low\?\)")
_KUBELET = re.compile(r"Got sys oom event")
_PID = re.compile(r"\bPid\"?: ?(\d{1,10})")
_NAME = re.compile(r"\bProcessName\"?: ?\"?(.{1,64}?)\"?(?:,| TimeOfDeath|\})")
_DIED = re.compile(r"\bTimeOfDeath\"?: ?\"?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_VICTIM = re.compile(r"\bVictimContainerName\"?: ?\"?(/[^\s\",}]{0,4000})")
_CADVISOR = re.compile(r"Created an OOM event in container \\?\"(/[^\"\\]{0,4000})\\?\"")
_BY_KERNEL = re.compile(r"Invoking oom killer: done|successfully triggered kernel OOM killer")

# The line begins with the words, or what loggers write before a message ends just before them.
_BEFORE = r"^(?P<before>[\s#>|]{0,40}|[^\n]{1,600}?(?:[:>|\])-]|[=:]\s?\"|[A-Z]{4,8}|std(?:out|err) F)\s{0,8})"
_END = r"[\s\"'}\])]{0,8}$"
"""So much follows at most; prose goes on with words."""
_LOGGED = re.compile(
    r"(?:<\d{1,3}>|[\[({\s\"']{0,4}(?:time=\"?)?)(?:\d{2,4}[-/:]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:|level=|[FEWI]\d{4} "
    r"|(?:ERROR|FATAL|SEVERE|CRITICAL|WARN|INFO)\b|\d{1,12}\.\d{3})"
)
"""A time or a level, as a line of a log begins with: words at the end of a sentence are preceded by prose."""
_JAVA = (
    r"(?:Exception in thread \"[^\"\n]{0,200}\" |Caused by: |(?:Terminating|Aborting) due to )?"
    r"java\.lang\.OutOfMemoryError"
)
_FAILURES = tuple(
    (kind, needs, re.compile(f"{_BEFORE}(?P<said>{pattern}){_END}"), is_fatal)
    for kind, needs, pattern, is_fatal in (
        (
            FailureKind.JAVA_THREADS,
            "native thread",
            _JAVA + r": [Uu]nable to create (?:new )?native thread[^\n]{0,120}",
            False,
        ),
        (FailureKind.JAVA_GC_OVERHEAD, "GC overhead", _JAVA + ": GC overhead limit exceeded", False),
        (FailureKind.JAVA_METASPACE, "pace", _JAVA + ": (?:Metaspace|Compressed class space|PermGen space)", False),
        (
            FailureKind.JAVA_DIRECT_MEMORY,
            "irect buffer memory",
            _JAVA + r": (?:Direct buffer memory|Cannot reserve (?P<wanted>\d{1,15}) bytes of direct buffer memory"
            r"(?: \(allocated: \d{1,15}, limit: (?P<limit>\d{1,15})\))?)",
            False,
        ),
        (
            FailureKind.JAVA_ARRAY_SIZE,
            "array ",
            _JAVA + r": (?:Requested array size exceeds VM limit|Required array (?:length|size) [^\n]{1,80})",
            False,
        ),
        (FailureKind.JAVA_HEAP, "Java heap space", _JAVA + ": Java heap space", False),
        (FailureKind.JAVA_OTHER, "OutOfMemoryError", _JAVA, False),
        (
            FailureKind.JAVA_NATIVE,
            "insufficient memory for the Java",
            r"(?:# )?There is insufficient memory for the Java Runtime Environment to continue\.",
            True,
        ),
        (
            FailureKind.JAVA_NATIVE,
            "Native memory allocation (m",
            (
                r"(?:# )?Native memory allocation \(m(?:alloc|map|protect)\) failed to (?:allocate|map|protect) "
                r"(?P<wanted>\d{1,15}) bytes[^\n]{0,200}"
            ),
            True,
        ),
        (
            FailureKind.JAVA_NATIVE,
            "os::commit_memory(",
            (
                r"(?:\w[\w -]{1,60} VM warning: INFO: )?os::commit_memory\(0x[0-9a-f]{1,16}, (?P<wanted>\d{1,15}), "
                r"\d\) failed; error='[^'\n]{0,80}' \(errno=\d{1,3}\)"
            ),
            False,
        ),
        (
            FailureKind.GO,
            "runtime: out of memory: ",
            r"runtime: out of memory: cannot allocate (?P<wanted>\d{1,15})-byte block \(\d{1,15} in use\)",
            True,
        ),
        (FailureKind.NODE_HEAP, "JavaScript heap", r"FATAL ERROR: [^\n]{0,120}JavaScript heap out of memory", True),
        (FailureKind.GO, "fatal error: ", r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)", True),
        (
            FailureKind.PYTHON,
            "MemoryError",
            (
                r"(?:[\w.]{1,80}\.)?_?(?:Array)?MemoryError"
                r"(?:: Unable to allocate (?P<size>[\d.]{1,8}) (?P<unit>[KMGT])iB for an [^\n]{1,200})?"
            ),
            False,
        ),
    )
)
_DETAILS = frozenset(("Native memory allocation (m", "os::commit_memory(", "runtime: out of memory: "))
"""What belongs to another line, which comes before it or after it."""
_SIZES = {"K": 10, "M": 20, "G": 30, "T": 40}
WORDS = (
    *("emory", "oomd", "OOM", "oom", "sending SIG", "SIGKILL", "victim processes", "cgroups for killing"),
    *("Swap used (", "conditions met"),
)
"""What lines hold that matter here; most lines have none."""


class OtherKillers:
    """Takes lines, and adds what they say to what is said."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._reasons: dict[tuple[str, Killer], UserspaceKill] = {}
        """What a killer said of why, before it said whom."""
        self._last: dict[tuple[str, Killer], int] = {}
        self._seen: set[object] = set()
        self._failures: dict[tuple[FailureKind, str], int] = {}
        self._details: set[tuple[FailureKind, str]] = set()
        """Errors of which only a detail has come: their own line comes after it."""

    def feed(self, line: Line) -> bool:
        """Take a line; return whether it says anything."""
        text = line.raw
        return self._oomd(text, line) or self._earlyoom(text, line) or self._noticed(text, line) or self._failed(line)

    def _oomd(self, text: str, line: Line) -> bool:
        if " due to " in text and (match := _PRESSURE.search(text)):
            kill = UserspaceKill(
                Killer.SYSTEMD_OOMD,
                KillBasis.MEMORY_PRESSURE,
                cgroup=match[1],
                pressure_of=match[2],
                pressure_percent=float(match[3]),
                pressure_limit_percent=float(match[4]),
                pressure_duration=match[5],
            )
        elif " due to " in text and (match := _USED.search(text)):
            limit = float(match[6])
            kill = UserspaceKill(
                Killer.SYSTEMD_OOMD,
                KillBasis.SWAP if match[2] is None else KillBasis.MEMORY_AND_SWAP,
                cgroup=match[1],
                memory_used_bytes=_whole(match[2]),
                memory_total_bytes=_whole(match[3]),
                memory_limit_percent=None if match[2] is None else limit,
                swap_used_bytes=_whole(match[4]),
                swap_total_bytes=_whole(match[5]),
                swap_limit_percent=limit,
            )
        elif "systemd-oomd[" in text and (match := _CUT.search(text)):
            is_pressure = match[2] == "memory pressure"
            basis = KillBasis.MEMORY_PRESSURE if is_pressure else KillBasis.UNKNOWN
            kill = UserspaceKill(Killer.SYSTEMD_OOMD, basis, cgroup=match[1], pressure_of=match[3] or "")
        elif "systemd-oomd killed" in text and (match := _BY_SYSTEMD.search(text)):
            return self._counted(match, line)
        elif (reason := _reason_of(text)) is not None:
            self._note(line, reason)
            self._sign(SignKind.OOMD_KILLED_NOTHING, line)
            return True
        elif ("cgroups for killing" in text or "cgroup(s)" in text) and _CONSIDERED.search(text):
            self._sign(SignKind.OOMD_KILLED_NOTHING, line)
            return True
        elif "SIGKILL to cgroup" in text and (match := _TALOS.search(text)):
            path = (match[1] or match[2]).removeprefix("/sys/fs/cgroup")
            kill = UserspaceKill(Killer.TALOS, KillBasis.MEMORY_PRESSURE, cgroup=path)
        elif "victim processes" in text and (match := _TALOS_VICTIMS.search(text)):
            pids = re.findall(r"\d{1,10}", match[1] or "")
            self._amend(line, Killer.TALOS, processes=len(pids) or None, pid=int(pids[0]) if len(pids) == 1 else None)
            return True
        else:
            return False
        return self._add(kill, text[match.start() :], line)

    def _counted(self, match: re.Match[str], line: Line) -> bool:
        """Take systemd's own line about a unit; it is the kill that systemd-oomd told of already, if it did."""
        at, host = line.origin()
        unit, number = match[1], _whole(match[2]) if match[2] != "some" else None
        for place in range(len(self._said.kills) - 1, max(-1, len(self._said.kills) - 33), -1):
            known = self._said.kills[place]
            is_unit = unit in {known.cgroup.rpartition("/")[2], known.victim}
            if known.killer is Killer.SYSTEMD_OOMD and known.host == host and is_unit and _is_near(known.at, at):
                self._said.kills[place] = replace(known, processes=known.processes if number is None else number)
                return True
        unknown = UserspaceKill(Killer.SYSTEMD_OOMD, KillBasis.UNKNOWN)
        known = self._reasons.pop((host, Killer.SYSTEMD_OOMD), unknown)
        return self._add(replace(known, victim=unit, processes=number), line.raw[match.end(1) :], line)

    def _earlyoom(self, text: str, line: Line) -> bool:
        key = (line.origin()[1], Killer.EARLYOOM)
        known = self._reasons.get(key) or UserspaceKill(Killer.EARLYOOM, KillBasis.UNKNOWN)
        if "mem avail" in text and (match := _AVAILABLE.search(text)):
            # It prints this every minute as well; the figures of a kill come right before it.
            available, total, free, swap = (int(number) * _MIB for number in match.groups())
            self._note(
                line,
                replace(
                    known,
                    memory_available_bytes=available,
                    memory_total_bytes=total,
                    swap_free_bytes=free,
                    swap_total_bytes=swap,
                ),
            )
        elif "emory! " in text and (match := _LOW.search(text)):
            limits = float(match[1]), float(match[2])
            self._note(
                line,
                replace(
                    known, basis=KillBasis.LOW_MEMORY, memory_limit_percent=limits[0], swap_limit_percent=limits[1]
                ),
            )
        elif "sending SIG" in text and (match := _EARLYOOM_KILL.search(text)):
            self._reasons.pop(key, None)
            if known.memory_limit_percent is None:
                known = UserspaceKill(Killer.EARLYOOM, KillBasis.UNKNOWN)
            kill = replace(
                known,
                victim=match["name"],
                pid=int(match["pid"]),
                signal=match["signal"],
                rss_bytes=int(match["rss"]) * _MIB,
                oom_score_adj=_whole(match["adj"]),
            )
            return self._add(kill, text[match.start() :], line)
        elif "escalating to SIGKILL after " in text:
            self._amend(line, Killer.EARLYOOM, signal=SIGKILL)
        elif "dryrun, not actually sending" in text:
            place = self._last.pop(key, None)
            if place is not None and place == len(self._said.kills) - 1:
                del self._said.kills[place]
        else:
            return False
        return True

    def _noticed(self, text: str, line: Line) -> bool:
        """Take what says that the kernel killed; what ran out and why is in the kernel's report alone."""
        if ("unit" in text or "oom-kill" in text) and (match := _UNIT.search(text)):
            named = _SCOPE.search(match[1])
            kind = SignKind.UNIT_OOM_KILLED if named is None else SignKind.CONTAINER_OOM_KILLED
            unit = match[1] if _UNIT_NAME.search(match[1]) else "a systemd unit"
            self._sign(kind, line, unit=unit, container_id="" if named is None else named[1])
            return True
        if match := _CONTAINER.search(text):
            self._sign(SignKind.CONTAINER_OOM_KILLED, line, container_id=match[1] or match[2] or match[3])
        elif match := _CADVISOR.search(text):
            place = place_of(match[1])
            kind = SignKind.SYSTEM_OOM if place.level is CgroupLevel.MACHINE else SignKind.CONTAINER_OOM_KILLED
            self._sign(kind, line, container_id=place.container_id)
        elif match := _KUBELET.search(text):
            self._by_kubelet(text[match.end() :], line)
        elif _INIT.search(text):
            self._sign(SignKind.INIT_OOM_KILLED, line)
        elif _BY_KERNEL.search(text):
            self._sign(SignKind.EARLYOOM_TRIGGERED, line)
        else:
            return False
        return True

    def _by_kubelet(self, text: str, line: Line) -> None:
        """Take what the kubelet read in the kernel's log. It logs the machine's OOMs alone, if it can tell them apart.

        cAdvisor read the cgroup of no OOM of kernels since 5.0 until 0.39, which came with Kubernetes 1.21, as did the
        form of these lines with keys and values.
        """
        at, host = line.origin()
        event = line.fields.get("event")
        text = text if event is None else str(event).replace("'", '"')
        number, named, victim, died = (each.search(text) for each in (_PID, _NAME, _VICTIM, _DIED))
        if len(self._said.signs) < MOST_KILLS:
            self._said.signs.append(
                NodeSign(
                    SignKind.SYSTEM_OOM,
                    at or (f"{died[1]}T{died[2]}Z" if died else ""),
                    host,
                    pid=None if number is None else int(number[1]),
                    process="" if named is None else named[1],
                    container_id=place_of(victim[1]).container_id if victim else "",
                    is_machines=event is not None or text.startswith(('" event=', '\\" event=')),
                )
            )

    def _failed(self, line: Line) -> bool:
        """Take what a program says of its own heap."""
        text = line.text if line.fields else line.raw
        if "emory" not in text:
            return False
        for kind, needs, pattern, is_fatal in _FAILURES:
            match = pattern.match(text, 0, _MOST_TEXT + 600) if needs in text else None
            if match is None or not (
                not match["before"].strip(" \t#>|") or line.fields or _LOGGED.match(match["before"])
            ):
                continue
            groups = match.groupdict()
            at, host = line.origin()
            wanted = _whole(groups.get("wanted"))
            if groups.get("size"):
                wanted = int(float(groups["size"].strip(".") or 0) * (1 << _SIZES[groups["unit"]]))
            failure = ProgramFailure(
                kind,
                match["said"].strip()[:_MOST_TEXT],
                at,
                at,
                host,
                is_fatal=is_fatal or " due to java" in match["said"],
                limit_bytes=_whole(groups.get("limit")),
                wanted_bytes=wanted,
            )
            key, is_detail = (kind, host), needs in _DETAILS
            place = self._failures.get(key)
            if place is not None:
                known = self._said.failures[place]
                self._said.failures[place] = replace(
                    known,
                    last_at=at or known.last_at,
                    times=known.times + (not is_detail and key not in self._details),
                    is_fatal=known.is_fatal or failure.is_fatal,
                    wanted_bytes=failure.wanted_bytes if known.wanted_bytes is None else known.wanted_bytes,
                )
                self._details.discard(key)
            elif len(self._said.failures) < _MOST_FAILURES:
                self._failures[key] = len(self._said.failures)
                self._said.failures.append(failure)
                if is_detail:
                    self._details.add(key)
            return True
        return False

    def _sign(self, kind: SignKind, line: Line, *, unit: str = "", container_id: str = "") -> None:
        at, host = line.origin()
        if len(self._said.signs) < MOST_KILLS:
            self._said.signs.append(NodeSign(kind, at, host, unit=unit, container_id=container_id))

    def _note(self, line: Line, kill: UserspaceKill) -> None:
        key = line.origin()[1], kill.killer
        if key not in self._reasons and len(self._reasons) >= _MOST_HOSTS:
            del self._reasons[next(iter(self._reasons))]
        self._reasons[key] = kill

    def _amend(self, line: Line, killer: Killer, **known: object) -> None:
        """Complete the last kill of a killer on a host."""
        place = self._last.get((line.origin()[1], killer))
        if place is not None:
            self._said.kills[place] = replace(self._said.kills[place], **known)

    def _add(self, kill: UserspaceKill, words: str, line: Line) -> bool:
        at, host = line.origin()
        where = place_of(kill.cgroup) if kill.cgroup else None
        # Without the victim's arguments: they may hold secrets.
        kill = replace(kill, at=at, host=host, reason=words.partition(", cmdline ")[0].strip(": ")[:_MOST_TEXT])
        if where is not None:
            kill = replace(kill, pod_uid=where.pod_uid, container_id=where.container_id, qos_class=where.qos_class)
        place = self._last.get((host, kill.killer))
        if kill.pid is not None and place is not None:
            last = self._said.kills[place]
            if (last.pid, last.victim) == (kill.pid, kill.victim) and _is_near(last.at, at):
                # A process that did not heed SIGTERM is killed again.
                self._said.kills[place] = replace(last, signal=kill.signal)
                return True
        identity = kill.killer, at, host, kill.pid, kill.cgroup, kill.victim
        if (at and identity in self._seen) or len(self._said.kills) >= MOST_KILLS:
            return True  # the same line in another log
        self._seen.add(identity)
        self._last[host, kill.killer] = len(self._said.kills)
        self._said.kills.append(kill)
        return True


def _is_near(one: str, other: str) -> bool:
    apart = seconds_apart(one, other)
    return apart is None or abs(apart) <= _NEAR_SECONDS


def _reason_of(text: str) -> UserspaceKill | None:
    """Return why systemd-oomd looks for something to kill; whether it finds any is another line's."""
    if match := _OLD_PRESSURE.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD,
            KillBasis.MEMORY_PRESSURE,
            pressure_of=match[1],
            pressure_limit_percent=float(match[2]),
            pressure_duration=f"{match[3]}s",
        )
    if match := _OLD_SWAP.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD,
            KillBasis.SWAP,
            swap_used_bytes=int(match[1]),
            swap_total_bytes=int(match[2]),
            swap_limit_percent=float(match[3]),
        )
    if match := _RULE.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD, KillBasis.RULE, rule=match[1], pressure_of=match[2], pressure_duration=match[3] or ""
        )
    return None


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def inspected(value: object, depth: int = 0) -> Iterator[PastedPod]:
    """Yield the containers in what ``docker inspect`` or ``crictl inspect`` prints, each as a pod that has it alone."""
    if isinstance(value, list) and depth < 2:
        for each in value:
            yield from inspected(each, depth + 1)
    elif isinstance(value, dict):
        state, status = value.get("State"), value.get("status")
        if isinstance(state, dict) and "OOMKilled" in state:
            yield _of_docker(value, state)
        elif isinstance(status, dict) and isinstance(status.get("state"), str) and "CONTAINER_" in status["state"]:
            yield _of_cri(status)


def _of_docker(value: Mapping[str, Any], state: Mapping[str, Any]) -> PastedPod:
    config = value.get("HostConfig")
    limit = config.get("Memory") if isinstance(config, dict) else None
    is_killed = state.get("OOMKilled") is True
    return _container(
        name=_text(value.get("Name")).lstrip("/"),
        identity=_text(value.get("Id")),
        is_running=state.get("Running") is True or _text(state.get("Status")) == "running",
        exit_code=state.get("ExitCode"),
        reason="OOMKilled" if is_killed else "",
        finished_at=_text(state.get("FinishedAt")),
        restarts=value.get("RestartCount"),
        limit=limit,
    )


def _of_cri(status: Mapping[str, Any]) -> PastedPod:
    labels = status.get("labels")
    metadata = status.get("metadata")
    resources = status.get("resources")
    linux = resources.get("linux") if isinstance(resources, dict) else None
    own: dict[str, Any] = labels if isinstance(labels, dict) else {}
    named: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    return _container(
        name=_text(own.get("io.kubernetes.container.name")) or _text(named.get("name")),
        identity=_text(status.get("id")),
        is_running=status.get("state") == "CONTAINER_RUNNING",
        exit_code=status.get("exitCode"),
        reason=_text(status.get("reason")),
        finished_at=_text(status.get("finishedAt")),
        restarts=named.get("attempt"),
        limit=linux.get("memoryLimitInBytes") if isinstance(linux, dict) else None,
        pod=ObjectMeta(
            name=_text(own.get("io.kubernetes.pod.name")),
            namespace=_text(own.get("io.kubernetes.pod.namespace")),
            uid=_text(own.get("io.kubernetes.pod.uid")),
        ),
    )


def _text(value: object) -> str:
    return value[:_MOST_TEXT] if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    """Return an integer, which protobuf's JSON writes as a string."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _container(
    *,
    name: str,
    identity: str,
    is_running: bool,
    exit_code: object,
    reason: str,
    finished_at: str,
    restarts: object,
    limit: object,
    pod: ObjectMeta | None = None,
) -> PastedPod:
    code = _number(exit_code)
    ended = ContainerTerminated(
        reason=reason or ("Error" if code else ""), exit_code=code, finished_at=finished_at, container_id=identity
    )
    state = ContainerState(running=ContainerRunning()) if is_running else ContainerState(terminated=ended)
    # Which of its processes was killed is not shown, nor how the container ended before.
    before = ContainerState(terminated=replace(ended, exit_code=None)) if is_running and reason == "OOMKilled" else None
    status = ContainerStatus(
        name=name, container_id=identity, restart_count=_number(restarts) or 0, state=state, last_state=before
    )
    bytes_ = _number(limit)
    limits = {MEMORY: Quantity.of_units(bytes_, "BinarySI")} if bytes_ else {}
    return PastedPod(
        pod or ObjectMeta(uid=f"runtime/{identity or name}"),
        PodSpec(containers=(Container(name=name, resources=ResourceRequirements(limits=limits)),)),
        FullPodStatus(container_statuses=(status,)),
        is_from_runtime=True,
    )
