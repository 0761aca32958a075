"""A real kubelet for benchmarks and tests: given by environment variables, never made here.

    PODQOS_TEST_KUBELET  kubeconfig of a cluster whose kubelet runs on this machine (may do everything)
    PODQOS_TEST_NODE      name of the node; the only one with a kubelet, if left out
    PODQOS_TEST_IMAGE     an image with python3 and sleep that the node has already

A namespace, priority classes and a directory in /dev/shm are made for the run and removed after it. Every container
runs the same program (``MEMBER``): it takes as much memory as it is told through a file shared with the benchmark, and
writes down when it had how much. That file, pidfds and the kernel's log are what is observed; the guard is not asked.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from podqos.cluster.asking import Client
from podqos.cluster.cluster import connect
from podqos.cluster.patience import Patience
from podqos.cluster.transport import SentRequest
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.cgroupfs import Cgroups

MI = 1 << 20
KUBECONFIG = os.environ.get("PODQOS_TEST_KUBELET", "")
IMAGE = os.environ.get("PODQOS_TEST_IMAGE", "python:3-slim")
_PATIENT = Patience(connect_seconds=10, stall_seconds=60, total_seconds=60, attempts=5, most_bytes=64 << 20)
_HEADER = struct.Struct("qqqq")  # starts, wanted bytes, bytes, records
_RECORD = struct.Struct("qq")  # nanoseconds of the monotonic clock, bytes
_FILE_BYTES = 1 << 16
_DIES = Path(__file__).with_name("guard_dies.py")
MANNERS = ("populate", "huge", "small")
"""How pods take memory: huge pages that are filled by the kernel alone, huge pages, and pages of 4 KiB."""
# Two MiB at a time and without a pause: as fast as one core takes pages from the kernel. A start resets what is wanted,
# so that a container that is restarted does nothing.
MEMBER = """
import ctypes, mmap, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
shared = memoryview(mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)).cast("q")
kept = mmap.mmap(-1, 4 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
kept.madvise(mmap.MADV_NOHUGEPAGE if sys.argv[2] == "small" else mmap.MADV_HUGEPAGE)
start, fill = ctypes.addressof(ctypes.c_char.from_buffer(kept)), ctypes.memset
step, now, most = 2 << 20, time.monotonic_ns, (len(shared) - 4) // 2
at, count = 0, shared[3]
shared[1] = shared[2] = 0
shared[0] += 1
while True:
    while shared[1] <= at: time.sleep(0.001)
    try:
        if sys.argv[2] != "populate": raise OSError
        kept.madvise(23, at, step)  # MADV_POPULATE_WRITE
    except OSError: fill(start + at, 1, step)  # also where that is refused: a fault of its own waits instead
    at += step
    if count < most:
        shared[4 + 2 * count], shared[5 + 2 * count] = now(), at
        count += 1
        shared[3] = count
    shared[2] = at
"""


class Memory:
    """What one container is told, and what it wrote down."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.write_bytes(bytes(_FILE_BYTES))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 0)

    @property
    def starts(self) -> int:
        """How often the program was started: each after the first is a restart."""
        return int(_HEADER.unpack_from(self._shared)[0])

    @property
    def has_bytes(self) -> int:
        """What it has taken."""
        return int(_HEADER.unpack_from(self._shared)[2])

    def grow(self, to_bytes: int) -> None:
        """Let it take memory until it has so much."""
        self._shared[8:16] = struct.pack("q", to_bytes)

    def records(self) -> list[tuple[float, int]]:
        """Return when it had how much, in seconds of the monotonic clock."""
        count = _HEADER.unpack_from(self._shared)[3]
        read = (_RECORD.unpack_from(self._shared, _HEADER.size + index * _RECORD.size) for index in range(count))
        return [(moment_ns / 1e9, amount) for moment_ns, amount in read]

    def close(self) -> None:
        """Forget it."""
        self._shared.close()
        self.file.unlink(missing_ok=True)


@dataclass
class Member:
    """One pod of a race: what it asks for, what it holds before, and how far it grows."""

    name: str
    priority: int = 0
    request_mib: int = 0
    is_guaranteed: bool = False
    cpu_milli: int = 20
    """What it asks for, and for a Guaranteed pod all it gets."""
    holds_mib: int = 0
    grows_to_mib: int = 0
    containers: int = 1
    manner: str = "populate"
    document: dict[str, object] = field(default_factory=dict)
    uid: str = ""
    pidfds: tuple[int, ...] = ()
    memory: list[Memory] = field(default_factory=list)


class RealKubelet:
    """The cluster, a namespace in it, and the node's cgroups."""

    def __init__(self) -> None:
        if not KUBECONFIG:
            raise SystemExit("PODQOS_TEST_KUBELET is not set: the kubeconfig of a cluster whose kubelet runs here")
        self.kubeconfig = KUBECONFIG
        self._client: Client = connect(kubeconfig=KUBECONFIG, patience=_PATIENT).client
        self.server = self._client.access.server
        self.node = os.environ.get("PODQOS_TEST_NODE") or self._only_node()
        self.namespace = f"podqos-bench-{os.getpid()}"
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.namespace}-", dir="/dev/shm"))
        self.config = self.get(f"/api/v1/nodes/{self.node}/proxy/configz")["kubeletconfig"]
        root = self.config.get("cgroupRoot", "/").rstrip("/")
        name = "/kubepods.slice" if self.config.get("cgroupDriver") == "systemd" else "/kubepods"
        self.kubepods = root + name
        self.cgroups: Cgroups = open_cgroups(self.kubepods)
        self._priorities: set[int] = set()
        self._log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)

    def _only_node(self) -> str:
        nodes = self.get("/api/v1/nodes")["items"]
        real = [
            each["metadata"]["name"] for each in nodes if each["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        ]
        if len(real) != 1:
            raise SystemExit(f"PODQOS_TEST_NODE is not set, and there are {len(real)} nodes with a kubelet")
        return str(real[0])

    def __enter__(self) -> Self:
        """Make the namespace."""
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self.until(lambda: self.get(path, missing=True), 60)
        os.lseek(self._log, 0, os.SEEK_END)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove everything."""
        with suppress(AssertionError):
            self.delete(*self.pods())
            self.until(lambda: not self.pods(), 60)
        self.send("DELETE", f"/api/v1/namespaces/{self.namespace}")
        for value in self._priorities:
            self.send("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{self._class(value)}")
        os.close(self._log)
        if kept := os.environ.get("PODQOS_BENCH_KEEP"):
            shutil.copytree(self.folder, kept, dirs_exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the API server ----------------------------------------------------------------------------------------------

    def get(self, path: str, *, missing: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Return what the server has; None where it has nothing and that is allowed."""
        answer = self._client.send(SentRequest("GET", b""), path, (), "application/json", _PATIENT)
        if missing and answer.status == 404:
            return None
        assert answer.is_success, (path, answer.status, answer.data[:300])
        return msgspec.json.decode(answer.data)

    def send(self, method: str, path: str, document: object = None, *, kind: str = "application/json") -> int:
        """Send a request and return its status."""
        data = b"" if document is None else msgspec.json.encode(document)
        return self._client.send(SentRequest(method, data), path, (), kind, _PATIENT).status

    def pods(self) -> dict[str, Any]:
        """Return the pods of the namespace, by name."""
        return {each["metadata"]["name"]: each for each in self.get(self._path())["items"]}

    def events(self) -> list[Any]:
        """Return the Events of the namespace."""
        items: list[Any] = self.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return items

    def delete(self, *names: str) -> None:
        """Delete pods without grace."""
        for name in names:
            self.send("DELETE", f"{self._path()}/{name}", {"gracePeriodSeconds": 0})

    def end(self, members: Iterable[Member]) -> None:
        """Delete pods; a kubelet waits for two seconds even so, unless the processes are gone."""
        for member in members:
            self.delete(member.name)
            for descriptor in member.pidfds:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                os.close(descriptor)
            for memory in member.memory:
                memory.close()

    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _class(self, value: int) -> str:
        return f"{self.namespace}-{value}".replace("--", "-minus-")

    # ---- pods --------------------------------------------------------------------------------------------------------

    def start(self, members: Sequence[Member], suffix: str = "") -> None:
        """Start pods, and wait until each runs and holds what it should; files end in the suffix."""
        for member in members:
            self._create(member, suffix)
        for member in members:
            self._await_start(member)
            member.memory[0].grow(member.holds_mib * MI)
        for member in members:
            self.until(lambda m=member: m.memory[0].has_bytes >= m.holds_mib * MI, 60)  # type: ignore[misc]

        def ready() -> bool:
            pods = self.pods()
            return all(_is_running(pods[each.name]) for each in members)

        self.until(ready, 60, 0.1)
        pods = self.pods()
        for member in members:
            member.pidfds = tuple(map(os.pidfd_open, self._processes(pods[member.name])))

    def _await_start(self, member: Member) -> None:
        """Wait until a pod runs; one that the kubelet refuses, because others have yet to end, is made again."""
        for _ in range(20):
            with suppress(AssertionError):
                self.until(lambda: all(each.starts for each in member.memory), 5)
                return
            pod = self.get(f"{self._path()}/{member.name}", missing=True)
            if pod is not None and pod["status"]["phase"] == "Failed":
                self.delete(member.name)
                self._post(member)
        raise AssertionError(f"{member.name} does not start")

    def _create(self, member: Member, suffix: str) -> None:
        if member.priority and member.priority not in self._priorities:
            self._priorities.add(member.priority)
            document = {"metadata": {"name": self._class(member.priority)}, "value": member.priority}
            self.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
        member.memory = [Memory(self.folder / f"{member.name}-{number}{suffix}") for number in range(member.containers)]
        asked = {"memory": f"{member.request_mib}Mi", "cpu": f"{member.cpu_milli}m"} if member.request_mib else {}
        wants = {"requests": asked, **({"limits": asked} if member.is_guaranteed else {})}
        containers = [
            {
                "name": f"main-{number}",
                "image": IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-I", "-S", "-c", MEMBER, f"/shared/{memory.file.name}", member.manner],
                "resources": wants if number == 0 else {},
                "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
            }
            for number, memory in enumerate(member.memory)
        ]
        spec = {
            "nodeName": self.node,
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "shared", "hostPath": {"path": str(self.folder)}}],
            "containers": containers,
            **({"priorityClassName": self._class(member.priority)} if member.priority else {}),
        }
        member.document = {"metadata": {"name": member.name}, "spec": spec}
        self._post(member)

    def _post(self, member: Member) -> None:
        # The server takes a moment to know a new priority class, and to forget a pod.
        self.until(lambda: self.send("POST", self._path(), member.document) == 201, 10, 0.1)
        member.uid = self.get(f"{self._path()}/{member.name}")["metadata"]["uid"]

    def _processes(self, pod: Mapping[str, Any]) -> Iterator[int]:
        """Yield the processes of a pod's containers, on this machine; not the sandbox's."""
        ids = {each["containerID"].rpartition("/")[2] for each in pod["status"]["containerStatuses"]}
        uid = pod["metadata"]["uid"]
        for path in self.cgroup_paths():
            if (uid in path or uid.replace("-", "_") in path) and any(each in path for each in ids):
                yield from self.cgroups.processes(path)

    def has_processes(self, uids: Collection[str]) -> bool:
        """Whether a process of one of these pods is left, the sandbox's included."""
        paths = [path for path in self.cgroup_paths() if any(uid in path.replace("_", "-") for uid in uids)]
        return any(self.cgroups.processes(path) for path in paths)

    def frozen(self) -> list[str]:
        """Return every cgroup below kubepods that is frozen, or becoming so."""
        states = {
            path: self.cgroups.read(path, "freezer.state") or self.cgroups.read(path, "cgroup.freeze")
            for path in self.cgroup_paths()
        }
        return [path for path, state in states.items() if (state or "").strip() not in {"", "THAWED", "0"}]

    def cgroup_paths(self) -> list[str]:
        """Return every cgroup below kubepods."""
        found, todo = [], [self.kubepods]
        while todo:
            path = todo.pop()
            for name in self.cgroups.children(path):
                found.append(f"{path}/{name}")
                todo.append(f"{path}/{name}")
        return found

    # ---- what is observed --------------------------------------------------------------------------------------------

    @property
    def limit_bytes(self) -> int:
        """The limit of kubepods."""
        limit = self.cgroups.memory_limit(self.kubepods)
        assert limit is not None
        return limit

    @property
    def working_set_bytes(self) -> int:
        """What the kubelet counts as used."""
        memory = self.cgroups.memory(self.kubepods)
        assert memory is not None
        return memory.working_set_bytes

    def kernel_kills(self) -> list[str]:
        """Return the cgroup of each process the kernel has killed because kubepods was full, since last asked."""
        found = []
        while True:
            try:
                line = os.read(self._log, 8192).decode(errors="replace")
            except BlockingIOError:
                return found
            except BrokenPipeError:
                continue  # lines were overwritten
            if "oom-kill:" in line and f"oom_memcg={self.kubepods}" in line:
                found.append(line.partition("task_memcg=")[2].partition(",")[0])

    def until(self, condition: Callable[[], object], seconds: float, pause: float = 0.02) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"it did not come to that within {seconds} s")
            time.sleep(pause)


def _is_running(pod: Mapping[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses") or []
    return bool(statuses) and all("running" in each["state"] for each in statuses)


class Guard:
    """``podqos guard run`` as a process of its own."""

    def __init__(self, kubelet: RealKubelet, *options: str, kubeconfig: str = "") -> None:
        self.folder = kubelet.folder / f"guard-{time.monotonic_ns()}"
        self.folder.mkdir()
        self.state, self.run = self.folder / "state", self.folder / "run"
        self.command = [
            sys.executable, "-m", "podqos", "guard", "run", "--kubeconfig", kubeconfig or kubelet.kubeconfig,
            "--node", kubelet.node, "--state", str(self.state), "--run", str(self.run), *options,
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it and wait until it watches."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if error is not None:
            print((self.folder / "said").read_text()[-3000:], file=sys.stderr)
        self.end()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    def start(self, seconds: float = 60, *, dies: str = "") -> None:
        """Start it, and wait until it watches; it may be one that kills itself at a step (``guard_dies``)."""
        command = [sys.executable, str(_DIES), dies, *self.command[3:]] if dies else self.command
        before = len(self.journal("Watching"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        end = time.monotonic() + seconds
        while len(self.journal("Watching")) <= before:
            if dies and self.process.poll() == -signal.SIGKILL:
                return  # it took over what another had begun, and died of it
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the guard does not watch: {(self.folder / 'said').read_text()[-3000:]}")
            time.sleep(0.05)

    def end(self, number: int = 15) -> None:
        """End it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(30)

    def journal(self, *kinds: str) -> list[Any]:
        """Return the entries of these kinds; whole lines only."""
        found: list[Any] = []
        for file in sorted(self.state.glob("journal.jsonl*"), reverse=True):
            data = file.read_bytes()
            found += [msgspec.json.decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [each for each in found if not kinds or each["kind"] in kinds]

    @property
    def major_faults(self) -> int:
        """How often it had to wait for the disk, of all its threads."""
        return int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[9])
