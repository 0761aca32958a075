"""All pods of a workload, and one workload after the other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, limit_range, pod, priority_class, quota
from podqos.admission.chain import Step
from podqos.admission.policies import ClusterPolicies, Policies
from podqos.admission.refusal import Code
from podqos.admission.workloads import Admissions, Operation
from podqos.model.pod import ObjectMeta, Pod, QOSClass, Workload
from podqos.model.policy import LimitRange, Namespace, ResourceQuota

ONE_CPU = container(limits="cpu=1,memory=1Gi")


def workload(given: Pod, *, kind: str = "Deployment", name: str = "web", namespace: str = "shop", replicas=None):
    metadata = ObjectMeta(name, namespace)
    path = "" if kind == "Pod" else "spec.template"
    return Workload(kind, metadata, replace(given, metadata=metadata), path, replicas)


def cluster(*policies: LimitRange | ResourceQuota, **others) -> ClusterPolicies:
    placed = [replace(each, metadata=replace(each.metadata, namespace="shop")) for each in policies]
    return ClusterPolicies(
        Policies(
            limit_ranges=tuple(each for each in placed if isinstance(each, LimitRange)),
            resource_quotas=tuple(each for each in placed if isinstance(each, ResourceQuota)),
        ),
        **others,
    )


class TestReplicas:
    """Each of them is charged to the quota."""

    def test_as_many_are_admitted_as_the_quota_has_room_for(self):
        """The next one gets the API server's answer."""
        outcome = Admissions(cluster(quota(hard="requests.cpu=3500m"))).create(workload(pod(ONE_CPU), replicas=5))
        assert (outcome.pods, outcome.admitted, outcome.refused_by) == (5, 3, Step.RESOURCE_QUOTA)
        assert outcome.refusal.code is Code.FORBIDDEN
        assert "requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3500m" in outcome.refusal.message
        assert outcome.first.allowed

    def test_what_one_workload_uses_is_gone_for_the_next(self):
        """In the order in which they come."""
        admissions = Admissions(cluster(quota(hard="pods=3")))
        assert admissions.create(workload(pod(ONE_CPU), name="a", replicas=2)).refusal is None
        outcome = admissions.create(workload(pod(ONE_CPU), name="b", replicas=2))
        assert (outcome.admitted, outcome.refused_by) == (1, Step.RESOURCE_QUOTA)
        assert admissions.create(workload(pod(ONE_CPU), name="c")).admitted == 0

    def test_another_namespace_has_its_own_quota(self):
        """And this one has none."""
        admissions = Admissions(cluster(quota(hard="pods=0")))
        assert admissions.create(workload(pod(ONE_CPU), namespace="elsewhere", replicas=9)).admitted == 9

    def test_a_billion_replicas_take_no_longer_than_one(self):
        """Nobody counts them one by one."""
        outcome = Admissions(cluster(quota(hard="pods=1M"))).create(workload(pod(ONE_CPU), replicas=10**9))
        assert outcome.admitted == 10**6

    @pytest.mark.parametrize("replicas", [0, -1])
    def test_no_replicas_use_nothing(self, replicas):
        """But it is known what would become of them."""
        admissions = Admissions(cluster(quota(hard="pods=1")))
        outcome = admissions.create(workload(pod(ONE_CPU), replicas=replicas))
        assert (outcome.admitted, outcome.refusal, outcome.first.allowed) == (0, None, True)
        assert admissions.create(workload(pod(ONE_CPU))).admitted == 1

    def test_a_pod_template_asks_for_no_pods(self):
        """It only keeps one for others."""
        outcome = Admissions(cluster(quota(hard="pods=0"))).create(workload(pod(ONE_CPU), kind="PodTemplate"))
        assert (outcome.pods, outcome.admitted) == (0, 0)

    def test_a_refused_workload_uses_nothing(self):
        """Not even the room for its first pod."""
        admissions = Admissions(cluster(quota(hard="pods=1"), limit_range("least", min="cpu=2")))
        assert admissions.create(workload(pod(ONE_CPU))).refused_by is Step.LIMIT_RANGE_BOUNDS
        assert admissions.create(workload(pod(container(limits="cpu=2,memory=1Gi")))).admitted == 1


class TestDaemonSets:
    """Their controller adds tolerations before the API server sees a pod."""

    def test_its_pods_stay_on_lost_nodes_and_run_under_pressure(self):
        """So admission has nothing to add about lost nodes."""
        outcome = Admissions(cluster()).create(workload(pod(ONE_CPU), kind="DaemonSet"))
        added, *_ = outcome.first.steps
        assert added.step is Step.DAEMON_SET_CONTROLLER
        assert [change.after for change in added.changes] == [
            f"node.kubernetes.io/{taint}"
            for taint in (
                "not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable",
            )
        ]  # fmt: skip
        seconds = {toleration.toleration_seconds for toleration in outcome.first.pod.spec.tolerations}
        assert seconds == {None}

    def test_it_counts_as_one_pod(self):
        """How many nodes there are is not known here."""
        assert Admissions(cluster(quota(hard="pods=1"))).create(workload(pod(ONE_CPU), kind="DaemonSet")).admitted == 1


class TestClasses:
    """As written, as defaulting means it, as stored."""

    def test_defaulting_belongs_to_what_a_manifest_means(self):
        """Limits alone are Guaranteed."""
        outcome = Admissions(cluster()).create(workload(pod(ONE_CPU)))
        classes = (outcome.class_as_written, outcome.class_defaulted, outcome.class_reached)
        assert classes == (QOSClass.BURSTABLE, QOSClass.GUARANTEED, QOSClass.GUARANTEED)

    def test_a_limit_range_does_not(self):
        """The trap of source 002."""
        trap = limit_range("default-limits", default="cpu=1,memory=512Mi", default_request="cpu=100m,memory=128Mi")
        outcome = Admissions(cluster(trap)).create(workload(pod(container())))
        classes = (outcome.class_as_written, outcome.class_defaulted, outcome.class_reached)
        assert classes == (QOSClass.BEST_EFFORT, QOSClass.BEST_EFFORT, QOSClass.BURSTABLE)


def test_only_conflicting_defaults_that_the_pod_got_are_told():
    """Another pod of the namespace may not care."""
    cpu_and_memory = limit_range("a", default="cpu=1,memory=1Gi"), limit_range("b", default="cpu=2,memory=1Gi")
    admissions = Admissions(cluster(*cpu_and_memory))
    conflicts = admissions.create(workload(pod(container()))).conflicts
    assert [(each.side, each.resource, each.limit_ranges) for each in conflicts] == [
        ("limits", "cpu", ("a", "b")),
        ("requests", "cpu", ("a", "b")),
    ]
    assert admissions.create(workload(pod(ONE_CPU))).conflicts == ()


@pytest.mark.parametrize(
    ("given", "kind", "is_stored"),
    [
        pytest.param(pod(container(limits="cpu=9")), "Deployment", True, id="a LimitRange refuses its pods"),
        pytest.param(pod(container(limits="cpu=9")), "Pod", False, id="a pod has nothing around it"),
        pytest.param(pod(container(requests="cpu=2", limits="cpu=1")), "Deployment", False, id="wrong as written"),
        pytest.param(pod(container(requests="cpu=2")), "Deployment", True, id="wrong with a default limit"),
    ],
)
def test_the_object_around_a_refused_template_is_stored_unless_it_is_wrong_itself(given, kind, is_stored):
    """Its controller then keeps trying."""
    bounds = limit_range("lr", max="cpu=3", default="cpu=1")
    outcome = Admissions(cluster(bounds)).create(workload(given, kind=kind))
    assert outcome.refusal is not None
    assert outcome.holder_is_stored is is_stored


class TestNamespaces:
    """Whether one that is not listed exists depends on who made the list."""

    LISTED = (Namespace(ObjectMeta("shop")),)

    @pytest.mark.parametrize(
        ("namespace", "knows_all", "step"),
        [
            ("shop", True, None),
            ("stall", False, None),
            ("stall", True, Step.NAMESPACE_LIFECYCLE),
            ("default", True, None),
            ("kube-system", True, None),
        ],
    )
    def test_an_unlisted_namespace(self, namespace, knows_all, step):
        """Those that an API server creates itself are always there."""
        admissions = Admissions(cluster(namespaces=self.LISTED, knows_all_namespaces=knows_all))
        outcome = admissions.create(workload(pod(ONE_CPU), namespace=namespace))
        assert outcome.refused_by is step
        if step is not None:
            assert (outcome.refusal.code, outcome.refusal.message) == (Code.NOT_FOUND, 'namespaces "stall" not found')
            assert not outcome.holder_is_stored


class TestResize:
    """The same checks for pods that run already."""

    def test_only_what_is_more_is_charged_and_for_every_pod(self):
        """Two of three find room."""
        admissions = Admissions(cluster(quota(hard="requests.cpu=5")))
        created = admissions.create(workload(pod(ONE_CPU), replicas=3))
        larger = workload(pod(container(limits="cpu=2,memory=1Gi")))
        outcome = admissions.resize(created.first.pod, larger, created.admitted)
        assert (outcome.operation, outcome.pods, outcome.admitted) == (Operation.RESIZE, 3, 2)
        assert "requested: requests.cpu=1, used: requests.cpu=5, limited: requests.cpu=5" in outcome.refusal.message

    def test_what_changes_is_recorded(self):
        """Before and after."""
        admissions = Admissions(cluster())
        created = admissions.create(workload(pod(ONE_CPU)))
        outcome = admissions.resize(created.first.pod, workload(pod(container(limits="cpu=2,memory=1Gi"))))
        (step,) = (result for result in outcome.first.steps if result.step is Step.RESIZE)
        assert [(each.path, each.resource, str(each.before), str(each.after)) for each in step.changes] == [
            ("spec.containers[0].resources.requests", "cpu", "1", "2"),
            ("spec.containers[0].resources.limits", "cpu", "1", "2"),
        ]

    def test_the_class_may_not_change(self):
        """Nor what it was admitted with."""
        admissions = Admissions(cluster())
        created = admissions.create(workload(pod(ONE_CPU)))
        burstable = workload(pod(container(requests="cpu=500m", limits="cpu=1,memory=1Gi")))
        outcome = admissions.resize(created.first.pod, burstable)
        assert outcome.refused_by is Step.RESIZE
        assert "Pod QOS Class may not change" in outcome.refusal.message


def test_priority_classes_are_the_clusters():
    """They have no namespace."""
    given = ClusterPolicies(Policies(priority_classes=(priority_class("high", 7),)))
    outcome = Admissions(given).create(workload(pod(ONE_CPU, priority_class_name="high")))
    assert outcome.first.pod.spec.priority == 7
