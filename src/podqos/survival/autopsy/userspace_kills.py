"""Takes the lines of userspace killers, and gathers their kills; several lines may belong to one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from podqos.kernel.message import Message
from podqos.qos.cgroup_paths import place_of
from podqos.survival.autopsy import userspace_kill_lines as lines
from podqos.survival.autopsy.log_times import carried, seconds_apart, unit_before
from podqos.survival.autopsy.userspace_kill import SIGKILL, KillBasis, Killer, UserspaceKill

_MOST_HOSTS = 256
_MOST_REASON = 400
_NEAR_SECONDS = 60.0
_MIB = 1 << 20
_SIGNALS = {"15": "SIGTERM", "9": SIGKILL}


class UserspaceKills:
    """Takes messages, and gathers the kills that programs decided. Several hosts may be in one log."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kills: list[UserspaceKill] = []
        self._context: dict[tuple[str, Killer], UserspaceKill] = {}
        self._seen: dict[object, None] = {}
        self._last: dict[tuple[str, Killer], int] = {}
        self.left_out = 0
        self.is_only_counted = False
        """Whether the last line was that of a kill beyond the most that are kept."""
        self.is_in_vain = False
        """Whether the last line has figures of such a kill."""
        by_killer: dict[Callable[[str, Message], bool], tuple[str, ...]] = {
            self._systemd: (
                *(" due to memory ", " due to swap ", "taking action kill", "systemd-oomd killed "),
                *("Memory pressure for /", "Swap used (", "Failed to kill any cgroup"),
                *("]: Killed /", "]: Marked /"),
            ),
            self._earlyoom: (
                *("mem avail: ", "emory! ", "sending SIG", "illing process "),
                *("escalating to SIGKILL", "dryrun, not", "triggered kernel OOM"),
            ),
            self._talos: ("Sending SIGKILL to cgroup", "victim processes:"),
        }
        # What a line has to hold; no other line is matched.
        self._recognisers = [(needs, recognise) for recognise, words in by_killer.items() for needs in words]

    @property
    def is_full(self) -> bool:
        """Whether further kills are only counted."""
        return len(self._kills) >= self._most

    @property
    def kills(self) -> tuple[UserspaceKill, ...]:
        """Those found so far."""
        return tuple(self._kills)

    def may_tell(self, text: str) -> bool:
        """Whether a line may be one of theirs, as far as its words say."""
        return bool([needs for needs, _ in self._recognisers if needs in text])

    def feed(self, message: Message) -> bool:
        """Take a line; return whether a userspace killer wrote it, so that the lines after it matter as well."""
        text = message.text
        self.is_only_counted = self.is_in_vain = False
        held = [recognise for needs, recognise in self._recognisers if needs in text]
        return any(recognise(text, message) for recognise in held) if held else False

    def _systemd(self, text: str, message: Message) -> bool:
        if match := lines.PRESSURE.search(text):
            kill = UserspaceKill(
                Killer.SYSTEMD_OOMD,
                KillBasis.MEMORY_PRESSURE,
                cgroup=match[1],
                pressure_of=match[2],
                pressure_percent=float(match[3]),
                pressure_limit_percent=float(match[4]),
                pressure_duration=match[5],
            )
        elif match := lines.USED.search(text):
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
        elif match := lines.CUT.search(text):
            basis = KillBasis.MEMORY_PRESSURE if match[2] else KillBasis.UNKNOWN
            kill = UserspaceKill(Killer.SYSTEMD_OOMD, basis, cgroup=match[1], pressure_of=match[3] or "")
        elif "systemd-oomd[" in text and (match := lines.CUT_SHORT.search(text)):
            kill = UserspaceKill(Killer.SYSTEMD_OOMD, KillBasis.UNKNOWN, cgroup=match[1])
        elif lines.NONE_KILLED.search(text):
            self._withdraw((carried("", message)[1], Killer.SYSTEMD_OOMD), is_kill=False)
            return True
        elif reason := _intended(text):
            self._note((carried("", message)[1], Killer.SYSTEMD_OOMD), reason)
            return True
        elif match := lines.BY_SYSTEMD.search(text):
            return self._counted(match, text, message)
        else:
            return False
        return self._add(kill, match, text, message)

    def _counted(self, match: re.Match[str], text: str, message: Message) -> bool:
        """Take systemd's own line about a unit; it is the kill that systemd-oomd told of already, if it did."""
        at, host = carried(text[: match.start()], message)
        number = None if match[1] == "some" else int(match[1])
        unit = unit_before(text, match)
        for place in range(len(self._kills) - 1, max(-1, len(self._kills) - 33), -1):
            known = self._kills[place]
            is_unit = known.cgroup.rpartition("/")[2] == unit or known.victim == unit
            if known.killer is Killer.SYSTEMD_OOMD and known.host == host and is_unit:
                apart = seconds_apart(known.at, at)
                if apart is None or abs(apart) <= _NEAR_SECONDS:
                    self._kills[place] = replace(known, processes=known.processes if number is None else number)
                    return True
        reason = self._context.pop((carried("", message)[1], Killer.SYSTEMD_OOMD), None)
        kill = replace(reason or UserspaceKill(Killer.SYSTEMD_OOMD, KillBasis.UNKNOWN), victim=unit, processes=number)
        return self._add(kill, match, text, message)

    def _earlyoom(self, text: str, message: Message) -> bool:
        key = (carried("", message)[1], Killer.EARLYOOM)
        if match := lines.AVAILABLE.search(text):
            # It prints this every minute as well; the figures of a kill come right before it.
            available, total, free, swap = (int(number) * _MIB for number in match.groups())
            known = self._context.get(key, UserspaceKill(Killer.EARLYOOM, KillBasis.LOW_MEMORY))
            self._note(
                key,
                replace(
                    known,
                    memory_available_bytes=available,
                    memory_total_bytes=total,
                    swap_free_bytes=free,
                    swap_total_bytes=swap,
                ),
            )
        elif match := lines.LOW.search(text):
            known = self._context.get(key, UserspaceKill(Killer.EARLYOOM, KillBasis.LOW_MEMORY))
            self._note(key, replace(known, memory_limit_percent=float(match[1]), swap_limit_percent=float(match[2])))
        elif match := lines.OLD_EARLYOOM.search(text):
            available = int(match[1]) * _MIB
            self._note(key, UserspaceKill(Killer.EARLYOOM, KillBasis.LOW_MEMORY, memory_available_bytes=available))
        elif match := next(filter(None, (pattern.search(text) for pattern in lines.EARLYOOM_KILLS)), None):
            known = self._context.get(key, UserspaceKill(Killer.EARLYOOM, KillBasis.UNKNOWN))
            self._context.pop(key, None)
            if known.memory_limit_percent is None:
                known = UserspaceKill(Killer.EARLYOOM, KillBasis.UNKNOWN)
            groups = match.groupdict()
            kill = replace(
                known,
                victim=groups["name"],
                pid=int(groups["pid"]),
                signal=_SIGNALS.get(groups["signal"], groups["signal"]),
                rss_bytes=int(groups["rss"]) * _MIB,
                oom_score_adj=None if groups.get("adj") is None else int(groups["adj"]),
            )
            return self._add(kill, match, text, message)
        elif (match := lines.OLD_EARLYOOM_KILL.search(text)) and key in self._context:
            kill = replace(self._context.pop(key), victim=match[2], pid=int(match[1]))
            return self._add(kill, match, text, message)
        elif lines.ESCALATING.search(text):
            self._amend(key, signal=SIGKILL)
        elif lines.DRY_RUN.search(text) or lines.BY_KERNEL.search(text):
            # The first is no kill; the second leaves it to the kernel, whose report it is.
            self._withdraw(key, is_kill=lines.DRY_RUN.search(text) is None)
        else:
            return False
        return True

    def _talos(self, text: str, message: Message) -> bool:
        key = (carried("", message)[1], Killer.TALOS)
        if match := lines.TALOS.search(text):
            path = (match[1] or match[2]).removeprefix("/sys/fs/cgroup")
            kill = UserspaceKill(Killer.TALOS, KillBasis.MEMORY_PRESSURE, cgroup=path)
            return self._add(kill, match, text, message)
        if match := lines.TALOS_VICTIMS.search(text):
            pids = re.findall(r"\d{1,10}", match[1] or "")
            self._amend(key, processes=len(pids) or None, pid=int(pids[0]) if len(pids) == 1 else None)
            return True
        return False

    def _note(self, key: tuple[str, Killer], kill: UserspaceKill) -> None:
        if key not in self._context and len(self._context) >= _MOST_HOSTS:
            del self._context[next(iter(self._context))]
        self._context[key] = kill
        self.is_in_vain = self.is_full

    def _amend(self, key: tuple[str, Killer], **known: object) -> None:
        """Complete the last kill of a killer on a host."""
        place = self._last.get(key)
        if place is not None:
            self._kills[place] = replace(self._kills[place], **known)

    def _withdraw(self, key: tuple[str, Killer], *, is_kill: bool) -> None:
        """Forget what a killer is at, and its last kill where that was none."""
        self._context.pop(key, None)
        place = self._last.pop(key, None)
        if not is_kill and place is not None and place == len(self._kills) - 1:
            del self._kills[place]

    def _add(self, kill: UserspaceKill, match: re.Match[str], text: str, message: Message) -> bool:
        at, host = carried(text[: match.start()], message)
        context = carried("", message)[1]
        where = place_of(kill.cgroup) if kill.cgroup else None
        kill = replace(kill, at=at, host=host, reason=_logged(text, match))
        if where is not None:
            kill = replace(kill, pod_uid=where.pod_uid, container_id=where.container_id, qos_class=where.qos_class)
        key = (context, kill.killer)
        place = self._last.get(key)
        if kill.pid is not None and place is not None:
            last = self._kills[place]
            is_same = last.pid == kill.pid and last.victim == kill.victim
            apart = seconds_apart(last.at, at) if is_same else None
            # A process that did not heed SIGTERM is killed again.
            if is_same and (apart is None or abs(apart) <= _NEAR_SECONDS):
                self._kills[place] = replace(last, signal=kill.signal)
                return True
        identity = (kill.killer, at, host, kill.pid, kill.cgroup, kill.victim)
        if at and identity in self._seen:
            return True  # the same line in another log
        if self.is_full:
            self.left_out += 1
            self.is_only_counted = True
            return True
        self._seen[identity] = None
        self._last[key] = len(self._kills)
        self._kills.append(kill)
        return True


def _intended(text: str) -> UserspaceKill | None:
    """Return why systemd-oomd looks for something to kill; whether it finds any is another line's."""
    if match := lines.OLD_PRESSURE.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD,
            KillBasis.MEMORY_PRESSURE,
            pressure_of=match[1],
            pressure_limit_percent=float(match[2]),
            pressure_duration=f"{match[3]}s",
        )
    if match := lines.OLD_SWAP.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD,
            KillBasis.SWAP,
            swap_used_bytes=int(match[1]),
            swap_total_bytes=int(match[2]),
            swap_limit_percent=float(match[3]),
        )
    if match := lines.RULE.search(text):
        return UserspaceKill(
            Killer.SYSTEMD_OOMD, KillBasis.RULE, rule=match[1], pressure_of=match[2], pressure_duration=match[3] or ""
        )
    return None


def _logged(text: str, match: re.Match[str]) -> str:
    """Return a line as logged, without the victim's arguments: they may hold secrets."""
    return text[match.start() :].partition(", cmdline ")[0].strip(": ")[:_MOST_REASON]


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def named(kills: tuple[UserspaceKill, ...], names: dict[str, tuple[str, str]]) -> Iterator[UserspaceKill]:
    """Yield kills with their pod and container, where the uid or the id is known."""
    for kill in kills:
        pod, container = names.get(kill.container_id) or names.get(kill.pod_uid) or ("", "")
        yield replace(kill, pod=pod, container=container) if pod else kill
