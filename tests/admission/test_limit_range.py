from __future__ import annotations

import pytest

from admission.pods import amounts, container, limit_range, pod, resources
from podqos.admission.changes import Change, Why
from podqos.admission.defaulting import defaulted
from podqos.admission.limit_range import (
    ANNOTATION,
    ConflictingDefaults,
    apply_limit_ranges,
    conflicting_defaults,
    defaulted_limit_range,
)
from podqos.admission.limit_range_bounds import violations
from podqos.model.quantity import Quantity


@pytest.mark.parametrize(
    ("item", "default", "default_request"),
    [
        pytest.param({"max": "cpu=2"}, "cpu=2", "cpu=2", id="both-from-max"),
        pytest.param({"min": "cpu=1"}, "", "cpu=1", id="request-from-min"),
        pytest.param({"max": "cpu=2", "min": "cpu=1"}, "cpu=2", "cpu=2", id="default-before-min"),
        pytest.param({"default": "cpu=2", "min": "cpu=1"}, "cpu=2", "cpu=2", id="request-from-default"),
        pytest.param({"default": "cpu=2", "default_request": "cpu=1"}, "cpu=2", "cpu=1", id="as-stated"),
    ],
)
def test_a_container_item_fills_in_its_own_defaults(item, default, default_request):
    """Default falls back to max; the default request to the default, then to min."""
    (stored,) = defaulted_limit_range(limit_range("lr", **item)).spec.limits
    assert (stored.default, stored.default_request) == (amounts(default), amounts(default_request))


def test_a_pod_item_has_no_defaults():
    """Only containers are filled in."""
    (stored,) = defaulted_limit_range(limit_range("lr", type="Pod", max="cpu=2", min="cpu=1")).spec.limits
    assert (stored.default, stored.default_request) == ({}, {})


def test_amounts_are_kept_in_whole_thousandths():
    """As everywhere in the API."""
    (stored,) = defaulted_limit_range(limit_range("lr", max="cpu=100u")).spec.limits
    assert str(stored.max["cpu"]) == "1m"


def test_a_container_with_only_a_limit_never_gets_the_default_request():
    """Defaulting made its request equal to the limit before the LimitRange came."""
    lr = defaulted_limit_range(limit_range("lr", default="cpu=2", default_request="cpu=100m"))
    after = apply_limit_ranges(defaulted(pod(container(limits="cpu=1"))), [lr])
    assert after.spec.containers[0].resources == resources("cpu=1", "cpu=1")


def test_defaults_reach_init_containers_but_not_the_pods_own_resources():
    """Also sidecars."""
    lr = limit_range("lr", default="cpu=2", default_request="cpu=1")
    sidecar = container("proxy", restart_policy="Always")
    after = apply_limit_ranges(pod(container(), init=(sidecar,), resources=resources()), [lr])
    assert after.spec.init_containers[0].resources == resources("cpu=1", "cpu=2")
    assert after.spec.resources == resources()


def test_the_annotation_tells_what_was_set():
    """Requests before limits, resources in order, init containers by that name."""
    lr = limit_range("lr", default="memory=1Gi,cpu=2", default_request="memory=1Gi,cpu=1")
    after = apply_limit_ranges(pod(container("a", requests="cpu=1"), init=(container("i"),)), [lr])
    assert after.metadata.annotations[ANNOTATION] == (
        "LimitRanger plugin set: memory request for container a; cpu, memory limit for container a; "
        "cpu, memory request for init container i; cpu, memory limit for init container i"
    )


def test_the_record_names_the_limit_range():
    """Reasons are data."""
    record: list[Change] = []
    apply_limit_ranges(pod(container()), [limit_range("lr", default_request="cpu=1")], record)
    place = "spec.containers[0].resources.requests"
    assert record == [Change(place, "cpu", None, Quantity.parse("1"), Why.LIMIT_RANGE_DEFAULT_REQUEST, "lr")]


def test_a_pod_that_states_everything_is_returned_as_it_is():
    """And gets no annotation."""
    given = pod(container(requests="cpu=1", limits="cpu=1"))
    assert apply_limit_ranges(given, [limit_range("lr", default="cpu=2", default_request="cpu=1")]) is given


def test_between_limit_ranges_the_first_wins_and_the_conflict_is_said():
    """Upstream's order is not defined, so the list's is only one possible answer."""
    first, second = limit_range("a", default="cpu=1,memory=1Gi"), limit_range("b", default="cpu=2,memory=1Gi")
    assert apply_limit_ranges(pod(container()), [first, second]).spec.containers[0].resources.limits["cpu"].value == 1
    assert conflicting_defaults([first, second]) == (
        ConflictingDefaults("limits", "cpu", ("a", "b"), (Quantity.parse("1"), Quantity.parse("2"))),
    )


@pytest.mark.parametrize(
    ("item", "requests", "limits", "message"),
    [
        pytest.param(
            {"min": "cpu=1"}, "", "", "minimum cpu usage per Container is 1.  No request is specified", id="no-request"
        ),
        pytest.param(
            {"min": "cpu=1"},
            "cpu=500m",
            "",
            "minimum cpu usage per Container is 1, but request is 500m",
            id="too-little",
        ),
        pytest.param(
            {"min": "cpu=1"},
            "cpu=1",
            "cpu=500m",
            "minimum cpu usage per Container is 1, but limit is 500m",
            id="low-limit",
        ),
        pytest.param(
            {"max": "cpu=1"}, "cpu=1", "", "maximum cpu usage per Container is 1.  No limit is specified", id="no-limit"
        ),
        pytest.param(
            {"max": "cpu=1"}, "cpu=1", "cpu=2", "maximum cpu usage per Container is 1, but limit is 2", id="too-much"
        ),
        pytest.param(
            {"max": "cpu=1"},
            "cpu=2",
            "cpu=1",
            "maximum cpu usage per Container is 1, but request is 2",
            id="high-request",
        ),
        pytest.param(
            {"max_limit_request_ratio": "cpu=2"},
            "cpu=0",
            "cpu=1",
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="ratio-to-nothing",
        ),
        pytest.param(
            {"max_limit_request_ratio": "cpu=2"},
            "cpu=1",
            "",
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            id="ratio-of-nothing",
        ),
        pytest.param(
            {"max_limit_request_ratio": "cpu=2"},
            "cpu=1",
            "cpu=2500m",
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
            id="ratio",
        ),
        pytest.param({"max_limit_request_ratio": "cpu=2500m"}, "cpu=1", "cpu=2500m", "", id="ratio-just-kept"),
    ],
)
def test_each_bound_has_the_words_of_the_api_server(item, requests, limits, message):
    """One bound, one message."""
    found = violations(pod(container(requests=requests, limits=limits)), limit_range("lr", **item))
    assert "; ".join(map(str, found)) == message


def test_a_pod_item_bounds_the_sum_without_overhead_and_the_pods_own_amounts_replace_it():
    """Overhead belongs to the runtime, not to the user."""
    bound = limit_range("lr", type="Pod", max="cpu=2")
    two = (container("a", limits="cpu=1"), container("b", limits="cpu=1"))
    assert violations(pod(*two, overhead=amounts("cpu=1")), bound) == ()
    (found,) = violations(pod(*two, resources=resources("", "cpu=3")), bound)
    assert str(found) == "maximum cpu usage per Pod is 2, but limit is 3"


def test_amounts_too_large_for_thousandths_are_compared_in_whole_units():
    """So a fraction beyond the bound goes unseen, as upstream."""
    huge = "10000000000000000"
    bound = limit_range("lr", max=f"example.com/x={huge}")
    assert violations(pod(container(limits=f"example.com/x={huge}")), bound) == ()
    assert len(violations(pod(container(limits=f"example.com/x={huge[:-1]}1")), bound)) == 1
