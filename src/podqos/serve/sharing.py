"""A page as one file: the viewer with the server's answers embedded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec
from msgspec import Struct

from podqos.errors import PodqosError
from podqos.manifest.encoding import embedded, json_line
from podqos.page.page import Page
from podqos.page.session import Session, source_info
from podqos.runs.layout import with_pictures
from podqos.runs.run import simulate
from podqos.serve.shown_paths import ShownPaths
from podqos.version import __version__

START = "start"
"""The id of the source that a command was started with."""
_MOST_POD_BYTES = 6 << 20
"""Maximum number of pod views; the first victims come first."""


def shared_page(viewer: str, page: Page) -> bytes:
    """Return a page that needs no server."""
    source = page.source
    info = source_info(START, source)
    answers: dict[str, msgspec.Raw] = {}
    if "cluster" in info.views:
        view = page.cluster()
        answers[_path("cluster")] = msgspec.Raw(json_line(view))
        if view.next_deaths:
            answers[_path("answer")] = msgspec.Raw(json_line(page.answer()))
        room = _MOST_POD_BYTES
        for block in view.pods:
            data = json_line(page.pod(f"{block.namespace}/{block.name}", block.node))
            room -= len(data)
            if room < 0:
                break
            answers[_path("pods", f"{block.namespace}/{block.name}")] = msgspec.Raw(data)
    more: dict[str, Callable[[], Struct]] = {"check": page.check, "autopsy": page.autopsy}
    for name in info.views:
        if name in more:
            try:
                answers[_path(name)] = msgspec.Raw(json_line(more[name]()))
            except PodqosError:
                continue  # the view reports that it is not in the file
    route = ""
    if source.run is not None:
        answers[_path("run")] = msgspec.Raw(json_line(source.run))
    elif source.scenario is not None:
        answers["/api/jobs/run/result"] = msgspec.Raw(json_line(with_pictures(simulate(source.scenario).report)))
        route = "#/run/run"
    saved_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    session = Session(__version__, (info,), None, live=False)
    app = {"session": session, "answers": answers, "route": route, "savedAt": saved_at}
    return embedded(viewer, {"app": msgspec.Raw(ShownPaths(source).hide(json_line(app)))}).encode()


def _path(view: str, pod: str = "") -> str:
    query = f"?pod={quote(pod, safe='')}" if pod else ""
    return f"/api/sources/{START}/{view}{query}"
