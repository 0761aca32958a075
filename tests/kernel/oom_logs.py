"""Kernel logs of OOM kills, made here in the shapes that kernels and their carriers write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from podqos.kernel.oom import Kill, Process
from podqos.logs.carriers import Carrier
from podqos.logs.kernel_lines import ReportReader
from podqos.logs.report import OOMReport

POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice"
CONTAINER = f"{POD}/cri-containerd-{'ab' * 32}.scope"
GIB_PAGES = 262144

# form: its header after the pid, and a row of (rss, page tables in pages, swap, adj)
FORMS: dict[str, tuple[str, Callable[[int, int, int, int], str]]] = {
    "cpu": (
        "  uid  tgid total_vm      rss cpu oom_adj oom_score_adj name",
        lambda rss, _tables, _swap, adj: f"{rss:8d}   1       0 {adj:13d}",
    ),
    "nr_ptes": (
        "  uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name",
        lambda rss, tables, swap, adj: f"{rss:8d} {tables:7d} {swap:8d} {adj:13d}",
    ),
    "nr_pmds": (
        "  uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
        lambda rss, tables, swap, adj: f"{rss:8d} {tables - 1:7d} {1:7d} {swap:8d} {adj:13d}",
    ),
    "pgtables_bytes": (
        "  uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        lambda rss, tables, swap, adj: f"{rss:8d} {tables * 4096:8d} {swap:8d} {adj:13d}",
    ),
    "rss_anon": (
        "  uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
        lambda rss, tables, swap, adj: f"{rss:8d} {rss:8d} {0:8d} {0:9d} {tables * 4096:8d} {swap:8d} {adj:13d}",
    ),
}

Row = tuple[int, int, int, int, int, int, str]
"""pid, uid, rss, page tables, swap, oom_score_adj, name; amounts in pages."""

ROWS: tuple[Row, ...] = (
    (101, 1000, 90_000, 200, 0, 0, "small"),
    (102, 1000, 150_000, 300, 0, 0, "java (main) [x]"),
    (103, 0, 9_000, 30, 0, -1000, "sshd"),
)


def table(rows: Iterable[Row] = ROWS, form: str = "pgtables_bytes") -> list[str]:
    """Return a task table."""
    header, row = FORMS[form]
    made = [
        f"[{pid:7d}] {uid:5d} {pid:5d} {rss * 2:8d} {row(rss, tables, swap, adj)} {name}"
        for pid, uid, rss, tables, swap, adj, name in rows
    ]
    return [f"[  pid  ] {header}", *made]


def killed(pid: int = 102, name: str = "java (main) [x]", rss: int = 150_000, why: str = "Out of memory") -> str:
    """Return the line of a kill, as since 5.3."""
    return (
        f"{why}: Killed process {pid} ({name}) total-vm:{rss * 8}kB, anon-rss:{rss * 4}kB, file-rss:0kB, shmem-rss:0kB,"
        " UID:1000 pgtables:1200kB oom_score_adj:0"
    )


def machine(
    rows: Iterable[Row] = ROWS, form: str = "pgtables_bytes", kill: str = "", release: str = "6.1.0"
) -> list[str]:
    """Return the report of a machine of 1 GiB without swap."""
    return [
        "worker 7 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
        f"CPU: 1 PID: 77 Comm: worker 7 Not tainted {release} #1",
        "Call Trace:",
        " dump_header+0x4a/0x201",
        "Mem-Info:",
        "Node 0 DMA32 free:44000kB boost:0kB min:45000kB low:56000kB high:67000kB present:1048576kB managed:1000000kB",
        "Node 0 DMA32: 10*4kB (M) 3*8kB (U) = 64kB",
        "Total swap = 0kB",
        f"{GIB_PAGES} pages RAM",
        "0 pages reserved",
        *table(rows, form),
        kill or killed(),
    ]


def cgroup(rows: Iterable[Row], pid: int, name: str, *, limit_kb: int = 1048576, swap_kb: int = 0) -> list[str]:
    """Return the report of a container at its limit, with cgroup v2."""
    where = "constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0"
    return [
        f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=100",
        f"CPU: 0 PID: {pid} Comm: {name} Not tainted 6.1.0 #1",
        f"memory: usage {limit_kb}kB, limit {limit_kb}kB, failcnt 12",
        f"swap: usage 0kB, limit {swap_kb}kB, failcnt 0",
        f"Memory cgroup stats for {CONTAINER}:",
        "anon 1000",
        "Tasks state (memory values in pages):",
        *table(rows),
        f"oom-kill:{where},oom_memcg={CONTAINER},task_memcg={CONTAINER},task={name},pid={pid},uid=1000",
        killed(pid, name, 1000, "Memory cgroup out of memory"),
        f"oom_reaper: reaped process {pid} ({name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    ]


CARRIERS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "dmesg": lambda text: f"[ 5864.708440] {text}",
    "dmesg-T": lambda text: f"[Mon Jan  5 15:19:27 2026] {text}",
    "dmesg-x": lambda text: f"kern  :warn  : [ 5864.708440] {text}",
    "dmesg-r": lambda text: f"<4>[ 5864.708440] {text}",
    "dmesg-iso": lambda text: f"2026-01-05T15:19:27,708440+00:00 {text}",
    "caller": lambda text: f"[ 5864.708440][ T1234] {text}",
    "kmsg": lambda text: f"4,339,5864708440,-;{text}",
    "syslog": lambda text: f"Jan  5 15:19:27 node-1 kernel: [ 5864.708440] {text}",
    "syslog-iso": lambda text: f"2026-01-05T15:19:27.708440+00:00 node-1 kernel: [ 5864.708440] {text}",
    "rfc5424": lambda text: f"<4>1 2026-01-05T15:19:27.708440Z node-1 kernel - - - [ 5864.708440] {text}",
    "journal-short": lambda text: f"Jan 05 15:19:27 node-1 kernel: {text}",
    "journal-full": lambda text: f"Mon 2026-01-05 15:19:27 UTC node-1 kernel: {text}",
    "journal-monotonic": lambda text: f"[ 5864.708440] node-1 kernel: {text}",
    "journal-json": lambda text: json.dumps(
        {"__REALTIME_TIMESTAMP": "1767626367708440", "_HOSTNAME": "node-1", "MESSAGE": text}
    ),
    "journal-json-bytes": lambda text: json.dumps({"_HOSTNAME": "node-1", "MESSAGE": list(text.encode())}),
    "journal-export": lambda text: (
        f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767626367708440\n_HOSTNAME=node-1\nMESSAGE={text}\nPRIORITY=4\n"
    ),
    "cloud": lambda text: json.dumps(
        {
            "timestamp": "2026-01-05T15:19:27Z",
            "jsonPayload": {"MESSAGE": text},
            "resource": {"labels": {"node_name": "node-1"}},
        }
    ),
    "cloud-text": lambda text: json.dumps({"textPayload": f"[ 5864.708440] {text}"}),
    "container": lambda text: f"2026-01-05T15:19:27.708440123Z stdout F [ 5864.708440] {text}",
    "mail": lambda text: f"> > [ 5864.708440] {text}",
}


def read(lines: Iterable[str]) -> list[OOMReport]:
    """Return the reports in a log."""
    reader = ReportReader()
    return [*reader.feed(Carrier().lines("\n".join(lines).encode())), *reader.end()]


def report_of(
    kill: Kill,
    processes: Sequence[Process],
    *,
    ram_pages: int,
    swap_pages: int = 0,
    lacking_pages: int = 1,
    trigger: Process | None = None,
    form: str = "rss_anon",
    release: str = "6.12.0",
    cgroup_version: int = 2,
) -> list[str]:
    """Return what the kernel would write about a kill of the model's; ``lacking_pages`` is what was missing."""
    victim, domain, total = kill.selection.victim.process, kill.selection.domain, kill.selection.total_pages
    asked = trigger or victim
    is_machine = domain == "/"
    inside = [each for each in processes if is_machine or f"{each.cgroup}/".startswith(f"{domain}/")]
    rows = [
        (each.pid, 1000, each.rss_pages, each.page_table_pages, each.swap_pages, each.oom_score_adj, each.name)
        for each in inside
    ]
    min_pages, usage_kb, present = 11250, (total - 1 + lacking_pages) * 4, ram_pages * 4
    if is_machine:
        marks = f"free:{(min_pages + 1 - lacking_pages) * 4}kB boost:0kB min:{min_pages * 4}kB low:56000kB high:67000kB"
        memory = [
            "Mem-Info:",
            f"Node 0 DMA32 {marks} present:{present}kB managed:{present}kB",
            "lowmem_reserve[]: 0 0 0 0",
            "Node 0 DMA32: 10*4kB (M) 3*8kB (U) = 64kB",
            f"Total swap = {swap_pages * 4}kB",
            f"{ram_pages} pages RAM",
            "0 pages reserved",
        ]
    else:
        other = f"memory+swap: usage {usage_kb}kB" if cgroup_version == 1 else "swap: usage 0kB"
        memory = [f"memory: usage {usage_kb}kB, limit {total * 4}kB, failcnt 12", f"{other}, limit 9007199254740988kB"]
    why = "Out of memory" if is_machine else "Memory cgroup out of memory"
    lines = [killed(each.pid, each.name, each.rss_pages, why) for each in kill.killed]
    if kill.group is not None:
        lines = [lines[0], f"Tasks in {kill.group} are going to be killed due to memory.oom.group set", *lines]
    kind, where = ("NONE", "global_oom") if is_machine else ("MEMCG", f"oom_memcg={domain}")
    where = f"constraint=CONSTRAINT_{kind},nodemask=(null),cpuset=/,mems_allowed=0,{where},task_memcg={victim.cgroup}"
    return [
        f"{asked.name} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
        f"CPU: 1 PID: {asked.pid} Comm: {asked.name} Not tainted {release} #1",
        *memory,
        "Tasks state (memory values in pages):",
        *table(rows, form),
        f"oom-kill:{where},task={victim.name},pid={victim.pid},uid=1000",
        *lines,
    ]
