"""A kubelet for the guard's tests: the suite's own, or a real one where ``PODQOS_TEST_KUBELET`` names a kubeconfig.

Both run pods of a few processes in cgroups of this machine, restart what ends, and tear a pod down when they are told
as the recordings found. ``PODQOS_TEST_IMAGE`` is an image with a shell that the real one has (``localhost/busybox:1``),
``PODQOS_TEST_NODE`` its node, where there are several.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from guard.api_server import ApiServer, Json
from host.machine import why_not
from podqos.cluster.access import find_access
from podqos.cluster.asking import Client
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import PATIENT
from podqos.cluster.transport import SentRequest
from podqos.errors import NotFound
from podqos.guard.tree import find_kubepods, pod_at, pod_paths
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.procfs import Procfs
from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import container_location, node_path, pod_path
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings

REAL = os.environ.get("PODQOS_TEST_KUBELET")
PATIENCE = float(os.environ.get("PODQOS_TEST_PATIENCE", "1"))
SLEEP = ("sh", "-c", "while :; do sleep 1000; done")
_ENTER = 'n=$1; shift; while [ $n -gt 0 ]; do echo 0 > "$1"; shift; n=$((n-1)); done; exec "$@"'
_numbers = count()


def wait_until(condition: Callable[[], object], what: str, seconds: float = 300.0) -> None:
    """Wait for something that will happen, however slow the machine is."""
    seconds *= PATIENCE
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.005)


@dataclass(frozen=True)
class RunningPod:
    """A pod that runs."""

    namespace: str
    name: str
    uid: str
    cgroup: str
    container_ids: tuple[str, ...]


class Kubelet:
    """What both kubelets have in common: they are asked through their API server."""

    cgroups: Cgroups
    access: Access
    node: str
    namespace = "default"

    def __init__(self) -> None:
        self.client = Client(self.access, environment={})
        self.procfs = Procfs()

    def start(self, name: str, *commands: Sequence[str], grace_seconds: int = 1) -> None:
        """Start a pod with a container for each command."""
        raise NotImplementedError

    def run(self, name: str, *commands: Sequence[str], grace_seconds: int = 1) -> RunningPod:
        """Start a pod and wait until its containers run."""
        wanted = commands or (SLEEP,)
        self.start(name, *wanted, grace_seconds=grace_seconds)
        wait_until(lambda: len(self._ids(name)) == len(wanted), f"{name} runs")
        uid = self.pod(name)["metadata"]["uid"]
        return RunningPod(self.namespace, name, uid, dict(pod_paths(self.cgroups))[uid], self._ids(name))

    def pod(self, name: str) -> Json:
        """Return a pod as the server has it; empty where there is none."""
        try:
            return json.loads(self.client.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}").data)
        except NotFound:
            return {}

    def events(self, uid: str) -> list[Json]:
        """Return the Events of evictions of a pod."""
        listed = json.loads(self.client.get(f"/api/v1/namespaces/{self.namespace}/events").data)
        return [
            each for each in listed["items"] if each["involvedObject"]["uid"] == uid and each["reason"] == "Evicted"
        ]

    def restarts(self, name: str) -> int:
        """Return how often the containers of a pod were started again."""
        return sum(each["restartCount"] for each in self.pod(name)["status"].get("containerStatuses", []))

    def processes(self, pod: RunningPod) -> set[int]:
        """Return the processes of the containers that the pod had at first."""
        there = pod_at(self.cgroups, pod.uid, pod.cgroup).containers
        return {pid for each in there if each.id in pod.container_ids for pid in self.cgroups.charged(each.path)}

    def is_evicted(self, pod: RunningPod) -> bool:
        """Whether the server has what an evicted pod has, and the kubelet has torn it down."""
        there = self.pod(pod.name)
        status = there.get("status", {})
        states = [each["state"] for each in status.get("containerStatuses", [])]
        return (
            there.get("metadata", {}).get("uid") == pod.uid
            and (status.get("phase"), status.get("reason")) == ("Failed", "Evicted")
            and all("terminated" in each for each in states)
        )

    def _ids(self, name: str) -> tuple[str, ...]:
        statuses = self.pod(name).get("status", {}).get("containerStatuses", [])
        return tuple(each["containerID"].rpartition("/")[2] for each in statuses if "running" in each.get("state", {}))


# ---- the suite's own -----------------------------------------------------------------------------------------------


@dataclass
class _Container:
    command: Sequence[str]
    id: str
    process: subprocess.Popen[bytes]
    restarts: int = 0
    is_restarted_at: float | None = None


@dataclass
class _Pod:
    name: str
    uid: str
    cgroup: str
    grace_seconds: int
    sandbox: subprocess.Popen[bytes] | None = None
    containers: dict[str, _Container] = field(default_factory=dict)
    reverted_at: float | None = None
    annotations: Json = field(default_factory=dict)


class SuiteKubelet(Kubelet):
    """Runs processes in cgroups of its own, and does about statuses what a real kubelet was recorded to do."""

    restart_seconds = 0.4
    """The first restart of a real one comes after 0.2 to 1.3 seconds."""
    revert_seconds = 3.0
    """A status without a changed annotation is put back after 3 to 6 seconds."""

    def __init__(self, api: ApiServer, driver: CgroupDriver = CgroupDriver.CGROUPFS) -> None:
        """``driver`` decides about the names of cgroups; all are directories made here."""
        self.api = api
        self.node = api.node
        self.access = Access(server=api.url)
        super().__init__()
        root = f"/podqos-guard-{os.getpid()}-{next(_numbers)}"
        self.settings = CgroupSettings(node_memory_bytes=0, cgroup_driver=driver, cgroup_root=root)
        self.cgroups = open_cgroups(node_path(self.settings))
        self._top = self.cgroups.own.rpartition("/")[0]
        self._folder = Path(tempfile.mkdtemp(prefix="podqos-guard-"))
        self._pause = self._folder / "pause"
        shutil.copy(shutil.which("sleep") or "/bin/sleep", self._pause)
        self._pods: list[_Pod] = []
        self._made: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def start(self, name: str, *commands: Sequence[str], grace_seconds: int = 1) -> None:
        containers = [{"name": f"c{number}", "image": "suite", "resources": {}} for number in range(len(commands))]
        spec = {"priority": 0, "terminationGracePeriodSeconds": grace_seconds, "containers": containers}
        status = {"phase": "Pending", "qosClass": "BestEffort"}
        made = self.api.add_pod({"metadata": {"name": name}, "spec": spec, "status": status})
        uid = made["metadata"]["uid"]
        pod = _Pod(name, uid, pod_path(uid, QOSClass.BEST_EFFORT, self.settings) or "", grace_seconds)
        pod.sandbox = self._start(pod, _id(), (str(self._pause), "100000"))
        for number, command in enumerate(commands):
            pod.containers[f"c{number}"] = self._container(pod, command)
        with self._lock:
            self._pods.append(pod)
            self._show(pod, "Running")

    def is_evicted(self, pod: RunningPod) -> bool:
        """Whether it is and will stay so: containers that have ended by themselves are not torn down yet."""
        return all(each.uid != pod.uid for each in list(self._pods)) and super().is_evicted(pod)

    def close(self) -> None:
        """End everything, frozen or not."""
        self._is_over.set()
        self._thread.join()
        for path in dict(pod_paths(self.cgroups)).values():
            self.cgroups.thaw(path)
        open_cgroups(self._top).end([self._top], 30)
        for process in self._made:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder)
        self.client.close()

    def _container(self, pod: _Pod, command: Sequence[str], restarts: int = 0) -> _Container:
        made = _id()
        return _Container(command, made, self._start(pod, made, command), restarts)

    def _start(self, pod: _Pod, container_id: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        path = container_location(pod.cgroup, container_id, self.settings).path or ""
        self.cgroups.create(path)
        entrances = self.cgroups.entrances(path)
        process = subprocess.Popen(
            ["/bin/sh", "-c", _ENTER, "sh", str(len(entrances)), *entrances, *command],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        self._made.append(process)
        wait_until(lambda: _has_entered(process, entrances[-1]), "the container is in its cgroup")
        return process

    def _work(self) -> None:
        while not self._is_over.wait(0.02):
            with self._lock:
                for pod in list(self._pods):
                    self._sync(pod)

    def _sync(self, pod: _Pod) -> None:
        there = self.api.pod("default", pod.name)
        if there is None or there["metadata"]["uid"] != pod.uid or "deletionTimestamp" in there["metadata"]:
            self._tear_down(pod)
            if there is not None and there["metadata"]["uid"] == pod.uid:
                self.api.delete_pod("default", pod.name)
            return
        now = time.monotonic()
        if there["status"]["phase"] == "Failed":
            if there["metadata"].get("annotations", {}) != pod.annotations:
                told = there["status"]
                self._show(pod, "Failed", reason=None, message=None)
                self._tear_down(pod)
                self._show(pod, "Failed", reason=told["reason"], message=told["message"])
                return
            if pod.reverted_at is None:
                pod.reverted_at = now + self.revert_seconds
            elif now >= pod.reverted_at:
                pod.reverted_at = None
                self._show(pod, "Running", reason=None, message=None)
        for name, container in pod.containers.items():
            if container.process.poll() is None:
                continue
            if container.is_restarted_at is None:
                container.is_restarted_at = now + self.restart_seconds * (1 + 20 * container.restarts)
                self._show(pod)
            elif now >= container.is_restarted_at:
                pod.containers[name] = self._container(pod, container.command, container.restarts + 1)
                self._show(pod)

    def _tear_down(self, pod: _Pod) -> None:
        self._pods.remove(pod)
        for container in pod.containers.values():
            with suppress(ProcessLookupError):
                container.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + pod.grace_seconds
        while any(each.process.poll() is None for each in pod.containers.values()) and time.monotonic() < until:
            time.sleep(0.005)
        self.cgroups.end([pod.cgroup], 0.0 if self._is_over.is_set() else 30.0)
        for container in pod.containers.values():
            container.process.wait(300)

    def _show(self, pod: _Pod, phase: str | None = None, **fields: str | None) -> None:
        """Write the status of a pod; fields that are None are removed. Without a phase, whatever it is by now stays."""
        statuses = []
        for name, each in pod.containers.items():
            code = each.process.poll()
            state = {"running": {}} if code is None else {"terminated": {"exitCode": 128 - code if code < 0 else code}}
            known = {"name": name, "containerID": f"containerd://{each.id}", "restartCount": each.restarts}
            statuses.append({**known, "state": state})

        def change(shown: Json) -> None:
            shown["status"] |= {"phase": phase or shown["status"]["phase"], "containerStatuses": statuses}
            for name, value in fields.items():
                if value is None:
                    shown["status"].pop(name, None)
                else:
                    shown["status"][name] = value

        self.api.change("default", pod.name, pod.uid, change)


def _has_entered(process: subprocess.Popen[bytes], entrance: str) -> bool:
    return process.poll() is not None or str(process.pid) in Path(entrance).read_text().split()


def _id() -> str:
    return (uuid.uuid4().hex * 2)[:64]


# ---- a real one ----------------------------------------------------------------------------------------------------


class RealKubelet(Kubelet):
    """One that runs beside the tests, asked as an administrator."""

    def __init__(self, kubeconfig: str) -> None:
        self.access = find_access(kubeconfig=kubeconfig, environment={})
        super().__init__()
        nodes = json.loads(self.client.get("/api/v1/nodes").data)["items"]
        self.node = os.environ.get("PODQOS_TEST_NODE") or nodes[0]["metadata"]["name"]
        config = json.loads(self.client.get(f"/api/v1/nodes/{self.node}/proxy/configz").data)["kubeletconfig"]
        driver = CgroupDriver(config.get("cgroupDriver", "cgroupfs"))
        settings = CgroupSettings(
            node_memory_bytes=0, cgroup_driver=driver, cgroup_root=config.get("cgroupRoot") or "/"
        )
        self.cgroups = find_kubepods(settings, self.procfs)
        self.namespace = f"podqos-guard-{os.getpid()}-{next(_numbers)}"
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_until(lambda: self._is_there(account), "the namespace has its service account")

    def start(self, name: str, *commands: Sequence[str], grace_seconds: int = 1) -> None:
        image = os.environ.get("PODQOS_TEST_IMAGE", "localhost/busybox:1")
        containers = [
            {"name": f"c{number}", "image": image, "imagePullPolicy": "Never", "command": list(command)}
            for number, command in enumerate(commands)
        ]
        spec = {"nodeName": self.node, "terminationGracePeriodSeconds": grace_seconds, "containers": containers}
        spec |= {"automountServiceAccountToken": False, "tolerations": [{"operator": "Exists"}]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self._send("POST", f"/api/v1/namespaces/{self.namespace}/pods", made)

    def close(self) -> None:
        """Delete what was made."""
        self._send("DELETE", f"/api/v1/namespaces/{self.namespace}", {})
        self.client.close()

    def _is_there(self, path: str) -> bool:
        try:
            return self.client.get(path).is_success
        except NotFound:
            return False

    def _send(self, method: str, path: str, body: Json) -> None:
        answer = self.client.send(SentRequest(method, json.dumps(body).encode()), path, (), "application/json", PATIENT)
        assert answer.is_success, answer


@contextmanager
def suite_kubelet(driver: CgroupDriver = CgroupDriver.CGROUPFS) -> Iterator[SuiteKubelet]:
    """Run the suite's own."""
    if (why := why_not()) is not None:
        pytest.skip(f"this machine cannot be a node: {why}")
    with ExitStack() as stack:
        api = stack.enter_context(ApiServer().serving())
        kubelet = SuiteKubelet(api, driver)
        stack.callback(kubelet.close)
        yield kubelet


@contextmanager
def real_kubelet() -> Iterator[RealKubelet]:
    """Use the real one."""
    assert REAL is not None
    kubelet = RealKubelet(REAL)
    try:
        yield kubelet
    finally:
        kubelet.close()
