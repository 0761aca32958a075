"""Whether the node of a pod can carry a resize: what the API server asks of the Node object before it stores one.

It looks at nothing but the pod and its Node; whether the other pods leave room is the kubelet's to say, later. A pod
that is not bound to a node passes.

Source: Kubernetes v1.36 plugin/pkg/admission/nodedeclaredfeatures, plugin/pkg/admission/podresize,
staging/src/k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize. The texts are upstream's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from podqos.admission.refusal import Denied, Refusal, forbidden_pod
from podqos.model.effective import pod_requests
from podqos.model.node import LABEL_OS, Node
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY

POD_LEVEL_RESIZE_FEATURE = "InPlacePodLevelResourcesVerticalScaling"
INIT_CONTAINER_RESIZE_FEATURE = "InPlacePodVerticalScalingInitContainers"

_LINUX = "linux"


class KnownNodes(Struct, frozen=True):
    """The nodes that resized pods can be on."""

    nodes: Mapping[str, Node] = {}
    are_all: bool = False
    """Whether there is no other: the cluster listed them."""

    def knows(self, pod: Pod) -> bool:
        """Whether it is known which node a pod is on, or that its node does not exist."""
        name = pod.spec.node_name
        return bool(name) and (self.are_all or name in self.nodes)


def with_declared_features(old: Pod, new: Pod, known: KnownNodes) -> Pod | Refusal:
    """Check that the node declares the features that the resize needs (NodeDeclaredFeatureValidator)."""
    required = tuple(sorted(_required_features(old, new)))
    if not required:
        return new
    node = known.nodes.get(new.spec.node_name)
    if node is None:
        return _without_node(new)
    missing = [feature for feature in required if feature not in node.status.declared_features]
    if not missing:
        return new
    words = f'pod update requires features {", ".join(missing)} which are not available on node "{node.name}"'
    return forbidden_pod(new, Denied(words))


def within_allocatable(old: Pod, new: Pod, known: KnownNodes) -> Pod | Refusal:
    """Check the node's system and that the pod alone would fit on the empty node (PodResizeValidator)."""
    if old.spec == new.spec:
        return new
    node = known.nodes.get(new.spec.node_name)
    if node is None:
        return _without_node(new)
    system = node.labels.get(LABEL_OS, _LINUX)
    if system != _LINUX:
        words = f'pod resize is only supported on linux nodes, node "{node.name}" is "{system}"'
        return forbidden_pod(new, Denied(words))
    missing = "; ".join(_missing(new, node))
    if missing:
        return forbidden_pod(new, Denied(f"node didn't have enough allocatable resources: {missing}"))
    return new


def _required_features(old: Pod, new: Pod) -> Iterator[str]:
    if old.spec.resources != new.spec.resources:
        yield POD_LEVEL_RESIZE_FEATURE
    pairs = zip(old.spec.init_containers, new.spec.init_containers, strict=True)
    if any(not before.is_sidecar and before.resources != after.resources for before, after in pairs):
        yield INIT_CONTAINER_RESIZE_FEATURE


def _missing(pod: Pod, node: Node) -> Iterator[str]:
    """Yield what the node has too little of; amounts are compared exactly and printed rounded up."""
    requests, allocatable = pod_requests(pod), node.status.allocatable
    cpu, offered_cpu = requests.get(CPU, ZERO), allocatable.get(CPU, ZERO)
    if cpu > offered_cpu:
        yield f"cpu, requested: {cpu.milli_value}, allocatable: {offered_cpu.milli_value}"
    memory, offered_memory = requests.get(MEMORY, ZERO), allocatable.get(MEMORY, ZERO)
    if memory > offered_memory:
        yield f"memory, requested: {memory.value}, allocatable: {offered_memory.value}"


def _without_node(pod: Pod) -> Refusal:
    return forbidden_pod(pod, Denied(f'node "{pod.spec.node_name}" not found'))
