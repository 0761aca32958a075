"""The cluster view: tiles, and a cluster that is followed."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from msgspec.structs import replace

from browser.fleet import fleet
from podqos.cluster.following import FollowedKind
from podqos.manifest.encoding import json_line
from podqos.manifest.pruning import pruned_type
from podqos.objects import held
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeSummary
from podqos.objects.sources import Source
from podqos.page import cluster as page_nodes
from podqos.reading.mirror import Mirror
from podqos.serve.feeds import of_cluster
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "worker-1"},
    "status": {
        "capacity": {"memory": "64Gi", "cpu": "16", "pods": "110"},
        "allocatable": {"memory": "64Gi", "cpu": "16", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def pod(name, resources=None, node="worker-1"):
    spec = {"containers": [{"name": "main", "image": "web", "resources": resources or {}}]}
    spec |= {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": spec,
        "status": {"phase": "Running"},
    }


def tiles(*objects):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return shown(read_given({"objects.json": text.encode()}))


def shown(source):
    """Return value, note and kind of the tiles by what they count."""
    return {tile.name: (tile.value, tile.note, str(tile.kind)) for tile in page_about(source).cluster().tiles}


LIMITED = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}


def test_limits_that_leave_out_pods_without_one_say_how_many():
    found = tiles(NODE, pod("web", LIMITED), *(pod(f"free-{number}") for number in range(3)))
    assert found["pods without a memory limit"] == ("3", "of 4; limits of the others: <0.1× allocatable", "warned")
    assert "memory limits" not in found


def test_where_no_pod_has_a_limit_nothing_but_the_memory_of_the_node_stops_them():
    found = tiles(NODE, pod("free"))
    assert found["pod without a memory limit"] == ("1", "nothing but the node's memory stops them", "warned")


def test_more_pods_than_a_node_can_run_are_an_alarm():
    found = tiles(NODE, *(pod(f"web-{number}", LIMITED) for number in range(60)))
    assert found["pods"][2] == ""
    found = tiles(NODE, *(pod(f"web-{number}", {"limits": {"memory": "10Mi"}}) for number in range(111)))
    assert found["pods"] == ("111", "worker-1 has 111, but can run only 110", "alarm")


def test_requests_beyond_what_is_allocatable_are_an_alarm_and_pods_without_one_are_counted():
    found = tiles(NODE, pod("web", {"requests": {"memory": "65Gi"}}), pod("free"))
    note = "of 64Gi allocatable, does not fit, 1 of 2 pods requests none"
    assert found["memory requested"] == ("102 %", note, "alarm")


def test_pods_without_a_node_are_said_to_be_not_scheduled():
    found = tiles(NODE, pod("web", LIMITED), pod("waits", LIMITED, node=""))
    assert found["pods"] == ("2", "1 not scheduled", "warned")


def test_a_node_past_its_threshold_by_assumed_usage_is_not_said_to_evict():
    found = tiles(NODE, pod("web", {"requests": {"memory": "70Gi"}}))
    assert found["node over the threshold"] == ("1", "past the eviction threshold, usage is assumed", "alarm")
    assert found["node"] == ("1", "1 without a kill order", "warned")
    assert not any("first victim" in name for name in found)


def test_kubelet_and_kernel_that_choose_different_pods_are_two_first_victims():
    found = tiles(
        NODE,
        {
            **pod("low", {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}),
            "spec": {
                "nodeName": "worker-1",
                "priority": -10,
                "containers": [
                    {
                        "name": "main",
                        "image": "web",
                        "resources": {
                            "requests": {"memory": "1Gi", "cpu": "1"},
                            "limits": {"memory": "1Gi", "cpu": "1"},
                        },
                    }
                ],
            },
        },
        pod("free", {"requests": {"memory": "1Gi"}}),
    )
    assert found["first victims"][0] == "2"


def test_many_nodes_say_on_how_many_kubelet_and_kernel_differ():
    found = shown(read_given({"fleet.json": fleet(40, 4).encode()}))
    assert found["nodes"] == ("4", "1 with conditions", "warned")
    [name] = [name for name in found if "killed first" in name]
    assert name == "of 4 nodes: evicted and OOM-killed first differ"


@pytest.mark.parametrize("scenario", ["race", "oom-by-class"])
def test_a_scenario_states_its_usage(scenario):
    [note] = [note for name, (_, note, _) in shown(read_paths([scenario])).items() if name.endswith("evicting")]
    assert "assumed" not in note


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


def sent(view):
    """Return a view as it is sent, without when it was taken."""
    return json.loads(json_line(replace(view, taken_at="")))


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
def test_a_view_that_follows_another_is_the_one_made_anew(what):
    world = World(3, 12)
    world.measure("worker-0")
    first = world.snapshot()
    page = page_about(of_cluster(first))
    page.cluster()
    CHANGES[what](world)
    after = page_about(of_cluster(world.snapshot(first)), page).cluster()
    anew = page_about(of_cluster(world.snapshot())).cluster()
    assert sent(after) == sent(anew)


def test_only_nodes_whose_pods_have_changed_are_ranked_again(monkeypatch):
    world = World(20, 200)
    first = world.snapshot()
    page = page_about(of_cluster(first))
    page.cluster()
    ranked = []
    rank = page_nodes.rank
    monkeypatch.setattr(page_nodes, "rank", lambda state, **given: ranked.append(state) or rank(state, **given))
    world.pod(7, "worker-7", 500)
    page = page_about(of_cluster(world.snapshot(first)), page)
    page.cluster()
    assert [each.snapshot.node.name for each in ranked] == ["worker-7"]
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
    assert sent(page_about(again).cluster()) == sent(page_about(of_cluster(snapshot)).cluster())


def test_two_pods_of_one_name_on_a_node_are_both_shown():
    world = World(1, 2)
    first = world.snapshot()
    page = page_about(of_cluster(first))
    page.cluster()
    spec = {"nodeName": "worker-0", "containers": [{"name": "c"}]}
    twin = {"metadata": {"name": "pod-0", "namespace": "shop", "uid": "twin"}, "spec": spec}
    world.put("Pod", {**twin, "status": {"phase": "Running"}})
    after = page_about(of_cluster(world.snapshot(first)), page).cluster()
    assert len(after.pods) == 3


def test_a_snapshot_that_is_cut_off_is_refused_also_where_it_follows_another():
    world = World(1, 2)
    first = world.snapshot()
    lines = [msgspec.json.encode(Header()), *(line for line, _ in first._entries[:-1])]
    with pytest.raises(Exception, match="truncated"):
        ClusterSnapshot(lines, "cluster", first)
    assert ClusterSnapshot([*lines, msgspec.json.encode(End(len(lines)))], "cluster", first).nodes
