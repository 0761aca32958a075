from __future__ import annotations

import pytest

from admission.pods import container, pod, resources
from podqos.admission.changes import Change, Why
from podqos.admission.defaulting import defaulted
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.classes import classify


def test_a_limit_alone_becomes_the_request_for_any_resource():
    """Also of ephemeral storage and devices, not only of cpu and memory."""
    given = pod(container(limits="cpu=1,memory=1Gi,example.com/gpu=2,ephemeral-storage=1Gi"))
    after = defaulted(given).spec.containers[0].resources
    assert after.requests == after.limits


def test_a_stated_request_stays_even_when_it_is_zero():
    """An explicit zero is a request: absent is not zero."""
    after = defaulted(pod(container(requests="cpu=0", limits="cpu=1,memory=1Gi")))
    assert after.spec.containers[0].resources == resources("cpu=0,memory=1Gi", "cpu=1,memory=1Gi")


def test_limits_alone_make_a_pod_guaranteed():
    """The class is decided after defaulting."""
    given = pod(container(limits="cpu=1,memory=1Gi"), init=(container("setup", limits="cpu=1,memory=1Gi"),))
    assert classify(given).qos_class is QOSClass.BURSTABLE
    assert classify(defaulted(given)).qos_class is QOSClass.GUARANTEED


@pytest.mark.parametrize(
    ("pod_level", "after"),
    [
        pytest.param(resources(limits="cpu=4"), resources("cpu=1,memory=1Gi", "cpu=4"), id="requests-from-containers"),
        pytest.param(
            resources(limits="cpu=4,hugepages-2Mi=4Mi"),
            resources("cpu=1,memory=1Gi,hugepages-2Mi=4Mi", "cpu=4,hugepages-2Mi=4Mi"),
            id="request-from-limit-when-no-container-has-one",
        ),
        pytest.param(resources(requests="cpu=4"), resources("cpu=4"), id="nothing-without-pod-level-limits"),
        pytest.param(resources(), resources(), id="empty-stays-empty"),
    ],
)
def test_pod_level_requests_are_filled_in_when_pod_level_limits_exist(pod_level, after):
    """From the containers' sum first, else from the limit."""
    given = pod(container(requests="cpu=1,memory=1Gi,ephemeral-storage=1Gi"), resources=pod_level)
    assert defaulted(given).spec.resources == after


def test_pod_level_hugepages_limit_follows_the_containers_and_brings_the_request():
    """Huge pages cannot be overcommitted, so the pod must cover its containers."""
    given = pod(
        container("a", limits="memory=1Gi,hugepages-2Mi=4Mi"),
        container("b", limits="memory=1Gi,hugepages-2Mi=2Mi"),
        resources=resources(requests="memory=2Gi"),
    )
    assert defaulted(given).spec.resources == resources("memory=2Gi,hugepages-2Mi=6Mi", "hugepages-2Mi=6Mi")


def test_sums_are_taken_before_amounts_are_rounded_up_to_milli():
    """Two requests of 0.1m become 1m each, but their sum of 0.2m becomes 1m as well."""
    given = pod(
        container("a", requests="cpu=100u"), container("b", requests="cpu=100u"), resources=resources("", "cpu=1")
    )
    after = defaulted(given)
    assert [str(c.resources.requests["cpu"]) for c in after.spec.containers] == ["1m", "1m"]
    assert after.spec.resources is not None
    assert str(after.spec.resources.requests["cpu"]) == "1m"


def test_every_place_is_rounded():
    """Overhead and ephemeral containers too."""
    fine = container(requests="cpu=100u")
    after = defaulted(pod(fine, init=(fine,), ephemeral_containers=(fine,), overhead=fine.resources.requests)).spec
    everywhere = (*after.containers, *after.init_containers, *after.ephemeral_containers)
    assert {str(c.resources.requests["cpu"]) for c in everywhere} | {str(after.overhead["cpu"])} == {"1m"}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(pod(container()), id="nothing-stated"),
        pytest.param(pod(container(requests="cpu=1", limits="cpu=1")), id="all-stated"),
        pytest.param(pod(container(), resources=resources()), id="empty-pod-level"),
    ],
)
def test_a_pod_that_needs_nothing_is_returned_as_it_is(given):
    """No copy is made: tens of thousands of pods of a live cluster come through here."""
    assert defaulted(given) is given


def test_the_record_names_place_resource_and_rule():
    """Reasons are data."""
    record: list[Change] = []
    defaulted(
        pod(container(requests="cpu=100u", limits="cpu=1,memory=1Gi"), resources=resources("", "cpu=2")), record=record
    )
    one_gi, one_milli = Quantity.parse("1Gi"), Quantity.parse("1m")
    fine = Quantity.parse("100u")
    assert record == [
        Change("spec.containers[0].resources.requests", "memory", None, one_gi, Why.REQUEST_FROM_LIMIT),
        Change("spec.resources.requests", "cpu", None, fine, Why.POD_REQUEST_FROM_CONTAINERS),
        Change("spec.resources.requests", "memory", None, one_gi, Why.POD_REQUEST_FROM_CONTAINERS),
        Change("spec.containers[0].resources.requests", "cpu", fine, one_milli, Why.ROUNDED_UP_TO_MILLI),
        Change("spec.resources.requests", "cpu", fine, one_milli, Why.ROUNDED_UP_TO_MILLI),
    ]
