"""A paste as a whole: which part of it is what, and all parts put together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress

from msgspec.structs import replace

from podqos.errors import InvalidQuantity
from podqos.model.event import Event, ObjectReference
from podqos.model.node import Node, NodeStatus
from podqos.model.pod import ObjectMeta, PodSpec
from podqos.model.pod_fate import FullPodStatus, PodCondition
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.objects.kubectl_text.describe_node import CONDITION_ROW, NodeDescription
from podqos.objects.kubectl_text.describe_pod import KEY, Place, PodDescription
from podqos.objects.kubectl_text.embedded import incomplete_pods
from podqos.objects.kubectl_text.fragments import bare_message, terminated_fragment
from podqos.objects.kubectl_text.json_parts import json_part, json_within
from podqos.objects.kubectl_text.lines import Line, Lines
from podqos.objects.kubectl_text.messages import rejoined
from podqos.objects.kubectl_text.pasted import NOTHING, Pasted, PastedPod, joined
from podqos.objects.kubectl_text.quiet_descriptions import Description
from podqos.objects.kubectl_text.quiet_rows import QuietRows, Rows
from podqos.objects.kubectl_text.quoting import named_in
from podqos.objects.kubectl_text.tables import (
    FAILED_BY,
    PHASES,
    described_event,
    event_row,
    node_row,
    pod_row,
)

MOST_OBJECTS = 100_000
MOST_TOLD = 10_000
"""Pods of which something is told. Rows of tables beyond are counted."""
_OBJECT_NAME = re.compile(r"Name:\s+([A-Za-z0-9<*\[{_][A-Za-z0-9.<>*\[\]{}_-]{0,252})$")
_NODE_STATUS = re.compile(r"Node ([a-z0-9][a-z0-9.-]{0,252}) status is now: ")
_DRAINING = re.compile(r"evicting pod ([a-z0-9][a-z0-9-]{0,62})/([a-z0-9][a-z0-9.-]{0,252})$")
_DRAINED = re.compile(r"pod/([a-z0-9][a-z0-9.-]{0,252}) evicted$")
_AFTER_NAME = ("Namespace:", "Roles:", "Role:", "Priority:", "Labels:", "Selector:")
_OF_PARTS = ("Node:", "Status:", "Reason:", "State:", "Last State:", "Exit Code:", "Restart Count:", "QoS Class:")
"""What follows a name where someone kept only some of the lines."""
_LOOK_AHEAD = 60
_LOW = "The node was low on "
_MOST_BROKEN = 12
"""Lines into which a row may be broken."""
_OBJECTS = ("apiVersion:", "kind:", "metadata:", "items:", "status:")
_MOST_TRIED = 50
"""Texts that begin like JSON and may be none."""
# A description whose beginning is missing begins with one of these.
_BEGINNINGS = frozenset(
    (
        *("Namespace", "Node", "Status", "Reason", "Init Containers", "Containers", "Ephemeral Containers"),
        *("State", "Last State"),
        *("QoS Class", "Events"),
    )
)
_NODE_BEGINNINGS = frozenset(("Capacity", "Allocatable", "Non-terminated Pods", "Allocated resources", "Unschedulable"))
_STATES = ("Terminated", "Waiting", "Running")
_RULE = re.compile(r"[-\s]{4,}$")
_OF_KILLERS = (" Killed ", "\nKilled ", " killed ", " Killing ", "oomd", "earlyoom")


def read_text(text: str) -> Pasted:
    """Return what kubectl printed in a text; everything else in it is left out."""
    reader = TextReader()
    reader.feed(text)
    reader.end()
    return reader.pasted(None)


class TextReader:
    """Goes through the lines of a paste once, part by part."""

    def __init__(self) -> None:
        self._lines = Lines("")
        self._nodes: list[Node] = []
        self._quiet_nodes: list[Description] = []
        self.quiet = QuietRows()
        """Rows of tables that tell nothing by themselves."""
        self._pods: list[PastedPod | Rows | Description] = []
        self._pods_told = 0
        self._events: list[Event | Rows] = []
        self._messages: list[str] = []
        self._told: set[str] = set()
        """The names of pods, and of what other events are about."""
        self._pod: PodDescription | None = None
        self._node: NodeDescription | None = None
        self._namespace = self._named = self._named_node = ""
        """What the command names."""
        self._drained: dict[str, str] = {}
        """The namespaces of pods that are evicted at someone's request."""
        self._of_pod: list[Event] = []
        self._own_lines: list[str] = []
        """Lines of the description that speak of an OOM."""
        self._inside: set[str] = set()
        """The same of all that are whole: what is in them besides states was written by programs."""
        self._tried = 0
        self.tells_of_kills = False
        """Whether a program that kills may say so in it."""

    def feed(self, text: str) -> None:
        """Take whole lines; where a text has parts, they are cut between rows of a table or before a description."""
        self.tells_of_kills = self.tells_of_kills or any(word in text for word in _OF_KILLERS)
        self._lines = Lines(text)
        place = 0
        while place < len(self._lines):
            place = self._pass_over(place) or self._read(place)

    def take_description(self, described: Description) -> None:
        """Take a description that tells nothing by itself; its lines are not fed."""
        self._end()
        if self.quiet.take_description(described, self._told):
            if described.namespace:
                self._pods.append(described)
            else:
                self._quiet_nodes.append(described)

    def end(self) -> None:
        """Know that a text has no more parts."""
        self._end()

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes so far; of those that tell nothing, how large they are."""
        yield from self._nodes
        for described in self._quiet_nodes:
            with suppress(InvalidQuantity):
                size = {MEMORY: Quantity.parse(described.memory)}
                yield Node(ObjectMeta(name=described.name), status=NodeStatus(size))

    @property
    def told(self) -> int:
        """How much was found: pods, nodes, events and messages."""
        return len(self._pods) + len(self._nodes) + len(self._events) + len(self._messages) + len(self.quiet)

    @property
    def is_empty(self) -> bool:
        """Whether kubectl printed nothing in it."""
        return not self.told

    @property
    def names(self) -> set[str]:
        """The names about which something is told."""
        return set(self._told)

    def pasted(self, names: Collection[str] | None) -> Pasted:
        """Return all; of rows that tell nothing by themselves only those about these names, unless there are none."""
        has_pods = names is None or self.quiet.has_pods_of(names)
        has_events = names is None or self.quiet.has_events_of(names)
        pods: list[PastedPod] = []
        events: list[Event] = []
        nodes = list(self._nodes)
        for item in (*self._quiet_nodes, *self._pods):
            if isinstance(item, PastedPod):
                pods.append(item)
            elif isinstance(item, Rows):
                pods += item.pods(names) if has_pods else ()
            elif names is None or item.name in names:
                reader = TextReader()
                reader.feed(item.text)
                reader.end()
                described = reader.pasted(None)
                pods += described.pods
                nodes += described.nodes
                events += described.events
        for event in self._events:
            if not isinstance(event, Rows):
                events.append(event)
            elif has_events:
                events += event.events(names)
        own = Pasted(tuple(pods), tuple(nodes), tuple(events), tuple(self._messages))
        return joined([own])

    @property
    def telling(self) -> tuple[list[PastedPod], list[Event]]:
        """The pods and events that are not quiet."""
        pods = [pod for pod in self._pods if isinstance(pod, PastedPod)]
        return pods, [event for event in self._events if isinstance(event, Event)]

    def _pass_over(self, place: int) -> int:
        """Take rows that tell nothing, and return where the text goes on; 0: there are none here."""
        if self._pod is not None or self._node is not None:
            return 0
        raw, quiet, namespace = self._lines.raw, self.quiet, self._namespace
        kept: list[PastedPod | Rows | Description] | list[Event | Rows] = self._pods
        is_full = self._pods_told >= MOST_TOLD
        rows, after = quiet.take_pods(raw, place, namespace, self._told, is_full=is_full)
        if after == place:
            kept = self._events
            rows, after = quiet.take_events(raw, place, namespace, self._told)
        if after == place:
            return 0
        self._end_descriptions()
        if rows is not None:
            kept.append(rows)
        return after

    def _read(self, place: int) -> int:
        """Read a line, or several that belong together, and return where the text goes on."""
        is_outside = self._pod is None and self._node is None
        if is_outside and not self._lines.may_tell(place):
            return place + 1
        line = self._lines[place]
        if line.is_break:
            self._end()
            self._namespace, self._named, self._named_node = line.namespace or "", line.pod, line.node
            return place + 1
        if not line.text:
            return place + 1
        following = self._following(place) if ":" in line.text else ""
        if self._begins(line, following, place):
            return place + 1
        if self._described(line, following):
            return place + 1
        text, after = self._continued(line.text, place)
        if self._row(text):
            return after
        if self._node is None and (self._pod is None or not self._pod.is_pod):
            if line.text[0] in "[{" and self._tried < _MOST_TRIED:
                self._tried += 1
                part, after = json_part(self._lines, place)
                if after > place:
                    self._take(part)
                    return after
            if line.text.startswith(_OBJECTS) and self._tried < _MOST_TRIED:
                self._tried += 1
                part, after = incomplete_pods(self._lines, place)
                if after > place:
                    self._take(part)
                    return after
            if '"terminated"' in line.text and self._tried < _MOST_TRIED:
                self._tried += 1
                part = json_within(line.text)
                if part is not NOTHING:
                    self._take(part)
                    return place + 1
            pod, after = terminated_fragment(self._lines, place)
            if pod is not None:
                metadata = replace(pod.metadata, name=self._named, namespace=self._namespace if self._named else "")
                self._add_pod(replace(pod, metadata=metadata))
                return after
            message, after = bare_message(self._lines, place)
            if message and self._named:
                about = ObjectReference("Pod", self._namespace, self._named)
                self._add_event(Event(reason="Evicted", message=message, involved_object=about))
                return after
            if message:
                self._messages.append(message)
                return after
        return place + 1

    def _continued(self, text: str, place: int) -> tuple[str, int]:
        """Return a row whose message a terminal has broken into lines as a whole, and where the text goes on."""
        before, found, _ = text.partition(_LOW)
        after = place + 1
        if not (found and before.strip() and event_row(text, self._namespace)) or text.endswith("."):
            return text, after
        parts = [text.removeprefix(before)]
        while after < len(self._lines) and len(parts) < _MOST_BROKEN and not parts[-1].endswith("."):
            line = self._lines[after]
            if not line.text or line.is_break or event_row(line.text) or pod_row(line.text):
                break
            parts.append(line.text)
            after += 1
        return before + rejoined(parts), after

    def _following(self, place: int) -> str:
        for after in range(place + 1, min(place + 4, len(self._lines))):
            if text := self._lines[after].text:
                return text
        return ""

    def _begins(self, line: Line, following: str, place: int) -> bool:
        """Begin a description, and say whether this line begins one."""
        key = KEY.match(line.text)
        if key is None:
            return False
        named = _OBJECT_NAME.match(line.text)
        is_next = self._pod is not None and line.indent == self._pod.place.indent and following.startswith(_OF_PARTS)
        if named is not None and (is_next or following.startswith(_AFTER_NAME)):
            self._end()
            if following.startswith("Role"):
                self._node = NodeDescription(named[1])
            else:
                self._pod = PodDescription(named[1], self._place(line, place), self._namespace)
            return True
        if named is not None and self._pod is None and self._node is None:
            # The next lines are missing.
            self._pod = PodDescription(named[1], self._place(line, place), self._namespace)
            return True
        if self._pod is not None or self._node is not None:
            return False
        if key[1] in _NODE_BEGINNINGS or (key[1] == "Conditions" and "LastHeartbeatTime" in following):
            self._node = NodeDescription(self._named_node)
            self._node.feed(line)
            return True
        if key[1] not in _BEGINNINGS:
            return False
        word = (key[2] or "").partition(" ")[0]
        is_state = key[1] in {"State", "Last State"}
        known = _STATES if is_state else PHASES if key[1] == "Status" else FAILED_BY if key[1] == "Reason" else {word}
        if word not in known:
            return False
        where = self._place(line, place)
        # Indented as a container's fields are, it is below the sections.
        self._pod = PodDescription(self._named, Place(0, where.is_flat) if is_state else where, self._namespace)
        self._pod.feed(line, following)
        return True

    def _place(self, line: Line, place: int) -> Place:
        ahead = [other.indent for other in self._lines[place + 1 : place + _LOOK_AHEAD] if other.text]
        return Place(line.indent, is_flat=all(indent <= line.indent for indent in ahead))

    def _described(self, line: Line, following: str) -> bool:
        """Give a line to the description it is in, and say whether there is one that took it."""
        if self._node is not None:
            if self._node.is_in_events:
                if not self._node.name and (named := _NODE_STATUS.search(line.text)):
                    self._node.name = named[1]
                if self._take_event(line, ObjectReference("Node", "", self._node.name)):
                    return True
            self._node.feed(line)
            return self._is_row_of_other(line)
        if self._pod is not None:
            if self._pod.is_in_events and self._take_event(line, ObjectReference("Pod")):
                return True
            if "OOM" in line.text:
                self._own_lines.append(line.text)
            self._pod.feed(line, following)
            return self._pod.is_pod and self._is_row_of_other(line)
        return False

    def _is_row_of_other(self, line: Line) -> bool:
        """Whether a line cannot be a row of another table: inside a description none begins without a break."""
        inside = self._pod or self._node
        return inside is None or not inside.is_in_events or line.indent > 0 or _RULE.match(line.text) is not None

    def _take_event(self, line: Line, about: ObjectReference) -> bool:
        event = described_event(line.text, about)
        if event is None:
            return False
        if about.kind != "Pod":
            self._add_event(event)
        elif len(self._events) + len(self._of_pod) < MOST_OBJECTS:
            self._of_pod.append(event)
        return True

    def _row(self, text: str) -> bool:
        """Read a row of a table, and say whether it is one."""
        node = node_row(text) if " v1." in text else None
        if node is not None:
            self._end_descriptions()
            self._nodes.append(node)
            return True
        pod = pod_row(text, self._namespace)
        if pod is not None:
            self._end_descriptions()
            self._add_pod(pod)
            return True
        event = event_row(text, self._namespace)
        if event is not None:
            self._end_descriptions()
            self._add_event(event)
            return True
        described = described_event(text, ObjectReference("Pod"))
        if described is not None:
            # The end of a description: of what is not in the text.
            self._of_pod.append(described)
            return True
        if self._drained_row(text):
            return True
        if CONDITION_ROW.match(text):
            self._node = NodeDescription(self._named_node)
            self._node.feed(Line("Conditions:"))
            self._node.feed(Line(text))
            return True
        return False

    def _drained_row(self, text: str) -> bool:
        """Read a row of what ``kubectl drain`` prints, and say whether it is one."""
        if begun := _DRAINING.match(text):
            self._drained[begun[2]] = begun[1]
        elif (done := _DRAINED.match(text)) and (self._drained or self._named_node):
            condition = PodCondition("DisruptionTarget", "True", reason="EvictionByEvictionAPI")
            metadata = ObjectMeta(name=done[1], namespace=self._drained.get(done[1], self._namespace))
            self._add_pod(
                PastedPod(metadata, PodSpec(node_name=self._named_node), FullPodStatus(conditions=(condition,)))
            )
        return bool(begun or done)

    def _take(self, part: Pasted) -> None:
        for pod in part.pods:
            is_named = self._named and len(part.pods) == 1 and not pod.metadata.name
            metadata = replace(pod.metadata, name=self._named, namespace=self._namespace) if is_named else pod.metadata
            self._add_pod(replace(pod, metadata=metadata))
        for event in part.events:
            self._add_event(event)

    def _add_pod(self, pod: PastedPod) -> None:
        if len(self._pods) < MOST_OBJECTS:
            self._pods.append(pod)
            self._pods_told += 1
            self._told.add(pod.metadata.name)

    def _add_event(self, event: Event) -> None:
        if len(self._events) < MOST_OBJECTS:
            self._events.append(event)
            self._told.add(event.about.name)

    def _end(self) -> None:
        self._end_descriptions()

    def _end_descriptions(self) -> None:
        about = ObjectReference("Pod", *named_in(self._of_pod)) if self._of_pod else ObjectReference("Pod")
        if self._pod is not None:
            if self._pod.is_pod:
                pod = self._pod.pod()
                self._inside.update(self._own_lines if pod.is_whole else ())
                if not pod.metadata.name and about.name:
                    pod = replace(pod, metadata=ObjectMeta(name=about.name, namespace=about.namespace))
                self._add_pod(pod)
                about = ObjectReference("Pod", pod.metadata.namespace, pod.metadata.name)
            elif self._pod.is_other:
                about = ObjectReference("Other", "", self._pod.name)
        elif self._named:
            about = ObjectReference("Pod", self._namespace, self._named)
        for event in self._of_pod:
            own = replace(about, field_path=event.about.field_path)
            if not about.name and (node := _NODE_STATUS.match(event.text)):
                own = ObjectReference("Node", "", node[1])
            self._add_event(replace(event, involved_object=own))
        self._of_pod, self._own_lines = [], []
        if self._node is not None:
            self._nodes.append(self._node.node())
        self._pod = self._node = None
