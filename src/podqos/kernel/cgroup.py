"""Paths of cgroups: absolute, as below a cgroup mount; the root is ``/``."""

from __future__ import annotations

ROOT = "/"


def parent_path(path: str) -> str:
    """Return the path of the cgroup above."""
    return path.rpartition("/")[0] or ROOT


def is_within(path: str, ancestor: str) -> bool:
    """Tell whether ``path`` is ``ancestor`` or below it."""
    return ancestor in {ROOT, path} or path.startswith(ancestor + "/")
