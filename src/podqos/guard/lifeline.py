"""Thaws what a guard holds if the guard dies: it is killed with -9, and thaws nothing any more.

A shell is started with the guard and reads from a pipe whose other end the guard alone has. Each line says how to thaw
all that is held from then on; when the pipe ends, so has the guard, and the last line is done. The shell takes a
megabyte and no time. It ends with the guard where the kernel ends both at once: their cgroup is killed, or the guard is
the first process of its container. There the next guard thaws (``acting.take_up``).
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

from podqos.errors import HostError

_SHELL = "/bin/sh"
_SCRIPT = (
    "trap '' HUP INT TERM; set -f; held=; while read -r line; do held=$line; done; "
    'set -- $held; while [ $# -gt 1 ]; do echo "$1" >"$2"; shift 2; done'
)
_END_SECONDS = 5.0


class Lifeline:
    """Knows what is to be thawed when this process has died."""

    def __init__(self) -> None:
        """Start the shell, or raise HostError."""
        end, self._pipe = os.pipe2(os.O_CLOEXEC)
        try:
            self._shell = subprocess.Popen(  # noqa: S603 - nothing of the input
                (_SHELL, "-c", _SCRIPT),
                stdin=end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={},
            )
        except OSError as error:
            os.close(self._pipe)
            raise HostError(
                f"{_SHELL}: {error.strerror}: if the guard is killed, the pods it holds stay frozen"
            ) from error
        finally:
            os.close(end)
        os.set_blocking(self._pipe, False)
        self._held: dict[str, str] = {}

    def hold(self, path: str, thawing: tuple[str, str]) -> None:
        """Have a cgroup thawed if this process dies; ``thawing`` is the text and the file it is written to."""
        self._held[path] = " ".join(thawing)
        self._say()

    def let_go(self, path: str) -> None:
        """Forget a cgroup: it is thawed."""
        if self._held.pop(path, None) is not None:
            self._say()

    def close(self) -> None:
        """End the shell."""
        os.close(self._pipe)
        with suppress(subprocess.TimeoutExpired):
            self._shell.wait(_END_SECONDS)

    def _say(self) -> None:
        # Without a shell, or one that does not read, the guard does as without it.
        with suppress(OSError):
            os.write(self._pipe, f"{' '.join(self._held.values())}\n".encode())
