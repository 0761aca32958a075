from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import threshold
from podqos.errors import InvalidConfiguration
from podqos.eviction.signals import Layout, Signal
from podqos.eviction.thresholds import (
    Threshold,
    ThresholdValue,
    default_eviction_hard,
    derive_containerfs,
    parse_thresholds,
)
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity

NOTHING_ENFORCED = ()


def settings(**fields: object) -> KubeletConfiguration:
    return KubeletConfiguration(**{"enforce_node_allocatable": NOTHING_ENFORCED, **fields})


def listed(thresholds: tuple[Threshold, ...]) -> list[tuple[str, str | float, float]]:
    return [
        (item.signal.value, str(item.value.quantity or item.value.fraction), item.grace_period_ns / 10**9)
        for item in thresholds
    ]


def test_a_kubelet_that_is_told_nothing_has_five_hard_thresholds():
    assert listed(parse_thresholds(settings())) == [
        ("memory.available", "100Mi", 0),
        ("nodefs.available", "0.10000000149011612", 0),
        ("nodefs.inodesFree", "0.05000000074505806", 0),
        ("imagefs.available", "0.15000000596046448", 0),
        ("imagefs.inodesFree", "0.05000000074505806", 0),
    ]


def test_imagefs_inodes_have_a_default_since_1_30():
    assert "imagefs.inodesFree" not in default_eviction_hard(parse_version("1.29"))
    assert "imagefs.inodesFree" in default_eviction_hard(parse_version("1.30"))


def test_naming_one_hard_threshold_drops_all_defaults():
    assert listed(parse_thresholds(settings(eviction_hard={"pid.available": "100"}))) == [("pid.available", "100", 0)]
    assert parse_thresholds(settings(eviction_hard={})) == ()


def test_defaults_can_be_merged_and_one_of_them_dropped():
    merged = parse_thresholds(
        settings(
            eviction_hard={"memory.available": "1Gi", "nodefs.available": "0%"}, merge_default_eviction_settings=True
        )
    )
    assert [item.signal for item in merged] == [
        Signal.MEMORY,
        Signal.NODEFS_INODES,
        Signal.IMAGEFS,
        Signal.IMAGEFS_INODES,
    ]
    assert merged[0].value.quantity == Quantity.parse("1Gi")


def test_allocatable_memory_copies_every_hard_memory_threshold_when_pods_are_enforced():
    """Which is the default of a kubelet; a soft threshold without grace counts as hard."""
    fields = {
        "evictionHard": {"memory.available": "100Mi"},
        "evictionSoft": {"memory.available": "200Mi"},
        "evictionSoftGracePeriod": {"memory.available": "0s"},
        "evictionMinimumReclaim": {"memory.available": "50Mi"},
    }
    parsed = parse_thresholds(msgspec.convert(fields, KubeletConfiguration))
    copies = [item for item in parsed if item.signal is Signal.ALLOCATABLE_MEMORY]
    assert [str(item.value.quantity) for item in copies] == ["100Mi", "200Mi"]
    assert all(item.is_hard and item.min_reclaim is not None for item in copies)


def test_a_soft_threshold_needs_a_grace_period():
    """A kubelet so configured does not start."""
    with pytest.raises(InvalidConfiguration) as error:
        parse_thresholds(settings(eviction_soft={"memory.available": "1Gi"}))
    assert str(error.value) == (
        'evictionSoft["memory.available"]: grace period must be specified for the soft eviction threshold '
        "memory.available (add memory.available to evictionSoftGracePeriod)"
    )


@pytest.mark.parametrize(
    ("fields", "where", "what", "fix"),
    [
        (
            {"eviction_hard": {"memory.avaliable": "1Gi"}},
            'evictionHard["memory.avaliable"]',
            "unsupported eviction signal memory.avaliable",
            "did you mean memory.available?",
        ),
        (
            {"eviction_hard": {"cpu": "1"}},
            'evictionHard["cpu"]',
            "unsupported eviction signal cpu",
            "one of memory.available, allocatableMemory.available",
        ),
        (
            {"eviction_hard": {"memory.available": "100mi"}},
            'evictionHard["memory.available"]',
            "unable to parse quantity's suffix",
            "did you mean 100Mi?",
        ),
        (
            {"eviction_hard": {"memory.available": "0"}},
            'evictionHard["memory.available"]',
            "eviction threshold memory.available must be positive: 0",
            "0% for no threshold",
        ),
        (
            {"eviction_hard": {"nodefs.available": "101%"}},
            'evictionHard["nodefs.available"]',
            "eviction percentage threshold nodefs.available must be <= 100%: 101%",
            "from 0% to 100%",
        ),
        (
            {"eviction_hard": {"nodefs.available": "-1%"}},
            'evictionHard["nodefs.available"]',
            "eviction percentage threshold nodefs.available must be >= 0%: -1%",
            "from 0% to 100%",
        ),
        (
            {"eviction_hard": {"nodefs.available": "10 %"}},
            'evictionHard["nodefs.available"]',
            'strconv.ParseFloat: parsing "10 ": invalid syntax',
            "write a percentage such as 10%",
        ),
        (
            {"eviction_minimum_reclaim": {"nodefs.available": "0%"}},
            'evictionMinimumReclaim["nodefs.available"]',
            "eviction percentage minimum reclaim nodefs.available must be positive: 0%",
            "above 0%",
        ),
        (
            {"eviction_minimum_reclaim": {"nodefs.available": "-1Gi"}},
            'evictionMinimumReclaim["nodefs.available"]',
            "negative eviction minimum reclaim specified for nodefs.available",
            "zero or more",
        ),
        (
            {"eviction_soft_grace_period": {"memory.available": "90"}},
            'evictionSoftGracePeriod["memory.available"]',
            'time: missing unit in duration "90"',
            "90s",
        ),
        (
            {"eviction_soft_grace_period": {"memory.available": "-30s"}},
            'evictionSoftGracePeriod["memory.available"]',
            "invalid eviction grace period specified: -30s, must be a positive value",
            "zero or more",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_bad_threshold_says_where_what_and_how_to_fix_it(fields, where, what, fix):
    """What is the kubelet's own text, so that it can be searched for."""
    with pytest.raises(InvalidConfiguration) as error:
        parse_thresholds(settings(**fields))
    assert (error.value.where, error.value.what) == (where, what)
    assert fix in error.value.fix


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_exactly_zero_and_exactly_a_hundred_percent_mean_no_threshold(text):
    assert parse_thresholds(settings(eviction_hard={"memory.available": text})) == ()


@pytest.mark.parametrize("text", ["0.0%", "00%", "100.0%", "99.99999999%"])
def test_other_spellings_of_zero_and_a_hundred_percent_are_thresholds(text):
    assert len(parse_thresholds(settings(eviction_hard={"memory.available": text}))) == 1


@pytest.mark.parametrize(
    ("text", "capacity", "amount"),
    [
        # 10 % is a little more than 0.1 in 32 bits, which shows on a large disk.
        ("10%", 10**12, 100_000_001_490),
        ("15%", 100 * 2**30, 16_106_128_000),
        ("5%", 99, 4),
        ("7%%", 1000, 70),
    ],
)
def test_a_percentage_is_worked_out_in_32_bits_then_64_then_truncated(text, capacity, amount):
    (only,) = parse_thresholds(settings(eviction_hard={"nodefs.available": text}))
    assert only.amount(capacity).value == amount


def test_a_share_that_is_not_a_number_is_less_than_everything():
    """Go's conversion gives the smallest integer, so such a threshold is never met."""
    assert ThresholdValue(fraction=math.nan).at(10**9).value == -(2**63)
    assert ThresholdValue(fraction=3e36).at(2**40).value == -(2**63)


def test_minimum_reclaim_is_added_on_top():
    item = threshold(Signal.MEMORY, "100Mi", min_reclaim="50Mi")
    assert str(item.amount(10**9)) == "100Mi"
    assert str(item.amount(10**9, with_min_reclaim=True)) == "150Mi"


def test_a_minimum_reclaim_of_nothing_is_valid():
    (item,) = parse_thresholds(
        settings(eviction_hard={"memory.available": "1Gi"}, eviction_minimum_reclaim={"memory.available": "0"})
    )
    assert item.amount(10**10, with_min_reclaim=True) == item.amount(10**10)


NODE_HARD = threshold(Signal.NODEFS, "1Gi")
NODE_SOFT = threshold(Signal.NODEFS, "2Gi", 60)
IMAGE_HARD = threshold(Signal.IMAGEFS, "3Gi")
CONTAINER_HARD = threshold(Signal.CONTAINERFS, "9Gi")


@pytest.mark.parametrize(
    ("layout", "amounts"),
    [
        (Layout.SINGLE, ["1Gi", "2Gi"]),
        (Layout.SPLIT, ["1Gi", "2Gi"]),
        (Layout.DEDICATED, ["3Gi"]),
        (Layout.CONTAINERS_APART, []),
    ],
)
def test_containerfs_follows_the_filesystem_it_is_on(layout, amounts):
    derived = derive_containerfs([NODE_HARD, NODE_SOFT, IMAGE_HARD], layout)
    assert derived.in_place == (NODE_HARD, NODE_SOFT, IMAGE_HARD)
    assert [str(item.value.quantity) for item in derived.added] == amounts
    assert {item.signal for item in derived.added} <= {Signal.CONTAINERFS}
    followed = {item.value.quantity: item.is_hard for item in derived.in_place}
    assert all(item.is_hard is followed[item.value.quantity] for item in derived.added)


def test_what_is_configured_for_containerfs_is_overwritten_in_place():
    derived = derive_containerfs([CONTAINER_HARD, NODE_HARD], Layout.SINGLE)
    assert derived.in_place == (threshold(Signal.CONTAINERFS, "1Gi"), NODE_HARD)
    assert derived.added == ()
    assert derived.ignored == (CONTAINER_HARD,)


def test_a_hard_threshold_replaces_the_hard_one_and_a_soft_one_the_soft_one():
    configured = [threshold(Signal.CONTAINERFS, "8Gi", 30), CONTAINER_HARD, NODE_HARD, NODE_SOFT]
    derived = derive_containerfs(configured, Layout.SINGLE)
    assert derived.in_place == (
        threshold(Signal.CONTAINERFS, "2Gi", 60),
        threshold(Signal.CONTAINERFS, "1Gi"),
        NODE_HARD,
        NODE_SOFT,
    )


def test_a_containerfs_threshold_with_nothing_to_follow_disappears():
    derived = derive_containerfs([CONTAINER_HARD, NODE_HARD], Layout.DEDICATED)
    assert derived.in_place + derived.added == (NODE_HARD,)


def test_of_a_hard_threshold_and_a_soft_one_without_grace_the_later_is_followed():
    no_grace = threshold(Signal.NODEFS, "5Gi", 0)
    derived = derive_containerfs([NODE_HARD, no_grace], Layout.SINGLE)
    assert derived.added == (threshold(Signal.CONTAINERFS, "5Gi"),)


@given(st.sampled_from(Layout), st.lists(st.sampled_from([NODE_HARD, NODE_SOFT, IMAGE_HARD]), unique=True))
def test_deriving_containerfs_again_changes_nothing(layout, thresholds):
    once = derive_containerfs(thresholds, layout)
    twice = derive_containerfs(once.in_place + once.added, layout)
    assert twice.in_place == once.in_place + once.added
    assert twice.added == ()
