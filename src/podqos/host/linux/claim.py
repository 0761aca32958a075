"""Whose cgroup is it: a node's own cgroup is locked while the node lives, and marked with its owner.

The lock is the kernel's, on the cgroup's directory: it ends with the process, however that ends, and with nothing else.
The mark is an extended attribute of the same directory: it lasts as long as the cgroup, so that the next agent knows
its pods again, and no other node ends them. A cgroup that holds something and bears no mark is not ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import Cgroups
from podqos.naming import hint, naming, stated_with

_FIX = hint("; choose another with " + naming("cgroup_root"))
# The second is for kernels before 5.7, where cgroups have no attributes of users.
_ATTRIBUTES = ("user.podqos", "trusted.podqos")


class ClaimOwner(Struct, frozen=True):
    """The node a cgroup belongs to."""

    state_dir: str
    pid: int
    """Of the agent that marked it; another process may have that id by now."""


class Claim:
    """A cgroup that is ours while we live."""

    def __init__(self, cgroups: Cgroups, state_dir: Path) -> None:
        """Create, lock and mark the node's own cgroup; raises ``HostError`` if it belongs to anything else."""
        self._lock = -1
        own = cgroups.own
        check_name(own)
        for parent in list(Path(own).parents)[:-1]:
            if (around := owner(cgroups, str(parent))) is not None:
                raise HostError(f"cgroup {own} is inside {parent}, which belongs to " + _node(around) + _FIX)
        while not self._is_locked(cgroups):
            self.close()
        try:
            self._mark(cgroups, ClaimOwner(str(state_dir.resolve()), os.getpid()))
        except HostError:
            self.close()
            raise

    def close(self) -> None:
        """Unlock; the mark stays."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _is_locked(self, cgroups: Cgroups) -> bool:
        """Whether it is locked now; False if the previous owner removed it meanwhile."""
        cgroups.create(cgroups.own)
        folder = cgroups.folder(cgroups.own)
        try:
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self._lock), folder.stat())
        except FileNotFoundError:
            return False
        except BlockingIOError:
            self.close()
            holder = owner(cgroups, cgroups.own)
            who = "another node" if holder is None else _node(holder) + f", which is running as pid {holder.pid}"
            raise HostError(f"cgroup {cgroups.own} belongs to " + who + _FIX) from None

    @staticmethod
    def _mark(cgroups: Cgroups, mine: ClaimOwner) -> None:
        before, is_empty = owner(cgroups, cgroups.own), cgroups.is_empty(cgroups.own)
        if before is not None and before.state_dir != mine.state_dir and not is_empty:
            # Without its directory no node can adopt what is left there.
            if Path(before.state_dir).exists():
                has_pods = f"cgroup {cgroups.own} has pods of " + _node(before)
                raise HostError(
                    has_pods + ": start that one again" + hint(", or choose another with " + naming("cgroup_root"))
                )
            is_empty = True
        is_marked = _set_mark(cgroups, mine)
        if before is None and not is_empty and is_marked:
            os.removexattr(cgroups.folder(cgroups.own), is_marked)
            raise HostError(f"cgroup {cgroups.own} is in use, and not by a podqos node" + _FIX)


def _set_mark(cgroups: Cgroups, mine: ClaimOwner) -> str | None:
    """Mark a cgroup; return the attribute, None where the kernel has none: only the lock then tells whose it is."""
    for attribute in _ATTRIBUTES:
        with contextlib.suppress(OSError):
            os.setxattr(cgroups.folder(cgroups.own), attribute, msgspec.json.encode(mine))
            return attribute
    return None


def check_name(own: str) -> None:
    """Refuse the root of the tree as a node's own cgroup, and what may lead there."""
    if any(part in {"", ".", ".."} for part in own[1:].split("/")):
        raise HostError(f"cgroup {own}: a node needs a cgroup of its own" + _FIX)


def is_locked(cgroups: Cgroups, path: str) -> bool:
    """Whether a living node has locked a cgroup; its lock is not disturbed."""
    try:
        descriptor = os.open(cgroups.folder(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def owner(cgroups: Cgroups, path: str) -> ClaimOwner | None:
    """Return the node that a cgroup belongs to; None if it bears no mark."""
    for attribute in _ATTRIBUTES:
        try:
            return msgspec.json.decode(os.getxattr(cgroups.folder(path), attribute), type=ClaimOwner)
        except (OSError, msgspec.DecodeError):
            continue
    return None


def _node(owner: ClaimOwner) -> str:
    return f"the node with {stated_with('state_dir', owner.state_dir)}"
