"""The race beside a real kubelet: pods that take memory as fast as the machine gives it, with the guard and without.

Each race has its own cast: who grows, who holds how much, classes, priorities and requests differ, and so does which
pod is the right one by the kubelet's ranking; it follows from the cast, not from podqos. The same casts are run without
the guard (kubelet and kernel alone), with ``guard run --enforce``, and so on, side by side. A race is won when exactly
the right pods are Failed and Evicted with DisruptionTarget, the kernel killed nothing and nothing was restarted.

When the threshold was crossed is known from what the growing processes wrote down, when the victim died from its pidfd,
what the kernel did from its log: by none of these is the guard asked. Only the moment of the kill is its own word.

    PODQOS_TEST_KUBELET=kubeconfig PODQOS_TEST_IMAGE=image bench/guard_race.py [--races 50] [--seed 1]
        [--modes alone,patch,answer,shadow,kubelet] [--save results.jsonl]

Modes: ``alone`` without the guard; ``patch`` and ``answer`` with it, by ``--kill-after``; ``shadow`` with a guard that
only says what it would do; ``kubelet`` without the guard, growing to just below the limit and waiting for the kubelet:
whether the cast's right pod is the kubelet's, too (45 s each). kubepods must have
2Gi and a hard threshold of 300Mi or so.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import select
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
from real_kubelet import MANNERS, MI, Guard, Member, RealKubelet

from podqos.model.quantity import Quantity

Pod = Mapping[str, Any]

LIMIT_MIB = 2048
BEYOND_MIB = 2600
"""More than kubepods has."""
MODES = ("alone", "patch", "answer", "shadow", "kubelet")
GUARD_OPTIONS = {
    "patch": ["--enforce", "--kill-after", "patch"],
    "answer": ["--enforce", "--kill-after", "answer"],
    "shadow": ["--shadow"],
}
SETTLED_SECONDS = 25
"""A kubelet's figures of pods are up to 15 s old."""
UNLIMITED = ("--most", "100000/1h", "--cool-down", "0s")
"""Races follow each other faster than a node should lose pods."""


class Cast(msgspec.Struct):
    """The pods of one race, and those that have to go, in this order."""

    title: str
    members: list[Member]
    right: list[str]
    manner: str = "populate"


class Trial(msgspec.Struct):
    """One race; moments in seconds of the monotonic clock."""

    mode: str
    number: int
    title: str
    manner: str
    right: list[str]
    crossed: float | None
    last_growth: float
    gib_per_second: float
    died: dict[str, float]
    """When the first process of a pod ended."""
    killed: dict[str, float] = {}
    """When the guard killed, by its own word."""
    noticed: dict[str, float] = {}
    would_evict: list[str] = []
    evicted: list[str] = []
    """Failed, Evicted, with DisruptionTarget and a message, and one Event or more."""
    oom_killed: list[str] = []
    restarted: list[str] = []
    hurt: list[str] = []
    """Pods that are neither right nor whole."""
    faults: int = 0
    told_twice: list[str] = []
    """Pods with an Event of the guard's and one of the kubelet's."""
    load: float = 0.0
    """Of the machine, the last minute before."""
    wrong: str = ""

    @property
    def is_won(self) -> bool:
        """Exactly the right pods were evicted, and the kernel had nothing to do."""
        spared = not (self.oom_killed or self.restarted or self.hurt or self.wrong)
        return spared and sorted(self.evicted) == sorted(self.right)


# ---- casts -----------------------------------------------------------------------------------------------------------


def _best_effort(chance: random.Random) -> Cast:
    """Let a pod that asked for nothing take everything."""
    return Cast("BestEffort grows", [*_quiet_ones(chance), Member("grower", grows_to_mib=BEYOND_MIB)], ["grower"])


def _beside_large_within_request(chance: random.Random) -> Cast:
    """Give the largest pod what it asked for."""
    large = chance.randrange(900, 1100)
    members = [
        Member("large", request_mib=large + 60, holds_mib=large),
        Member("grower", holds_mib=chance.randrange(1, 100), grows_to_mib=BEYOND_MIB),
    ]
    return Cast("BestEffort grows beside a larger one within its request", members, ["grower"])


def _by_priority(chance: random.Random) -> Cast:
    """Let a Burstable pod grow beyond its request beside a BestEffort one that is more important."""
    members = [
        Member("important", priority=chance.choice([10, 1000, 90000]), holds_mib=chance.randrange(300, 600)),
        Member("grower", request_mib=chance.randrange(50, 300), grows_to_mib=BEYOND_MIB),
        Member("sure", request_mib=200, is_guaranteed=True, cpu_milli=300, holds_mib=chance.randrange(50, 150)),
    ]
    return Cast("Burstable grows beside a BestEffort one of higher priority", members, ["grower"])


def _by_excess(chance: random.Random) -> Cast:
    """Let one of two that are above their requests grow."""
    asked = chance.randrange(300, 500)
    members = [
        Member("above", request_mib=asked, holds_mib=asked + chance.randrange(50, 150)),
        Member("grower", request_mib=chance.randrange(50, 200), grows_to_mib=BEYOND_MIB),
    ]
    return Cast("Burstable grows beside another above its request", members, ["grower"])


def _least_important_holds(chance: random.Random) -> Cast:
    """Let a pod grow that has room once the least important one is gone."""
    held = chance.randrange(600, 720)
    sure = chance.randrange(120, 220)
    members = [
        Member(
            "holder", priority=-chance.choice([1, 50, 90000]), request_mib=chance.randrange(32, 200), holds_mib=held
        ),
        Member("sure", request_mib=sure + 40, is_guaranteed=True, cpu_milli=300, holds_mib=sure),
        Member("grower", grows_to_mib=LIMIT_MIB + 100 - held - sure),
    ]
    return Cast("BestEffort grows, a Burstable one of lower priority holds", members, ["holder"])


def _guaranteed_grows(chance: random.Random) -> Cast:
    """Let a Guaranteed pod take what it was promised, so that a BestEffort one has to make room."""
    held = chance.randrange(560, 640)
    kept = chance.randrange(340, 400)
    members = [
        Member("holder", holds_mib=held),
        Member("within", request_mib=kept + 40, holds_mib=kept),
        Member(
            "grower",
            request_mib=1160,
            is_guaranteed=True,
            cpu_milli=1000,
            grows_to_mib=min(LIMIT_MIB + 80 - held - kept, 1130),
        ),
    ]
    return Cast("Guaranteed grows within its limit, BestEffort holds", members, ["holder"])


def _two_grow(chance: random.Random) -> Cast:
    """Let two grow at once; with the larger one gone the other has room."""
    lead = chance.randrange(500, 700)
    members = [
        *_quiet_ones(chance),
        Member("grower", holds_mib=lead, grows_to_mib=BEYOND_MIB),
        Member("second", grows_to_mib=chance.randrange(150, 300)),
    ]
    return Cast("two BestEffort grow at once", members, ["grower"])


def _several_containers(chance: random.Random) -> Cast:
    """Let one container of several grow; all of them have to go."""
    grower = Member("grower", containers=chance.randrange(2, 4), grows_to_mib=BEYOND_MIB)
    return Cast("one of several containers grows", [*_quiet_ones(chance), grower], ["grower"])


def _small_one_first(chance: random.Random) -> Cast:
    """Let the least important pod free so little that the one that grows has to follow."""
    members = [
        *_quiet_ones(chance),
        Member("small", priority=-chance.choice([1, 50, 90000]), holds_mib=chance.randrange(20, 80)),
        Member("grower", request_mib=chance.randrange(30, 100), grows_to_mib=BEYOND_MIB),
    ]
    return Cast("a small one of lower priority first, then the Burstable one that grows", members, ["small", "grower"])


def _quiet_ones(chance: random.Random) -> list[Member]:
    sure, within = chance.randrange(100, 400), chance.randrange(50, 300)
    return [
        Member("sure", request_mib=sure + 40, is_guaranteed=True, cpu_milli=300, holds_mib=sure),
        Member("within", priority=chance.choice([-5, 0, 70]), request_mib=within + 40, holds_mib=within),
    ]


CASTS: tuple[Callable[[random.Random], Cast], ...] = (
    _best_effort,
    _by_priority,
    _least_important_holds,
    _several_containers,
    _by_excess,
    _guaranteed_grows,
    _beside_large_within_request,
    _two_grow,
    _small_one_first,
)


def casts(races: int, seed: int) -> Iterator[Cast]:
    """Yield the races in turn; the same seed gives the same ones."""
    chance = random.Random(seed)
    for make in itertools.islice(itertools.cycle(CASTS), races):
        cast = make(chance)
        cast.manner = chance.choice(MANNERS)
        for member in cast.members:
            member.manner = cast.manner
        yield cast


# ---- races -----------------------------------------------------------------------------------------------------------


def series(kubelet: RealKubelet, mode: str, races: Sequence[Cast], keep: Callable[[Trial], None]) -> list[Trial]:
    """Run races one after the other; what became of one is judged when the next has its pods."""
    started = Guard(kubelet, *GUARD_OPTIONS[mode], *UNLIMITED) if mode in GUARD_OPTIONS else nullcontext()
    done: list[Trial] = []
    judge: Callable[[], Trial] | None = None
    with started as guard:
        try:
            for number, cast in enumerate(races):
                rename(cast, f"{mode}-{number}")
                kubelet.start(cast.members)
                if judge is not None:
                    done.append(judge())
                judge = _race(kubelet, mode, number, cast, guard)
            if judge is not None:
                done.append(judge())
        finally:
            print()
            if guard is not None:
                # An eviction is over for the guard when nothing has started in the pod for two seconds.
                time.sleep(3)
                entries = guard.journal("Reported", "WouldEvict")
                for trial in done:
                    _listen(trial, entries)
            for trial in done:
                keep(trial)
    return done


def rename(cast: Cast, prefix: str) -> None:
    """Give the pods names that no other race has."""
    for member in cast.members:
        member.name = f"{prefix}-{member.name}"
    cast.right = [f"{prefix}-{name}" for name in cast.right]


def _race(kubelet: RealKubelet, mode: str, number: int, cast: Cast, guard: Guard | None) -> Callable[[], Trial]:
    """Let them grow; return what judges it."""
    kubelet.kernel_kills()
    faults, load = guard.major_faults if guard else 0, os.getloadavg()[0]
    targets = {member.name: member.grows_to_mib * MI for member in cast.members if member.grows_to_mib}
    if mode == "kubelet":
        targets = _settled(kubelet, cast, targets)
    before = kubelet.working_set_bytes
    began = time.monotonic()
    died = _grow(cast, targets, mode)
    records = sorted(record for member in cast.members for record in _gains(member, began))
    trial = Trial(
        mode,
        number,
        cast.title,
        cast.manner,
        cast.right,
        crossed=_crossing(records, kubelet.limit_bytes - threshold_bytes(kubelet) - before),
        last_growth=records[-1][0] if records else began,
        gib_per_second=sum(gained for _, gained in records) / (1 << 30) / (records[-1][0] - began) if records else 0,
        died=died,
        faults=guard.major_faults - faults if guard else 0,
        load=load,
        wrong="" if died else "nothing happened",
    )
    pods = kubelet.pods()
    touched = [member for member in cast.members if member.name in {*trial.right, *died}]
    whole = [member for member in cast.members if member not in touched]
    trial.hurt = [name for name in died if name not in trial.right]
    trial.hurt += [
        each.name for each in whole if _restarts(pods[each.name]) or pods[each.name]["status"]["phase"] != "Running"
    ]
    kubelet.end(whole)

    def judge() -> Trial:
        _judge(kubelet, trial, touched)
        trial.oom_killed = [name for path in kubelet.kernel_kills() for name in owners(path, cast.members)]
        kubelet.end(touched)
        # Before the next one begins, nothing of this one is left.
        gone = {member.uid for member in cast.members}
        kubelet.until(lambda: not kubelet.has_processes(gone), 60, 0.1)
        print("." if trial.is_won else "x", end="", flush=True)
        return trial

    return judge


def _settled(kubelet: RealKubelet, cast: Cast, targets: Mapping[str, int]) -> dict[str, int]:
    """Let them grow to just above the threshold and wait until the kubelet's figures are fresh; return what is left."""
    room = kubelet.limit_bytes - threshold_bytes(kubelet) - kubelet.working_set_bytes - 30 * MI
    last = ""
    for member in sorted(cast.members, key=lambda each: targets.get(each.name, 0)):
        if member.name in targets:
            has = member.memory[0].has_bytes
            now = min(targets[member.name], has + room)
            room -= now - has
            member.memory[0].grow(now)
            last = member.name
    time.sleep(SETTLED_SECONDS)
    (grower,) = (member for member in cast.members if member.name == last)
    return {last: grower.memory[0].has_bytes + 150 * MI}


def _grow(cast: Cast, targets: Mapping[str, int], mode: str) -> dict[str, float]:
    """Let those that grow go together, and return when which pod lost a process."""
    died: dict[str, float] = {}
    watched = {descriptor: member.name for member in cast.members for descriptor in member.pidfds}
    for member in cast.members:
        if member.name in targets:
            member.memory[0].grow(targets[member.name])
    end = time.monotonic() + (45 if mode == "kubelet" else 30)
    while watched and not _is_over(mode, died, cast.right) and time.monotonic() < end:
        for descriptor in select.select(list(watched), [], [], 0.2)[0]:
            died.setdefault(watched.pop(descriptor), time.monotonic())
    return died


def _is_over(mode: str, died: dict[str, float], right: Sequence[str]) -> bool:
    if mode in {"patch", "answer", "kubelet"}:
        return set(right) <= set(died)
    # One kill of the kernel may be followed by another.
    return bool(died) and time.monotonic() > max(died.values()) + 0.5


def _gains(member: Member, began: float) -> Iterator[tuple[float, int]]:
    """Yield when a pod had how much more since the beginning."""
    for memory in member.memory:
        earlier = 0
        for moment, amount in memory.records():
            if moment >= began:
                yield moment, amount - earlier
            earlier = amount


def _crossing(gains: Sequence[tuple[float, int]], wanted_bytes: int) -> float | None:
    """Return when all of them together had so much; each two MiB come with a page of page tables.

    What is stopped within a step does not write it down: then it was the last one.
    """
    total = 0
    for moment, gained in gains:
        total += gained * 513 // 512
        if total >= wanted_bytes:
            return moment
    return gains[-1][0] if gains and total >= wanted_bytes - 6 * MI else None


def owners(path: str, members: Sequence[Member]) -> list[str]:
    """Return the pod whose cgroup that is; if it is none of them, the path."""
    return [member.name for member in members if member.uid in path.replace("_", "-")] or [path]


def _judge(kubelet: RealKubelet, trial: Trial, touched: Sequence[Member]) -> None:
    """Wait until the API server shows what became of the pods, and write it down."""
    if trial.mode in {"patch", "answer", "kubelet"}:
        # The kubelet's last word; a restart would come within 1.3 s.
        _patiently(lambda: set(trial.right) <= set(_evicted(kubelet)), 15)
        time.sleep(max(0, max(trial.died.values(), default=0) + 1.5 - time.monotonic()))
    else:
        _patiently(
            lambda: all(
                _restarts(pod) or is_evicted(pod) for name, pod in kubelet.pods().items() if name in trial.died
            ),
            15,
        )
    pods = kubelet.pods()
    events = kubelet.events()
    for member in touched:
        pod = pods.get(member.name)
        if pod is None:
            trial.hurt.append(member.name)
            continue
        if is_evicted(pod):
            trial.evicted.append(member.name)
            told_by = event_sources(events, member.uid)
            if not told_by:
                trial.wrong = f"no Event for {member.name}"
            if len(told_by) > 1:
                trial.told_twice.append(member.name)
        elif trial.mode in {"patch", "answer"}:
            trial.wrong = f"{member.name} is {pod['status']}"
        # By what ran: a kubelet counts one more where it no longer finds the container of a pod that is over.
        if any(memory.starts > 1 for memory in member.memory):
            trial.restarted.append(member.name)


def _listen(trial: Trial, entries: Sequence[Any]) -> None:
    """Take over what the guard says, in the time of the monotonic clock."""
    offset = time.time() - time.monotonic()
    for entry in entries:
        name = (entry.get("pod") or "").partition("/")[2]
        because = entry.get("because") or {}
        if not name.startswith(f"{trial.mode}-{trial.number}-"):
            continue
        if entry["kind"] == "WouldEvict" and name not in trial.would_evict:
            trial.would_evict.append(name)
        if entry["kind"] == "Reported":
            if because.get("killedUs"):
                trial.killed[name] = because["killedUs"] / 1e6 - offset
            if because.get("noticedUs"):
                trial.noticed[name] = because["noticedUs"] / 1e6 - offset


def _patiently(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def _evicted(kubelet: RealKubelet) -> list[str]:
    return [name for name, pod in kubelet.pods().items() if is_evicted(pod)]


def is_evicted(pod: Pod) -> bool:
    """Whether this is how a kubelet leaves a pod that it has evicted, with nothing that runs."""
    status = pod["status"]
    target = [each for each in status.get("conditions", []) if each["type"] == "DisruptionTarget"]
    return (
        status["phase"] == "Failed"
        and status.get("reason") == "Evicted"
        and "The node was low on resource: memory" in status.get("message", "")
        and [(each["status"], each["reason"]) for each in target] == [("True", "TerminationByKubelet")]
        and all("terminated" in each["state"] for each in status.get("containerStatuses", []))
    )


def event_sources(events: Sequence[Mapping[str, Any]], uid: str) -> set[str]:
    """Return who has posted an Event of a pod's eviction."""
    about = (each for each in events if each["reason"] == "Evicted" and each["involvedObject"].get("uid") == uid)
    return {each["source"].get("component", "") for each in about}


def _restarts(pod: Pod) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))


def threshold_bytes(kubelet: RealKubelet) -> int:
    """Return the kubelet's hard threshold; that of all pods together is the same."""
    return Quantity.parse(kubelet.config["evictionHard"]["memory.available"]).value


# ---- report ----------------------------------------------------------------------------------------------------------


def report(mode: str, trials: Sequence[Trial]) -> None:
    """Print what came of a series."""
    won = sum(trial.is_won for trial in trials)
    evicted = sum(sorted(trial.evicted) == sorted(trial.right) for trial in trials)
    oom = sum(bool(trial.oom_killed) for trial in trials)
    restarted = sum(bool(trial.restarted) for trial in trials)
    wrong = sum(bool(trial.hurt) or bool(set(trial.evicted) - set(trial.right)) for trial in trials)
    rates = sorted(trial.gib_per_second for trial in trials)
    print(
        f"{mode}: {won} of {len(trials)} won; right pod Evicted in {evicted}, kernel OOM in {oom}, a restart in"
        f" {restarted}, a wrong pod in {wrong}; {sum(trial.faults for trial in trials)} major faults of the guard"
    )
    loads = sorted(trial.load for trial in trials)
    twice = sum(bool(trial.told_twice) for trial in trials)
    print(f"  load {loads[0]:.1f} to {loads[-1]:.1f}; guard and kubelet both posted an Event in {twice}")
    print(f"  growth: median {statistics.median(rates):.2f} GiB/s, least {rates[0]:.2f}, most {rates[-1]:.2f}")
    told = [trial for trial in trials if trial.crossed is not None]
    for title, values in (
        ("crossing to notice", [_ms(t.crossed, t.noticed.get(t.right[0])) for t in told]),
        ("notice to kill", [_ms(t.noticed.get(t.right[0]), t.killed.get(t.right[0])) for t in told]),
        ("crossing to kill", [_ms(t.crossed, t.killed.get(t.right[0])) for t in told]),
        ("crossing to death", [_ms(t.crossed, t.died.get(t.right[0])) for t in told]),
        ("crossing to last growth", [_ms(t.crossed, t.last_growth) for t in told if t.right[-1].endswith("grower")]),
    ):
        found = sorted(value for value in values if value is not None)
        if found:
            p90, p99 = (found[-(-share * len(found) // 100) - 1] for share in (90, 99))
            middle = statistics.median(found)
            spread = f"p90 {p90:.2f}, p99 {p99:.2f}, worst {found[-1]:.2f} ms"
            print(f"  {title}: median {middle:.2f} ms, {spread} ({len(found)} races)")
    if mode == "shadow":
        same = sum(trial.would_evict[:1] == trial.right[:1] for trial in trials)
        kernel = sum(bool(set(trial.oom_killed) & set(trial.right)) for trial in trials)
        print(
            f"  the guard would have evicted the right pod first in {same}; the kernel killed a right one in {kernel}"
        )
    for trial in trials:
        if mode in {"patch", "answer", "kubelet"} and not trial.is_won:
            print(f"  lost: {trial}")


def _ms(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else (end - start) * 1e3


def main() -> None:
    """Run the modes, each with the same casts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=50)
    parser.add_argument("--modes", default="alone,patch", help="of " + ", ".join(MODES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="casts whose title has this")
    parser.add_argument("--save", type=Path, help="append a JSON line per race")
    arguments = parser.parse_args()
    if unknown := set(arguments.modes.split(",")) - set(MODES):
        parser.error(f"unknown mode: {', '.join(sorted(unknown))}")

    def keep(trial: Trial) -> None:
        if arguments.save is not None:
            with arguments.save.open("ab") as file:
                file.write(msgspec.json.encode(trial) + b"\n")

    with RealKubelet() as kubelet:
        for mode in arguments.modes.split(","):
            chosen = [cast for cast in casts(arguments.races, arguments.seed) if arguments.only in cast.title]
            report(mode, series(kubelet, mode, chosen, keep))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
