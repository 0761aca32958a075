"""``kubectl describe pod``, line by line, also without its beginning or its end.

Fields are known by their names and by their indentation, where the paste has kept it: what a program wrote into its
arguments, its environment or its termination message is none.

Source: Kubernetes v1.36 kubectl pkg/describe/describe.go (describePod, describeContainers, describeStatus).
"""

from __future__ import annotations

import re

from msgspec import Struct

from podqos.errors import InvalidQuantity
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
from podqos.objects.kubectl_text.lines import Line, iso_time
from podqos.objects.kubectl_text.messages import rejoined
from podqos.objects.kubectl_text.pasted import PastedPod
from podqos.objects.kubectl_text.tables import ENDED_BY, FAILED_BY, PHASES

KEY = re.compile(r"([A-Z][A-Za-z]{1,30}(?:[ -][A-Za-z]{2,20}){0,3}):(?:\s+(\S.*))?$")
_QUANTITY = re.compile(r"([a-z0-9][A-Za-z0-9./_-]{0,80}):\s+([0-9][0-9A-Za-z.+-]{0,40})$")
_CONTAINER = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,62})):$")
_CONTAINERS = {"Init Containers": "init", "Containers": "main", "Ephemeral Containers": "ephemeral"}
_HEADER = frozenset(
    (
        *("Namespace", "Priority", "Priority Class Name", "Runtime Class Name", "Service Account", "Node"),
        *("Start Time", "Labels", "Annotations", "Status", "Termination Grace Period", "Reason", "Message"),
        *("SeccompProfile", "IP", "IPs", "Controlled By", "Created By", "NominatedNodeName", "Resources"),
    )
)
_AFTER = frozenset(
    (
        *("Readiness Gates", "Conditions", "Volumes", "QoS Class", "QoS Tier", "Node-Selectors", "Tolerations"),
        *("Topology Spread Constraints", "Events"),
    )
)
SECTIONS = _HEADER | _AFTER | _CONTAINERS.keys()
OF_CONTAINER = frozenset(
    (
        *("Container ID", "Image", "Image ID", "Port", "Ports", "Host Port", "Host Ports", "SeccompProfile"),
        *("Command", "Args", "State", "Last State", "Ready", "Restart Count", "Limits", "Requests", "Liveness"),
        *("Readiness", "Startup", "Environment", "Environment Variables from", "Mounts", "Devices"),
    )
)
_FROM_LIMITS = frozenset(("Limits", "Requests", "Liveness", "Readiness", "Startup", "Environment", "Mounts"))
_OLD_KEYS = {"Last Termination State": "Last State"}
_OF_STATE = frozenset(("Reason", "Message", "Exit Code", "Signal", "Started", "Finished"))
_BEGINS_CONTAINER = ("Container ID:", "Image:", "State:", "Last State:")
_MESSAGE = "message of "
_MOST_CONTAINERS = 200
_MOST_WRAPPED = 20
"""Lines into which a message may be broken."""
_NOT_OF_PODS = frozenset(("CreationTimestamp", "Selector", "Replicas", "Pod Template", "Roles"))


class _Container:
    """A container, as far as it is read."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.id = ""
        self.restarts = 0
        self.states: dict[str, dict[str, str]] = {}
        self.limits: dict[str, Quantity] = {}
        self.requests: dict[str, Quantity] = {}
        self.probes: set[str] = set()
        self.is_known = False
        """Whether the text goes as far as its limits."""

    def spec(self) -> Container:
        return Container(
            name=self.name,
            resources=ResourceRequirements(self.requests, self.limits),
            liveness_probe=Probe() if "Liveness" in self.probes else None,
            startup_probe=Probe() if "Startup" in self.probes else None,
        )

    def status(self) -> ContainerStatus:
        state = _state(self.states.get("State"), self.id)
        # While it waits to be started again, the id is that of the one that ended.
        last_id = self.id if state is not None and state.waiting is not None else ""
        return ContainerStatus(
            name=self.name,
            container_id=self.id,
            restart_count=self.restarts,
            state=state,
            last_state=_state(self.states.get("Last State"), last_id),
        )


def _state(fields: dict[str, str] | None, container_id: str) -> ContainerState | None:
    if fields is None:
        return None
    match fields.get(""):
        case "Running":
            return ContainerState(running=ContainerRunning(iso_time(fields.get("Started", "")) or None))
        case "Waiting":
            return ContainerState(waiting=WhyIdle(fields.get("Reason", "")))
        case "Terminated":
            terminated = ContainerTerminated(
                reason=fields.get("Reason", ""),
                exit_code=_number(fields.get("Exit Code", "")),
                signal=_number(fields.get("Signal", "")) or 0,
                started_at=iso_time(fields.get("Started", "")) or None,
                finished_at=iso_time(fields.get("Finished", "")) or None,
                container_id=container_id,
            )
            return ContainerState(terminated=terminated)
        case _:
            return None


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


class Place(Struct, frozen=True, gc=False):
    """Where a description is on the page."""

    indent: int = 0
    is_flat: bool = False
    """Whether the paste has lost all indentation."""


class PodDescription:
    """Takes the lines of a description, and gives the pod."""

    def __init__(self, name: str, place: Place, namespace: str = "") -> None:
        self.place = place
        self.name = name
        self._fields: dict[str, str] = {"Namespace": namespace} if namespace else {}
        self._conditions: list[PodCondition] = []
        self._containers: list[_Container] = []
        self._section = ""
        self._kind = "main"
        self._mode = ""
        self._key_indent: int | None = None
        self._wrapped = 0
        self._is_bare = True
        """Whether nothing but reasons, codes and times is left of the containers so far."""
        self.is_other = False
        """Whether it is of another kind: many begin alike."""

    @property
    def is_pod(self) -> bool:
        """Whether something in it says that it is a pod's."""
        fields = self._fields
        return not self.is_other and bool(
            self._containers
            or fields.keys() & {"Node", "Start Time", "Priority", "IP", "QoS Class"}
            or fields.get("Status", "").partition(" ")[0] in PHASES
            or fields.get("Reason") in FAILED_BY
        )

    @property
    def is_in_events(self) -> bool:
        """Whether rows of events are next."""
        return self._section == "Events"

    def feed(self, line: Line, following: str) -> None:
        """Take a line; ``following`` is the next one that is not empty."""
        found = KEY.match(line.text)
        key, value = (found[1], found[2] or "") if found is not None else ("", "")
        key = _OLD_KEYS.get(key, key)
        if self._is_top(line) and key in SECTIONS and not self._is_inside(key):
            self._begin(key, value)
        elif self._is_top(line) and key in _NOT_OF_PODS and self._section in _HEADER | {""} and not self._containers:
            self.is_other = True
        elif key == "Reason" and value in ENDED_BY and line.indent > self.place.indent and self._is_bare:
            self._containers.append(_Container("", self._kind))
            self._containers[-1].states["Last State"] = {"": "Terminated", "Reason": value}
            self._section, self._mode = "Containers", "Last State"
        elif self._section in _CONTAINERS or (self._section == "" and key in {"State", "Last State"}):
            self._is_bare &= self._mode == "Last State" and key in _OF_STATE
            self._of_container(line, key, value, following)
        elif self._section == "Message" and not key and line.text and self._wrapped < _MOST_WRAPPED:
            self._wrapped += 1
            self._fields["Message"] = rejoined([self._fields.get("Message", ""), line.text])
        elif self._section == "Conditions":
            self._condition(line.text)

    def _is_top(self, line: Line) -> bool:
        return self.place.is_flat or line.indent <= self.place.indent

    def _is_inside(self, key: str) -> bool:
        """Whether a field without indentation is one of a state: a pod has fields of the same names."""
        is_open = self._section in _CONTAINERS and self._mode.removeprefix(_MESSAGE) in {"State", "Last State"}
        if is_open and self.place.is_flat:
            return key in _OF_STATE
        return self.place.is_flat and self._section in _CONTAINERS and key in OF_CONTAINER

    def _begin(self, key: str, value: str) -> None:
        self._section, self._mode = key, ""
        if key in _CONTAINERS:
            self._kind, self._key_indent = _CONTAINERS[key], None
        elif key not in self._fields or key == "Namespace":
            self._fields[key] = value

    def _of_container(self, line: Line, key: str, value: str, following: str) -> None:
        text = line.text
        named = _CONTAINER.match(text)
        if (
            named is not None
            and following.startswith(_BEGINS_CONTAINER)
            and len(self._containers) < _MOST_CONTAINERS
            and (self.place.is_flat or self._key_indent is None or line.indent < self._key_indent)
        ):
            self._containers.append(_Container(named[1], self._kind))
            self._mode, self._key_indent = "", None
            return
        if not self._containers:
            if key not in {"State", "Last State", "Container ID", "Image"}:
                return
            # The beginning is missing, and with it the name.
            self._containers.append(_Container("", self._kind))
            self._section = "Containers"
        if self._key_indent is None and key in OF_CONTAINER and line.indent > 0:
            self._key_indent = line.indent
        at_key = self.place.is_flat or self._key_indent in {None, line.indent}
        if key in OF_CONTAINER and at_key and not self._mode.startswith(_MESSAGE):
            self._field(key, value)
        elif self._mode in {"State", "Last State"} and key in _OF_STATE:
            self._containers[-1].states[self._mode].setdefault(key, value)
            if key == "Message":
                self._mode = _MESSAGE + self._mode
        elif self._mode.startswith(_MESSAGE) and key == "Exit Code":
            self._mode = self._mode.removeprefix(_MESSAGE)
            self._containers[-1].states[self._mode].setdefault(key, value)
        elif self._mode in {"Limits", "Requests"} and (found := _QUANTITY.match(text)):
            container = self._containers[-1]
            amounts = container.limits if self._mode == "Limits" else container.requests
            try:
                amounts[found[1]] = Quantity.parse(found[2])
            except InvalidQuantity:
                return  # cut, or something else

    def _field(self, key: str, value: str) -> None:
        container = self._containers[-1]
        self._mode = key
        container.is_known = container.is_known or key in _FROM_LIMITS
        match key:
            case "State" | "Last State":
                container.states.setdefault(key, {"": value.split(maxsplit=1)[0] if value else ""})
            case "Container ID":
                container.id = value
            case "Restart Count":
                container.restarts = max(0, _number(value) or 0)
            case "Liveness" | "Startup":
                container.probes.add(key)
            case _:
                pass

    def _condition(self, text: str) -> None:
        words = text.split()
        if len(words) == 2 and words[1] in {"True", "False", "Unknown"} and len(self._conditions) < 100:
            self._conditions.append(PodCondition(words[0], words[1]))

    def pod(self) -> PastedPod:
        """Return the pod, as far as the lines tell of it."""
        fields = self._fields
        by_kind = {
            kind: [container for container in self._containers if container.kind == kind]
            for kind in _CONTAINERS.values()
        }
        phase = fields.get("Status", "").partition(" ")[0] or ("Failed" if fields.get("Reason") in FAILED_BY else "")
        is_terminating = phase == "Terminating"
        qos_class = fields.get("QoS Class") or fields.get("QoS Tier", "")
        node = fields.get("Node", "").partition("/")[0]
        status = FullPodStatus(
            phase="" if is_terminating else phase,
            qos_class=QOSClass(qos_class) if qos_class in {*QOSClass} else None,
            start_time=iso_time(fields.get("Start Time", "")),
            reason=fields.get("Reason", ""),
            message=fields.get("Message", ""),
            conditions=tuple(self._conditions),
            container_statuses=tuple(container.status() for container in by_kind["main"]),
            init_container_statuses=tuple(container.status() for container in by_kind["init"]),
            ephemeral_container_statuses=tuple(container.status() for container in by_kind["ephemeral"]),
        )
        spec = PodSpec(
            containers=tuple(container.spec() for container in by_kind["main"] if container.is_known),
            init_containers=tuple(container.spec() for container in by_kind["init"] if container.is_known),
            priority=_number(fields.get("Priority", "")),
            priority_class_name=fields.get("Priority Class Name", ""),
            node_name="" if node == "<none>" else node,
        )
        return PastedPod(
            ObjectMeta(name=self.name, namespace=fields.get("Namespace", "")),
            spec,
            status,
            is_whole=bool(self.name and by_kind["main"] and qos_class and "Resources" not in fields),
            is_terminating=is_terminating,
        )
