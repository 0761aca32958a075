"""Tables with columns of one's own: ``kubectl get pods -o custom-columns=NAME:…,REASON:…,EXIT:…``."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.event import Event, ObjectReference
from podqos.model.pod import ObjectMeta, PodSpec
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.lines import iso_time
from podqos.objects.kubectl_text.pasted import PastedPod
from podqos.objects.kubectl_text.tables import tabled_pod

_SORTED = dict.fromkeys(map(ord, "↑↓"))
_HEADING = r"%?[A-Z][A-Z0-9_./:-]{0,40}(?: %?[A-Z][A-Z0-9_./-]{1,40}){0,12}"
_HEADINGS = re.compile(rf"{_HEADING}(?:(?:\s{{2,}}|\t){_HEADING}){{1,20}}$")
_GAP = re.compile(r"\s{2,}|\t")
_NAME = re.compile(r"(?:pod/)?([a-z0-9][a-z0-9.-]{0,252})$")
_NOT_LETTERS = re.compile(r"[^a-z]")
# What columns are called, in letters alone.
_MEANINGS = {
    **dict.fromkeys(("name", "pod", "podname"), "name"),
    **dict.fromkeys(("namespace", "ns"), "namespace"),
    **dict.fromkeys(("node", "nodename", "host"), "node"),
    **dict.fromkeys(("status", "phase"), "status"),
    **dict.fromkeys(
        ("reason", "laststate", "lastreason", "lastterminationreason", "terminationreason", "laststatereason",
         "terminated", "lastterminated", "termination", "lasttermination", "last", "laststatus", "lastexitreason",
         "exitreason", "previous", "previousstate", "why", "terminatedreason", "lastterminatedreason", "lastterm"),
        "reason",
    ),
    **dict.fromkeys(("exit", "exitcode", "code", "lastexit", "lastexitcode", "exitcodes"), "exit"),
    **dict.fromkeys(("container", "containers", "containername"), "container"),
    **dict.fromkeys(("message", "msg"), "message"),
    **dict.fromkeys(("kind", "objectkind"), "kind"),
    **dict.fromkeys(("restarts", "restart", "restartcount"), "restarts"),
    **dict.fromkeys(("finished", "finishedat", "lastfinished", "killedat", "when", "time", "lastseen"), "finished"),
}  # fmt: skip
_TELLING = {"reason", "exit", "status"}
_POD_REASONS = frozenset(("Evicted", "Preempting", "NodeLost", "Shutdown", "NodeShutdown"))
_MOST_CONTAINERS = 50


class Columns(Struct, frozen=True, gc=False):
    """The columns of a table: what each means, empty for one that means nothing here."""

    meanings: tuple[str, ...]
    of_words: tuple[str, ...] = ()
    """The same if every word is a column of its own, as where a screen has no room for more than a space between."""


def columns_of(text: str) -> Columns | None:
    """Return the columns that a heading names; None: it is something else."""
    text = text.translate(_SORTED)
    if not _HEADINGS.match(text):
        return None
    meanings, of_words = _meanings(_GAP.split(text)), _meanings(text.split())
    is_of_others = not {"COMMAND", "OBJECT"}.isdisjoint(text.split())  # docker's containers, or events
    is_telling = "name" in of_words and not _TELLING.isdisjoint((*of_words, *meanings))
    return Columns(meanings, of_words) if is_telling and not is_of_others else None


def _meanings(headings: list[str]) -> tuple[str, ...]:
    return tuple(_MEANINGS.get(_NOT_LETTERS.sub("", heading.lower()), "") for heading in headings)


def column_row(text: str, columns: Columns, namespace: str = "") -> PastedPod | Event | None:
    """Return the pod of a row, or the event if there is what an event is about; None: it is something else."""
    most = len(columns.meanings) - 1 if columns.meanings[-1:] == ("message",) else 0
    spaced, words = _GAP.split(text, most), text.split()
    for meanings, cells in ((columns.meanings, spaced), (columns.meanings, words), (columns.of_words, words)):
        if len(cells) == len(meanings) and "name" in meanings:
            break
    else:
        return None
    row = {meaning: "" if cell == "<none>" else cell for meaning, cell in zip(meanings, cells, strict=True)}
    named = _NAME.match(row["name"])
    if named is None:
        return None
    if not row.get("reason"):  # whatever its column is called
        others = (cell for meaning, cell in zip(meanings, cells, strict=True) if not meaning)
        row["reason"] = next((cell for cell in others if "OOMKilled" in cell.split(",")), "")
    metadata = ObjectMeta(name=named[1], namespace=row.get("namespace", "") or namespace)
    if row.get("kind") and row.get("message"):
        about = ObjectReference(row["kind"], "" if row["kind"] == "Node" else metadata.namespace, named[1])
        at = iso_time(row.get("finished", "")) or None
        return Event(reason=row.get("reason", ""), message=row["message"], involved_object=about, last_timestamp=at)
    pod = tabled_pod(metadata, row.get("status", ""), node=row.get("node", ""), restarts=_count(row))
    reason = row.get("reason", "")
    if reason in _POD_REASONS:
        status = FullPodStatus(phase="Failed", reason=reason, message=row.get("message", ""))
        return replace(pod, status=status)
    statuses = _statuses(row)
    if not statuses:
        return pod
    return PastedPod(metadata, PodSpec(node_name=row.get("node", "")), replace(pod.status, container_statuses=statuses))


def _count(row: dict[str, str]) -> int:
    digits = row.get("restarts", "").partition(" ")[0]
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else 0


def _statuses(row: dict[str, str]) -> tuple[ContainerStatus, ...]:
    """Return how containers ended; of several the cells hold lists."""
    if not (row["reason"] or "exit" in row):
        return ()
    reasons = row.get("reason", "").split(",")
    codes = row.get("exit", "").split(",")
    names = row.get("container", "").split(",")
    statuses = []
    for place in range(min(max(len(reasons), len(codes)), _MOST_CONTAINERS)):
        reason = reasons[place] if place < len(reasons) else ""
        code = codes[place] if place < len(codes) else ""
        is_code = code.isascii() and code.isdecimal() and len(code) < 6
        if not (is_code or reason[:1].isupper()):
            continue
        ended = ContainerTerminated(
            reason="" if reason == "<none>" else reason,
            exit_code=int(code) if is_code else None,
            finished_at=iso_time(row.get("finished", "")) or None,
        )
        # The columns do not say whether it runs again.
        statuses.append(
            ContainerStatus(
                name=names[place] if len(names) > 1 and place < len(names) else row.get("container", ""),
                restart_count=_count(row),
                last_state=ContainerState(terminated=ended),
            )
        )
    return tuple(statuses)
