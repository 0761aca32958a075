"""Values that no command prints: those of the page, by view, and the metrics of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from outputs.commands import PLATFORM, ROOT, Line
from podqos.errors import InputError
from podqos.manifest.encoding import json_line
from podqos.page.fixes import FixRequest
from podqos.page.page import Page
from podqos.page.what_if import ForecastRequest, KubeletEdit, PodEdit, WhatIf
from podqos.questions.metrics import overview_metrics
from podqos.questions.overview import overview
from podqos.reading.scenario_files import load_scenario
from podqos.reading.snapshot_files import read_snapshot
from podqos.runs.comparison import compare_runs
from podqos.runs.run import simulate
from podqos.serve.sources import read_paths
from podqos.serve.work import page_about

_SNAPSHOT = "tests/outputs/inputs/cluster.jsonl"
_KUBELET = KubeletEdit(eviction_hard="1Gi", system_reserved="512Mi")


class _Asked(Struct, frozen=True):
    """What is asked of a source of the page."""

    paths: tuple[str, ...]
    pods: tuple[str, ...]
    edited: PodEdit
    growing: str
    node: str = ""


# What becomes of the edit: alone, of all pods, with too much to find room anywhere, and with nothing stated at all.
_WHAT_IFS: dict[str, Callable[[PodEdit], PodEdit]] = {
    "what-if": lambda edit: edit,
    "what-if-alone": lambda edit: replace(edit, alone=True),
    "what-if-too-large": lambda edit: replace(edit, requests={"memory": "500Gi"}, limits={"memory": "500Gi"}),
    "what-if-nothing-stated": lambda edit: replace(
        edit, requests={"cpu": None, "memory": None}, limits={"cpu": None, "memory": None}
    ),
}

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
    yield ("page", "compare", "oom-by-class", "oom-by-usage")
    for source, asked in _SOURCES.items():
        for view in ("cluster", *_WHAT_IFS, "what-if-kubelet", "forecast", "check", "fix", "autopsy", "problems"):
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
    if source == "compare":
        return _text(compare_runs(*(simulate(load_scenario(name)).report for name in (view, *pod))))
    page, asked = _page(source), _SOURCES[source]
    views: dict[str, Callable[[], object]] = {
        "cluster": page.cluster,
        **{name: partial(_what_if, page, asked, edit) for name, edit in _WHAT_IFS.items()},
        "what-if-kubelet": lambda: page.what_if(WhatIf(asked.node, kubelet=_KUBELET, everywhere=True)),
        "forecast": lambda: page.forecast(ForecastRequest(asked.growing, asked.node, _KUBELET)),
        "check": page.check,
        "fix": lambda: page.fix(FixRequest()),
        "autopsy": page.autopsy,
        "problems": lambda: [str(each) for each in page.problems],
        "pod": lambda: page.pod(*pod),
    }
    return _text(views[view]())


def _text(value: object) -> str:
    return msgspec.json.format(json_line(value), indent=1).decode()


def _what_if(page: Page, asked: _Asked, edit: Callable[[PodEdit], PodEdit]) -> object:
    request = WhatIf(edits=(edit(asked.edited),), is_whole=True, growing=asked.growing)
    try:
        return page.what_if(request)
    except InputError as error:
        return {"error": str(error)}


@cache
def _page(source: str) -> Page:
    return page_about(read_paths(_SOURCES[source].paths))
