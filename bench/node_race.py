"""The race on the real kernel: who is first when a pod takes gigabytes per second and ignores SIGTERM.

One node of 2 GiB runs for many trials. In each a BestEffort pod grows beside a Guaranteed and a Burstable one that hold
what they asked for. The allocator writes down when it had how much; the node, when it noticed, held and killed; both by
the same clock. First a few trials measure how fast the allocator is; `podqos forecast` then says which threshold is
needed, for a reaction of 50 ms; then the race is run with it, with the fast path and without.

With ``--cache`` another pod writes and rereads files all the time: page cache fills the node, and usage stays at the
limit. With ``--allocators 2`` two grow at once; with ``--busy`` other processes want every core.

    bench/node_race.py [--trials 100] [--realtime] [--modes fast,slow] [--cache] [--allocators 2] [--busy]

With ``--against DIRECTORY`` the node of another checkout takes turns with this one, ten trials each, on the same
machine at the same time: what counts then is the ratio of the medians.

    bench/node_race.py --against ../other --trials 100 --threshold 261
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import select
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from real_node import HOLD, MI, NODE, PYTHON, RealNode, pod_document, resources

from podqos.host.linux.capabilities import find_mounts
from podqos.host.linux.cgroupfs import CgroupMemory
from podqos.host.linux.procfs import Procfs

MEMORY_BYTES = 2048 * MI
NEIGHBOURS_MIB = {"guaranteed": 512, "burstable": 256}
WRITER_MIB = 512
REACTION_MS = 50
CALIBRATIONS = 5
TURN = 10
CALIBRATION_THRESHOLD_BYTES = 512 * MI
RATE_GIB = 4.0
LEAST_GIB = 2.0
_HEADER = struct.Struct("qqq")  # process id, go, records
_RECORD = struct.Struct("qq")  # nanoseconds of the monotonic clock, bytes
_FILE_BYTES = 1 << 16
# Two MiB at a time, no faster than told: a core alone would go up to seven GiB a second, and every other way at 2 MiB.
ALLOCATOR = """
import ctypes, mmap, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
shared = memoryview(mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)).cast("q")
kept = mmap.mmap(-1, 4 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
kept.madvise(mmap.MADV_HUGEPAGE)
start, fill = ctypes.addressof(ctypes.c_char.from_buffer(kept)), ctypes.memset
step, now = 2 << 20, time.monotonic_ns
pace = int(step / float(sys.argv[2]) / (1 << 30) * 1e9)
at = count = 0
shared[0] = os.getpid()
while not shared[1]: time.sleep(0.001)
due = now()
while True:
    try: kept.madvise(23, at, step)  # MADV_POPULATE_WRITE
    except OSError: fill(start + at, 1, step)  # refused: a fault of its own waits instead
    at += step
    shared[3 + 2 * count], shared[4 + 2 * count] = now(), at
    count += 1
    shared[2] = count
    due = max(due + pace, now())
    while now() < due: pass
"""
# Writes 64 MiB after 64 MiB into files that are begun again when their turn comes, more than the node has room for, and
# reads one of 64 MiB again and again.
WRITER = """
import os
data = os.urandom(1 << 20)
def write(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for _ in range(64): os.write(file, data)
    return file
again, number = write("again"), 0
while True:
    os.close(write(str(number % 28)))
    os.lseek(again, 0, 0)
    while os.read(again, 1 << 20): pass
    number += 1
"""
BURN = "while True: pass"
# What the node measures itself is written down when it ends, and nothing else is different. The first argument is where
# podqos is, if it is another one.
INSTRUMENTED = """
import atexit, signal, sys, time, msgspec
if sys.argv[1] != "node": sys.path.insert(0, sys.argv.pop(1))
from podqos.host.node import node, world
file, made = sys.argv[sys.argv.index("--state-dir") + 1] + "/reactions", []
start, kill, send, sent = node.Node.start, world.HostWorld.kill, signal.pidfd_send_signal, {}
def started(self):
    made.append(self)
    start(self)
def killed(self, pod):
    times = sent.setdefault(pod.pod.key, [])
    def timed(descriptor, number):
        times.append(time.monotonic())
        send(descriptor, number)
    times.append(time.monotonic())
    signal.pidfd_send_signal = timed
    kill(self, pod)
    signal.pidfd_send_signal = send
def written():
    found = ({**msgspec.to_builtins(each), "sent": sent.get(each.pod, [])[:2]} for each in made[0].world.reactions)
    open(file, "wb").write(msgspec.json.encode(list(found)))
node.Node.start, world.HostWorld.kill = started, killed
atexit.register(written)
from podqos.cli.main import main
sys.exit(main())
"""


class Reaction(msgspec.Struct):
    """What the node wrote down, in seconds of the monotonic clock."""

    pod: str
    noticed: float | None
    held: float
    terminated: float
    killed: float | None = None
    """When everything in the pod had SIGKILL."""
    stopped: float | None = None
    sent: list[float] = []
    """When the kill began, and when the first SIGKILL was sent."""

    @property
    def own_work_ms(self) -> float | None:
        """What the node itself took: up to the hold, and from word that the pod grows on to the first SIGKILL."""
        if self.noticed is None or len(self.sent) < 2:
            return None
        return (self.held - self.noticed + self.sent[1] - self.sent[0]) * 1e3


@dataclass
class Trial:
    """One growth; moments in seconds of the monotonic clock."""

    pod: str
    crossed: float | None
    """When memory fell below the threshold; None if it never did."""
    last_growth: float
    gib_per_second: float
    dead: float
    evicted: bool
    oom_kills: int
    others_hurt: int
    reaction: Reaction | None = None

    @property
    def is_won(self) -> bool:
        """The allocator was evicted, and the kernel had nothing to do."""
        return self.evicted and not self.oom_kills and not self.others_hurt


@dataclass(frozen=True)
class Course:
    """What a race is run on."""

    threshold_bytes: int
    allocators: int = 1
    cache: bool = False
    busy: bool = False
    source: str | None = None
    """Where the node's podqos is, if it is not this one."""


def race(trials: int, course: Course, *options: str, seed: int = 1) -> list[Trial]:
    """Run trials on one node."""
    with RealNode(
        str(MEMORY_BYTES),
        *options,
        program=(sys.executable, "-c", INSTRUMENTED, *([course.source] if course.source else [])),
        evictionHard={"memory.available": str(course.threshold_bytes)},
        evictionPressureTransitionPeriod="1ms",
    ) as node:
        burners = [subprocess.Popen([*PYTHON, BURN]) for _ in range(os.cpu_count() or 1)] if course.busy else []
        try:
            return _race(node, trials, course, random.Random(seed))
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()


def _race(node: RealNode, trials: int, course: Course, chance: random.Random) -> list[Trial]:
    reactions = node.state / "reactions"
    _neighbours(node, course)
    _prefer(node)
    done = [trial for number in range(trials) for trial in _trial(node, number, course, chance)]
    node.end(2)
    by_pod = {each.pod: each for each in msgspec.json.decode(reactions.read_bytes(), type=list[Reaction])}
    for trial in done:
        trial.reaction = by_pod.get(f"default/{trial.pod}")
    return done


def _prefer(node: RealNode) -> None:
    """Let nothing else on this machine slow the allocator down; the agent has no such privilege."""
    mounts = find_mounts(Procfs())
    if "cpu" in mounts.v1:
        (mounts.v1["cpu"] / node.own[1:] / "cpu.shares").write_text("16384")
    elif mounts.v2 is not None:
        (mounts.v2 / node.own[1:] / "cpu.weight").write_text("1600")


def _neighbours(node: RealNode, course: Course) -> None:
    for name, held in NEIGHBOURS_MIB.items():
        asked = f"{held + 32}Mi"
        limits = resources(asked, asked if name == "guaranteed" else None)
        node.put(pod_document(name, *PYTHON, HOLD, str(held), resources=limits))
    for name in NEIGHBOURS_MIB:
        node.wait_for_log(name, "grown")
    if course.cache:
        folder = node.folder / "files"
        folder.mkdir()
        limits = resources(f"{WRITER_MIB}Mi")
        node.put(pod_document("writer", *PYTHON, WRITER, resources=limits, workingDir=str(folder)))
        node.until(lambda: _is_full(node))


def _trial(node: RealNode, number: int, course: Course, chance: random.Random) -> list[Trial]:
    """Start the allocators, let them go together, and see what becomes of each."""
    pods = [f"allocator-{number}-{index}" for index in range(course.allocators)]
    with ExitStack() as stack:
        shared = {pod: stack.enter_context(_shared(f"{node.folder.name}-{pod}")) for pod in pods}
        node.news()
        spec = {"restartPolicy": "Never"}
        for pod, (file, _) in shared.items():
            node.put(pod_document(pod, *PYTHON, ALLOCATOR, file, str(RATE_GIB), spec=spec))
        node.until(lambda: all(_HEADER.unpack_from(memory)[0] for _, memory in shared.values()))
        if course.cache:
            node.until(lambda: _is_full(node))
        time.sleep(chance.uniform(0.05, 0.3))
        return _watched(node, {pod: memory for pod, (_, memory) in shared.items()}, course)


@contextmanager
def _shared(name: str) -> Iterator[tuple[str, mmap.mmap]]:
    file = Path("/dev/shm") / name  # noqa: S108 - the name is ours alone
    file.write_bytes(bytes(_FILE_BYTES))
    try:
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as shared:
            yield str(file), shared
    finally:
        file.unlink()


def _memory(node: RealNode) -> CgroupMemory:
    memory = node.cgroups.memory(node.own)
    assert memory is not None
    return memory


def _is_full(node: RealNode) -> bool:
    """Whether page cache has filled the node."""
    return _memory(node).usage_bytes > MEMORY_BYTES - 128 * MI


def _watched(node: RealNode, shared: Mapping[str, mmap.mmap], course: Course) -> list[Trial]:
    before = _memory(node)
    entries = node.news()
    dead: dict[str, float] = {}
    with ExitStack() as stack:
        descriptors = {os.pidfd_open(_HEADER.unpack_from(memory)[0]): pod for pod, memory in shared.items()}
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        began = time.monotonic()
        for memory in shared.values():
            memory[8:16] = struct.pack("q", 1)
        while len(dead) < len(shared):
            ended = select.select([each for each in descriptors if descriptors[each] not in dead], [], [], 30)[0]
            if not ended:
                raise AssertionError("the allocator is still there after 30 s")
            dead.update((descriptors[each], time.monotonic()) for each in ended)

    def is_over() -> bool:
        entries.extend(node.news())
        return {f"default/{pod}" for pod in shared} <= {entry.pod for entry in entries if entry.kind == "CleanedUp"}

    node.until(is_over)
    for pod in shared:
        node.take_away(pod)
    # Pressure stays until the next look, one second later; BestEffort pods are not let in before.
    time.sleep(1.2)
    entries += node.news()
    # Each two MiB come with a page of page tables.
    crossing_bytes = (MEMORY_BYTES - course.threshold_bytes - before.working_set_bytes) * 512 // 513
    others = {f"default/{other}" for other in (*NEIGHBOURS_MIB, "writer")}
    # With page cache, what is active of it changes meanwhile; of two, neither crosses alone.
    is_told = not course.cache and len(shared) == 1
    found = []
    for pod, memory in shared.items():
        records = _records(memory)
        last_ns, last_bytes = records[-1]
        trial = Trial(
            pod,
            crossed=_moment(records, began, crossing_bytes) if is_told else None,
            last_growth=last_ns / 1e9,
            gib_per_second=last_bytes / (1 << 30) / (last_ns / 1e9 - began),
            dead=dead[pod],
            evicted=any(entry.kind == "Evicted" and entry.pod == f"default/{pod}" for entry in entries),
            oom_kills=sum(entry.kind == "OOMKilled" for entry in entries),
            others_hurt=sum(entry.pod in others for entry in entries),
        )
        found.append(trial)
    return found


def _records(shared: mmap.mmap) -> list[tuple[int, int]]:
    count = _HEADER.unpack_from(shared)[2]
    return [_RECORD.unpack_from(shared, _HEADER.size + index * _RECORD.size) for index in range(count)]


def _moment(records: Sequence[tuple[int, int]], began: float, wanted_bytes: int) -> float | None:
    """Return when the allocator had so much, evenly between two records."""
    before_ns, before_bytes = began * 1e9, 0
    for moment_ns, amount in records:
        if amount >= wanted_bytes:
            share = (wanted_bytes - before_bytes) / (amount - before_bytes)
            return (before_ns + share * (moment_ns - before_ns)) / 1e9
        before_ns, before_bytes = moment_ns, amount
    return None


def recommended(gib_per_second: float) -> int:
    """Return the hard threshold that ``podqos forecast`` names for a node that looks at once and needs 50 ms."""
    with RealNode(str(MEMORY_BYTES)) as node:
        for name, held in NEIGHBOURS_MIB.items():
            asked = f"{held + 32}Mi"
            limits = resources(asked, asked if name == "guaranteed" else None)
            node.put(pod_document(name, "true", resources=limits))
        node.put(pod_document("allocator", "true"))
        usage = node.folder / "usage.csv"
        rows = [f"{name},{held}Mi" for name, held in {**NEIGHBOURS_MIB, "allocator": 8}.items()]
        usage.write_text("\n".join(["pod,memory", *rows]) + "\n")
        command = [
            *NODE, "forecast", "-f", str(node.manifests), "--usage", str(usage), "--node-memory", str(MEMORY_BYTES),
            "--growing", "allocator", "--rate", f"{round(gib_per_second * 1024)}Mi/s", "--interval", "1ms",
            "--reaction", f"{REACTION_MS}ms", "--win", "99", "--cgroup", node.cgroups.version.value, "-o", "json",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
    (growth,) = msgspec.json.decode(done.stdout)["growths"]
    found: int = growth["needed"]["evictionHardBytes"]
    return found


def report(title: str, trials: Sequence[Trial]) -> None:
    """Print what came of a series, and of those of its trials in which the allocator was as fast as it should be."""
    _report(title, trials)
    fast = [trial for trial in trials if trial.gib_per_second >= LEAST_GIB]
    if fast and len(fast) < len(trials):
        _report(f"  of these at {LEAST_GIB:g} GiB/s or more", fast)
    for trial in trials:
        if not trial.is_won and sum(each.is_won for each in trials) > len(trials) // 2:
            print(f"  lost: {trial}")


def _report(title: str, trials: Sequence[Trial]) -> None:
    won = sum(trial.is_won for trial in trials)
    kills = sum(trial.oom_kills for trial in trials)
    hurt = sum(trial.others_hurt for trial in trials)
    rates = sorted(trial.gib_per_second for trial in trials)
    print(f"{title}: {won} of {len(trials)} won, {kills} kernel kills, {hurt} neighbours hurt")
    print(f"  allocator: median {statistics.median(rates):.2f} GiB/s, least {rates[0]:.2f}, most {rates[-1]:.2f}")
    for name, found in _times(trials).items():
        p90, p99 = (found[-(-share * len(found) // 100) - 1] for share in (90, 99))
        middle = statistics.median(found)
        print(f"  {name}: median {middle:.2f} ms, p90 {p90:.2f}, p99 {p99:.2f}, worst {found[-1]:.2f} ms")


def _times(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Return what took how many milliseconds, in order; without what was not measured."""
    quick = [trial for trial in trials if trial.reaction is not None and trial.crossed is not None]
    told = [trial.reaction for trial in trials if trial.reaction is not None and trial.reaction.noticed is not None]
    times = (
        ("crossing to notice", [_ms(t.crossed, t.reaction.noticed) for t in quick]),
        ("crossing to hold", [_ms(t.crossed, t.reaction.held) for t in quick]),
        ("crossing to kill", [_ms(t.crossed, t.reaction.killed) for t in quick]),
        ("crossing to last growth", [_ms(t.crossed, t.last_growth) for t in quick]),
        ("crossing to death", [_ms(t.crossed, t.dead) for t in quick]),
        ("notice to hold", [_ms(each.noticed, each.held) for each in told]),
        ("notice to SIGKILL", [_ms(each.noticed, each.sent[1]) for each in told if each.sent[1:]]),
        ("notice to kill", [_ms(each.noticed, each.killed) for each in told]),
        ("the node's own work of that", [each.own_work_ms for each in told]),
    )
    measured = {name: sorted(value for value in values if value is not None) for name, values in times}
    return {name: found for name, found in measured.items() if found}


def compare(trials: int, course: Course, source: str, *options: str, seed: int) -> None:
    """Let the nodes of two checkouts take turns, and print how their medians relate."""
    courses = replace(course, source=source), course
    found: tuple[list[Trial], list[Trial]] = [], []
    for turn in range(-(-trials // TURN)):
        for each, done in zip(courses, found, strict=True):
            done.extend(race(min(TURN, trials - turn * TURN), each, *options, seed=seed + turn))
    for title, done in zip((source, "this checkout"), found, strict=True):
        report(title, done)
    before, after = map(_times, found)
    print(f"this checkout against {source}, medians:")
    for name in (name for name in before if name in after):
        old, new = statistics.median(before[name]), statistics.median(after[name])
        print(f"  {name}: {old:.2f} → {new:.2f} ms, × {new / old:.2f}")


def _ms(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else (end - start) * 1e3


def main() -> None:
    """Measure the rate, ask for the threshold, run the race."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--realtime", action="store_true", help="the node with --realtime as well")
    parser.add_argument("--modes", default="fast,slow", help="of fast, slow")
    parser.add_argument("--cache", action="store_true", help="beside a pod that writes and rereads files")
    parser.add_argument("--allocators", type=int, default=1, help="how many grow at once")
    parser.add_argument("--busy", action="store_true", help="while other processes want every core")
    parser.add_argument("--threshold", type=int, help="MiB, as an earlier run found it; then the rate is not measured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against", metavar="DIRECTORY", help="another checkout, whose node takes turns with this one")
    arguments = parser.parse_args()
    options = ["--realtime"] if arguments.realtime else []
    if arguments.threshold:
        threshold_bytes = arguments.threshold * MI
    else:
        first = race(CALIBRATIONS, Course(CALIBRATION_THRESHOLD_BYTES), *options)
        report(f"threshold {CALIBRATION_THRESHOLD_BYTES // MI} MiB, to learn the rate", first)
        threshold_bytes = recommended(max(RATE_GIB, *(trial.gib_per_second for trial in first)))
        print(f"podqos forecast: memory.available<{threshold_bytes / MI:.0f}Mi")
    course = Course(threshold_bytes, arguments.allocators, arguments.cache, arguments.busy)
    if arguments.against:
        source = str(Path(arguments.against, "src").resolve(strict=True))
        compare(arguments.trials, course, source, *options, seed=arguments.seed)
        return
    for mode in arguments.modes.split(","):
        chosen = [*options, "--no-fast-path"] if mode == "slow" else options
        report(f"{mode} {' '.join(chosen)}", race(arguments.trials, course, *chosen, seed=arguments.seed))


if __name__ == "__main__":
    main()
