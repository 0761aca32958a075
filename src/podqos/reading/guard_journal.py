"""A guard's journal on disk, and what logs and the API server say about the same time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.guard_status import FILE, GuardStatus
from podqos.agent.journal import By, Entry, Kind, decode
from podqos.agent.reasons import OOMLevel
from podqos.errors import HostError
from podqos.host.storage.journal_file import journal_files
from podqos.model.assumption import Assumption
from podqos.model.time_units import SECOND_US
from podqos.naming import naming, stated_with
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.autopsy import Autopsies
from podqos.survival.autopsy.eviction_traces import EvictionCause, seconds_of
from podqos.survival.shadow import Death, GuardReport, guard_report

JOURNAL, KNOWN_PODS = "journal.jsonl", "pods.json"
_LEVELS = {
    CgroupLevel.CONTAINER: OOMLevel.CONTAINER,
    CgroupLevel.POD: OOMLevel.POD,
    CgroupLevel.CLASS: OOMLevel.CLASS,
    CgroupLevel.KUBEPODS: OOMLevel.KUBEPODS,
    CgroupLevel.MACHINE: OOMLevel.NODE,
}
_SINCE_BOOT = re.compile(r"\d{1,8}(?:\.\d{1,9})?", re.ASCII)
_OWN_EVICTION_US = 600 * SECOND_US


def read_status(run: Path) -> GuardStatus | None:
    """Return the last status of a guard in its run directory; None if none has run."""
    try:
        return msgspec.json.decode((run / FILE).read_bytes(), type=GuardStatus)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def files_of(path: Path) -> list[Path]:
    """Return the files of a journal, oldest first; ``path`` is the guard's state directory, or one of the files."""
    files = journal_files(path / JOURNAL) if path.is_dir() else [path]
    if not files[-1].exists():
        raise HostError(
            f"no journal at {files[-1]}: a guard writes one to its state directory; give that directory with "
            + naming("state")
        )
    return files


def entries_of(path: Path) -> Iterator[Entry]:
    """Yield the entries of a guard's journal; raises InputError for invalid lines."""
    for file in files_of(path):
        try:
            with file.open("rb") as lines:
                yield from decode(lines, str(file))
        except OSError as error:
            raise HostError(f"{file}: {error.strerror or error}") from error


class _Known(Struct, frozen=True):
    names: dict[str, str] = {}


def known_names(state: Path) -> dict[str, str]:
    """Return the pods that a guard knew, by uid; none if it left no readable file."""
    try:
        return msgspec.json.decode((state / KNOWN_PODS).read_bytes(), type=_Known).names
    except (OSError, msgspec.DecodeError):
        return {}


def report_of(
    journals: Iterable[Path],
    told: Autopsies,
    names: Mapping[str, str],
    assumptions: Iterable[Assumption] = (),
) -> GuardReport:
    """Compare the guard's decisions in journals with the deaths recorded there, in logs and by the API server.

    ``names`` are pods by uid, for kills in pods that the rest does not know. What happened before a journal begins is
    left out.
    """
    journals = list(journals)
    deaths = _Deaths(told, names, *_seen(journals))
    found: list[Entry | Death] = sorted(deaths.all(), key=_when)
    streams: list[Iterable[Entry | Death]] = [*(entries_of(journal) for journal in journals), found]
    return guard_report(merge(*streams, key=_when), (*assumptions, *deaths.assumptions()))


_when = attrgetter("time_us", "node")


def _seen(journals: Iterable[Path]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return when the journal of each node begins, and when guards evicted which pods."""
    nodes: dict[str, int] = {}
    own: dict[str, list[int]] = {}
    for entry in (entry for journal in journals for entry in entries_of(journal)):
        nodes.setdefault(entry.node, entry.time_us)
        if entry.kind is Kind.EVICTED and entry.by is By.GUARD and entry.pod is not None:
            own.setdefault(entry.pod, []).append(entry.time_us)
    return nodes, own


class _Deaths:
    """The deaths that logs and the API server report, and what had to be assumed about them."""

    def __init__(
        self, told: Autopsies, names: Mapping[str, str], nodes: Mapping[str, int], own: Mapping[str, list[int]]
    ) -> None:
        self._told, self._names, self._nodes, self._own = told, names, nodes, own
        self._boot_us: int | None = None
        self._undated = self._elsewhere = self._earlier = 0
        self._nameless: set[str] = set()

    def all(self) -> Iterator[Death]:
        """Yield them."""
        for kill in self._told.kills:
            pod = kill.pod or self._names.get(kill.pod_uid, "") or (f"pod {kill.pod_uid}" if kill.pod_uid else "")
            # A process of no pod is no matter of the guard's.
            death = self._death(kill.at, kill.host, pod, By.KERNEL, _LEVELS.get(kill.scope)) if pod else None
            if death is not None:
                if not kill.pod and kill.pod_uid not in self._names:
                    self._nameless.add(pod)
                yield death
        for eviction in self._told.evictions:
            if eviction.cause is not EvictionCause.NODE_PRESSURE or eviction.is_by_guard:
                continue
            death = self._death(eviction.at, eviction.node, eviction.pod, By.KUBELET)
            if death is not None and not self._is_own(death):
                yield death

    def assumptions(self) -> Iterator[Assumption]:
        """Yield what was assumed or left out."""
        if self._boot_us is not None:
            how = "a log with dates, such as journalctl -k -o short-iso-precise or dmesg --time-format iso"
            yield Assumption("boot time of the machine that wrote the kernel log", "that of this machine", how)
        if self._undated:
            yield Assumption(f"{self._undated} deaths without a date", "left out", "a log with dates")
        if self._elsewhere:
            yield Assumption(
                f"{self._elsewhere} deaths on nodes without a journal", "left out", stated_with("journal", "FILE")
            )
        if self._earlier:
            yield Assumption(
                f"{self._earlier} deaths before the journal begins", "left out", stated_with("journal", "FILE")
            )
        if self._nameless:
            how = f"{stated_with('files', 'FILE')} with the pods, {stated_with('snapshot')} or {stated_with('context')}"
            yield Assumption(
                f"names of {len(self._nameless)} killed pods", "not known, none is the guard's choice", how
            )

    def _death(self, at: str, host: str, pod: str, by: By, level: OOMLevel | None = None) -> Death | None:
        """Return a death on a node with a journal, after the journal begins."""
        node, time_us = self._node(host), self._time_us(at)
        if node is None or time_us is None:
            return None
        if time_us < self._nodes[node]:
            self._earlier += 1
            return None
        return Death(time_us, node, pod, by, level)

    def _is_own(self, death: Death) -> bool:
        """Whether the guard itself evicted a pod: its status looks like the kubelet's."""
        return any(-SECOND_US <= death.time_us - each <= _OWN_EVICTION_US for each in self._own.get(death.pod, ()))

    def _node(self, name: str) -> str | None:
        if name in self._nodes:
            return name
        short = [node for node in self._nodes if name and node.partition(".")[0] == name.partition(".")[0]]
        if len(short) == 1 or len(self._nodes) == 1:
            return (short or [*self._nodes])[0]
        self._elsewhere += 1
        return None

    def _time_us(self, at: str) -> int | None:
        """Return a time in the journal's terms. A time in whole seconds counts as the end of that second."""
        if _SINCE_BOOT.fullmatch(at):
            if self._boot_us is None:
                self._boot_us = (time.time_ns() - time.monotonic_ns()) // 1000
            seconds: float | None = self._boot_us / SECOND_US + float(at)
        else:
            seconds = seconds_of(at, time.time())
        if seconds is None:
            self._undated += 1
            return None
        time_us = int(seconds * SECOND_US)
        return time_us if time_us % SECOND_US else time_us + SECOND_US - 1
