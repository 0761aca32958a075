"""Builds the ``config.json`` of an OCI bundle for runc.

Containers share the machine's network, as with the other runtimes here; process ids, mounts, IPC and the host name are
private. Resources are left out: the node has written them into the cgroup before runc is called. The rest is the pod's
security context over the defaults of Docker and containerd: fourteen capabilities, a small ``/dev``, ``/proc`` with the
usual parts masked. There is no seccomp filter.

Source: opencontainers/runtime-spec config.md, config-linux.md; Kubernetes v1.36 pkg/kubelet/kuberuntime (command and
args against the image's entrypoint and cmd); containerd pkg/oci/spec.go for the defaults.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from podqos.errors import HostError
from podqos.host.linux.descriptors import original_limit
from podqos.host.runtimes.oci_layout import ImageConfig
from podqos.host.runtimes.runtime import ContainerStart
from podqos.host.runtimes.security import capabilities, check_user, ids

Json = Mapping[str, object]
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CAPABILITIES = [
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
    "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
]  # fmt: skip
_HIDDEN = [
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
]  # fmt: skip
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
_KERNEL_MOUNTS: list[Json] = [
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
    {
        "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
        "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
    },
    {
        "destination": "/dev/pts", "type": "devpts", "source": "devpts",
        "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
    },
    {
        "destination": "/dev/shm", "type": "tmpfs", "source": "shm",  # noqa: S108 - the container's own
        "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
    },
    {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
]  # fmt: skip
_SYS: Json = {"destination": "/sys", "type": "sysfs", "source": "sysfs"}
_SYS_OPTIONS = ("nosuid", "noexec", "nodev")
# Each container has its own of these.
_OWN_DEVICES = ("/dev/pts/", "/dev/console", "/dev/ptmx", "/dev/tty")
# If they exist: with the machine's network come its names.
_NETWORK_FILES = ("/etc/hosts", "/etc/resolv.conf")


def bundle_config(
    container: ContainerStart, image: ImageConfig, rootfs: Path, *, oom_score_adj: int, hostname: str
) -> Json:
    """Return the configuration of a container whose root filesystem is ready."""
    security = container.security
    check_user(container, image.user)
    user = ids(container, image.user, rootfs)
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": user.uid, "gid": user.gid, "additionalGids": list(user.groups)},
            "args": arguments(container, image),
            "env": _environment(container, image),
            "cwd": container.working_dir or image.working_dir or "/",
            "capabilities": dict.fromkeys(
                ("bounding", "effective", "permitted"), capabilities(security, _CAPABILITIES)
            ),
            "oomScoreAdj": oom_score_adj,
            "noNewPrivileges": security.no_new_privileges,
            "rlimits": [{"type": "RLIMIT_NOFILE", **dict(zip(("soft", "hard"), original_limit(), strict=True))}],
        },
        "root": {"path": str(rootfs), "readonly": security.read_only_root},
        "hostname": hostname,
        "mounts": _mounts(container),
        "linux": {
            "cgroupsPath": container.cgroup.oci_path,
            "namespaces": [{"type": name} for name in ("pid", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": security.privileged, "access": "rwm"}]},
            "devices": list(_devices()) if security.privileged else [],
            "maskedPaths": [] if security.privileged else _HIDDEN,
            "readonlyPaths": [] if security.privileged else _READ_ONLY,
        },
    }


def arguments(container: ContainerStart, image: ImageConfig) -> list[str]:
    """Return the command line: ``command`` replaces the image's entrypoint and cmd, ``args`` alone the cmd."""
    if container.command:
        found = [*container.command, *container.args]
    else:
        found = [*(image.entrypoint or ()), *(container.args or image.cmd or ())]
    if not found:
        raise HostError(f"container {container.id.name}: neither the pod nor the image {container.image} has a command")
    return found


def _environment(container: ContainerStart, image: ImageConfig) -> list[str]:
    known = {"PATH": _PATH}
    for text in image.env or ():
        name, _, value = text.partition("=")
        known[name] = value
    return [f"{name}={value}" for name, value in {**known, **container.env}.items()]


def _mounts(container: ContainerStart) -> list[Json]:
    mounts = [*_KERNEL_MOUNTS, {**_SYS, "options": [*_SYS_OPTIONS, "rw" if container.security.privileged else "ro"]}]
    wanted = {mount.target for mount in container.mounts}
    mounts += [
        _bind(file, file, read_only=True) for file in _NETWORK_FILES if file not in wanted and Path(file).exists()
    ]
    for mount in sorted(container.mounts, key=lambda mount: mount.target.count("/")):
        if not Path(mount.source).exists():
            raise HostError(f"container {container.id.name}: volume {mount.volume}: {mount.source} does not exist")
        mounts.append(_bind(mount.source, mount.target, read_only=mount.read_only))
    return mounts


def _devices() -> Iterator[Json]:
    """Yield the devices of the machine, for privileged containers."""
    for path in sorted(Path("/dev").rglob("*")):
        with suppress(OSError):
            about = path.lstat()
            kind = "c" if stat.S_ISCHR(about.st_mode) else "b" if stat.S_ISBLK(about.st_mode) else ""
            if kind and not str(path).startswith(_OWN_DEVICES):
                yield {
                    "path": str(path), "type": kind, "major": os.major(about.st_rdev), "minor": os.minor(about.st_rdev),
                    "fileMode": stat.S_IMODE(about.st_mode), "uid": about.st_uid, "gid": about.st_gid,
                }  # fmt: skip


def _bind(source: str, target: str, *, read_only: bool) -> Json:
    options = ["rbind", "rprivate", "ro" if read_only else "rw"]
    return {"destination": target, "type": "bind", "source": source, "options": options}
