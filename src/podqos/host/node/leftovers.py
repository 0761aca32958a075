"""Removes what a killed rehearsal left behind: its processes, cgroups, shim and directory.

A rehearsal's cgroup and directory have one name, with the id and the start time of its process in it. It is dead if
there is no such process and its cgroup is not locked (``linux.claim``). A node's pods are left alone: they wait for the
next agent.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.claim import is_locked, owner
from podqos.host.linux.procfs import Procfs
from podqos.host.runtimes.shim_client import end_shim

_PREFIX = "podqos-rehearsal-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-(\d+)-\w+")
_END_SECONDS = 5.0


def make_folder() -> Path:
    """Make the directory of a rehearsal by this process; its name is that of the cgroup as well."""
    me = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{me}-{_started(me)}-"))


def state_of(folder: Path) -> Path:
    """Return the state directory of a rehearsal."""
    return folder / "state"


def remove_leftovers() -> None:
    """Remove what rehearsals of this user left that are no longer alive."""
    cgroups = open_cgroups(f"/{_PREFIX}")
    found = {folder.name: folder for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")}
    for name in cgroups.children("/"):
        marked = owner(cgroups, f"/{name}")
        if marked is not None and (folder := Path(marked.state_dir).parent).name == name:
            found[name] = folder
        found.setdefault(name, Path(tempfile.gettempdir()) / name)
    for name, folder in sorted(found.items()):
        if _is_dead(name, cgroups) and _is_mine(folder) and _is_mine(cgroups.folder(f"/{name}")):
            remove(folder)


def remove(folder: Path) -> None:
    """End everything of a rehearsal, and remove it."""
    own = f"/{folder.name}"
    cgroups = open_cgroups(own)
    cgroups.end([own], _END_SECONDS)
    end_shim(state_of(folder))
    cgroups.end([own], _END_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def _is_dead(name: str, cgroups: Cgroups) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and _started(int(found[1])) != found[2] and not is_locked(cgroups, f"/{name}")


def _is_mine(folder: Path) -> bool:
    """Whether a directory belongs to this user; one that is gone belongs to everyone."""
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return True


def _started(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks since boot; empty if there is none."""
    return "".join(Procfs().stat(pid)[19:20])
