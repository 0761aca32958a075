"""What answers assume if it is not stated, as values: one rule for each thing, the same for every command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podqos.amounts import listed
from podqos.errors import InvalidArgument
from podqos.manifest.kinds import POD_HOLDERS
from podqos.model.assumption import Assumption
from podqos.model.node import LEAST_NODE_BYTES
from podqos.model.resources import CPU, MEMORY, is_hugepages
from podqos.naming import naming, stated_with

if TYPE_CHECKING:
    from fractions import Fraction

    from podqos.model.node import Node
    from podqos.model.pod import Pod
    from podqos.objects.objects import Objects
    from podqos.policy.model import Policy

USUAL_NODE_BYTES = 64 << 30
"""The least memory of a node."""
NODE_MEMORY = Assumption("node memory", "64Gi", stated_with("node_memory"))
USUAL_CORES = 16
"""On a node of 64Gi: 4Gi a core, as clouds sell most of their machines."""
NODE_CORES = Assumption("cores", str(USUAL_CORES), stated_with("cores"))
KUBELET_SETTINGS = Assumption("kubelet settings", "defaults", stated_with("kubelet_config"))
IMPLIED_SETTINGS = Assumption(
    "kubelet settings", "defaults, except for what the node's allocatable memory implies", stated_with("kubelet_config")
)
UNSLOWED_GROWTH = Assumption("growth above memory.high", "as stated; `simulate` slows it", "")
FIRST_BY_NAME = Assumption(
    "choice among equally good nodes",
    "first by name",
    f"the real scheduler picks among these at random; {stated_with('verbose')} shows the scores",
)
NO_POLICIES = Assumption("cluster policies", "none", stated_with("files", "POLICIES"))

# What is taken of a class that pods name and that is not among the objects, and how to state it.
_OF_CLASS = {
    "PriorityClass": ("priority of class {name}", "0", stated_with("priority", "{name}=VALUE")),
    "RuntimeClass": (
        "overhead of runtime {name}",
        "none",
        stated_with("runtime_class", "{name}=cpu=CORES,memory=BYTES"),
    ),
}
_SHOWN_SOURCES = 3
_POLICIES = f"{stated_with('files', 'FILE')} or {stated_with('policies')}"


def node_memory(stated_bytes: int | None, nodes: Iterable[Node]) -> tuple[int, tuple[Assumption, ...]]:
    """Return a node's memory: as stated, else that of the smallest Node, else 64Gi, as an assumption.

    Never this machine's, which has nothing to do with the manifests. A Node that states next to none states nothing.
    """
    if stated_bytes is not None:
        if stated_bytes < LEAST_NODE_BYTES:
            what = f"{stated_bytes} bytes is too little memory for a node"
            raise InvalidArgument(what, where=naming("node_memory"), fix="for example 64Gi")
        return stated_bytes, ()
    stated = (node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity)
    sizes = [size for size in stated if size >= LEAST_NODE_BYTES]
    return (min(sizes), ()) if sizes else (USUAL_NODE_BYTES, (NODE_MEMORY,))


def node_cores(name: str, nodes: Iterable[Node], *, left_for_pods: bool) -> tuple[Fraction, tuple[Assumption, ...]]:
    """Return a node's cores: those of the Node of this name, else of the smallest Node, else 16, as an assumption.

    Never this machine's, as of memory. ``left_for_pods``: without those it reserves, where it states them.
    """
    from fractions import Fraction

    stated = []
    for node in nodes:
        capacity, allocatable = (of.get(CPU) for of in (node.status.capacity, node.status.allocatable))
        amount = (left_for_pods and allocatable) or capacity or allocatable
        if amount:
            stated.append((node.name, Fraction(amount.milli_value, 1000)))
    cores = [each for own, each in stated if own == name] or [each for _, each in stated]
    return (min(cores), ()) if cores else (Fraction(USUAL_CORES), (NODE_CORES,))


def nodes_called(name: str, nodes: Iterable[Node]) -> Sequence[Node]:
    """Return the Node of this name if it states its memory; else all Nodes, of which the smallest counts."""
    every = list(nodes)
    return [node for node in every if node.name == name and not node_memory(None, (node,))[1]] or every


def node_hugepages(nodes: Iterable[Node], memory_bytes: int) -> int:
    """Return how much of its memory a Node of this size has set aside as huge pages."""
    for node in nodes:
        capacity = node.status.capacity
        if MEMORY in capacity and capacity[MEMORY].value == memory_bytes:
            return sum(amount.value for name, amount in capacity.items() if is_hugepages(name))
    return 0


def stated_allocatable(nodes: Sequence[Node], memory_bytes: int) -> int | None:
    """Return the allocatable memory of a Node of this size, or of the only Node, or None."""
    for node in nodes:
        capacity, stated = node.status.capacity.get(MEMORY), node.status.allocatable.get(MEMORY)
        is_it = len(nodes) == 1 if capacity is None else capacity.value == memory_bytes
        if is_it and stated is not None:
            return stated.value
    return None


def missing_classes(named: Iterable[tuple[str, str]], objects: Objects | None = None) -> tuple[Assumption, ...]:
    """Return what is assumed about classes, by kind and name, that do not apply to the pods that name them."""
    found = []
    for kind, name in sorted(set(named)):
        what, value, state_with = (each.format(name=name) for each in _OF_CLASS[kind])
        elsewhere = "" if objects is None else objects.defined_in(kind, name)
        if elsewhere:
            state_with += f", or {stated_with('files', elsewhere)}, which applies to its own directory only"
        found.append(Assumption(what, value, state_with))
    return tuple(found)


def cluster_assumptions(objects: Objects) -> tuple[Assumption, ...]:
    """Return what is assumed about the cluster: classes in no file, and which policies apply to which objects."""
    kinds = {found.workload.kind for found in objects.workloads}
    of_kinds = added_containers(kinds)
    missing = missing_classes(objects.missing, objects)
    return (*objects.assumptions, *missing, *policy_scopes(objects), *of_kinds, *as_written(objects))


def kept_scores(pods: Iterable[Pod]) -> tuple[Assumption, ...]:
    """Return the assumption that containers have the score of their requests, where a resize may have come later."""
    from podqos.model.resized import older_scores

    resized: list[str] = []
    changed: list[str] = []
    for pod in pods:
        for older in older_scores(pod):
            if older.request is not None:
                continue
            (resized if older.resized_at else changed).append(f"{older.container} in {pod.key}")
    why = {
        "resized in place after the container started": resized,
        "the spec of the pod changed, perhaps by a resize": changed,
    }
    until = "until a restart /proc/PID/oom_score_adj has the one of the earlier request"
    return tuple(
        Assumption(f"oom_score_adj of {_shown(names)}", "of current requests", f"{reason}; {until}")
        for reason, names in why.items()
        if names
    )


def as_written(objects: Objects) -> tuple[Assumption, ...]:
    """Return the assumption that resources and replicas are as written, although autoscalers change them."""
    from podqos.objects.autoscaling import Autoscalers

    autoscalers = Autoscalers(objects)
    if not autoscalers:
        return ()
    names = {
        "resources": [found.workload.metadata.name for found in objects.workloads if autoscalers.vertical(found)],
        "replicas": [found.workload.metadata.name for found in objects.workloads if autoscalers.horizontal(found)],
    }
    changes = {
        "resources": "a VerticalPodAutoscaler changes them",
        "replicas": "a HorizontalPodAutoscaler changes them",
    }
    return tuple(Assumption(f"{what} of {_shown(of)}", "as written", changes[what]) for what, of in names.items() if of)


def added_containers(kinds: set[str]) -> tuple[Assumption, ...]:
    """Return which containers that controllers of custom resources add are assumed not to be there."""
    if kinds <= POD_HOLDERS.keys():
        return ()
    from podqos.manifest.pod_kinds import CUSTOM_KINDS

    how = "kubectl get pods -o yaml"
    known = [custom_kind for custom_kind in CUSTOM_KINDS.values() if custom_kind.kind in kinds]
    added: dict[str, list[str]] = {}
    for custom_kind in known:
        if custom_kind.adds:
            added.setdefault(custom_kind.adds, []).append(custom_kind.kind)
    settings = dict.fromkeys(custom_kind.settings for custom_kind in known if custom_kind.settings)
    built = sorted({custom_kind.kind for custom_kind in known if custom_kind.is_of_operator})
    return (
        *(
            Assumption(f"containers added to the pods of {listed(of)} ({adds})", "none", how)
            for adds, of in added.items()
        ),
        *(Assumption(setting, "not set", how) for setting in settings),
        *((Assumption(f"what operators add to the pods of {listed(built)}", "nothing", how),) if built else ()),
    )


def policy_scopes(objects: Objects) -> tuple[Assumption, ...]:
    """Return which policies apply to their own directory only, if that leaves out a workload."""
    own = [policy for policy in objects.own_policies if policy.found.source.scope is not None]
    sources = objects.policy_sources()
    if not sources and not own:
        return ()
    alternatives = objects.alternatives
    sources = [source for source in sources if source.path not in alternatives]
    everywhere = {found.source for found in objects.workloads}
    applied = [
        source.path for source in sources if any(source.scope not in objects.scopes(each) for each in everywhere)
    ]
    applied += (
        policy_object.found.source.path
        for policy_object in own
        if not all(objects.is_about(policy_object, path) for path in everywhere)
    )
    return scoped_policies(list(dict.fromkeys(applied)), alternatives)


def scoped_policies(paths: Sequence[str], alternatives: Sequence[str]) -> tuple[Assumption, ...]:
    """Return that some policies apply to their own directories only, and that contradictory ones are not applied."""
    found = []
    if paths:
        what, state_with = f"policies of {_shown(paths)}", f"to apply them to all: {_POLICIES}"
        found.append(Assumption(what, "for their own directory and below", state_with))
    if alternatives:
        what, state_with = f"policies of {_shown(alternatives)}", f"to choose one: {_POLICIES}"
        found.append(Assumption(what, "not applied, as they contradict each other", state_with))
    return tuple(found)


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN_SOURCES} more" if len(paths) > _SHOWN_SOURCES else ""
    return f"{', '.join(paths[:_SHOWN_SOURCES])}{more}"


def unlabelled_namespaces(objects: Objects, policies: Iterable[Policy]) -> tuple[Assumption, ...]:
    """Return the assumption that namespaces have no labels, if a policy needs them and no file has the namespace."""
    if not any(policy.reads_namespaces for policy in policies):
        return ()
    from podqos.model.policy import Namespace

    known = {namespace.metadata.name for namespace in objects.of(Namespace)}
    unknown = sorted({found.workload.metadata.namespace for found in objects.workloads} - known)
    noun = "namespace" if len(unknown) == 1 else "namespaces"
    return (
        (Assumption(f"labels of {noun} {_shown(unknown)}", "none", stated_with("files", "NAMESPACES")),)
        if unknown
        else ()
    )


def without_policies(objects: Objects) -> tuple[Assumption, ...]:
    """Return what is assumed if the objects hold no policy; objects of a cluster have passed its policies."""
    is_stored = all(found.workload.is_stored for found in objects.workloads)
    return () if is_stored or any(found.is_decisive for found in objects.others) else (NO_POLICIES,)
