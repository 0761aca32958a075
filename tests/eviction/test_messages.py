from __future__ import annotations

import pytest

from admission.pods import container, resources
from eviction.nodes import MI, pod, pod_of, using
from podqos.eviction.messages import Shortage, local_storage_text, node_condition_text, pressure_text
from podqos.eviction.pods import LocalStorageExcess, LocalStorageLimit
from podqos.eviction.signals import NodeCondition
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, FsStats, MemoryStats, PodStats

SHORT = Shortage("memory", Quantity.parse("100Mi"), Quantity.of_units(50 * MI, "BinarySI"))
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "


def memory(**working_sets: int) -> PodStats:
    containers = (ContainerStats(name, MemoryStats(working_set_bytes=used)) for name, used in working_sets.items())
    return PodStats(containers=tuple(containers), memory=MemoryStats(working_set_bytes=sum(working_sets.values())))


def test_the_containers_above_their_own_request_are_named_in_the_order_of_the_statistics():
    web = pod_of(
        "web",
        container("app", requests="memory=0.5Gi"),
        container("proxy"),
        init_containers=(container("setup", requests="memory=1Mi"),),
    )
    text = pressure_text(SHORT, web, memory(setup=2 * MI, proxy=3000, app=512 * MI, debugger=9 * MI))
    assert text.message == (
        f"{LOW}Container setup was using 2Mi, request is 1Mi, has larger consumption of memory. "
        "Container proxy was using 3000, request is 0, has larger consumption of memory. "
    )
    assert text.annotations == {
        "offending_containers": "setup,proxy",
        "offending_containers_usage": "2Mi,3000",
        "starved_resource": "memory",
    }


def test_a_pod_level_request_is_quoted_even_when_usage_is_below_it():
    web = pod("web", resources=resources("memory=1Gi"))
    text = pressure_text(SHORT, web, memory(main=MI))
    assert "Pod web was using 1Mi, request is 1Gi, has larger consumption of memory. " in text.message
    assert text.annotations["offending_pod"] == "web"
    assert text.annotations["offending_pod_usage"] == "1Mi"
    assert "Pod web" not in pressure_text(SHORT, web, memory(main=MI), parse_version("1.33")).message


def test_a_pod_without_statistics_gets_no_annotations():
    text = pressure_text(SHORT, pod("web"), None)
    assert (text.message, text.annotations) == (LOW, {})


def test_disk_use_of_a_container_needs_both_figures():
    shortage = Shortage("ephemeral-storage", Quantity.parse("1Gi"), Quantity.of_units(7, "BinarySI"))
    web = pod("web", "ephemeral-storage=10")
    both = pressure_text(shortage, web, using(web, rootfs=8, logs=3))
    assert both.annotations["offending_containers_usage"] == "11"
    half = PodStats(containers=(ContainerStats("main", rootfs=FsStats(used_bytes=99)),))
    assert pressure_text(shortage, web, half).annotations["offending_containers"] == ""


@pytest.mark.parametrize("resource", ["inodes", "pids"])
def test_nobody_is_blamed_for_inodes_and_process_ids(resource):
    web = pod("web")
    text = pressure_text(Shortage(resource, Quantity.parse("9"), Quantity.parse("1")), web, using(web, 5, logs=9))
    assert text.message == f"The node was low on resource: {resource}. Threshold quantity: 9, available: 1. "
    assert text.annotations["starved_resource"] == resource


def test_up_to_1_25_messages_have_no_amounts():
    web = pod("web", "memory=1Mi")
    text = pressure_text(SHORT, web, using(web, 2), parse_version("1.25"))
    assert text.message == (
        "The node was low on resource: memory. Container main was using 2Mi, which exceeds its request of 1Mi. "
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (LocalStorageLimit.EMPTY_DIR, 'Usage of EmptyDir volume "cache" exceeds the limit "512Mi". '),
        (LocalStorageLimit.POD, "Pod ephemeral local storage usage exceeds the total limit of containers 512Mi. "),
        (LocalStorageLimit.CONTAINER, 'Container cache exceeded its local ephemeral storage limit "512Mi". '),
    ],
)
def test_an_exceeded_limit_is_quoted_in_canonical_form(kind, message):
    text = local_storage_text(LocalStorageExcess(kind, "cache", 10**9, Quantity.parse("0.5Gi")))
    assert (text.message, text.annotations) == (message, {})


def test_several_conditions_are_listed_in_order_of_name():
    text = node_condition_text([NodeCondition.PID_PRESSURE, NodeCondition.DISK_PRESSURE])
    assert text == "The node had condition: [DiskPressure PIDPressure]. "
