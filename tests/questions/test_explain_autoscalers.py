"""Class and oom scores at the bounds of a VerticalPodAutoscaler."""

from __future__ import annotations

from admission.pods import amounts, container, pod
from podqos.model.autoscaling import (
    ContainerResourcePolicy,
    PodResourcePolicy,
    ScaleTarget,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerSpec,
    VerticalUpdatePolicy,
)
from podqos.model.pod import ObjectMeta, Pod, QOSClass
from podqos.orders.decision import ExplainSettings
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.questions.explain import VerticalScaling, vertical_scaling

NODE = ExplainSettings(CgroupSettings(node_memory_bytes=64 << 30))


def autoscaler(*policies: ContainerResourcePolicy) -> VerticalPodAutoscaler:
    """Make an autoscaler of Deployment ``web``."""
    spec = VerticalPodAutoscalerSpec(
        ScaleTarget("Deployment", "web"), VerticalUpdatePolicy(), PodResourcePolicy(policies)
    )
    return VerticalPodAutoscaler(ObjectMeta("vpa", "default"), spec)


def policy(lowest: str = "", highest: str = "", **more: object) -> ContainerResourcePolicy:
    """Make a policy of all containers."""
    return ContainerResourcePolicy(min_allowed=amounts(lowest), max_allowed=amounts(highest), **more)


def scaled(subject: Pod, *policies: ContainerResourcePolicy) -> VerticalScaling:
    """Scale a pod on a node of 64Gi."""
    return vertical_scaling(subject, autoscaler(*policies), NODE)


def test_a_best_effort_pod_becomes_burstable():
    found = scaled(pod(container("app")), policy("memory=1Gi", "memory=16Gi"))
    assert (found.at_min_allowed.qos_class, found.at_max_allowed.qos_class) == (QOSClass.BURSTABLE, QOSClass.BURSTABLE)
    # 1000 - 1000 * 1Gi / 64Gi, and * 16Gi
    assert [each.oom_score_adj for each in found.at_min_allowed.containers] == [985]
    assert [each.oom_score_adj for each in found.at_max_allowed.containers] == [750]


def test_limits_keep_their_proportion_so_guaranteed_stays():
    equal = pod(container("app", requests="cpu=1,memory=1Gi", limits="cpu=1,memory=1Gi"))
    found = scaled(equal, policy("cpu=100m,memory=256Mi", "cpu=4,memory=8Gi"))
    assert {found.at_min_allowed.qos_class, found.at_max_allowed.qos_class} == {QOSClass.GUARANTEED}


def test_with_requests_only_a_guaranteed_pod_loses_its_class():
    equal = pod(container("app", requests="cpu=1,memory=1Gi", limits="cpu=1,memory=1Gi"))
    found = scaled(equal, policy("memory=256Mi", "memory=8Gi", controlled_values="RequestsOnly"))
    assert found.at_min_allowed.qos_class is QOSClass.BURSTABLE
    assert found.at_max_allowed.qos_class is QOSClass.GUARANTEED, "a request never exceeds a limit that stays"


def test_without_a_bound_the_score_is_open():
    found = scaled(pod(container("app", requests="memory=1Gi")), policy("memory=512Mi"))
    assert [each.oom_score_adj for each in found.at_min_allowed.containers] == [993]
    assert [each.oom_score_adj for each in found.at_max_allowed.containers] == [None]


def test_a_container_whose_mode_is_off_stays_as_written():
    two = pod(container("app", requests="memory=1Gi"), container("proxy"))
    found = scaled(
        two,
        ContainerResourcePolicy("proxy", "Off"),
        ContainerResourcePolicy("app", min_allowed=amounts("memory=2Gi"), max_allowed=amounts("memory=4Gi")),
    )
    assert [(each.container, each.oom_score_adj) for each in found.at_min_allowed.containers] == [
        ("app", 969),
        ("proxy", 999),
    ]


def test_a_resource_that_is_not_controlled_stays_as_written():
    found = scaled(
        pod(container("app", requests="memory=1Gi")), policy(highest="memory=8Gi", controlled_resources=("cpu",))
    )
    assert [each.oom_score_adj for each in found.at_max_allowed.containers] == [985]
