"""Parts of objects without the object: ``lastState: terminated: …`` cut out of YAML or JSON, or a message by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podqos.eviction.message_reading import read_message
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.lines import Line
from podqos.objects.kubectl_text.messages import rejoined
from podqos.objects.kubectl_text.pasted import PastedPod

_TERMINATED = re.compile(r'"?(?:-\s)?(?:lastState"?:\s{0,4}\{?\s{0,4}"?)?terminated"?:\s{0,4}\{?$')
_FIELD = re.compile(
    r'"?(containerID|exitCode|signal|reason|finishedAt|startedAt|message)"?:\s{0,8}"?([^"]{0,400}?)"?,?$'
)
_CONTAINER = re.compile(r'-?\s{0,4}"?name"?:\s{1,4}"?([a-z0-9][a-z0-9-]{0,62})"?,?$')
_RESTARTS = re.compile(r'"?restartCount"?:\s{1,4}(\d{1,9}),?$')
_MOST_FIELDS = 12
_OPENINGS = (
    *("The node was low on ", "The node had condition: ", "Pod The node had condition: ", "Usage of EmptyDir volume "),
    *("Pod ephemeral local storage usage exceeds ", "Container "),
)
_INSIDE = re.compile(
    r": (?=The node was low on resource: |Usage of EmptyDir volume \"|Pod ephemeral local storage usage exceeds )"
)
"""Where a program passes the message on, behind words of its own."""
_BEFORE_MESSAGE = re.compile(r'(?:[-*•]\s{1,4})?(?:["\'`“]|(?:status\.)?"?[Mm]essage"?:\s{0,40}["\']?){0,2}')


def terminated_fragment(lines: Sequence[Line], place: int) -> tuple[PastedPod | None, int]:
    """Return a pod without a name of which one container's end is in the text, and where the text goes on."""
    if not _TERMINATED.match(lines[place].text):
        return None, place
    fields: dict[str, str] = {}
    after = place + 1
    while after < len(lines) and len(fields) < _MOST_FIELDS and (found := _FIELD.match(lines[after].text)):
        fields.setdefault(found[1], found[2])
        after += 1
    code = fields.get("exitCode", "")
    if not (code.isascii() and code.isdecimal() and len(code) < 6):
        return None, place
    ended = ContainerTerminated(
        reason=fields.get("reason", ""),
        exit_code=int(code),
        finished_at=fields.get("finishedAt") or None,
        started_at=fields.get("startedAt") or None,
        container_id=fields.get("containerID", ""),
    )
    name, restarts = "", 0
    for line in lines[after : after + 8]:
        if _TERMINATED.match(line.text) or line.is_break:
            break
        if found := _CONTAINER.match(line.text):
            name = name or found[1]
        elif found := _RESTARTS.match(line.text):
            restarts = int(found[1])
    is_last = any("lastState" in line.text for line in lines[max(0, place - 1) : place + 1])
    state = ContainerState(terminated=ended)
    status = ContainerStatus(
        name=name,
        restart_count=restarts,
        state=None if is_last else state,
        last_state=state if is_last else None,
    )
    return PastedPod(status=FullPodStatus(container_statuses=(status,))), after


def bare_message(lines: Sequence[Line], place: int) -> tuple[str, int]:
    """Return the message of an eviction that stands by itself, and where the text goes on; empty: there is none."""
    text = lines[place].text
    start = _BEFORE_MESSAGE.match(text)
    own = text[start.end() if start is not None else 0 :]
    if not own.startswith(_OPENINGS):
        inside = _INSIDE.search(text)
        said = None if inside is None else read_message(text[inside.end() :])
        if inside is None or said is None or not (said.containers or said.limit_kind or said.available is not None):
            return "", place
        own = text[inside.end() :]
    after = place + 1
    parts = [own]
    # A terminal or a mail may have broken it into lines.
    while after < len(lines) and after < place + 30 and lines[after].text and not lines[after].is_break:
        if ": " in lines[after].text[:20] and "quantity: " not in lines[after].text[:40]:
            break
        parts.append(lines[after].text)
        after += 1
    whole = own if own.rstrip().endswith(".") else rejoined(parts)
    return ("", place) if read_message(whole) is None else (whole.rstrip("\"'`”, "), after)
