"""What else than the kernel and the kubelet logs leave of deaths: userspace killers, programs' own errors, runtimes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podqos.answers.log_marks import Mark, Needle
from podqos.kernel.message import Message
from podqos.model.pod_fate import FatedPod
from podqos.qos.cgroup_paths import cgroup_uid
from podqos.survival.autopsy.autopsy import OOMAutopsy
from podqos.survival.autopsy.eviction_traces import NodeSign, SignKind
from podqos.survival.autopsy.log_times import seconds_apart
from podqos.survival.autopsy.oom_notices import may_notice, notices
from podqos.survival.autopsy.program_failures import FailureKind, ProgramFailure, ProgramFailures, may_be_failure
from podqos.survival.autopsy.runtime_containers import RuntimeContainers
from podqos.survival.autopsy.terminations import ContainerTermination, containers_by_id
from podqos.survival.autopsy.userspace_kill import Killer, UserspaceKill
from podqos.survival.autopsy.userspace_kills import UserspaceKills, named

_MOST_KILLS = 10_000
_MOST_FAILURES = 1_000
_LINES_AFTER = 12
"""earlyoom spreads one kill over so many lines."""
_SAME_MOMENT_SECONDS = 2.0
_SAME_KILL_SECONDS = 10.0
_ID_CHARACTERS = 12
"""Of a container's id: some programs write no more, or a few more."""
_SAME_UNIT_SECONDS = 60.0
"""A unit whose processes were killed may take some time to fail."""
_NOTICED = frozenset({SignKind.UNIT_OOM_KILLED, SignKind.CONTAINER_OOM_KILLED, SignKind.INIT_OOM_KILLED})

MARKS: tuple[Mark, ...] = (
    Needle(
        b"emory",
        re.compile(
            rb"emory(?:Error(?=[:\s]|$)|(?<=eap out of memory)|(?<=: out of memory)|(?<=annot allocate memory)"
            rb"| for the Java| allocation \(m|\(0x|(?<=due to memory) used \(| pressure for /"
            rb"|(?<=Out of memory)! avail|(?<=[Ll]ow memory)! at|(?<=Low Memory)! At)"
        ),
    ),
)
"""What lines hold that matter in a long log, or the lines just before them; of a short one every line is read."""
FEW_MARKS: tuple[Mark, ...] = (
    Needle(b"due to memory ", re.compile(rb"due to memory (?:used \(|pressure for /)")),
    Needle(b"ow memory! at", re.compile(rb"ow memory! at")),
)
"""The same in a very large log with the kernel's messages: systemd-oomd and earlyoom; all others only after a kill."""
NOTICE_MARKS: tuple[Mark, ...] = (
    Needle(
        b"OOM",
        re.compile(
            rb"OOM(?:(?<=TaskOOM)|(?<=n OOM) event in|(?<=: OOM) (?:event )?received"
            rb"| killer|-killed|Controller| controller t)"
        ),
    ),
    b"sys oom event",
    b"/tasks/oom",
    b"result 'oom-kill'",
)
"""What lines hold about kills of the kernel's, by others: in a log with the kernel's own, only after a kill."""
_COUNTED_MARKS = (b"ending SIG", b"illing process")
_OF_KERNEL = b"kernel:"


def may_tell(text: str) -> bool:
    """Whether a text has a word of what programs say about kills or failures: most have none."""
    return (
        "emory" in text
        or "MEMORY" in text
        or "OOM" in text
        or "oom" in text
        or "SIG" in text
        or "MiB" in text
        or "Kill" in text
        or "illing process" in text
        or "fatal error: " in text
        or "victim processes" in text
        or "taking action" in text
        or "Swap used (" in text
        or "any cgroup(s)" in text
    )


class Topic(NamedTuple):
    """What a line is about that programs may repeat without end."""

    host: str
    failure: FailureKind | None = None
    """None: a kill beyond those that are kept."""
    is_told: bool = True
    """Whether a line tells anything."""


TOLD_NOTHING = Topic("", is_told=False)


class OtherKillers:
    """Takes lines of logs, and gathers what they tell of kills and failures."""

    def __init__(self) -> None:
        self._kills = UserspaceKills(_MOST_KILLS)
        self._failures = ProgramFailures(_MOST_FAILURES)
        self._containers = RuntimeContainers()
        self._is_asked_for_counted = False
        self.lines_after = 0
        """How many of the lines that follow the last one matter as well."""
        self.repeatable: Topic | None = None
        """What the last line was about, if lines like it need only be counted. What it said of kills is not in this."""

    @property
    def marks_of_counted(self) -> tuple[Mark, ...]:
        """What kills hold that are only counted; who asks looks for them, and needs no other lines to lead there."""
        self._is_asked_for_counted = self._kills.is_full
        return _COUNTED_MARKS if self._is_asked_for_counted else ()

    @staticmethod
    def marks(head: bytes) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
        """Return what to look for in a log that begins like this, and where it is very large."""
        if _OF_KERNEL in head:
            return MARKS, FEW_MARKS
        return (*MARKS, *NOTICE_MARKS), (*MARKS, *NOTICE_MARKS)

    def begin(self, head: bytes) -> bool:
        """Begin another log, and return whether all of its lines matter."""
        return self._containers.begin(head)

    def feed_lines(self, lines: Sequence[str]) -> bool:
        """Take lines as they were found; return whether one is of a runtime's output, which nothing carries."""
        containers = self._containers
        return containers.is_output and any([containers.feed(line) for line in lines])  # noqa: C419 - all are to be fed

    def may_tell(self, line: str) -> bool:
        """Whether a line as it was found may tell anything, if nothing but what precedes its message carries it."""
        return may_tell(line) and (self._kills.may_tell(line) or may_notice(line) or may_be_failure(line))

    def feed(self, message: Message) -> Iterator[NodeSign]:
        """Take a line; yield what it says about kills of the kernel's."""
        self.lines_after, self.repeatable = 0, None if self._containers.is_output else TOLD_NOTHING
        text = message.text
        if not may_tell(text):
            return
        if self._kills.feed(message):
            if self._kills.is_only_counted:
                self.repeatable = Topic(message.host)
            elif not (self._kills.is_in_vain and self._is_asked_for_counted):
                self.repeatable = None
                self.lines_after = _LINES_AFTER
            yield from notices(message)
        elif (told := self._failures.feed(message)) is None:
            yield from notices(message)
        else:
            self.repeatable = None if told.is_detail else Topic(told.host, told.kind)

    def repeat(self, topic: Topic, times: int) -> None:
        """Count lines like one that was about a topic."""
        if not topic.is_told:
            return
        if topic.failure is None:
            self._kills.left_out += times
        else:
            self._failures.repeat(topic.failure, topic.host, times)

    @property
    def failures(self) -> tuple[ProgramFailure, ...]:
        """Programs that ran out of their own memory."""
        return self._failures.failures

    @property
    def containers(self) -> int:
        """How many containers their runtime shows."""
        return len(self._containers)

    def terminations(self, kills: Sequence[OOMAutopsy]) -> Iterator[ContainerTermination]:
        """Yield containers that were killed, by what their runtime shows."""
        return self._containers.terminations(kills)

    def exits(self, kills: Sequence[OOMAutopsy]) -> Iterator[ContainerTermination]:
        """Yield containers not known to have been killed, by what their runtime shows."""
        return self._containers.exits(kills)

    @property
    def kills_left_out(self) -> int:
        """How many kills are counted alone."""
        return self._kills.left_out

    def kills(self, pods: Iterable[FatedPod], by_kernel: Iterable[OOMAutopsy]) -> tuple[UserspaceKill, ...]:
        """Return the kills with their pods, without those that the kernel reports itself."""
        if not self._kills.kills:
            return ()
        names: dict[str, tuple[str, str]] = {}
        known = list(pods)
        for pod in known:
            names[cgroup_uid(pod)] = (pod.key, "")
        names |= {identity: (pod.key, name) for identity, (pod, name) in containers_by_id(known).items()}
        names.pop("", None)
        reported: dict[int, list[str]] = {}
        for kill in by_kernel:
            for victim in kill.victims:
                if victim.pid is not None:
                    reported.setdefault(victim.pid, []).append(kill.at)
        return tuple(
            kill for kill in named(self._kills.kills, names) if not _is_reported(kill, reported.get(kill.pid or 0, ()))
        )


def _is_reported(kill: UserspaceKill, times: Iterable[str]) -> bool:
    """Whether the kernel killed the same process at about the same time: its report has it."""
    for at in times:
        apart = seconds_apart(at, kill.at)
        if apart is not None and abs(apart) <= _SAME_KILL_SECONDS:
            return True
    return False


def without_echoes(kills: Iterable[OOMAutopsy]) -> list[OOMAutopsy]:
    """Return the kernel's kills without lines that repeat one: the node problem detector logs the kernel's words."""
    known: dict[tuple[int, str, int], OOMAutopsy] = {}
    kept = []
    for kill in kills:
        victim = kill.victims[0] if kill.victims else None
        if victim is None or victim.pid is None or victim.rss_bytes is None:
            kept.append(kill)
            continue
        key = victim.pid, victim.name, victim.rss_bytes
        is_bare = len(kill.victims) == 1 and not (kill.trigger.name or kill.tasks)
        if not (is_bare and key in known and _is_echo(kill, known[key])):
            kept.append(kill)
            known[key] = kill
    return kept


def _is_echo(kill: OOMAutopsy, first: OOMAutopsy) -> bool:
    """Whether two reports of one process come from two logs; a log that repeats itself is taken at its word."""
    apart = seconds_apart(first.at, kill.at)
    if apart is not None:
        return kill.host != first.host and abs(apart) <= _SAME_KILL_SECONDS
    return _is_since_boot(kill.at) != _is_since_boot(first.at) or bool(kill.at) != bool(first.at)


def _is_since_boot(at: str) -> bool:
    return at.replace(".", "", 1).isdecimal()


def without_repeats(
    signs: Iterable[NodeSign], kills: Iterable[OOMAutopsy], by_programs: Sequence[UserspaceKill] = ()
) -> Iterator[NodeSign]:
    """Yield what daemons noticed, once for each unit or container, and with the kernel's kill where that is known.

    systemd gives a unit the result 'oom-kill' for systemd-oomd's kills, too: those are not the kernel's.
    """
    ended = {
        (host, unit): kill.at
        for kill in by_programs
        if kill.killer is Killer.SYSTEMD_OOMD
        for unit in (kill.victim, *_units(kill.cgroup))
        for host in {kill.host, ""}  # systemctl shows no host
    }
    kills = list(kills)
    by_container = {kill.container_id: number for number, kill in enumerate(kills) if kill.container_id}
    by_unit = {unit: number for number, kill in enumerate(kills) for unit in _units(kill.victim_cgroup or kill.cgroup)}
    by_unit |= {
        unit: number for number, kill in enumerate(kills) for unit in _units(kill.victim_cgroup or kill.cgroup)[-1:]
    }
    last: dict[tuple[str, str, str], NodeSign] = {}
    hosts = {kill.host for kill in by_programs if kill.killer is Killer.SYSTEMD_OOMD}
    for sign in signs:
        if sign.kind is SignKind.OOMD_KILLED_NOTHING and sign.node in hosts:
            continue  # it did kill
        if sign.kind not in _NOTICED or sign.pid is not None:
            yield sign
            continue
        key = sign.node, sign.kind, sign.container_id[:_ID_CHARACTERS] or sign.unit
        known = last.get(key)
        apart = None if known is None else seconds_apart(known.at, sign.at)
        if known is not None and (apart is None or abs(apart) <= _SAME_KILL_SECONDS):
            continue  # systemd says it twice: of the process, and of the unit that failed
        last[key] = sign
        if sign.unit and _is_near(ended.get((sign.node, sign.unit)), sign.at):
            continue
        kill = by_container.get(sign.container_id) if sign.container_id else by_unit.get(sign.unit)
        if kill is None:
            kill = next((number for number, other in enumerate(kills) if _may_tell_of(sign, other)), None)
        yield sign if kill is None else replace(sign, kill=kill)


def _may_tell_of(sign: NodeSign, kill: OOMAutopsy) -> bool:
    """Whether a daemon noticed a kill whose lines do not say where the victim was: on its host, at its time."""
    if kill.container_id or kill.victim_cgroup or kill.cgroup or not kill.victims or kill.host != sign.node:
        return False
    apart = seconds_apart(kill.at, sign.at)
    return apart is not None and abs(apart) <= _SAME_MOMENT_SECONDS


def _is_near(kill_at: str | None, at: str) -> bool:
    """Whether there is a kill, and nothing says that it was at another time."""
    apart = None if kill_at is None else seconds_apart(kill_at, at)
    return kill_at is not None and (apart is None or abs(apart) <= _SAME_UNIT_SECONDS)


def _units(cgroup: str) -> list[str]:
    """Return the systemd units of a cgroup, the one that it belongs to last."""
    return [part for part in cgroup.split("/") if part.endswith((".service", ".scope"))]
