"""Features that pods need and nodes declare (KEP-5328)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from placement.clusters import node, pod
from podqos.model.pod import ExitCodes, RestartRule
from podqos.model.profile import profile_for
from podqos.placement.node_rules import RESTART_ALL_FEATURE, declared_by_default, required_features
from podqos.placement.place import PlacementSurroundings, Status, place
from podqos.placement.reasons import FeaturesNotDeclared, Insufficient
from podqos.text.placement import reason_words, refusal_message

RULE = RestartRule("RestartAllContainers", ExitCodes("In", (42,)))


def declaring(name: str, *features: str, **properties: object):
    found = node(name, **properties)
    return replace(found, status=replace(found.status, declared_features=features))


def restarting(name: str = "p", *, init: bool = False, action: str = "RestartAllContainers", **properties: object):
    """Return a pod with a restart rule, in its regular or in an init container."""
    found = pod(name, "1", **properties)
    (plain,) = found.spec.containers
    ruled = replace(plain, name="r", restart_policy="Never", restart_policy_rules=(replace(RULE, action=action),))
    spec = replace(found.spec, init_containers=(ruled,)) if init else replace(found.spec, containers=(plain, ruled))
    return replace(found, spec=spec)


@pytest.mark.parametrize(
    ("given", "minor", "features"),
    [
        pytest.param(restarting(), 36, {RESTART_ALL_FEATURE}, id="a rule that restarts all"),
        pytest.param(restarting(init=True), 37, {RESTART_ALL_FEATURE}, id="of an init container"),
        pytest.param(restarting(action="Restart"), 37, set(), id="a rule that restarts one"),
        pytest.param(restarting(), 35, set(), id="before nodes declared anything"),
        pytest.param(pod("p"), 37, set(), id="no rule"),
    ],
)
def test_only_a_rule_that_restarts_all_containers_needs_a_feature(given, minor, features):
    assert required_features(given.spec, profile_for((1, minor))) == features


@pytest.mark.parametrize(("minor", "taken"), [(35, "a"), (36, "b"), (37, "b")])
def test_a_pod_goes_where_what_it_needs_is_declared(minor, taken):
    nodes = (declaring("a", "Other"), declaring("b", "Other", RESTART_ALL_FEATURE))
    surroundings = PlacementSurroundings(nodes, profile=profile_for((1, minor)))
    assert place([restarting()], surroundings).outcomes[0].node == taken


def test_where_no_node_declares_it_the_scheduler_says_so_and_displaces_no_pod():
    """No pod that leaves makes a node declare more."""
    there = pod("low", "4", on="a")
    placement = place(
        [there, restarting(priority=9)], PlacementSurroundings((declaring("a", cpu="8"),)), bare={there.key}
    )
    assert (placement.outcomes[-1].status, placement.displacements) == (Status.PENDING, ())
    refusal, reason = placement.refusal(placement.pending[0]), FeaturesNotDeclared((RESTART_ALL_FEATURE,))
    assert refusal.nodes[0].first == (reason,)
    assert reason_words(reason) == f"it does not declare {RESTART_ALL_FEATURE}"
    assert refusal_message(refusal).startswith(
        "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    )


def test_every_other_filter_is_asked_first():
    """The scheduler asks this one last, so a full node is called full."""
    placement = place([restarting()], PlacementSurroundings((declaring("a", cpu="500m"),)))
    (refused,) = placement.refusal(placement.pending[0]).nodes
    assert [type(reason) for reason in refused.first] == [Insufficient]
    assert refused.reasons[-1] == FeaturesNotDeclared((RESTART_ALL_FEATURE,))


@pytest.mark.parametrize("minor", [36, 37])
def test_nodes_that_podqos_makes_up_declare_what_is_on_by_default(minor):
    profile = profile_for((1, minor))
    assert required_features(restarting().spec, profile) <= {*declared_by_default(profile)}
    assert declared_by_default(profile_for((1, 35))) == ()
