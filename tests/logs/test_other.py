"""Other killers, what others noticed of the kernel's kills, programs' own heaps, containers as runtimes show them."""

from __future__ import annotations

# ruff: noqa: E501 - lines as they are logged
import io
import json

import pytest

from podqos.logs.said import FailureKind, KillBasis, Killer, Said, SignKind
from podqos.logs.search import LogReader

OOMD = "Jul 22 08:34:22 host systemd-oomd[62078]:"
ID = "ab" * 32
SCOPE = (
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice"
    f"/cri-containerd-{ID}.scope"
)


def read(*lines: str) -> Said:
    said = Said()
    assert not [*LogReader(said).read(io.BytesIO("\n".join(lines).encode()))]
    return said


def test_systemd_oomd_says_whom_it_killed_and_by_which_pressure():
    (kill,) = read(
        f"{OOMD} Killed {SCOPE} due to memory pressure for /kubepods.slice being 61.30% > 50.00% for > 20s with reclaim "
        "activity"
    ).kills
    assert (kill.killer, kill.basis, kill.cgroup) == (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_PRESSURE, SCOPE)
    assert (kill.pressure_percent, kill.pressure_limit_percent, kill.pressure_duration) == (61.3, 50.0, "20s")
    assert (kill.at, kill.host, kill.container_id) == ("Jul 22 08:34:22", "host", ID)
    assert kill.pod_uid == "11111111-2222-3333-4444-555555555555"


def test_systemd_oomd_says_how_much_memory_and_swap_were_used():
    (kill,) = read(
        f"{OOMD} Killed /a.slice due to memory used (7000000000) / total (8000000000) and swap used (1900000000) / total "
        "(2000000000) being more than 90.00%"
    ).kills
    assert (kill.basis, kill.memory_used_bytes, kill.swap_total_bytes, kill.swap_limit_percent) == (
        KillBasis.MEMORY_AND_SWAP, 7_000_000_000, 2_000_000_000, 90.0,
    )  # fmt: skip


def test_one_kill_in_two_lines_is_one():
    (kill,) = read(
        f"{OOMD} Killed /system.slice/db.service due to memory pressure for /a being 61.30% > 50.00% for > 20s with reclaim "
        "activity",
        "Jul 22 08:34:22 host systemd[1]: db.service: systemd-oomd killed 3 process(es) in this unit.",
    ).kills
    assert (kill.cgroup, kill.processes) == ("/system.slice/db.service", 3)


@pytest.mark.parametrize(
    "line",
    [
        f"{OOMD} Considered 31 cgroups for killing, top candidates were:",
        f"{OOMD} Swap used (7000000000) / total (8000000000) is more than 90%",
        f"{OOMD} Failed to kill any cgroup(s) based on swap: No such file",
    ],
)
def test_systemd_oomd_that_looks_for_a_victim_killed_nothing(line):
    said = read(line)
    assert said.kills == []
    assert [sign.kind for sign in said.signs] == [SignKind.OOMD_KILLED_NOTHING]


EARLYOOM = [
    "earlyoom[9]: mem avail:   374 of  7841 MiB ( 4.78%), swap free:    0 of    0 MiB ( 0.00%)",
    "earlyoom[9]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%",
    'earlyoom[9]: sending SIGTERM to process 612 uid 1000 "chrome": badness 900, VmRSS 3000 MiB',
]


def test_earlyoom_says_what_was_left_and_whom_it_asked_to_end():
    (kill,) = read(*[f"Jul 22 08:34:22 host {line}" for line in EARLYOOM]).kills
    assert (kill.killer, kill.basis, kill.victim, kill.pid, kill.signal) == (
        Killer.EARLYOOM, KillBasis.LOW_MEMORY, "chrome", 612, "SIGTERM",
    )  # fmt: skip
    assert (kill.memory_available_bytes, kill.memory_limit_percent, kill.rss_bytes) == (374 << 20, 10.0, 3000 << 20)
    again = 'earlyoom[9]: sending SIGKILL to process 612 uid 1000 "chrome": badness 900, VmRSS 3000 MiB'
    (kill,) = read(*EARLYOOM, again).kills
    assert kill.signal == "SIGKILL"
    assert read(*EARLYOOM, "earlyoom[9]: dryrun, not actually sending any signal").kills == []


def test_talos_says_which_cgroup_it_killed():
    line = (
        'user: warning: [2026-01-05T15:19:27.708440Z]: [talos] Sending SIGKILL to cgroup {"component": "controller-runtime", '
        f'"controller": "runtime.OOMController", "cgroup": "/sys/fs/cgroup{SCOPE}"}}'
    )
    (kill,) = read(line).kills
    assert (kill.killer, kill.cgroup, kill.container_id) == (Killer.TALOS, SCOPE, ID)


@pytest.mark.parametrize(
    ("line", "kind", "unit", "container"),
    [
        ("db.service: A process of this unit has been killed by the OOM killer.", SignKind.UNIT_OOM_KILLED, "db.service", ""),
        ("db.service: Failed with result 'oom-kill'.", SignKind.UNIT_OOM_KILLED, "db.service", ""),
        (f"cri-containerd-{ID}.scope: Failed with result 'oom-kill'.", SignKind.CONTAINER_OOM_KILLED, f"cri-containerd-{ID}.scope", ID),
    ],
)  # fmt: skip
def test_systemd_notices_what_the_kernel_killed(line, kind, unit, container):
    (sign,) = read(f"Jan  5 15:19:27 node-1 systemd[1]: {line}").signs
    assert (sign.kind, sign.unit, sign.container_id, sign.node) == (kind, unit, container, "node-1")


@pytest.mark.parametrize(
    "line",
    [
        f'time="2026-01-05T15:19:27Z" level=info msg="TaskOOM event container_id:\\"{ID}\\""',
        f'time="2026-01-05T15:19:27Z" level=info msg="TaskOOM event &TaskOOM{{ContainerID:{ID},XXX_unrecognized:[],}}"',
        f"Jan  5 15:19:27 node-1 conmon[77]: conmon {ID} <ninfo>: OOM event received",
    ],
)
def test_container_runtimes_notice_what_the_kernel_killed(line):
    (sign,) = read(line).signs
    assert (sign.kind, sign.container_id) == (SignKind.CONTAINER_OOM_KILLED, ID)


def test_the_kubelet_notices_what_the_kernel_killed():
    line = (
        'I0105 15:19:27.708440 1234 oom_watcher_linux.go:77] "Got sys oom event" event={"Pid":102,"ProcessName":"java",'
        f'"TimeOfDeath":"2026-01-05T15:19:27Z","ContainerName":"/","VictimContainerName":"{SCOPE}"}}'
    )
    (sign,) = read(f"Jan  5 15:19:27 node-1 kubelet[1234]: {line}").signs
    assert (sign.kind, sign.pid, sign.process, sign.container_id) == (SignKind.SYSTEM_OOM, 102, "java", ID)
    assert (sign.node, sign.is_machines) == ("node-1", True)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", FailureKind.JAVA_HEAP),
        ('Exception in thread "main" java.lang.OutOfMemoryError: GC overhead limit exceeded', FailureKind.JAVA_GC_OVERHEAD),
        ("2026-11-18 09:00:01 ERROR c.e.App - failed: java.lang.OutOfMemoryError: Metaspace", FailureKind.JAVA_METASPACE),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", FailureKind.NODE_HEAP),
        ("fatal error: runtime: out of memory", FailureKind.GO),
        ("MemoryError", FailureKind.PYTHON),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1,)", FailureKind.PYTHON),
        ('{"time":"2026-11-18T09:00:01Z","msg":"java.lang.OutOfMemoryError: Java heap space"}', FailureKind.JAVA_HEAP),
    ],
)  # fmt: skip
def test_a_program_says_that_its_own_heap_is_full(line, kind):
    (failure,) = read(line, line).failures
    assert (failure.kind, failure.times) == (kind, 2)


@pytest.mark.parametrize(
    "line",
    [
        "Java says java.lang.OutOfMemoryError: Java heap space when it is full.",
        "Then we saw java.lang.OutOfMemoryError: Java heap space",
        "In Python you catch a MemoryError",
        "except MemoryError:",
        "Node.js prints FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory and exits.",
    ],
)
def test_prose_about_a_full_heap_is_none(line):
    assert read(line).failures == []


DOCKER = {
    "Id": ID,
    "Name": "/db",
    "RestartCount": 2,
    "State": {"Status": "exited", "Running": False, "OOMKilled": True, "ExitCode": 137, "FinishedAt": "2026-11-18T09:00:00Z"},
    "HostConfig": {"Memory": 536870912},
}  # fmt: skip
CRI = {
    "status": {
        "id": ID,
        "metadata": {"attempt": 2, "name": "db"},
        "state": "CONTAINER_EXITED",
        "exitCode": 137,
        "reason": "OOMKilled",
        "finishedAt": "2026-11-18T09:00:00Z",
        "labels": {"io.kubernetes.pod.name": "db-0", "io.kubernetes.pod.namespace": "shop"},
        "resources": {"linux": {"memoryLimitInBytes": "536870912"}},
    },
    "info": {"sandboxID": "x"},
}


@pytest.mark.parametrize("indent", [4, None])
@pytest.mark.parametrize(("value", "key"), [([DOCKER], ""), (DOCKER, ""), (CRI, "shop/db-0")])
def test_a_container_that_its_runtime_shows_has_a_status(value, key, indent):
    (pod,) = read(json.dumps(value, indent=indent)).pods
    (status,) = pod.status.container_statuses
    ended = status.state.terminated
    assert (pod.key, pod.is_from_runtime, status.name, status.restart_count) == (key, True, "db", 2)
    assert (ended.reason, ended.exit_code, ended.finished_at) == ("OOMKilled", 137, "2026-11-18T09:00:00Z")
    assert [str(limit) for limit in pod.spec.containers[0].resources.limits.values()] == ["512Mi"]
