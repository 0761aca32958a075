"""How much is left for whom: the kubelet's figure, the kernel's, and which OOM comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import guaranteed, pod
from orders.nodes import GI, MI, evicted, orders, settings, snapshot, using
from podqos.eviction.manager import ManagerState, configure, synchronize
from podqos.eviction.signals import Layout, Observation, Signal, SignalObservation
from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import charge
from podqos.kernel.growth import grow
from podqos.kernel.memcg import Kind
from podqos.kernel.memory import machine
from podqos.kernel.oom import select
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.orders.memory import container_processes, memory_tree, outlook
from podqos.qos.cgroup_settings import CgroupVersion
from sim.growths import drawn

KUBEPODS = "/kubepods.slice"


def limited(node, pods_memory: str | None = None, **fields):
    """Make settings with a limit for all pods."""
    allocatable = {} if pods_memory is None else {"memory": Quantity.parse(pods_memory)}
    return settings(node, node_allocatable=allocatable, **fields)


def test_the_pods_cgroup_runs_out_before_the_machine_does():
    """Four of 16 GiB are reserved and enforced: at 12 GiB the pods meet their limit, with 4 GiB free on the machine."""
    node = snapshot(
        using(pod("greedy", "memory=1Gi"), "8Gi"), using(guaranteed("g", "4Gi"), "3Gi"), memory_bytes=16 * GI
    )
    plan = limited(node, "12Gi")
    seen = outlook(node, plan)
    assert seen.domain.path == KUBEPODS
    assert seen.first_oom.until_oom_bytes == GI
    assert seen.machine.until_oom_bytes > 4 * GI
    assert outlook(node, limited(node)).domain.path == ROOT

    memory = memory_tree(node, plan)
    growing, _ = container_processes(node, plan)
    result = charge(memory, growing.processes[0].cgroup, Kind.ANON, 2 * GI)
    assert result.out_of_memory is not None
    assert (result.out_of_memory.path, result.charged_bytes) == (KUBEPODS, GI)
    processes = [process for each in container_processes(node, plan) for process in each.processes]
    victim = select(processes, result.out_of_memory.oom_total_pages, KUBEPODS)
    assert victim is not None
    assert victim.victim.process == growing.processes[0]


def test_a_containers_own_limit_comes_before_all():
    node = snapshot(using(guaranteed("g", "4Gi"), "3Gi"), memory_bytes=16 * GI)
    plan = limited(node, "12Gi")
    memory = memory_tree(node, plan)
    (only,) = container_processes(node, plan)
    course = grow(memory, only.processes[0].cgroup)
    assert (course.room.path, course.until_oom_bytes) == (only.processes[0].cgroup, GI)


def test_page_cache_in_use_is_pressure_to_the_kubelet_and_none_to_the_kernel():
    """The reader holds 12 GiB of page cache: evicted by the kubelet, though the kernel could take the cache back."""
    reader = using(pod("reader", "memory=1Gi"), "13Gi", anon="1Gi")
    other = using(guaranteed("other", "2Gi"), "1900Mi")
    node = snapshot(reader, other, memory_bytes=15 * GI)
    seen = outlook(node, limited(node))
    assert seen.available_bytes == 148 * MI
    assert seen.machine.until_oom_bytes > 12 * GI

    figures = Observation({Signal.MEMORY: SignalObservation(seen.available_bytes, 15 * GI)}, node.stats)
    config = configure(KubeletConfiguration(eviction_hard={"memory.available": "500Mi"}), layout=Layout.SINGLE)
    done = synchronize(config, ManagerState(), now_us=0, observation=figures, pods=[entry.pod for entry in node.pods])
    assert [command.pod.metadata.name for command in done.commands] == ["reader"]
    assert evicted(orders(node))[0] == "reader"

    memory = memory_tree(node, limited(node))
    growing = container_processes(node, limited(node))[1].processes[0].cgroup
    assert charge(memory, growing, Kind.ANON, 100 * MI).out_of_memory is None


def test_without_page_cache_the_kernel_has_less_than_the_kubelet_thinks():
    node = snapshot(using(pod("a"), "15Gi"), memory_bytes=16 * GI)
    seen = outlook(node, limited(node))
    kept = machine(16 * GI).watermarks.min_bytes
    assert seen.available_bytes - seen.machine.until_oom_bytes == kept > 100 * MI


def test_memory_outside_all_pods_counts_for_both():
    node = snapshot(using(pod("a"), "1Gi"), memory_bytes=16 * GI, system_bytes=2 * GI)
    less = outlook(node, limited(node))
    more = outlook(snapshot(using(pod("a"), "1Gi"), memory_bytes=16 * GI), limited(node))
    assert more.available_bytes - less.available_bytes == 2 * GI
    assert more.machine.until_oom_bytes - less.machine.until_oom_bytes == 2 * GI


@pytest.mark.parametrize("version", list(CgroupVersion))
def test_limits_of_the_plan_reach_the_model_in_both_versions(version):
    node = snapshot(using(guaranteed("g", "4Gi"), "1Gi"), memory_bytes=16 * GI)
    memory = memory_tree(node, limited(node, "12Gi", cgroup_version=version))
    limits = {memcg.path.rpartition("/")[2]: memcg.settings.max_bytes for memcg in memory}
    assert limits["kubepods.slice"] == 12 * GI
    assert limits["kubepods-podg.slice"] == limits["cri-containerd-main.scope"] == 4 * GI
    group = {memcg.path: memcg.settings.oom_group for memcg in memory if "scope" in memcg.path}
    assert list(group.values()) == [version is CgroupVersion.V2]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_the_tree_holds_exactly_what_the_snapshot_says(anon, cache):
    used = [
        using(pod(f"p{index}", "memory=1Gi"), f"{size + extra}Gi", anon=f"{size}Gi", inactive_file=f"{extra}Gi")
        for index, (size, extra) in enumerate(zip(anon, cache, strict=False))
    ]
    node = snapshot(*used, memory_bytes=64 * GI)
    usage = memory_tree(node, limited(node)).usage()
    assert usage.anon_bytes == sum(anon) * GI
    assert usage.working_set_bytes == sum(
        container.working_set_bytes for entry in node.pods for container in entry.containers
    )
    assert usage.inactive_file_bytes == sum(cache[: len(anon)]) * GI


@pytest.mark.parametrize("seed", [*range(16), 327, 434, 815, 1121])
def test_what_the_kernel_has_left_is_what_the_forecast_lets_a_container_grow(seed):
    """With page cache, swap (327) and protected memory (434, 815, 1121); the container has no limit of its own."""
    setting = drawn(seed).unlimited()
    growing = setting.growing()
    seen = outlook(growing.snapshot, growing.settings)
    assert seen.domain.path == growing.course.room.path
    # Reclaim swaps whole pages of each cgroup: every time a few less than the sum.
    tolerance = MI if setting.swap_bytes else 0
    assert abs(seen.first_oom.until_oom_bytes - growing.until_oom_bytes) <= tolerance
