"""Logs that nobody wrote for ``podqos autopsy``: nearly nothing but OOMs, and what only looks like them.

Every kind yields text without end; a caller takes as much as it wants. Reports are whole, with call trace, memory and a
table of 20 to 150 tasks, by kernels from 3.10 to 6.12, of containers, pods, all pods and machines.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

import yaml

# ruff: noqa: E501 - lines as they are logged
NAMES = ("java", "nginx", "python3", "node", "postgres", "redis-server", "envoy", "sh", "worker process", "php-fpm")
_STATISTICS = (
    "anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "shmem", "zswap",
    "zswapped", "file_mapped", "file_dirty", "file_writeback", "swapcached", "anon_thp", "file_thp", "shmem_thp",
    "inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable", "slab_reclaimable", "slab_unreclaimable",
    "slab", "workingset_refault_anon", "workingset_refault_file", "workingset_activate_anon", "pgfault", "pgmajfault",
)  # fmt: skip
_OLD_STATISTICS = ("cache", "rss", "rss_huge", "mapped_file", "inactive_anon", "active_anon", "inactive_file", "active_file")  # fmt: skip
_KERNELS = ((3, 10), (4, 4), (4, 19), (5, 4), (5, 15), (6, 1), (6, 8), (6, 12))
_NEAR = (
    "kernel: [{n}.5] oom-kill",
    "kernel: [{n}.5] oom-killer is off today, said {h}",
    "kubelet[3]: Killed process was not {n} but {h}",
    "app[{n}]: Killed process {n} by hand",
    "app[{n}]: x invoked oom-killer in our tests, {h}",
    "app[{n}]: Memory cgroup out of memory is what we fear, {h}",
    "app[{n}]: oom_reaper {h}",
    "app[{n}]: memory: usage {n}kB, limit {n}kB",
    "kernel: [{n}.5] [ pid ] uid {h}",
    "kernel: [{n}.5] [{n}] {n} {n} {n} {n}",
    'app[{n}]: pr_warn("%s invoked oom-killer: gfp_mask=%#x", current->comm, {h});',
    'app[{n}]: "Evicted" {h}',
    "app[{n}]: eviction manager: {h}",
)


def reports(draw: random.Random) -> Iterator[str]:
    """Yield nothing but OOM reports, as syslog has them."""
    number = 0
    while True:
        number += 1
        lines = report(draw, number)
        yield "".join(
            f"Jan  5 15:{number // 60 % 60:02d}:{number % 60:02d} node-{number % 3} kernel: [{number}.{index:06d}] {line}\n"
            for index, line in enumerate(lines)
        )


def report(draw: random.Random, number: int) -> Iterator[str]:
    """Yield the lines of a report whose victim is the task with the highest badness."""
    kernel = _KERNELS[number % len(_KERNELS)]
    uid = f"{draw.getrandbits(128):032x}"
    uid = f"{uid[:8]}_{uid[8:12]}_{uid[12:16]}_{uid[16:20]}_{uid[20:]}"
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    container = f"{pod}/cri-containerd-{draw.getrandbits(256):064x}.scope"
    ran_out = ("", container, pod, container, "/kubepods.slice")[number % 5]
    pages = draw.randrange(50_000, 4_000_000)
    own_adj = draw.randrange(3, 999)
    tasks = []
    for pid in sorted(draw.sample(range(2, 4_000_000), draw.randrange(20, 150))):
        adj = (
            own_adj
            if ran_out in {pod, container}
            else draw.choice((0, 0, -997, -998, -1000, 1000, draw.randrange(2, 1000)))
        )
        tasks.append((pid, draw.randrange(100, pages // 40), adj, draw.choice((0, 1000, 65535)), draw.choice(NAMES)))
    killable = [task for task in tasks if task[2] > -1000] or tasks
    pid, rss, adj, owner, name = max(killable, key=lambda task: task[1] + pages // 1000 * task[2])
    yield f"{name} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj={adj}"
    yield f"CPU: {number % 64} PID: {pid} Comm: {name} Not tainted {kernel[0]}.{kernel[1]}.{number % 90}-generic #{number}-Ubuntu"
    yield "Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.0-debian-1.16.0-4 04/01/2014"
    yield "Call Trace:"
    yield " <TASK>"
    yield from (f" frame_{draw.getrandbits(24):x}+0x{number:x}/0x{draw.getrandbits(12):x}" for _ in range(25))
    yield " </TASK>"
    yield from _cgroup(draw, kernel, ran_out, container, pages) if ran_out else _machine(draw, pages)
    yield "Tasks state (memory values in pages):"
    if kernel < (4, 19):
        yield "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name"
        tables = f"{12:7d} {3:7d}"
    else:
        yield "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
        tables = f"{98304:8d}"
    yield from (
        f"[{task[0]:7d}] {task[3]:5d} {task[0]:5d} {task[1] * 2:8d} {task[1]:8d} {tables} {0:8d} {task[2]:13d} {task[4]}"
        for task in tasks
    )
    if kernel < (5, 0):
        yield f"{'Memory cgroup out' if ran_out else 'Out'} of memory: Kill process {pid} ({name}) score {number % 1000} or sacrifice child"
        yield f"Killed process {pid} ({name}) total-vm:{rss * 8}kB, anon-rss:{rss * 4}kB, file-rss:0kB, shmem-rss:0kB"
    else:
        where = f"oom_memcg={ran_out}" if ran_out else "global_oom"
        kind = "MEMCG" if ran_out else "NONE"
        yield f"oom-kill:constraint=CONSTRAINT_{kind},nodemask=(null),cpuset=/,mems_allowed=0,{where},task_memcg={container},task={name},pid={pid},uid={owner}"
        yield (
            f"{'Memory cgroup out' if ran_out else 'Out'} of memory: Killed process {pid} ({name}) total-vm:{rss * 8}kB, "
            f"anon-rss:{rss * 4}kB, file-rss:0kB, shmem-rss:0kB, UID:{owner} pgtables:96kB oom_score_adj:{adj}"
        )
    yield f"oom_reaper: reaped process {pid} ({name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"


def _cgroup(draw: random.Random, kernel: tuple[int, int], ran_out: str, container: str, pages: int) -> Iterator[str]:
    if kernel < (5, 0):
        yield f"Task in {container} killed as a result of limit of {ran_out}"
    yield f"memory: usage {pages * 4}kB, limit {pages * 4}kB, failcnt {draw.randrange(10**6)}"
    if kernel < (5, 0):
        yield "memory+swap: usage 0kB, limit 9007199254740988kB, failcnt 0"
        yield f"kmem: usage {pages // 9}kB, limit 9007199254740988kB, failcnt 0"
        for path in (ran_out, container):
            yield f"Memory cgroup stats for {path}: " + " ".join(
                f"{name}:{draw.randrange(pages)}KB" for name in _OLD_STATISTICS
            )
        return
    yield "swap: usage 0kB, limit 0kB, failcnt 0"
    yield f"Memory cgroup stats for {ran_out}:"
    yield from (f"{name} {draw.randrange(pages * 2000)}" for name in _STATISTICS)


def _machine(draw: random.Random, pages: int) -> Iterator[str]:
    yield "Mem-Info:"
    yield f"active_anon:{draw.randrange(pages)} inactive_anon:{draw.randrange(pages)} isolated_anon:0"
    yield f" active_file:{draw.randrange(900)} inactive_file:{draw.randrange(900)} isolated_file:0"
    yield " unevictable:0 dirty:25 writeback:10"
    yield f" slab_reclaimable:2308 slab_unreclaimable:{draw.randrange(pages // 9)}"
    yield f" mapped:344 shmem:{draw.randrange(pages // 9)} pagetables:898 bounce:0"
    yield f" free:{draw.randrange(9000)} free_pcp:333 free_cma:0"
    yield "Node 0 active_anon:244kB inactive_anon:2929364kB active_file:16kB inactive_file:116kB unevictable:0kB isolated(anon):0kB isolated(file):0kB mapped:1376kB dirty:100kB writeback:40kB shmem:8800kB kernel_stack:1016kB pagetables:3592kB all_unreclaimable? no"
    for zone, size in (("DMA", 15_992), ("DMA32", 2_000_000), ("Normal", pages * 4)):
        yield f"Node 0 {zone} free:{draw.randrange(99)}kB boost:0kB min:{100 + draw.randrange(99)}kB low:948kB high:1136kB reserved_highatomic:0KB active_anon:0kB inactive_anon:2628kB active_file:0kB inactive_file:0kB unevictable:0kB writepending:0kB present:{size}kB managed:15360kB mlocked:0kB bounce:0kB free_pcp:0kB local_pcp:0kB free_cma:0kB"
        yield "lowmem_reserve[]: 0 805 2997 2997"
    for zone in ("DMA", "DMA32", "Normal"):
        yield f"Node 0 {zone}: 1*4kB (M) 1*8kB (M) 1*16kB (M) 1*32kB (M) 0*64kB 1*128kB (M) 1*256kB (M) 0*512kB 2*1024kB (UM) = {draw.randrange(9999)}kB"
    yield "Node 0 hugepages_total=0 hugepages_free=0 hugepages_surp=0 hugepages_size=2048kB"
    yield "2313 total pagecache pages"
    yield "Free swap  = 0kB"
    yield "Total swap = 0kB"
    yield f"{pages} pages RAM"
    yield "0 pages HighMem/MovableOnly"
    yield f"{pages // 50} pages reserved"


def mutated_reports(draw: random.Random) -> Iterator[bytes]:
    """Yield reports in which one byte in fifty is another, missing or double."""
    for text in reports(draw):
        data = bytearray(text.encode())
        for _ in range(len(data) // 50):
            position = draw.randrange(len(data))
            match draw.randrange(3):
                case 0:
                    data[position] = draw.randrange(256)
                case 1:
                    del data[position]
                case _:
                    data.insert(position, data[position])
        yield bytes(data)


def random_bytes(draw: random.Random) -> Iterator[bytes]:
    """Yield noise."""
    while True:
        yield draw.randbytes(1 << 16)


def noise_after_a_report(draw: random.Random) -> Iterator[bytes]:
    """Yield noise again and again after the first lines of a report, whose kill never comes."""
    for text in reports(draw):
        yield text[: len(text) // 2].encode()
        yield draw.randbytes(1 << 20)


def spliced(draw: random.Random) -> Iterator[str]:
    """Yield pieces of reports in any order."""
    lines = [line for _, text in zip(range(20), reports(draw), strict=False) for line in text.splitlines(keepends=True)]
    while True:
        start = draw.randrange(len(lines))
        yield "".join(lines[start : start + draw.randrange(1, 6)])


def prefixes(draw: random.Random) -> Iterator[str]:
    """Yield lines of syslog that say nothing."""
    while True:
        bits = draw.getrandbits(40)
        yield "".join(f"Jan  5 15:19:{(bits + at) % 60:02d} node-1 kernel: [{bits}.{at:06d}] \n" for at in range(200))


def unfinished_report(draw: random.Random) -> Iterator[str]:
    """Yield a report that begins, and then the kernel's lines about other things."""
    yield from report_lines("Jan  5 15:19:00 node-1 kernel: [1.5] ", list(report(draw, 5))[:20])
    while True:
        bits = draw.getrandbits(40)
        yield "".join(f"Jan  5 15:19:01 node-1 kernel: [{bits}.{at:06d}] eth0: link {at} up\n" for at in range(200))


def report_lines(prefix: str, lines: list[str]) -> Iterator[str]:
    """Yield lines with what carries them."""
    yield from (f"{prefix}{line}\n" for line in lines)


def unfinished_reports_of_hosts(draw: random.Random) -> Iterator[str]:
    """Yield the first line of reports, of a new host each time."""
    while True:
        host = f"node-{draw.getrandbits(32):08x}"
        yield f"Jan  5 15:19:00 {host} kernel: [1.5] java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=5\n"
        yield from report_lines(f"Jan  5 15:19:00 {host} kernel: [1.5] ", ["eth0: link up"] * 20)


def long_lines(draw: random.Random) -> Iterator[str]:
    """Yield lines of a megabyte with the OOM killer's words in them."""
    words = [token.format(n=17, h="deadbeef") for token in _NEAR]
    while True:
        line = " ".join(draw.choice(words) for _ in range(2000))
        yield line * 10 + "\n"


def no_newlines(draw: random.Random) -> Iterator[str]:
    """Yield one line without end."""
    for line in long_lines(draw):
        yield line.rstrip("\n")


def carriage_returns(draw: random.Random) -> Iterator[str]:
    """Yield reports whose lines end with a bare CR."""
    for text in reports(draw):
        yield text.replace("\n", "\r")


def empty_lines(draw: random.Random) -> Iterator[str]:
    """Yield nothing but line ends, after the first line of a report."""
    yield "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=5\n"
    while True:
        yield "\n" * (1 << draw.randrange(10, 16))


def near_misses(draw: random.Random) -> Iterator[str]:
    """Yield lines that hold the OOM killer's words and are not its own."""
    while True:
        bits = draw.getrandbits(20)
        token = _NEAR[bits % len(_NEAR)].format(n=bits, h=f"{bits:08x}")
        yield f"Jan  5 15:19:{bits % 60:02d} node-1 {token}\n"


def json_lines(draw: random.Random) -> Iterator[str]:
    """Yield lines of journald as JSON, about other things."""
    while True:
        bits = draw.getrandbits(60)
        yield json.dumps({
            "__CURSOR": f"s={bits:x};i={bits % 999:x}", "__REALTIME_TIMESTAMP": str(10**15 + bits % 10**14), "_HOSTNAME": "node-1",
            "_BOOT_ID": f"{bits:032x}", "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "6", "_TRANSPORT": "kernel",
            "MESSAGE": f"eth0: renamed from veth{bits:x}",
        }) + "\n"  # fmt: skip


def short_near_misses(draw: random.Random) -> Iterator[str]:
    """Yield rows of a table with a word of the OOM killer's in each: a line has little else."""
    while True:
        bits = draw.getrandbits(32)
        yield f'{bits % 9999},"2026-01-05T15:19:27Z","{bits:08x} ""oom-kill:"" x"\n'


def json_near_misses(draw: random.Random) -> Iterator[str]:
    """Yield JSON lines that hold the OOM killer's words in fields of any kind."""
    while True:
        bits = draw.getrandbits(20)
        token = _NEAR[bits % len(_NEAR)].format(n=bits, h=f"{bits:08x}")
        yield (
            json.dumps(
                {"timestamp": bits, "host": f"n{bits % 99}", "labels": {"a": [1, 2, {"b": token}]}, "message": token}
            )
            + "\n"
        )


def kubelet_lines(draw: random.Random) -> Iterator[str]:
    """Yield a kubelet's log at a high verbosity: every eviction check says what it saw."""
    while True:
        bits = draw.getrandbits(40)
        head = f"I0105 15:19:{bits % 60:02d}.{bits % 10**6:06d}    3041"
        yield f'{head} eviction_manager.go:333] "Eviction manager: synchronize housekeeping"\n'
        yield f'{head} helpers.go:921] "Eviction manager:" log="observations" signal="memory.available" resourceName="memory" available="{bits % 9999}Mi" capacity="16Gi" time="2026-01-05"\n'
        yield f'{head} kubelet.go:2407] "SyncLoop (PLEG): event for pod" pod="shop/web-{bits:x}" event={{"Type":"ContainerStarted"}}\n'
        yield f'{head} eviction_manager.go:412] "Eviction manager: no resources are starved" pod="shop/web-{bits:x}"\n'
        if bits % 40 == 0:
            yield f'{head} event.go:307] "Event occurred" object="shop/web-{bits % 999}" kind="Pod" type="Warning" reason="Evicted" message="The node was low on resource: memory. "\n'


def export_entries(draw: random.Random) -> Iterator[str]:
    """Yield journald's export format, whose entries hold the OOM killer's words now and then."""
    while True:
        bits = draw.getrandbits(40)
        message = "oom-kill of a sort" if bits % 5 == 0 else f"eth0: renamed from veth{bits:x}"
        yield f"__CURSOR=s={bits:x}\n__REALTIME_TIMESTAMP={10**15 + bits}\n_HOSTNAME=node-1\nMESSAGE={message}\n\n"


def brackets(draw: random.Random) -> Iterator[str]:
    """Yield what prefixes are made of, without end: quotes, brackets, levels, blanks."""
    parts = ("> ", "[", "]", "<6>", "kernel:", " ", "[  1.5] ", "2026-01-05T15:19:00Z ", "oom-kill", "(", "Killed process 1 (")  # fmt: skip
    while True:
        yield "".join(draw.choice(parts) for _ in range(200)) + "\n"


def java_errors(draw: random.Random) -> Iterator[str]:
    """Yield nothing but a program's own errors."""
    kinds = ("Java heap space", "GC overhead limit exceeded", "Metaspace", "unable to create native thread")
    while True:
        bits = draw.getrandbits(20)
        yield f'Jan  5 15:19:{bits % 60:02d} node-{bits % 3} app[{bits}]: Exception in thread "worker-{bits}" java.lang.OutOfMemoryError: {kinds[bits % 4]}\n'


def oomd_kills(draw: random.Random) -> Iterator[str]:
    """Yield nothing but kills of systemd-oomd."""
    while True:
        bits = draw.getrandbits(40)
        yield (
            f"Jan  5 {bits % 24:02d}:{bits % 59:02d}:{bits % 60:02d} node-{bits % 3} systemd-oomd[812]: Killed /system.slice/app-{bits:x}.service due to memory pressure for "
            f"/system.slice being {50 + bits % 50}.{bits % 100:02d}% > 50.00% for > 20s with reclaim activity\n"
        )


def pods_table(draw: random.Random) -> Iterator[str]:
    """Yield a table by ``kubectl get pods -A -o wide``, a twentieth of it OOMKilled or evicted."""
    yield "NAMESPACE   NAME                             READY   STATUS      RESTARTS   AGE   IP            NODE      NOMINATED NODE   READINESS GATES\n"
    while True:
        bits = draw.getrandbits(40)
        status = ("OOMKilled", "Evicted")[bits % 2] if bits % 20 == 0 else "Running"
        yield f"team-{bits % 40:<6} web-{bits:010x}-{bits % 99999:05d}             1/1     {status:<11} {bits % 9:<10} 3d    10.1.{bits % 250}.{bits % 9}     node-{bits % 50:<4} <none>           <none>\n"


def events_table(draw: random.Random) -> Iterator[str]:
    """Yield a table by ``kubectl get events -A``, a twentieth of it about evictions, OOMs and restarts."""
    telling = (
        ("Warning", "Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: {a}Ki. Container app was using {b}Ki, request is 0, has larger consumption of memory. "),
        ("Warning", "BackOff", "Back-off restarting failed container app in pod web-{h}_team-{n}(0b0f7a3e-6c1d-4b5e-9d0a-{h:0>12})"),
        ("Normal", "Killing", "Container app failed liveness probe, will be restarted"),
    )  # fmt: skip
    other = (
        ("Normal", "Scheduled", "Successfully assigned team-{n}/web-{h} to node-{n}"),
        ("Normal", "Pulling", 'Pulling image "registry.example.com/team-{n}/app:{b}"'),
        ("Normal", "Created", "Created container: app"),
        ("Warning", "Unhealthy", 'Readiness probe failed: Get "http://10.1.{n}.7:8080/healthz": dial tcp 10.1.{n}.7:8080: connect: connection refused'),
        ("Warning", "FailedScheduling", "0/{n} nodes are available: {n} Insufficient memory. preemption: 0/{n} nodes are available"),
    )  # fmt: skip
    yield "NAMESPACE   LAST SEEN   TYPE      REASON             OBJECT                       MESSAGE\n"
    while True:
        bits = draw.getrandbits(40)
        kind, reason, text = draw.choice(telling if bits % 20 == 0 else other)
        text = text.format(n=bits % 40, h=f"{bits:010x}", a=bits % 99999, b=bits % 10**6)
        yield f"team-{bits % 40:<6} {bits % 59 + 1:>3}m        {kind:<9} {reason:<18} pod/web-{bits:010x}           {text}\n"


def described_pods(draw: random.Random) -> Iterator[str]:
    """Yield what ``kubectl describe pods`` prints; a container in twenty was OOM-killed."""
    while True:
        bits = draw.getrandbits(40)
        name, second = f"web-{bits:010x}", f"{bits % 60:02d}"
        last = (
            f"    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n      Started:      Mon, 05 Jan 2026 15:01:{second} +0000\n"
            f"      Finished:     Mon, 05 Jan 2026 15:19:{second} +0000\n"
            if bits % 20 == 0
            else ""
        )
        yield (
            f"Name:             {name}\nNamespace:        team-{bits % 40}\nPriority:         0\nService Account:  default\nNode:             node-{bits % 50}/10.0.0.{bits % 50}\n"
            f"Start Time:       Mon, 05 Jan 2026 15:00:{second} +0000\nLabels:           app=web\n                  pod-template-hash={bits % 9**9:x}\nAnnotations:      <none>\n"
            f"Status:           Running\nIP:               10.1.{bits % 250}.{bits % 9}\nIPs:\n  IP:           10.1.{bits % 250}.{bits % 9}\nControlled By:  ReplicaSet/web-{bits % 9**9:x}\n"
            f"Containers:\n  app:\n    Container ID:   containerd://{bits:064x}\n    Image:          registry.example.com/team-{bits % 40}/app:{bits % 10**6}\n"
            f"    Image ID:       registry.example.com/app@sha256:{draw.getrandbits(256):064x}\n    Port:           8080/TCP\n    Host Port:      0/TCP\n    State:          Running\n"
            f"      Started:      Mon, 05 Jan 2026 15:19:{second} +0000\n{last}    Ready:          True\n    Restart Count:  {int(bool(last))}\n    Limits:\n      cpu:     500m\n      memory:  {bits % 900 + 64}Mi\n"
            f"    Requests:\n      cpu:     {bits % 400 + 50}m\n      memory:  {bits % 64 + 32}Mi\n    Liveness:  http-get http://:8080/healthz delay=10s timeout=1s period=10s #success=1 #failure=3\n"
            f"    Environment:\n      GOMEMLIMIT:  {bits % 900}MiB\n      SESSION:     {draw.getrandbits(64):016x}\n    Mounts:\n"
            f"      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-{bits % 9**5:x} (ro)\nConditions:\n  Type                        Status\n"
            "  PodReadyToStartContainers   True \n  Initialized                 True \n  Ready                       True \n  ContainersReady             True \n  PodScheduled                True \n"
            f"Volumes:\n  kube-api-access-{bits % 9**5:x}:\n    Type:                    Projected (a volume that contains injected data from multiple sources)\n"
            "    TokenExpirationSeconds:  3607\n    ConfigMapName:           kube-root-ca.crt\n    Optional:                false\n    DownwardAPI:             true\n"
            "QoS Class:                   Burstable\nNode-Selectors:              <none>\nTolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\n"
            "                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s\nEvents:\n  Type    Reason     Age   From               Message\n  ----    ------     ----  ----               -------\n"
            f"  Normal  Scheduled  {bits % 50 + 1}m   default-scheduler  Successfully assigned team-{bits % 40}/{name} to node-{bits % 50}\n"
            f'  Normal  Pulled     {bits % 50}m   kubelet            Container image "registry.example.com/team-{bits % 40}/app:{bits % 10**6}" already present on machine\n'
            f"  Normal  Started    {bits % 50}m   kubelet            Started container app\n\n\n"
        )


def inspected_containers(draw: random.Random) -> Iterator[str]:
    """Yield what ``docker inspect`` prints of many containers, of which a twentieth was OOM-killed."""
    yield "[\n"
    while True:
        bits = draw.getrandbits(40)
        is_killed = bits % 20 == 0
        state = {
            "Status": "exited" if is_killed else "running", "Running": not is_killed, "Paused": False, "Restarting": False, "OOMKilled": is_killed,
            "Dead": False, "Pid": 0 if is_killed else bits % 32768, "ExitCode": 137 * is_killed, "Error": "",
            "StartedAt": f"2026-01-05T15:01:{bits % 60:02d}.{bits % 10**9:09d}Z",
            "FinishedAt": f"2026-01-05T15:19:{bits % 60:02d}.{bits % 10**9:09d}Z" if is_killed else "0001-01-01T00:00:00Z",
        }  # fmt: skip
        container = {
            "Id": f"{draw.getrandbits(256):064x}", "Created": f"2026-01-05T15:01:{bits % 60:02d}Z", "Path": "/docker-entrypoint.sh", "Args": ["app", f"--session={bits:x}"], "State": state,
            "Image": f"sha256:{draw.getrandbits(256):064x}", "Name": f"/web-{bits:010x}", "RestartCount": bits % 3, "Driver": "overlay2", "Platform": "linux",
            "HostConfig": {"Binds": None, "NetworkMode": "bridge", "PortBindings": {"8080/tcp": [{"HostIp": "", "HostPort": f"{bits % 32768}"}]},
                           "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "CpuShares": 0, "Memory": (bits % 900 + 64) << 20, "NanoCpus": 0, "CgroupParent": "",
                           "MemoryReservation": 0, "MemorySwap": (bits % 900 + 64) << 21, "MemorySwappiness": None, "OomKillDisable": False, "PidsLimit": None,
                           "MaskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"]},
            "GraphDriver": {"Name": "overlay2", "Data": {"MergedDir": f"/var/lib/docker/overlay2/{draw.getrandbits(256):064x}/merged"}},
            "Config": {"Hostname": f"{bits:012x}", "User": "", "Env": [f"SESSION={draw.getrandbits(64):x}", "PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["app"],
                       "Labels": {"com.docker.compose.project": f"team-{bits % 40}", "com.docker.compose.service": "web", "maintainer": "Web <web@example.com>"}},
            "NetworkSettings": {"Bridge": "", "Networks": {"bridge": {"NetworkID": f"{draw.getrandbits(256):064x}", "IPAddress": f"172.17.{bits % 250}.{bits % 9}", "MacAddress": "02:42:ac:11:00:02"}}},
        }  # fmt: skip
        yield "    " + json.dumps(container, indent=4).replace("\n", "\n    ") + ",\n"


def _listed_pod(draw: random.Random) -> dict[str, object]:
    """Return a pod as the API has it; one in twenty was OOM-killed and restarted."""
    bits = draw.getrandbits(40)
    namespace, name = f"team-{bits % 40}", f"web-{bits:010x}"
    uid = f"{draw.getrandbits(128):032x}"
    uid = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"
    ended = {
        "terminated": {
            "containerID": f"containerd://{draw.getrandbits(256):064x}", "exitCode": 137, "finishedAt": f"2026-01-05T15:19:{bits % 60:02d}Z",
            "reason": "OOMKilled", "startedAt": f"2026-01-05T15:01:{bits % 60:02d}Z",
        }
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "creationTimestamp": f"2026-01-05T15:00:{bits % 60:02d}Z", "labels": {"app": "web", "pod-template-hash": f"t{bits % 9**9:x}"}, "name": name, "namespace": namespace,
            "ownerReferences": [{"apiVersion": "apps/v1", "controller": True, "kind": "ReplicaSet", "name": f"web-{bits % 9**9:x}", "uid": uid[::-1]}],
            "resourceVersion": f"{bits % 10**9}", "uid": uid,
        },
        "spec": {
            "containers": [{
                "env": [{"name": "SESSION", "value": f"{draw.getrandbits(64):x}"}], "image": f"registry.example.com/{namespace}/app:{bits % 10**6}", "imagePullPolicy": "IfNotPresent", "name": "app",
                "ports": [{"containerPort": 8080, "protocol": "TCP"}], "resources": {"limits": {"memory": f"{bits % 900 + 64}Mi"}, "requests": {"cpu": "100m", "memory": f"{bits % 64 + 32}Mi"}},
                "terminationMessagePath": "/dev/termination-log", "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}],
            }],
            "nodeName": f"node-{bits % 50}", "priority": 0, "restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {
            "conditions": [
                {"lastProbeTime": None, "lastTransitionTime": f"2026-01-05T15:00:{bits % 60:02d}Z", "status": "True", "type": kind} for kind in ("Initialized", "Ready", "PodScheduled")
            ],
            "containerStatuses": [{
                "containerID": f"containerd://{draw.getrandbits(256):064x}", "image": f"registry.example.com/{namespace}/app:{bits % 10**6}", "imageID": f"sha256:{draw.getrandbits(256):064x}",
                "lastState": ended if bits % 20 == 0 else {}, "name": "app", "ready": True, "restartCount": int(bits % 20 == 0), "started": True,
                "state": {"running": {"startedAt": f"2026-01-05T15:19:{bits % 60:02d}Z"}},
            }],
            "hostIP": f"10.0.0.{bits % 50}", "phase": "Running", "podIP": f"10.1.{bits % 250}.{bits % 9}", "qosClass": "Burstable", "startTime": f"2026-01-05T15:00:{bits % 60:02d}Z",
        },
    }  # fmt: skip


def pods_as_yaml(draw: random.Random) -> Iterator[str]:
    """Yield what ``kubectl get pods -o yaml`` prints."""
    yield "apiVersion: v1\nkind: List\nitems:\n"
    while True:
        yield "".join(_yaml(_listed_pod(draw), "  "))


def restarted_pods_as_yaml(draw: random.Random) -> Iterator[str]:
    """Yield the same of pods of which every one exited once: each tells something."""
    yield "apiVersion: v1\nkind: List\nitems:\n"
    while True:
        text = "".join(_yaml(_listed_pod(draw), "  "))
        ended = (
            f"lastState:\n          terminated:\n            containerID: containerd://{draw.getrandbits(256):064x}\n"
        )
        yield text.replace("lastState: {}\n", f"{ended}            exitCode: 1\n            reason: Error\n")


def objects_as_yaml(draw: random.Random) -> Iterator[str]:
    """Yield what ``kubectl get pods,events -o yaml`` prints; some events say that a container was stopped."""
    yield "apiVersion: v1\nkind: List\nitems:\n"
    number = 0
    while True:
        pod = _listed_pod(draw)
        yield "".join(_yaml(pod, "  "))
        for _ in range(2):
            number += 1
            metadata = pod["metadata"]
            event = {
                "apiVersion": "v1", "kind": "Event", "count": number % 7 + 1, "firstTimestamp": f"2026-01-05T15:18:{number % 60:02d}Z",
                "involvedObject": {"apiVersion": "v1", "fieldPath": "spec.containers{app}", "kind": "Pod", **{key: metadata[key] for key in ("name", "namespace", "uid")}},
                "lastTimestamp": f"2026-01-05T15:19:{number % 60:02d}Z", "message": "Stopping container app" if number % 40 == 0 else f'Container image "app:{number}" already present on machine',
                "metadata": {"creationTimestamp": f"2026-01-05T15:18:{number % 60:02d}Z", "name": f"{metadata['name']}.{number:x}", "namespace": metadata["namespace"], "uid": f"{number:08x}-aaaa-bbbb"},
                "reason": "Killing" if number % 40 == 0 else "Pulled", "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]}, "type": "Normal",
            }  # fmt: skip
            yield "".join(_yaml(event, "  "))


def _yaml(value: dict[str, object], indent: str) -> Iterator[str]:
    """Yield the lines of a mapping in a list, as the API's printer has them."""
    lines = yaml.safe_dump(value, width=10**6).splitlines()
    yield f"- {lines[0]}\n"
    yield from (f"{indent}{line}\n" for line in lines[1:])


def wrapped_reports(draw: random.Random) -> Iterator[str]:
    """Yield reports as mail programs leave them: quoted, and broken at 72 columns."""
    number = 0
    while True:
        number += 1
        for line in report(draw, number):
            whole = f"[{number:5d}.123456] {line}"
            yield "".join(f"> {whole[start : start + 72]}\n" for start in range(0, len(whole), 72))


_WORDS = (
    "reconcile", "informer", "lease", "shard", "quorum", "replica", "heap", "arena", "cache", "socket", "volume", "probe",
    "namespace", "webhook", "ledger", "tenant", "snapshot", "compaction", "broker", "partition", "session", "gateway",
)  # fmt: skip
_NEAR_WORDS = (
    "java[{n}]: [GC ({h})] Out of heap, memory process killed {n}K->{m}K, {w} groups reaped",
    'kubelet[{n}]: I0105 15:19:{s}.{n}    {m} eviction_manager.go:412] "Eviction manager: no resources are starved" {w}="{h}"',
    'kubelet[{n}]: I0105 15:19:{s}.{n}    {m} helpers.go:921] "Eviction manager:" log="observations" signal="memory.available" {w}="{n}Mi"',
    'kubelet[{n}]: E0105 15:19:{s}.{n}    {m} kuberuntime.go:{s}] "Evicted container is gone" containerID="{h}{h}" {w}',
    "kubelet[{n}]: W0105 15:19:{s}.{n}    {m} eviction.go:{s}] eviction manager: {w} of {h} says nothing",
    "kubelet[{n}]: E0105 15:19:{s}.{n}    {m} pod_workers.go:{s}] Error syncing pod {h}, Killing container {w} with exit code 137 unlikely",
    'containerd[{n}]: level=info msg="TaskExit event {w} {h}{h} exit_status:137 pid:{n}"',
    'containerd[{n}]: level=warning msg="no OOM killer in {w} {h}"',
    "systemd[1]: {w}-{h}.service: Main process exited, code=killed, status=9/KILL after {n}ms",
    "app[{n}]: {w} invoked oom-killer in our tests, {h}",
    "systemd-oomd[{n}]: {w}: memory used ({n}) is fine, {h}",
    "earlyoom[{n}]: {w} mem avail {n} MiB, swap free {m} MiB, {h}",
    "kernel: [{n}.{m}] {w}: oom_score_adj of {n} is {m}, {h}",
    "app[{n}]: {w}: oom_reaper {h}: memory: usage {n}kB, limit {m}kB",
    "python3[{n}]: {w}.py:{m}: except MemoryError: pass  # {h}",
    "app[{n}]: Killed process {n} of {w} by hand, {h}",
    "java[{n}]: at com.{w}.{h}.OutOfMemoryErrorHandler.handle(Handler.java:{m})",
    "java[{n}]: -XX:+ExitOnOutOfMemoryError -XX:{w}={h} -Xmx{m}m",
    "node[{n}]: {w}: allocation failure at {h}, {m} MiB",
    "redis[{n}]: {w}: overcommit_memory is set to {s}! {h}",
    "postgres[{n}]: LOG:  {w} process (PID {m}) exited with exit code {s}, {h}",
    "sh[{n}]: {w}: line {m}: {n} Terminated {h}",
    "app[{n}]: signal: {w} caught, SIGTERM {h} in {m} ms",
    "app[{n}]: Killing {w} {h}: PID: {n}, name: {m}",
    "app[{n}]: resource temporarily unavailable: {w} {h}, retry in {m}",
    "kernel: [{n}.{m}] oom-killer is off today, said {w} {h}",
    "app[{n}]: Memory cgroup out of memory is what we fear, {w} {h}",
    "app[{n}]: Controller {w} OOM-{h} is {m}",
    "app[{n}]: due to {w} memory of {h} was freed, {m} MiB",
    "app[{n}]: Exit Code: {m} of {w} {h}, not 137{s}",
)


def near_words(draw: random.Random) -> Iterator[str]:
    """Yield lines of 30 kinds with words that the OOM killer, the kubelet and programs use when something died."""
    while True:
        yield f"Jan  5 15:19:{draw.randrange(60):02d} node-1 {_filled(draw, draw.choice(_NEAR_WORDS))}\n"


def _filled(draw: random.Random, template: str) -> str:
    number, other = draw.randrange(10**6), draw.randrange(10**7)
    return template.format(n=number, m=other, s=draw.randrange(10, 60), h=f"{draw.getrandbits(64):016x}", w=_name(draw))


def _name(draw: random.Random) -> str:
    """Return two words that seldom come together twice."""
    return f"{draw.choice(_WORDS)}{draw.choice('-_.')}{draw.choice(_WORDS)}{draw.choice('abcdefghijklmnopqrstuvwxyz')}"


def distinct_java_errors(draw: random.Random) -> Iterator[str]:
    """Yield errors of Java with their stacks; threads, messages and frames are others each time."""
    kinds = ("Java heap space", "GC overhead limit exceeded", "Metaspace", "unable to create native thread: possibly out of memory", "Direct buffer memory")  # fmt: skip
    while True:
        head = (
            f"Jan  5 15:19:{draw.randrange(60):02d} node-{draw.randrange(3)} {_name(draw)}[{draw.randrange(10**5)}]: "
        )
        said = f"java.lang.OutOfMemoryError: {draw.choice(kinds)}"
        form = draw.randrange(4)
        if form == 0:
            yield f'{head}Exception in thread "{_name(draw)}-{draw.choice(_WORDS)}" {said}\n'
        elif form == 1:
            yield f"{head}ERROR {_name(draw)} request {draw.getrandbits(64):x} of {_name(draw)} failed: {said}\n"
        elif form == 2:
            yield f"{head}Caused by: {said} {_name(draw)} while {draw.choice(_WORDS)} of {_name(draw)}\n"
        else:
            yield f"{head}{_name(draw)}: Handler dispatch failed; nested exception is {said}\n"
        for _ in range(draw.randrange(4)):
            yield f"{head}\tat com.{_name(draw)}.{_name(draw).title()}.{draw.choice(_WORDS)}({_name(draw).title()}.java:{draw.randrange(999)})\n"


def containerd_ooms(draw: random.Random) -> Iterator[str]:
    """Yield what containerd logs of OOM kills, each of another container, with what it logs beside them."""
    while True:
        at, container = f"2026-01-05T{draw.randrange(24):02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d}.{draw.getrandbits(29):09d}Z", f"{draw.getrandbits(256):064x}"  # fmt: skip
        yield f'Jan  5 15:19:{draw.randrange(60):02d} node-1 containerd[911]: time="{at}" level=info msg="TaskOOM event container_id:\\"{container}\\""\n'
        if draw.random() < 0.5:
            yield f'Jan  5 15:19:{draw.randrange(60):02d} node-1 containerd[911]: time="{at}" level=info msg="TaskExit event in podsandbox handler container_id:\\"{container}\\" exit_status:137"\n'


def earlyoom_kills(draw: random.Random) -> Iterator[str]:
    """Yield nothing but kills of earlyoom, each of another process."""
    while True:
        head = f"Jan  5 {draw.randrange(24):02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d} node-{draw.randrange(3)} earlyoom[612]: "
        yield f"{head}mem avail: {draw.randrange(400):5d} of 15930 MiB ({draw.random() * 5:5.2f}%), swap free: {draw.randrange(400):4d} of 2047 MiB ({draw.random() * 9:5.2f}%)\n"
        yield f"{head}low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\n"
        yield f'{head}sending SIGTERM to process {draw.randrange(4 * 10**6)} uid 1000 "{_name(draw)}": badness {draw.randrange(999)}, VmRSS {draw.randrange(9000)} MiB\n'
        yield f"{head}process exited after {draw.random():.1f} seconds\n"


def kubernetes_events(draw: random.Random) -> Iterator[str]:
    """Yield Events as JSON, one a line, of which one in twenty is of an eviction."""
    reasons = ("Scheduled", "Pulled", "Created", "Started", "BackOff", "Unhealthy", "Killing", "FailedScheduling")
    while True:
        name, at = f"{_name(draw).replace('_', '-')}-{draw.getrandbits(40):010x}", f"2026-01-05T{draw.randrange(24):02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d}Z"  # fmt: skip
        is_eviction = draw.random() < 0.05
        yield json.dumps({
            "involvedObject": {"kind": "Pod", "namespace": f"team-{draw.randrange(40)}", "name": name, "uid": f"{draw.getrandbits(128):032x}"},
                "metadata": {"name": f"{name}.{draw.getrandbits(60):x}", "namespace": f"team-{draw.randrange(40)}", "creationTimestamp": at},
            "reason": "Evicted" if is_eviction else draw.choice(reasons), "type": "Warning", "count": draw.randrange(1, 9),
            "message": "The node was low on resource: memory. " if is_eviction else f"{_name(draw)} of {_name(draw)} took {draw.random():.3f}s",
            "source": {"component": "kubelet", "host": f"node-{draw.randrange(50)}"}, "firstTimestamp": at, "lastTimestamp": at,
        }) + "\n"  # fmt: skip


def json_reports(draw: random.Random) -> Iterator[str]:
    """Yield reports in lines of JSON, as log services export them."""
    for number, text in enumerate(_bare_reports(draw)):
        at = f"2026-01-05T15:{number // 60 % 60:02d}:{number % 60:02d}"
        yield "".join(
            json.dumps({
                "timestamp": f"{at}.{index:06d}Z", "host": f"node-{number % 3}", "labels": {"app": f"a{number}"}, "message": line,
            }) + "\n"
            for index, line in enumerate(text)
        )  # fmt: skip


def laid_out_reports(draw: random.Random) -> Iterator[str]:
    """Yield reports in a list of JSON that is laid out over many lines, and that does not end."""
    yield "[\n"
    for number, text in enumerate(_bare_reports(draw)):
        for index, line in enumerate(text):
            record = {"labels": {"node": f"node-{number % 3}"}, "message": line, "time": f"{number}.{index:06d}"}
            yield "  " + json.dumps(record, indent=2).replace("\n", "\n  ") + ",\n"


def coloured_reports(draw: random.Random) -> Iterator[str]:
    """Yield reports as dmesg colours them."""
    for number, text in enumerate(_bare_reports(draw)):
        yield "".join(f"\x1b[32m[{number:5d}.{at:06d}] \x1b[0m\x1b[33m{line}\x1b[0m\n" for at, line in enumerate(text))


def _bare_reports(draw: random.Random) -> Iterator[Iterator[str]]:
    number = 0
    while True:
        number += 1
        yield report(draw, number)


Kind = Callable[[random.Random], Iterator[str]] | Callable[[random.Random], Iterator[bytes]]
OOMS: dict[str, Kind] = {
    "OOM reports": reports,
    "mutated OOM reports": mutated_reports,
    "quoted and wrapped OOM reports": wrapped_reports,
    "OOM reports that end lines with CR": carriage_returns,
    "pieces of OOM reports": spliced,
    "unended reports of many hosts": unfinished_reports_of_hosts,
    "OOM reports in JSON lines": json_reports,
    "OOM reports in JSON that is laid out": laid_out_reports,
    "coloured OOM reports": coloured_reports,
}
"""Mostly OOM reports, whole or not: counted in reports a second."""
OTHERS: dict[str, Kind] = {
    "random bytes": random_bytes,
    "random bytes after half a report": noise_after_a_report,
    "only prefixes": prefixes,
    "a report that never ends": unfinished_report,
    "lines of a megabyte": long_lines,
    "no newline": no_newlines,
    "empty lines": empty_lines,
    "the OOM killer's words": near_misses,
    "the OOM killer's words in short rows": short_near_misses,
    "JSON lines": json_lines,
    "the OOM killer's words in JSON lines": json_near_misses,
    "a verbose kubelet": kubelet_lines,
    "journald's export format": export_entries,
    "quotes and brackets": brackets,
    "nothing but Java's OutOfMemoryError": java_errors,
    "nothing but kills of systemd-oomd": oomd_kills,
    "nothing but kills of earlyoom": earlyoom_kills,
    "errors of Java, no two alike": distinct_java_errors,
    "TaskOOM of another container each": containerd_ooms,
    "near words of 30 kinds, no two lines alike": near_words,
    "Events in JSON": kubernetes_events,
    "a table of pods": pods_table,
    "a table of events": events_table,
    "descriptions of pods": described_pods,
    "docker inspect": inspected_containers,
    "pods as YAML": pods_as_yaml,
    "pods as YAML, all of which exited once": restarted_pods_as_yaml,
    "pods and events as YAML": objects_as_yaml,
}


def generate(kind: Kind, size: int, seed: int = 7) -> Iterator[bytes]:
    """Yield about so many bytes of a kind."""
    written = 0
    for part in kind(random.Random(seed)):
        data = part.encode() if isinstance(part, str) else part
        yield data
        written += len(data)
        if written >= size:
            return
