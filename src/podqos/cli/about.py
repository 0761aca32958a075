"""``podqos --version``: what this podqos is. The first line is for programs, and the rest for reports of mistakes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.resources import files

from podqos.model.profile import LATEST, NEWEST, OLDEST, version_text
from podqos.version import __version__


def about() -> Iterator[str]:
    """Yield the version, then a line for everything that may matter when two installations differ."""
    yield f"podqos {__version__}"
    if "dev" in __version__:
        yield "release: none, a development version"
    known = f"{version_text(OLDEST)} to {version_text(NEWEST)}"
    yield f"Kubernetes: {LATEST.version_text} by default, {known} with --kubernetes-version"
    yield f"Python: {sys.version.partition(' ')[0]} on {sys.platform}"
    yield f"page: {'built' if (files('podqos.page') / 'viewer.html').is_file() else 'not built'}"
