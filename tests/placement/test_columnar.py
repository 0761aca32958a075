"""The fast path against the readable one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from placement.clusters import clusters
from podqos.placement.choosing import OneByOne
from podqos.placement.place import QueueOrder, place

columnar = pytest.importorskip("podqos.placement.columnar", reason="needs numpy (podqos[fleet])")


@pytest.mark.parametrize("order", QueueOrder)
@given(clusters())
@settings(max_examples=300, deadline=None)
def test_the_fast_path_places_every_pod_where_the_readable_one_does(order, cluster):
    pods, surroundings = cluster
    slow = place(pods, surroundings, order=order, chooser=OneByOne)
    fast = place(pods, surroundings, order=order, chooser=columnar.Columnar)
    assert fast.outcomes == slow.outcomes
    assert fast.displacements == slow.displacements
