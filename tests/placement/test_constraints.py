from __future__ import annotations

import pytest
from hypothesis import given

from placement.clusters import away, constrained_pods, expression, near, on_nodes, pod, spread, term
from podqos.admission.constraints import affinity_errors, spread_errors
from podqos.model.scheduling import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.placement.node_rules import unmeetable_bounds

TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
NEAR = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SPELLING = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SPREAD = "spec.topologySpreadConstraints[0]"


def validate_constraints(one_pod):
    """Return what is wrong with affinity and spreading: what the API server refuses, and what no node can meet."""
    spec, labels = one_pod.spec, one_pod.metadata.labels
    spread = spread_errors(spec.topology_spread_constraints, labels)
    return (*affinity_errors(spec.affinity, labels), *unmeetable_bounds(one_pod), *spread)


def fields(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key, operator, values),))


@pytest.mark.parametrize(
    ("affinity", "errors"),
    [
        (
            Affinity(NodeAffinity(NodeSelector())),
            [f"{TERMS}: Required value: must have at least one node selector term"],
        ),
        (
            on_nodes(expression("k", "In")),
            [
                (
                    f"{TERMS}[0].matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
        ),
        (
            on_nodes(expression("k", "Exists", "v")),
            [
                (
                    f"{TERMS}[0].matchExpressions[0].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            ],
        ),
        (
            on_nodes(expression("k", "Gt", "1", "2")),
            [
                (
                    f"{TERMS}[0].matchExpressions[0].values: Required value: "
                    "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
            ],
        ),
        (
            on_nodes(expression("k", "Gt", "many")),
            [
                (
                    f'{TERMS}[0].matchExpressions[0].values[0]: Invalid value: "many": '
                    "for 'Gt', 'Lt' operators, the value must be an integer"
                )
            ],
        ),
        (
            on_nodes(expression("k", "Near", "v")),
            [f'{TERMS}[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
        ),
        (
            on_nodes(fields("metadata.uid", "In", "a", "b")),
            [
                (
                    f"{TERMS}[0].matchFields[0].values: Required value: "
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                ),
                f'{TERMS}[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
            ],
        ),
        (
            near(term("web", "")),
            [
                f"{NEAR}.topologyKey: Required value: can not be empty",
                f'{NEAR}.topologyKey: Invalid value: "": name part must be non-empty',
                f'{NEAR}.topologyKey: Invalid value: "": name part {SPELLING}',
            ],
        ),
        (
            near(PodAffinityTerm("zone", match_label_keys=("a",))),
            [f"{NEAR}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        ),
        (
            near(PodAffinityTerm("zone", LabelSelector(match_expressions=(LabelSelectorRequirement("a", "In"),)))),
            [
                (
                    f"{NEAR}.labelSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
        ),
        (away(term("web")), []),
    ],
)
def test_affinity_that_no_api_server_would_store_is_told_in_its_words(affinity, errors):
    assert [str(error) for error in validate_constraints(pod("p", affinity=affinity))] == errors


@pytest.mark.parametrize(
    ("constraint", "errors"),
    [
        (spread(0), [f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"]),
        (spread(1, key=""), [f"{SPREAD}.topologyKey: Required value: can not be empty"]),
        (spread(1, min_domains=0), [f"{SPREAD}.minDomains: Invalid value: 0: must be greater than zero"]),
        (
            TopologySpreadConstraint(1, "zone", "Perhaps"),
            [
                (
                    f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Perhaps": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                )
            ],
        ),
        (
            TopologySpreadConstraint(1, "zone", "ScheduleAnyway", min_domains=2),
            [
                (
                    f"{SPREAD}.minDomains: Invalid value: 2: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
        ),
        (
            spread(1, node_taints_policy="Sometimes"),
            [f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Sometimes": supported values: "Honor", "Ignore"'],
        ),
        (
            TopologySpreadConstraint(1, "zone", "DoNotSchedule", match_label_keys=("a",)),
            [f"{SPREAD}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        ),
    ],
)
def test_spread_constraints_that_make_no_sense_are_told(constraint, errors):
    found = validate_constraints(pod("p", topology_spread_constraints=(constraint,)))
    assert [str(error) for error in found] == errors


def test_the_same_key_and_action_twice_is_an_error():
    (error,) = validate_constraints(pod("p", topology_spread_constraints=(spread(1), spread(2))))
    assert error.path == "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}"


def test_a_pod_without_constraints_has_no_errors():
    assert validate_constraints(pod("p")) == ()


@given(constrained_pods("p", ("n1",)))
def test_errors_name_fields_of_the_specification(one_pod):
    assert all(error.path.startswith("spec.") for error in validate_constraints(one_pod))
