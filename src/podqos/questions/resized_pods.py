"""The nodes that resized pods are on, and what the other pods there leave: whether a kubelet carries a resize out.

The API server checks a resize against the empty node (``admission.resize_node``); the kubelet counts the others, too,
and defers what does not fit until there is room. Node pressure, swap and static CPU managers are not known here.

Source: Kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go (handlePodResourcesResize, canAdmitPod),
pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.admission.resize_node import KnownNodes
from podqos.agent.pods import out_of
from podqos.model.assumption import Assumption
from podqos.model.effective import as_allocated, pod_requests
from podqos.model.node import PODS, Node
from podqos.model.pod import INFEASIBLE, TERMINAL_PHASES, Pod
from podqos.model.profile import Profile
from podqos.model.resources import CPU, MEMORY
from podqos.naming import stated_with
from podqos.objects.objects import Objects
from podqos.placement.filters import lacking
from podqos.placement.pods import Amounts, counted

ROOM_FOR_RESIZE = Assumption(
    "room on the nodes of resized pods",
    "enough",
    f"{stated_with('all_namespaces')}, {stated_with('snapshot')}, or stored pods and their Nodes with "
    f"{stated_with('files')}",
)
_DEFERRED = "Deferred"


class ResizePendingReport(Struct, frozen=True, rename="camel"):
    """The condition PodResizePending that the kubelet will give a pod."""

    node: str
    reason: str
    """Deferred or Infeasible."""
    message: str


class ResizeSurroundings:
    """The nodes and the pods on them; what is resized counts with its new resources from then on."""

    def __init__(self, objects: Objects, profile: Profile) -> None:
        nodes = {node.name: node for node in objects.of(Node)}
        self.known = KnownNodes(nodes, are_all="Node" in objects.cluster().listed_kinds)
        self._profile = profile
        self._pods: dict[str, dict[str, Amounts]] = {}
        for found in objects.workloads:
            pod = found.workload.pod
            if found.workload.is_stored and pod.spec.node_name in nodes and pod.status.phase not in TERMINAL_PHASES:
                self._pods.setdefault(pod.spec.node_name, {})[pod.key] = self._requests(as_allocated(pod))

    def resized(self, old: Pod, new: Pod) -> ResizePendingReport | None:
        """Return why the kubelet does not carry out a resize that the API server stored; None if it does."""
        node = self.known.nodes.get(new.spec.node_name)
        if node is None or old.spec == new.spec:
            return None
        there = self._pods.setdefault(node.name, {})
        others = [amounts for key, amounts in there.items() if key != old.key]
        used: Amounts = {}
        for amounts in others:
            for name, amount in amounts.items():
                used[name] = used.get(name, 0) + amount
        requested, allocatable = self._requests(new), node.status.allocatable
        allowed = allocatable[PODS].value if PODS in allocatable else len(others) + 1
        missing = lacking(requested, used, counted(allocatable), len(others), allowed)
        if not missing:
            there[old.key] = requested
            return None
        offered = counted(allocatable)
        for name in (MEMORY, CPU):
            if requested.get(name, 0) > offered.get(name, 0):  # from 1.36 on the API server has rejected it
                of_both = f"requested: {requested[name]}, capacity: {offered.get(name, 0)}"
                message = f"Node didn't have enough capacity: {name}, {of_both}"
                return ResizePendingReport(node.name, INFEASIBLE, message)
        return ResizePendingReport(node.name, _DEFERRED, out_of(missing[0]))

    def _requests(self, pod: Pod) -> Amounts:
        return counted(pod_requests(pod, pod_level=self._profile.pod_level_resources))
