"""Settings that a kubelet does not report are derived from its Node and its statistics."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.objects.implied_kubelet import KnownMemory, implied_kubelet
from podqos.orders.exhaustion import exhaustion
from podqos.placement.allocatable import node_allocatable

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
CAPACITY = 24682740 * KI
SETTINGS = (
    pytest.param({"systemReserved": {"memory": "14Gi"}, "evictionHard": {"memory.available": "500Mi"}}, id="both"),
    pytest.param({"systemReserved": {"memory": "1Gi"}, "kubeReserved": {"memory": "100M"}}, id="not-whole-pages"),
    pytest.param({"evictionHard": {"memory.available": "5%"}}, id="percent"),
    pytest.param({"systemReserved": {"memory": "3Gi"}}, id="default-threshold"),
    pytest.param({}, id="defaults"),
)


def config_of(settings: dict) -> KubeletConfiguration:
    return KubeletConfiguration(
        system_reserved=settings.get("systemReserved", {}),
        kube_reserved=settings.get("kubeReserved", {}),
        eviction_hard=settings.get("evictionHard"),
    )


def known_of(settings: dict, *, has_limit: bool) -> tuple[KnownMemory, int]:
    """Return what the Node and the statistics of such a kubelet state, and what pods may use together."""
    divided = node_allocatable({MEMORY: Quantity.of_units(CAPACITY, "BinarySI")}, config_of(settings))
    limit = divided.enforced[MEMORY].value
    in_pages = limit // 4096 * 4096
    known = KnownMemory(CAPACITY, 0, divided.allocatable[MEMORY].value, in_pages if has_limit else None)
    return known, limit


def crossed_at(config: KubeletConfiguration) -> dict[Signal, int]:
    """Return how much is used, of the machine and by pods, when each threshold is crossed."""
    divided = node_allocatable({MEMORY: Quantity.of_units(CAPACITY, "BinarySI")}, config)
    limits = {Signal.MEMORY: CAPACITY, Signal.ALLOCATABLE_MEMORY: divided.enforced[MEMORY].value}
    watched = exhaustion(config, {Signal.MEMORY: CAPACITY}, allocatable=divided, profile=LATEST).thresholds
    return {each.signal: limits[each.signal] - each.amount for each in watched if each.signal in limits}


@pytest.mark.parametrize("settings", SETTINGS)
def test_with_statistics_both_thresholds_are_crossed_where_the_kubelets_own_settings_have_them(settings):
    known, _ = known_of(settings, has_limit=True)
    implied = implied_kubelet(known)
    own, found = (
        crossed_at(config_of(settings)),
        crossed_at(KubeletConfiguration() if implied is None else implied.config),
    )
    assert found.keys() == own.keys()
    assert all(abs(found[signal] - own[signal]) < 4096 for signal in own)


@pytest.mark.parametrize("settings", SETTINGS)
def test_without_statistics_pods_still_cross_their_threshold_at_allocatable(settings):
    known, _ = known_of(settings, has_limit=False)
    implied = implied_kubelet(known)
    config = KubeletConfiguration() if implied is None else implied.config
    found = crossed_at(config)[Signal.ALLOCATABLE_MEMORY]
    assert found == crossed_at(config_of(settings))[Signal.ALLOCATABLE_MEMORY] == known.allocatable_bytes


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(KnownMemory(8 * GI), id="nothing"),
        pytest.param(KnownMemory(8 * GI, 0, 8 * GI), id="allocatable-is-capacity"),
        pytest.param(KnownMemory(8 * GI, 0, 8 * GI - 50 * MI), id="less-than-the-default-threshold"),
        pytest.param(KnownMemory(8 * GI, 0, 8 * GI - 100 * MI, 8 * GI), id="defaults"),
        pytest.param(KnownMemory(8 * GI, GI, 7 * GI - 100 * MI), id="huge-pages"),
        pytest.param(KnownMemory(8 * GI, 0, 9 * GI, 16 * GI), id="more-than-there-is"),
    ],
)
def test_what_defaults_lead_to_implies_nothing(known):
    assert implied_kubelet(known) is None


def snapshot(*, summary: bool, config: dict | None) -> str:
    """Return a node 100Mi before its kubelet evicts: it leaves 2 of 16Gi to pods, with a threshold of 500Mi."""
    at = "2026-11-18T00:00:00Z"
    status = {
        "capacity": {"cpu": "2", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "2", "memory": f"{2048 - 500}Mi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    pods = [
        {"metadata": {"name": "leak", "namespace": "default", "uid": "u"}, "spec": spec, "status": {"phase": "Running"}}
    ]
    used = 1400 * MI
    memory = {"usageBytes": used, "workingSetBytes": used, "rssBytes": used}
    whole = {"availableBytes": 600 * MI, "workingSetBytes": 1448 * MI}
    stats = {
        "node": {
            "nodeName": "n1",
            "memory": {"time": at, "availableBytes": 14 * GI, "workingSetBytes": 2 * GI},
            "systemContainers": [{"name": "pods", "memory": whole}],
        },
        "pods": [
            {
                "podRef": {"name": "leak", "namespace": "default", "uid": "u"},
                "containers": [{"name": "c", "memory": memory}],
                "memory": memory,
            }
        ],
    }
    metrics = {
        "metadata": {"name": "leak", "namespace": "default"},
        "containers": [{"name": "c", "usage": {"memory": "1448Mi"}}],
    }
    lines: list[dict] = [
        {"apiVersion": "podqos.dev/v1alpha1", "kind": "ClusterSnapshot", "takenAt": at, "serverVersion": "v1.36.4"},
        {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}, "status": status}]},
        {"apiVersion": "v1", "kind": "PodList", "items": pods},
        {"kind": "NodeSummary", "node": "n1", "summary": stats}
        if summary
        else {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "items": [metrics]},
    ]
    if config is not None:
        lines.append({"kind": "NodeKubelet", "node": "n1", "configz": {"kubeletconfig": config}})
    lines.append({"kind": "End", "lines": len(lines)})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


STATED = {"systemReserved": {"memory": "14Gi"}, "evictionHard": {"memory.available": "500Mi"}}


@pytest.mark.parametrize(
    ("summary", "config", "threshold"),
    [
        pytest.param(True, STATED, "500Mi", id="settings-and-statistics"),
        pytest.param(True, None, "500Mi", id="statistics"),
        pytest.param(False, STATED, "500Mi", id="settings-and-metrics"),
        pytest.param(False, None, "100Mi", id="metrics"),
    ],
)
def test_a_node_with_reservations_has_little_headroom_whatever_is_known_of_its_kubelet(
    tmp_path, capsys, summary, config, threshold
):
    path = tmp_path / "cluster.json"
    path.write_text(snapshot(summary=summary, config=config))
    at = "--snapshot", str(path)
    assert main(["overview", *at]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Least headroom: n1, 100Mi (allocatable) before eviction.\n")
    assert ("assumed: kubelet settings: defaults, except for what the node's allocatable memory implies" in err) is (
        config is None
    )
    assert main(["rank", "n1", *at]) == 0
    out = capsys.readouterr().out
    assert f"100Mi headroom before eviction (allocatableMemory.available < {threshold})." in out
    limit = "2Gi" if threshold == "500Mi" else f"{2048 - 500 + 100}Mi"
    left = "600Mi" if threshold == "500Mi" else "200Mi"
    assert f"The kubelet sees {left} of {limit} available to pods, " in out.replace("\n", " ")
    assert main(["forecast", *at, "--growing", "leak", "--rate", "10Mi/s"]) == 0
    crossed = f"allocatableMemory.available crosses its hard threshold of {threshold} after 10 s"
    assert crossed in capsys.readouterr().out


def test_where_the_kernel_kills_first_the_signal_is_named_all_the_same(tmp_path, capsys):
    path = tmp_path / "cluster.json"
    config = {"systemReserved": {"memory": "601Mi"}, "evictionHard": {"memory.available": "10Mi"}}
    path.write_text(snapshot(summary=True, config=config))
    assert main(["overview", "--snapshot", str(path)]) == 0
    assert "14325Mi (allocatable, OOM kill after " in capsys.readouterr().out
