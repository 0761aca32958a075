"""What a guard takes from its kubelet, and what it keeps of that."""

from __future__ import annotations

import pytest

from guard.api_server import ApiServer
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import ONCE
from podqos.errors import HostError
from podqos.eviction.signals import Signal
from podqos.guard.settings import (
    OOM_SCORE_ADJ,
    GuardSettings,
    KubeletSettingsFound,
    OwnThreshold,
    agent_config,
    ask_kubelet,
    cgroups_of,
    eviction_config,
    find_kubelet,
)
from podqos.host.linux.procfs import Procfs
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, parse_version
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_settings import CgroupVersion

HARD = {"memory.available": "300Mi", "pid.available": "10%", "nodefs.available": "10%", "imagefs.available": "15%"}


def settings(own=None, **fields):
    return GuardSettings(node="n", kubelet=KubeletConfiguration(**fields), own_threshold=own)


def thresholds(given):
    return {
        (each.signal, each.is_hard): each.value.quantity and str(each.value.quantity)
        for each in eviction_config(given, 64 << 30).thresholds
    }


def test_thresholds_of_memory_and_process_ids_are_the_kubelets_and_disks_are_left_to_it():
    found = thresholds(settings(eviction_hard=HARD))
    assert found == {
        (Signal.MEMORY, True): "300Mi",
        (Signal.PID, True): None,
        (Signal.ALLOCATABLE_MEMORY, True): "300Mi",
    }
    assert not eviction_config(settings(eviction_hard=HARD), 64 << 30).local_storage_capacity_isolation


def test_a_reaction_makes_hard_thresholds_of_memory_that_growth_cannot_cross_within_it():
    own = OwnThreshold(reaction_us=500_000, bytes_per_second=1 << 30)
    soft = {"eviction_soft": {"memory.available": "1Gi"}, "eviction_soft_grace_period": {"memory.available": "1m"}}
    found = thresholds(settings(own, eviction_hard=HARD, **soft))
    # 512Mi in half a second, above the mark at which the kernel of such a machine kills.
    least = Quantity.of_units((512 << 20) + machine(64 << 30).watermarks.min_bytes, "BinarySI")
    assert found[Signal.MEMORY, True] == found[Signal.ALLOCATABLE_MEMORY, True] == str(least)
    assert found[Signal.MEMORY, False] == "1Gi"


def test_a_guard_dies_last_and_stays_in_its_own_cgroup():
    assert settings().configuration.oom_score_adj == OOM_SCORE_ADJ == -999
    assert settings().is_delegated


def test_without_cgroups_for_pods_there_is_nothing_to_watch():
    with pytest.raises(HostError, match="cgroupsPerQOS"):
        cgroups_of(settings(cgroups_per_qos=False), CgroupVersion.V2, Procfs())


def test_by_default_nothing_is_carried_out():
    assert agent_config(settings(), CgroupVersion.V2, Procfs()).shadow


def cluster_at(url):
    return Cluster(Access(server=url), patience=ONCE)


def test_the_last_known_settings_count_at_once_and_what_the_kubelet_says_is_kept(tmp_path):
    api, state = ApiServer(), tmp_path / "state"
    api.configz = {"cgroupRoot": "/here", "evictionHard": {"memory.available": "7Mi"}}
    with api.serving(), cluster_at(api.url) as cluster:
        found = find_kubelet(cluster, api.node, state, None)
        assert (found.configuration.cgroup_root, found.trouble) == ("/here", "")
        api.configz = {"cgroupRoot": "/there"}
        api.requests.clear()
        assert find_kubelet(cluster, api.node, state, None) == found
        assert not api.requests, "a server that hangs delays nothing"
        newer = ask_kubelet(cluster, api.node, state, None)
        assert newer.configuration.cgroup_root == "/there"
    with cluster_at("http://127.0.0.1:1") as cluster:
        assert find_kubelet(cluster, api.node, state, None) == newer
        with pytest.raises(HostError, match="did not answer"):
            ask_kubelet(cluster, api.node, state, None)


def test_where_the_configuration_is_given_only_the_version_is_asked_for_and_kept(tmp_path):
    api, given = ApiServer(), KubeletConfiguration(cgroup_root="/given")
    api.version = "v1.34.0"
    with api.serving(), cluster_at(api.url) as cluster:
        assert find_kubelet(cluster, api.node, tmp_path, given) == KubeletSettingsFound(given, LATEST)
        assert not api.requests
        asked = ask_kubelet(cluster, api.node, tmp_path, given)
        assert asked == KubeletSettingsFound(given, parse_version("1.34"))
        assert [each.path for each in api.requests] == ["/version"]
        assert find_kubelet(cluster, api.node, tmp_path, given) == asked
        assert find_kubelet(cluster, api.node, tmp_path, None).configuration != given, "it is asked for where needed"


def test_settings_that_never_were_known_or_are_another_nodes_are_not_made_up(tmp_path):
    def local(*_):
        raise HostError("no kubelet is here")

    api = ApiServer()
    with api.serving(), cluster_at(api.url) as cluster:
        find_kubelet(cluster, api.node, tmp_path, None)
    with cluster_at("http://127.0.0.1:1") as cluster:
        with pytest.raises(HostError, match="--kubelet-config"):
            find_kubelet(cluster, "node-2", tmp_path, None, local)
        (tmp_path / "kubelet.json").write_text("{")
        with pytest.raises(HostError, match="did not answer"):
            find_kubelet(cluster, api.node, tmp_path, None, local)
