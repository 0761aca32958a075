from __future__ import annotations

import pytest

from admission.pods import container
from eviction.nodes import pod, pod_of, using, volume
from podqos.eviction.pods import LocalStorageLimit, local_storage_excess
from podqos.eviction.signals import Layout
from podqos.model.pod import EmptyDir
from podqos.model.profile import profile_for
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, FsStats, PodStats, VolumeStats

EMPTY_DIR, POD, CONTAINER = LocalStorageLimit


def scratch(limit: str | None, medium: str = "") -> dict[str, object]:
    size = None if limit is None else Quantity.parse(limit)
    return {"volumes": (volume("scratch", empty_dir=EmptyDir(medium, size)),)}


@pytest.mark.parametrize(
    ("limit", "medium", "used", "exceeded"),
    [
        ("100", "", 100, False),
        ("100", "", 101, True),
        ("100", "Memory", 101, True),
        ("0", "", 101, False),
        (None, "", 101, False),
    ],
)
def test_an_empty_dir_may_not_exceed_its_size_limit_on_any_medium(limit, medium, used, exceeded):
    """A limit of zero is none."""
    web = pod("web", **scratch(limit, medium))
    found = local_storage_excess(web, using(web, volumes={"scratch": used}), Layout.SINGLE)
    assert (found is not None) is exceeded
    if found is not None:
        assert (found.kind, found.name, found.used_bytes) == (EMPTY_DIR, "scratch", used)


@pytest.mark.parametrize(
    ("limits", "used", "exceeded"),
    [
        ("ephemeral-storage=100", 100, False),
        ("ephemeral-storage=100", 101, True),
        ("ephemeral-storage=0", 1, True),
        ("memory=1", 10**9, False),
    ],
)
def test_a_pod_may_not_exceed_the_sum_of_its_containers_limits(limits, used, exceeded):
    """A limit of zero is one here; a pod without any has none."""
    web = pod("web", limits=limits)
    found = local_storage_excess(web, using(web, ephemeral=used), Layout.SINGLE)
    assert (found is not None and found.kind is POD) is exceeded


@pytest.mark.parametrize(
    ("layout", "exceeded"), [(Layout.SINGLE, True), (Layout.DEDICATED, False), (Layout.SPLIT, False)]
)
def test_a_containers_writable_layer_counts_where_it_shares_the_filesystem_with_the_logs(layout, exceeded):
    web = pod("web", limits="ephemeral-storage=100")
    found = local_storage_excess(web, using(web, logs=60, rootfs=60), layout)
    assert (found is not None and found.kind is CONTAINER) is exceeded
    assert local_storage_excess(web, using(web, logs=101), layout) is not None


def test_a_container_limit_of_zero_is_none():
    web = pod_of("web", container("main", limits="ephemeral-storage=0"), container("b", limits="ephemeral-storage=9"))
    assert local_storage_excess(web, using(web, logs=5, ephemeral=9), Layout.SINGLE) is None


def test_the_first_limit_in_the_order_volume_pod_container_counts():
    web = pod("web", limits="ephemeral-storage=100", **scratch("10"))
    everything = using(web, logs=101, ephemeral=101, volumes={"scratch": 11})
    assert local_storage_excess(web, everything, Layout.SINGLE).kind is EMPTY_DIR
    assert local_storage_excess(web, using(web, logs=101, ephemeral=101), Layout.SINGLE).kind is POD
    assert local_storage_excess(web, using(web, logs=101), Layout.SINGLE).kind is CONTAINER


def test_figures_that_are_missing_exceed_nothing():
    web = pod("web", limits="ephemeral-storage=100", **scratch("10"))
    stats = PodStats(
        containers=(ContainerStats("main", logs=FsStats()),),
        volumes=(VolumeStats("scratch"),),
        ephemeral_storage=FsStats(),
    )
    assert local_storage_excess(web, stats, Layout.SINGLE) is None
    assert local_storage_excess(web, PodStats(), Layout.SINGLE) is None


@pytest.mark.parametrize(("minor", "exceeded"), [(36, None), (37, "proxy")])
def test_since_1_37_a_sidecar_is_held_to_its_own_limit(minor, exceeded):
    """Other init containers are not: they have ended."""
    sidecar = container("proxy", limits="ephemeral-storage=100", restart_policy="Always")
    setup = container("setup", limits="ephemeral-storage=100")
    web = pod_of("web", container("main", limits="ephemeral-storage=1000"), init_containers=(setup, sidecar))
    logs = FsStats(used_bytes=101)
    stats = PodStats(containers=(ContainerStats("setup", logs=logs), ContainerStats("proxy", logs=logs)))
    found = local_storage_excess(web, stats, Layout.SINGLE, profile_for((1, minor)))
    assert (found and (found.kind, found.name)) == (exceeded and (CONTAINER, exceeded))
