"""A filesystem of a few pages that only the test sees: a tmpfs in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "size=$0" none "$1" && shift && exec "$@"'
PAGE = os.sysconf("SC_PAGE_SIZE")


def why_not() -> str | None:
    """Return what this machine lacks for it; None if it can be done."""
    if shutil.which("unshare") is None:
        return "unshare is missing"
    command = ["unshare", "--mount", "sh", "-c", _MOUNT, "64k", "/mnt", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


needs_small_filesystem = pytest.mark.skipif(why_not() is not None, reason=f"no filesystem to fill: {why_not()}")


def on_small_filesystem(folder: Path, pages: int, code: str) -> list[object]:
    """Run Python code with ``folder`` as a filesystem of so many pages; return what it has put into ``said``."""
    before = (
        "import json, os, subprocess, sys\nfrom pathlib import Path\nfolder, said = Path(sys.argv[1]), []\n"
        "def remount(how): subprocess.run(['mount', '-o', f'remount,{how}', folder], check=True)\n"
        "def fill():\n"
        "    with (folder / 'ballast').open('ab', buffering=0) as file:\n"
        "        try:\n"
        "            while True: file.write(bytes(1 << 16))\n"
        "        except OSError: pass\n"
        "def free(pages): os.truncate(folder / 'ballast', "
        f"(folder / 'ballast').stat().st_size - pages * {PAGE})\n"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", _MOUNT, str(pages * PAGE), str(folder),
         sys.executable, "-c", f"{before}{code}\nprint(json.dumps(said))", str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said: list[object] = json.loads(done.stdout)
    return said
