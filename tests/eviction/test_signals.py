from __future__ import annotations

import pytest

from podqos.eviction.signals import SIGNALS, CleanUp, DiskUse, Layout, NodeCondition, Signal, layout_of

ALL_USE = {DiskUse.ROOTFS, DiskUse.LOGS, DiskUse.LOCAL_VOLUMES}
KUBELET_USE = {DiskUse.LOGS, DiskUse.LOCAL_VOLUMES}
BOTH = (CleanUp.CONTAINERS, CleanUp.IMAGES)


def test_the_table_has_a_row_for_every_signal_and_a_column_for_every_layout():
    assert list(SIGNALS) == list(Signal)
    for row in SIGNALS.values():
        assert set(row.disk_use) == set(row.clean_up) == set(Layout)


def test_memory_comes_first_in_the_table():
    """The order of the rows is the order in which thresholds act."""
    assert [row.is_memory for row in SIGNALS.values()] == [True, True] + [False] * 7


@pytest.mark.parametrize(
    ("prefix", "condition"),
    [
        ("memory", NodeCondition.MEMORY_PRESSURE),
        ("allocatableMemory", NodeCondition.MEMORY_PRESSURE),
        ("nodefs", NodeCondition.DISK_PRESSURE),
        ("imagefs", NodeCondition.DISK_PRESSURE),
        ("containerfs", NodeCondition.DISK_PRESSURE),
        ("pid", NodeCondition.PID_PRESSURE),
    ],
)
def test_a_signal_stands_for_one_node_condition(prefix, condition):
    rows = [row for row in SIGNALS.values() if row.signal.startswith(f"{prefix}.")]
    assert {row.condition for row in rows} == {condition}


@pytest.mark.parametrize(
    ("signal", "layout", "use", "clean_up"),
    [
        (Signal.NODEFS, Layout.SINGLE, ALL_USE, BOTH),
        (Signal.IMAGEFS, Layout.SINGLE, ALL_USE, BOTH),
        (Signal.CONTAINERFS, Layout.SINGLE, ALL_USE, BOTH),
        (Signal.NODEFS, Layout.DEDICATED, KUBELET_USE, ()),
        (Signal.IMAGEFS, Layout.DEDICATED, {DiskUse.ROOTFS}, BOTH),
        (Signal.CONTAINERFS, Layout.DEDICATED, {DiskUse.ROOTFS}, BOTH),
        (Signal.NODEFS, Layout.SPLIT, ALL_USE, (CleanUp.CONTAINERS,)),
        (Signal.IMAGEFS, Layout.SPLIT, set(), (CleanUp.IMAGES,)),
        (Signal.CONTAINERFS, Layout.SPLIT, ALL_USE, (CleanUp.CONTAINERS,)),
        (Signal.NODEFS, Layout.CONTAINERS_APART, ALL_USE, BOTH),
        (Signal.MEMORY, Layout.SINGLE, set(), ()),
        (Signal.PID, Layout.DEDICATED, set(), ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_disk_use_and_clean_up_follow_the_layout(signal, layout, use, clean_up):
    assert set(SIGNALS[signal].disk_use[layout]) == use
    assert SIGNALS[signal].clean_up[layout] == clean_up


@pytest.mark.parametrize("signal", [Signal.NODEFS, Signal.IMAGEFS, Signal.CONTAINERFS])
def test_inodes_are_treated_like_the_bytes_of_their_filesystem(signal):
    inodes = SIGNALS[Signal(signal.replace("available", "inodesFree"))]
    assert inodes.disk_use == SIGNALS[signal].disk_use
    assert inodes.clean_up == SIGNALS[signal].clean_up


@pytest.mark.parametrize(
    ("dedicated", "split", "layout"),
    [
        (False, False, Layout.SINGLE),
        (True, False, Layout.DEDICATED),
        (True, True, Layout.SPLIT),
        (False, True, Layout.CONTAINERS_APART),
    ],
)
def test_the_layout_follows_from_the_kubelets_two_questions(dedicated, split, layout):
    assert layout_of(dedicated_image_fs=dedicated, split_container_fs=split) is layout
