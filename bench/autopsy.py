"""How fast ``podqos autopsy`` reads: a gigabyte of syslog with three OOMs, at 100 MB/s or more and within 100 MB.

Lines of the kubelet, containerd, systemd, sshd, nginx and of the kernel itself lie between the reports and inside them;
no two are the same. ``--reports`` measures a log of 2,000 reports and nothing else (at least 500 a second), ``--hostile``
50 MB of each kind of ``hostile_logs``: each ends within a minute, and says what was not read. `grep` for one word and bare
reading show what the machine gives in the same run.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from history import record
from hostile_logs import HOSTILE

PODQOS = str(Path(sys.executable).with_name("podqos"))
OOMS, REPORTS = 3, 2000
MB = 10**6
ROUNDS = 3
READ = "import sys\nwith open(sys.argv[1], 'rb', buffering=0) as file:\n    while file.read(1 << 18): pass"
# ruff: noqa: E501 - lines as they are logged
OTHERS = (
    'kubelet[{a}]: I0105 15:19:{s:02d}.{b:06d}    {a} kubelet.go:2407] "SyncLoop (PLEG): event for pod" pod="shop/web-{h}" event={{"Type":"ContainerStarted","Data":"{h}{h}"}}',
    'kubelet[{a}]: I0105 15:19:{s:02d}.{b:06d}    {a} kuberuntime_manager.go:1120] "oom_score_adj computed" pod="shop/api-{h}" oomScoreAdj={s} requestBytes={b}',
    'containerd[{a}]: time="2026-01-05T15:19:{s:02d}.{b:06d}Z" level=info msg="StopContainer for \\"{h}{h}\\" returns successfully" pid={a}',
    "systemd[1]: Started session-{a}.scope - Session {b} of user deploy.",
    "sshd[{a}]: Accepted publickey for deploy from 10.{s}.{s}.7 port {a} ssh2: ED25519 SHA256:{h}{h}",
    'nginx: 10.{s}.{s}.9 - - [05/Jan/2026:15:19:{s:02d} +0000] "GET /articles/{b}?session={h} HTTP/1.1" 200 {a} "-" "Mozilla/5.0 (X11; Linux x86_64)"',
    "kernel: [{b}.{a:06d}] eth0: renamed from veth{h}",
    'kernel: [{b}.{a:06d}] audit: type=1400 audit({b}.{s}:{a}): apparmor="DENIED" operation="ptrace" comm="process-{h}"',
    "java[{a}]: [GC ({h})] Out of heap, memory process killed {b}K->{a}K, {s} groups reaped",
)  # fmt: skip
COMMANDS = ("java", "nginx", "python3", "node", "postgres", "redis-server", "envoy", "sh", "worker process", "php-fpm")


def generate(path: Path, size: int, seed: int = 7) -> None:
    """Write a log of about that many bytes."""
    draw = random.Random(seed)
    with path.open("w", buffering=1 << 20) as file:
        for number in range(OOMS):
            written = 0
            while written < size // OOMS:
                text = "".join(_other(draw, number) for _ in range(200))
                written += file.write(text)
            for line in _report(draw, number):
                file.write(
                    f"Jan  5 15:19:{number % 60:02d} node-1 kernel: [{number}.{draw.randrange(10**6):06d}] {line}\n"
                )
                if draw.random() < 0.1:
                    file.write(_other(draw, number))


def _other(draw: random.Random, second: int) -> str:
    bits = draw.getrandbits(64)
    line = OTHERS[bits % len(OTHERS)].format(a=bits & 0xFFFF, b=bits >> 40, s=bits % 60, h=f"{bits:016x}")
    return f"Jan  5 15:19:{second % 60:02d} node-1 {line}\n"


def _report(draw: random.Random, number: int) -> Iterator[str]:
    """Yield a report of one of three kinds, whose victim is the task with the highest badness."""
    uid = f"{draw.getrandbits(128):032x}"
    uid = f"{uid[:8]}_{uid[8:12]}_{uid[12:16]}_{uid[16:20]}_{uid[20:]}"
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    container = f"{pod}/cri-containerd-{draw.getrandbits(256):064x}.scope"
    limit_pages = draw.randrange(50_000, 2_000_000)
    tasks = [
        (pid, draw.randrange(100, limit_pages // 40), draw.randrange(2, 1000), draw.choice(COMMANDS))
        for pid in sorted(draw.sample(range(2, 4_000_000), draw.randrange(20, 120)))
    ]
    scores = [rss + limit_pages * adj // 1000 for _, rss, adj, _ in tasks]
    pid, rss, adj, name = tasks[scores.index(max(scores))]
    ran_out = ("", pod, container)[number % 3]
    yield f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={adj}"
    yield f"CPU: {number % 64} PID: {pid} Comm: {name} Not tainted 6.1.0-{number}-amd64 #1  Debian 6.1.{number}-1"
    yield "Call Trace:"
    yield from (f" frame_{draw.getrandbits(24):x}+0x{number:x}/0x{draw.getrandbits(12):x}" for _ in range(25))
    if ran_out:
        yield f"memory: usage {limit_pages * 4}kB, limit {limit_pages * 4}kB, failcnt {draw.randrange(10**6)}"
        yield "swap: usage 0kB, limit 0kB, failcnt 0"
        yield f"Memory cgroup stats for {ran_out}:"
        yield from (f"stat_{index} {draw.getrandbits(40)}" for index in range(40))
    else:
        yield f"Node 0 Normal free:{number + 9}kB boost:0kB min:{number + 10}kB low:20kB high:30kB present:{limit_pages * 4}kB"
        yield f"Node 0 Normal: {number}*4kB (M) 3*8kB (U) = {number * 4 + 24}kB"
        yield "Total swap = 0kB"
        yield f"{limit_pages} pages RAM"
        yield "0 pages reserved"
    yield "Tasks state (memory values in pages):"
    yield "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    yield from (
        f"[{pid:7d}]  1000 {pid:5d} {rss * 2:8d} {rss:8d} {0:8d} {0:8d} {adj:13d} {name}"
        for pid, rss, adj, name in tasks
    )
    where = f"oom_memcg={ran_out}" if ran_out else "global_oom"
    kind = "MEMCG" if ran_out else "NONE"
    yield (
        f"oom-kill:constraint=CONSTRAINT_{kind},nodemask=(null),cpuset=/,mems_allowed=0,{where},task_memcg={container},"
        f"task={name},pid={pid},uid=1000"
    )
    yield (
        f"{'Memory cgroup out' if ran_out else 'Out'} of memory: Killed process {pid} ({name}) total-vm:{rss * 8}kB, "
        f"anon-rss:{rss * 4}kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:0kB oom_score_adj:{adj}"
    )
    yield f"oom_reaper: reaped process {pid} ({name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"


def _run(command: list[str]) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - started, done.stdout


def main() -> None:
    """Generate, measure in turns, print and keep the best of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--reports", action="store_true", help="measure a log of nothing but reports")
    parser.add_argument("--hostile", action="store_true", help="measure logs that nobody wrote for it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "syslog"
        if arguments.hostile:
            _measure_hostile(path)
        elif arguments.reports:
            _measure_reports(path)
        else:
            generate(path, arguments.megabytes * MB)
            _measure(path)


def _measure(path: Path) -> None:
    size = path.stat().st_size
    ours = [PODQOS, "autopsy", str(path), "-o", "csv"]
    commands = (ours, ["grep", "-c", "Killed process", str(path)], [sys.executable, "-c", READ, str(path)])
    rounds = [[_run(command) for command in commands] for _ in range(ROUNDS)]
    rows = list(csv.DictReader(io.StringIO(rounds[0][0][1])))
    assert len(rows) == OOMS, len(rows)
    mine, grep, read = (min(each[index][0] for each in rounds) for index in range(len(commands)))
    # The largest of all children; the others are small.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{size / MB:.0f} MB, {len(rows)} OOMs")
    print(
        f"podqos autopsy  {mine:6.2f} s  {size / MB / mine:6.0f} MB/s (target 100), peak {peak / MB:.0f} MB (target 100)"
    )
    print(f"grep -c         {grep:6.2f} s  {size / MB / grep:6.0f} MB/s: ratio {mine / grep:.2f}")
    print(f"bare reading    {read:6.2f} s  {size / MB / read:6.0f} MB/s: ratio {mine / read:.2f}")
    record("autopsy, 1 GB of syslog / grep -c", mine / grep, "ratio")
    record("autopsy, 1 GB of syslog", mine, "s")
    record("autopsy, 1 GB of syslog, peak memory", peak, "bytes")


def _measure_reports(path: Path) -> None:
    draw = random.Random(7)
    with path.open("w") as file:
        for number in range(REPORTS):
            file.writelines(f"Jan  5 15:19:{number % 60:02d} node-1 kernel: {line}\n" for line in _report(draw, number))
    seconds, printed = _run([PODQOS, "autopsy", str(path), "-o", "csv"])
    found = len(list(csv.DictReader(io.StringIO(printed))))
    print(f"{found} reports in {seconds:.2f} s: {found / seconds:.0f} a second (target 500)")
    record("autopsy, a report", seconds / found, "s")


def _measure_hostile(path: Path) -> None:
    for name, line in HOSTILE.items():
        path.write_text(line * (50 * MB // len(line)))
        seconds, printed = _run([PODQOS, "autopsy", str(path)])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(
            f"{name:16} {seconds:5.1f} s (target 60), peak so far {peak / MB:.0f} MB: {printed.splitlines()[-1]}",
            flush=True,
        )
        record(f"autopsy, hostile: {name}", seconds, "s")


if __name__ == "__main__":
    main()
