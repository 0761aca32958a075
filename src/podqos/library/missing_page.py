"""How to get the page, where podqos was installed or checked out without it."""

from __future__ import annotations

import os
import sys

_NODE = "install Node.js 20 or newer, which brings npm (https://nodejs.org)"
_AGAIN = "`pip install --force-reinstall .`, `pipx install --force .` or `uv tool install --reinstall .`"


def how_to_get_the_page(report: str) -> str:
    """Return what is missing and the commands that bring it; ``report`` is the directory where the page belongs."""
    root = os.path.abspath(os.path.join(report, "../../.."))
    if os.path.exists(os.path.join(root, "viewer", "package.json")):
        build = "python tools/page.py" if sys.platform == "win32" else "make viewer"
        return f"the page is not built: {_NODE}, then run `{build}` in {root}"
    return f"podqos was installed without its page, because npm was missing: {_NODE}, then install it again: {_AGAIN}"
