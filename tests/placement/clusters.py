"""Terse nodes and pods for tests of placement, and generators of whole clusters."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.model.disruption import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from podqos.model.node import (
    LABEL_HOSTNAME,
    LABEL_ZONE,
    ContainerImage,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Taint,
)
from podqos.model.pod import Container, ObjectMeta, OwnerReference, Pod, PodSpec, PodStatus, Toleration
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.scheduling import (
    Affinity,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodes,
    PreferredPods,
    TopologySpreadConstraint,
)
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.model.service import Service, ServiceSpec
from podqos.placement.place import PlacementSurroundings

ZONE = LABEL_ZONE
REPLICA_SET = OwnerReference("apps/v1", "ReplicaSet", "rs", controller=True)


def amounts(**resources: str) -> dict[str, Quantity]:
    """Return a resource list; ``ephemeral_storage`` stands for ``ephemeral-storage``."""
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in resources.items()}


def node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    *,
    pods: int = 110,
    labels: dict[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    conditions: dict[str, str] | None = None,
    images: dict[str, int] | None = None,
    **more: str,
) -> Node:
    """Return a node; labels have the hostname, as the kubelet sets it."""
    allocatable = {**amounts(cpu=cpu, memory=memory, **more), "pods": Quantity.of_units(pods)}
    return Node(
        ObjectMeta(name=name, labels={LABEL_HOSTNAME: name, **(labels or {})}),
        NodeSpec(taints=taints, unschedulable=unschedulable),
        NodeStatus(
            capacity=allocatable,
            allocatable=allocatable,
            conditions=tuple(NodeCondition(kind, status) for kind, status in (conditions or {}).items()),
            images=tuple(ContainerImage((name,), size) for name, size in (images or {}).items()),
        ),
    )


def pod(
    name: str,
    cpu: str | None = None,
    memory: str | None = None,
    *,
    limits: dict[str, str] | None = None,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    priority: int | None = None,
    on: str = "",
    started: str = "",
    ports: tuple[ContainerPort, ...] = (),
    phase: str = "",
    leaving: str = "",
    image: str = "",
    owners: tuple[OwnerReference, ...] = (),
    **spec: object,
) -> Pod:
    """Return a pod of one container; ``on`` binds it to a node, ``leaving`` is when it was told to go."""
    requests = {key: text for key, text in (("cpu", cpu), ("memory", memory)) if text is not None}
    container = Container(
        name="c",
        image=image,
        resources=ResourceRequirements(amounts(**requests), amounts(**(limits or {}))),
        ports=ports,
    )
    return Pod(
        ObjectMeta(
            name=name, namespace=namespace, labels=labels or {}, deletion_timestamp=leaving, owner_references=owners
        ),
        PodSpec(containers=(container,), priority=priority, node_name=on, **spec),
        PodStatus(start_time=started, phase=phase),
    )


def term(app: str, key: str = ZONE, **more: object) -> PodAffinityTerm:
    """Return an affinity term that means the pods of an app."""
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector({"app": app}), **more)


def near(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(terms))


def away(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(terms))


def rather_near(weight: int, *terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(preferred=tuple(PreferredPods(weight, each) for each in terms)))


def rather_away(weight: int, *terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(preferred=tuple(PreferredPods(weight, each) for each in terms)))


def on_nodes(*terms: NodeSelectorTerm) -> Affinity:
    return Affinity(node_affinity=NodeAffinity(NodeSelector(terms)))


def expression(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))


def spread(
    max_skew: int, app: str = "web", key: str = ZONE, *, when: str = "DoNotSchedule", **more: object
) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=key,
        when_unsatisfiable=when,
        label_selector=LabelSelector({"app": app}),
        **more,
    )


def budget(app: str, allowed: int | None = None, **spec: object) -> PodDisruptionBudget:
    """Return a disruption budget; with ``allowed``, as the controller has counted it."""
    return PodDisruptionBudget(
        ObjectMeta(name=f"{app}-budget", namespace="default"),
        PodDisruptionBudgetSpec(selector=LabelSelector({"app": app}), **spec),
        None if allowed is None else PodDisruptionBudgetStatus(allowed),
    )


def service(app: str) -> Service:
    return Service(ObjectMeta(name=app, namespace="default"), ServiceSpec({"app": app}))


# Generators. Few names and values, so that rules meet often.
_APPS = ("web", "db", "batch")
_ZONES = ("a", "b", "c")
_TAINTS = (
    Taint("dedicated", "gpu", "NoSchedule"),
    Taint("dedicated", "db", "NoExecute"),
    Taint("slow", "", "PreferNoSchedule"),
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    labels = {}
    if draw(st.integers(0, 5)):
        labels[ZONE] = draw(st.sampled_from((*_ZONES, "")))
    if draw(st.booleans()):
        labels["disk"] = draw(st.sampled_from(("ssd", "hdd", "7")))
    return node(
        name,
        draw(st.sampled_from(("0", "500m", "2", "4", "16"))),
        draw(st.sampled_from(("0", "1Gi", "3Gi", "8000000000", "64Gi"))),
        pods=draw(st.sampled_from((1, 3, 110))),
        labels=labels,
        taints=tuple(draw(st.lists(st.sampled_from(_TAINTS), max_size=2, unique=True))),
        unschedulable=draw(st.integers(0, 9)) == 0,
        conditions=draw(st.sampled_from(({}, {}, {"MemoryPressure": "True"}, {"Ready": "Unknown"}))),
        images=draw(st.sampled_from(({}, {}, {"app:1": 400 * 2**20}, {"app:1": 10, "db:latest": 3 * 2**30}))),
        **draw(st.sampled_from(({}, {"ephemeral_storage": "10Gi"}))),
    )


@cache
def _selectors() -> st.SearchStrategy[LabelSelector | None]:
    return st.one_of(
        st.none(),
        st.just(LabelSelector()),
        st.sampled_from(_APPS).map(lambda app: LabelSelector({"app": app})),
        st.sampled_from(_APPS).map(
            lambda app: LabelSelector(match_expressions=(LabelSelectorRequirement("app", "NotIn", (app,)),))
        ),
    )


@cache
def _terms() -> st.SearchStrategy[tuple[PodAffinityTerm, ...]]:
    single = st.builds(
        PodAffinityTerm,
        topology_key=st.sampled_from((ZONE, LABEL_HOSTNAME, "disk")),
        label_selector=_selectors(),
        namespaces=st.sampled_from(((), (), ("default",), ("other",))),
        namespace_selector=st.sampled_from(
            (
                None,
                None,
                LabelSelector(),
                LabelSelector({"team": "x"}),
                LabelSelector(match_expressions=(LabelSelectorRequirement("team", "NotIn", ("x",)),)),
            )
        ),
        match_label_keys=st.sampled_from(((), ("version",))),
        mismatch_label_keys=st.sampled_from(((), ("version",))),
    )
    return st.lists(single, max_size=2).map(tuple)


@cache
def _neighbours() -> st.SearchStrategy[PodAffinity | None]:
    preferred = st.tuples(st.sampled_from((1, 7, 100)), _terms()).map(
        lambda drawn: tuple(PreferredPods(drawn[0], each) for each in drawn[1])
    )
    return st.none() | st.builds(PodAffinity, _terms(), preferred)


@cache
def _constraints() -> st.SearchStrategy[tuple[TopologySpreadConstraint, ...]]:
    single = st.builds(
        TopologySpreadConstraint,
        max_skew=st.integers(1, 2),
        topology_key=st.sampled_from((ZONE, LABEL_HOSTNAME)),
        when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        label_selector=_selectors(),
        min_domains=st.sampled_from((None, 1, 3)),
        node_affinity_policy=st.sampled_from(("Honor", "Ignore")),
        node_taints_policy=st.sampled_from(("Honor", "Ignore")),
        match_label_keys=st.sampled_from(((), ("version",))),
    )
    return st.lists(single, max_size=2).map(tuple)


@cache
def _node_affinities() -> st.SearchStrategy[NodeAffinity | None]:
    return st.sampled_from(
        (
            None,
            None,
            NodeAffinity(NodeSelector((expression(ZONE, "In", "a", "b"),))),
            NodeAffinity(
                preferred=(
                    PreferredNodes(10, expression(ZONE, "In", "a")),
                    PreferredNodes(3, expression("disk", "Exists")),
                    PreferredNodes(50),
                )
            ),
            NodeAffinity(NodeSelector((expression("disk", "Gt", "5"), expression("disk", "DoesNotExist")))),
            NodeAffinity(
                NodeSelector(
                    (NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", ("n1",)),)),)
                )
            ),
        )
    )


@st.composite
def constrained_pods(draw: st.DrawFn, name: str, node_names: tuple[str, ...]) -> Pod:
    """Pods that use every kind of constraint, most of them few."""
    spec: dict[str, object] = {}
    if draw(st.integers(0, 2)) == 0:
        spec["affinity"] = Affinity(
            draw(_node_affinities()),
            draw(_neighbours()),
            draw(_neighbours()),
        )
    if draw(st.integers(0, 3)) == 0:
        spec["topology_spread_constraints"] = draw(_constraints())
    ports: tuple[ContainerPort, ...] = ()
    if draw(st.integers(0, 2)) == 0:
        ports = (
            ContainerPort(
                80, draw(st.sampled_from((0, 80, 81))), draw(st.sampled_from(("", "10.0.0.1", "10.0.0.2"))), ""
            ),
        )
    return pod(
        name,
        draw(st.sampled_from((None, "0", "100m", "500m", "1500m", "5"))),
        draw(st.sampled_from((None, "0", "64Mi", "1Gi", "2500000001"))),
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        labels=draw(
            st.fixed_dictionaries({}, optional={"app": st.sampled_from(_APPS), "version": st.sampled_from(("1", "2"))})
        ),
        priority=draw(st.sampled_from((None, None, 10, 1000, -5))),
        on=draw(st.sampled_from(("", "", "", *node_names))),
        started=draw(st.sampled_from(("", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))),
        ports=ports,
        leaving=draw(st.sampled_from(("", "", "", "2026-01-03T00:00:00Z"))),
        tolerations=draw(
            st.sampled_from(((), (), (Toleration("dedicated", "Equal", "gpu"),), (Toleration(operator="Exists"),)))
        ),
        node_selector=draw(st.sampled_from(({}, {}, {"disk": "ssd"}))),
        preemption_policy=draw(st.sampled_from(("", "", "Never"))),
        host_network=draw(st.integers(0, 9)) == 0,
        image=draw(st.sampled_from(("", "app:1", "db"))),
        owners=draw(st.sampled_from(((), (), (REPLICA_SET,), (OwnerReference("apps/v1", "DaemonSet", "d", True),)))),
        **spec,
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[tuple[Pod, ...], PlacementSurroundings]:
    """Draw a few nodes, some pods on them and some that wait; replicas share their specification."""
    names = tuple(f"n{index}" for index in range(draw(st.integers(0, 5))))
    surroundings = PlacementSurroundings(
        tuple(draw(nodes(name)) for name in names),
        {"other": {"team": "x"}},
        draw(st.sampled_from(((), (budget("web", min_available="50%"), budget("db", 1))))),
        services=draw(st.sampled_from(((), (service("db"),)))),
    )
    pods: list[Pod] = []
    for index in range(draw(st.integers(0, 7))):
        original = draw(constrained_pods(f"p{index}", names))
        pods.extend(
            replace(original, metadata=replace(original.metadata, name=f"p{index}-{replica}"))
            for replica in range(draw(st.integers(1, 4)))
        )
    return tuple(pods), surroundings
