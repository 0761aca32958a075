from __future__ import annotations

import pytest

from placement.clusters import node, pod
from podqos.model.node import Taint
from podqos.model.pod import QOSClass, Toleration
from podqos.model.profile import LATEST, profile_for
from podqos.placement.filters import Filters, SchedulerCluster
from podqos.placement.node_rules import first_untolerated, is_tolerated, taints_of
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.pods import SchedulerNode, Shape, Views
from podqos.placement.reasons import Reasons, UnderPressure, Unschedulable, UntoleratedTaint

GPU = Taint("dedicated", "gpu", "NoSchedule")
BEFORE_TAINTS = profile_for((1, 11))


def reasons(one_pod, one_node, profile=LATEST) -> Reasons:
    state = SchedulerNode(one_node, profile)
    return Filters(Views(profile).of(one_pod), SchedulerCluster([state], profile=profile)).first_reasons(state)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("dedicated", "Equal", "gpu", "NoSchedule"), True, id="everything equal"),
        pytest.param(Toleration("dedicated", "", "gpu"), True, id="no operator means Equal, no effect means any"),
        pytest.param(Toleration("dedicated", "Equal", "db"), False, id="another value"),
        pytest.param(Toleration("dedicated", "Exists"), True, id="Exists takes any value"),
        pytest.param(Toleration("", "Exists"), True, id="Exists without a key takes every taint"),
        pytest.param(Toleration("dedicated", "Exists", "", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("other", "Exists"), False, id="another key"),
        pytest.param(Toleration("dedicated", "Gt", "gpu"), False, id="an unknown operator"),
    ],
)
def test_a_toleration_covers_a_taint_of_its_key_value_and_effect(toleration, expected):
    assert is_tolerated(GPU, (toleration,)) is expected


def test_the_first_taint_that_is_not_tolerated_counts_and_preferences_do_not():
    taints = (Taint("slow", "", "PreferNoSchedule"), GPU, Taint("gone", "", "NoExecute"))
    assert first_untolerated(taints, ()) == GPU
    assert first_untolerated(taints, (Toleration("dedicated", "Exists"),)) == taints[2]
    assert first_untolerated(taints, (Toleration(operator="Exists"),)) is None


@pytest.mark.parametrize(
    ("conditions", "keys"),
    [
        ({"Ready": "True"}, []),
        ({"Ready": "False"}, ["not-ready"]),
        ({"Ready": "Unknown"}, ["unreachable"]),
        ({"MemoryPressure": "True", "DiskPressure": "False"}, ["memory-pressure"]),
        ({"PIDPressure": "True", "NetworkUnavailable": "True"}, ["pid-pressure", "network-unavailable"]),
    ],
    ids=str,
)
def test_conditions_become_taints(conditions, keys):
    taints = taints_of(node("n", conditions=conditions), LATEST)
    assert [taint.key.removeprefix("node.kubernetes.io/") for taint in taints] == keys


def test_a_taint_that_is_there_already_is_not_added_again():
    taint = Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule")
    assert taints_of(node("n", taints=(taint,), conditions={"MemoryPressure": "True"}), LATEST) == (taint,)


BEST_EFFORT = pod("best-effort")
BURSTABLE = pod("burstable", cpu="100m")


@pytest.mark.parametrize("one_pod", [BEST_EFFORT, BURSTABLE], ids=lambda one_pod: one_pod.metadata.name)
def test_since_1_12_memory_pressure_keeps_every_pod_away(one_pod):
    (reason,) = reasons(one_pod, node("n", conditions={"MemoryPressure": "True"}))
    assert isinstance(reason, UntoleratedTaint)
    assert reason.unresolvable


def test_before_1_12_memory_pressure_kept_best_effort_pods_away_and_nobody_else():
    pressed = node("n", conditions={"MemoryPressure": "True"})
    assert reasons(BEST_EFFORT, pressed, BEFORE_TAINTS) == (UnderPressure("MemoryPressure"),)
    assert reasons(BURSTABLE, pressed, BEFORE_TAINTS) == ()


@pytest.mark.parametrize("pods", [(BEST_EFFORT, BURSTABLE), (BURSTABLE, BEST_EFFORT)], ids=["first", "last"])
def test_before_1_12_pods_of_both_classes_are_told_apart_on_a_node_under_memory_pressure(pods):
    pressed = PlacementSurroundings((node("n", conditions={"MemoryPressure": "True"}),), profile=BEFORE_TAINTS)
    found = {outcome.pod: outcome.node for outcome in place(pods, pressed).outcomes}
    assert found == {"default/best-effort": None, "default/burstable": "n"}


@pytest.mark.parametrize("condition", ["DiskPressure", "PIDPressure", "NetworkUnavailable"])
def test_before_1_12_other_conditions_kept_everybody_away(condition):
    assert reasons(BURSTABLE, node("n", conditions={condition: "True"}), BEFORE_TAINTS) == (UnderPressure(condition),)


def test_a_cordoned_node_takes_only_pods_that_tolerate_it():
    cordoned = node("n", unschedulable=True)
    assert reasons(BURSTABLE, cordoned) == (Unschedulable(),)
    tolerant = pod("p", tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))
    assert reasons(tolerant, cordoned) == ()


def test_the_class_of_a_pod_plays_no_other_part():
    """The scheduler goes by requests, never by class."""
    assert Shape(BEST_EFFORT).qos_class is QOSClass.BEST_EFFORT
    assert reasons(BEST_EFFORT, node("n")) == reasons(BURSTABLE, node("n")) == ()
