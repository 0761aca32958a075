"""Node allocatable, with the worked numbers of the documents the project began with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.clusters import amounts
from podqos.errors import InvalidConfiguration
from podqos.model.kubelet_config import API_VERSION, KIND, KubeletConfiguration, kubelet_configuration
from podqos.model.quantity import Quantity
from podqos.placement.allocatable import node_allocatable
from strategies import resource_lists

RECORDED = Path(__file__).parents[1] / "recordings" / "kubelet"
PLATFORM = {"kube_reserved": {"cpu": "1", "memory": "2Gi"}, "system_reserved": {"cpu": "1", "memory": "2Gi"}}


def allocatable(capacity: dict[str, str], **settings: object) -> dict[str, str]:
    divided = node_allocatable(amounts(**capacity), KubeletConfiguration(**settings))
    return {name: str(amount) for name, amount in divided.allocatable.items()}


def test_the_content_platforms_node_offers_14_cores_and_60_gi_without_thresholds():
    """16 cores and 64Gi less 1 core and 2Gi each for the system and the kubelet, with ``evictionHard: {}``."""
    node = allocatable({"cpu": "16", "memory": "64Gi"}, **PLATFORM, eviction_hard={})
    assert (node["cpu"], node["memory"]) == ("14", "60Gi")


def test_by_default_100_mi_of_memory_are_withheld_for_eviction():
    node = allocatable({"cpu": "16", "memory": "64Gi"}, **PLATFORM)
    assert Quantity.parse(node["memory"]) == Quantity.parse("60Gi") - Quantity.parse("100Mi")
    assert node["cpu"] == "14"


# Capacity 100, hard threshold 5, soft threshold 10; reserved for daemons 5, of which the system's share is 3.
OKD = {
    "kube_reserved": {"memory": "2"},
    "eviction_hard": {"memory.available": "5"},
    "eviction_soft": {"memory.available": "10"},
    "eviction_soft_grace_period": {"memory.available": "30s"},
}


def test_okd_case_1_a_reservation_without_the_soft_threshold_leaves_90_of_which_85_are_safe():
    node = node_allocatable(amounts(memory="100"), KubeletConfiguration(system_reserved={"memory": "3"}, **OKD))
    (coverage,) = node.soft_coverage
    assert node.allocatable["memory"].value == 90
    assert coverage.usable_before_soft.value == 85
    assert not coverage.is_covered


def test_okd_case_2_a_reservation_with_the_soft_threshold_leaves_80_and_85_are_safe():
    node = node_allocatable(amounts(memory="100"), KubeletConfiguration(system_reserved={"memory": "13"}, **OKD))
    (coverage,) = node.soft_coverage
    assert node.allocatable["memory"].value == 80
    assert coverage.usable_before_soft.value == 85
    assert coverage.is_covered


def test_a_node_is_over_reserved_only_where_more_is_reserved_than_there_is():
    """The kubelet starts with everything reserved, and not with a byte more."""
    config = KubeletConfiguration(kube_reserved={"memory": "1Gi", "cpu": "1001m"}, eviction_hard={})
    assert node_allocatable(amounts(cpu="1", memory="1Gi"), config).over_reserved == ("cpu",)


def test_without_a_soft_threshold_there_is_nothing_to_cover():
    assert node_allocatable(amounts(memory="100"), KubeletConfiguration()).soft_coverage == ()


def test_a_soft_threshold_without_a_grace_period_keeps_the_kubelet_from_starting():
    with pytest.raises(InvalidConfiguration, match="grace period must be specified"):
        node_allocatable(amounts(memory="100"), KubeletConfiguration(eviction_soft={"memory.available": "10"}))


@pytest.mark.parametrize(
    ("settings", "pods"),
    [
        pytest.param({}, "110", id="default"),
        pytest.param({"max_pods": 250}, "250", id="maxPods"),
        pytest.param({"pods_per_core": 10}, "40", id="ten per core"),
        pytest.param({"pods_per_core": 100, "max_pods": 250}, "250", id="never above maxPods"),
    ],
)
def test_the_number_of_pods_follows_from_the_configuration_not_from_the_capacity(settings, pods):
    assert allocatable({"cpu": "4", "memory": "8Gi", "pods": "17"}, **settings)["pods"] == pods


def test_huge_pages_are_taken_out_of_memory():
    capacity = {**amounts(memory="8Gi"), "hugepages-2Mi": Quantity.parse("1Gi"), "hugepages-1Gi": Quantity.parse("2Gi")}
    node = node_allocatable(capacity, KubeletConfiguration(eviction_hard={}))
    assert str(node.allocatable["memory"]) == "5Gi"
    assert str(node.enforced["memory"]) == "8Gi"


def test_the_recorded_kubelet_divides_its_node_in_the_same_way():
    """Against a running kubelet v1.36.4."""
    status = json.loads(gzip.decompress((RECORDED / "api_node.json.gz").read_bytes()))["status"]
    settings = json.loads(gzip.decompress((RECORDED / "configz.json.gz").read_bytes()))["kubeletconfig"]
    config = kubelet_configuration({**settings, "apiVersion": API_VERSION, "kind": KIND})
    capacity = {name: Quantity.parse(text) for name, text in status["capacity"].items()}
    divided = node_allocatable(capacity, config)
    assert {name: str(amount) for name, amount in divided.allocatable.items()} == status["allocatable"]


@given(
    resource_lists(),
    *[
        st.dictionaries(
            st.sampled_from(("cpu", "memory", "ephemeral-storage")), st.sampled_from(("0", "500m", "1Gi", "3"))
        )
    ]
    * 2,
    st.dictionaries(st.sampled_from(("memory.available", "nodefs.available")), st.sampled_from(("1Gi", "10%", "0%"))),
)
def test_reserving_never_leaves_more_than_there_is_nor_less_than_nothing(capacity, kube, system, hard):
    config = KubeletConfiguration(kube_reserved=kube, system_reserved=system, eviction_hard=hard)
    divided = node_allocatable(capacity, config)
    for name, amount in capacity.items():
        assert 0 <= divided.allocatable[name].nanos <= divided.capacity[name].nanos
        assert divided.allocatable[name] <= divided.enforced[name] or amount.nanos % 10**9
    assert set(divided.over_reserved) <= set(capacity)
