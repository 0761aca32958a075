from __future__ import annotations

import pytest

from eviction.nodes import MI, threshold
from podqos.eviction.manager import thresholds_met
from podqos.eviction.signals import SIGNALS, CleanUp, Layout, Signal, SignalObservation

THRESHOLDS = (threshold(Signal.NODEFS, "100Mi", min_reclaim="50Mi"), threshold(Signal.MEMORY, "100Mi", 30))


@pytest.mark.parametrize(("disk_mi", "memory_mi", "relieved"), [(150, 100, True), (149, 100, False), (150, 99, False)])
def test_a_clean_up_was_enough_if_nothing_at_all_is_met_any_more(disk_mi, memory_mi, relieved):
    """Minimum reclaim included, and soft thresholds too, whatever their grace period."""
    seen = {
        Signal.NODEFS: SignalObservation(disk_mi * MI, 1000 * MI),
        Signal.MEMORY: SignalObservation(memory_mi * MI, 1000 * MI),
    }
    assert (not thresholds_met(THRESHOLDS, seen, with_min_reclaim=True)) is relieved


def test_containers_are_removed_before_images():
    assert SIGNALS[Signal.NODEFS].clean_up[Layout.SINGLE] == (CleanUp.CONTAINERS, CleanUp.IMAGES)


def test_memory_has_nothing_to_throw_away():
    assert all(SIGNALS[Signal.MEMORY].clean_up[layout] == () for layout in Layout)
