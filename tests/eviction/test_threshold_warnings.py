from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import ThresholdWarning, WarningKind, threshold_warnings
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import profile_for
from podqos.model.quantity import Quantity

MEMORY = "memory.available"


def soft_and_hard(soft: str, hard: str) -> dict[str, object]:
    return {
        "evictionHard": {"nodefs.available": "10%", MEMORY: hard},
        "evictionSoft": {MEMORY: soft},
        "evictionSoftGracePeriod": {MEMORY: "1m"},
    }


def kinds(document: dict[str, object], **options: object) -> list[tuple[WarningKind, Signal]]:
    found = threshold_warnings(msgspec.convert(document, KubeletConfiguration), **options)
    return [(item.kind, item.signal) for item in found]


def test_a_soft_threshold_that_comes_after_the_hard_one_is_a_warning():
    """It must be reached first, so it must be the larger amount."""
    found = threshold_warnings(msgspec.convert(soft_and_hard("100Mi", "500Mi"), KubeletConfiguration))
    assert found == (
        ThresholdWarning(
            WarningKind.SOFT_AFTER_HARD, Signal.MEMORY, hard=Quantity.parse("500Mi"), soft=Quantity.parse("100Mi")
        ),
    )


@pytest.mark.parametrize(
    ("soft", "hard", "warned"),
    [
        ("500Mi", "500Mi", True),
        ("1Gi", "500Mi", False),
        ("5%", "10%", True),
        ("10%", "5%", False),
        ("5%", "1Gi", False),
    ],
)
def test_soft_and_hard_are_compared_where_they_can_be(soft, hard, warned):
    assert (kinds(soft_and_hard(soft, hard)) == [(WarningKind.SOFT_AFTER_HARD, Signal.MEMORY)]) is warned


@pytest.mark.parametrize(
    ("signal", "warned"),
    [("nodefs.available", True), ("imagefs.available", True), ("pid.available", False)],
)
def test_only_filesystems_are_assumed_to_have_a_size(signal, warned):
    """1% of 100Gi is less than 5Gi; of processes nobody knows how many a node allows."""
    document = {
        "evictionHard": {"nodefs.available": "10%", MEMORY: "100Mi", signal: "5Gi" if warned else "50k"},
        "evictionSoft": {signal: "1%"},
        "evictionSoftGracePeriod": {signal: "1m"},
    }
    found = threshold_warnings(msgspec.convert(document, KubeletConfiguration))
    found = [(item.kind, str(item.assumed_capacity)) for item in found]
    assert found == [(WarningKind.SOFT_AFTER_HARD, "100Gi")] * warned


def test_a_share_and_an_amount_are_compared_at_a_known_capacity():
    document = soft_and_hard("5%", "1Gi")
    assert kinds(document, capacities={Signal.MEMORY: 16 * 2**30}) == [(WarningKind.SOFT_AFTER_HARD, Signal.MEMORY)]
    assert kinds(document, capacities={Signal.MEMORY: 64 * 2**30}) == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, []),
        ({"evictionHard": {"nodefs.available": "10%"}}, [(WarningKind.MEMORY_UNWATCHED, Signal.MEMORY)]),
        ({"evictionHard": {MEMORY: "1Gi"}}, [(WarningKind.DISK_UNWATCHED, Signal.NODEFS)]),
        ({"evictionHard": {MEMORY: "1Gi", "nodefs.available": "0%"}}, []),
        ({"evictionHard": {MEMORY: "1Gi"}, "mergeDefaultEvictionSettings": True}, []),
        ({"evictionHard": {}}, [(WarningKind.MEMORY_UNWATCHED, Signal.MEMORY)]),
        ({"evictionSoftGracePeriod": {MEMORY: "1m"}}, [(WarningKind.UNUSED_GRACE_PERIOD, Signal.MEMORY)]),
        (
            {"evictionSoft": {"pid.available": "10%"}, "evictionSoftGracePeriod": {"pid.available": "0s"}},
            [(WarningKind.SOFT_WITHOUT_GRACE, Signal.PID)],
        ),
        (
            {"evictionHard": {MEMORY: "1Gi", "nodefs.available": "10%", "containerfs.available": "1Gi"}},
            [(WarningKind.CONTAINERFS_IGNORED, Signal.CONTAINERFS)],
        ),
        (
            {"evictionHard": {MEMORY: "1Gi", "pid.available": "0.0%", "nodefs.available": "NaN%"}},
            [(WarningKind.NEVER_MET, Signal.PID), (WarningKind.NEVER_MET, Signal.NODEFS)],
        ),
        ({"failSwapOn": False}, []),
        (
            {"failSwapOn": False, "memorySwap": {"swapBehavior": "LimitedSwap"}},
            [(WarningKind.SWAP_HIDES_PRESSURE, Signal.MEMORY)],
        ),
        ({"failSwapOn": False, "memorySwap": {"swapBehavior": "NoSwap"}}, []),
    ],
    ids=str,
)
def test_what_looks_wrong_is_said(document, expected):
    assert kinds(document) == expected


_GATE_ON, _GATE_OFF = {"featureGates": {"NodeSwap": True}}, {"featureGates": {"NodeSwap": False}}
_LIMITED = {"memorySwap": {"swapBehavior": "LimitedSwap"}}


@pytest.mark.parametrize(
    ("minor", "settings", "pods_swap"),
    [
        (27, {}, True),
        (29, {}, False),
        (29, _LIMITED, False),
        (29, _GATE_ON, True),
        (29, {"featureGates": {"AllBeta": True}}, True),
        (29, {"featureGates": {"AllAlpha": True}}, False),
        (30, {}, False),
        (30, _GATE_ON, False),
        (30, _LIMITED, True),
        (30, {**_LIMITED, **_GATE_OFF}, False),
    ],
    ids=str,
)
def test_swap_hides_pressure_only_where_pods_use_it(minor, settings, pods_swap):
    configuration = msgspec.convert({"failSwapOn": False, **settings}, KubeletConfiguration)
    found = threshold_warnings(configuration, None, profile_for((1, minor)))
    assert [each.kind for each in found] == [WarningKind.SWAP_HIDES_PRESSURE] * pods_swap
    assert not threshold_warnings(configuration, None, profile_for((1, minor)), swap_bytes=0)
    assert not threshold_warnings(replace(configuration, fail_swap_on=True), None, profile_for((1, minor)))


@pytest.mark.parametrize(
    ("signal", "threshold", "capacities", "most"),
    [
        ("nodefs.inodesFree", "100Mi", {}, 52_428_800),
        ("nodefs.inodesFree", "100Mi", {Signal.NODEFS: 500 << 30}, 32_768_000),
        ("nodefs.inodesFree", "100M", {Signal.NODEFS: 500 << 30}, None),
        ("nodefs.inodesFree", "2M", {Signal.NODEFS_INODES: 1_000_000}, 1_000_000),
        ("nodefs.inodesFree", "5%", {}, None),
        ("imagefs.inodesFree", "100Mi", {Signal.NODEFS: 100 << 30}, 52_428_800),
        ("pid.available", "5M", {}, 1 << 22),
        ("pid.available", "1M", {Signal.MEMORY: 64 << 30}, 524_288),
        ("pid.available", "40k", {Signal.PID: 32_768}, 32_768),
        ("pid.available", "1k", {Signal.MEMORY: 64 << 30}, None),
    ],
)
def test_more_inodes_or_process_ids_than_there_are(signal, threshold, capacities, most):
    settings = msgspec.convert(
        {"evictionHard": {"nodefs.available": "10%", MEMORY: "100Mi", signal: threshold}}, KubeletConfiguration
    )
    found = [each for each in threshold_warnings(settings, capacities) if each.kind is WarningKind.ABOVE_CAPACITY]

    assert [each.most.count for each in found] == ([] if most is None else [most])
