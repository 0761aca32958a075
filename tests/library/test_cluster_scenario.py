"""A cluster as it is now, as a scenario: what is taken over, what is assumed, that it runs, and what if."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from library import clusters
from library.test_live_cluster import api_server, podqos
from podqos.agent.journal import Kind
from podqos.manifest.pruning import pruned_list, pruned_summary
from podqos.model.time_units import MINUTE_US
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeKubelet, NodeSummary
from podqos.reading.scenario_files import load_scenario
from podqos.reading.written_files import write_files
from podqos.runs.run import simulate
from podqos.runs.scenarios import UsageSource, cluster_scenario
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.variation import Variation, parse_assignment

MI = 1 << 20
GI = 1 << 30


def taken(folder: Path, cluster: ClusterSnapshot, *what_if: str, **options: Any) -> Scenario:
    made = cluster_scenario(cluster, "now", **options)
    write_files(made.files, str(folder))
    return load_scenario(str(folder / "now.yaml"), Variation([*map(parse_assignment, what_if)]))


def snapshot_of(*lists: tuple[str, str, list[dict[str, Any]]], **kubelets: bytes) -> ClusterSnapshot:
    lines = []
    for kind, version, items in lists:
        line = pruned_list(json.dumps({"kind": kind, "apiVersion": version, "metadata": {}, "items": items}).encode())
        assert line is not None
        lines.append(line)
    if "summary" in kubelets:
        summary = msgspec.Raw(pruned_summary(kubelets["summary"]))
        lines.append(msgspec.json.encode(NodeSummary("atlas-1", summary)))
    if "configz" in kubelets:
        lines.append(msgspec.json.encode(NodeKubelet("atlas-1", msgspec.Raw(kubelets["configz"]))))
    lines.insert(0, msgspec.json.encode(Header(server_version="v1.34.2")))
    return ClusterSnapshot([*lines, msgspec.json.encode(End(len(lines)))], "cluster.json")


def node(**spec: Any) -> tuple[str, str, list[dict[str, Any]]]:
    version, (first, *_) = clusters.LISTS["NodeList"]
    ready = {**first["status"], "conditions": [{"type": "Ready", "status": "True"}]}
    return "NodeList", version, [{**first, "status": ready, "spec": spec}]


def pods(*items: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
    return "PodList", "v1", list(items)


def test_every_pod_runs_under_its_name_on_its_node_with_what_its_kubelet_measured(tmp_path):
    scenario = taken(tmp_path, clusters.snapshot())
    found = {each.name: each for each in scenario.workloads}

    assert {name: each.nodes for name, each in found.items()} == {
        "web-7d4b9c-aaaaa": ("atlas-1",),
        "web-7d4b9c-bbbbb": ("atlas-2",),
        "db-0": ("atlas-1",),
        "shell": ("atlas-1",),
    }
    assert found["db-0"].demand_of(0, "db").anon_bytes.at(0) == 1800 * MI
    assert found["web-7d4b9c-bbbbb"].demand_of(0, "web").anon_bytes.at(0) == GI  # not measured: what it requests
    assert {name: each.recreate for name, each in found.items() if not each.recreate} == {"shell": False}
    assert scenario.profile.version == (1, 34)


def test_nodes_keep_capacity_labels_and_kubelet_settings(tmp_path):
    first, second = (group.spec for group in taken(tmp_path, clusters.snapshot()).nodes)

    assert first.labels["acme.example/pool"] == "blue"
    assert first.config.eviction_hard == {"memory.available": "500Mi"}
    assert second.config.eviction_hard is None
    assert (first.memory_bytes, first.cpu_milli) == (8 * GI, 4000)
    assert first.system.anon_bytes.at(0) == 4 * GI - (1536 + 1800 + 100) * MI


def test_it_runs_for_an_hour_and_nothing_happens_to_a_calm_cluster(tmp_path):
    scenario = taken(tmp_path, clusters.snapshot())
    happened = {entry.kind for entry in simulate(scenario).journal}

    assert scenario.duration_us == 60 * MINUTE_US
    assert not happened & {Kind.EVICTED, Kind.OOM_KILLED, Kind.PENDING}


def test_where_usage_is_from_is_said():
    made = cluster_scenario(clusters.snapshot(), "now")

    assert made.sources == {UsageSource.KUBELET: 3, UsageSource.REQUESTS: 1}
    assert any(each.what == "usage of shop/web-7d4b9c-bbbbb" for each in made.assumptions)
    assert "Usage of 1 pod: their requests" in " ".join(made.files["now.yaml"].split())
    assert any("atlas-1" in each.what and "not ready" in each.what for each in made.assumptions)


def test_without_a_kubelet_metrics_count(tmp_path):
    usage = {"cpu": "120m", "memory": "300Mi"}
    metrics = {"metadata": {"name": "shell", "namespace": "shop"}, "containers": [{"name": "shell", "usage": usage}]}
    cluster = snapshot_of(node(), pods(clusters.PODS[3]), ("PodMetricsList", "metrics.k8s.io/v1beta1", [metrics]))
    (shell,) = taken(tmp_path, cluster).workloads
    demand = shell.demand_of(0, "shell")

    assert cluster_scenario(cluster, "now").sources == {UsageSource.METRICS: 1}
    assert (demand.anon_bytes.at(0), demand.cpu_milli.at(0)) == (300 * MI, 120)


def test_page_cache_tmpfs_disks_and_processes_are_taken_over(tmp_path):
    spec = {
        **clusters.SHELL,
        "volumes": [{"name": "fast", "emptyDir": {"medium": "Memory"}}, {"name": "slow", "emptyDir": {}}],
    }
    stats = {
        "podRef": {"name": "shell", "namespace": "shop", "uid": "uid-of-shop-shell"},
        "containers": [
            {
                "name": "shell",
                "cpu": {"usageNanoCores": 250_000_001},
                "memory": {"workingSetBytes": 500 * MI, "rssBytes": 200 * MI, "usageBytes": 600 * MI},
                "rootfs": {"usedBytes": 3 * MI, "inodesUsed": 30},
                "logs": {"usedBytes": 2 * MI, "inodesUsed": 2},
            }
        ],
        "volume": [
            {"name": "fast", "usedBytes": 100 * MI},
            {"name": "slow", "usedBytes": 5 * MI, "inodesUsed": 5},
            {"name": "claim", "usedBytes": 900 * GI},
        ],
        "process_stats": {"process_count": 7},
    }
    disk = {"capacityBytes": 100 * GI, "availableBytes": 60 * GI, "inodes": 1000, "inodesFree": 900}
    machine = {"nodeName": "atlas-1", "memory": clusters.MEMORY, "fs": disk, "rlimit": {"maxpid": 4000, "curproc": 107}}
    summary = json.dumps({"node": machine, "pods": [stats]}).encode()
    scenario = taken(
        tmp_path, snapshot_of(node(), pods(clusters.pod("shell", spec, "atlas-1", "BestEffort")), summary=summary)
    )
    demand = scenario.workloads[0].demand_of(0, "shell")
    machine_spec = scenario.nodes[0].spec

    assert demand.anon_bytes.at(0) == 200 * MI
    assert (demand.active_file_bytes.at(0), demand.inactive_file_bytes.at(0)) == (200 * MI, 100 * MI)
    assert {name: each.used_bytes.at(0) for name, each in demand.volumes.items()} == {"fast": 100 * MI, "slow": 5 * MI}
    assert (demand.rootfs_bytes.at(0), demand.logs_bytes.at(0)) == (3 * MI, 2 * MI)
    assert (demand.pids_wanted.at(0), demand.cpu_milli.at(0)) == (7, 251)
    assert machine_spec.nodefs.capacity_bytes == 100 * GI
    assert machine_spec.system.nodefs_bytes.at(0) == 40 * GI - 10 * MI
    assert machine_spec.system.nodefs_inodes.at(0) == 100 - 37
    assert (machine_spec.max_pids, machine_spec.system.pids.at(0)) == (4000, 100)


def test_taints_of_conditions_are_left_to_the_simulated_kubelet_and_those_of_people_stay(tmp_path):
    taints = [
        {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    ]
    (group,) = taken(tmp_path, snapshot_of(node(taints=taints, unschedulable=True), pods(clusters.PODS[3]))).nodes

    assert [each.key for each in group.spec.taints] == ["dedicated", "node.kubernetes.io/unschedulable"]


def test_a_pod_with_a_device_keeps_running(tmp_path):
    spec = {"containers": [clusters.container("a", {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"})]}
    cluster = snapshot_of(node(), pods(clusters.pod("train", spec, "atlas-1", "BestEffort")))
    kinds = [entry.kind for entry in simulate(taken(tmp_path, cluster)).journal]

    assert Kind.STARTED in kinds
    assert any("nvidia.com/gpu" in each.what for each in cluster_scenario(cluster, "now").assumptions)


def test_pods_that_ended_or_wait_for_a_gate_are_left_out(tmp_path):
    ended = clusters.pod("job", clusters.SHELL, "atlas-1", "BestEffort")
    ended["status"]["phase"] = "Succeeded"
    gated = clusters.pod("gated", {**clusters.SHELL, "schedulingGates": [{"name": "a"}]}, "", "BestEffort")
    scenario = taken(tmp_path, snapshot_of(node(), pods(clusters.PODS[3], ended, gated)))

    assert [each.name for each in scenario.workloads] == ["shell"]


def test_a_pod_of_a_daemon_set_is_replaced_on_its_node_and_one_of_a_deployment_by_the_scheduler(tmp_path):
    agent = clusters.pod(
        "agent-xxxxx", clusters.SHELL, "atlas-1", "BestEffort", ownerReferences=clusters.owner("DaemonSet", "agent")
    )
    found = taken(tmp_path, snapshot_of(node(), pods(agent, clusters.PODS[0]))).workloads

    assert {each.name: each.pod.spec.node_name for each in found} == {"agent-xxxxx": "atlas-1", "web-7d4b9c-aaaaa": ""}


def test_budgets_are_taken_over(tmp_path):
    budget = {
        "metadata": clusters.metadata("web", "shop"),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    lists = [("PodDisruptionBudgetList", "policy/v1", [budget]), node(), pods(clusters.PODS[3])]
    (found,) = taken(tmp_path, snapshot_of(*lists)).budgets

    assert (found.metadata.namespace, found.spec.min_available) == ("shop", 1)


def test_what_if_a_pod_grows_and_a_node_is_lost(tmp_path):
    what_if = "memory@shop/shell=256Mi per minute", "nodeLost@atlas-2=10m"
    journal = simulate(taken(tmp_path, clusters.snapshot(), *what_if)).journal
    victims = {entry.pod for entry in journal if entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}}
    replaced = {entry.pod for entry in journal if entry.kind is Kind.REPLACED}

    assert "shop/shell" in victims
    assert "shop/web-7d4b9c-bbbbb-r1" in replaced


@pytest.mark.parametrize(
    ("what_if", "message"),
    [
        ("memory@shop/nope=1Gi", "the scenario has no workload shop/nope"),
        ("memory@shop/shell=much", "much"),
        ("memory@shop/shell:other=1Gi", "the container is ambiguous"),
        ("memory=1Gi", "no workload given"),
        ("nodeLost@nope=1m", "no such node: nope"),
        ("nodeLost=1m", "no node given"),
        ("nodeLost@atlas-1=soon", "soon"),
        ("phase=1s,2s", "2 values"),
        ("wish=1", "unknown parameter wish"),
    ],
)
def test_a_wrong_what_if_is_one_message(what_if, message, served, capsys):
    served()
    code, _, err = podqos(capsys, "simulate", "--from", "cluster", "--until", "1m", "--what-if", what_if)

    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_a_live_cluster_is_written_and_simulated(served, capsys):
    server = served()
    code, out, err = podqos(capsys, "scenario", "new", "now", "--from-cluster", "--duration", "10m")

    assert code == 0, err
    assert "4 pods on 2 nodes" in out
    assert "assumed: " in err
    assert podqos(capsys, "simulate", "now.yaml")[0] == 0
    assert {request.method for request in server.requests} == {"GET"}
    assert podqos(capsys, "scenario", "new", "now", "--from-cluster")[0] == 2  # nothing is overwritten


def test_one_node_asks_for_that_node_alone(served, capsys):
    server = served()
    code, out, err = podqos(capsys, "scenario", "new", "now", "--from-cluster", "--node", "atlas-1")

    assert code == 0, err
    assert "3 pods on 1 node" in out
    assert not [request.target for request in server.requests if "atlas-2" in request.target]


def test_simulating_a_cluster_keeps_no_files_and_says_the_same_as_its_snapshot(served, capsys):
    served()
    assert podqos(capsys, "snapshot", "-o", "c.json.gz")[0] == 0
    before = sorted(Path().iterdir())
    words = "simulate", "--from", "cluster", "--until", "5m", "-o", "jsonl"
    code, live, err = podqos(capsys, *words)
    kept = podqos(capsys, *words, "--snapshot", "c.json.gz")[1]

    assert code == 0, err
    assert live == kept
    assert live.count("\n") > 4
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "race", "--from", "cluster"), "two scenarios"),
        (("simulate", "race", "--snapshot", "c.json"), "add --from cluster"),
        (("scenario", "new", "Not-A-Name", "--from-cluster"), "is not a valid name"),
        (("scenario", "new", "now", "--from-cluster", "--node", "nope"), "no such node: nope"),
        (("scenario", "new", "now", "--from-cluster", "--snapshot", "missing.json"), "missing.json"),
        (("scenario", "new", "now", "--from-cluster", "--duration", "0s"), "not positive"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_wrong_words_are_one_message(words, message, served, capsys):
    served()
    code, _, err = podqos(capsys, *words)

    assert code == 2
    assert message in err


def test_a_cluster_without_pods_is_refused(served, capsys):
    def empty(request):
        if request.path.endswith("/pods"):
            return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}).encode()
        return api_server(request)

    served(empty)
    code, _, err = podqos(capsys, "scenario", "new", "now", "--from-cluster")

    assert code == 2
    assert "no pod runs there" in err
