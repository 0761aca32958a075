"""``kubectl describe node``, line by line: conditions, capacity, allocatable, taints. Its pods have no priority there.

Source: Kubernetes v1.36 kubectl pkg/describe/describe.go (describeNode, describeNodeResource).
"""

from __future__ import annotations

import re

from podqos.errors import InvalidQuantity
from podqos.model.node import Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint
from podqos.model.pod import ObjectMeta
from podqos.model.quantity import Quantity
from podqos.objects.kubectl_text.describe_pod import KEY
from podqos.objects.kubectl_text.lines import Line, iso_time

_DATE = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"
CONDITION_ROW = re.compile(rf"(?:Memory|Disk|PID)Pressure\s+True\s+{_DATE}\s+{_DATE}\s")
_CONDITION = re.compile(rf"([A-Z][A-Za-z]{{1,80}})\s+(True|False|Unknown)\s+{_DATE}\s+({_DATE})\s+([A-Za-z]\S{{0,80}})")
_QUANTITY = re.compile(r"([a-z0-9][A-Za-z0-9./_-]{0,80}):\s+([0-9][0-9A-Za-z.+-]{0,40})$")
_TAINT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9./_-]{0,300})(?:=([A-Za-z0-9._-]{0,63}))?:(NoSchedule|PreferNoSchedule|NoExecute)$"
)
_VERSION = re.compile(r"Kubelet Version:\s{1,40}(v\d{1,3}\.\d{1,3}\S{0,60})$")
_MOST = 200
SECTIONS = frozenset(
    (
        *(
            "Roles",
            "Role",
            "Labels",
            "Annotations",
            "CreationTimestamp",
            "Taints",
            "Unschedulable",
            "Lease",
            "Conditions",
        ),
        *("Addresses", "Capacity", "Allocatable", "System Info", "PodCIDR", "PodCIDRs", "ProviderID"),
        *("Non-terminated Pods", "Allocated resources", "Events"),
    )
)


class NodeDescription:
    """Takes the lines of a description, and gives the node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._section = ""
        self._unschedulable = False
        self._kubelet_version = ""
        self._taints: list[Taint] = []
        self._conditions: list[NodeCondition] = []
        self._amounts: dict[str, dict[str, Quantity]] = {"Capacity": {}, "Allocatable": {}}

    @property
    def is_in_events(self) -> bool:
        """Whether rows of events are next."""
        return self._section == "Events"

    def feed(self, line: Line) -> None:
        """Take a line."""
        found = KEY.match(line.text)
        if found is not None and found[1] in SECTIONS:
            self._section = found[1]
            if self._section == "Taints":
                self._taint(found[2] or "")
            elif self._section == "Unschedulable":
                self._unschedulable = found[2] == "true"
        elif self._section == "Taints":
            self._taint(line.text)
        elif self._section == "Conditions" and (condition := _CONDITION.match(line.text)):
            if len(self._conditions) < _MOST:
                self._conditions.append(NodeCondition(condition[1], condition[2], iso_time(condition[3]) or None))
        elif self._section == "System Info" and (version := _VERSION.match(line.text)):
            self._kubelet_version = version[1]
        elif self._section in self._amounts and (amount := _QUANTITY.match(line.text)):
            try:
                self._amounts[self._section].setdefault(amount[1], Quantity.parse(amount[2]))
            except InvalidQuantity:
                return  # cut, or something else

    def _taint(self, text: str) -> None:
        found = _TAINT.match(text)
        if found is not None and len(self._taints) < _MOST:
            self._taints.append(Taint(found[1], found[2] or "", found[3]))

    def node(self) -> Node:
        """Return the node, as far as the lines tell of it."""
        status = NodeStatus(
            self._amounts["Capacity"],
            self._amounts["Allocatable"],
            tuple(self._conditions),
            node_info=NodeSystemInfo(self._kubelet_version),
        )
        return Node(ObjectMeta(name=self.name), NodeSpec(tuple(self._taints), self._unschedulable), status)
