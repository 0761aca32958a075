"""Commands on a terminal of their own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def session(words, action, wait_for=b"", *, rows=40, columns=140):
    """Run a command on a terminal, act once something is shown; return its code, what it wrote, and the modes."""
    own, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: _take_terminal(theirs),  # noqa: PLW1509 - it takes no lock
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": ""},
    )  # fmt: skip
    output, acted, end = b"", False, time.monotonic() + 300
    while process.poll() is None and time.monotonic() < end:
        if select.select([own], [], [], 0.05)[0]:
            output += os.read(own, 65536)
        if not acted and wait_for in output and output:
            acted = True
            if callable(action) and not isinstance(action, int):
                action()
            elif isinstance(action, bytes):
                os.write(own, action)
            else:
                process.send_signal(action)
    while select.select([own], [], [], 0.1)[0]:
        output += os.read(own, 65536)
    process.kill()
    code = process.wait()
    after = termios.tcgetattr(theirs)
    os.close(own)
    os.close(theirs)
    return code, output, (before, after)


def _take_terminal(descriptor):
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
