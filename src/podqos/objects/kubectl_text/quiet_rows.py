"""Rows of pods and events that tell nothing by themselves, which most rows of a large table do.

They stay text, and are read only if something else is about an object of that name. All of them are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum, auto

from msgspec import Struct

from podqos.model.event import Event
from podqos.objects.kubectl_text.lines import cleaned
from podqos.objects.kubectl_text.pasted import PastedPod
from podqos.objects.kubectl_text.quiet_descriptions import TELLING_REASONS, Description
from podqos.objects.kubectl_text.tables import ENDED_BY, FAILED_BY, event_row, pod_row

MOST_NAMES = 100_000
"""Pods beyond are counted as often as they are in tables."""
_MOST_CHARACTERS = 1 << 23
"""Rows beyond are counted alone, unless something before was about an object of that name."""
_COMPLETED = "Completed"
_NAME = r"[a-z0-9][a-z0-9.-]{0,252}"
_NAMESPACE = r"[ \t]{0,40}+(?:(?P<namespace>[a-z0-9][a-z0-9-]{0,62}+)[ \t]{1,300}+)?"
_AGE = r"(?:<unknown>|(?:\d{1,6}[ydhms]){1,3})"
_CRASH_LOOP = "CrashLoopBackOff"
_TELLING = "|".join(sorted((FAILED_BY | ENDED_BY | {_CRASH_LOOP}) - {_COMPLETED}))
_STATUS = re.compile(rf"(?:Init:)?(?:(?:{_TELLING})(?![A-Za-z0-9])|ExitCode:|Signal:)")
"""What tells something."""
_POD = re.compile(
    rf"{_NAMESPACE}(?P<name>{_NAME})[ \t]+\d{{1,4}}/\d{{1,4}}[ \t]+"
    rf"(?P<status>[A-Z][A-Za-z0-9]{{1,60}}(?:[:/][A-Za-z0-9/]{{1,60}}){{0,2}})[ \t]+"
    rf"\d{{1,9}}(?: \({_AGE} ago\))?[ \t]+{_AGE}"
    rf"(?:[ \t]{{1,80}}(?:<none>|[0-9a-f.:]{{3,45}})[ \t]{{1,80}}(?P<node><none>|{_NAME})(?=[ \t]|$)"
    r"[ -_a-~\t]{0,1000}|[ \t]*)$"
)
_EVENT = re.compile(
    rf"{_NAMESPACE}{_AGE}(?: \(x\d{{1,9}} over {_AGE}\))?[ \t]+(?:Normal|Warning)[ \t]+"
    rf"(?P<reason>[A-Z][A-Za-z0-9]{{1,127}})[ \t]+[A-Za-z.]{{1,63}}/(?P<name>{_NAME})[ \t]+[!-_a-~][^`]{{0,4000}}$"
)


class Told(Enum):
    """What a row tells of."""

    EVICTION = auto()
    TERMINATION = auto()
    """A container was killed or stopped."""
    EXIT = auto()
    """A container ended, or keeps ending."""
    NOTHING = auto()


_BY_STATUS = {
    **dict.fromkeys(("Evicted", "Preempting", "Terminated", "Shutdown", "NodeShutdown", "NodeLost"), Told.EVICTION),
    **dict.fromkeys(
        ("OOMKilled", "ContainerStatusUnknown", "ExitCode:137", "ExitCode:143", "Signal:9", "Signal:15"),
        Told.TERMINATION,
    ),
    _CRASH_LOOP: Told.EXIT,
    "ExitCode:0": Told.NOTHING,
}


def _told_by(status: str) -> Told:
    if status.startswith("OutOf"):
        return Told.EVICTION  # as what was not admitted
    return _BY_STATUS.get(status, Told.EXIT if status.startswith(("ExitCode:", "Signal:")) else Told.NOTHING)


class Rows(Struct, frozen=True, gc=False):
    """Some rows of one table."""

    text: str
    namespace: str
    """What the command names."""

    def pods(self, names: Collection[str] | None) -> Iterator[PastedPod]:
        """Yield the pods of these names; None: all."""
        for line in self._lines(_POD, names):
            pod = pod_row(line, self.namespace)
            if pod is not None:
                yield pod

    def events(self, names: Collection[str] | None) -> Iterator[Event]:
        """Yield the events about objects of these names; None: all."""
        for line in self._lines(_EVENT, names):
            event = event_row(line, self.namespace)
            if event is not None:
                yield event

    def _lines(self, pattern: re.Pattern[str], names: Collection[str] | None) -> Iterator[str]:
        for line in self.text.split("\n"):
            if names is None or ((found := pattern.match(line)) is not None and found["name"] in names):
                yield cleaned(line).text


class QuietRows:
    """Takes rows and descriptions, and counts them."""

    def __init__(self) -> None:
        self.pods: set[tuple[str, str]] = set()
        """By namespace and name."""
        self.described: set[str] = set()
        """Names of pods and nodes whose descriptions are kept."""
        self.nodes_described: set[str] = set()
        self.nodes: set[str] = set()
        self.pods_beyond = self.events = 0
        self.restarted: set[str] = set()
        """Names of pods that one row shows to have ended well, and a later one to run: that one tells something."""
        self.completed: set[str] = set()
        """Names of pods that ended well."""
        self._has_done = False
        self.left_out: Counter[Told] = Counter()
        """What rows would have told that were counted alone."""
        self._of_events: dict[str, int] = {}
        self._room = _MOST_CHARACTERS

    def __len__(self) -> int:
        """Return how many pods, nodes and events there are."""
        return len(self.pods) + self.pods_beyond + len(self.nodes_described) + self.events

    @property
    def has_ended(self) -> bool:
        """Whether a container ended, and ended well."""
        return self._has_done or bool(self.completed)

    @property
    def characters(self) -> int:
        """How long everything is that is kept."""
        return _MOST_CHARACTERS - self._room

    def take_pods(
        self,
        lines: Sequence[str],
        place: int,
        namespace: str,
        told: Collection[str],
        *,
        is_full: bool,
    ) -> tuple[Rows | None, int]:
        """Take the rows of pods at a line; return those to keep, and where the text goes on.

        ``told`` are names about which something was told; ``is_full``: so much that the rest is counted alone.
        """
        kept, match, is_telling = list[str](), _POD.match, _STATUS.match
        while place < len(lines) and (found := match(lines[place])) is not None:
            own, name, status, node = found.group("namespace", "name", "status", "node")
            is_quiet = status == "Running" or not is_telling(status)
            if not is_quiet and (not is_full or name in told):
                break
            if is_quiet:
                self._add(own or namespace, name, node)
                if status.endswith(_COMPLETED):
                    self.completed.add(name)
                elif name in self.completed:
                    self.restarted.add(name)
                if self._room > 0 or name in told:
                    kept.append(lines[place])
            else:
                self.left_out[_told_by(status.removeprefix("Init:"))] += 1
            place += 1
        return self._rows(kept, namespace), place

    def take_events(
        self, lines: Sequence[str], place: int, namespace: str, told: Collection[str]
    ) -> tuple[Rows | None, int]:
        """Take the rows of events at a line, likewise."""
        kept, match, start = list[str](), _EVENT.match, place
        while place < len(lines) and (found := match(lines[place])) is not None:
            reason, name = found.group("reason", "name")
            if reason in TELLING_REASONS or "kubectl" in lines[place]:
                break
            if self._room > 0 or name in told:
                kept.append(lines[place])
                self._of_events[name] = self._of_events.get(name, 0) + 1
            place += 1
        self.events += place - start
        return self._rows(kept, namespace), place

    def take_description(self, described: Description, told: Collection[str]) -> bool:
        """Take a description, and return whether to keep it."""
        name = described.name
        if described.namespace:
            self._add(described.namespace, name, described.node)
        else:
            self.nodes_described.add(name)
        self._has_done = self._has_done or described.has_ended
        self.events += described.events
        is_kept = self._room > 0 or name in told
        if is_kept:
            self._room -= len(described.text)
            self.described.add(name)
            if described.events:
                self._of_events[name] = self._of_events.get(name, 0) + described.events
        return is_kept

    def _add(self, namespace: str, name: str, node: str | None) -> None:
        """Count a pod."""
        if len(self.pods) < MOST_NAMES:
            self.pods.add((namespace, name))
        elif (namespace, name) not in self.pods:
            self.pods_beyond += 1
        if node and node != "<none>" and len(self.nodes) < MOST_NAMES:
            self.nodes.add(node)

    def _rows(self, lines: list[str], namespace: str) -> Rows | None:
        if not lines:
            return None
        rows = Rows("\n".join(lines), namespace)
        self._room -= len(rows.text)
        return rows

    def has_pods_of(self, names: Collection[str]) -> bool:
        """Whether a pod has one of these names."""
        return any(name in names for _, name in self.pods)

    def has_events_of(self, names: Collection[str]) -> bool:
        """Whether an event is about an object of one of these names."""
        return any(name in names for name in self._of_events)

    def events_without(self, names: Collection[str]) -> int:
        """Return how many events are about objects of other names."""
        return self.events - sum(times for name, times in self._of_events.items() if name in names)


def count_pods(pods: Iterable[tuple[str, str]], names: Collection[str]) -> int:
    """Return how many pods have none of these names; one without a namespace is the only one of its name."""
    left = [own for own in pods if own[1] not in names]
    bare = {name for namespace, name in left if not namespace}
    spaces: dict[str, int] = {}
    for namespace, name in left if len(bare) < len(left) else ():
        if namespace and name in bare:
            spaces[name] = spaces.get(name, 0) + 1
    return len(left) - sum(count == 1 for count in spaces.values())
