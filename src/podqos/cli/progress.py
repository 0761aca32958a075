"""Progress of long work on a terminal; nothing elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from podqos.controls import own


def progress_line(what: str) -> Callable[[int, int], None] | None:
    """Return a callback that takes done and total, and shows them once the work takes noticeably long."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    started = said = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done == total and said > started:
            print(own("\r\x1b[K"), end="", file=sys.stderr, flush=True)
        elif now - started >= 0.5 and now - said >= 0.1:
            said = now
            line = f"{what} {done:,} of {total:,} ({done * 100 // total} %)"
            print(own("\r") + line, end="", file=sys.stderr, flush=True)

    return show
