"""OOMs provoked on a real kernel, each foretold by the model first.

A trial makes cgroups of its own with real processes in them, reads off /proc and the cgroups what each holds, asks
the model where memory will run out and who will die, lets one process grow, and looks who did die. The model is asked
twice: beforehand, with the growth foretold too, and afterwards with the numbers in the kernel's own log.
"""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from kernel import kmsg, procfs
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.charge import OutOfMemory, charge
from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import Machine, watermarks
from podqos.kernel.oom import OOMSelection, Process, kill, rank
from podqos.kernel.oom import select as choose

MI = 2**20
HOG = Path(__file__).with_name("hog.py")
# Every CPU may hold a batch of 64 pages charged in advance for each cgroup, which is given back before an OOM: 384
# pages with three cgroups on two CPUs. Per-CPU counts of a process's pages are off by up to 64 more. So what the kernel
# will see when memory has run out is known to 2 MiB; of a whole machine, with its caches and reserves, to about 8 MiB.
# Whoever is nearer may die instead.
MARGIN_PAGES = 2 * MI // PAGE_BYTES
GLOBAL_MARGIN_PAGES = 8 * MI // PAGE_BYTES
PATIENCE_SECONDS = 60


class Missing(Exception):
    """This machine cannot be used; the text says why."""


@dataclass(frozen=True)
class Hierarchy:
    """Where memory cgroups are, and what their files are called."""

    version: int
    mount: Path

    @property
    def limit_file(self) -> str:
        return "memory.max" if self.version == 2 else "memory.limit_in_bytes"

    @property
    def usage_file(self) -> str:
        return "memory.current" if self.version == 2 else "memory.usage_in_bytes"


def hierarchy() -> Hierarchy:
    """Find the memory controller, or raise Missing."""
    if os.geteuid() != 0:
        raise Missing("making cgroups needs root")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            return Hierarchy(1, Path(mount))
        # Handing it down ourselves would change a cgroup that is not ours.
        if kind == "cgroup2" and "memory" in _words(Path(mount) / "cgroup.subtree_control"):
            return Hierarchy(2, Path(mount))
    raise Missing("no memory controller is mounted and handed down from the root cgroup")


@dataclass(frozen=True)
class Member:
    """One process: what it holds, and its oom_score_adj."""

    size_bytes: int
    adjustment: int


@dataclass(frozen=True)
class Leaf:
    """A cgroup with processes."""

    members: tuple[Member, ...]
    slack_bytes: int | None = None
    """The room its own limit leaves above what its processes hold at first; None is no limit."""
    oom_group: bool = False


@dataclass(frozen=True)
class Probe:
    """What is set up, and which process grows."""

    leaves: tuple[Leaf, ...]
    grower: tuple[int, int]
    """The cgroup and the process in it."""
    slack_bytes: int | None
    """As of a leaf, for the parent of all; None makes the OOM global."""
    oom_group: bool = False
    step_bytes: int = MI // 4


@dataclass(frozen=True)
class Outcome:
    """What was foretold and what happened. Processes are named leaf.member."""

    foretold: tuple[str, ...]
    possible: tuple[tuple[str, ...], ...]
    """Who may have died: as foretold, or of another who is too near to tell beforehand; also after one more OOM each,
    for the kernel may not wait for the first victim's memory."""
    is_close: bool
    """Whether there is such another."""
    killed: tuple[str, ...]
    domain: str
    margin_pages: int | None
    by_the_kernels_numbers: bool | None
    """Whether the model chooses the same victim from the kernel's own table; None where the kernel told nothing."""
    surprise_pages: int | None
    """How much more the grower had by then than was foretold, by the same table."""
    numbers: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        # Where the one that grows is not stopped in time more die; what the kernel says of the first counts then.
        more = self.by_the_kernels_numbers is True and set(self.foretold) < set(self.killed)
        return (self.killed in self.possible or more) and self.by_the_kernels_numbers is not False


def random_trial(
    chance: random.Random, *, lowest_adjustment: int = 0, largest_mib: int = 44, with_groups: bool = False
) -> Probe:
    """Draw a trial for a parent of at most 512 MiB: one to three cgroups of two or three processes."""
    leaves = tuple(
        Leaf(
            tuple(
                _member(chance, lowest_adjustment, largest_mib, index=index) for index in range(chance.randint(2, 3))
            ),
            slack_bytes=chance.choice((None, None, chance.randint(4, 12) * MI)),
            oom_group=with_groups and chance.random() < 0.5,
        )
        for _ in range(chance.randint(1, 3))
    )
    return Probe(leaves, _grower(chance, leaves), chance.randint(8, 16) * MI, with_groups and chance.random() < 0.25)


def random_global_trial(chance: random.Random) -> Probe:
    """Draw a trial without limits, for a small machine that is all ours."""
    leaves = tuple(
        Leaf(
            tuple(_member(chance, -1000, 40, index=index) for index in range(chance.randint(1, 2))),
            oom_group=chance.random() < 0.5,
        )
        for _ in range(2)
    )
    return Probe(leaves, _grower(chance, leaves), None, step_bytes=MI)


def _grower(chance: random.Random, leaves: tuple[Leaf, ...]) -> tuple[int, int]:
    leaf = chance.randrange(len(leaves))
    return leaf, chance.randrange(len(leaves[leaf].members))


def _member(chance: random.Random, lowest_adjustment: int, largest_mib: int, *, index: int) -> Member:
    # Near zero, use decides as often as adjustment; far from it, adjustment does. The first can always be killed.
    spread = chance.choice((0, 60, 1000))
    adjustment = chance.randint(max(lowest_adjustment, -spread, -999), spread)
    if index and lowest_adjustment == -1000 and chance.random() < 0.2:
        adjustment = -1000
    return Member(chance.randint(12, largest_mib) * MI, adjustment)


def run(trial: Probe, where: Hierarchy, name: str) -> Outcome:
    """Carry a trial out, and leave nothing behind."""
    with ExitStack() as cleanup:
        stage = _Stage(trial, where, where.mount / name, cleanup)
        return stage.play()


class _Stage:
    """The cgroups and processes of one trial."""

    def __init__(self, trial: Probe, where: Hierarchy, top: Path, cleanup: ExitStack) -> None:
        self.trial, self.where, self.top = trial, where, top
        self.log = kmsg.Log()
        cleanup.callback(self.log.close)
        self.folders = [top / f"leaf{index}" for index in range(len(trial.leaves))]
        for folder in (top, *self.folders):
            folder.mkdir()
            cleanup.callback(remove, folder)
            if folder == top and where.version == 2:
                (folder / "cgroup.subtree_control").write_text("+memory")
        self.hogs: dict[str, subprocess.Popen[bytes]] = {}
        for leaf_index, leaf in enumerate(trial.leaves):
            for member_index, member in enumerate(leaf.members):
                hog = self._start(self.folders[leaf_index], member)
                cleanup.callback(_end, hog)
                self.hogs[f"{leaf_index}.{member_index}"] = hog
        for hog in self.hogs.values():
            assert hog.stdout is not None
            assert hog.stdout.readline() == b"ready\n", "a process did not start"
        self.grower = f"{trial.grower[0]}.{trial.grower[1]}"

    def play(self) -> Outcome:
        self._settle()
        memory = self._model()
        path = self._path(self.folders[self.trial.grower[0]])
        result = charge(memory, path, Kind.ANON, memory.machine.total_bytes)
        oom = result.out_of_memory
        assert oom is not None
        processes = self._processes(result.charged_bytes)
        chosen = choose(processes, oom.oom_total_pages, oom.path)
        assert chosen is not None
        foretold = self._deaths(chosen, processes)
        killed = self._provoke(foretold)
        account = self.log.first_oom()
        near = _near(chosen, processes)
        return Outcome(
            foretold=foretold,
            possible=tuple(deaths(each, processes) for each in near for deaths in (self._deaths, self._two_deaths)),
            is_close=len(near) > 1,
            killed=killed,
            domain=oom.path,
            margin_pages=chosen.margin_pages,
            by_the_kernels_numbers=_agrees(account, oom, {each.pid for each in processes}),
            surprise_pages=self._surprise(account, processes),
            numbers=tuple(f"{self._name(each.pid)} {each}" for each in processes),
        )

    def _start(self, folder: Path, member: Member) -> subprocess.Popen[bytes]:
        arguments = (folder / "cgroup.procs", str(member.adjustment), str(member.size_bytes))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", HOG, *arguments, str(self.trial.step_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _settle(self) -> None:
        """Set the limits, now that it is known what everybody holds."""
        slacks = [*(leaf.slack_bytes for leaf in self.trial.leaves), self.trial.slack_bytes]
        groups = [*(leaf.oom_group for leaf in self.trial.leaves), self.trial.oom_group]
        for folder, slack, group in zip((*self.folders, self.top), slacks, groups, strict=True):
            if self.where.version == 2:
                _write(folder / "memory.swap.max", 0)
                _write(folder / "memory.oom.group", int(group))
            else:
                _write(folder / "memory.swappiness", 0)
            if slack is not None:
                _write(folder / self.where.limit_file, self._usage(folder) + slack)

    def _model(self) -> Memory:
        """Return the model of this machine with the trial's cgroups, from what the kernel shows."""
        shown = procfs.meminfo()
        machine = Machine(shown["MemTotal"], watermarks(procfs.zoneinfo()), shown["SwapTotal"], self.where.version)
        memory = Memory(machine)
        for folder in (self.top, *self.folders):
            limit = (folder / self.where.limit_file).read_text().strip()
            limit_bytes = None if limit == "max" or int(limit) > machine.total_bytes else int(limit)
            memory.add(self._path(folder), MemcgSettings(max_bytes=limit_bytes, swap_max_bytes=0, swappiness=0))
        for folder in self.folders:
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            files = {kind: int(statistics[kind.value]) for kind in (Kind.ACTIVE_FILE, Kind.INACTIVE_FILE)}
            for kind, size in files.items():
                memory.put(self._path(folder), kind, size)
            memory.put(self._path(folder), Kind.ANON, self._usage(folder) - sum(files.values()))
        top = self._path(self.top)
        memory.put(top, Kind.KERNEL, max(0, self._usage(self.top) - memory[top].usage_bytes))
        cached = shown["Active(file)"] + shown["Inactive(file)"]
        memory.put("/", Kind.INACTIVE_FILE, cached)
        memory.put("/", Kind.KERNEL, max(0, memory.free_bytes - shown["MemFree"]))
        return memory

    def _processes(self, growth_bytes: int) -> list[Process]:
        """Return the processes as they will be when memory has run out."""
        if self.trial.slack_bytes is None:
            found = procfs.processes()
        else:
            found = []
            for name, hog in self.hogs.items():
                each = procfs.process(hog.pid, self._path(self.folders[int(name.partition(".")[0])]))
                assert each is not None
                found.append(each)
        return [self._grown(each, growth_bytes) if self._name(each.pid) == self.grower else each for each in found]

    @staticmethod
    def _grown(each: Process, growth_bytes: int) -> Process:
        pages = growth_bytes // PAGE_BYTES
        return Process(
            each.pid,
            each.cgroup,
            each.rss_pages + pages,
            each.swap_pages,
            each.page_table_pages + pages // 512,
            each.oom_score_adj,
        )

    def _provoke(self, foretold: Sequence[str]) -> tuple[str, ...]:
        """Let one process grow until somebody dies; returns all who died of it."""
        watched = {os.pidfd_open(hog.pid): name for name, hog in self.hogs.items()}
        try:
            # It stops by itself when another dies: this process may be kept waiting.
            others = (str(hog.pid) for name, hog in self.hogs.items() if name != self.grower)
            self._tell_grower(f"grow {' '.join(others)}\n".encode())
            died, _, _ = select.select(list(watched), [], [], PATIENCE_SECONDS)
            assert died, "nobody died"
            with suppress(BrokenPipeError):
                self._tell_grower(b"stop\n")
            # A group dies one after another; and a second OOM may follow the first.
            more = died
            while more:
                names = {watched[each] for each in died}
                patience = 0.2 if names.issuperset(foretold) else 3
                more, _, _ = select.select([each for each in watched if each not in died], [], [], patience)
                died += more
        finally:
            for each in watched:
                os.close(each)
        ends = {name: hog.wait() for name, hog in self.hogs.items() if hog.poll() is not None}
        return tuple(sorted(name for name, status in ends.items() if status == -9))

    def _tell_grower(self, word: bytes) -> None:
        stdin = self.hogs[self.grower].stdin
        assert stdin is not None
        stdin.write(word)
        stdin.flush()

    def _surprise(self, account: kmsg.Account | None, processes: Sequence[Process]) -> int | None:
        rss = {each.pid: each.rss_pages for each in account.processes} if account else {}
        (grower,) = (each for each in processes if self._name(each.pid) == self.grower)
        return rss[grower.pid] - grower.rss_pages if grower.pid in rss else None

    def _two_deaths(self, selection: OOMSelection, processes: Sequence[Process]) -> tuple[str, ...]:
        first = self._deaths(selection, processes)
        left = [each for each in processes if self._name(each.pid) not in first]
        then = choose(left, selection.total_pages, selection.domain)
        return first if then is None else tuple(sorted(first + self._deaths(then, left)))

    def _deaths(self, selection: OOMSelection, processes: Sequence[Process]) -> tuple[str, ...]:
        flags = [(self.top, self.trial.oom_group)]
        flags += [(folder, leaf.oom_group) for folder, leaf in zip(self.folders, self.trial.leaves, strict=True)]
        groups = {self._path(folder) for folder, is_set in flags if is_set}
        everybody = kill(selection, processes, groups, cgroup_version=self.where.version).killed
        return tuple(sorted(self._name(each.pid) for each in everybody))

    def _name(self, pid: int) -> str:
        return next((name for name, hog in self.hogs.items() if hog.pid == pid), f"pid {pid}")

    def _path(self, folder: Path) -> str:
        return "/" + str(folder.relative_to(self.where.mount))

    def _usage(self, folder: Path) -> int:
        return int((folder / self.where.usage_file).read_text())


def _near(chosen: OOMSelection, processes: Sequence[Process]) -> list[OOMSelection]:
    """Return the choice, and all others that are too near to it to be told from it beforehand."""
    margin = GLOBAL_MARGIN_PAGES if chosen.domain == "/" else MARGIN_PAGES
    first, *others = rank(processes, chosen.total_pages, chosen.domain)
    near = (first, *(each for each in others if first.points - each.points < margin))
    return [OOMSelection(chosen.domain, chosen.total_pages, each) for each in near]


def _agrees(account: kmsg.Account | None, oom: OutOfMemory, own: set[int]) -> bool | None:
    """Say whether the kernel's own numbers lead to its victim; None where it tells of nothing, or of others."""
    if account is None or account.victim_pid not in {each.pid for each in account.processes} & own:
        return None
    chosen = choose(account.processes, oom.oom_total_pages)
    return chosen is not None and chosen.victim.process.pid == account.victim_pid


def _end(hog: subprocess.Popen[bytes]) -> None:
    hog.kill()
    hog.wait()
    for pipe in (hog.stdin, hog.stdout):
        with suppress(BrokenPipeError):
            pipe.close()


def remove(folder: Path) -> None:
    """Remove a cgroup whose processes have just ended: the kernel may need a moment to see them off."""
    for _ in range(1000):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.02)
    folder.rmdir()


def _write(path: Path, value: int) -> None:
    if path.exists():
        path.write_text(str(value))


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
