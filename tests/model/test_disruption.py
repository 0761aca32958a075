from __future__ import annotations

import pytest

from podqos.errors import InvalidManifest
from podqos.model.disruption import PodDisruptionBudget, PodDisruptionBudgetSpec, disruptions_allowed


def budget(**spec: object) -> PodDisruptionBudget:
    return PodDisruptionBudget(spec=PodDisruptionBudgetSpec(**spec))


@pytest.mark.parametrize(
    ("spec", "healthy", "expected", "allowed"),
    [
        pytest.param({"min_available": 2}, 3, 3, 1, id="above the minimum"),
        pytest.param({"min_available": 2}, 1, 3, 0, id="below the minimum"),
        pytest.param({"min_available": "50%"}, 3, 3, 1, id="half of three rounds up to two"),
        pytest.param({"max_unavailable": 1}, 3, 3, 1, id="one may be missing"),
        pytest.param({"max_unavailable": 1}, 2, 3, 0, id="one is missing already"),
        pytest.param({"max_unavailable": "34%"}, 3, 3, 2, id="a third of three rounds up to two"),
        pytest.param({"max_unavailable": "100%"}, 3, 3, 3, id="all may be missing"),
        pytest.param({"min_available": 0}, 0, 0, 0, id="nobody is expected"),
        pytest.param({}, 3, 3, 0, id="no amount allows nothing"),
    ],
)
def test_what_a_budget_allows_follows_from_how_many_run(spec, healthy, expected, allowed):
    assert disruptions_allowed(budget(**spec), healthy=healthy, expected=expected) == allowed


def test_an_amount_that_is_no_percentage_is_refused():
    with pytest.raises(InvalidManifest, match="neither a number nor a percentage"):
        disruptions_allowed(budget(min_available="half"), healthy=1, expected=1)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"min_available": 1}, None, id="a number"),
        pytest.param({"max_unavailable": "100%"}, None, id="a percentage"),
        pytest.param({}, None, id="no amount"),
        pytest.param({"min_available": 1, "max_unavailable": 1}, "maxUnavailable", id="both"),
        pytest.param({"min_available": "half"}, "minAvailable", id="a word"),
        pytest.param({"min_available": "1"}, "minAvailable", id="a number as text"),
        pytest.param({"min_available": "%"}, "minAvailable", id="no number"),
        pytest.param({"max_unavailable": "101%"}, "maxUnavailable", id="more than all"),
        pytest.param({"max_unavailable": -1}, "maxUnavailable", id="negative"),
    ],
)
def test_the_api_server_rejects_amounts_that_make_no_sense(spec, field):
    refusal = budget(**spec).spec.refusal
    assert (refusal and refusal[0]) == field
