"""The built page, into which values are written; it is part of a wheel, and built in a source tree."""

from __future__ import annotations

import os
import sys
from importlib.resources import files

from podqos.errors import HostError

_NODE = "install Node.js 20 or newer, which brings npm (https://nodejs.org)"
_AGAIN = "`pip install --force-reinstall .`, `pipx install --force .` or `uv tool install --reinstall .`"


def built_viewer() -> str:
    """Return the page; where there is none, raise with what is missing and the commands that bring it."""
    folder = files("podqos.page")
    try:
        return (folder / "viewer.html").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        root = os.path.abspath(os.path.join(str(folder), "../../.."))
        what = (
            f"podqos was installed without its page, because npm was missing: {_NODE}, then install it again: {_AGAIN}"
        )
        if os.path.exists(os.path.join(root, "viewer", "package.json")):
            build = "python tools/page.py" if sys.platform == "win32" else "make viewer"
            what = f"the page is not built: {_NODE}, then run `{build}` in {root}"
        raise HostError(what) from error
