"""Ends of containers and OOMs of nodes as other programs pass them on: CI, workflow engines, alerts, clients.

They print a status in forms of their own: Go's ``map[exitCode:137 reason:OOMKilled]`` and structs, Python's dicts,
``Reason [OOMKilled]``, ``OOMKilled (exit code 137)``. What says why is found by its words, and what belongs to it, such
as exit code and pod, near it. Only read where a text has nothing of kubectl's own. Prose, rules for alerts and source
code are nothing of the kind: there, names or values have quotes that a program would not print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from podqos.model.event import Event, ObjectReference
from podqos.model.pod import ObjectMeta, PodSpec
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.pasted import Pasted, PastedPod

_MOST_TRIED = 1_000
_NEAR = 1_200
_BEFORE_REASON = re.compile(
    r"(?<![\w.$])(?P<key>[\"']?)(?:[Tt]ermination |[Tt]ermination_)?[Rr]eason(?P=key)"
    r"(?:\s{0,3}[:=]\s{0,4}|\sis\s|\s?\[)(?P<value>[\"']?)$"
)
_REASON = re.compile(r"OOM ?Killed(?![\w-])|OutOfMemoryError: Container killed due to memory usage")
"""Of Kubernetes, now and up to 1.0; of Amazon ECS."""
_WITH_CODE = re.compile(
    r"(?:^|[:\"'(]\s{0,80}|\s{2,80})OOMKilled \(exit code (\d{1,3})\)(?=[\"')]|\s{2}|\s*$)", re.MULTILINE
)
_NODE_OOM = re.compile(r"System OOM encountered, victim process: [^\s,%]{1,64}, pid: \d{1,10}")
_MOST_BEFORE = 200
_CODE = re.compile(r"[Ee]xit[ _]?[Cc]ode[\"']?(?:\s{0,3}[:=]\s{0,4}|\s?\(|\s)[\"']?(\d{1,3})(?!\d)")
_NAME = r"[a-z0-9][a-z0-9-]{0,252}(?:\.[a-z0-9-]{1,63}){0,8}"
_SEPARATED = r"[\"'*]{0,3}\s{0,3}[:=]\s{0,4}[\"'`]?"
_POD = re.compile(
    rf"(?<![\w.])(?:pod(?:[ _]?[Nn]ame)?|Pod(?: [Nn]ame)?){_SEPARATED}"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME})(?![\w{{(])"
    rf"|(?<![\w.])[Pp]od [\"'`]?(?:(?P<its>{_NAME})/)?(?P<own>(?=[a-z.-]{{0,252}}[\d-])(?!-){_NAME})(?![\w{{(])"
)
_NAMESPACE = re.compile(rf"(?<![\w.])[Nn]amespace{_SEPARATED}(?P<name>{_NAME})(?![\w{{(])")
_CONTAINER = re.compile(rf"(?<![\w.])[Cc]ontainer(?:[ _]?[Nn]ame)?{_SEPARATED}(?P<name>{_NAME})(?![\w{{(])")
_NODE = re.compile(rf"(?<![\w.])[Nn]ode(?:[ _]?[Nn]ame)?{_SEPARATED}(?P<name>{_NAME})(?![\w{{(])")
_ON_NODE = re.compile(rf"(?<![\w.])[Nn]ode(?:{_SEPARATED}|[ /][\"'`]?)(?:None/)?(?P<name>{_NAME})(?![\w{{(])")
_FINISHED = re.compile(
    r"[Ff]inished[ _]?[Aa]t[\"']?\s{0,3}[:=]\s{0,4}[\"']?"
    r"(?:(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d| [+-]\d{4})?)"
    r"|datetime\.datetime\((?P<figures>\d{4}(?:, \d{1,2}){5}))"
)
_ID = re.compile(r"[Cc]ontainer_?I[Dd][\"']?\s{0,3}[:=]\s{0,4}[\"']?([a-z-]{1,20}://[0-9a-f]{12,64})")
_ID_OF_PYTHON = re.compile(r"'container_id': '([a-z-]{1,20}://[0-9a-f]{12,64})'")


def stated(text: str) -> Pasted:
    """Return the containers that a text says were OOM-killed, and the OOMs of nodes, once each."""
    pods: dict[tuple[str, ...], PastedPod] = {}
    seen: set[tuple[str, str]] = set()
    for start, code in islice(_reasons(text), _MOST_TRIED):
        around = text[max(0, start - _NEAR) : start], text[start : start + _NEAR]
        if around in seen:
            continue
        seen.add(around)
        found = _pod(text, start, code)
        if found is not None:
            pods.setdefault(found[0], found[1])
    return Pasted(tuple(pods.values()), events=tuple(islice(_node_ooms(text), _MOST_TRIED)))


def _reasons(text: str) -> Iterator[tuple[int, int | None]]:
    """Yield where a text says that something was OOM-killed, with the exit code if that is a part of it."""
    for found in _WITH_CODE.finditer(text):
        yield found.start(), int(found[1])
    for found in _REASON.finditer(text):
        before = _BEFORE_REASON.search(text, max(0, found.start() - 40), found.start())
        is_printed = before is not None and bool(before["key"]) >= bool(before["value"])
        if is_printed and not _is_in_prose(text, found.start()):
            yield found.start(), None


def _is_in_prose(text: str, start: int) -> bool:
    """Whether a sentence quotes what is here, between backticks."""
    before = text[max(text.rfind("\n", max(0, start - _NEAR), start) + 1, start - _NEAR, 0) : start]
    return before.count("`") % 2 == 1 and any(map(str.isalnum, before[: before.rfind("`")]))


def _pod(text: str, start: int, code: int | None) -> tuple[tuple[str, ...], PastedPod] | None:
    """Return the pod of a container that was OOM-killed, and what tells it from others; None: no end of a container."""
    low, high = _paragraph(text, start)
    pod, own = _nearest(_POD, text, low, high, start), _nearest(_CONTAINER, text, low, high, start)
    exited = _nearest(_CODE, text, low, high, start)
    if code is None and exited is None and pod is None:
        return None
    name = "" if pod is None else pod["name"] or pod["own"]
    where = None if pod is None else _nearest(_NAMESPACE, text, low, high, start)
    namespace = "" if pod is None else pod["namespace"] or pod["its"] or ("" if where is None else where["name"])
    node = _nearest(_NODE, text, low, high, start)
    finished = _nearest(_FINISHED, text, low, high, start)
    identity = _nearest(_ID, text, low, high, start) or _nearest(_ID_OF_PYTHON, text, low, high, start)
    ended = ContainerTerminated(
        reason="OOMKilled",
        exit_code=code if code is not None or exited is None else int(exited[1]),
        finished_at=None if finished is None else _time(finished),
        container_id="" if identity is None else identity[1],
    )
    container = "" if own is None else own["name"]
    status = ContainerStatus(name=container, last_state=ContainerState(terminated=ended))
    key = namespace, name, container, ended.finished_at or ""
    return key, PastedPod(
        ObjectMeta(name=name, namespace=namespace),
        PodSpec(node_name="" if node is None else node["name"]),
        FullPodStatus(container_statuses=(status,)),
    )


def _paragraph(text: str, start: int) -> tuple[int, int]:
    """Return where the text around a place begins and ends that may belong to it."""
    low, high = max(0, start - _NEAR), min(len(text), start + _NEAR)
    return text.rfind("\n---", low, start) + 1 or low, high


def _nearest(pattern: re.Pattern[str], text: str, low: int, high: int, place: int) -> re.Match[str] | None:
    """Return what is nearest to a place, in its line before other lines, and in its paragraph before others."""
    edges = [(max(low, text.rfind(end, low, place)), text.find(end, place, high)) for end in ("\n", "\n\n")]

    def distance(found: re.Match[str]) -> tuple[list[bool], int]:
        start = found.start()
        outside = [not begin <= start <= (high if end < 0 else end) for begin, end in edges]
        return outside, abs(start - place)

    return min(pattern.finditer(text, low, high), key=distance, default=None)


def _time(found: re.Match[str]) -> str:
    if found["figures"]:
        year, month, day, hour, minute, second = (int(figure) for figure in found["figures"].split(", "))
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    return str(found["time"]).replace(" ", "T", 1).replace(" +0000", "Z")


def _node_ooms(text: str) -> Iterator[Event]:
    """Yield the OOMs of nodes that the kubelet's message about them tells of, wherever it is quoted."""
    for found in _NODE_OOM.finditer(text):
        start = max(0, found.start() - _MOST_BEFORE)
        start = text.rfind("\n", start, found.start()) + 1 or start
        before = text[start : found.start()]
        if before.endswith(("'", '"', "`")) and not before.rstrip("\"'` ").endswith(('"', "\\", "':", '":', "=")):
            continue  # source code: a program that prints values in quotes has its names in quotes, too
        node = _nearest(_ON_NODE, text, start, found.end(), found.start())
        about = ObjectReference("Node", "", "" if node is None else node["name"])
        yield Event(reason="SystemOOM", message=found[0], involved_object=about)
