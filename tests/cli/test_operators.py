"""Objects of operators in every command: read alike, fixed where their resources stand, and counted if not judged."""

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

OBJECTS = """\
apiVersion: databases.spotahome.com/v1
kind: RedisFailover
metadata: {name: cache}
spec:
  sentinel:
    resources:
      requests: {cpu: 100m, memory: 100Mi}
      limits: {memory: 100Mi}
  redis:
    replicas: 2
    resources:
      requests:
        memory: 1Gi  # what it needs
      limits:
        memory: 8Gi
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {deep: [{resources: {limits: {cpu: 1}}}]}
"""
PROMETHEUS = """\
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: p}
spec:
  resources:
    requests: {cpu: 500m, memory: 1900Mi}
    limits: {cpu: 500m, memory: 2Gi}
"""
USAGE = """\
namespace,pod,container,memory,cpu
default,rfr-cache-0,redis,3Gi,200m
default,rfs-cache-0,sentinel,80Mi,10m
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("object.yaml").write_text(OBJECTS)
    Path("usage.csv").write_text(USAGE)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "-o", "table"],
        ["check", "-v"],
        ["admit"],
        ["rank"],
        ["cpu", "--cores", "2"],
        ["place", "--nodes", "2", "--node-capacity", "cpu=4,memory=16Gi"],
        ["advise", "--usage", "usage.csv"],
    ],
)
def test_every_command_reads_the_pods_of_an_operator_says_what_it_assumes_and_names_what_it_cannot_judge(run, command):
    code, out, err = run(*command, "-f", "object.yaml")
    assert code in {0, 1}
    assert "rfr-cache" in out
    assert "rfs-cache" in out
    assert "what operators add to the pods of RedisFailover: nothing" in err
    assert err.count("Widget w not judged: it has resources at spec.deep[0].resources, but its kind is unknown") == 1


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("explain", "2 pods explained; 1 custom resource not judged: Widget (1)"),
        ("admit", "2 workloads processed; 1 custom resource not judged: Widget (1)"),
        ("check", "1 custom resource not judged: Widget (1)"),
    ],
)
def test_objects_that_are_not_judged_are_counted_by_kind_and_not_among_those_without_pods(run, command, line):
    _, _, err = run(command, "-f", "object.yaml")
    assert line in err.splitlines()
    assert "without pods" not in err


def test_one_object_with_several_reasons_counts_once(run):
    parts = "\n".join(f"  {part}: {{replicaCount: 1}}" for part in ("vmselect", "vminsert", "vmstorage"))
    head = "apiVersion: operator.victoriametrics.com/v1beta1\nkind: VMCluster\nmetadata: {name: m}\nspec:\n"
    Path("object.yaml").write_text(head + parts)
    code, _, err = run("explain", "-f", "object.yaml")
    assert code == 2
    assert "no pods explained; 1 custom resource not judged: VMCluster (1)" in err


def test_a_fix_changes_the_stated_resources_and_nothing_else(run):
    run("check", "object.yaml", "--fix", "--only", "PQ105")
    assert Path("object.yaml").read_text() == OBJECTS.replace("memory: 1Gi  #", "memory: 2Gi  #")


def test_a_finding_points_to_the_line_of_the_stated_resources(run):
    _, out, _ = run("check", "object.yaml", "-o", "json", "--only", "PQ105")
    (finding,) = json.loads(out)["items"]
    assert (finding["name"], finding["line"]) == ("rfr-cache", 13)
    assert finding["path"] == "spec.redis.resources.requests.memory"


def test_advice_about_several_pods_of_an_object_is_one_object(run):
    code, out, _ = run("advise", "-f", "object.yaml", "--usage", "usage.csv", "--patch", "kustomize")
    assert code == 0
    assert out.count("\nkind: RedisFailover") == 1
    assert "3760Mi" in out


def test_advice_is_written_where_the_resources_stand(run):
    code, _, _ = run("advise", "-f", "object.yaml", "--usage", "usage.csv", "--fix")
    assert code == 0
    assert "memory: 3760Mi  # what it needs" in Path("object.yaml").read_text()


def test_a_pod_to_which_an_operator_adds_containers_is_not_said_to_become_guaranteed(run):
    Path("object.yaml").write_text(PROMETHEUS)
    for command in (["explain", "-v"], ["check", "-v"], ["rank"]):
        _, out, _ = run(*command, "-f", "object.yaml")
        assert "Burstable" in out or command[0] == "check"
        assert "make it Guaranteed" not in out
        assert "PQ101" not in out
    Path("object.yaml").write_text(
        PROMETHEUS.replace("monitoring.coreos.com/v1", "rabbitmq.com/v1beta1").replace("Prometheus", "RabbitmqCluster")
    )
    _, out, _ = run("explain", "-f", "object.yaml")
    assert "make it Guaranteed" in out or "makes it Guaranteed" in out


def test_drift_compares_the_pods_of_an_operator(run):
    for name, amount in (("old", "1Gi"), ("new", "4Gi")):
        Path(name).mkdir()
        Path(name, "object.yaml").write_text(OBJECTS.replace("memory: 1Gi", f"memory: {amount}"))
    _, out, _ = run("drift", "old", "new")
    assert "redis: requests.memory 1Gi → 4Gi" in out
