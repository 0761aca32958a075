"""Thaws frozen pods if the guard dies: after a ``kill -9``, it cannot do that itself.

A shell starts with the guard and reads from a pipe whose other end only the guard has. Each line says how to thaw
everything that is frozen from then on. When the pipe closes, the guard is dead, and the shell executes the last line.
The shell uses a megabyte and no CPU. If the kernel kills both at once, because their cgroup is killed or the guard is
the first process of its container, the next guard thaws (``acting.take_up``).
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
    """Knows what to thaw when this process dies."""

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
        """Thaw a cgroup if this process dies; ``thawing`` is the text to write, and the file."""
        self._held[path] = " ".join(thawing)
        self._say()

    def let_go(self, path: str) -> None:
        """Forget a cgroup that was thawed."""
        if self._held.pop(path, None) is not None:
            self._say()

    def close(self) -> None:
        """Stop the shell."""
        os.close(self._pipe)
        with suppress(subprocess.TimeoutExpired):
            self._shell.wait(_END_SECONDS)

    def _say(self) -> None:
        # Without a working shell, the guard continues unprotected.
        with suppress(OSError):
            os.write(self._pipe, f"{' '.join(self._held.values())}\n".encode())
