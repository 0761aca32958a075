"""What saves the first of each order: how much, by whom it is told, and that it does what is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from agreement.asking import Asking
from agreement.question import Answers, Question, Reader
from agreement.questions.orders import is_told_by_files
from agreement.questions.pods import has_cgroup_v2
from agreement.settings import NODE, Setting, key
from podqos.manifest.encoding import json_line
from podqos.page.page import Page

_EDIT = re.compile(r"(\S+): (\S+)")
_PART = re.compile(r"(\w+)\[(\d+)\]")


def _rank(asking: Asking) -> tuple[str, ...]:
    return "rank", *asking.node, *asking.cgroup


def _told(report: Any) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yield what is said to save the first of each order, by whom it saves it from, pod and change."""
    for remedies in report["remedies"]:
        for remedy in remedies["remedies"]:
            if remedy["saves"]:
                yield (remedies["by"], remedies["pod"], remedy["kind"]), remedy


def _ways(report: Any) -> Answers:
    return {about: remedy["change"] for about, remedy in _told(report)}


def _page_ways(asking: Asking, page: Page) -> Answers:
    """Return what the page of each of these pods offers; what it offers against both stands there once."""
    found: dict[object, object] = {}
    for remedies in asking.json(*_rank(asking))["remedies"]:
        shown = json.loads(json_line(page.pod(remedies["pod"], NODE)))
        for way in shown["safer"]:
            if way["by"] == remedies["by"]:
                found[way["by"], remedies["pod"], way["change"]] = way["remedy"]["change"]
    return found


def _is_snapshot(setting: Setting) -> bool:
    """Whether a snapshot knows no more than the table of usage, where amounts are not told of a pod without."""
    return setting.is_measured and has_cgroup_v2(setting)


AMOUNTS = Question(
    "what saves the first of each order",
    (
        Reader("rank", lambda asking: _ways(asking.json(*_rank(asking)))),
        Reader("rank --snapshot", lambda asking: _ways(asking.json("rank", *asking.snapshot)), when=_is_snapshot),
        Reader("ui", lambda asking: _page_ways(asking, asking.page), when=_is_snapshot),
        Reader("ui FILES", lambda asking: _page_ways(asking, asking.page_of_files), when=is_told_by_files),
        Reader(
            "ui SCENARIO",
            lambda asking: _page_ways(asking, asking.page_of_scenario),
            when=_is_snapshot,
        ),
    ),
)


# ---- what is said of it, and what comes of it ------------------------------------------------------------------------


def _place(remedy: Any) -> int:
    """Return the place that a change is said to lead to."""
    found = re.search(r"(\d+)(?:st|nd|rd|th) of", remedy["effect"])
    assert found, remedy["effect"]
    return int(found[1])


def _written(pod: Any, remedy: Any) -> Any | None:
    """Return a pod with the lines that are to be written; None where there are none, or a value has to be chosen."""
    made = deepcopy(pod)
    for line in remedy["edits"]:
        found = _EDIT.match(line)
        if found is None or "<" in found[2]:
            return None
        at = made
        *parts, last = found[1].split(".")
        for part in parts:
            indexed = _PART.fullmatch(part)
            at = at[indexed[1]][int(indexed[2])] if indexed else at.setdefault(part, {})
        at[last] = found[2]
    return made if remedy["edits"] else None


def _applied(asking: Asking) -> Answers:
    """Return the places once each change is written into the manifest; the pod is first no more."""
    found: dict[object, object] = {}
    for about, remedy in _told(asking.json(*_rank(asking))):
        by, pod, kind = about
        made = [_written(each, remedy) if key(each) == pod else each for each in asking.setting.pods]
        if None in made:
            continue
        path = asking.directory / f"{by}-{kind.replace(' ', '-')}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
        words = [word if word != asking.file("pods.yaml") else str(path) for word in _rank(asking)]
        report = asking.json(*words, "-f", asking.file("none.yaml"))
        evicted = [each["pod"] for each in report["evictionOrder"] if not each["spared"]]
        killed = [*dict.fromkeys(each["pod"] for each in report["killOrder"])]
        place = (evicted if by == "kubelet" else killed).index(pod) + 1
        assert place != 1 or len(made) == 1, f"{pod} is still first with {remedy['edits']}"
        found[about] = place
    return found


EFFECTS = Question(
    "where a pod stands with what saves it",
    (
        Reader("rank", lambda asking: {about: _place(remedy) for about, remedy in _told(asking.json(*_rank(asking)))}),
        Reader("rank, asked again", _applied),
    ),
)
