from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from placement.clusters import ZONE, away, budget, clusters, node, pod, term
from podqos.model.disruption import PodDisruptionBudgetSpec
from podqos.model.node import LABEL_HOSTNAME
from podqos.model.profile import profile_for
from podqos.model.selector import LabelSelector
from podqos.placement.filters import SchedulerCluster
from podqos.placement.place import PlacementSurroundings, QueueOrder, Status, place
from podqos.placement.pods import SchedulerNode, Views
from podqos.placement.schedule import Budgets, NoCandidate, Preemption

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def displaced(pods, *nodes, **surroundings) -> tuple[str | None, list[str]]:
    """Return where the last pod lands and whom it displaces."""
    placement = place(pods, PlacementSurroundings(nodes, **surroundings), bare={one_pod.key for one_pod in pods})
    return placement.outcomes[-1].node, [displacement.pod for displacement in placement.displacements]


def low(name: str, on: str = "n0", cpu: str = "1", priority: int = 0, **properties: object):
    return pod(name, cpu, on=on, priority=priority, **properties)


def high(cpu: str = "1", **properties: object):
    return pod("high", cpu, priority=1000, **properties)


def test_a_pod_of_higher_priority_displaces_a_lower_one():
    assert displaced([low("a", cpu="4"), high()], node("n0")) == ("n0", ["default/a"])


def test_pods_of_one_priority_are_displaced_one_after_the_other():
    pods = [low(f"a{index}", f"n{index}", "4") for index in range(2)]
    pods += [pod(f"high{index}", "4", priority=1000) for index in range(2)]
    placement = place(pods, PlacementSurroundings((node("n0"), node("n1"))), bare={one_pod.key for one_pod in pods})
    assert [displacement.pod for displacement in placement.displacements] == ["default/a0", "default/a1"]


def test_pods_of_the_same_priority_are_left_alone():
    assert displaced([low("a", cpu="4", priority=1000), high()], node("n0")) == (None, [])


def test_preemption_policy_never_waits_instead():
    assert displaced([low("a", cpu="4"), high(preemption_policy="Never")], node("n0")) == (None, [])


def test_only_as_many_as_needed_go_the_least_important_first():
    pods = [low("a", priority=5), low("b", priority=1), low("c", priority=3), low("d", priority=9), high("2")]
    assert displaced(pods, node("n0")) == ("n0", ["default/c", "default/b"])


def test_among_equals_the_longer_running_stay():
    pods = [low("a", started=LATE), low("b", started=EARLY), low("c", cpu="2", started=EARLY, priority=2000), high()]
    assert displaced(pods, node("n0")) == ("n0", ["default/a"])


def test_a_pod_that_is_spared_leaves_room_for_a_smaller_sacrifice():
    """The 3-core pod is more important and is put back first; then only the small one has to go."""
    pods = [low("big", cpu="3", priority=5), low("small", cpu="1", priority=1), high("1")]
    assert displaced(pods, node("n0")) == ("n0", ["default/small"])


@pytest.mark.parametrize(
    ("on_first", "on_second", "node_taken"),
    [
        pytest.param([low("a", cpu="4", priority=9)], [low("b", "n1", "4", 5)], "n1", id="lowest highest priority"),
        pytest.param(
            [low("a", cpu="2", priority=5), low("b", cpu="2", priority=1)],
            [low("c", "n1", "2", 5), low("d", "n1", "2", 0)],
            "n1",
            id="lowest sum",
        ),
        pytest.param(
            [low("a", cpu="2", priority=5), low("b", cpu="2", priority=5)],
            [low("c", "n1", "4", 5)],
            "n1",
            id="fewest victims, whatever the sign of their priority",
        ),
        pytest.param(
            [low("a", cpu="2", priority=-9), low("b", cpu="2", priority=-9)],
            [low("c", "n1", "4", -9)],
            "n1",
            id="two with negative priority are not less than one",
        ),
        pytest.param([low("a", cpu="4", started=EARLY)], [low("b", "n1", "4", started=LATE)], "n1", id="latest start"),
        pytest.param([low("a", cpu="4")], [low("b", "n1", "4")], "n0", id="first by name"),
    ],
)
def test_of_several_nodes_the_least_harmful_is_taken(on_first, on_second, node_taken):
    assert displaced([*on_first, *on_second, high("4")], node("n0"), node("n1"))[0] == node_taken


def test_a_node_where_no_budget_is_broken_comes_first():
    pods = [low("a", cpu="4", labels={"app": "web"}), low("b", "n1", "4", 500), high("4")]
    assert displaced(pods, node("n0"), node("n1"), budgets=(budget("web", 0),))[0] == "n1"
    assert displaced(pods, node("n0"), node("n1"), budgets=(budget("web", 1),))[0] == "n0"


def test_pods_whose_budget_would_be_broken_are_spared_first():
    pods = [low("plain", priority=5, cpu="2"), low("kept", priority=1, cpu="2", labels={"app": "web"}), high("2")]
    assert displaced(pods, node("n0")) == ("n0", ["default/kept"])
    assert displaced(pods, node("n0"), budgets=(budget("web", 0),)) == ("n0", ["default/plain"])


def test_a_budget_does_not_stop_preemption():
    pods = [low("only", cpu="4", labels={"app": "web"}), high()]
    assert displaced(pods, node("n0"), budgets=(budget("web", 0),)) == ("n0", ["default/only"])


def test_without_a_status_the_budget_is_reckoned_from_the_pods():
    """Of two replicas one must stay: the first disruption is free, the second is not."""
    web = [low(f"w{index}", f"n{index}", "4", labels={"app": "web"}) for index in range(2)]
    other = low("other", "n2", "4", 500)
    nodes = tuple(node(f"n{index}") for index in range(3))
    pods = [*web, other, pod("h1", "4", priority=1000), pod("h2", "4", priority=1000)]
    placement = place(
        pods,
        PlacementSurroundings(nodes, budgets=(budget("web", min_available=1),)),
        bare={one_pod.key for one_pod in pods},
    )
    assert [displacement.pod for displacement in placement.displacements] == ["default/w0", "default/other"]


def test_what_the_controller_allows_is_used_up_by_the_first_disruption():
    """One more may go: the second high pod displaces the pod without a budget, though its priority is higher."""
    web = [low(f"w{index}", f"n{index}", "4", labels={"app": "web"}) for index in range(2)]
    pods = [*web, low("other", "n2", "4", 500), pod("h1", "4", priority=1000), pod("h2", "4", priority=1000)]
    nodes = tuple(node(f"n{index}") for index in range(3))
    placement = place(
        pods, PlacementSurroundings(nodes, budgets=(budget("web", 1),)), bare={one_pod.key for one_pod in pods}
    )
    assert [displacement.pod for displacement in placement.displacements] == ["default/w0", "default/other"]


def test_displacing_helps_against_anti_affinity():
    jealous = low("jealous", affinity=away(term("web", LABEL_HOSTNAME)))
    assert displaced([jealous, high(labels={"app": "web"})], node("n0")) == ("n0", ["default/jealous"])


def test_where_the_node_itself_refuses_nobody_is_displaced():
    pods = [low("a", cpu="4"), high(node_selector={"disk": "ssd"})]
    placement = place(pods, PlacementSurroundings((node("n0"),)))
    failure = placement.refusal(placement.pending[0]).preemption
    assert failure.nodes == {"n0": NoCandidate.NOT_HELPFUL}
    assert not placement.displacements


def test_the_failure_says_per_node_why_displacing_would_not_help():
    pods = [low("a", "n0", "4", 2000), low("b", "n1", "1"), low("c", "n1", "3", 2000), pod("wants", "3", priority=1000)]
    placement = place(pods, PlacementSurroundings((node("n0"), node("n1"), node("n2", cpu="2"))))
    failure = placement.refusal(placement.pending[0]).preemption
    assert failure.nodes["n0"] is NoCandidate.NO_VICTIMS
    assert [reason.plugin for reason in failure.nodes["n1"]] == ["NodeResourcesFit"]
    assert failure.nodes["n2"] is NoCandidate.NOT_HELPFUL


def test_a_displaced_pod_that_is_replaced_looks_for_another_place():
    pods = [low("a", cpu="4"), pod("high", "4", priority=1000, node_selector={"zone": "a"})]
    nodes = (node("n0", labels={"zone": "a"}), node("n1"))
    placement = place(pods, PlacementSurroundings(nodes))
    assert [(outcome.status, outcome.node) for outcome in placement.outcomes] == [
        (Status.PLACED, "n1"),
        (Status.PLACED, "n0"),
    ]
    assert [(d.pod, d.node, d.by) for d in placement.displacements] == [("default/a", "n0", "default/high")]


def test_in_the_order_of_arrival_a_later_pod_displaces_an_earlier_one():
    pods = [pod("first", "4", priority=1), pod("second", "4", priority=2)]
    by_priority = place(pods, PlacementSurroundings((node("n0"),)))
    by_arrival = place(pods, PlacementSurroundings((node("n0"),)), order=QueueOrder.ARRIVAL)
    assert (
        [outcome.node for outcome in by_priority.outcomes]
        == [None, "n0"]
        == [outcome.node for outcome in by_arrival.outcomes]
    )
    assert (len(by_priority.displacements), len(by_arrival.displacements)) == (0, 1)


def displaced_by_all(pods, *nodes) -> list[tuple[str, str]]:
    """Return who displaces whom, in order."""
    placement = place(
        pods, PlacementSurroundings(nodes), bare={one_pod.key for one_pod in pods}, order=QueueOrder.ARRIVAL
    )
    return [(displacement.by, displacement.pod) for displacement in placement.displacements]


def test_what_was_found_for_one_workload_is_not_taken_for_another():
    """The first leaves n1 alone, where one victim would have been enough for it; the second needs both."""
    pods = [low("a", "n0", "4"), low("b", "n1", "2", 5), low("c", "n1", "2", 6)]
    pods += [pod("small", "2", priority=1000), pod("large", "4", priority=1000, node_selector={LABEL_HOSTNAME: "n1"})]
    assert displaced_by_all(pods, node("n0"), node("n1")) == [
        ("default/small", "default/a"),
        ("default/large", "default/c"),
        ("default/large", "default/b"),
    ]


def test_what_was_found_for_a_workload_is_not_kept_where_the_pods_of_other_nodes_matter():
    """Both nodes of zone a would do for the first replica, and neither for the second."""
    nodes = [node(f"n{index}", labels={ZONE: zone}) for index, zone in enumerate("aab")]
    pods = [low(f"a{index}", f"n{index}", "4", priority=index) for index in range(3)]
    apart = {"labels": {"app": "web"}, "affinity": away(term("web", ZONE)), "priority": 1000}
    pods += [pod(f"web{index}", "4", **apart) for index in range(2)]
    assert displaced_by_all(pods, *nodes) == [("default/web0", "default/a0"), ("default/web1", "default/a2")]


def test_a_nominated_pod_may_have_the_room_that_others_of_its_workload_must_leave_to_it():
    views = Views()
    states = [SchedulerNode(node(f"n{index}")) for index in range(2)]
    for index, state in enumerate(states):
        state.add(views.of(low(f"a{index}", state.name, "4")))
    first, second = (views.of(pod(f"web{index}", "4", priority=1000)) for index in range(2))
    cluster = SchedulerCluster(states)
    for view, state in zip((first, second), states, strict=True):
        cluster.nominations.add(view, state.name)
    preemption = Preemption(cluster, Budgets())
    assert [preemption.candidate(view).state.name for view in (first, second)] == ["n0", "n1"]


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_nobody_is_displaced_by_a_pod_that_is_not_more_important(cluster):
    pods, surroundings = cluster
    placement = place(pods, surroundings, order=QueueOrder.ARRIVAL)
    priorities = {one_pod.key: one_pod.spec.priority or 0 for one_pod in pods}
    for displacement in placement.displacements:
        assert priorities[displacement.pod] < priorities[displacement.by]


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_trying_to_displace_leaves_every_node_as_it_was(cluster):
    pods, surroundings = cluster
    placement = place(pods, surroundings)
    before = [(dict(state.requested), set(state.pods), state.version) for state in placement.cluster.states]
    for view in placement.pending:
        placement.refusal(view)
    assert before == [(dict(state.requested), set(state.pods), state.version) for state in placement.cluster.states]


@pytest.mark.parametrize(("version", "victim"), [((1, 36), "default/plain"), ((1, 37), "default/late")])
def test_since_1_37_a_victim_that_breaks_one_budget_is_not_counted_towards_the_next(version, victim):
    """Both budgets cover ``early``, the second ``late`` as well and allows one pod to go.

    ``early`` breaks the first. Up to 1.36 it also uses up the second, so that ``late`` breaks that; since 1.37 ``late``
    breaks none. Those that break a budget are put back first, then the others, the more important first.
    """
    pods = [
        low("early", labels={"app": "web", "tier": "x"}, started=EARLY, cpu="1", priority=9),
        low("late", labels={"tier": "x"}, started=LATE, cpu="1", priority=5),
        low("plain", cpu="1", priority=7),
        high("2"),
    ]
    of_tier = replace(budget("tier", 1), spec=PodDisruptionBudgetSpec(selector=LabelSelector({"tier": "x"})))
    budgets = (budget("web", 0), of_tier)
    assert displaced(pods, node("n0"), budgets=budgets, profile=profile_for(version)) == ("n0", [victim])
