"""Gets what a virtual machine needs: QEMU, busybox and a kernel package.

What the system has is used; the rest is downloaded with apt-get and unpacked into the project's cache. Nothing is
installed and nothing outside the cache is written.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from vm import images

CACHE = Path(__file__).parents[2] / ".cache" / "vm"
KERNEL_FOLDER = CACHE / "kernel"
# The cloud flavour lacks 9p, through which the guest sees our files.
KERNEL_PACKAGE = "linux-image-amd64"
FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


class Missing(Exception):
    """The machine cannot be had; the text says why."""


class Parts(NamedTuple):
    """Where the pieces of a virtual machine are."""

    qemu: tuple[str, ...]
    """The command that starts QEMU, with the options that let it find its firmware."""
    library_path: str
    busybox: Path
    kernel: Path
    modules: tuple[Path, ...]
    """In the order of their dependencies."""


def parts() -> Parts:
    """Find or fetch everything, or raise Missing."""
    if platform.machine() != "x86_64":
        raise Missing(f"the virtual machine is x86-64, this is {platform.machine()}")
    try:
        return _parts()
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(str(error)) from error


def _parts() -> Parts:
    CACHE.mkdir(parents=True, exist_ok=True)
    if not KERNEL_FOLDER.exists():
        _fetch_kernel()
    needed = (("qemu-system-x86", "qemu-system-x86_64"), ("busybox-static", "busybox"))
    missing = [package for package, command in needed if shutil.which(command) is None]
    root = CACHE / "root"
    if missing and not root.exists():
        _unpack(_download("install", "--download-only", "--yes", "--no-install-recommends", *missing), root)
    busybox = root / "bin" / "busybox" if "busybox-static" in missing else Path(shutil.which("busybox") or "")
    kernel, modules = KERNEL_FOLDER / "vmlinux", tuple(sorted(KERNEL_FOLDER.glob("*.ko")))
    if "qemu-system-x86" not in missing:
        return Parts((shutil.which("qemu-system-x86_64") or "",), "", busybox, kernel, modules)
    firmware = [option for folder in FIRMWARE for option in ("-L", str(root / folder))]
    libraries = ":".join(str(root / folder / "x86_64-linux-gnu") for folder in ("usr/lib", "lib"))
    return Parts((str(root / "usr/bin/qemu-system-x86_64"), *firmware), libraries, busybox, kernel, modules)


def _fetch_kernel() -> None:
    """Keep of the newest kernel package what is booted and loaded: a hundredth of it."""
    name = _newest_kernel()
    if name is None:
        _update()
        name = _newest_kernel()
    if name is None:
        raise Missing(f"apt-get offers no {KERNEL_PACKAGE}")
    package = CACHE / "kernel-package"
    _unpack(_download("download", name), package)
    partial = CACHE / "kernel.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (partial / "vmlinux").write_bytes(images.bare_kernel(package))
    for index, (file, data) in enumerate(images.modules(package).items()):
        (partial / f"{index:02}-{file}").write_bytes(data)
    partial.rename(KERNEL_FOLDER)
    shutil.rmtree(package)


def _newest_kernel() -> str | None:
    found = _apt("apt-cache", "depends", KERNEL_PACKAGE).stdout.split()
    return next((name for name in found if name.startswith("linux-image-") and name != KERNEL_PACKAGE), None)


def _download(*arguments: str) -> list[Path]:
    target = CACHE / "packages"
    shutil.rmtree(target, ignore_errors=True)
    (target / "partial").mkdir(parents=True, exist_ok=True)
    done = _apt("apt-get", "-o", f"Dir::Cache::archives={target}", *arguments, cwd=target)
    packages = sorted(target.glob("*.deb"))
    if done.returncode or not packages:
        raise Missing(f"apt-get {' '.join(arguments)}: {(done.stderr.strip() or 'nothing came').splitlines()[-1]}")
    return packages


def _update() -> None:
    """Read the lists of packages anew, into the cache."""
    (CACHE / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    _apt("apt-get", "update")


def _apt(command: str, *arguments: str, cwd: Path = CACHE) -> subprocess.CompletedProcess[str]:
    if shutil.which(command) is None or shutil.which("dpkg") is None:
        raise Missing(f"{command} is missing, and with it a way to get QEMU and a kernel")
    (CACHE / "apt").mkdir(exist_ok=True)
    lists = CACHE / "lists"
    private = ["-o", f"Dir::State::lists={lists}"] if lists.exists() else []
    # Other programs may hold the package manager's lock; we only read.
    own = ["-o", f"Dir::Cache={CACHE / 'apt'}", "-o", "APT::Sandbox::User=root"]
    options = ["-o", "Debug::NoLocking=1", *own, *private]
    return subprocess.run(
        [command, *options, *arguments],
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _unpack(packages: list[Path], root: Path) -> None:
    """Unpack into a folder that appears whole or not at all."""
    partial = root.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for package in packages:
        subprocess.run(["dpkg", "-x", package, partial], check=True)
    partial.rename(root)
    shutil.rmtree(packages[0].parent)
