"""Lines of a paste, without what terminals, mail, Markdown and chats put around them; and which texts are kubectl's.

Indentation counts: in a description it tells a field from what a program wrote into one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import overload

from msgspec import Struct

from podqos.kernel.carriers.cleaning import cleaned as without_markup
from podqos.kernel.carriers.cleaning import is_markup

MOST_CHARACTERS = 16_384
"""Of a line; an eviction's message has at most a few thousand."""
MOST_LINES = 400_000
# Each line that begins something has one of these: a command, a fence, a row, a heading, a field, a message.
_WORDS = (
    *("/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9", "/0", " v1.", "Normal", "Warning", "kubectl", "```", "~~~"),
    *("Name:", "State:", "Containers:", "Events:", "Status:", "Reason:", "Namespace:", "Node:", "Class:", "Capacity:"),
    *("Allocatable:", "Conditions:", "Unschedulable:", "Non-terminated Pods:", "Allocated resources:", "NAME", "POD"),
    *("terminated", "exitCode", "The node ", "exceed", "Usage of EmptyDir", " oc ", "oc get", "oc desc", "$ k "),
    *("NS ", "OOMKilled", " - event for ", "{", "[", "apiVersion:", "kind:", "metadata:", "items:"),
    *("Pressure ", "evicted", "evicting pod ", "System OOM enc", "status:"),
)
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[()][A-Z0-9])|[\u200b\ufeff]"
)
_NUMBER = re.compile(r"[ \t]{0,8}(\d{1,6})(?:[:.|)]?(?:[ \t]|$))")
_LEAST_NUMBERED = 3
_HEADING = re.compile(r"(?:NAMESPACE {2,80})?NAME {2,80}READY {2,80}STA")
_MOST_BEFORE_TABLE = 40
_QUOTE = re.compile(r" {0,3}(?:(?:>|&gt;|[│┃|](?= |$)) ?){1,8}")
_QUOTES = frozenset((">", "&", "│", "┃", "|"))
_BARS = frozenset("│┃|")
_BAR = re.compile("[│┃|]")
_GAP = "   "
"""What separates the columns of a table that has no bars."""
_FENCES = ("```", "~~~")
_COMMAND = re.compile(
    r"(?:^|^[*_]{0,3}[#$]|[$#%>❯➜»~]\s{1,4}|\b(?:sudo|watch|command:)\s{1,4})`?(?:sudo )?"
    r"(?:(?:microk8s|k3s|minikube) )?"
    r"(?:[\w.~/-]{1,80}/)?(?:kubectl|kubecolor|oc|kc|k)(?:\.exe|\.sh)?\s{1,8}(?:-- )?([-a-z].{1,1000}?)`?$"
)
_VERBS = frozenset(("get", "describe", "events", "top", "logs", "delete", "apply", "debug", "exec", "edit", "drain"))
_VERBS_IN_TEXT = tuple(f" {verb}" for verb in _VERBS)
_NAMESPACE = re.compile(r"(?:^|\s)(?:-n|-{2}namespace)[= ]{0,2}([a-z0-9][a-z0-9-]{0,62})(?=\s|$)")
_POD = re.compile(
    r"(?:describe|get)\s{1,4}(?:-\S{1,80}\s{1,4}(?:[a-z0-9-]{1,63}\s{1,4})?){0,3}(?:pods?|po)(?:/|\s{1,4})"
    r"([a-z0-9][a-z0-9.-]{0,252})(?=\s{1,8}[-|>]|\s{0,8}$|\s{1,8}&)"
)
_NODE = re.compile(
    r"(?:(?:describe|get)\s{1,4}(?:-\S{1,80}\s{1,4}){0,3}(?:nodes?|no)(?:/|\s{1,4})|drain\s{1,4}(?:-\S{1,80}\s{1,4}){0,9})"
    r"([a-z0-9][a-z0-9.-]{0,252})(?=\s{1,8}[-|>]|\s{0,8}$|\s{1,8}&)"
)
_DATE = "%a, %d %b %Y %H:%M:%S %z"


class Line(Struct, frozen=True, gc=False):
    """A line as kubectl printed it."""

    text: str
    """Without its indentation."""
    indent: int = 0
    is_break: bool = False
    """What was pasted before it does not go on after it: the fence of a block, or a command."""
    namespace: str | None = None
    """Of a command: the namespace it names, empty where it names none."""
    pod: str = ""
    """Of a command: the one pod that it names."""
    node: str = ""
    """Likewise the one node."""


class Lines(Sequence[Line]):
    """The lines of a paste, cleaned when they are looked at: of a log in which something was pasted few are."""

    def __init__(self, text: str) -> None:
        self.raw = _unfolded(_without_numbers(text.split("\n", MOST_LINES)[:MOST_LINES]))
        """As they are in the text."""
        self._clean: list[Line | None] = [None] * len(self.raw)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.raw)

    @overload
    def __getitem__(self, place: int) -> Line: ...

    @overload
    def __getitem__(self, place: slice) -> list[Line]: ...

    def __getitem__(self, place: int | slice) -> Line | list[Line]:
        """Return a line, or several."""
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self.raw)))]
        line = self._clean[place]
        if line is None:
            line = self._clean[place] = cleaned(self.raw[place])
        return line

    def may_tell(self, place: int) -> bool:
        """Whether a line may begin something; most lines of a log do not."""
        raw = self.raw[place]
        for word in _WORDS:  # noqa: SIM110 - any() takes twice as long, and this is asked of every line
            if word in raw:
                return True
        return False


def _without_numbers(lines: list[str]) -> list[str]:
    """Return lines without their numbers, as editors and ``cat -n`` show them: each is one more than the last."""
    numbered = [found for line in lines[:_LEAST_NUMBERED] if (found := _NUMBER.match(line))]
    if len(numbered) < _LEAST_NUMBERED:
        return lines
    first, plain = int(numbered[0][1]), []
    for place, line in enumerate(lines):
        found = _NUMBER.match(line)
        if line.strip() and (found is None or int(found[1]) != first + place):
            return lines
        plain.append(line if found is None else line[found.end() :])
    return plain


def _unfolded(lines: list[str]) -> list[str]:
    """Return lines with a table's rows whole that a terminal broke where it ends: its headings say where that is."""
    for place, line in enumerate(lines[:_MOST_BEFORE_TABLE]):
        if not _HEADING.match(line) or " AGE" in line or " AGE" not in "".join(lines[place : place + 2]):
            continue
        width, whole, is_open = len(line), lines[:place], False
        for other in lines[place:]:
            if is_open:
                whole[-1] += other
            else:
                whole.append(other)
            is_open = len(other) == width
        return whole
    return lines


def cleaned(raw: str) -> Line:
    """Return a line without what is around it."""
    line = raw[:MOST_CHARACTERS]
    if "\x1b" in line or "\u200b" in line or "\ufeff" in line:
        line = _ESCAPE.sub("", line)
    if is_markup(line):
        line = without_markup(line, is_markup=True)
    if not line.isascii():
        line = line.replace("\u00a0", " ")
    stripped = line.strip()
    if stripped[:1] in _BARS and stripped[-1:] in _BARS and len(stripped) > 1:
        return Line(_GAP.join(cell.strip(" `*") or "<none>" for cell in _BAR.split(stripped)[1:-1]))
    if stripped[:1] in _QUOTES:
        quoted = _QUOTE.match(line)
        line = line if quoted is None else line[quoted.end() :]
        stripped = line.strip()
    indent = 0
    if line[:1].isspace():
        before = line[: len(line) - len(line.lstrip())]
        indent = len(before.expandtabs(8)) if "\t" in before else len(before)
    if stripped.startswith(_FENCES):
        return Line(stripped, indent, is_break=True)
    if stripped.startswith("`") and stripped.endswith("`"):
        stripped = stripped.strip("`")
    named = _command(stripped)
    if named is not None:
        namespace, pod, node = (
            "" if found is None else found[1] for found in (each.search(named) for each in (_NAMESPACE, _POD, _NODE))
        )
        return Line(stripped, indent, is_break=True, namespace=namespace, pod=pod, node=node)
    return Line(stripped, indent)


def _command(text: str) -> str | None:
    """Return what follows kubectl on a command line; None: the line is something else."""
    for verb in _VERBS_IN_TEXT:
        if verb in text:
            break
    else:
        return None
    found = _COMMAND.search(text, 0, 1500)
    return found[1] if found is not None and not _VERBS.isdisjoint(found[1].split()) else None


def iso_time(text: str) -> str:
    """Return a time as the API writes it; one without a zone stays as it was printed."""
    try:
        time = datetime.strptime(text.strip()[:40], _DATE)  # noqa: DTZ007, the format has its zone
    except ValueError:
        return text.strip()[:40]
    return time.isoformat() if time.year > 1 else ""  # Go's for none at all
