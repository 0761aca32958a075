"""From workloads to the pods of a node."""

from __future__ import annotations

import pytest

from admission.pods import container
from podqos.model.pod import ObjectMeta, Pod, PodSpec, PodStatus, Workload
from podqos.orders.pods import NodePod, names_by_workload, pods_on_node


def workload(kind: str = "Deployment", replicas: int | None = None, phase: str = "", uid: str = "") -> Workload:
    """Make a workload ``web`` in namespace ``shop``."""
    metadata = ObjectMeta("web", "shop", uid)
    pod = Pod(metadata, PodSpec(containers=(container(),)), PodStatus(phase))
    return Workload(kind, metadata, pod, "" if kind == "Pod" else "spec.template", replicas)


def pods(given: Workload, *named: str) -> list[NodePod]:
    return list(pods_on_node(given, named))


COUNTS = {
    "one": (workload(), (), ["web-0"]),
    "replicas": (workload(replicas=3), (), ["web-0", "web-1", "web-2"]),
    "none": (workload(replicas=0), (), []),
    "one is known by name": (workload(replicas=3), ("web-7d8b-x2k9p",), ["web-7d8b-x2k9p", "web-0", "web-1"]),
    "some of a StatefulSet": (workload("StatefulSet", replicas=3), ("shop/web-1",), ["web-1", "web-0", "web-2"]),
    "more are known than it should have": (workload(), ("web-a", "shop/web-b"), ["web-a", "web-b"]),
    "names of other namespaces do not count": (workload(), ("bank/web-1", "other-1"), ["web-0"]),
    "one of a DaemonSet": (workload("DaemonSet"), (), ["web"]),
    "a pod has its own name": (workload("Pod"), ("web-1",), ["web"]),
    "a template is for others": (workload("PodTemplate"), (), []),
}


@pytest.mark.parametrize(("given", "named", "expected"), COUNTS.values(), ids=COUNTS)
def test_how_many_pods_a_workload_has_and_what_they_are_called(given, named, expected):
    found = pods(given, *named)
    assert [entry.pod.metadata.name for entry in found] == expected
    assert all(entry.workload == "shop/web" for entry in found)
    assert len({entry.pod.metadata.uid for entry in found}) == len(found)


def test_a_named_pod_belongs_to_the_workload_with_the_longest_name_it_begins_with():
    named = ["shop/web-api-x", "web-y", "bank/web-z", "shop/web-api", "other-1"]
    assert names_by_workload({"shop/web", "shop/web-api", "bank/web"}, named) == {
        "shop/web": ["shop/web-y"],
        "shop/web-api": ["shop/web-api-x"],
        "bank/web": ["bank/web-y", "bank/web-z"],
    }


def test_a_deployment_and_a_daemon_set_of_one_name_are_two_pods():
    (first,), (second,) = pods(workload("Deployment"), "web-0"), pods(workload("DaemonSet"), "web-0")
    assert first.pod.key == second.pod.key
    assert first.pod.metadata.uid != second.pod.metadata.uid


def test_a_live_pod_is_taken_as_it_is():
    live = workload("Pod", uid="u")
    assert pods(live)[0].pod is live.pod


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_left_out(phase):
    assert pods(workload("Pod", phase=phase, uid="u")) == []
