"""Which permissions commands use on a cluster: what docs/reference/rbac.md says, and what they ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from msgspec import Struct

from cluster.serving import Request, status
from documents import world
from documents.commands import ROOT, Command
from documents.world import Ran, run

PAGE = ROOT / "docs/reference/rbac.md"
# What the names of the page stand for: sets of resources, each with its verb.
_METRICS = [
    {
        "metadata": {"name": name},
        "timestamp": "2026-11-16T03:00:00Z",
        "window": "15s",
        "usage": {"cpu": "1", "memory": "4Gi"},
    }
    for name in ("worker-1", "worker-2")
]
_CODE = re.compile(r"`([^`]+)`")


class Row(Struct, frozen=True):
    """A command of the page: without these permissions it fails, with those it knows more."""

    command: str
    needed: frozenset[str]
    used: frozenset[str]


def sets() -> dict[str, frozenset[str]]:
    """Return the sets of permissions that the page names."""
    text = PAGE.read_text().partition("## Sets of permissions")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \*(\w+)\* \| (.*?) \|", text, re.MULTILINE)
    return {name: frozenset(_CODE.findall(cells)) for name, cells in rows}


def rows() -> list[Row]:
    """Return the commands of the page."""
    text = PAGE.read_text().partition("## By command")[2].partition("\n## ")[0]
    return [
        Row(command, _permissions(needed), _permissions(used))
        for command, needed, used in re.findall(r"^\| `(podqos [^`]*)` \| (.*?) \| (.*?) \|", text, re.MULTILINE)
    ]


def parts() -> dict[str, frozenset[str]]:
    """Return what runs in a cluster, and its permissions."""
    text = PAGE.read_text().partition("## What runs in a cluster")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (\w+) \| (.*?) \| `podqos \w+ manifests` \|$", text, re.MULTILINE)
    return {name: _permissions(listed) for name, listed in cells}


def _permissions(cell: str) -> frozenset[str]:
    known = sets()
    return frozenset(_CODE.findall(cell)).union(*(known[name] for name in re.findall(r"\*(\w+)\*", cell)))


def permission(request: Request) -> str | None:
    """Return what a request is to RBAC: ``list pods``, ``get nodes/proxy``; None for what everybody may."""
    parts = request.path.strip("/").split("/")
    if parts[0] not in {"api", "apis"}:
        return None
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = "/".join([rest[0], *rest[2:3]])
    verb = "watch" if request.query.get("watch") else "list" if len(rest) == 1 else "get"
    return f"{verb} {resource}{f'.{group}' if group else ''}"


@contextmanager
def asked(allowed: Callable[[str], bool]) -> Iterator[list[str]]:
    """Keep what is asked of the world's cluster, which allows some of it."""
    every: list[str] = []
    answer = world.cluster

    def answered(request: Request) -> object:
        needed = permission(request)
        if needed is None:
            return answer(request)
        every.append(needed)
        if allowed(needed) and needed.endswith(".metrics.k8s.io"):
            kind, items = ("NodeMetricsList", _METRICS) if "nodes" in needed else ("PodMetricsList", [])
            return json.dumps({"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "items": items}).encode()
        if allowed(needed):
            return answer(request)
        return status(403, "Forbidden", f'{needed} is forbidden: User "me" cannot {needed}')

    with mock.patch.object(world, "cluster", answered):
        yield every


def permissions_of(command: str, directory: Path, allowed: Collection[str] | None = None) -> tuple[Ran, frozenset[str]]:
    """Run a command in a world where only these permissions are granted, or all; return what it asked for."""
    with asked(lambda needed: allowed is None or needed in allowed) as every, world.in_world(directory):
        ran = run(Command(PAGE.name, 0, command))
    return ran, frozenset(every)
