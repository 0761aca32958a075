"""Against a real scheduler: what it said about pods that found no node, and whom it displaced."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from podqos.model.node import Node
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.placement.place import PlacementSurroundings, Status, place
from podqos.placement.reasons import GATED_MESSAGE
from podqos.text.placement import no_node_message, reason_text, refusal_message

FOLDER = Path(__file__).with_name("scheduler")


def items(name: str) -> list[dict]:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))["items"]


def typed(kind: type, item: dict):
    return msgspec.convert(item, kind, dec_hook=lambda _, text: Quantity.parse(str(text)))


RECORDED = {f"{item['metadata']['namespace']}/{item['metadata']['name']}": item for item in items("pods")}


def surroundings() -> PlacementSurroundings:
    return PlacementSurroundings(tuple(typed(Node, item) for item in items("nodes")))


def message_of(key: str) -> str:
    (condition,) = RECORDED[key]["status"]["conditions"]
    return condition["message"]


@pytest.fixture(scope="module")
def placement():
    return place([typed(Pod, item) for item in RECORDED.values()], surroundings())


@pytest.mark.parametrize("key", ["platform/hugepages-too-many", "platform/too-big", "platform/wrong-zone"])
def test_a_pending_pod_gets_the_message_the_scheduler_gave_it(placement, key):
    (view,) = (view for view in placement.pending if view.key == key)
    assert refusal_message(placement.refusal(view)) == message_of(key)


def test_nobody_else_is_pending(placement):
    assert {view.key for view in placement.pending} == {
        key
        for key, item in RECORDED.items()
        if not item["spec"].get("nodeName") and "nominatedNodeName" not in item["status"] and "gated" not in key
    }


def test_a_gated_pod_waits_for_its_gates(placement):
    statuses = {outcome.pod: outcome.status for outcome in placement.outcomes}
    assert statuses["platform/gated"] is Status.GATED
    assert message_of("platform/gated") == GATED_MESSAGE


def test_preemption_takes_the_node_and_the_kind_of_victim_the_scheduler_took():
    """Two pods of one ReplicaSet started in the same second; which of them goes is not defined."""
    pods = [typed(Pod, item) for item in RECORDED.values()]
    # Before the preemption the victim was not on its way out, and its replacement did not exist.
    pods = [
        replace(pod, metadata=replace(pod.metadata, deletion_timestamp=""))
        for pod in pods
        if pod.metadata.name != "mesh-app-77648bcbb6-g6g9d"
    ]
    preemptor = "platform/breaking-news-3"
    placement = place(pods, surroundings(), bare={pod.key for pod in pods})
    outcome = next(outcome for outcome in placement.outcomes if outcome.pod == preemptor)
    assert outcome.node == RECORDED[preemptor]["status"]["nominatedNodeName"]
    (displacement,) = placement.displacements
    assert displacement.by == preemptor
    assert displacement.pod.startswith("platform/mesh-app-77648bcbb6-")


def test_the_first_refusal_of_the_preemptor_had_this_message():
    """Without anybody to displace; the scheduler leaves the second half out when preemption succeeds."""
    pods = [typed(Pod, item) for item in RECORDED.values()]
    harmless = [
        replace(pod, spec=replace(pod.spec, preemption_policy="Never"))
        if pod.key == "platform/breaking-news-3"
        else pod
        for pod in pods
    ]
    placement = place(harmless, surroundings())
    (view,) = (view for view in placement.pending if view.key == "platform/breaking-news-3")
    refusal = placement.refusal(view)
    texts = [reason_text(reason) for node in refusal.nodes for reason in node.first]
    assert no_node_message(4, texts) == message_of("platform/breaking-news-3")
    assert refusal_message(refusal).endswith("preemption: not eligible due to preemptionPolicy=Never.")
