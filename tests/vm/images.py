"""Makes what QEMU boots from a kernel package: the bare kernel, and an initial RAM disk.

The guest's root is the host's root: read-only over 9p, with a file system in memory on top. It mounts cgroup v2, runs
the command given on the kernel's command line as run="...", says VM-RC and its status, and powers off. With
vm.init=systemd the host's systemd is the guest's first process, and the command a service of it.
"""

from __future__ import annotations

import lzma
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
FOLDERS = ("bin", "dev", "proc", "sys", "modules", "host", "over", "new")

INIT = r"""#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in @MODULES@; do $b insmod /modules/$module || echo "VM-FAILED insmod $module"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose host /host || echo "VM-FAILED 9p"
$b mount -t tmpfs over /over
$b mkdir /over/upper /over/work
$b mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work root /new || echo "VM-FAILED overlay"
$b mount -t proc proc /new/proc
$b mount -t sysfs sys /new/sys
$b mount -t devtmpfs dev /new/dev
$b mkdir -p /new/dev/shm
$b mount -t tmpfs shm /new/dev/shm
$b mount -t tmpfs run /new/run
$b mount -t cgroup2 cgroup /new/sys/fs/cgroup || echo "VM-FAILED cgroup2"
$b ip link set lo up
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
run=$($b sed -n 's/.*run="\([^"]*\)".*/\1/p' /proc/cmdline)
last="$run; echo VM-RC \$?; echo o > /proc/sysrq-trigger; sleep 60"
if $b grep -q vm.init=systemd /proc/cmdline; then
  $b mkdir -p /new/run/systemd/system
  $b printf '%s\n' '[Unit]' 'DefaultDependencies=no' '[Service]' 'StandardOutput=file:/dev/@CONSOLE@' \
    'StandardError=file:/dev/@CONSOLE@' "Environment=PATH=$PATH HOME=/root" "ExecStart=/bin/sh /run/vm-command" \
    > /new/run/systemd/system/vm.service
  $b printf '%s\n' "$last" > /new/run/vm-command
  exec $b switch_root /new /lib/systemd/systemd --unit=vm.service
fi
exec $b switch_root /new /bin/sh -c "$last"
"""


def bare_kernel(package: Path) -> bytes:
    """Take the kernel out of its self-extracting image: software emulation would take seconds to do the same."""
    image = next((package / "boot").glob("vmlinuz-*")).read_bytes()
    if image[0x38:0x3C] == b"ARM\x64":  # Documentation/arch/arm64/booting.rst: it is bare already
        return image
    # Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length.
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * 512 + offset
    payload = image[start : start + length]
    if payload.startswith(b"\xfd7zXZ"):
        kernel = lzma.LZMADecompressor().decompress(payload)
    else:
        # The size of the kernel follows the compressed data, at which the command complains.
        kernel = subprocess.run(["zstd", "-dcq"], input=payload, capture_output=True, check=False).stdout
    assert kernel.startswith(b"\x7fELF"), "the kernel is compressed in a way unknown here"
    return kernel


def modules(package: Path) -> dict[str, bytes]:
    """Return the modules the guest loads, dependencies first; what is not there as a file is built in."""
    found = package.rglob("*.ko*")  # below lib, since Debian 13 below usr/lib
    files = {path.name.partition(".")[0].replace("-", "_"): path for path in found}
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in files and f"{name}.ko" not in ordered:
            data = files[name].read_bytes()
            data = lzma.decompress(data) if files[name].suffix == ".xz" else data
            depends = re.search(rb"\0depends=([^\0]*)\0", data)
            for other in depends[1].decode().split(",") if depends else ():
                add(other.replace("-", "_"))
            ordered[f"{name}.ko"] = data

    for name in MODULES:
        add(name)
    return ordered


def write_initrd(target: Path, busybox: Path, modules: Sequence[Path], console: str) -> None:
    """Write the initial RAM disk: busybox, the modules, and the script above."""
    init = INIT.replace("@MODULES@", " ".join(path.name for path in modules)).replace("@CONSOLE@", console)
    entries = [(name, 0o40755, b"") for name in FOLDERS]
    entries.append(("bin/busybox", 0o100755, busybox.read_bytes()))
    entries += [(f"modules/{path.name}", 0o100644, path.read_bytes()) for path in modules]
    entries.append(("init", 0o100755, init.encode()))
    entries.append(("TRAILER!!!", 0, b""))
    target.write_bytes(b"".join(_cpio(*entry, inode) for inode, entry in enumerate(entries, start=1)))


def _cpio(name: str, mode: int, data: bytes, inode: int) -> bytes:
    """Return one entry in the "newc" format: a header of thirteen hexadecimal numbers, the name, the data."""
    raw = name.encode() + b"\0"
    numbers = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + raw
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
