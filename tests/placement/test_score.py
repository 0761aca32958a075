from __future__ import annotations

import pytest
from msgspec.structs import replace

from placement.clusters import (
    REPLICA_SET,
    ZONE,
    amounts,
    expression,
    near,
    node,
    pod,
    rather_away,
    rather_near,
    service,
    spread,
    term,
)
from podqos.model.node import LABEL_HOSTNAME, Taint
from podqos.model.pod import (
    Container,
    ImageVolume,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    QOSClass,
    RunStatus,
    Toleration,
    Volume,
)
from podqos.model.profile import LATEST, profile_for
from podqos.model.resources import ResourceRequirements
from podqos.model.scheduling import Affinity, NodeAffinity, PreferredNodes
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.placement.filters import Namespaces, SchedulerCluster
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.pods import PodView, SchedulerNode, Views, demand_of
from podqos.placement.reasons import Plugin
from podqos.placement.schedule import Chooser, balanced_allocation, is_balanced, least_allocated


def state(*pods, **properties) -> SchedulerNode:
    made = SchedulerNode(node("n", **properties))
    for one_pod in pods:
        made.add(Views().of(one_pod))
    return made


def test_least_allocated_is_the_mean_of_what_is_left():
    """4 cores and 8Gi: 1 core leaves 75 %, 6Gi leave 25 %."""
    assert least_allocated(demand_of(pod("p", "1", "6Gi")), state()) == 50


def test_every_share_is_rounded_down_and_so_is_the_mean():
    """1 of 3 cores leaves 66.6 %, 1Gi of 8Gi 87.5 %."""
    assert least_allocated(demand_of(pod("p", "1", "1Gi")), state(cpu="3")) == (66 + 87) // 2


def test_balanced_allocation_compares_the_node_with_and_without_the_pod():
    """A quarter of the cpu and three quarters of the memory: the balance falls from 100 to 75."""
    assert balanced_allocation(demand_of(pod("p", "1", "6Gi")), state()) == 50 + (50 - 25) // 2
    assert balanced_allocation(demand_of(pod("p", "1", "2Gi")), state()) == 75
    assert balanced_allocation(demand_of(pod("p", "1", "6Gi")), state(pod("q", "2"))) == 50 + (50 + 25) // 2


def test_before_1_36_the_balance_with_the_pod_counted():
    before = profile_for((1, 35))
    assert balanced_allocation(demand_of(pod("p", "1", "6Gi")), state(), before) == 75
    assert balanced_allocation(demand_of(pod("p", "1", "2Gi")), state(), before) == 100


def test_before_1_33_pods_without_requests_were_scored_by_the_balance_too():
    assert [is_balanced(demand_of(pod("p")), profile_for(version)) for version in ((1, 32), (1, 33))] == [True, False]


def test_pods_on_the_node_count():
    assert least_allocated(demand_of(pod("p", "1", "2Gi")), state(pod("q", "1", "2Gi"))) == 50


def test_containers_without_requests_count_for_something_when_nodes_are_compared():
    """100m and 200Mi each; otherwise BestEffort pods would pile up on one node."""
    demand = demand_of(pod("p"))
    assert (demand.requested, demand.scored_cpu_milli, demand.scored_memory_bytes) == ({}, 100, 200 * 2**20)
    assert not is_balanced(demand, LATEST)
    nodes = tuple(node(f"n{index}") for index in range(3))
    placement = place([pod(f"p{index}") for index in range(6)], PlacementSurroundings(nodes))
    assert [outcome.node for outcome in placement.outcomes] == ["n0", "n1", "n2"] * 2


@pytest.mark.parametrize(
    ("pod_level", "cpu_milli", "memory_bytes"),
    [
        pytest.param(None, 100 + 300, 200 * 2**20 * 2, id="assumed per container"),
        pytest.param({}, 100 + 300, 200 * 2**20 * 2, id="pod-level resources without requests speak for none"),
        pytest.param({"cpu": "2"}, 2000, 200 * 2**20 * 2, id="pod-level cpu speaks for all containers"),
        pytest.param({"cpu": "2", "memory": "1Gi"}, 2000, 2**30, id="pod-level cpu and memory"),
    ],
)
def test_what_is_assumed_depends_on_pod_level_requests(pod_level, cpu_milli, memory_bytes):
    containers = (Container("a"), Container("b", resources=ResourceRequirements(amounts(cpu="300m"))))
    own = None if pod_level is None else ResourceRequirements(amounts(**pod_level))
    demand = demand_of(Pod(spec=PodSpec(containers=containers, resources=own)))
    assert (demand.scored_cpu_milli, demand.scored_memory_bytes) == (cpu_milli, memory_bytes)


def test_overhead_counts_too():
    demand = demand_of(pod("p", overhead=amounts(cpu="50m", memory="1Mi")))
    assert (demand.scored_cpu_milli, demand.scored_memory_bytes) == (150, 201 * 2**20)
    assert demand.requested == {"cpu": 50, "memory": 2**20}


def test_the_emptier_node_is_taken_and_the_first_by_name_among_equals():
    nodes = (node("b"), node("a"), node("c"))
    pods = [pod("there", "1", "2Gi", on="a"), pod("p", "1", "2Gi")]
    assert place(pods, PlacementSurroundings(nodes)).outcomes[1].node == "b"


def test_a_node_without_memory_or_cpu_is_scored_by_the_other():
    assert least_allocated(demand_of(pod("p", "1")), state(memory="0")) == 75
    assert least_allocated(demand_of(pod("p", "0", "2Gi")), state(cpu="0")) == 75
    assert balanced_allocation(demand_of(pod("p", "1")), state(memory="0")) == 75
    assert least_allocated(demand_of(pod("p")), state(cpu="0", memory="0")) == 0


def test_a_pod_that_looks_for_a_node_counts_something_even_where_only_another_container_states_it():
    """Upstream reckons pods that are there, and the one that is not yet, in two different ways."""
    containers = (Container("a"), Container("b", resources=ResourceRequirements(amounts(cpu="300m"))))
    demand = demand_of(Pod(spec=PodSpec(containers=containers, resources=ResourceRequirements(amounts(memory="1Gi")))))
    assert (demand.scored_cpu_milli, demand.asking_cpu_milli) == (300, 400)
    assert (demand.scored_memory_bytes, demand.asking_memory_bytes) == (2**30, 400 * 2**20)


def _with_pod_level(name="p", cpu="4", memory="4Gi", own=("500m", "512Mi")):
    container = Container("a", resources=ResourceRequirements(amounts(cpu=own[0], memory=own[1])))
    spec = PodSpec(containers=(container,), resources=ResourceRequirements(amounts(cpu=cpu, memory=memory)))
    return Pod(ObjectMeta(name, "default"), spec)


def test_least_allocated_counts_the_containers_of_a_pod_and_not_its_pod_level_requests():
    """Upstream builds that scorer without the feature; fit, BalancedAllocation and pods on the node have it."""
    demand = demand_of(_with_pod_level())
    assert (demand.asking_cpu_milli, demand.asking_memory_bytes) == (500, 512 * 2**20)
    assert (demand.scored_cpu_milli, demand.scored_memory_bytes) == (4000, 4 * 2**30)
    assert demand.requested == {"cpu": 4000, "memory": 4 * 2**30}


def test_a_node_that_pod_level_requests_fill_can_still_look_emptier():
    """By its container 90 + 62 points on a and 82 + 68 on b; its pod-level requests would give 25 + 62 and 49 + 68."""
    nodes = (node("a", cpu="4", memory="8Gi"), node("b", cpu="16", memory="8Gi"))
    there = pod("there", "2", "1Gi", on="b")
    assert place([there, _with_pod_level()], PlacementSurroundings(nodes)).outcomes[1].node == "a"


def _resized(status: PodStatus, *, init=(), cpu="1", memory="1Gi") -> PodView:
    container = Container("a", resources=ResourceRequirements(amounts(cpu=cpu, memory=memory)))
    spec = PodSpec(containers=(container,), init_containers=init)
    return Views().of(Pod(ObjectMeta("p", "default"), spec, status))


def _ran(cpu="2", memory="1Gi", allocated=None, name="a") -> RunStatus:
    held = amounts(cpu=cpu, memory=memory)
    return RunStatus(name, resources=ResourceRequirements(held), allocated_resources=allocated or held)


class TestAPodThatIsBeingResized:
    """The scheduler counts the largest of spec, allocation and cgroup on the node, by container."""

    def test_a_smaller_request_frees_nothing_until_the_kubelet_is_done(self):
        view = _resized(PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("2"),)))
        assert (view.held.requested["cpu"], view.shape.demand.requested["cpu"]) == (2000, 1000)
        assert view.held.scored_cpu_milli == 2000

    def test_a_larger_request_counts_at_once(self):
        view = _resized(PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("500m"),)))
        assert view.held.requested["cpu"] == 1000

    def test_what_the_kubelet_allocated_counts_before_it_is_written(self):
        view = _resized(
            PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("500m", allocated=amounts(cpu="3")),))
        )
        assert view.held.requested["cpu"] == 3000

    def test_a_resize_that_was_rejected_for_good_does_not_count(self):
        infeasible = PodCondition("PodResizePending", "True", "Infeasible")
        view = _resized(
            PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("500m"),), conditions=(infeasible,))
        )
        assert view.held.requested["cpu"] == 500

    def test_a_deferred_one_does(self):
        deferred = PodCondition("PodResizePending", "True", "Deferred")
        view = _resized(
            PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("500m"),), conditions=(deferred,))
        )
        assert view.held.requested["cpu"] == 1000

    def test_of_init_containers_only_sidecars_count_by_their_status(self):
        small = ResourceRequirements(amounts(cpu="100m"))
        sidecar, plain = Container("s", resources=small, restart_policy="Always"), Container("i", resources=small)
        status = PodStatus(
            qos_class=QOSClass.BURSTABLE, init_container_statuses=(_ran("9", name="i"), _ran("3", name="s"))
        )
        assert _resized(status, init=(plain, sidecar)).held.requested["cpu"] == 4000

    def test_pod_level_requests_count_by_the_status_of_the_pod(self):
        held = amounts(cpu="6", memory="4Gi")
        one_pod = replace(
            _with_pod_level(),
            status=PodStatus(
                qos_class=QOSClass.BURSTABLE, resources=ResourceRequirements(held), allocated_resources=held
            ),
        )
        assert Views().of(one_pod).held.requested == {"cpu": 6000, "memory": 4 * 2**30}
        assert Views(profile_for((1, 35))).of(one_pod).held.requested == {"cpu": 4000, "memory": 4 * 2**30}

    def test_a_pod_that_is_tried_with_other_resources_counts_with_those(self):
        """What changes a pod takes the class out of its status."""
        assert _resized(PodStatus(container_statuses=(_ran("2"),))).held.requested["cpu"] == 1000

    def test_its_node_is_full_until_then(self):
        there = replace(
            pod("there", "1", "1Gi", on="a"),
            status=PodStatus(qos_class=QOSClass.BURSTABLE, container_statuses=(_ran("4", name="c"),)),
        )
        there = replace(there, spec=replace(there.spec, containers=(replace(there.spec.containers[0], name="c"),)))
        outcomes = place([there, pod("p", "1", "1Gi")], PlacementSurroundings((node("a"),))).outcomes
        assert outcomes[1].node is None


def points(plugin, waiting, nodes, *there, services=(), profile=LATEST) -> dict[str, int]:
    """Return what a plugin gives each node; pods that are there say where by their nodeName."""
    views = Views(profile, services)
    states = {each.name: SchedulerNode(each, profile) for each in nodes}
    for each in there:
        states[each.spec.node_name].add(views.of(each))
    namespaces = Namespaces(selectors_leak=profile.namespace_selectors_leak)
    cluster = SchedulerCluster(states.values(), namespaces, profile)
    choice = Chooser(cluster, explains=True).choose(views.of(waiting))
    scores = choice.scores if choice is not None else ()
    return {each.node: each.points[plugin] for each in scores if plugin in each.points}


def test_a_node_with_fewer_untolerated_prefer_no_schedule_taints_gets_more():
    slow, old = Taint("slow", "", "PreferNoSchedule"), Taint("old", "", "PreferNoSchedule")
    nodes = (node("a", taints=(slow, old)), node("b", taints=(slow,)), node("c"))
    assert points(Plugin.TAINT_TOLERATION, pod("p"), nodes) == {"a": 0, "b": 150, "c": 300}
    tolerant = pod("p", tolerations=(Toleration("slow", "Exists"),))
    assert points(Plugin.TAINT_TOLERATION, tolerant, nodes) == {"a": 0, "b": 300, "c": 300}


def test_preferred_node_affinity_adds_weights_and_a_term_without_conditions_none():
    preferred = (
        PreferredNodes(30, expression("disk", "In", "ssd")),
        PreferredNodes(10, expression(ZONE, "Exists")),
        PreferredNodes(100),
    )
    nodes = (node("a", labels={"disk": "ssd", ZONE: "z"}), node("b", labels={ZONE: "z"}), node("c"))
    wishing = pod("p", affinity=Affinity(NodeAffinity(preferred=preferred)))
    assert points(Plugin.NODE_AFFINITY, wishing, nodes) == {"a": 200, "b": 50, "c": 0}


ZONES = (node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"}), node("c", labels={ZONE: "2"}))


def test_preferred_pod_affinity_draws_to_the_topology_of_what_is_there_and_anti_affinity_away():
    web = pod("w", labels={"app": "web"}, on="a")
    near_web, away = rather_near(5, term("web")), rather_away(5, term("web", LABEL_HOSTNAME))
    assert points(Plugin.INTER_POD_AFFINITY, pod("p", affinity=near_web), ZONES, web) == {"a": 200, "b": 200, "c": 0}
    assert points(Plugin.INTER_POD_AFFINITY, pod("p", affinity=away), ZONES, web) == {"a": 0, "b": 200, "c": 200}


def test_pods_that_are_there_draw_by_their_preferences_and_by_what_they_require():
    web = pod("p", labels={"app": "web"})
    wishing = pod("w", affinity=rather_near(5, term("web")), on="a")
    requiring = pod("r", affinity=near(term("web", LABEL_HOSTNAME)), on="c")
    assert points(Plugin.INTER_POD_AFFINITY, web, (*ZONES, node("d")), wishing, requiring) == {
        "a": 200,
        "b": 200,
        "c": 40,
        "d": 0,
    }
    assert points(Plugin.INTER_POD_AFFINITY, web, ZONES) == {}


def test_schedule_anyway_prefers_the_less_crowded_and_ignores_nodes_without_the_label():
    there = [pod(f"w{index}", labels={"app": "web"}, on="a") for index in range(2)]
    waiting = pod("p", labels={"app": "web"}, topology_spread_constraints=(spread(1, when="ScheduleAnyway"),))
    nodes = (*ZONES, node("d"))
    assert points(Plugin.POD_TOPOLOGY_SPREAD, waiting, nodes, *there) == {"a": 0, "b": 0, "c": 200, "d": 0}
    assert points(Plugin.POD_TOPOLOGY_SPREAD, waiting, nodes) == {"a": 200, "b": 200, "c": 200, "d": 0}


def test_pods_of_a_replica_set_or_a_service_are_spread_by_default_and_others_are_not():
    there = pod("w", labels={"app": "web"}, on="a")
    bare = pod("p", labels={"app": "web"})
    owned = pod("p", labels={"app": "web"}, owners=(REPLICA_SET,))
    job = pod("p", labels={"app": "web"}, owners=(OwnerReference("batch/v1", "Job", "j", controller=True),))
    expected = {"a": 132, "b": 176, "c": 200}
    assert points(Plugin.POD_TOPOLOGY_SPREAD, owned, ZONES, there) == expected
    assert points(Plugin.POD_TOPOLOGY_SPREAD, bare, ZONES, there, services=(service("web"),)) == expected
    assert points(Plugin.POD_TOPOLOGY_SPREAD, bare, ZONES, there) == {}
    assert points(Plugin.POD_TOPOLOGY_SPREAD, job, ZONES, there) == {}


def test_a_pod_without_labels_has_no_like_whoever_owns_it():
    there = pod("w", on="a")
    owned = pod("p", owners=(REPLICA_SET,))
    assert points(Plugin.POD_TOPOLOGY_SPREAD, owned, ZONES, there) == {}


def test_pods_of_another_template_do_not_count_by_default():
    other = pod("w", labels={"app": "web", "pod-template-hash": "5d9"}, on="a")
    owned = pod("p", labels={"app": "web"}, owners=(REPLICA_SET,))
    assert len(set(points(Plugin.POD_TOPOLOGY_SPREAD, owned, ZONES, other).values())) == 1


def test_large_images_that_are_there_count_the_more_the_more_nodes_have_them():
    gib = {"registry.example.com/app:latest": 1000 * 2**20}
    nodes = (node("a", images=gib), node("b", images=gib), node("c"), node("d"))
    assert points(Plugin.IMAGE_LOCALITY, pod("p", image="registry.example.com/app"), nodes) == {
        "a": 48,
        "b": 48,
        "c": 0,
        "d": 0,
    }


@pytest.mark.parametrize(("version", "expected"), [((1, 35), 0), ((1, 36), 100)])
def test_mounted_images_count_since_1_36(version, expected):
    nodes = (node("a", images={"model:1": 1000 * 2**20}),)
    mounting = pod("p", volumes=(Volume("m", image=ImageVolume("model:1")),))
    assert points(Plugin.IMAGE_LOCALITY, mounting, nodes, profile=profile_for(version)) == {"a": expected}


@pytest.mark.parametrize(("version", "expected"), [((1, 36), 100), ((1, 37), 49)])
def test_since_1_37_a_mounted_image_counts_no_more_than_that_of_a_container(version, expected):
    """100 × (1000Mi − 23Mi) / (1000Mi − 23Mi), since 1.37 of two images: / (2000Mi − 23Mi)."""
    nodes = (node("a", images={"model:1": 1000 * 2**20}),)
    mounting = pod("p", volumes=(Volume("m", image=ImageVolume("model:1")),))
    assert points(Plugin.IMAGE_LOCALITY, mounting, nodes, profile=profile_for(version)) == {"a": expected}


@pytest.mark.parametrize(
    ("version", "expected"), [((1, 33), {}), ((1, 34), {"a": 200, "b": 200, "c": 0}), ((1, 37), {})]
)
def test_from_1_34_to_1_36_a_namespace_selector_that_only_excludes_means_every_namespace(version, expected):
    """As upstream: the selector of the pod's own term is asked about no labels at all."""
    excluding = LabelSelector(
        match_expressions=(LabelSelectorRequirement("kubernetes.io/metadata.name", "NotIn", ("x",)),)
    )
    profile = profile_for(version)
    waiting = pod("p", affinity=rather_near(5, term("web", namespace_selector=excluding)))
    there = pod("w", labels={"app": "web"}, namespace="x", on="a")
    assert points(Plugin.INTER_POD_AFFINITY, waiting, ZONES, there, profile=profile) == expected
