"""Snapshots of a cluster: what is kept, what is not, and that every command takes one."""

from __future__ import annotations

import gzip
import json
import re

import msgspec
import pytest

import podqos
from library import clusters
from podqos.cli.main import main
from podqos.errors import InputError
from podqos.manifest.decode import decode_pod
from podqos.manifest.pruning import pruned_list
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Restart
from podqos.questions.node import cluster_state
from podqos.reading.snapshot_files import read_snapshot, write_snapshot


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "cluster.json.gz")
    write_snapshot(clusters.lines(), path)
    return path


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_nothing_that_is_secret_is_kept():
    text = b"\n".join(clusters.lines())

    assert clusters.SECRET.encode() not in text
    for field in (b"managedFields", b"last-applied", b"10.1.2.3", b'"env"', b'"command"', b'"args"', b"httpGet"):
        assert field not in text


def test_a_pod_reads_back_as_it_was_but_for_annotations():
    (line,) = (line for line in clusters.lines() if b'"PodList"' in line)
    for whole, kept in zip(clusters.PODS, json.loads(line)["items"], strict=True):
        before, after = decode_pod(json.dumps(whole).encode()), decode_pod(json.dumps(kept).encode())
        assert (after.spec, after.status) == (before.spec, before.status)
        assert after.metadata.annotations == {"podqos.dev/latency-sensitive": "true"}
        assert (after.metadata.uid, after.metadata.labels) == (before.metadata.uid, before.metadata.labels)
        assert after.metadata.owner_references == before.metadata.owner_references


def test_lists_that_no_decision_reads_are_not_kept():
    assert pruned_list(b'{"kind":"SecretList","apiVersion":"v1","items":[{"data":{"a":"b"}}]}') is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"kind":"PodList","apiVersion":"v1","items":[3]}', b"\xff"])
def test_an_answer_that_is_no_list_is_refused_in_a_line(data):
    with pytest.raises(InputError, match="not a list from an API server"):
        pruned_list(data)


# ---- names -----------------------------------------------------------------------------------------------------------


def test_without_names_nothing_tells_whose_it_is():
    text = b"\n".join(clusters.lines(anonymous=True)).decode()

    for word in ("acme", "shop", "web", "db", "atlas", "blue", "registry", "7d4b9c", "aaaaa", "shell"):
        assert not re.search(rf"\b{word}\b", text), word


def test_without_names_every_answer_stays_the_same():
    named, nameless = clusters.snapshot(), clusters.snapshot(anonymous=True)
    first = next(iter(nameless.nodes))
    orders = [podqos.rank(cluster_state(each, node)) for each, node in ((named, "atlas-1"), (nameless, first))]

    for order in ("eviction_order", "kill_order"):
        facts = [[(each.qos_class, each.place) for each in getattr(report, order)] for report in orders]
        assert facts[0] == facts[1]
    assert len(podqos.load(named.declared()).workloads) == len(podqos.load(nameless.declared()).workloads)
    conditions = [node.status.conditions for node in nameless.nodes.values()]
    assert [[(each.type, each.status) for each in of] for of in conditions] == [
        [("Ready", "Unknown")],
        [("Ready", "True")],
    ]


# ---- what it holds ---------------------------------------------------------------------------------------------------


def test_pods_run_and_workloads_are_declared_once():
    cluster = clusters.snapshot()
    running = [each.workload.pod.key for each in cluster.objects.workloads]
    declared = [
        f"{each.workload.kind} {each.workload.metadata.name}" for each in podqos.load(cluster.declared()).workloads
    ]

    assert running == ["shop/web-7d4b9c-aaaaa", "shop/web-7d4b9c-bbbbb", "shop/db-0", "shop/shell"]
    assert declared == ["Deployment web", "StatefulSet db", "Pod shell"]


def test_usage_and_settings_are_those_of_the_nodes_kubelet():
    state = cluster_state(clusters.snapshot(), "atlas-1")

    assert state.is_kubelets
    assert {each.pod.key: each.containers[0].working_set_bytes >> 20 for each in state.snapshot.pods} == {
        "shop/web-7d4b9c-aaaaa": 1536,
        "shop/db-0": 1800,
        "shop/shell": 100,
    }
    assert state.kubelet is not None
    assert state.kubelet.config.eviction_hard == {"memory.available": "500Mi"}


def test_what_no_kubelet_measured_is_assumed_and_said():
    state = cluster_state(clusters.snapshot(), "atlas-2")

    assert state.snapshot.node.memory_bytes == 8 << 30
    assert [each.what for each in state.assumptions] == ["usage"]


def test_a_node_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(InputError, match=r"no such node: atlas-3 .*did you mean atlas-"):
        cluster_state(clusters.snapshot(), "atlas-3")
    with pytest.raises(InputError, match=r"the cluster has 2 nodes .*name one: atlas-1, atlas-2"):
        cluster_state(clusters.snapshot())


def test_rules_are_those_of_the_servers_version():
    assert clusters.snapshot().profile.version == (1, 34)


# ---- the file --------------------------------------------------------------------------------------------------------


def test_a_file_reads_back_as_what_was_written(tmp_path):
    for name in ("cluster.json", "cluster.json.gz"):
        path = str(tmp_path / name)
        assert write_snapshot(clusters.lines(), path) == len(clusters.lines())
        assert read_snapshot(path).objects.workloads[0].workload == clusters.snapshot().objects.workloads[0].workload


def test_a_file_that_was_cut_off_anywhere_is_refused_in_a_line(tmp_path):
    whole = b"\n".join(clusters.lines()) + b"\n"
    path = tmp_path / "cluster.json"
    for size in [*range(0, len(whole) - 2, 97), len(whole) - 2]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_snapshot(str(path))
    packed = gzip.compress(whole)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match="truncated"):
        read_snapshot(str(path))


def test_a_list_that_began_again_counts_once():
    *most, _ = clusters.lines()
    pods = clusters.kept("PodList", clusters.PODS[:1])
    again = [*most, msgspec.json.encode(Restart("PodList")), pods]
    cluster = ClusterSnapshot([*again, msgspec.json.encode(End(len(again)))], "cluster.json")

    assert [each.workload.pod.key for each in cluster.objects.workloads] == ["shop/web-7d4b9c-aaaaa"]


def test_pages_of_a_list_are_one_list():
    *most, _ = (line for line in clusters.lines() if b'"PodList"' not in line)
    lines = [*most, *(clusters.kept("PodList", [each]) for each in clusters.PODS)]
    cluster = ClusterSnapshot([*lines, msgspec.json.encode(End(len(lines)))], "cluster.json")

    assert len(cluster.objects.workloads) == 4


# ---- every command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("explain -o csv", "shop,shell,shell,BestEffort,1000"),
        ("check", "Pod shop/shell is evicted before shop/web when every pod is at its memory limit"),
        ("rank --node atlas-1", "1  shop/shell"),
        ("cpu --node atlas-1 --cores 4", "shop/db-0"),
        ("forecast --node atlas-1 --growing shop/shell --rate 1Gi/s", "shop/shell"),
        ("blast --node atlas-1", "3 pods on one node"),
        ("place", "4 of 4 pods are placed on 2 nodes"),
    ],
)
def test_every_command_takes_a_snapshot(command, expected, file, capsys):
    assert main([*command.split(), "--snapshot", file]) in {0, 1}
    assert re.sub(" +", " ", expected) in re.sub(" +", " ", capsys.readouterr().out)


def test_pods_of_a_node_are_of_a_snapshot_or_of_files(file, capsys):
    assert main(["cpu", "-f", "x.yaml", "--snapshot", file]) == 2
    assert "files and a cluster cannot be combined" in capsys.readouterr().err
