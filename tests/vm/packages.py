"""Gets what a virtual machine needs: QEMU, busybox and a kernel package.

What the system has is used; the rest is unpacked into the project's cache (``debian``).
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from debian import Missing, Packages
from vm import images

PACKAGES = Packages("vm")
CACHE = PACKAGES.folder
KERNEL_FOLDER = CACHE / "kernel"
# The cloud flavour lacks 9p, through which the guest sees our files.
KERNEL_PACKAGE = "linux-image-amd64"
FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


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
        PACKAGES.install(missing, root)
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
        PACKAGES.update()
        name = _newest_kernel()
    if name is None:
        raise Missing(f"apt-get offers no {KERNEL_PACKAGE}")
    package = CACHE / "kernel-package"
    PACKAGES.unpack(PACKAGES.download("download", name), package)
    partial = CACHE / "kernel.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (partial / "vmlinux").write_bytes(images.bare_kernel(package))
    for index, (file, data) in enumerate(images.modules(package).items()):
        (partial / f"{index:02}-{file}").write_bytes(data)
    partial.rename(KERNEL_FOLDER)
    shutil.rmtree(package)


def _newest_kernel() -> str | None:
    found = PACKAGES.apt("apt-cache", "depends", KERNEL_PACKAGE).stdout.split()
    return next((name for name in found if name.startswith("linux-image-") and name != KERNEL_PACKAGE), None)
