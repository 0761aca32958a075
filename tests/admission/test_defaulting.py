from __future__ import annotations

import pytest

from admission.pods import container, pod, resources
from podqos.admission.changes import Change, Why
from podqos.admission.defaulting import defaulted
from podqos.model.pod import QOSClass
from podqos.model.profile import profile_for
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


FULL = "cpu=1,memory=1Gi"


@pytest.mark.parametrize(
    ("containers", "init", "stated", "before", "after"),
    [
        pytest.param(
            (container("a", limits=FULL), container("b", limits="cpu=2,memory=1Gi")),
            (),
            resources("cpu=4"),
            resources("cpu=4"),
            resources("cpu=4,memory=2Gi", "cpu=4,memory=2Gi"),
            id="limits are the sum over its containers, but at least the request",
        ),
        pytest.param(
            (container("a", requests=FULL),),
            (),
            resources("cpu=4"),
            resources("cpu=4"),
            resources("cpu=4,memory=1Gi"),
            id="without limits of the containers there is none of the pod",
        ),
        pytest.param(
            (container("a", limits=FULL), container("b", limits="cpu=1")),
            (),
            resources("cpu=4,memory=2Gi"),
            resources("cpu=4,memory=2Gi"),
            resources("cpu=4,memory=2Gi", "cpu=4"),
            id="a resource for which one container has no limit is left out",
        ),
        pytest.param(
            (container("a", limits=FULL),),
            (container("setup", limits="memory=3Gi"),),
            resources("cpu=2,memory=1Gi"),
            resources("cpu=2,memory=1Gi"),
            resources("cpu=2,memory=1Gi", "memory=3Gi"),
            id="init containers count in both respects",
        ),
        pytest.param(
            (container("a", limits=FULL),),
            (),
            resources("", "cpu=4"),
            resources(FULL, "cpu=4"),
            resources(FULL, "cpu=4,memory=1Gi"),
            id="a stated limit stays",
        ),
        pytest.param((container("a", limits=FULL),), (), resources(), resources(), resources(), id="empty stays empty"),
    ],
)
def test_since_1_37_pod_level_limits_follow_and_requests_do_without_limits(containers, init, stated, before, after):
    """KEP-2837, gate PodLevelResourcesFixDefaulting."""
    given = pod(*containers, init=init, resources=stated)
    assert defaulted(given, profile_for((1, 36))).spec.resources == before
    assert defaulted(given, profile_for((1, 37))).spec.resources == after


def test_an_ephemeral_container_keeps_pod_level_limits_from_being_filled_in():
    """It counts among those that have to have a limit, and cannot have one."""
    given = pod(container(limits=FULL), resources=resources("cpu=1"), ephemeral_containers=(container("debug"),))
    assert defaulted(given, profile_for((1, 37))).spec.resources == resources(FULL)


@pytest.mark.parametrize(("minor", "qos_class"), [(36, QOSClass.BURSTABLE), (37, QOSClass.GUARANTEED)])
def test_pod_level_requests_alone_can_be_guaranteed_since_1_37(minor, qos_class):
    given, profile = pod(container(limits=FULL), resources=resources("cpu=1")), profile_for((1, minor))
    assert classify(defaulted(given, profile), profile).qos_class is qos_class


def test_the_filled_in_limits_are_recorded_with_their_reason():
    record: list[Change] = []
    defaulted(pod(container(limits="cpu=2"), resources=resources("cpu=2")), profile_for((1, 37)), record)
    last = Change("spec.resources.limits", "cpu", None, Quantity.parse("2"), Why.POD_LIMIT_FROM_CONTAINERS)
    assert record[-1] == last
