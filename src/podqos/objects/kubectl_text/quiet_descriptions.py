"""Descriptions of pods and nodes that tell nothing by themselves, and the parts of a node's that never do.

They stay text, as rows of tables do (``quiet_rows``). Only whole descriptions, as kubectl prints them, are looked at:
anything else is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from podqos.model.event import TELLING
from podqos.objects.kubectl_text.describe_node import SECTIONS as OF_NODE
from podqos.objects.kubectl_text.describe_pod import SECTIONS as OF_POD

TELLING_REASONS = TELLING | {"CgroupOOM"}
_PRESSURE_ENDED = frozenset(("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"))
"""Of a node, as long as nothing tells that the pressure began: a kubelet that starts says so."""
_NAME = r"[a-z0-9][a-z0-9.-]{0,252}"
_LINES = r"(?:[^\n]+\n){1,2000}?"
_POD = re.compile(
    rf"Name:[ \t]+(?P<name>{_NAME})\nNamespace:[ \t]+(?P<namespace>[a-z0-9][a-z0-9-]{{0,62}})\n"
    rf"{_LINES}Node:[ \t]+(?P<node>{_NAME})(?:/[^\n]*)?\n{_LINES}Status:[ \t]+(?:Running|Pending|Succeeded)\n"
)
_NODE = re.compile(rf"Name:[ \t]+(?P<name>{_NAME})\nRoles:[ \t]")
_CAPACITY = re.compile(r"\nCapacity:[^\n]*\n(?:[ \t][^\n]*\n){0,100}?[ \t]+memory:[ \t]+(\S{1,40})\n")


def _other_line(sections: frozenset[str]) -> re.Pattern[str]:
    """Return what finds a line that a description does not have."""
    return re.compile(rf"\n(?![ \t\n]|(?:{'|'.join(sorted(sections))}):|\Z)")


_NOT_OF_POD = _other_line(OF_POD - {"Reason", "Message"})
_NOT_OF_NODE = _other_line(OF_NODE)
_DONE = re.compile(r"\n    State:[ \t]+Terminated\n      Reason:[ \t]+Completed\n      Exit Code:[ \t]+0\n")
_SHORT = re.compile(
    r"\n[ \t]+(?:Ready[ \t]+(?:False|Unknown)|(?:Memory|Disk|PID)Pressure[ \t]+True)[ \t]|\nUnschedulable:[ \t]+true"
)
_AGE = r"(?:<unknown>|(?:\d{1,6}[ydhms]){1,3})"
_EVENT = re.compile(
    rf"\n  (?:Normal|Warning)[ \t]+([A-Z][A-Za-z0-9]{{1,127}})[ \t]+{_AGE}(?: \(x\d{{1,9}} over {_AGE}\))?[ \t]+"
    r"[A-Za-z][\w./-]*(?:, \S+)?[ \t]+\S"
)
_WORDS = ("kubectl", " oc ", "```", "~~~", "\x1b", "Waiting", "Last State:", "Last Term", "DisruptionTarget", "Signal:")
"""What tells something, or ends a description in its midst."""
_INERT = re.compile(
    r"(?<=\n)((?:Labels|Annotations|Lease|Addresses|Non-terminated Pods|Allocated resources):[^\n]*\n)"
    r"(?:[ \t][^\n]*\n)+"
)


class Description(Struct, frozen=True, gc=False):
    """A description that tells nothing by itself."""

    text: str
    namespace: str
    """Empty: of a node."""
    name: str
    node: str
    """The pod's."""
    events: int
    has_ended: bool = False
    """Whether a container ended, and ended well."""
    memory: str = ""
    """The node's."""


def pieces(text: str) -> Iterator[str | Description]:
    """Yield a text in pieces, of which some are quiet descriptions."""
    starts = [0]
    start = text.find("\nName:")
    while start >= 0:
        starts.append(start + 1)
        start = text.find("\nName:", start + 1)
    for start, end in pairwise([*starts, len(text)]):
        piece = text[start:end]
        yield _quiet(piece) or piece


def _quiet(piece: str) -> Description | str | None:
    """Return a description that tells nothing, or what a node's tells; None: everything in it may matter."""
    pod = _POD.match(piece)
    node = _NODE.match(piece) if pod is None else None
    is_other = _NOT_OF_NODE if pod is None else _NOT_OF_POD
    if (pod is None and node is None) or is_other.search(piece):
        return None
    start = piece.rfind("\nEvents:")
    reasons = _EVENT.findall(piece, max(start, 0))
    rows = len(reasons)
    has_all = start >= 0 and piece.count("\n  ", start) == (rows + 2 if rows else 0)
    telling = TELLING_REASONS if node is None else TELLING_REASONS - _PRESSURE_ENDED
    is_quiet = has_all and telling.isdisjoint(reasons) and not any(word in piece for word in _WORDS)
    if node is not None:
        memory = _CAPACITY.search(piece)
        if not is_quiet or _SHORT.search(piece) or memory is None:
            return _INERT.sub(r"\1", piece)
        return Description(_INERT.sub(r"\1", piece), "", node["name"], "", rows, memory=memory[1])
    ended = piece.count("Terminated")
    if pod is None or not is_quiet or (ended and ended != len(_DONE.findall(piece))):
        return None
    return Description(piece, pod["namespace"], pod["name"], pod["node"], rows, has_ended=ended > 0)
