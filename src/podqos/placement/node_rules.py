"""What a node itself keeps away or draws: taints, labels, names, declared features, images. Not its pods.

Taints: since 1.12 the node controller turns conditions into taints, so that pressure keeps away *every* pod without
the toleration, whatever its class. Before, the scheduler looked at the conditions itself: memory pressure kept away
BestEffort pods only, disk and pid pressure all of them. The kubelet's own refusals come later (``eviction``).

Declared features (KEP-5328): since 1.36 a pod runs only on nodes that declare the features it needs. With feature
gates as by default, the only one it can need while it is scheduled is that of restarting all its containers.

Images: the larger one is that a node has, and the more nodes have it, the more the node is preferred.

Source: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/toleration.go, pkg/controller/nodelifecycle/
node_lifecycle_controller.go (nodeConditionToTaintKeyStatusMap); v1.11 pkg/scheduler/algorithm/predicates/predicates.go;
v1.36 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go; pkg/scheduler/framework/
plugins/{nodeaffinity/node_affinity,imagelocality/image_locality}.go and pkg/scheduler/backend/cache/cache.go
(addNodeImageStates: the size is that of the first node seen with the image); v1.37.0-rc.1 pkg/scheduler/framework/
plugins/nodedeclaredfeatures/nodedeclaredfeatures.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from podqos.admission.field_errors import FieldError, invalid
from podqos.admission.resize_node import INIT_CONTAINER_RESIZE_FEATURE, POD_LEVEL_RESIZE_FEATURE
from podqos.model.node import (
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    Node,
    Taint,
)
from podqos.model.pod import RESTART_ALL_CONTAINERS, Pod, PodSpec, QOSClass, Toleration
from podqos.model.profile import Profile
from podqos.model.scheduling import (
    FIELD_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredNodes,
)
from podqos.placement.reasons import AffinityMismatch, Reasons, SelectorMismatch


class Repelled(StrEnum):
    """Which pods a condition of a node keeps away at scheduling."""

    WITHOUT_TOLERATION = "WithoutToleration"
    """Every pod that does not tolerate the condition's taint."""
    ALL = "All"
    BEST_EFFORT = "BestEffort"


NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"

UNSCHEDULABLE = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)

# (condition, status) → the taint the node controller puts on the node
_TAINT_OF_CONDITION = {
    ("Ready", "False"): TAINT_NOT_READY,
    ("Ready", "Unknown"): TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): TAINT_MEMORY_PRESSURE,
    ("DiskPressure", "True"): TAINT_DISK_PRESSURE,
    ("PIDPressure", "True"): TAINT_PID_PRESSURE,
    ("NetworkUnavailable", "True"): TAINT_NETWORK_UNAVAILABLE,
}
CONDITION_TAINTS = frozenset(_TAINT_OF_CONDITION.values())
"""The keys of taints that follow from what a node says about itself."""
# Conditions that kept every pod away before 1.12; MemoryPressure kept away BestEffort only.
_FOR_EVERY_POD = ("Ready", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any toleration covers the taint."""
    return any(toleration.tolerates(taint.key, taint.value, taint.effect) for toleration in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations away; PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not is_tolerated(taint, tolerations):
            return taint
    return None


def disliked(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> int:
    """Return the number of PreferNoSchedule taints that are not tolerated."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, tolerations) for taint in taints)


def taints_of(node: Node, profile: Profile) -> tuple[Taint, ...]:
    """Return the node's taints, with those that its conditions bring where they are not there yet."""
    if not profile.conditions_become_taints:
        return node.spec.taints
    present = {(taint.key, taint.effect) for taint in node.spec.taints}
    keys = (_TAINT_OF_CONDITION.get((condition.type, condition.status)) for condition in node.status.conditions)
    added = (Taint(key=key, effect=NO_SCHEDULE) for key in keys if key and (key, NO_SCHEDULE) not in present)
    return (*node.spec.taints, *added)


def repelled(condition: str, profile: Profile) -> Repelled:
    """Return which pods the scheduler keeps away from a node with this condition."""
    if profile.conditions_become_taints:
        return Repelled.WITHOUT_TOLERATION
    return Repelled.ALL if condition in _FOR_EVERY_POD else Repelled.BEST_EFFORT


def refusing_condition(node: Node, qos_class: QOSClass, profile: Profile) -> str | None:
    """Return the condition that keeps a pod of this class away by itself, as before 1.12."""
    for condition in node.status.conditions:
        if (condition.type, condition.status) not in _TAINT_OF_CONDITION:
            continue
        whom = repelled(condition.type, profile)
        if whom is Repelled.ALL or (whom is Repelled.BEST_EFFORT and qos_class is QOSClass.BEST_EFFORT):
            return condition.type
    return None


_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def required_terms(spec: PodSpec) -> NodeSelector | None:
    """Return the required node affinity, if there is any."""
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required


def mismatch(spec: PodSpec, node: Node) -> Reasons:
    """Return why the node's labels or name do not suit the pod; nothing if they do."""
    for key, wanted in spec.node_selector.items():
        found = node.labels.get(key)
        if found != wanted:
            return (SelectorMismatch(key, wanted, found),)
    required = required_terms(spec)
    if required is None:
        return ()
    failed = []
    for term in required.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        lack = _first_failing(term, node)
        if lack is None:
            return ()
        failed.append(lack)
    return (AffinityMismatch(tuple(failed)),)


def matches(spec: PodSpec, node: Node) -> bool:
    """Whether the node's labels and name suit the pod."""
    return not mismatch(spec, node)


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """Return the only nodes that come into question because every term lists names; None if not so.

    The scheduler then never looks at the others (as with the pods of a DaemonSet).
    """
    required = required_terms(spec)
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        listed = [
            frozenset(requirement.values)
            for requirement in term.match_fields
            if requirement.key == FIELD_NAME and requirement.operator == "In"
        ]
        if not listed:
            return None
        names |= frozenset.intersection(*listed)
    return frozenset(names)


def preference(preferred: tuple[PreferredNodes, ...], node: Node) -> int:
    """Return the sum of the weights of the preferred terms that the node meets."""
    return sum(
        nodes.weight
        for nodes in preferred
        if (nodes.preference.match_expressions or nodes.preference.match_fields)
        and _first_failing(nodes.preference, node) is None
    )


def _first_failing(term: NodeSelectorTerm, node: Node) -> NodeSelectorRequirement | None:
    for requirement in term.match_expressions:
        if not _meets(requirement, node.labels.get(requirement.key)):
            return requirement
    for requirement in term.match_fields:
        if requirement.key != FIELD_NAME or not _meets(requirement, node.name):
            return requirement
    return None


def _meets(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Compare whole numbers; any other label never matches."""
    number = whole_number(value)
    bound = whole_number(requirement.values[0]) if len(requirement.values) == 1 else None
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def whole_number(text: str | None) -> int | None:
    """Return what Go's ParseInt makes of ``text``: plain digits with an optional sign, within 64 bits."""
    if text is None or not text.isascii() or not text.lstrip("+-").isdigit() or len(text) - len(text.lstrip("+-")) > 1:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def unmeetable_bounds(pod: Pod) -> Iterator[FieldError]:
    """Yield the bounds of ``Gt`` and ``Lt`` that are no numbers: the API server stores them, and no node meets them.

    Its own rules are in ``admission.constraints``.
    """
    required = required_terms(pod.spec)
    for index, term in enumerate(required.node_selector_terms if required is not None else ()):
        for number, requirement in enumerate(term.match_expressions):
            values = requirement.values
            if requirement.operator in {"Gt", "Lt"} and len(values) == 1 and whole_number(values[0]) is None:
                path = f"{_TERMS}[{index}].matchExpressions[{number}].values[0]"
                yield invalid(path, values[0], "for 'Gt', 'Lt' operators, the value must be an integer")


RESTART_ALL_FEATURE = "RestartAllContainersOnContainerExits"

# Those of the feature gates that are on by default, the same in 1.36 and 1.37.
_DECLARED = (
    "ExtendWebSocketsToKubelet",
    POD_LEVEL_RESIZE_FEATURE,
    INIT_CONTAINER_RESIZE_FEATURE,
    RESTART_ALL_FEATURE,
)


def required_features(spec: PodSpec, profile: Profile) -> frozenset[str]:
    """Return the features without which a node cannot run a pod."""
    if not profile.declared_features:
        return frozenset()
    needs_restart = any(
        rule.action == RESTART_ALL_CONTAINERS
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    )
    return frozenset({RESTART_ALL_FEATURE}) if needs_restart else frozenset()


def declared_by_default(profile: Profile) -> tuple[str, ...]:
    """Return the features that a node of this version declares, by name."""
    return _DECLARED if profile.declared_features else ()


ImageStates = Mapping[str, tuple[int, int]]
"""Size in bytes and number of nodes by the name of an image."""

_SMALLEST = 23 * 2**20
_LARGEST_PER_IMAGE = 1000 * 2**20


def images_of(spec: PodSpec, profile: Profile) -> tuple[str, ...]:
    """Return the names of the images a pod needs, one per container and, since 1.36, per mounted image."""
    named = [container.image for container in (*spec.init_containers, *spec.containers)]
    if profile.image_volumes_count:
        named += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(_with_tag, named))


def image_count(spec: PodSpec, profile: Profile) -> int:
    """Return the number of images for the maximum score: one per container and, since 1.37, per mounted image."""
    mounted = sum(volume.image is not None for volume in spec.volumes) if profile.image_volumes_raise_maximum else 0
    return len(spec.init_containers) + len(spec.containers) + mounted


def image_states(nodes: Iterable[Node]) -> ImageStates:
    """Return what is known of the images that any node has."""
    states: dict[str, tuple[int, int]] = {}
    for node in nodes:
        sizes = {name: image.size_bytes for image in node.status.images for name in image.names or ()}
        for name, size in sizes.items():
            known, number = states.get(name, (size, 0))
            states[name] = known, number + 1
    return states


def image_points(images: tuple[str, ...], count: int, present: frozenset[str], states: ImageStates, nodes: int) -> int:
    """Return 0 to 100 for one node that has the images ``present``, of so many nodes in all.

    ``count`` is that of ``image_count``.
    """
    total = 0
    for name in images:
        if name in present:
            size, number = states[name]
            total += int(size * (number / nodes))
    largest = _LARGEST_PER_IMAGE * count
    counted = _SMALLEST if total < _SMALLEST else min(total, largest)
    return 100 * (counted - _SMALLEST) // (largest - _SMALLEST)


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
