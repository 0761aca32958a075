"""What containers are given when they start: files and volumes, environment, user, log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.port import ContainerPlan
from podqos.host.node.host_pod import HostPod
from podqos.host.node.security_context import security_of
from podqos.host.runtimes.runtime import ContainerId, ContainerStart, Mount, StartError
from podqos.host.storage.pod_run import below, environment, expand, sub_path, without_nul
from podqos.host.storage.state import StateDirectory
from podqos.qos.cgroup import Cgroup
from podqos.qos.cgroup_paths import UNKNOWN_ID

_PRIVILEGED = "privileged containers are not allowed on this node (its option allow-privileged allows them)"


class LogPolicy(Struct, frozen=True):
    """``containerLogMaxSize`` and ``containerLogMaxFiles``."""

    max_bytes: int = 10 << 20
    max_files: int = 5


class ContainerStarts:
    """Turns planned containers into what a runtime starts."""

    def __init__(
        self,
        node: str,
        state: StateDirectory,
        note: Callable[[str], None],
        *,
        logs: LogPolicy | None = None,
        allow_privileged: bool = False,
    ) -> None:
        self._node = node
        self._state = state
        self._note = note
        self._logs = logs or LogPolicy()
        self._allow_privileged = allow_privileged

    def planned(self, pod: HostPod, plan: ContainerPlan, attempt: int) -> ContainerStart:
        """Return a container as planned, before anything of its manifest is resolved."""
        name = ContainerId(pod.uid, plan.name, attempt)
        return ContainerStart(
            id=name,
            command=(),
            args=(),
            env={"HOSTNAME": pod.pod.metadata.name},
            working_dir="",
            mounts=(),
            cgroup=_with_id(plan.cgroup, name.run_id),
            oom_score_adj=plan.oom_score_adj,
            folder=self._state.container(pod.uid, plan.name, attempt),
            log=self._state.log(pod.pod, plan.name, attempt),
            log_bytes=self._logs.max_bytes,
            log_files=self._logs.max_files,
            security=security_of(pod.state.run, plan.name),
        )

    def resolved(self, pod: HostPod, start: ContainerStart) -> ContainerStart:
        """Return a container with everything that it is to be given; raises ``HostError``."""
        wanted = pod.state.run.container(start.id.name)
        variables = environment(pod.pod, wanted, self._node)
        return replace(
            start,
            command=tuple(expand(word, variables) for word in wanted.command),
            args=tuple(expand(word, variables) for word in wanted.args),
            env={**start.env, **variables},
            working_dir=without_nul(wanted.working_dir),
            mounts=tuple(self._mounts(pod, start.id.name, variables)),
        )

    def _mounts(self, pod: HostPod, container: str, variables: Mapping[str, str]) -> list[Mount]:
        volumes = {volume.name: volume for volume in pod.state.run.volumes}
        found = []
        for mount in pod.state.run.container(container).volume_mounts:
            volume = volumes.get(mount.name)
            if volume is None:
                continue
            source = volume.host_path.path if volume.host_path else str(self._state.volume(pod.uid, mount.name))
            source = below(without_nul(source), without_nul(sub_path(mount, variables)))
            found.append(Mount(mount.name, source, without_nul(mount.mount_path), mount.read_only))
        return found

    def check_privilege(self, start: ContainerStart) -> None:
        """Raise ``StartError`` for a container that asks for more than this node allows."""
        if start.security.privileged and not self._allow_privileged:
            raise StartError("CreateContainerConfigError", _PRIVILEGED)

    def make_volumes(self, pod: HostPod) -> None:
        """Create what the pod writes to, out of reach of the machine's users; a plain process needs the way to it."""
        pod.data.mkdir(parents=True, exist_ok=True)
        pod.data.chmod(0o711)
        for volume in pod.state.run.volumes:
            if volume.empty_dir is not None:
                self._make_volume(pod, volume.name)
                if volume.empty_dir.medium:
                    self._note(f"{pod.pod.key}: volume {volume.name} is kept on disk, not in memory")
            elif volume.host_path is not None and volume.host_path.type == "DirectoryOrCreate":
                Path(without_nul(volume.host_path.path)).mkdir(parents=True, exist_ok=True)

    def _make_volume(self, pod: HostPod, name: str) -> None:
        """Create an emptyDir as the kubelet does: open to all users of the pod, and to its group."""
        folder = self._state.volume(pod.uid, name)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        context = pod.state.run.security_context
        if context is not None and context.fs_group is not None:
            os.chown(folder, -1, context.fs_group)
            with suppress(OSError):  # not allowed by systemd's RestrictSUIDSGID
                folder.chmod(0o2777)


def _with_id(cgroup: Cgroup, run_id: str) -> Cgroup:
    path = None if cgroup.path is None else cgroup.path.replace(UNKNOWN_ID, run_id)
    return replace(cgroup, path=path, oci_path=cgroup.oci_path.replace(UNKNOWN_ID, run_id))
