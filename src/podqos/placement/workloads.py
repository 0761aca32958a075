"""The pods that controllers make of a workload: so many of a Deployment, one per suitable node of a DaemonSet.

Names are our own where a controller would add random letters: ``web-0``, ``web-1``.

Source: Kubernetes v1.36 pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod) and
pkg/controller/daemon/util/daemonset_util.go (the tolerations, and the pinning to a node by its name).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podqos.admission.tolerations import with_daemon_set_tolerations
from podqos.errors import InvalidManifest
from podqos.model.node import Node
from podqos.model.pod import OwnerReference, Pod, Workload
from podqos.model.profile import LATEST, Profile
from podqos.model.scheduling import (
    FIELD_NAME,
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from podqos.placement.node_rules import first_untolerated, matches, required_terms, taints_of

MOST_PODS = 1_000_000
"""Replicas of one workload: several times what the largest cluster runs. A typo comes further."""
POD = "Pod"
DAEMON_SET = "DaemonSet"
# The controllers of pods, by the workload that a manifest has.
_REPLICA_SET = ("apps/v1", "ReplicaSet")
_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_JOB = ("batch/v1", "Job")
_CONTROLLERS = {
    "Deployment": _REPLICA_SET,
    "ReplicaSet": _REPLICA_SET,
    "Rollout": _REPLICA_SET,
    "ReplicationController": _REPLICATION_CONTROLLER,
    "DeploymentConfig": _REPLICATION_CONTROLLER,
    "StatefulSet": ("apps/v1", "StatefulSet"),
    DAEMON_SET: ("apps/v1", DAEMON_SET),
    "Job": _JOB,
    "CronJob": _JOB,
}
# It only keeps a template for others.
POD_TEMPLATE = "PodTemplate"


def pods_of(workload: Workload, nodes: Iterable[Node] = (), *, profile: Profile = LATEST) -> Iterator[Pod]:
    """Yield the pods of a workload."""
    pod = workload.pod
    if workload.kind == POD:
        yield pod
    elif workload.kind == DAEMON_SET:
        yield from _daemon_pods(pod, nodes, profile)
    elif workload.kind != POD_TEMPLATE:
        base = pod.metadata.name or pod.metadata.generate_name
        owners = made_by(workload.kind, base)
        for index in range(replicas_of(workload, MOST_PODS)):
            yield _named(pod, f"{base}-{index}", owners)


def made_by(kind: str, name: str) -> tuple[OwnerReference, ...]:
    """Return what the pods of a workload say of their controller."""
    owner = _CONTROLLERS.get(kind)
    return () if owner is None else (OwnerReference(*owner, name, controller=True),)


def replicas_of(workload: Workload, most: int) -> int:
    """Return how many pods a controller makes; raises ``InvalidManifest`` where they are too many to look at each."""
    replicas = 1 if workload.replicas is None else workload.replicas
    if replicas > most:
        what = f"{workload.kind} {workload.pod.key}: {replicas:,} replicas"
        raise InvalidManifest(what, where="spec.replicas", fix=f"at most {most:,} replicas are supported")
    return replicas


def _daemon_pods(pod: Pod, nodes: Iterable[Node], profile: Profile) -> Iterator[Pod]:
    """Yield one pod for every node whose labels suit it and whose taints it tolerates, full or not."""
    tolerant = with_daemon_set_tolerations(pod)
    for node in nodes:
        taint = first_untolerated(taints_of(node, profile), tolerant.spec.tolerations)
        if matches(pod.spec, node) and taint is None:
            pinned = replace(tolerant.spec, affinity=_pinned(tolerant, node.name))
            named = f"{pod.metadata.name}-{node.name}"
            yield _named(replace(tolerant, spec=pinned), named, made_by(DAEMON_SET, pod.metadata.name))


def _pinned(pod: Pod, node_name: str) -> Affinity:
    """Return the pod's affinity with every term of it restricted to one node."""
    only = (NodeSelectorRequirement(FIELD_NAME, "In", (node_name,)),)
    required = required_terms(pod.spec)
    terms = required.node_selector_terms if required is not None else (NodeSelectorTerm(),)
    selector = NodeSelector(tuple(replace(term, match_fields=only) for term in terms))
    return replace(pod.spec.affinity or Affinity(), node_affinity=NodeAffinity(selector))


def _named(pod: Pod, name: str, owners: tuple[OwnerReference, ...] = ()) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, owner_references=owners))
