"""JSON that is no object of the API, but holds parts of some.

They are what jq and jsonpath cut out, and what exporters of events and the node-problem-detector wrap.

Source: node-problem-detector v0.8 pkg/types/types.go (Status).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from podqos.manifest.decode import convert
from podqos.model.event import Event, EventSource, ObjectReference
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FatedPod, FullPodStatus
from podqos.objects.kubectl_text.lines import Line
from podqos.objects.kubectl_text.pasted import NOTHING, Pasted, PastedPod

_DEEPEST = 12
_MOST = 10_000
_MOST_LINES = 5_000
_WORDS = ("exitCode", "involvedObject", "regarding", "OOMKilling", "containerStatuses", '"Evicted"')
_STATE_OF_RUNTIME = "CONTAINER_"
_OF_STORED = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def json_end(lines: Sequence[Line], start: int, most: int) -> tuple[int, str]:
    """Return the line after the JSON value that begins at a line, and its text; the same line if there is none."""
    text, end = lines[start].text.rstrip(","), start + 1
    if not text.endswith(("}", "]")) or len(text) < 3:
        last = min(len(lines), start + most)
        while end < last and not _closes(lines[end], lines[start].indent):
            end += 1
        end = min(end + 1, len(lines))
        text = "\n".join(line.text for line in lines[start:end]).rstrip(", \n")
    return end, text


def _closes(line: Line, indent: int) -> bool:
    return line.is_break or (line.indent <= indent and line.text.rstrip(",") in {"}", "]"})


def json_part(lines: Sequence[Line], start: int) -> tuple[Pasted, int]:
    """Return what the JSON at a line tells, and where the text goes on: at the same line if it tells nothing."""
    end, text = json_end(lines, start, _MOST_LINES)
    if not any(word in text for word in _WORDS):
        return NOTHING, start
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING, start
    paste = parts_of(value)
    return (paste, end) if paste is not NOTHING else (NOTHING, start)


def json_within(text: str) -> Pasted:
    """Return what JSON in the midst of a line tells."""
    start = text.find('{"')
    if start < 0 or not any(word in text for word in _WORDS):
        return NOTHING
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return NOTHING
    return parts_of(value)


def is_incomplete_pod(value: object) -> bool:
    """Whether a value is a pod with its status, of which someone left out what every stored object has."""
    if not isinstance(value, dict) or value.get("kind") != "Pod" or not isinstance(value.get("status"), dict):
        return False
    metadata = value.get("metadata")
    return not (isinstance(metadata, dict) and any(metadata.get(name) for name in _OF_STORED))


def parts_of(value: object) -> Pasted:
    """Return the parts of objects that a value holds."""
    pods: list[PastedPod] = []
    events: list[Event] = []
    for part in _parts(value):
        if isinstance(part, Event):
            events.append(part)
        else:
            pods.append(part)
        if len(pods) + len(events) >= _MOST:
            break
    return Pasted(tuple(pods), events=tuple(events)) if pods or events else NOTHING


def _parts(value: object, depth: int = _DEEPEST) -> Iterator[Event | PastedPod]:
    """Yield events and the ends of containers, wherever they are in a value."""
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _parts(item, depth - 1)
    elif isinstance(value, dict):
        own = _part(value)
        if own is not None:
            yield own
            return
        if isinstance(value.get("source"), str) and isinstance(value.get("events"), list):
            yield from _detected(value["source"], value["events"])
            return
        for inner in value.values():
            yield from _parts(inner, depth - 1)


def _part(value: Mapping[str, object]) -> Event | PastedPod | None:
    try:
        if is_incomplete_pod(value):
            pod = convert(dict(value), FatedPod)
            return PastedPod(pod.metadata, pod.spec, pod.status, is_whole=bool(pod.spec.containers))
        if "reason" in value and ("involvedObject" in value or "regarding" in value):
            return convert(dict(value), Event)
        has_failed = value.get("phase") == "Failed" and isinstance(value.get("reason"), str)
        if isinstance(value.get("containerStatuses"), list) or has_failed:
            return PastedPod(status=convert(dict(value), FullPodStatus))
        if isinstance(value.get("lastState"), dict) or isinstance(value.get("state"), dict):
            status = convert(dict(value), ContainerStatus)
            states = (status.state, status.last_state)
            if any(state is not None and state.terminated is not None for state in states):
                return PastedPod(status=FullPodStatus(container_statuses=(status,)))
        is_of_runtime = str(value.get("state")).startswith(_STATE_OF_RUNTIME)
        if isinstance(value.get("exitCode"), int) and "finishedAt" in value and not is_of_runtime:
            ended = ContainerState(terminated=convert(dict(value), ContainerTerminated))
            return PastedPod(status=FullPodStatus(container_statuses=(ContainerStatus(last_state=ended),)))
    except (msgspec.ValidationError, RecursionError):
        return None
    return None


def _detected(source: str, events: Sequence[object]) -> Iterator[Event]:
    """Yield the events of a node-problem-detector; it does not say on which node."""
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("reason"), str):
            message, at = event.get("message"), event.get("timestamp")
            yield Event(
                reason=event["reason"],
                message=message if isinstance(message, str) else "",
                involved_object=ObjectReference("Node"),
                source=EventSource(source),
                first_timestamp=at if isinstance(at, str) else None,
            )
