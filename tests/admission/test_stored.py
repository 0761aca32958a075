"""The pod as stored, where perhaps only a part of the cluster is known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podqos.admission.policies import ClusterPolicies, Policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.admission.stored import PodStore, Stored, WhyNot
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, QOSClass, Workload
from podqos.model.policy import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
    NamespaceStatus,
    Overhead,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
)
from podqos.model.quantity import Quantity
from podqos.qos.classes import classify

GIB = Quantity.parse("1Gi")
KATA = RuntimeClass(ObjectMeta("kata"), overhead=Overhead({"memory": GIB}))
DEFAULTS = LimitRange(ObjectMeta("gold"), LimitRangeSpec((LimitRangeItem("Container", default={"memory": GIB}),)))


def workload(kind: str = "Pod", metadata: ObjectMeta | None = None, pod_path: str = "", **spec: object) -> Workload:
    metadata = metadata or ObjectMeta("web")
    pod = Pod(metadata, PodSpec(containers=(Container("app", "app"),), **spec))
    return Workload(kind, metadata, pod, pod_path)


def storing(*, namespaces: tuple[Namespace, ...] = (), **policies: object) -> PodStore:
    given = policies.pop("priority_classes", ())
    return PodStore(ClusterPolicies(Policies(priority_classes=(*SYSTEM_CLASSES, *given), **policies), namespaces))


@pytest.mark.parametrize("cluster", [None, ClusterPolicies(Policies(priority_classes=SYSTEM_CLASSES))])
def test_the_classes_of_the_system_are_always_known(cluster):
    stored = PodStore(cluster).store(workload(priority_class_name="system-node-critical"))
    assert stored.pod.spec.priority == 2_000_001_000
    assert stored.pod.is_node_critical
    assert stored.unknown == ()


def test_a_pod_that_nothing_concerns_stays_the_same_object():
    given = workload()
    assert storing(runtime_classes=(KATA,)).store(given) == PodStore().store(given) == Stored(given.pod)
    assert PodStore().store(given).pod is given.pod


def test_a_stored_pod_is_not_stored_again_but_the_pods_of_a_stored_template_are():
    live = ObjectMeta("web", uid="u")
    by_policies = storing(limit_ranges=(DEFAULTS,))
    assert by_policies.store(workload(metadata=live)).changes == ()
    assert by_policies.store(workload("Deployment", live, "spec.template")).changes != ()


def test_an_unknown_class_hides_no_change_of_a_policy_of_the_same_name():
    stored = storing(limit_ranges=(DEFAULTS,)).store(workload(priority_class_name="gold"))
    assert [(missing.kind, missing.name) for missing in stored.unknown] == [("PriorityClass", "gold")]
    assert {change.source for change in stored.changes} == {"gold"}
    assert all(change.path.startswith("spec.containers") for change in stored.changes)


@pytest.mark.parametrize("limit_ranges", [(), (DEFAULTS,)], ids=["priority alone", "the whole chain"])
def test_an_unknown_class_agrees_with_what_the_pod_states(limit_ranges):
    given = workload(priority_class_name="gold", priority=7, preemption_policy="Never", runtime_class_name="gvisor")
    given = replace(given, pod=replace(given.pod, spec=replace(given.pod.spec, overhead={"memory": GIB})))
    stored = storing(limit_ranges=limit_ranges).store(given)
    assert (stored.refusal, stored.pod.spec.priority, stored.pod.spec.overhead) == (None, 7, {"memory": GIB})
    assert [missing.kind for missing in stored.unknown] == ["PriorityClass", "RuntimeClass"]


@pytest.mark.parametrize("limit_ranges", [(), (DEFAULTS,)], ids=["priority alone", "the whole chain"])
def test_an_unknown_class_is_not_the_global_default(limit_ranges):
    normal = PriorityClass(ObjectMeta("normal"), 1000, global_default=True)
    policies = storing(limit_ranges=limit_ranges, priority_classes=(normal,))
    assert policies.store(workload(priority_class_name="gold")).pod.spec.priority == 0
    assert policies.store(workload()).pod.spec.priority == 1000


def test_the_overhead_of_a_runtime_class_is_added():
    stored = storing(runtime_classes=(KATA,)).store(workload(runtime_class_name="kata"))
    assert stored.pod.spec.overhead == {"memory": GIB}
    assert [change.source for change in stored.changes] == ["kata"]


def test_a_quota_refuses_nothing_here_and_is_named():
    stored = storing(resource_quotas=(ResourceQuota(ObjectMeta("none")),)).store(workload())
    assert stored.refusal is None
    assert [(each.kind, each.name, each.why) for each in stored.unapplied] == [
        ("ResourceQuota", "none", WhyNot.NOT_CHARGED)
    ]


def test_a_namespace_that_is_going_takes_no_new_pods():
    going = Namespace(ObjectMeta("default"), NamespaceStatus("Terminating"))
    stored = storing(namespaces=(going,)).store(workload())
    assert stored.refusal is not None
    assert "being terminated" in stored.refusal.message


def test_what_is_wrong_as_written_is_no_refusal_by_policies():
    """The manifest itself is at fault: told by whoever validates it."""
    stored = storing(limit_ranges=(DEFAULTS,)).store(workload(metadata=ObjectMeta("Not_A_Name")))
    assert stored.refusal is None
    assert classify(stored.pod).qos_class is QOSClass.BURSTABLE
