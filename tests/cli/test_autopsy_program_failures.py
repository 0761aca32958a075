"""``podqos autopsy`` on programs' own out-of-memory errors, and on daemons that noticed a kill of the kernel's."""

from __future__ import annotations

import pytest

from kernel.oom_logs import CONTAINER, ROWS, cgroup, machine
from podqos.answers.log_marks import next_mark
from podqos.answers.other_killers import MARKS, NOTICE_MARKS
from podqos.kernel.oom_reader import BEGINNINGS

ID = "ab" * 32
HEADER = "Nov 18 09:00:01 worker-1"


JAVA = "java.lang.OutOfMemoryError: "
FAILURES = {
    f'Exception in thread "main" {JAVA}Java heap space': ("JavaHeap", {}),
    f"Terminating due to {JAVA}Java heap space": ("JavaHeap", {"isFatal": True}),
    f"Caused by: {JAVA}GC overhead limit exceeded": ("JavaGCOverhead", {}),
    f"{JAVA}Metaspace": ("JavaMetaspace", {}),
    f"{JAVA}Direct buffer memory": ("JavaDirectMemory", {}),
    f"{JAVA}Cannot reserve 4096 bytes of direct buffer memory (allocated: 9, limit: 8192)": (
        "JavaDirectMemory",
        {"wantedBytes": 4096, "limitBytes": 8192},
    ),
    f"{JAVA}Requested array size exceeds VM limit": ("JavaArraySize", {}),
    f"{JAVA}unable to create native thread: possibly out of memory or process/resource limits reached": (
        "JavaThreads",
        {},
    ),
    "# There is insufficient memory for the Java Runtime Environment to continue.": ("JavaNative", {"isFatal": True}),
    "# Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.": (
        "JavaNative",
        {"wantedBytes": 65536},
    ),
    "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x00000000d5550000, 715849728, 0) failed; "
    "error='Not enough space' (errno=12)": ("JavaNative", {"wantedBytes": 715849728}),
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": (
        "NodeHeap",
        {"isFatal": True},
    ),
    "FATAL ERROR: CALL_AND_RETRY_LAST Allocation failed - JavaScript heap out of memory": ("NodeHeap", {}),
    "runtime: out of memory: cannot allocate 4194304-byte block (8 in use)": ("Go", {"wantedBytes": 4194304}),
    "fatal error: runtime: cannot allocate memory": ("Go", {"isFatal": True}),
    "MemoryError": ("Python", {}),
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.50 GiB for an array with shape (1,)": (
        "Python",
        {"wantedBytes": 15 << 29},
    ),
}


@pytest.mark.parametrize("line", FAILURES)
def test_a_programs_own_error_is_told_apart_from_a_kill(told, line):
    kind, details = FAILURES[line]
    for before in ("", f"{HEADER} app[12]: ", "2026-11-18T09:00:01.5Z stderr F "):
        found = told(before + line)
        (failure,) = found["programFailures"]
        assert failure["kind"] == kind
        assert {key: failure.get(key) for key in details} == details
        assert not (found["kills"])
        assert not (found["evictions"])
        assert not (found["userspaceKills"])


def test_the_headline_names_the_program_and_the_reason_and_claims_no_kill(told):
    said = told(f"{JAVA}Java heap space", output="text").splitlines()
    assert said[0] == "Not the kernel: the JVM, because its heap is full. No OOM kill in the log."


def test_an_error_is_counted_once_for_each_kind_and_host(told):
    lines = [f"{HEADER} app[1]: {JAVA}Java heap space", f"{HEADER} app[1]: Terminating due to {JAVA}Java heap space"]
    (failure,) = told(*lines)["programFailures"]
    assert (failure["times"], failure["isFatal"], failure["host"]) == (2, True, "worker-1")
    assert len(told(*lines, lines[0].replace("worker-1", "worker-2"))["programFailures"]) == 2


def test_lines_that_describe_one_error_are_one_error(told):
    lines = [line for line, (kind, _) in FAILURES.items() if kind == "JavaNative"]
    (failure,) = told(*lines)["programFailures"]
    assert (failure.get("times", 1), failure["wantedBytes"]) == (1, 65536)
    lines = ["runtime: out of memory: cannot allocate 4096-byte block (8 in use)", "fatal error: out of memory"]
    (failure,) = told(*lines)["programFailures"]
    assert (failure.get("times", 1), failure["wantedBytes"]) == (1, 4096)
    (failure,) = told(*lines, *lines)["programFailures"]
    assert failure["times"] == 2


def test_a_kill_by_the_kernel_comes_before_a_programs_error(told):
    said = told(f"{JAVA}Java heap space", *machine(), output="text").splitlines()
    assert said[0].startswith("The machine ran out of memory: ")
    assert "Programs' own errors:" in said


@pytest.mark.parametrize(
    "line",
    [
        "java -XX:+HeapDumpOnOutOfMemoryError -XX:+ExitOnOutOfMemoryError -jar app.jar",
        "    } catch (OutOfMemoryError e) {",
        "    except MemoryError:",
        "    raise MemoryError",
        "throw new System.OutOfMemoryException(",
        "recv() failed (11: Resource temporarily unavailable) while reading",
        "Mem-Info: out of memory handling is configured",
    ],
)
def test_options_source_code_and_prose_are_not_failures(told, line):
    assert not told(line)["programFailures"]


NOTICES = {
    f'{HEADER} containerd[8]: time="2026-11-18T09:00:01.5Z" level=info msg="TaskOOM event &TaskOOM{{ContainerID:{ID},'
    'XXX_unrecognized:[],}"': {"kind": "ContainerOOMKilled", "containerId": ID, "node": "worker-1"},
    f'time="2026-11-18T09:00:01.5Z" level=info msg="TaskOOM event container_id:\\"{ID}\\""': {
        "kind": "ContainerOOMKilled",
        "containerId": ID,
        "at": "2026-11-18T09:00:01.5Z",
    },
    f'2026-11-18 09:00:01.5 +0000 UTC k8s.io /tasks/oom {{"container_id":"{ID}"}}': {"kind": "ContainerOOMKilled"},
    'time="2026-11-18T09:00:01Z" level=debug msg="event forwarded" ns=k8s.io topic=/tasks/oom type=TaskOOM': {
        "kind": "ContainerOOMKilled"
    },
    f'I1118 09:00:01.0 9 manager.go:1126] Created an OOM event in container "{CONTAINER}" at 2026-11-18 09:00:01': {
        "kind": "ContainerOOMKilled",
        "containerId": ID,
    },
    f"{HEADER} conmon[9]: conmon {ID[:20]} <ninfo>: OOM received": {
        "kind": "ContainerOOMKilled",
        "containerId": ID[:20],
    },
    f"{HEADER} systemd[1]: web.service: A process of this unit has been killed by the OOM killer.": {
        "kind": "UnitOOMKilled",
        "unit": "web.service",
        "node": "worker-1",
        "at": "Nov 18 09:00:01",
    },
    "web.service: The kernel OOM killer killed some processes in this unit.": {"unit": "web.service"},
    f"{HEADER} systemd[1]: web.service: Failed with result 'oom-kill'.": {"unit": "web.service"},
    f'{HEADER} kubelet[9]: I1118 09:00:02.000001     912 oom_watcher_linux.go:87] "Got sys oom event" '
    'event={"Pid":4711,"ProcessName":"java","TimeOfDeath":"2026-11-18T09:00:01Z","ContainerName":"/"}': {
        "kind": "SystemOOM",
        "pid": 4711,
        "process": "java",
        "node": "worker-1",
    },
    'I1118 09:00:02.000001 912 oom_watcher_linux.go:79] "Got sys oom event" event="&{Pid:4711 ProcessName:java '
    'TimeOfDeath:2026-11-18 09:00:01 +0000 UTC ContainerName:/ VictimContainerName:/x Constraint:CONSTRAINT_NONE}"': {
        "kind": "SystemOOM",
        "pid": 4711,
        "process": "java",
    },
    "Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
    "failed: unable to start container process: container init was OOM-killed (memory limit too low?): unknown": {
        "kind": "InitOOMKilled"
    },
}


@pytest.mark.parametrize("line", NOTICES)
def test_what_daemons_say_of_a_kill_is_proof_of_it_but_not_a_report(told, line):
    found = told(line)
    (sign,) = found["nodeEvents"]
    assert {key: sign.get(key) for key in NOTICES[line]} == NOTICES[line]
    assert not found["kills"]
    said = told(line, output="text").splitlines()[0]
    assert said.startswith(("The kernel OOM-killed ", "The machine ran out of memory"))
    assert said.endswith(". The kernel's report is not in the log.")
    assert all(sign.get(key, "")[:12] in said for key in ("unit", "containerId", "process"))


def test_systemds_two_lines_are_one_kill(told):
    lines = [line for line in NOTICES if HEADER in line and "web.service" in line]
    assert len(lines) == 2
    assert len(told(*lines)["nodeEvents"]) == 1


def test_a_unit_above_the_victims_is_that_of_the_same_kill(told):
    report = cgroup(ROWS, 102, "java (main) [x]")
    within = [line.replace("/kubepods.slice/", "/user.slice/shell.scope/tab(1).scope/") for line in report]
    line = f"{HEADER} systemd[1]: shell.scope: The kernel OOM killer killed some processes in this unit."
    assert [sign["kill"] for sign in told(line, *within)["nodeEvents"]] == [0]
    other = line.replace("shell.scope", "other.scope")
    assert [sign.get("kill") for sign in told(other, *within)["nodeEvents"]] == [None]


def test_a_notice_points_at_the_kernels_report(told):
    report = cgroup(ROWS, 102, "java (main) [x]")
    found = told(*report, next(iter(NOTICES)))
    assert found["kills"][0]["containerId"] == ID in CONTAINER
    assert [sign["kill"] for sign in found["nodeEvents"]] == [0]
    said = told(*report, next(iter(NOTICES)), output="text")
    assert f"the kernel OOM-killed a process in container {ID[:12]}: see above" in said


def test_in_a_long_log_every_line_that_matters_has_a_mark():
    lines = dict.fromkeys(FAILURES, (*MARKS, *NOTICE_MARKS))
    lines |= dict.fromkeys(NOTICES, (*NOTICE_MARKS, *BEGINNINGS))
    for line, marks in lines.items():
        assert any(next_mark(line.encode(), mark, 0) >= 0 for mark in marks), line


def test_what_daemons_noticed_is_found_deep_in_a_log_without_the_kernels_lines_or_after_a_kill(told):
    notice, kubelet = next(iter(NOTICES)), next(line for line in NOTICES if "sys oom event" in line)
    other = [f"{HEADER} app[1]: took 12 ms, memory is fine"] * 3_000
    found = told(*other, notice, kubelet, *other)
    assert [sign["kind"] for sign in found["nodeEvents"]] == ["ContainerOOMKilled", "SystemOOM"]
    report = [f"{HEADER} kernel: {line}" for line in cgroup(ROWS, 102, "java (main) [x]")]
    found = told(f"{HEADER} kernel: eth0: up", *other, *report, notice, *other)
    assert [(sign["kind"], sign["kill"]) for sign in found["nodeEvents"]] == [("ContainerOOMKilled", 0)]


def test_hostile_lines_are_read_fast(told):
    lines = [
        "OOM" * 2700,
        "Kill '" * 1300,
        "fork" * 2000 + " temporarily unavailable",
        "a" * 8000 + ": Failed",
        "Killed /" * 1000 + "due to memory ",
        "server " * 1100 + "signal 9 emory",
    ]
    assert not told(*(lines * 20))["programFailures"]
