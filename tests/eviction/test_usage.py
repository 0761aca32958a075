from __future__ import annotations

import pytest

from admission.pods import container, resources
from eviction.nodes import MI, pod, pod_of, using, volume
from podqos.eviction.pods import request_of, usage_of
from podqos.eviction.signals import INODES, PIDS, DiskUse
from podqos.model.pod import EmptyDir, Present
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.stats import FsStats, MemoryStats, PodStats, ProcessStats

PRESENT = Present()
POD = pod(
    "web",
    volumes=(
        volume("scratch", empty_dir=EmptyDir()),
        volume("tmpfs", empty_dir=EmptyDir(medium="Memory")),
        volume("host", host_path=PRESENT),
        volume("token"),
    ),
)
STATS = using(
    POD, 5, rootfs=1, logs=10, volumes={"scratch": 100, "tmpfs": 1000, "host": 10_000, "token": 10**5}, processes=7
)


@pytest.mark.parametrize(
    ("disk_use", "used"),
    [
        ((), 0),
        ((DiskUse.ROOTFS,), 1),
        ((DiskUse.LOGS,), 10),
        ((DiskUse.LOCAL_VOLUMES,), 10_100),
        (tuple(DiskUse), 10_111),
    ],
)
@pytest.mark.parametrize("resource", [EPHEMERAL_STORAGE, INODES])
def test_disk_use_adds_up_the_parts_that_count(disk_use, used, resource):
    """Memory-backed, secret and persistent volumes are not on the node's disk."""
    assert usage_of(POD, STATS, resource, disk_use) == used


def test_memory_is_the_working_set_and_processes_are_counted():
    assert usage_of(POD, STATS, MEMORY) == 5 * MI
    assert usage_of(POD, STATS, PIDS) == 7


@pytest.mark.parametrize("resource", [MEMORY, PIDS, EPHEMERAL_STORAGE, INODES])
def test_missing_figures_count_as_zero(resource):
    assert usage_of(POD, PodStats(), resource, tuple(DiskUse)) == 0
    empty = PodStats(memory=MemoryStats(), process_stats=ProcessStats(), ephemeral_storage=FsStats())
    assert usage_of(POD, empty, resource, tuple(DiskUse)) == 0


@pytest.mark.parametrize(
    ("given", "resource", "request_text"),
    [
        (pod("a"), MEMORY, "0"),
        (pod("a", "memory=64Mi"), MEMORY, "64Mi"),
        (pod_of("a", container("x", requests="memory=1Mi"), container("y", requests="memory=2Mi")), MEMORY, "3Mi"),
        (pod("a", "memory=1Mi", init_containers=(container("i", requests="memory=5Mi"),)), MEMORY, "5Mi"),
        (
            pod(
                "a",
                "memory=1Mi",
                init_containers=(container("i", requests="memory=5Mi", restart_policy="Always"),),
            ),
            MEMORY,
            "6Mi",
        ),
        # Overhead counts only on top of something.
        (pod("a", "memory=1Mi", overhead=resources("memory=2Mi").requests), MEMORY, "3Mi"),
        (pod("a", overhead=resources("memory=2Mi").requests), MEMORY, "0"),
        # Pod-level resources stand alone, even where they say nothing about the resource.
        (pod("a", "memory=1Mi", resources=resources("memory=9Mi")), MEMORY, "9Mi"),
        (pod("a", "memory=1Mi", resources=resources(limits="cpu=1")), MEMORY, "0"),
        (pod("a", "ephemeral-storage=1Gi", resources=resources("memory=9Mi")), EPHEMERAL_STORAGE, "0"),
        (pod("a", "memory=1Mi", resources=resources()), MEMORY, "1Mi"),
        (pod("a", "ephemeral-storage=1Gi"), INODES, "0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_request_usage_is_held_against(given, resource, request_text):
    assert request_of(given, resource) == Quantity.parse(request_text)


def test_before_1_34_pod_level_resources_are_not_looked_at():
    given = pod("a", "memory=1Mi", resources=resources("memory=9Mi"))
    assert request_of(given, MEMORY, parse_version("1.33")) == Quantity.parse("1Mi")
