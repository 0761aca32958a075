"""Under which user and with which privileges a container runs.

Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/security_context{,_others}.go (``runAsNonRoot``), pkg/securitycontext;
containerd's CRI plugin for capabilities (``ALL`` first, then single ones) and for groups.
"""

from __future__ import annotations

import os
import pwd

from msgspec import Struct

from podqos.host.linux.procfs import Procfs
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


class Ids(Struct, frozen=True):
    """The ids of a process."""

    uid: int
    gid: int
    groups: tuple[int, ...]


def check_user(container: ContainerStart) -> None:
    """Raise if a container that must not run as root would."""
    security = container.security
    if not security.run_as_non_root or _uid(security) != 0:
        return
    why = "container has runAsNonRoot and image will run as root"
    if security.run_as_user is not None:
        why = "container's runAsUser breaks non-root policy"
    raise _refused(f"{why} (container: {container.id.name})")


def ids(container: ContainerStart) -> Ids:
    """Return the ids of a container; a user whom this machine knows has its groups."""
    security = container.security
    uid = _uid(security)
    others: list[int] = []
    gid = 0
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        gid = security.run_as_group or 0
    else:
        gid = user.pw_gid if security.run_as_group is None else security.run_as_group
        others = [group for group in os.getgrouplist(user.pw_name, user.pw_gid) if group not in {gid, user.pw_gid}]
    return Ids(uid, gid, tuple(dict.fromkeys((*others, *security.groups))))


def _uid(security: Security) -> int:
    return os.geteuid() if security.run_as_user is None else security.run_as_user


def capabilities(security: Security) -> list[str]:
    """Return the capabilities of a container that has the node's, as ``CAP_…``."""
    own = own_capabilities()
    if security.privileged:
        return own
    add, drop = [_known(name) for name in security.add], [_known(name) for name in security.drop]
    found = dict.fromkeys((*([] if _ALL in drop else own), *(name for name in add if name != _ALL)))
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
