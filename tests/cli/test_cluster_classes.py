"""Classes that live in the cluster and in no file: the workload stays, what is taken is said, and can be stated."""

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      {extra}
      containers:
        - {{name: {name}, image: img, resources: {{requests: {{cpu: 100m, memory: {memory}}}}}}}
"""
NAMED = DEPLOYMENT.format(name="web", extra="priorityClassName: gold", memory="64Mi")
PLAIN = DEPLOYMENT.format(name="batch", extra="terminationGracePeriodSeconds: 5", memory="64Mi")
KATA = DEPLOYMENT.format(name="jail", extra="runtimeClassName: kata", memory="64Mi")
GOLD = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 7000\n"
ASSUMED = "priority of class gold: 0 (--priority gold=VALUE)"
NODES = ["--nodes", "2", "--node-capacity", "cpu=4,memory=8Gi"]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return run


def write(path, *documents):
    Path(path).write_text("---\n".join(documents), encoding="utf-8")


COMMANDS = [
    pytest.param(["explain", "-o", "table"], id="explain"),
    pytest.param(["check"], id="check"),
    pytest.param(["admit", "-o", "table"], id="admit"),
    pytest.param(["place", *NODES, "-o", "csv"], id="place"),
    pytest.param(["cpu", "--cores", "4"], id="cpu"),
    pytest.param(["rank"], id="rank"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_workload_with_an_unknown_class_stays_and_its_priority_is_said(run, command):
    write("web.yaml", NAMED, PLAIN)
    code, out, err = run(*command, "-f", "web.yaml")
    assert code in {0, 1}
    assert "web" in out
    assert ASSUMED in err
    assert "no PriorityClass" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stated_priority_is_no_assumption(run, command):
    write("web.yaml", NAMED, PLAIN)
    code, out, err = run(*command, "-f", "web.yaml", "--priority", "gold=5000")
    assert code in {0, 1}
    assert "web" in out
    assert "class gold" not in err


def test_a_stated_priority_decides_the_order(run):
    write("web.yaml", NAMED, PLAIN)
    write("usage.csv", "pod,memory\nweb,1Gi\nbatch,1Gi\n")
    given = ["rank", "-f", "web.yaml", "--usage", "usage.csv", "-o", "json"]
    orders = []
    for options in (["--priority", "gold=5000"], ["--priority", "gold=-5"]):
        _, out, _ = run(*given, *options)
        orders.append([each["pod"].partition("-")[0] for each in json.loads(out)["evictionOrder"]])
    assert orders == [["default/batch", "default/web"], ["default/web", "default/batch"]]


def test_drift_keeps_a_workload_of_an_unknown_class(run):
    write("old.yaml", NAMED.replace("memory: 64Mi}}", "memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}"))
    write("new.yaml", NAMED)
    code, out, err = run("drift", "old.yaml", "new.yaml")
    assert code == 1
    assert "Guaranteed" in out
    assert ASSUMED in err


def test_advise_keeps_a_workload_of_an_unknown_class(run):
    write("web.yaml", NAMED)
    write("usage.csv", "pod,container,memory,cpu\nweb-1,web,64Mi,0.1\nweb-1,web,80Mi,0.1\n")
    code, out, err = run("advise", "-f", "web.yaml", "--usage", "usage.csv")
    assert code == 0
    assert "web" in out
    assert "forbidden" not in out
    assert ASSUMED in err


def test_an_overhead_is_assumed_none_and_can_be_stated(run):
    write("jail.yaml", KATA)
    given = ["place", *NODES, "-f", "jail.yaml", "-o", "json"]
    _, out, _ = run(*given)
    assumed = {each["what"]: each["value"] for each in json.loads(out)["assumptions"]}
    assert assumed["overhead of runtime kata"] == "none"
    code, out, err = run(*given, "--runtime-class", "kata=cpu=5,memory=64Mi")
    report = json.loads(out)
    assert (code, len(report["pending"])) == (1, 1)  # 5 cores of overhead fit nowhere
    assert not any("kata" in each["what"] for each in report["assumptions"])
    assert err == ""


def test_admit_refuses_a_class_that_the_cluster_is_known_not_to_have(run):
    write("web.yaml", NAMED)
    write("cluster.yaml", GOLD.replace("gold", "silver"))
    code, out, _ = run("admit", "-f", "web.yaml", "--policies", "cluster.yaml")
    assert code == 1
    assert "no PriorityClass with name gold was found" in out


def test_what_is_stated_counts_before_a_file_and_that_is_said(run):
    write("web.yaml", NAMED, PLAIN, GOLD)
    _, out, err = run("explain", "-f", "web.yaml", "--priority", "gold=1", "-o", "json")
    assert "PriorityClass gold is set on the command line, which takes precedence" in err
    assert '"priority": 7000' not in out


def test_stating_one_class_does_not_say_that_there_are_no_others(run):
    write("web.yaml", NAMED)
    _, out, err = run("check", "-f", "web.yaml", "--priority", "silver=10")
    assert "PQ305" not in out
    assert ASSUMED in err


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--priority", "gold"),
        ("--priority", "=5"),
        ("--priority", "gold=much"),
        ("--priority", "gold=2000000000"),
        ("--priority", "system-mine=5"),
        ("--priority", "gold=-3000000000"),
        ("--runtime-class", "=cpu=1"),
        ("--runtime-class", "kata=cpu=lots"),
    ],
)
def test_a_class_that_cannot_be_is_one_clear_line(run, option, text):
    write("web.yaml", NAMED)
    code, _, err = run("explain", "-f", "web.yaml", option, text)
    assert code == 2
    assert err.startswith(f"podqos: error: {option}")
    assert len(err.splitlines()) == 1
