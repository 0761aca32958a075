"""What a command says on standard error."""

from __future__ import annotations

import re


def without_assumptions(said: str) -> str:
    """Return what else was said than what was assumed."""
    return re.sub(r"^assumed: .*\n", "", said, flags=re.MULTILINE)
