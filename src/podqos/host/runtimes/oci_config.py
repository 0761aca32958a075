"""Builds the ``config.json`` of an OCI bundle for runc.

Containers share the machine's network, as with the other runtimes here; process ids, mounts, IPC and the host name are
private. Resources are left out: the node has written them into the cgroup before runc is called. The rest are the
defaults of Docker and containerd: fourteen capabilities, a small ``/dev``, ``/proc`` with the usual parts masked. There
is no seccomp filter.

Source: opencontainers/runtime-spec config.md, config-linux.md; Kubernetes v1.36 pkg/kubelet/kuberuntime (command and
args against the image's entrypoint and cmd); containerd pkg/oci/spec.go for the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podqos.errors import HostError
from podqos.host.linux.descriptors import original_limit
from podqos.host.runtimes.oci_layout import ImageConfig
from podqos.host.runtimes.oci_unpack import inside
from podqos.host.runtimes.runtime import ContainerStart

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
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
]  # fmt: skip
# If they exist: with the machine's network come its names.
_NETWORK_FILES = ("/etc/hosts", "/etc/resolv.conf")


def bundle_config(
    container: ContainerStart, image: ImageConfig, rootfs: Path, *, oom_score_adj: int, hostname: str
) -> Json:
    """Return the configuration of a container whose root filesystem is ready."""
    uid, gid, groups = _user(image.user, rootfs)
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid, "additionalGids": groups},
            "args": arguments(container, image),
            "env": _environment(container, image),
            "cwd": container.working_dir or image.working_dir or "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
            "oomScoreAdj": oom_score_adj,
            "noNewPrivileges": False,
            "rlimits": [{"type": "RLIMIT_NOFILE", **dict(zip(("soft", "hard"), original_limit(), strict=True))}],
        },
        "root": {"path": str(rootfs), "readonly": False},
        "hostname": hostname,
        "mounts": _mounts(container),
        "linux": {
            "cgroupsPath": container.cgroup.oci_path,
            "namespaces": [{"type": name} for name in ("pid", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "maskedPaths": _HIDDEN,
            "readonlyPaths": _READ_ONLY,
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
    mounts = [*_KERNEL_MOUNTS]
    wanted = {mount.target for mount in container.mounts}
    mounts += [
        _bind(file, file, read_only=True) for file in _NETWORK_FILES if file not in wanted and Path(file).exists()
    ]
    for mount in sorted(container.mounts, key=lambda mount: mount.target.count("/")):
        if not Path(mount.source).exists():
            raise HostError(f"container {container.id.name}: volume {mount.volume}: {mount.source} does not exist")
        mounts.append(_bind(mount.source, mount.target, read_only=mount.read_only))
    return mounts


def _bind(source: str, target: str, *, read_only: bool) -> Json:
    options = ["rbind", "rprivate", "ro" if read_only else "rw"]
    return {"destination": target, "type": "bind", "source": source, "options": options}


def _user(text: str, rootfs: Path) -> tuple[int, int, list[int]]:
    """Return the ids of ``user[:group]``, given by number or by name in the image's files."""
    user, _, group = text.partition(":")
    uid, gid, name = 0, 0, user or "root"
    for line in _lines(rootfs, "/etc/passwd"):
        if len(line) > 3 and (line[0] == user or line[2] == (user or "0")):
            name, uid, gid = line[0], int(line[2]), int(line[3])
            break
    else:
        if user and not user.isdecimal():
            raise HostError(f"the image wants the user {user!r}, which is not in its /etc/passwd")
        uid = int(user or 0)
    groups = _lines(rootfs, "/etc/group")
    if group:
        numbers = [int(line[2]) for line in groups if len(line) > 2 and line[0] == group]
        if not numbers and not group.isdecimal():
            raise HostError(f"the image wants the group {group!r}, which is not in its /etc/group")
        gid = numbers[0] if numbers else int(group)
    others = [int(line[2]) for line in groups if len(line) > 3 and name in line[3].split(",") and line[2] != str(gid)]
    return uid, gid, others


def _lines(rootfs: Path, name: str) -> list[list[str]]:
    path = inside(rootfs, name)
    if path.is_symlink() or not path.is_file():
        return []
    return [line.split(":") for line in path.read_text(errors="replace").splitlines()]
