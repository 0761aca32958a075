"""Placing pods as the library does it: nothing is read, but the process is told not to search for cycles meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from podqos.answers.place import PlacementInput, PlaceOptions
from podqos.answers.placement import PlacementReport
from podqos.objects.objects import Objects


def place(objects: Objects, options: PlaceOptions | None = None) -> PlacementReport:
    """Return where the pods of all workloads land; new ones go through admission first, without quotas.

    Workloads that the API server would not store are left out, and are among the problems of the objects. Raises
    InputError where there are no nodes.
    """
    with _no_search_for_cycles():
        return PlacementInput(objects, options or PlaceOptions()).place()


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Disable garbage collection: millions of objects form no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
