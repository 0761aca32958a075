"""How the package is built: by hatchling, and a wheel without the page of ``podqos simulate --html`` is an error.

An editable installation needs no page. A wheel without it has to be asked for, where there is no npm to build it with:
``pip install --config-settings=page=absent .``
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import *  # noqa: F403 - the other hooks of a build backend (PEP 517, PEP 660)
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/podqos/report/viewer.html"


def build_wheel(directory: str, config_settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build a wheel as hatchling does; ``page=absent`` leaves the page out."""
    if (config_settings or {}).get("page") == "absent":
        os.environ["HATCH_BUILD_NO_HOOKS"] = "true"
    return build.build_wheel(directory, config_settings, metadata)


class PageIsThere(BuildHookInterface):
    """Refuses to build a wheel to be shipped or installed that lacks the page."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Look before anything is built."""
        page = Path(self.root, PAGE)
        if version == "standard" and not (page.is_file() and page.stat().st_size):
            self.app.abort(
                f"{PAGE} is not built, and podqos simulate --html needs it: run `make viewer` first (needs npm), "
                "or leave it out: pip install --config-settings=page=absent ."
            )
