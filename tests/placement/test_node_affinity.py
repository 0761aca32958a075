from __future__ import annotations

import pytest

from placement.clusters import expression, node, on_nodes, pod
from podqos.model.scheduling import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podqos.placement.node_rules import matches, mismatch, named_nodes, whole_number
from podqos.placement.place import PlacementSurroundings, Status, place
from podqos.placement.reasons import AffinityMismatch, NotNamed, SelectorMismatch

NODE = node("n1", labels={"zone": "a", "cores": "16", "name": "x"})


def named(*names: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", names),))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(expression("zone", "In", "a", "b"), True, id="In"),
        pytest.param(expression("zone", "In", "b"), False, id="not In"),
        pytest.param(expression("disk", "NotIn", "ssd"), True, id="NotIn holds without the label"),
        pytest.param(expression("zone", "NotIn", "a"), False, id="NotIn"),
        pytest.param(expression("zone", "Exists"), True, id="Exists"),
        pytest.param(expression("zone", "DoesNotExist"), False, id="DoesNotExist"),
        pytest.param(expression("cores", "Gt", "15"), True, id="Gt"),
        pytest.param(expression("cores", "Gt", "16"), False, id="Gt is strict"),
        pytest.param(expression("cores", "Lt", "17"), True, id="Lt"),
        pytest.param(expression("zone", "Gt", "1"), False, id="a label that is no number is not greater"),
        pytest.param(expression("disk", "Lt", "1"), False, id="nor is a missing one less"),
        pytest.param(named("n1", "n2"), True, id="by name"),
        pytest.param(named("n2"), False, id="another name"),
        pytest.param(NodeSelectorTerm(), False, id="a term without conditions matches no node"),
    ],
)
def test_a_term_matches_if_all_its_conditions_hold(term, expected):
    assert matches(pod("p", affinity=on_nodes(term)).spec, NODE) is expected


def test_one_matching_term_is_enough():
    assert matches(pod("p", affinity=on_nodes(expression("zone", "In", "b"), expression("zone", "In", "a"))).spec, NODE)


def test_a_term_without_conditions_does_not_keep_another_from_matching():
    terms = NodeSelectorTerm(), expression("zone", "In", "a")
    assert matches(pod("p", affinity=on_nodes(*terms)).spec, NODE)


def test_no_terms_at_all_match_no_node():
    assert not matches(pod("p", affinity=Affinity(NodeAffinity(NodeSelector()))).spec, NODE)


def test_a_mismatch_tells_the_label_or_the_failing_condition_of_every_term():
    assert mismatch(pod("p", node_selector={"zone": "b"}).spec, NODE) == (SelectorMismatch("zone", "b", "a"),)
    assert mismatch(pod("p", node_selector={"disk": "ssd"}).spec, NODE) == (SelectorMismatch("disk", "ssd", None),)
    terms = expression("zone", "In", "b"), expression("cores", "Gt", "99")
    (reason,) = mismatch(pod("p", affinity=on_nodes(*terms)).spec, NODE)
    assert isinstance(reason, AffinityMismatch)
    assert reason.failed == tuple(term.match_expressions[0] for term in terms)


def test_node_selector_and_affinity_must_both_match():
    assert not matches(
        pod("p", node_selector={"zone": "b"}, affinity=on_nodes(expression("zone", "Exists"))).spec, NODE
    )


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param((named("a"), named("b")), {"a", "b"}, id="any of the terms"),
        pytest.param(
            (NodeSelectorTerm(match_fields=named("a", "b").match_fields + named("b").match_fields),),
            {"b"},
            id="all conditions of a term",
        ),
        pytest.param((named("a"), expression("zone", "Exists")), None, id="a term without names leaves it open"),
        pytest.param((), None, id="no terms"),
    ],
)
def test_nodes_listed_by_name_are_the_only_ones_looked_at(terms, names):
    assert named_nodes(pod("p", affinity=on_nodes(*terms)).spec) == names


def test_a_pod_of_a_daemon_set_is_refused_by_name_elsewhere():
    """The controller pins each pod to its node by name, and the scheduler looks at no other."""
    full = [node("n1", cpu="1"), node("n2", unschedulable=True)]
    placement = place([pod("p", cpu="2", affinity=on_nodes(named("n1")))], PlacementSurroundings(tuple(full)))
    (view,) = placement.pending
    first, second = placement.refusal(view).nodes
    assert [reason.plugin for reason in first.first] == ["NodeResourcesFit"]
    assert second.reasons == (NotNamed(),)
    assert placement.outcomes[0].status is Status.PENDING


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("", None),
        ("5.0", None),
        ("--5", None),
        ("9" * 19, None),
        ("٣", None),
        (None, None),
    ],
)
def test_numbers_are_read_as_go_reads_them(text, number):
    assert whole_number(text) == number
