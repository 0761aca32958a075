"""Under which user and with which privileges a container runs: the rules that every runtime shares.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/security_context{,_others}.go (``runAsNonRoot``), pkg/securitycontext;
containerd's CRI plugin for capabilities (``ALL`` first, then single ones) and for groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from podqos.host.linux.procfs import Procfs
from podqos.host.runtimes.oci_unpack import inside
from podqos.host.runtimes.runtime import ContainerStart, Security, StartError

# In the kernel's order: the index is the number.
_NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
_ALL = "ALL"
_MOST_FILE_BYTES = 1 << 20
_MOST_ID = (1 << 31) - 1  # as the API allows


class Ids(Struct, frozen=True):
    """The ids of a process."""

    uid: int
    gid: int
    groups: tuple[int, ...]


def check_user(container: ContainerStart, image_user: str) -> None:
    """Raise if a container that must not run as root would, or might."""
    security = container.security
    if not security.run_as_non_root:
        return
    where = f"(container: {container.id.name})"
    if security.run_as_user is not None:
        if security.run_as_user == 0:
            raise _refused(f"container's runAsUser breaks non-root policy {where}")
        return
    user = image_user.partition(":")[0]
    if not user or (user.isdecimal() and int(user) == 0):
        raise _refused(f"container has runAsNonRoot and image will run as root {where}")
    if not user.isdecimal():
        raise _refused(
            f"container has runAsNonRoot and image has non-numeric user ({user}), "
            f"cannot verify user is non-root {where}"
        )


def ids(container: ContainerStart, image_user: str, rootfs: Path) -> Ids:
    """Return the ids of a container; names are those of its root filesystem."""
    security = container.security
    uid, gid, others = _look_up(security.user(image_user), rootfs)
    return Ids(uid, gid, tuple(dict.fromkeys((*others, *security.groups))))


def capabilities(security: Security, usual: Sequence[str]) -> list[str]:
    """Return the capabilities of a container that has the usual ones, as ``CAP_…``."""
    if security.privileged:
        return own_capabilities()
    add, drop = [_known(name) for name in security.add], [_known(name) for name in security.drop]
    found = own_capabilities() if _ALL in add else list(usual)
    if _ALL in drop:
        found = []
    found = list(dict.fromkeys((*found, *(name for name in add if name != _ALL))))
    return [name for name in found if name not in drop]


def own_capabilities() -> list[str]:
    """Return the capabilities of this process: nothing it starts can have more."""
    held = Procfs().capabilities()
    return [f"CAP_{name}" for number, name in enumerate(_NAMES) if held >> number & 1]


def capability_number(name: str) -> int:
    """Return the kernel's number of ``CAP_…``."""
    return _NAMES.index(name.removeprefix("CAP_"))


def _known(text: str) -> str:
    name = text.upper().removeprefix("CAP_")
    if name == _ALL:
        return _ALL
    if name not in _NAMES:
        raise _refused(f"unknown capability {text!r}")
    return f"CAP_{name}"


def _refused(message: str) -> StartError:
    return StartError("CreateContainerConfigError", message)


def _look_up(text: str, rootfs: Path) -> tuple[int, int, list[int]]:
    """Return the ids of ``user[:group]``, given by number or by name in the image's files."""
    user, _, group = text.partition(":")
    uid, gid, name = 0, 0, user or "root"
    for line in _lines(rootfs, "/etc/passwd", (2, 3)):
        if line[0] == user or line[2] == (user or "0"):
            name, uid, gid = line[0], int(line[2]), int(line[3])
            break
    else:
        if user and not _is_id(user):
            raise _refused(f"the image runs as user {user!r}, which is not in its /etc/passwd")
        uid = int(user or 0)
    groups = _lines(rootfs, "/etc/group", (2,))
    if group:
        numbers = [int(line[2]) for line in groups if line[0] == group]
        if not numbers and not _is_id(group):
            raise _refused(f"the image runs as group {group!r}, which is not in its /etc/group")
        gid = numbers[0] if numbers else int(group)
    others = [int(line[2]) for line in groups if name in line[-1].split(",") and line[2] != str(gid)]
    return uid, gid, others


def _lines(rootfs: Path, name: str, numbers: Sequence[int]) -> list[list[str]]:
    """Return the lines of a file whose columns are numbers where they should be; an image may hold anything there."""
    path = inside(rootfs, name)
    if path.is_symlink() or not path.is_file():
        return []
    with path.open(errors="replace") as file:
        lines = [line.split(":") for line in file.read(_MOST_FILE_BYTES).splitlines()]
    return [line for line in lines if len(line) > 3 and all(_is_id(line[column]) for column in numbers)]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MOST_ID
