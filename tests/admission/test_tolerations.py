from __future__ import annotations

import pytest

from admission.pods import container, pod
from podqos.admission.changes import FieldChange
from podqos.admission.tolerations import (
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    NOT_READY,
    UNREACHABLE,
    merged,
    with_daemon_set_tolerations,
    with_default_tolerations,
    with_memory_pressure_toleration,
)
from podqos.model.pod import QOSClass, Toleration

FIVE_MINUTES_NOT_READY = Toleration(NOT_READY, "Exists", "", "NoExecute", 300)
FIVE_MINUTES_UNREACHABLE = Toleration(UNREACHABLE, "Exists", "", "NoExecute", 300)


@pytest.mark.parametrize(
    ("own", "added"),
    [
        pytest.param((), (FIVE_MINUTES_NOT_READY, FIVE_MINUTES_UNREACHABLE), id="nothing-said"),
        pytest.param(
            (Toleration(NOT_READY, "Exists", "", "NoExecute", 30),), (FIVE_MINUTES_UNREACHABLE,), id="one-of-its-own"
        ),
        pytest.param((Toleration("", "Exists"),), (), id="tolerates-everything"),
        pytest.param(
            (Toleration(NOT_READY, "Exists", "", "NoSchedule"),),
            (FIVE_MINUTES_NOT_READY, FIVE_MINUTES_UNREACHABLE),
            id="another-effect",
        ),
    ],
)
def test_pods_stay_five_minutes_on_a_lost_node_unless_they_say_otherwise(own, added):
    """DefaultTolerationSeconds, enabled by default."""
    assert with_default_tolerations(pod(container(), tolerations=own)).spec.tolerations == own + added


def test_what_was_added_is_recorded():
    """By its place in the list."""
    record: list[FieldChange] = []
    with_default_tolerations(pod(container(), tolerations=(Toleration("a", "Exists"),)), record)
    assert [(change.path, change.after) for change in record] == [
        ("spec.tolerations[1]", NOT_READY),
        ("spec.tolerations[2]", UNREACHABLE),
    ]


def test_daemon_sets_tolerate_lost_nodes_pressure_and_cordons():
    """The network taint only with host networking; a toleration of the user's for the same taint is replaced."""
    own = Toleration(NOT_READY, "Exists", "", "NoExecute", 30)
    keys = [
        toleration.key
        for toleration in with_daemon_set_tolerations(pod(container(), tolerations=(own,))).spec.tolerations
    ]
    assert len(keys) == 6
    assert NETWORK_UNAVAILABLE not in keys
    on_host = with_daemon_set_tolerations(pod(container(), tolerations=(own,), host_network=True)).spec.tolerations
    assert on_host[0] == Toleration(NOT_READY, "Exists", "", "NoExecute")
    assert on_host[-1].key == NETWORK_UNAVAILABLE


@pytest.mark.parametrize("qos_class", list(QOSClass))
def test_memory_pressure_is_tolerated_by_all_but_best_effort(qos_class):
    """PodTolerationRestriction, not enabled by default."""
    after = with_memory_pressure_toleration(pod(container()), qos_class).spec.tolerations
    assert (MEMORY_PRESSURE in {toleration.key for toleration in after}) is (qos_class is not QOSClass.BEST_EFFORT)


@pytest.mark.parametrize(
    ("own", "others", "together"),
    [
        pytest.param([("a", "Exists")], [("b", "Exists")], [("a", "Exists"), ("b", "Exists")], id="different"),
        pytest.param([("a", "Exists")], [("a", "Exists")], [("a", "Exists")], id="equal"),
        pytest.param([("a", "Equal", "x")], [("a", "Exists")], [("a", "Exists")], id="covered-by-the-later"),
        pytest.param([("", "Exists")], [("a", "Equal", "x")], [("", "Exists")], id="covered-by-everything"),
        pytest.param(
            [("a", "Exists", "", "NoExecute", 30)],
            [("a", "Exists", "", "NoExecute")],
            [("a", "Exists", "", "NoExecute")],
            id="longer-covers-shorter",
        ),
        pytest.param(
            [("a", "Exists", "", "NoExecute", 60)],
            [("a", "Equal", "x", "NoExecute", 90)],
            [("a", "Exists", "", "NoExecute", 60), ("a", "Equal", "x", "NoExecute", 90)],
            id="shorter-does-not-cover",
        ),
        pytest.param(
            [("a", "Exists", "", "NoSchedule")],
            [("a", "Exists", "", "NoExecute")],
            [("a", "Exists", "", "NoSchedule"), ("a", "Exists", "", "NoExecute")],
            id="effects",
        ),
        pytest.param(
            [("a", "Equal", "x")], [("a", "Equal", "y")], [("a", "Equal", "x"), ("a", "Equal", "y")], id="values"
        ),
    ],
)
def test_merging_keeps_only_what_nothing_else_covers(own, others, together):
    """The wider one stays."""

    def tolerations(rows):
        return tuple(Toleration(*row) for row in rows)

    assert merged(tolerations(own), tolerations(others)) == tolerations(together)
