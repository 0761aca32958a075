"""A page that follows a cluster: what has not changed is not read or ranked again, and the view is the same as anew."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from msgspec.structs import replace

from podqos.answers.page import nodes as page_nodes
from podqos.answers.page.cluster import change
from podqos.cluster.following import FollowedKind
from podqos.manifest.encoding import json_line
from podqos.manifest.pruning import pruned_type
from podqos.objects import held
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeSummary
from podqos.objects.sources import Source
from podqos.reading.mirror import Mirror
from podqos.web.ui.feeds import of_cluster
from podqos.web.ui.pages import page_about

MIB = 1 << 20


class World:
    """A cluster that changes, as a mirror has it."""

    def __init__(self, nodes, pods):
        self.mirror = Mirror(None)
        self.mirror._version = "v1.36.0"
        self.chance = random.Random(7)  # noqa: S311
        self.used = {}
        for number in range(nodes):
            self.node(f"worker-{number}")
        for number in range(pods):
            self.pod(number, f"worker-{number % nodes}" if nodes else "")

    def _kind(self, name) -> FollowedKind:
        return next(each for each in self.mirror._kinds if each.resource.kind == name)

    def put(self, kind, value):
        self._kind(kind).objects[value["metadata"]["uid"]] = msgspec.convert(value, pruned_type(kind))

    def node(self, name, uid="", memory="8Gi"):
        amounts = {"cpu": "4", "pods": "110", **({"memory": memory} if memory else {})}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        self.put("Node", {"metadata": {"name": name, "uid": uid or name}, "status": status})

    def pod(self, number, node, request=64, **status):
        resources = {"requests": {"memory": f"{request}Mi"}} if number % 3 else {}
        spec = {"nodeName": node, "priority": number % 4, "containers": [{"name": "c", "resources": resources}]}
        metadata = {"name": f"pod-{number}", "namespace": "shop", "uid": f"uid-{number}"}
        self.put("Pod", {"metadata": metadata, "spec": spec, "status": {"phase": "Running", **status}})

    def drop(self, kind, uid):
        del self._kind(kind).objects[uid]

    def measure(self, node):
        pods = [each for each in self._kind("Pod").objects.values() if each.spec.node_name == node]
        told = []
        for each in pods:
            memory = {"workingSetBytes": self.chance.randrange(MIB, 200 * MIB), "usageBytes": 0, "rssBytes": 0}
            reference = {"name": each.metadata.name, "namespace": "shop", "uid": each.metadata.uid}
            told.append({"podRef": reference, "memory": memory, "containers": [{"name": "c", "memory": memory}]})
        memory = {"availableBytes": 4 << 30, "workingSetBytes": 4 << 30, "usageBytes": 4 << 30, "rssBytes": 0}
        summary = {"node": {"nodeName": node, "memory": memory}, "pods": told}
        self.used[node] = msgspec.json.encode(NodeSummary(node, msgspec.Raw(json.dumps(summary).encode())))
        self.mirror._usage = list(self.used.values())

    def snapshot(self, before=None):
        return ClusterSnapshot(self.mirror._lines(), "cluster", before)


def node_memory_limits(world, memory):
    limits = {"type": "Container", "default": {"memory": memory}}
    world.put("LimitRange", {"metadata": {"name": "l", "namespace": "shop", "uid": "l"}, "spec": {"limits": [limits]}})


def shown(view):
    """Return a view as it is sent, without when it was taken."""
    return json.loads(json_line(replace(view, taken_at="")))


def applied(before, sent):
    """Return what a page makes of what it has and what it is sent."""

    def joined(name):
        parts = []
        for part in sent[name]:
            parts += before[name][part[0] : part[0] + part[1]] if isinstance(part, list) else [part]
        return parts

    return {**before, **sent, "nodes": joined("nodes"), "pods": joined("pods")}


CHANGES = {
    "nothing": lambda _: None,
    "a pod asks for more": lambda world: world.pod(1, "worker-1", 500),
    "a pod comes": lambda world: world.pod(100, "worker-0"),
    "a pod goes": lambda world: world.drop("Pod", "uid-4"),
    "a pod ends": lambda world: world.pod(4, "worker-1", phase="Failed"),
    "a pod is on another node": lambda world: world.pod(1, "worker-2"),
    "a pod waits for a node": lambda world: world.pod(100, ""),
    "a pod of a node that nobody knows": lambda world: world.pod(100, "worker-9"),
    "one node measures": lambda world: world.measure("worker-1"),
    "all nodes measure": lambda world: [world.measure(f"worker-{each}") for each in range(3)],
    "a node comes": lambda world: world.node("another"),
    "a node goes, its pods stay": lambda world: world.drop("Node", "worker-1"),
    "a node is replaced by one of its name": lambda world: (
        world.drop("Node", "worker-1"),
        world.node("worker-1", "other", "16Gi"),
    ),
    "a node does not tell its memory": lambda world: world.node("worker-0", memory=""),
    "what decides about pods": lambda world: node_memory_limits(world, "128Mi"),
    "everything goes": lambda world: [each.objects.clear() for each in world.mirror._kinds],
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_view_that_follows_another_is_the_one_made_anew_and_so_is_what_is_sent(what):
    world = World(3, 12)
    world.measure("worker-0")
    first = world.snapshot()
    page = page_about(of_cluster(first))
    before = page.cluster()
    CHANGES[what](world)
    after = page_about(of_cluster(world.snapshot(first)), page).cluster()
    anew = page_about(of_cluster(world.snapshot())).cluster()
    assert shown(after) == shown(anew)
    sent = json.loads(json_line(change(before, after)))
    assert applied(shown(before), {**sent, "takenAt": ""}) == shown(anew)


def test_many_changes_in_a_row_lead_to_the_same_view():
    world, chance = World(3, 12), random.Random(3)  # noqa: S311
    snapshot = world.snapshot()
    page = page_about(of_cluster(snapshot))
    known = shown(page.cluster())
    view = page.cluster()
    for number in range(60):
        what = chance.choice([each for each in CHANGES if each not in {"everything goes", "a pod goes"}])
        if "node goes" not in what and "replaced" not in what:
            CHANGES[what](world)
        world.pod(number % 20, f"worker-{chance.randrange(3)}", chance.choice([32, 64, 900]))
        snapshot = world.snapshot(snapshot)
        page = page_about(of_cluster(snapshot), page)
        sent = json.loads(json_line(change(view, page.cluster())))
        view = page.cluster()
        known = applied(known, {**sent, "takenAt": ""})
    assert known == shown(page_about(of_cluster(world.snapshot())).cluster())


def test_only_nodes_whose_pods_have_changed_are_ranked_again_and_only_what_changed_is_sent(monkeypatch):
    world = World(20, 200)
    first = world.snapshot()
    page = page_about(of_cluster(first))
    before = page.cluster()
    ranked = []
    rank = page_nodes.rank
    monkeypatch.setattr(page_nodes, "rank", lambda state, request: ranked.append(state) or rank(state, request))
    world.pod(7, "worker-7", 500)
    page = page_about(of_cluster(world.snapshot(first)), page)
    after = page.cluster()
    assert [each.snapshot.node.name for each in ranked] == ["worker-7"]
    sent = change(before, after)
    assert [each.name for each in sent.nodes if not isinstance(each, tuple)] == ["worker-7"]
    new = [each for each in sent.pods if not isinstance(each, tuple)]
    assert {each.node for each in new} == {"worker-7"}
    assert len(json_line(sent)) < len(json_line(after)) / 10
    assert page.pod("shop/pod-7").standing is not None


def test_what_has_not_changed_is_neither_encoded_nor_read_again(monkeypatch):
    world = World(5, 50)
    first = world.snapshot()
    assert len(first.objects.workloads) == 50
    world.pod(7, "worker-2", 500)
    encoded, read = [], []
    encode = Mirror._lines.__globals__["encoded_list"]
    monkeypatch.setitem(
        Mirror._lines.__globals__, "encoded_list", lambda *what: encoded.append(what[1]) or encode(*what)
    )
    second = world.snapshot(first)
    monkeypatch.setattr(held, "Source", lambda *what, **more: read.append(1) or Source(*what, **more))
    assert len(second.objects.workloads) == 50
    assert (encoded, len(read)) == (["PodList"], 1)


def test_a_page_that_follows_keeps_nothing_of_those_before():
    import gc
    import weakref

    world = World(3, 12)
    snapshot = world.snapshot()
    page = page_about(of_cluster(snapshot))
    page.cluster()
    before = weakref.ref(page), weakref.ref(snapshot)
    snapshot = world.snapshot(snapshot)
    page = page_about(of_cluster(snapshot), page)
    page.cluster()
    gc.collect()
    assert [each() for each in before] == [None, None]


def test_a_snapshot_that_follows_another_can_be_written_down_and_read_by_a_worker():
    import pickle

    world = World(2, 4)
    world.measure("worker-0")
    snapshot = world.snapshot(world.snapshot())
    again = pickle.loads(pickle.dumps(of_cluster(snapshot)))  # noqa: S301
    assert shown(page_about(again).cluster()) == shown(page_about(of_cluster(snapshot)).cluster())


def test_two_pods_of_one_name_on_a_node_are_both_shown_and_sent():
    world = World(1, 2)
    first = world.snapshot()
    page = page_about(of_cluster(first))
    before = page.cluster()
    spec = {"nodeName": "worker-0", "containers": [{"name": "c"}]}
    twin = {"metadata": {"name": "pod-0", "namespace": "shop", "uid": "twin"}, "spec": spec}
    world.put("Pod", {**twin, "status": {"phase": "Running"}})
    after = page_about(of_cluster(world.snapshot(first)), page).cluster()
    assert len(after.pods) == 3
    sent = json.loads(json_line(change(before, after)))
    assert applied(shown(before), {**sent, "takenAt": ""}) == shown(after)


def test_a_snapshot_that_is_cut_off_is_refused_also_where_it_follows_another():
    world = World(1, 2)
    first = world.snapshot()
    lines = [msgspec.json.encode(Header()), *(line for line, _ in first._entries[:-1])]
    with pytest.raises(Exception, match="truncated"):
        ClusterSnapshot(lines, "cluster", first)
    assert ClusterSnapshot([*lines, msgspec.json.encode(End(len(lines)))], "cluster", first).nodes
