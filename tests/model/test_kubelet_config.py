from __future__ import annotations

import pytest

from podqos.errors import InvalidConfiguration
from podqos.model.kubelet_config import (
    API_VERSION,
    KIND,
    KubeletConfiguration,
    cpu_set,
    kubelet_configuration,
)
from podqos.model.profile import profile_for
from podqos.model.quantity import Quantity


def configuration(**settings: object) -> KubeletConfiguration:
    return kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **settings}, "kubelet.yaml")


def test_an_empty_file_means_the_kubelets_defaults():
    config = configuration()
    assert config == KubeletConfiguration()
    assert config.max_pods == 110
    assert config.enforce_node_allocatable == ("pods",)
    assert config.eviction_hard is None
    assert config.eviction_pressure_transition_period == "5m"
    assert config.cpu_cfs_quota_period == "100ms"


def test_fields_have_the_names_of_the_file():
    config = configuration(
        kubeReserved={"cpu": "1"},
        cpuCFSQuota=False,
        cgroupsPerQOS=False,
        singleProcessOOMKill=True,
        memorySwap={"swapBehavior": "LimitedSwap"},
        featureGates={"MemoryQoS": True},
        registerWithTaints=[{"key": "k", "value": "v", "effect": "NoSchedule"}],
        authentication={"anonymous": {"enabled": False}},
    )
    assert config.reserved_for_kube == {"cpu": Quantity.parse("1")}
    assert (config.cpu_cfs_quota, config.cgroups_per_qos, config.single_process_oom_kill) == (False, False, True)
    assert config.memory_swap.swap_behavior == "LimitedSwap"
    assert config.feature_gates == {"MemoryQoS": True}
    assert config.register_with_taints[0].key == "k"


@pytest.mark.parametrize(("given", "read"), [(None, None), ({}, {}), ({"memory.available": "1Gi"},) * 2])
def test_no_hard_thresholds_and_an_empty_map_of_them_are_told_apart(given, read):
    assert configuration(evictionHard=given).eviction_hard == read


def test_zero_means_the_default_where_the_kubelet_says_so():
    config = configuration(maxPods=0, evictionPressureTransitionPeriod="0s", podsPerCore=0)
    assert config.max_pods == 110
    assert config.eviction_pressure_transition_period == "5m"
    assert config.pods_per_core == 0


def test_cores_reserved_by_number_take_the_place_of_both_cpu_reservations():
    config = configuration(
        reservedSystemCPUs="0-2,7", kubeReserved={"cpu": "1", "memory": "1Gi"}, systemReserved={"cpu": "2"}
    )
    assert config.reserved_for_kube == {"memory": Quantity.parse("1Gi")}
    assert config.reserved_for_system == {"cpu": Quantity.parse("4")}
    assert cpu_set("3") == {3}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evictionHrad": {}}, "kubelet.yaml: evictionHrad: unknown field (did you mean evictionHard?)"),
        ({"cgroupsPerQos": True}, "kubelet.yaml: cgroupsPerQos: unknown field (did you mean cgroupsPerQOS?)"),
        (
            {"gpuSharing": 1},
            "kubelet.yaml: gpuSharing: unknown field (it is not a field of KubeletConfiguration v1beta1)",
        ),
        (
            {"kubeReserved": {"cpu": 1}},
            'kubelet.yaml: kubeReserved[cpu]: it is a number, but has to be text (put it in quotes: "1")',
        ),
        (
            {"kubeReserved": {"gpu": "1"}},
            (
                "kubelet.yaml: kubeReserved: 'gpu' cannot be reserved "
                "(the kubelet can reserve cpu, memory, ephemeral-storage, pid)"
            ),
        ),
        ({"systemReserved": {"cpu": "-1"}}, "kubelet.yaml: systemReserved.cpu: -1 is negative (reserve 0 or more)"),
        ({"maxPods": -1}, "kubelet.yaml: maxPods: -1 is negative (use 0 or more)"),
        (
            {"reservedSystemCPUs": "3-1"},
            "kubelet.yaml: reservedSystemCPUs: '3-1' is not a valid list of cores (write it as 0-3,8)",
        ),
        (
            {"cgroupDriver": "systemdd"},
            "kubelet.yaml: cgroupDriver: 'systemdd' is not a valid value (write cgroupfs or systemd)",
        ),
        (
            {"cpuManagerPolicy": "dynamic"},
            "kubelet.yaml: cpuManagerPolicy: 'dynamic' is not a valid value (write none or static)",
        ),
        (
            {"memorySwap": {"swapBehavior": "UnlimitedSwap"}},
            "kubelet.yaml: memorySwap.swapBehavior: 'UnlimitedSwap' is not a valid value (write NoSwap or LimitedSwap)",
        ),
        (
            {"memoryReservationPolicy": "All"},
            "kubelet.yaml: memoryReservationPolicy: 'All' is not a valid value (write None or TieredReservation)",
        ),
        ({"oomScoreAdj": -1001}, "kubelet.yaml: oomScoreAdj: -1001 is out of range (-1000 to 1000)"),
        (
            {"memoryThrottlingFactor": 0},
            "kubelet.yaml: memoryThrottlingFactor: 0.0 is out of range (more than 0, up to 1)",
        ),
        ({"cpuCFSQuotaPeriod": "2s"}, "kubelet.yaml: cpuCFSQuotaPeriod: 2s is out of range (1ms to 1s)"),
        (
            {"cpuCFSQuotaPeriod": "100"},
            (
                'kubelet.yaml: cpuCFSQuotaPeriod: time: missing unit in duration "100" '
                "(write it with its unit, such as 100ms)"
            ),
        ),
        ({"memorySwap": {"swap": "x"}}, "kubelet.yaml: memorySwap: Object contains unknown field `swap`"),
        (
            {"kind": "Pod"},
            (
                "kubelet.yaml: this is Pod of kubelet.config.k8s.io/v1beta1, not a kubelet configuration "
                "(apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration)"
            ),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_settings_are_refused_with_place_and_remedy(settings, message):
    with pytest.raises(InvalidConfiguration) as caught:
        configuration(**settings)
    assert str(caught.value) == message


def test_a_bad_amount_names_its_place():
    with pytest.raises(InvalidConfiguration, match=r"kubelet\.yaml: systemReserved\.memory: '1gi'"):
        configuration(systemReserved={"memory": "1gi"})


# qosReserved (pkg/kubelet/cm: ParseQOSReserved)

GATED = {"featureGates": {"QOSReserved": True}}


@pytest.mark.parametrize(("text", "percent"), [("0%", 0), ("50%", 50), ("100%", 100), ("+7%", 7), ("5%%", 5)])
def test_qos_reserved_is_a_whole_percentage(text, percent):
    config = configuration(qosReserved={"memory": text}, **GATED)
    assert config.qos_reserved_memory_percent() == percent


@pytest.mark.parametrize("text", ["", "50", "a%", "%", "200%", "-1%", "12.5%", " 50%", "50 %", "٥%", "9" * 40 + "%"])
def test_qos_reserved_that_is_no_percentage_is_refused(text):
    with pytest.raises(
        InvalidConfiguration, match=r"kubelet.yaml: qosReserved.memory: .* is not a percentage"
    ) as caught:
        configuration(qosReserved={"memory": text})
    assert "such as 50%" in str(caught.value)


def test_only_memory_can_be_reserved_for_a_class():
    with pytest.raises(InvalidConfiguration, match="qosReserved: 'cpu' cannot be reserved"):
        configuration(qosReserved={"memory": "100%", "cpu": "50%"})


@pytest.mark.parametrize(
    ("gates", "version", "percent"),
    [
        pytest.param({}, (1, 36), None, id="without its gate it is read and has no effect"),
        pytest.param({"QOSReserved": True}, (1, 36), 50, id="with its gate"),
        pytest.param({"AllAlpha": True}, (1, 36), 50, id="with all alpha gates"),
        pytest.param({}, (1, 10), 50, id="before the gate came"),
    ],
)
def test_qos_reserved_needs_its_gate(gates, version, percent):
    config = configuration(qosReserved={"memory": "50%"}, featureGates=gates)
    assert config.qos_reserved_memory_percent(profile_for(version)) == percent


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cgroupDriver", "docker"),
        ("cpuManagerPolicy", "dynamic"),
        ("enforceNodeAllocatable", ["pods", "system"]),
        ("memoryReservationPolicy", "Tiered"),
        ("memorySwap", {"swapBehavior": "UnlimitedSwap"}),
        ("memoryThrottlingFactor", 0),
        ("memoryThrottlingFactor", 1.5),
        ("cpuCFSQuotaPeriod", "2s"),
        ("cpuCFSQuotaPeriod", "0s"),
        ("crashLoopBackOff", {"maxContainerRestartPeriod": "10m"}),
        ("crashLoopBackOff", {"maxContainerRestartPeriod": "soon"}),
    ],
)
def test_what_the_kubelet_would_not_start_with_is_refused_with_what_it_takes(field, value):
    with pytest.raises(InvalidConfiguration, match=rf"^kubelet.yaml: {field}.*\(.+\)$"):
        configuration(**{field: value})


@pytest.mark.parametrize("score", [-1001, 1001])
def test_the_kubelets_own_score_is_one_that_the_kernel_takes(score):
    with pytest.raises(InvalidConfiguration, match="oomScoreAdj"):
        configuration(oomScoreAdj=score)
