"""Where the tests get runc, containerd and podman: from the system, or unpacked from Debian's packages."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
from pathlib import Path

from debian import Missing, Packages

_PACKAGES = {"runc": "runc", "containerd": "containerd", "podman": "podman", "busybox": "busybox-static"}
_FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")


def search_path() -> dict[str, str]:
    """Return the variables under which all programs are found; raise ``Missing`` where they cannot be had."""
    missing = [package for program, package in _PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return {}
    if os.geteuid() != 0:
        raise Missing(f"{', '.join(missing)} not installed, and not root")
    cache = Packages("runtimes")
    cache.folder.mkdir(parents=True, exist_ok=True)
    root = cache.folder / "root"
    with (cache.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            _fetch(cache, missing, root)
    libraries = ":".join(str(root / folder / f"{platform.machine()}-linux-gnu") for folder in ("usr/lib", "lib"))
    programs = ":".join(str(root / folder) for folder in _FOLDERS)
    return {"PATH": f"{os.environ['PATH']}:{programs}", "LD_LIBRARY_PATH": libraries}


def _fetch(cache: Packages, missing: list[str], root: Path) -> None:
    try:
        cache.install(missing, root)
    except Missing:
        cache.update()
        cache.install(missing, root)
