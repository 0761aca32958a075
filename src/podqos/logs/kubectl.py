"""What kubectl prints for people: descriptions of pods and nodes, and tables of pods, nodes and events.

A description is a tree by its indentation, so that what a program wrote into its arguments or its termination message
is below their keys and no field of the pod. Rows of tables are read by what is in them: headings may be missing, and
columns may have lost their alignment. A text has no uids unless an event quotes one, a table no namespace unless all
are listed, and ages are relative to an unknown moment: all of that stays unknown.

Sources: Kubernetes v1.36 pkg/printers/internalversion/printers.go (printPod, printNode, printEvent), kubectl
pkg/describe/describe.go (describePod, describeNode, DescribeEvents) and pkg/cmd/events/event_printer.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.errors import InvalidQuantity
from podqos.eviction.messages import read_message
from podqos.logs.said import PastedPod, Said
from podqos.model.event import Event, EventSource, ObjectReference
from podqos.model.node import Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint
from podqos.model.pod import Container, ObjectMeta, PodSpec, Probe, QOSClass, WhyIdle
from podqos.model.pod_fate import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    FullPodStatus,
    PodCondition,
)
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements

MOST_BYTES = 1 << 23
"""Of a text in which it is looked for."""
_MOST_CHARACTERS = 16_384
_MOST_OBJECTS = 100_000
_WORDS = (
    *("Last State:", "QoS Class:", "Restart Count:", "Non-terminated Pods:", "Allocated resources:", "LAST SEEN"),
    *("RESTARTS", "Normal ", "Warning ", "OOMKilled", "Evicted", "CrashLoopBackOff", "Roles:", "The node was low on "),
    *("ContainerStatusUnknown", "NodeShutdown", "Preempting", "OutOf", "Error ", "NotReady"),
)
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|[()][A-Z0-9])|[\u200b\ufeff\r]")
_QUOTED = re.compile(r"(?:> ?){1,9}")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9./_-]{0,80}(?:[ -][A-Za-z]{2,20}){0,3}):(?:\s+(\S.*))?$")
_NAME_KEY = re.compile(r"Name:\s+([A-Za-z0-9<*\[{_][A-Za-z0-9.<>*\[\]{}_-]{0,252})$")
_AFTER_NAME = ("Namespace:", "Roles:", "Role:", "Priority:", "Labels:", "Selector:")
_COMMAND = re.compile(
    r"(?:^|[$#%>❯]\s{1,4}|sudo )(?:kubectl|oc|k)\s{1,8}(?:-\S{1,80} ){0,4}(?:get|describe|events|top|logs)\b"
)
_NAMESPACE_OPTION = re.compile(r"\s(?:-n|--namespace)[= ]{1,2}([a-z0-9][a-z0-9-]{0,62})(?=\s|$)")

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,252})"
# In public, people replace parts of names: web-<id>, ***, XXX.
_ANY_NAME = r"(?:[A-Za-z0-9.*\[\]{}_-]|<[^<>\s]{1,40}>){1,253}"
_NAMESPACE = r"[a-z0-9](?:[a-z0-9-]{0,62})"
_AGE = r"(?:<unknown>|<invalid>|<none>|(?:\d{1,6}[ydhms]){1,3})"
_POD = re.compile(
    rf"(?:(?P<namespace>{_NAMESPACE})\s+)?(?:pod/)?(?P<name>{_ANY_NAME})\s+(?P<ready>\d{{1,4}})/(?P<all>\d{{1,4}})\s+"
    rf"(?P<status>[A-Z][A-Za-z0-9]{{1,60}}(?:[:/][A-Za-z0-9/]{{1,60}}){{0,2}})\s+"
    rf"(?P<restarts>\d{{1,9}})(?:\s+\({_AGE}\s+ago\))?\s+{_AGE}"
    rf"(?:\s+(?:<none>|[0-9a-f.:]{{3,45}})\s+(?P<node><none>|{_NAME})(?:\s|$))?"
)
_NODE = re.compile(
    rf"(?:node/)?(?P<name>{_NAME})\s+(?P<status>(?:Ready|NotReady|Unknown)(?:,SchedulingDisabled)?)\s+(?:\S{{1,253}}\s+)?"
    rf"{_AGE}\s+v\d{{1,3}}\.\d{{1,4}}\S{{0,80}}(?:\s|$)"
)
_TIMES = rf"{_AGE}(?:\s+\(x(?P<count>\d{{1,9}})\s+over\s+{_AGE}\))?"
_FROM = r"(?P<component>[A-Za-z][A-Za-z0-9./_-]{0,252})(?:,\s(?P<host>[a-z0-9][a-z0-9.-]{0,252}))?"
_REASON = r"(?P<type>Normal|Warning)\s+(?P<reason>[A-Z][A-Za-z0-9]{1,127})"
_OF_DESCRIPTION = re.compile(rf"{_REASON}\s+{_TIMES}\s+{_FROM}\s+(?P<message>\S.{{0,16000}})$")
_OF_GET = re.compile(
    rf"(?:(?P<namespace>{_NAMESPACE})\s+)?{_TIMES}\s+{_REASON}\s+"
    rf"(?P<kind>[A-Za-z.]{{1,63}})/(?P<name>{_ANY_NAME})\s+(?P<message>\S.{{0,16000}})$"
)
# With -o wide: what it is about inside the object, who saw it; and behind the message first seen, count and name.
_BEFORE = re.compile(
    rf"(?:(?P<field>spec\.[A-Za-z]{{1,40}}\{{[^}}\s]{{1,253}}\}})\s+)?{_FROM}\s{{2,}}(?P<message>\S.*)$"
)
_AFTER = re.compile(rf"\s{{1,80}}{_AGE}\s{{1,80}}(?P<count>\d{{1,9}})\s{{1,80}}{_NAME}\.[0-9a-f]{{12,18}}$")
_FIELD_PREFIX = re.compile(r"(spec\.[A-Za-z]{1,40}\{[^}\s]{1,253}\}):\s")
_OF_CONTAINER = re.compile(
    r"(?:Container|Stopping container|Created container:?|Started container|Back-off restarting failed container) "
    r"([a-z0-9][a-z0-9-]{0,62})(?= |$)"
)
_UNNAMED = ("failed", "is", "was", "in", "with")
_QUOTE = re.compile(
    r"in pod (?P<own>[a-z0-9][a-z0-9.-]{0,252})_(?P<in>[a-z0-9][a-z0-9-]{0,62})\((?P<uid>[0-9a-f-]{32,36})\)"
    r"|assigned (?P<namespace>[a-z0-9][a-z0-9-]{0,62})/(?P<name>[a-z0-9][a-z0-9.-]{0,252})"
    r" to (?P<node>[a-z0-9][a-z0-9.-]{0,252})"
)
"""What messages of events say about their pod: namespace, uid and node, which descriptions and tables lack."""
_FAILED_BY = frozenset(
    (
        *("Evicted", "Preempting", "Terminated", "Shutdown", "NodeShutdown", "NodeLost", "NodeAffinity"),
        *("DeadlineExceeded", "UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods"),
        "OutOfephemeral-storage",
    )
)
_ENDED_BY = frozenset(("OOMKilled", "ContainerStatusUnknown", "Error", "Completed", "ContainerCannotRun", "StartError"))
_PHASES = frozenset(("Pending", "Running", "Succeeded", "Failed", "Unknown"))
_FROM_LIMITS = frozenset(("Limits", "Requests", "Liveness", "Readiness", "Startup", "Environment", "Mounts"))
_DATE = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"
_CONDITION = re.compile(rf"([A-Z][A-Za-z]{{1,80}})\s+(True|False|Unknown)\s+{_DATE}\s+({_DATE})\s+([A-Za-z]\S{{0,80}})")
_TAINT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9./_-]{0,300})(?:=([A-Za-z0-9._-]{0,63}))?:(NoSchedule|PreferNoSchedule|NoExecute)$"
)
_OBJECT = re.compile(
    r"^(?:- )?(?:apiVersion|kind): ?[A-Za-z]|^\{\s*\"(?:apiVersion|kind|items|metadata)\"", re.MULTILINE
)
_OF_YAML = re.compile(r"(?:[ ]|- |[A-Za-z][\w.]*:(?:\s|$)|---|#|$)")


class _Field(Struct):
    """A line of a description, and those below it."""

    key: str
    value: str
    indent: int
    text: str
    below: list[_Field] = field(default_factory=list)

    def get(self, key: str) -> str:
        """Return the value of a field below."""
        return next((each.value for each in self.below if each.key == key), "")

    def part(self, key: str) -> list[_Field]:
        """Return what is below a field below."""
        return next((each.below for each in self.below if each.key == key), [])


def may_be(head: bytes) -> bool:
    """Whether a text is worth looking for what kubectl prints: a short one always, a log by the words of headings."""
    return len(head) < 1 << 20 or any(
        word in head for word in (b"LAST SEEN", b"RESTARTS", b"QoS Class:", b"Kubelet Version:")
    )


def add_text(said: Said, text: str) -> None:
    """Add what kubectl printed in a text to what is said; everything else in it is left out."""
    if not any(word in text for word in _WORDS):
        return
    reader = _Reader()
    lines = [_ESCAPE.sub("", line[:_MOST_CHARACTERS]).replace("\xa0", " ").expandtabs() for line in text.split("\n")]
    reader.read([_QUOTED.sub("", line) for line in lines])
    said.messages += reader.messages
    pods = _joined([*said.pods, *reader.pods])
    quoted = _quoted(reader.events)
    said.pods[:] = [_completed(pod, quoted.get(pod.metadata.name)) for pod in pods]
    namespaces = _namespaces(said.pods)
    known = {node.name: node for node in said.nodes}
    for node in reader.nodes:
        if node.name not in known or not known[node.name].status.capacity:
            known[node.name] = node
    said.nodes[:] = known.values()
    said.events += [_placed(event, namespaces) for event in reader.events]


class _Reader:
    """Goes through the lines of a text once."""

    def __init__(self) -> None:
        self.pods: list[PastedPod] = []
        self.nodes: list[Node] = []
        self.events: list[Event] = []
        self.messages: list[str] = []
        self._namespace = ""
        """What the last command names."""

    def read(self, lines: Sequence[str]) -> None:
        """Read lines."""
        place = 0
        while place < len(lines):
            text = lines[place].strip()
            place += 1
            if not text:
                continue
            if "Name:" in text and (named := _NAME_KEY.match(text)):
                following = next((line.strip() for line in lines[place : place + 3] if line.strip()), "")
                if following.startswith(_AFTER_NAME):
                    place = self._describe(named[1], lines, place - 1)
                    continue
            if text.startswith(("```", "~~~")):
                self._namespace = ""
            elif _COMMAND.search(text[:200]):
                named = _NAMESPACE_OPTION.search(text)
                self._namespace = "" if named is None else named[1]
            else:
                self._row(text)

    def _describe(self, name: str, lines: Sequence[str], start: int) -> int:
        """Read the description that begins at a line, and return where the text goes on."""
        indent = len(lines[start]) - len(lines[start].lstrip())
        root = _Field("", name, -1, "")
        above = [root]
        place = start
        for place in range(start, len(lines)):
            line = lines[place]
            text = line.strip()
            if not text:
                continue
            depth = len(line) - len(line.lstrip()) - indent
            is_field = (found := _KEY.match(text)) is not None
            if depth == 0 and not is_field and root.below and root.below[-1].key == "Events":
                depth = 1  # the paste has lost its indentation
            is_over = depth < 0 or (depth == 0 and not is_field and place > start)
            if is_over or (place > start and depth == 0 and text.startswith("Name:")):
                break
            while above[-1].indent >= depth:
                above.pop()
            key, value = (found[1], found[2] or "") if found is not None else ("", "")
            each = _Field(key, value.strip(), depth, text)
            above[-1].below.append(each)
            above.append(each)
        else:
            place = len(lines)
        kind = self._add_described(name, root)
        about = ObjectReference(kind, root.get("Namespace") or self._namespace if kind == "Pod" else "", name)
        self.events += [event for row in root.part("Events") if (event := _described_event(row.text, about))]
        return place

    def _add_described(self, name: str, root: _Field) -> str:
        keys = {each.key for each in root.below}
        if keys & {"Roles", "Role", "Allocatable"} and "Containers" not in keys:
            self.nodes.append(_node(name, root))
            return "Node"
        if "Selector" in keys or "Pod Template" in keys or not keys & {"Containers", "Node", "Status", "QoS Class"}:
            return "Other"
        self.pods.append(_pod(name, root, self._namespace))
        return "Pod"

    def _row(self, text: str) -> None:
        """Read a row of a table, if it is one."""
        if "Normal" in text or "Warning" in text:
            event = _event_row(text, self._namespace) or _described_event(text, ObjectReference("Pod"))
            if event is not None and len(self.events) < _MOST_OBJECTS:
                self.events.append(event)
                return
        if "/" in text and (found := _POD.match(text)) and len(self.pods) < _MOST_OBJECTS:
            metadata = ObjectMeta(name=found["name"], namespace=found["namespace"] or self._namespace)
            node = found["node"] or ""
            self.pods.append(
                _tabled_pod(
                    metadata,
                    found["status"],
                    "" if node == "<none>" else node,
                    int(found["restarts"]),
                    int(found["all"]),
                )
            )
        elif " v" in text and (found := _NODE.match(text)):
            ready, _, disabled = found["status"].partition(",")
            status = {"Ready": "True", "NotReady": "False"}.get(ready, "Unknown")
            conditions = (NodeCondition("Ready", status),)
            spec = NodeSpec(unschedulable=bool(disabled))
            self.nodes.append(Node(ObjectMeta(name=found["name"]), spec, NodeStatus(conditions=conditions)))
        elif text.startswith(("The node was low on ", "Message:")):
            message = text.removeprefix("Message:").strip()
            if read_message(message) is not None:
                self.messages.append(message)


def _pod(name: str, root: _Field, namespace: str) -> PastedPod:
    """Return the pod of a description."""
    kinds = {
        kind: [_container(each) for each in root.part(section) if each.key and not each.value]
        for kind, section in (("init", "Init Containers"), ("main", "Containers"), ("own", "Ephemeral Containers"))
    }
    status_text, reason = root.get("Status").partition(" ")[0], root.get("Reason")
    is_terminating = status_text == "Terminating"
    qos_class = root.get("QoS Class")
    node = root.get("Node").partition("/")[0]
    message = next((each for each in root.below if each.key == "Message"), None)
    conditions = [each.text.split() for each in root.part("Conditions")]
    status = FullPodStatus(
        phase="" if is_terminating else status_text or ("Failed" if reason in _FAILED_BY else ""),
        qos_class=QOSClass(qos_class) if qos_class in {*QOSClass} else None,
        start_time=_iso_time(root.get("Start Time")),
        reason=reason,
        message="" if message is None else " ".join([message.value, *(each.text for each in message.below)]),
        conditions=tuple(
            PodCondition(words[0], words[1]) for words in conditions if len(words) == 2 and words[1] in _TRUTHS
        ),
        container_statuses=tuple(status for _, status in kinds["main"]),
        init_container_statuses=tuple(status for _, status in kinds["init"]),
        ephemeral_container_statuses=tuple(status for _, status in kinds["own"]),
    )
    spec = PodSpec(
        containers=tuple(spec for spec, _ in kinds["main"] if spec is not None),
        init_containers=tuple(spec for spec, _ in kinds["init"] if spec is not None),
        priority=_number(root.get("Priority")),
        priority_class_name=root.get("Priority Class Name"),
        node_name="" if node == "<none>" else node,
    )
    return PastedPod(
        ObjectMeta(name=name, namespace=root.get("Namespace") or namespace),
        spec,
        status,
        is_whole=bool(kinds["main"] and qos_class and not root.part("Resources")),
        is_terminating=is_terminating,
    )


_TRUTHS = {"True", "False", "Unknown"}


def _container(own: _Field) -> tuple[Container | None, ContainerStatus]:
    """Return a container of a description, None where that ends before its limits, and its status."""
    keys = {each.key for each in own.below}
    resources = ResourceRequirements(_amounts(own.part("Requests")), _amounts(own.part("Limits")))
    spec = Container(
        name=own.key,
        resources=resources,
        liveness_probe=Probe() if "Liveness" in keys else None,
        startup_probe=Probe() if "Startup" in keys else None,
    )
    is_known = not keys.isdisjoint(_FROM_LIMITS)
    identity = own.get("Container ID")
    state = _state(next((each for each in own.below if each.key == "State"), None), identity)
    # While it waits to be started again, the id is that of the one that ended.
    last_id = identity if state is not None and state.waiting is not None else ""
    last_state = _state(next((each for each in own.below if each.key == "Last State"), None), last_id)
    restarts = _number(own.get("Restart Count")) or 0
    return spec if is_known else None, ContainerStatus(
        name=own.key, container_id=identity, restart_count=max(0, restarts), state=state, last_state=last_state
    )


def _state(told: _Field | None, identity: str) -> ContainerState | None:
    match "" if told is None else told.value.partition(" ")[0]:
        case "Running" if told is not None:
            return ContainerState(running=ContainerRunning(_iso_time(told.get("Started")) or None))
        case "Waiting" if told is not None:
            return ContainerState(waiting=WhyIdle(told.get("Reason")))
        case "Terminated" if told is not None:
            terminated = ContainerTerminated(
                reason=told.get("Reason"),
                exit_code=_number(told.get("Exit Code")),
                signal=_number(told.get("Signal")) or 0,
                started_at=_iso_time(told.get("Started")) or None,
                finished_at=_iso_time(told.get("Finished")) or None,
                container_id=identity,
            )
            return ContainerState(terminated=terminated)
        case _:
            return None


def _amounts(fields: Iterable[_Field]) -> dict[str, Quantity]:
    amounts = {}
    for each in fields:
        if each.key and each.value:
            try:
                amounts[each.key] = Quantity.parse(each.value)
            except InvalidQuantity:
                continue  # cut, or something else
    return amounts


def _node(name: str, root: _Field) -> Node:
    """Return the node of a description. Its pods have no priority there."""
    taints = [root.get("Taints"), *(each.text for each in root.part("Taints"))]
    found = [taint for text in taints if (taint := _TAINT.match(text))]
    conditions = [row for each in root.part("Conditions") if (row := _CONDITION.match(each.text))]
    version = next((each.value for each in root.part("System Info") if each.key == "Kubelet Version"), "")
    status = NodeStatus(
        _amounts(root.part("Capacity")),
        _amounts(root.part("Allocatable")),
        tuple(NodeCondition(row[1], row[2], _iso_time(row[3]) or None) for row in conditions),
        node_info=NodeSystemInfo(version[:60]),
    )
    spec = NodeSpec(
        tuple(Taint(each[1], each[2] or "", each[3]) for each in found), root.get("Unschedulable") == "true"
    )
    return Node(ObjectMeta(name=name), spec, status)


def _tabled_pod(metadata: ObjectMeta, shown: str, node: str, restarts: int, containers: int) -> PastedPod:
    """Return a pod from the STATUS that a table shows, which stands for the pod, or for one of its containers."""
    word = shown.removeprefix("Init:")
    status = FullPodStatus(phase=word if word in _PHASES else "")
    state = None
    if word in _FAILED_BY:
        status = FullPodStatus(phase="Failed", reason=word)
    elif word in _ENDED_BY:
        state = ContainerState(terminated=ContainerTerminated(word, 0 if word == "Completed" else None))
    elif word.startswith("ExitCode:"):
        state = ContainerState(terminated=ContainerTerminated(exit_code=_number(word.removeprefix("ExitCode:"))))
    elif word.startswith("Signal:"):
        signal = _number(word.removeprefix("Signal:")) or 0
        state = ContainerState(terminated=ContainerTerminated(exit_code=None, signal=signal))
    elif word == "CrashLoopBackOff":
        state = ContainerState(waiting=WhyIdle(word))
    elif word == "Running" and containers == 1:
        state = ContainerState(running=ContainerRunning())
    if state is not None:
        # Which of several it is, and how often that one restarted, a row does not say.
        statuses = (ContainerStatus(restart_count=restarts if containers == 1 else 0, state=state),)
        is_init = shown != word
        status = (
            FullPodStatus(phase="Pending", init_container_statuses=statuses)
            if is_init
            else FullPodStatus(phase=status.phase, container_statuses=statuses)
        )
    return PastedPod(metadata, PodSpec(node_name=node), status, is_terminating=word == "Terminating")


def _event_row(text: str, namespace: str) -> Event | None:
    """Return the event of a row of ``kubectl get events`` or ``kubectl events``; None: it is something else."""
    found = _OF_GET.match(text)
    if found is None:
        return None
    message, own, host, count = found["message"], "", "", found["count"]
    if after := _AFTER.search(message):
        message, count = message[: after.start()], after["count"]
        if before := _BEFORE.match(message):
            message, own, host = before["message"], before["field"] or "", before["host"] or ""
    about = ObjectReference(found["kind"].capitalize(), found["namespace"] or namespace, found["name"], field_path=own)
    return _event(found, about, message, host, count)


def _described_event(text: str, about: ObjectReference) -> Event | None:
    """Return the event of a row at the end of a description; None: it is something else."""
    found = _OF_DESCRIPTION.match(text)
    if found is None:
        return None
    message, own = found["message"], ""
    if prefix := _FIELD_PREFIX.match(message):
        own, message = prefix[1], message[prefix.end() :]
    of = ObjectReference(about.kind, about.namespace, about.name, field_path=own)
    return _event(found, of, message, found["host"] or "", found["count"])


def _event(found: re.Match[str], about: ObjectReference, message: str, host: str, count: str | None) -> Event:
    named = _OF_CONTAINER.match(message)
    if not about.field_path and about.kind == "Pod" and named is not None and named[1] not in _UNNAMED:
        about = replace(about, field_path=f"spec.containers{{{named[1]}}}")
    return Event(
        type=found["type"],
        reason=found["reason"],
        message=message.strip(),
        involved_object=about,
        source=EventSource(found.groupdict().get("component") or "", host),
        count=int(count) if count else None,
    )


def _iso_time(text: str) -> str:
    """Return a time as the API writes it; one without a zone stays as it was printed."""
    try:
        time = datetime.strptime(text.strip()[:40], "%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        return text.strip()[:40]
    return time.isoformat() if time.year > 1 else ""  # Go's for none at all


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def _joined(pods: Iterable[PastedPod]) -> list[PastedPod]:
    """Return pods once each: one without a namespace is the one of its name, where there is only one."""
    pods = list(pods)
    namespaces = _namespaces(pods)
    kept: dict[object, PastedPod] = {}
    for number, pod in enumerate(pods):
        metadata = pod.metadata
        if not metadata.name or pod.is_from_runtime:
            kept[number] = pod
            continue
        namespace = metadata.namespace or namespaces.get(metadata.name, "")
        own = replace(pod, metadata=replace(metadata, namespace=namespace))
        key = namespace, metadata.name
        kept[key] = _merged(kept[key], own) if key in kept else own
    return list(kept.values())


def _merged(one: PastedPod, other: PastedPod) -> PastedPod:
    """Return what two texts tell of a pod: a description counts before a row, a later row before an earlier one."""
    first, second = (other, one) if other.is_whole or not one.is_whole else (one, other)
    spec = first.spec if first.spec.node_name else replace(first.spec, node_name=second.spec.node_name)
    if first.is_whole:
        return replace(first, spec=spec)
    status = first.status
    if second.status.phase == "Failed" and status.phase != "Failed":
        status = replace(status, phase="Failed", reason=second.status.reason, message=second.status.message)
    status = replace(
        status,
        container_statuses=_followed(second.status.container_statuses, status.container_statuses),
        init_container_statuses=_followed(second.status.init_container_statuses, status.init_container_statuses),
    )
    return replace(first, spec=spec, status=status)


def _followed(before: tuple[ContainerStatus, ...], after: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Return the later of two statuses of a table that is watched, with how the container ended before it."""
    if len(before) != 1 or len(after) != 1:
        return after or before
    states = (state for state in (before[0].state, before[0].last_state) if state is not None)
    ended = next((state for state in states if state.terminated is not None), None)
    now = after[0].state
    is_kept = ended is not None and after[0].last_state is None and (now is None or now.terminated is None)
    return (replace(after[0], last_state=ended),) if is_kept else after


def _namespaces(pods: Iterable[PastedPod]) -> dict[str, str]:
    """Return the namespace of each name that has only one."""
    named: dict[str, set[str]] = {}
    for pod in pods:
        if pod.metadata.namespace:
            named.setdefault(pod.metadata.name, set()).add(pod.metadata.namespace)
    return {name: next(iter(own)) for name, own in named.items() if len(own) == 1}


def _quoted(events: Iterable[Event]) -> dict[str, re.Match[str]]:
    found: dict[str, re.Match[str]] = {}
    for event in events:
        quote = _QUOTE.search(event.text[:2000]) if event.about.kind == "Pod" else None
        if quote is not None and event.about.name == (quote["name"] or quote["own"]):
            found.setdefault(event.about.name, quote)
    return found


def _completed(pod: PastedPod, quote: re.Match[str] | None) -> PastedPod:
    """Return a pod with what the kubelet and the scheduler write about it into events."""
    namespace = "" if quote is None else quote["namespace"] or quote["in"]
    if quote is None or pod.metadata.namespace not in {"", namespace}:
        return pod
    metadata = replace(pod.metadata, namespace=namespace, uid=quote["uid"] or pod.metadata.uid)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=pod.spec.node_name or quote["node"] or ""))


def _placed(event: Event, namespaces: dict[str, str]) -> Event:
    about = event.about
    if about.namespace or about.kind != "Pod" or about.name not in namespaces:
        return event
    return replace(event, involved_object=replace(about, namespace=namespaces[about.name]))


def without_objects(text: str) -> tuple[str, str]:
    """Return the objects in the midst of a text, as YAML or JSON, and the text without them."""
    objects: list[str] = []
    rest: list[str] = []
    position = 0
    while (begun := _OBJECT.search(text, position)) is not None:
        end = _end_of_json(text, begun.start()) if text[begun.start()] == "{" else _end_of_yaml(text, begun.start())
        rest.append(text[position : begun.start()])
        (objects if end > begun.end() else rest).append(text[begun.start() : max(end, begun.end())])
        position = max(end, begun.end())
    rest.append(text[position:])
    return "\n---\n".join(objects), "".join(rest)


def _end_of_json(text: str, start: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _end_of_yaml(text: str, start: int) -> int:
    """Return where the lines end that can be of YAML; 0 for what says not both what it is and of which version."""
    end = start
    for line in _lines_from(text, start):
        if not _OF_YAML.match(line) or line.startswith(("Name:", "Namespace:")):
            break
        end += len(line) + 1
    found = text[start:end]
    return min(end, len(text)) if "apiVersion:" in found and "kind:" in found else 0


def _lines_from(text: str, start: int) -> Iterator[str]:
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1
