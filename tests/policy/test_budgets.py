"""What all pods together may add up to."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from podqos.model.node import Node, NodeStatus
from podqos.model.pod import ObjectMeta, PodStatus
from podqos.model.quantity import Quantity
from podqos.policy.budgets import charges, over_budget
from podqos.policy.words import budget_message
from policy.demanding import one, policy, subject_of, template_of

WEB = one("{requests: {memory: 1Gi}, limits: {memory: 2Gi}}")


def node(name: str, memory: str = "8Gi") -> Node:
    return Node(ObjectMeta(name), status=NodeStatus(allocatable={"memory": Quantity.parse(memory)}))


NODES = (node("a"), node("b"))


def exceeded(spec, subjects, nodes=NODES, pods=1):
    demanded = policy(spec)
    charged = [each for subject in subjects for each in charges([demanded], subject, pods, len(nodes))]
    return list(over_budget(charged, nodes))


def test_a_budget_is_exceeded_by_more_than_its_times_allocatable_exactly():
    spec = "budgets: [{name: memory, resource: memory, limits: 0.5, requests: 0.25}]"
    assert exceeded(spec, [subject_of(WEB)], pods=4) == []
    limits, requests = exceeded(spec, [subject_of(WEB)], pods=5)
    assert (limits.side, str(limits.total), str(limits.allocatable), limits.ratio) == (
        "limits",
        "10Gi",
        "16Gi",
        Fraction(10, 16),
    )
    assert requests.side == "requests"
    assert budget_message(limits) == (
        'policy "shop", budget "memory": limits of memory add up to 10Gi, 0.625× the 16Gi allocatable, must be 0.5× at '
        "most; most by Pod shop/web"
    )


def test_a_daemon_set_has_a_pod_on_every_node():
    spec = "budgets: [{name: memory, resource: memory, requests: 0.1}]"
    (over,) = exceeded(spec, [template_of(WEB, "DaemonSet")])
    assert str(over.total) == "2Gi"


def test_only_what_matches_and_is_not_exempt_counts():
    spec = """
    budgets:
    - {name: memory, resource: memory, requests: 0.01, match: {namespaces: [shop]}}
    exemptions:
    - {reason: r, objects: [Pod/db]}
    - {reason: containers do not count apart, containers: ['*']}
    """
    others = [
        replace(WEB, metadata=ObjectMeta("web", "other")),
        replace(WEB, metadata=ObjectMeta("db", "shop")),
        replace(WEB, metadata=ObjectMeta("done", "shop"), status=PodStatus("Succeeded")),
    ]
    (over,) = exceeded(spec, map(subject_of, [WEB, *others]))
    assert (str(over.total), over.largest) == ("1Gi", ("Pod shop/web",))


@pytest.mark.parametrize(("per", "groups"), [("Cluster", [""]), ("Namespace", ["other", "shop"]), ("Node", ["a"])])
def test_a_budget_may_be_of_each_namespace_or_node(per, groups):
    spec = f"budgets: [{{name: memory, resource: memory, requests: 0.01, per: {per}}}]"
    placed = replace(WEB, spec=replace(WEB.spec, node_name="a"))
    found = exceeded(spec, map(subject_of, [placed, replace(WEB, metadata=ObjectMeta("web", "other"))]))
    assert [over.group for over in found] == groups


def test_without_nodes_there_is_nothing_to_hold_a_budget_against():
    assert exceeded("budgets: [{name: m, resource: memory, limits: 0.1}]", [subject_of(WEB)], nodes=()) == []
