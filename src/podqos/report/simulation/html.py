"""A page: the built viewer with a run, a blast radius or an autopsy written into it.

``viewer/`` builds the page; the caller reads it. The data must not be able to close its script element, so ``<`` is
escaped in a way that JavaScript and JSON both allow.
"""

from __future__ import annotations

import msgspec

from podqos.answers.picture.layout import with_pictures
from podqos.answers.run_view import RunView
from podqos.sim.blast import BlastRadius
from podqos.words.autopsy_story import AutopsyPage

SLOT = '<script id="run" type="application/json">null</script>'


def page(viewer: str, view: RunView | BlastRadius | AutopsyPage) -> str:
    """Return the page; ``viewer`` is the built one, which has one slot for the data."""
    return embedded(viewer, with_pictures(view) if isinstance(view, RunView) else view)


def embedded(viewer: str, value: object) -> str:
    """Return the viewer with a value written into it."""
    assert viewer.count(SLOT) == 1, "not the built viewer"
    data = msgspec.json.encode(value).decode().replace("<", "\\u003c")
    return viewer.replace(SLOT, SLOT.replace("null", data))
