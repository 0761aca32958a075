"""Values that no command prints: those of the page, by view, and the metrics of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache

import msgspec
from msgspec import Struct

from outputs.commands import PLATFORM, ROOT, Line
from podqos.library.cluster_snapshot import read_snapshot
from podqos.library.overview import overview
from podqos.library.page.page import Page
from podqos.library.page.source import read_paths
from podqos.report.cluster.metrics import overview_metrics
from podqos.report.page.check import FixRequest
from podqos.report.page.forecast import ForecastRequest
from podqos.report.page.what_if import KubeletEdit, PodEdit, WhatIf
from podqos.report.text.encoding import json_line

_SNAPSHOT = "tests/outputs/inputs/cluster.jsonl"
_KUBELET = KubeletEdit(eviction_hard="1Gi", system_reserved="512Mi")


class _Asked(Struct, frozen=True):
    """What is asked of a source of the page."""

    paths: tuple[str, ...]
    pods: tuple[str, ...]
    edited: PodEdit
    growing: str
    node: str = ""


_SOURCES = {
    "platform": _Asked(
        (PLATFORM, "scenarios/content-platform/usage.csv"),
        ("monitoring/log-collector", "production/article-service-0"),
        PodEdit(
            "production/article-service-0", "article-service", requests={"memory": "3Gi"}, limits={"memory": "3Gi"}
        ),
        "monitoring/log-collector:collector",
    ),
    "cluster": _Asked(
        (_SNAPSHOT,),
        ("shop/batch-0", "shop/batch-2", "shop/web-7d4b9c-aaaaa"),
        PodEdit("shop/batch-0", "main", requests={"memory": "3Gi"}, priority=2000),
        "shop/shell:shell",
        "atlas-1",
    ),
}


def value_lines() -> Iterator[Line]:
    """Yield the names of all values, each once, in a fixed order."""
    yield ("metrics",)
    for source, asked in _SOURCES.items():
        for view in ("cluster", "what-if", "what-if-kubelet", "forecast", "check", "fix", "autopsy", "problems"):
            yield ("page", source, view)
        for pod in asked.pods:
            yield ("page", source, "pod", pod)


def value_of(line: Line) -> str:
    """Return a value as text, one field a line."""
    with contextlib.chdir(ROOT):
        return _value(line)


def _value(line: Line) -> str:
    if line == ("metrics",):
        return overview_metrics(overview(read_snapshot(_SNAPSHOT)), {"atlas-1": 1800.0})
    _, source, view, *pod = line
    page, asked = _page(source), _SOURCES[source]
    views: dict[str, Callable[[], object]] = {
        "cluster": page.cluster,
        "what-if": lambda: page.what_if(WhatIf(edits=(asked.edited,), is_whole=True, growing=asked.growing)),
        "what-if-kubelet": lambda: page.what_if(WhatIf(asked.node, kubelet=_KUBELET, everywhere=True)),
        "forecast": lambda: page.forecast(ForecastRequest(asked.growing, asked.node, _KUBELET)),
        "check": page.check,
        "fix": lambda: page.fix(FixRequest()),
        "autopsy": page.autopsy,
        "problems": lambda: [str(each) for each in page.problems],
        "pod": lambda: page.pod(*pod),
    }
    return msgspec.json.format(json_line(views[view]()), indent=1).decode()


@cache
def _page(source: str) -> Page:
    return Page(read_paths(_SOURCES[source].paths))
