"""Gets what a virtual machine needs: QEMU, busybox and a kernel package.

What the system has is used; the rest is unpacked into the project's cache (``debian``).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from debian import Missing, Packages, library_path
from vm import images

PACKAGES = Packages("vm")
CACHE = PACKAGES.folder
KERNEL_FOLDER = CACHE / "kernel"
ASKED_FOR = "PODQOS_TEST_VM"
FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


class Architecture(NamedTuple):
    """What differs between processors: the guest runs on the host's own."""

    kernel_package: str
    """The cloud flavour lacks 9p, through which the guest sees our files."""
    qemu_package: str
    qemu: str
    board: str
    processor: str
    """On ARM without pointer authentication: emulating it triples the time."""
    console: str


ARCHITECTURES = {
    "x86_64": Architecture("linux-image-amd64", "qemu-system-x86", "qemu-system-x86_64", "q35", "max", "ttyS0"),
    "aarch64": Architecture(
        "linux-image-arm64", "qemu-system-arm", "qemu-system-aarch64", "virt", "max,pauth=off", "ttyAMA0"
    ),
}


class Parts(NamedTuple):
    """Where the pieces of a virtual machine are."""

    qemu: tuple[str, ...]
    """The command that starts QEMU, with its board, its processor and the options that let it find its firmware."""
    console: str
    library_path: str
    busybox: Path
    kernel: Path
    modules: tuple[Path, ...]
    """In the order of their dependencies."""


def parts() -> Parts:
    """Find or fetch everything, or raise Missing."""
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        raise Missing(f"there is none for {platform.machine()}, only for {' and '.join(ARCHITECTURES)}")
    if platform.machine() != "x86_64" and not os.environ.get(ASKED_FOR):
        raise Missing(f"on {platform.machine()} its emulation takes many minutes: set {ASKED_FOR}=1 to run it")
    try:
        return _parts(architecture)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(str(error)) from error


def _parts(architecture: Architecture) -> Parts:
    CACHE.mkdir(parents=True, exist_ok=True)
    if not KERNEL_FOLDER.exists():
        _fetch_kernel(architecture.kernel_package)
    needed = ((architecture.qemu_package, architecture.qemu), ("busybox-static", "busybox"))
    missing = [package for package, command in needed if shutil.which(command) is None]
    root = CACHE / "root"
    if missing and not root.exists():
        PACKAGES.install(missing, root)
    busybox = root / "bin" / "busybox" if "busybox-static" in missing else Path(shutil.which("busybox") or "")
    qemu, libraries = (shutil.which(architecture.qemu) or "",), ""
    if architecture.qemu_package in missing:
        firmware = [option for folder in FIRMWARE for option in ("-L", str(root / folder))]
        qemu, libraries = (str(root / "usr/bin" / architecture.qemu), *firmware), library_path(root)
    kernel, modules = KERNEL_FOLDER / "vmlinux", tuple(sorted(KERNEL_FOLDER.glob("*.ko")))
    machine = ("-M", architecture.board, "-cpu", architecture.processor)
    return Parts((*qemu, *machine), architecture.console, libraries, busybox, kernel, modules)


def _fetch_kernel(kernel_package: str) -> None:
    """Keep of the newest kernel package what is booted and loaded: a hundredth of it."""
    name = _newest_kernel(kernel_package)
    if name is None:
        PACKAGES.update()
        name = _newest_kernel(kernel_package)
    if name is None:
        raise Missing(f"apt-get offers no {kernel_package}")
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


def _newest_kernel(kernel_package: str) -> str | None:
    found = PACKAGES.apt("apt-cache", "depends", kernel_package).stdout.split()
    return next((name for name in found if name.startswith("linux-image-") and name != kernel_package), None)
