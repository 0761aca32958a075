from __future__ import annotations

from placement.clusters import ZONE, near, node, pod, term
from podqos.placement.place import AffinityWait, PlacementSurroundings, affinity_waits, place

NODES = (node("n0", labels={ZONE: "a"}),)


def waits(*pods):
    return affinity_waits(place(pods, PlacementSurroundings(NODES)))


def wanting(name: str, wanted: str):
    return pod(name, labels={"app": name}, affinity=near(term(wanted)))


def test_two_pods_that_each_wait_for_the_other_are_a_circle():
    assert waits(wanting("a", "b"), wanting("b", "a")) == (
        AffinityWait("default/a", ("default/b",), ("default/a", "default/b")),
        AffinityWait("default/b", ("default/a",), ("default/b", "default/a")),
    )


def test_a_circle_may_be_longer_and_others_may_wait_for_it():
    found = {
        wait.pod: wait for wait in waits(wanting("a", "b"), wanting("b", "c"), wanting("c", "a"), wanting("d", "a"))
    }
    assert found["default/b"].circle == ("default/b", "default/c", "default/a")
    assert found["default/d"] == AffinityWait("default/d", ("default/a",))


def test_waiting_for_a_kind_of_pod_that_does_not_exist_is_told():
    assert waits(wanting("a", "nobody")) == (AffinityWait("default/a", ()),)


def test_a_pod_that_finds_company_or_needs_none_is_not_waiting():
    assert waits(wanting("a", "b"), pod("b", labels={"app": "b"})) == ()
    assert waits(wanting("a", "a"), pod("big", "99")) == ()


def test_a_pod_whose_company_is_itself_too_large_waits_for_it():
    assert waits(wanting("a", "b"), pod("b", "99", labels={"app": "b"})) == (AffinityWait("default/a", ("default/b",)),)
