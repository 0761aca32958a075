from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, pod, priority_class, resources
from podqos.advice.sizing.applying import advise_pod, priority_class_for
from podqos.advice.sizing.effect import Advised, effect
from podqos.advice.sizing.matrix import BATCH, DEFAULT, LATENCY_CRITICAL, Description, RestartCost, recommend
from podqos.advice.sizing.sizing import MIB, UsageHistory
from podqos.model.pod import ObjectMeta, QOSClass
from podqos.orders.drift import DriftStatus, Identity, Order
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import classify

NODE = CgroupSettings(node_memory_bytes=64 << 30)
GUARANTEED = recommend(Description(True, RestartCost.HIGH))
BURSTABLE = recommend(Description(False, RestartCost.LOW))
BEST_EFFORT = recommend(Description(False, RestartCost.NONE))
FULL = container("app", requests="cpu=2,memory=4Gi", limits="cpu=2,memory=4Gi")
ENVOY = container("envoy", requests="cpu=100m,memory=128Mi")


def test_the_incident_is_mended_by_two_limits():
    """The sidecar gets limits equal to its requests; nothing else changes."""
    advice = advise_pod(pod(FULL, ENVOY), QOSClass.BURSTABLE, {}, GUARANTEED)
    assert classify(advice.pod).qos_class is QOSClass.GUARANTEED
    assert [each.resources for each in advice.pod.spec.containers] == [
        FULL.resources,
        resources("cpu=100m,memory=128Mi", "cpu=100m,memory=128Mi"),
    ]
    assert not any(each.needs_choice for each in advice.containers)


@pytest.mark.parametrize(
    ("recommendation", "given", "unsized"),
    [
        pytest.param(GUARANTEED, container("a"), ("a",), id="guaranteed-needs-everything"),
        pytest.param(GUARANTEED, container("a", limits="cpu=1"), ("a",), id="guaranteed-needs-memory"),
        pytest.param(BURSTABLE, container("a", requests="memory=1Gi"), ("a",), id="burstable-needs-both-requests"),
        pytest.param(BURSTABLE, container("a", requests="memory=1Gi,cpu=1"), (), id="burstable"),
        pytest.param(BEST_EFFORT, container("a"), (), id="best-effort-needs-nothing"),
    ],
)
def test_amounts_that_nobody_can_know_are_named(recommendation, given, unsized):
    advice = advise_pod(pod(given), QOSClass.BURSTABLE, {}, recommendation)
    assert tuple(each.container for each in advice.containers if each.needs_choice) == unsized


def test_best_effort_loses_its_amounts():
    advice = advise_pod(pod(FULL), QOSClass.GUARANTEED, {}, BEST_EFFORT)
    assert classify(advice.pod).qos_class is QOSClass.BEST_EFFORT


def test_init_containers_count_for_guaranteed():
    advice = advise_pod(
        pod(FULL, init=(container("init", requests="cpu=1,memory=1Gi"),)), QOSClass.BURSTABLE, {}, GUARANTEED
    )
    assert classify(advice.pod).qos_class is QOSClass.GUARANTEED


def test_without_a_recommendation_the_class_stays_and_sizes_change():
    used = {"app": UsageHistory((1024 * MIB,) * 100, (1000,) * 100)}
    advice = advise_pod(pod(FULL, priority=7), QOSClass.GUARANTEED, used)
    assert advice.qos_class is QOSClass.GUARANTEED
    assert advice.pod.spec.priority == 7
    # 1000m + 15 %; peaks that never differ get little on top
    assert advice.pod.spec.containers[0].resources == resources("cpu=1150m,memory=1141Mi", "cpu=1150m,memory=1141Mi")


@pytest.mark.parametrize(
    ("tier", "existing", "expected"),
    [
        pytest.param(LATENCY_CRITICAL, [], ("latency-critical", True), id="none-there"),
        pytest.param(LATENCY_CRITICAL, [priority_class("ours", 1_000_000)], ("ours", False), id="the-same-value"),
        pytest.param(
            BATCH,
            [priority_class("a", 100_000), priority_class("batch-processing", 100_000)],
            ("batch-processing", False),
            id="its-own-name-first",
        ),
        pytest.param(DEFAULT, [], ("", False), id="the-lowest-needs-none"),
    ],
)
def test_a_priority_class_of_the_same_value_does_as_well(tier, existing, expected):
    assert priority_class_for(tier, existing) == expected


def test_the_effect_is_told_as_a_change_of_both_orders():
    """Mended, the web server outlives the batch job that was the same to the kernel."""
    web, batch = Identity("prod", "Deployment", "web"), Identity("prod", "Deployment", "batch")
    before = pod(container("app", requests="cpu=1,memory=4Gi"))
    after = pod(container("app", requests="cpu=1,memory=4Gi", limits="cpu=1,memory=4Gi"))
    named = [
        Advised(identity, _named(old, identity), _named(new, identity))
        for identity, old, new in ((web, before, after), (batch, before, before))
    ]
    found = effect(named, NODE)
    assert found[web].status is DriftStatus.UPGRADED
    assert [(move.order, move.goes_first) for move in found[web].moved_back] == [(Order.KERNEL, str(batch))]


def test_a_workload_that_does_not_exist_yet_is_added():
    identity = Identity("prod", "Deployment", "new")
    (found,) = effect([Advised(identity, None, _named(pod(FULL), identity))], NODE).values()
    assert found.status is DriftStatus.ADDED


def _named(given, identity):
    return replace(given, metadata=ObjectMeta(identity.name, identity.namespace))
