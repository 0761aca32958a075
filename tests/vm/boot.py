"""Runs a Python script as root in a virtual machine of its own kernel, and returns what it reports.

The script prints results with ``report``: JSON lines with a marker, so that the kernel's own messages on the same
console do no harm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MARKER = "@podqos "
PROJECT = Path(__file__).parents[2]
EXPENDABLE = "vm.expendable"
"""On the command line of a kernel whose machine is ours to exhaust."""
SETTINGS = "panic=-1 quiet psi=1 mitigations=off audit=0"
# One processor: two that are emulated wait for each other, which is a third of the time.
OPTIONS = (
    *("-accel", "tcg", "-smp", "1"),
    *("-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"),
    *("-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"),
    *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
)


def report(**values: object) -> None:
    """Print a result, inside the machine."""
    sys.stdout.write(f"\n{MARKER}{json.dumps(values)}\n")
    sys.stdout.flush()


def run_in_vm(
    script: Path, *arguments: str, memory_mib: int, timeout_seconds: int, systemd: bool = False
) -> tuple[list[dict[str, object]], str]:
    """Boot, run a script of this project, power off; returns its reports and the whole console."""
    # Only the host needs these; the guest imports this module for report alone.
    from vm import images, packages

    found = packages.parts()
    initrd = packages.CACHE / "initrd.cpio"
    images.write_initrd(initrd, found.busybox, found.modules, found.console)
    paths = ":".join(str(PROJECT / folder) for folder in ("src", "tests"))
    command = f"/usr/bin/env PYTHONPATH={paths} {sys.executable} {script} {' '.join(arguments)}"
    init = "vm.init=systemd" if systemd else ""
    qemu = [
        *found.qemu,
        *OPTIONS,
        *("-m", str(memory_mib), "-kernel", str(found.kernel), "-initrd", str(initrd)),
        *("-append", f'console={found.console} {SETTINGS} {EXPENDABLE} {init} run="{command}"'),
    ]
    environment = {**os.environ, "LD_LIBRARY_PATH": found.library_path}
    with subprocess.Popen(
        qemu, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as machine:
        try:
            raw, _ = machine.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            machine.kill()
            raw, _ = machine.communicate()
        finally:
            machine.kill()
    console = raw.decode(errors="replace").replace("\r", "")
    lines = (line.partition(MARKER) for line in console.splitlines())
    return [json.loads(text) for _, marker, text in lines if marker], console
