"""The recorded traffic of a real API server (tests/recordings/cluster), and a server that answers with it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from cluster.serving import Request, status, watch_of

_DIRECTORY = Path(__file__).parents[1] / "recordings" / "cluster"


@cache
def recorded(name: str) -> bytes:
    """Return the bytes of a recording."""
    return gzip.decompress((_DIRECTORY / f"{name}.gz").read_bytes())


@cache
def recorded_json(name: str) -> Any:
    return json.loads(recorded(name))


def recorded_answer(file: str, name: str) -> tuple[int, dict[str, str], bytes]:
    """Return one answer of a file of answers."""
    found = next(each for each in recorded_json(file) if each["name"] == name)
    body = found["body"]
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {
        key: value for key, value in found["headers"].items() if key not in {"Transfer-Encoding", "Content-Length"}
    }
    return found["http_status"], headers, data.encode()


def recorded_watch(name: str) -> list[bytes]:
    """Return the events of a watch, a line each."""
    return recorded(f"watch/{name}.jsonl").splitlines()


@cache
def _pages() -> dict[str, bytes]:
    pages = [recorded(f"pages/pods-{number}.json") for number in range(1, 7)]
    tokens = ["", *(json.loads(page)["metadata"]["continue"] for page in pages[:-1])]
    return dict(zip(tokens, pages, strict=True))


def api_server(request: Request) -> object:
    """Answer as the recorded server did."""
    query = request.query
    if request.path == "/version":
        return recorded("version.json")
    if query.get("watch"):
        if query.get("sendInitialEvents"):
            return watch_of(recorded_watch("initial-events"), then=lambda wire: wire.stall())
        return watch_of([], then=lambda wire: wire.stall())
    if request.path == "/api/v1/pods":
        return _pages()[query.get("continue", "")]
    plural = request.path.rpartition("/")[2]
    if (_DIRECTORY / "lists" / f"{plural}.json.gz").exists():
        return recorded(f"lists/{plural}.json")
    return status(404, "NotFound", "the server could not find the requested resource")
