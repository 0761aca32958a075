"""Rows given to the pods they are about."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod, pod_of
from podqos.errors import InputError
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.orders.pods import NodePod
from podqos.orders.usage import from_usage, usage_row

NODE = NodeUsage(1 << 30)
MI = 1 << 20


def of(workload: str, *names: str) -> list[NodePod]:
    """Make the pods of a workload in namespace default."""
    return [NodePod(pod(name), f"default/{workload}") for name in names]


def in_namespace(namespace: str, made: Pod) -> NodePod:
    """Move a pod."""
    moved = replace(made, metadata=replace(made.metadata, namespace=namespace, uid=f"{namespace}_{made.metadata.uid}"))
    return NodePod(moved, moved.key)


def given(pods: list[NodePod], *rows: dict[str, object]) -> Snapshot:
    return from_usage(pods, [usage_row(row, f"row {index}") for index, row in enumerate(rows)], NODE)


def memory_of(found: Snapshot) -> dict[str, int | None]:
    """Return MiB by pod; None where nothing is known."""
    return {
        entry.pod.metadata.name: None if entry.stats is None else entry.stats.memory.working_set_bytes // MI
        for entry in found.pods
    }


NAMES = {
    "its own": ("a-0", {"a-0": 5, "a-1": None}),
    "its own with namespace": ("default/a-1", {"a-0": None, "a-1": 5}),
    "its workload's": ("a", {"a-0": 5, "a-1": 5}),
    "its workload's with namespace": ("default/a", {"a-0": 5, "a-1": 5}),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES)
def test_a_row_names_a_pod_or_its_workload(name, expected):
    assert memory_of(given(of("a", "a-0", "a-1"), {"pod": name, "memory": "5Mi"})) == expected


def test_the_container_may_be_left_out_where_there_is_one():
    found = given(of("a", "a"), {"pod": "a", "memory": "5Mi"})
    assert found.pods[0].containers[0].name == "main"


def test_containers_add_up_to_the_pod_and_one_without_a_row_is_unknown():
    three = pod_of("p", container("x"), container("y"), container("z"))
    pods = [NodePod(three, three.key)]
    rows = [{"pod": "p", "container": name, "memory": "5Mi", "processes": 2} for name in ("x", "y")]
    (entry,) = given(pods, *rows).pods
    assert entry.stats.memory.working_set_bytes == 10 * MI
    assert entry.stats.process_stats.process_count == 4
    assert [usage.is_measured for usage in entry.containers] == [True, True, False]


FIGURES = {
    "all private": ({"memory": "8Mi"}, (8, 0, 0)),
    "part of it page cache": ({"memory": "8Mi", "anon": "3Mi"}, (3, 5, 0)),
    "only the private part known": ({"anon": "3Mi"}, (3, 0, 0)),
    "page tables are part of it": ({"memory": "8Mi", "pageTables": "1Mi"}, (7, 0, 0)),
    "inactive cache is on top": ({"memory": "8Mi", "inactiveFile": "9Mi"}, (8, 0, 9)),
}


@pytest.mark.parametrize(("row", "expected"), FIGURES.values(), ids=FIGURES)
def test_what_memory_consists_of(row, expected):
    found = given(of("a", "a"), {"pod": "a", **row})
    (usage,) = found.pods[0].containers
    anon, active, inactive = (
        part // MI for part in (usage.anon_bytes, usage.active_file_bytes, usage.inactive_file_bytes)
    )
    assert (anon, active, inactive) == expected
    assert usage.working_set_bytes == Quantity.parse(str(row.get("memory", row.get("anon")))).value


@pytest.mark.parametrize(
    ("signal", "expected"),
    [(Signal.NODEFS, ["b", "a"]), (Signal.NODEFS_INODES, ["a", "b"]), (Signal.PID, ["a", "b"])],
)
def test_disk_inodes_and_processes_reach_the_ranking(signal, expected):
    rows = {"pod": "a", "disk": "1Mi", "inodes": 9, "processes": 8}, {"pod": "b", "disk": "2Mi", "inodes": 3}
    found = given([*of("a", "a"), *of("b", "b")], *rows)
    ranked = rank([entry.pod for entry in found.pods], found.stats, Ranking(signal))
    assert [entry.pod.metadata.name for entry in ranked] == expected


BAD = {
    "nobody": ([{"pod": "analytic"}], "row 0: no such pod: analytic (did you mean analytics"),
    "several": ([{"pod": "twin"}], "row 0: twin is ambiguous (write one/twin or two/twin)"),
    "no such container": ([{"pod": "analytics", "container": "x"}], "row 0: default/analytics has no container x"),
    "which container": ([{"pod": "pair"}], "row 0: default/pair has several containers (container is one of x, y)"),
    "twice": ([{"pod": "analytics"}, {"pod": "default/analytics"}], "row 1: a second row for default/analytics"),
}


@pytest.mark.parametrize(("rows", "message"), BAD.values(), ids=BAD)
def test_nothing_is_guessed(rows, message):
    pair = pod_of("pair", container("x"), container("y"))
    pods = [
        *of("analytics", "analytics"),
        NodePod(pair, pair.key),
        in_namespace("one", pod("twin")),
        in_namespace("two", pod("twin")),
    ]
    with pytest.raises(InputError) as caught:
        given(pods, *({"memory": "1Mi", **row} for row in rows))
    assert str(caught.value).startswith(message)
