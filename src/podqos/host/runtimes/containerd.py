"""Containers through containerd, or any other runtime with CRI v1, called as by a kubelet.

Pods share the machine's network and therefore, in CRI, its host name. Sandboxes and containers have the name of this
node in a label, so that nothing else in the runtime is affected; what an adopting agent needs is kept in their
annotations. A kubelet on the same socket would kill our pods: it kills all that it does not know.

The runtime names containers and their cgroups; the kernel tells where a main process is. Nothing is pulled: images are
those in the runtime's ``k8s.io`` namespace.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/{kuberuntime_sandbox,kuberuntime_container,kuberuntime_gc}.go and
pkg/kubelet/logs/container_log_manager.go (rotation); containerd's CRI plugin for the verbose ``info``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.runtimes.cri import Cri, CriError
from podqos.host.runtimes.cri_answers import (
    EXITED,
    READY,
    RUNNING,
    FoundSandbox,
    Image,
    Info,
    ListedContainer,
    RuntimeConfig,
)
from podqos.host.runtimes.engine import Engine
from podqos.host.runtimes.resources import main_cgroup, resources
from podqos.host.runtimes.runtime import (
    LOST_CODE,
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    FoundContainer,
    Note,
    Sandbox,
    Security,
    StartError,
)
from podqos.host.runtimes.security import check_user
from podqos.qos.cgroup_settings import CgroupVersion

DEFAULT_SOCKET = Path("/run/containerd/containerd.sock")
_NODE, _ID, _POD, _LOG = "podqos.node", "podqos.id", "podqos.pod", "podqos.log"
_NAMESPACE_CONTAINER, _NAMESPACE_NODE = 1, 2


class _Log(Struct, frozen=True):
    """A log to rotate."""

    path: str
    max_bytes: int
    max_files: int


class CriEngine(Engine):
    """Calls a runtime over its socket."""

    name = "containerd"

    def __init__(
        self, folder: Path, cgroups: Cgroups, capabilities: Capabilities, note: Note, socket: Path = DEFAULT_SOCKET
    ) -> None:
        super().__init__(cgroups, capabilities, note)
        self._node = sha256(str(folder).encode()).hexdigest()[:32]
        self._ids: dict[ContainerId, str] = {}
        self._logs: dict[str, _Log] = {}
        """Of running containers, by the runtime's id."""
        self._cri = Cri(socket)
        self._cri.call("Version", {})

    def prepare(self, sandbox: Sandbox) -> None:
        """Create the sandbox, unless it exists."""
        if self._ready_sandbox(sandbox.uid) is None:
            self._make_sandbox(sandbox, 0)

    def start(self, container: ContainerStart) -> ContainerPlace:
        """Create and start a container in its pod's sandbox."""
        name = container.id
        image = self._cri.call("ImageStatus", {"image": {"image": container.image}}).image
        if image is None:
            raise StartError(
                "ErrImageNeverPull",
                f"images are not pulled: {container.image} is not in the runtime: "
                "ctr --namespace k8s.io images import FILE",
            )
        check_user(container, image.user)
        sandbox_id, pod, attempt = self._sandbox_of(name.uid)
        made = self._cri.call(
            "CreateContainer",
            {
                "pod_sandbox_id": sandbox_id,
                "config": self._container_config(container, pod, image.user),
                "sandbox_config": self._sandbox_config(pod, attempt),
            },
        )
        self._ids[name] = made.container_id
        container.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._cri.call("StartContainer", {"container_id": made.container_id})
        except CriError:
            self.remove(name)
            raise
        self._logs[made.container_id] = _Log(str(container.log), container.log_bytes, container.log_files)
        pid = self._pid(made.container_id)
        cgroup = None if pid is None else main_cgroup(self._cgroups, pid)
        if cgroup is None:
            return ContainerPlace(container.id, f"{pod.cgroup_parent}/{made.container_id}", None)
        return ContainerPlace(container.id, cgroup, pid)

    def ended(self, container: ContainerId) -> ContainerExit | None:
        """Query the status."""
        found = self._ids.get(container)
        if found is None:
            return None
        status = self._cri.call("ContainerStatus", {"container_id": found}).status
        if status.state != EXITED:
            return None
        self._logs.pop(found, None)
        return ContainerExit(container, status.exit_code, status.reason == "OOMKilled")

    def execute(self, container: ContainerStart, command: Sequence[str], seconds: float) -> int:
        """Run a command with the runtime's own timeout: cancelling the call can leave it running."""
        found = self._ids.get(container.id)
        if found is None:
            raise HostError("the container is not running yet")
        request = {"container_id": found, "cmd": list(command), "timeout": max(1, ceil(seconds))}
        try:
            return self._cri.call("ExecSync", request, seconds).exit_code
        except CriError as error:
            if error.is_late:
                return LOST_CODE
            raise

    def remove(self, container: ContainerId) -> None:
        """Remove a container; it may be gone already."""
        found = self._ids.pop(container, None)
        if found is not None:
            self._logs.pop(found, None)
            self._gone("RemoveContainer", {"container_id": found})

    def remove_sandbox(self, uid: str) -> None:
        """Stop and remove every sandbox a pod ever had."""
        for sandbox in self._sandboxes():
            if sandbox.metadata.uid == uid:
                self._gone("StopPodSandbox", {"pod_sandbox_id": sandbox.id})
                self._gone("RemovePodSandbox", {"pod_sandbox_id": sandbox.id})

    def containers(self) -> list[FoundContainer]:
        """Return the containers of this node; sandboxes without any are removed."""
        found = []
        request = {"filter": {"label_selector": {_NODE: self._node}}}
        for container in self._cri.call("ListContainers", request).containers:
            name = ContainerId.parse(container.labels.get(_ID, ""))
            if name is None:
                continue
            self._ids[name] = container.id
            found.append(self._found(name, container))
        used = {container.id.uid for container in found}
        for sandbox in self._sandboxes():
            if sandbox.metadata.uid not in used:
                self.remove_sandbox(sandbox.metadata.uid)
        return found

    def tidy(self) -> None:
        """Rotate logs that have grown too large: CRI leaves that to the client."""
        for container_id, log in list(self._logs.items()):
            with contextlib.suppress(OSError, CriError):
                if Path(log.path).stat().st_size > log.max_bytes:
                    self._rotate(container_id, log)

    def remove_unused_images(self) -> int:
        """Remove them, wherever they came from, as the kubelet does."""
        gained = 0
        for image in self._unused_images():
            if self._gone("RemoveImage", {"image": {"image": image.id}}):
                gained += image.size
        return gained

    def close(self, *, end: bool) -> None:
        """Close the connection; with ``end`` nothing of this node is left in the runtime."""
        if end:
            for uid in {sandbox.metadata.uid for sandbox in self._sandboxes()}:
                self.remove_sandbox(uid)
        self._cri.close()

    # ---- sandboxes -----------------------------------------------------------------------------------------------

    def _sandboxes(self) -> tuple[FoundSandbox, ...]:
        request = {"filter": {"label_selector": {_NODE: self._node}}}
        return self._cri.call("ListPodSandbox", request).items

    def _ready_sandbox(self, uid: str) -> FoundSandbox | None:
        ready = (sandbox for sandbox in self._sandboxes() if sandbox.metadata.uid == uid and sandbox.state == READY)
        return next(ready, None)

    def _sandbox_of(self, uid: str) -> tuple[str, Sandbox, int]:
        """Return a pod's sandbox, its specification and its attempt; a dead sandbox is replaced."""
        all_of_pod = [sandbox for sandbox in self._sandboxes() if sandbox.metadata.uid == uid]
        last = max(all_of_pod, key=lambda sandbox: (sandbox.state == READY, sandbox.metadata.attempt), default=None)
        if last is None:
            raise HostError("its pod has no sandbox")
        pod = msgspec.json.decode(last.annotations[_POD], type=Sandbox)
        attempt = last.metadata.attempt
        if last.state == READY:
            return last.id, pod, attempt
        return self._make_sandbox(pod, attempt + 1), pod, attempt + 1

    def _make_sandbox(self, pod: Sandbox, attempt: int) -> str:
        Path(pod.logs).mkdir(parents=True, exist_ok=True)
        return self._cri.call("RunPodSandbox", {"config": self._sandbox_config(pod, attempt)}).pod_sandbox_id

    def _sandbox_config(self, pod: Sandbox, attempt: int) -> dict[str, object]:
        return {
            "metadata": {"name": pod.name, "uid": pod.uid, "namespace": pod.namespace, "attempt": attempt},
            "log_directory": pod.logs,
            "labels": {_NODE: self._node},
            "annotations": {_POD: msgspec.json.encode(pod).decode()},
            "linux": {
                "cgroup_parent": pod.cgroup_parent,
                "security_context": {"namespace_options": _namespaces(), "privileged": pod.privileged},
            },
        }

    # ---- containers ----------------------------------------------------------------------------------------------

    def _container_config(self, container: ContainerStart, pod: Sandbox, image_user: str) -> dict[str, object]:
        log = _Log(str(container.log), container.log_bytes, container.log_files)
        return {
            "metadata": {"name": container.id.name, "attempt": container.id.attempt},
            "image": {"image": container.image},
            "command": list(container.command),
            "args": list(container.args),
            "working_dir": container.working_dir,
            "envs": [{"key": name, "value": value} for name, value in container.env.items()],
            "mounts": [
                {"container_path": mount.target, "host_path": mount.source, "readonly": mount.read_only}
                for mount in container.mounts
            ],
            "labels": {_NODE: self._node, _ID: str(container.id)},
            "annotations": {_LOG: msgspec.json.encode(log).decode()},
            "log_path": os.path.relpath(container.log, pod.logs),
            "linux": {
                "resources": {**self._resources(container), "oom_score_adj": self._score(container)},
                "security_context": {"namespace_options": _namespaces(), **_security(container.security, image_user)},
            },
        }

    def _resources(self, container: ContainerStart) -> Mapping[str, object]:
        if self._cgroups.version is CgroupVersion.V2:
            files = container.cgroup.files
            return {"unified": {file.name: file.text for file in files if file.text is not None}}
        wanted = resources(container.cgroup)
        return {
            "cpu_shares": wanted.cpu_shares or 0,
            "cpu_quota": wanted.cpu_quota_us or 0,
            "cpu_period": wanted.cpu_period_us or 0,
            "memory_limit_in_bytes": wanted.memory_bytes or 0,
        }

    def _found(self, name: ContainerId, listed: ListedContainer) -> FoundContainer:
        if listed.state == RUNNING:
            pid = self._pid(listed.id)
            cgroup = None if pid is None else main_cgroup(self._cgroups, pid)
            if cgroup is not None:
                with contextlib.suppress(msgspec.DecodeError, KeyError):
                    self._logs[listed.id] = msgspec.json.decode(listed.annotations[_LOG], type=_Log)
                return FoundContainer(name, cgroup, pid, None)
        status = self._cri.call("ContainerStatus", {"container_id": listed.id}).status
        return FoundContainer(name, None, None, status.exit_code)

    def _pid(self, container_id: str) -> int | None:
        answer = self._cri.call("ContainerStatus", {"container_id": container_id, "verbose": True})
        if answer.status.state != RUNNING:
            return None
        return msgspec.json.decode(answer.info.get("info", "{}"), type=Info).pid or None

    def _rotate(self, container_id: str, log: _Log) -> None:
        path = Path(log.path)
        path.rename(path.with_name(f"{path.name}.{time.time_ns()}"))
        self._cri.call("ReopenContainerLog", {"container_id": container_id})
        rotated = sorted(path.parent.glob(f"{path.name}.*"))
        for old in rotated[: max(0, len(rotated) - (log.max_files - 1))]:
            old.unlink(missing_ok=True)

    # ---- images --------------------------------------------------------------------------------------------------

    def _unused_images(self) -> list[Image]:
        """Return the images that can be removed; not that of sandboxes."""
        used = {container.image_ref for container in self._cri.call("ListContainers", {}).containers}
        images = self._cri.call("ListImages", {}).images
        pause = self._sandbox_image()
        return [image for image in images if not (image.id in used or image.pinned or pause in image.repo_tags)]

    def _sandbox_image(self) -> str:
        info = self._cri.call("Status", {"verbose": True}).info
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(info.get("config", "{}"), type=RuntimeConfig).sandbox_image
        return ""

    def _gone(self, method: str, request: Mapping[str, object]) -> bool:
        """Call a method that removes something; True if it is gone, other errors are noted."""
        try:
            self._cri.call(method, request)
        except CriError as error:
            if not error.is_gone:
                self._note(str(error))
                return False
        return True


def _security(security: Security, image_user: str) -> Mapping[str, object]:
    """Return a security context; without a user the image's counts, which a group needs to be told."""
    user: Mapping[str, object] = {}
    if security.run_as_user is not None:
        user = {"run_as_user": {"value": security.run_as_user}}
    elif security.run_as_group is not None:
        is_number = not image_user or image_user.isdecimal()
        user = {"run_as_user": {"value": int(image_user or 0)}} if is_number else {"run_as_username": image_user}
    if security.run_as_group is not None:
        user = {**user, "run_as_group": {"value": security.run_as_group}}
    return {
        **user,
        "capabilities": {"add_capabilities": list(security.add), "drop_capabilities": list(security.drop)},
        "privileged": security.privileged,
        "readonly_rootfs": security.read_only_root,
        "supplemental_groups": list(security.groups),
        "no_new_privs": security.no_new_privileges,
    }


def _namespaces() -> Mapping[str, int]:
    """Return the node's network, a pid namespace per container, IPC shared by the pod."""
    return {"network": _NAMESPACE_NODE, "pid": _NAMESPACE_CONTAINER}
