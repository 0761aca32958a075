"""The three questions of the first source, with the answers the numbers give.

Pod1 is Guaranteed, Pod2 Burstable, Pod3 BestEffort, on a node without a byte to spare.
"""

from __future__ import annotations

from eviction.nodes import guaranteed, pod
from orders.nodes import GI, evicted, killed, orders, snapshot, using

POD1 = guaranteed("pod1", "4Gi")
POD2 = pod("pod2", "memory=2Gi")
POD3 = pod("pod3")


def test_question_1_pod1_wants_more_and_nothing_is_left():
    """At equal usage BestEffort goes first, for the kubelet and for the kernel."""
    found = orders(snapshot(using(POD1, "4Gi"), using(POD2, "6Gi"), using(POD3, "6Gi"), memory_bytes=16 * GI))
    assert killed(found) == ["pod3", "pod2", "pod1"]
    assert evicted(found) == ["pod3", "pod2", "pod1"]
    assert found.disagreements == ()


def test_question_1_turned_round_by_usage():
    """A Burstable pod that is further over its request than the BestEffort one uses altogether goes first."""
    found = orders(snapshot(using(POD1, "4Gi"), using(POD2, "10Gi"), using(POD3, "2Gi"), memory_bytes=16 * GI))
    assert evicted(found) == ["pod2", "pod3", "pod1"]  # 8 GiB over against 2 GiB over
    assert killed(found) == ["pod2", "pod3", "pod1"]  # oom_score_adj 875 and 10 GiB vs 1000 and 2 GiB


def test_question_2_pod2_asks_for_more_than_is_left():
    """It is the one that grows and the one that dies: Guaranteed is far below it."""
    found = orders(snapshot(using(POD1, "4Gi"), using(POD2, "12Gi"), memory_bytes=16 * GI))
    assert evicted(found) == killed(found) == ["pod2", "pod1"]
    assert found.kernel[0].score.value == 875
    assert found.kernel[1].score.value == -997


def test_question_3_the_same_class_is_a_matter_of_the_score():
    """Two Burstable pods that use the same: the smaller request has the higher score, and is further over it."""
    small, large = pod("small", "memory=1Gi"), pod("large", "memory=6Gi")
    found = orders(snapshot(using(large, "7Gi"), using(small, "7Gi"), memory_bytes=16 * GI))
    assert killed(found) == evicted(found) == ["small", "large"]
    assert [place.score.value for place in found.kernel] == [938, 625]


def test_question_3_the_same_class_and_request_is_a_matter_of_usage():
    found = orders(snapshot(using(pod("less"), "1Gi"), using(pod("more"), "2Gi"), memory_bytes=16 * GI))
    assert killed(found) == evicted(found) == ["more", "less"]
