"""How commands speak about a cluster: names instead of lines, its policies for files, scores, plugin, ``--watch``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cluster.serving import Request, status
from library import clusters
from library.test_live_cluster import api_server, podqos
from podqos.objects.files import InputFile
from podqos.reading.files import source_of

QUOTA = {
    "metadata": {"name": "most", "namespace": "shop"},
    "spec": {"hard": {"pods": "5"}},
    "status": {"hard": {"pods": "5"}, "used": {"pods": "4"}},
}
DEFAULTS = {
    "metadata": {"name": "defaults", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "1Gi"}}]},
}
NEW = """apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  priorityClassName: acme-critical
  containers: [{name: main, image: x}]
"""


def with_policies(request: Request) -> object:
    """Answer as the small cluster, with a quota that has room for one more pod, and a LimitRange."""
    last = request.path.rpartition("/")[2]
    kinds = {"resourcequotas": ("ResourceQuotaList", QUOTA), "limitranges": ("LimitRangeList", DEFAULTS)}
    if last not in kinds:
        return api_server(request)
    kind, item = kinds[last]
    return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": [item]}).encode()


# ---- where something is ----------------------------------------------------------------------------------------------


def test_findings_about_a_cluster_name_the_object_and_the_field_and_no_line(served, capsys):
    server = served()
    _, out, _ = podqos(capsys, "check", "-A")

    assert "Pod shop/shell\n  spec.containers[0].resources: error PQ104" in out
    assert "objects of test checked" in out
    assert "file" not in out
    assert server.url not in out
    assert "--fix" not in out


def test_outputs_for_programs_have_no_file_where_there_is_none(served, capsys):
    served()
    report = json.loads(podqos(capsys, "check", "-A", "-o", "json")[1])
    sarif = json.loads(podqos(capsys, "check", "-A", "-o", "sarif")[1])
    github = podqos(capsys, "check", "-A", "-o", "github")[1]
    junit = ET.fromstring(podqos(capsys, "check", "-A", "-o", "junit")[1])  # noqa: S314 - our own output

    assert report["cluster"] == "test"
    assert {(item["source"], item["line"], item["column"]) for item in report["items"]} == {("test", 0, 0)}
    assert all("physicalLocation" not in each["locations"][0] for each in sarif["runs"][0]["results"])
    names = [each["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for each in sarif["runs"][0]["results"]]
    assert "Pod/shop/shell#spec.containers[0].resources" in names
    assert all(line.partition(" ")[2].startswith("title=") for line in github.splitlines())
    assert "Pod shop/shell spec.containers[0].resources" in github
    assert [suite.get("name") for suite in junit] == ["test"]
    assert all(case.get("file") is None for case in junit.iter("testcase"))


def test_problems_of_a_clusters_objects_name_the_object():
    items = [
        {"metadata": {"name": name, "namespace": "shop"}, "spec": {"containers": [{"name": "a", "resources": each}]}}
        for name, each in (("good", {}), ("bad", {"limits": {"cpu": "much"}}), ("fine", {}))
    ]
    data = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}).encode()
    source = source_of(InputFile("test:7", data=data, cluster="test"))
    (problem,) = source.reading.problems
    own = source.problem(source.reading.places[1], "spec", "is strange")

    assert str(problem).startswith("test: Pod shop/bad: error: spec.containers[0].resources.limits.cpu: ")
    assert source.reading.refused[0].problems == (problem,)
    assert str(own) == "test: Pod shop/fine: error: spec: is strange"


def test_a_snapshot_is_known_by_its_file(served, capsys):
    served()
    podqos(capsys, "snapshot", "-o", "c.json.gz")

    assert "objects of c.json.gz checked" in podqos(capsys, "check", "--snapshot", "c.json.gz")[1]


def test_explain_does_not_count_what_a_cluster_has_besides_pods(served, capsys):
    served()
    assert "without pods" not in podqos(capsys, "explain", "-A")[2]


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_a_cluster_is_not_fixed_but_patches_are_printed(option, served, capsys):
    served()
    code, out, err = podqos(capsys, "check", "-A", option)

    assert (code, out) == (2, "")
    assert "--patch kubectl" in err


def test_patches_name_kind_and_namespace_though_lists_say_the_kind_once(served, capsys):
    uneven = json.loads(json.dumps(clusters.LISTS["DeploymentList"][1]))
    containers = uneven[0]["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    containers.append({"name": "side", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}})
    page = {"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {}, "items": uneven}
    served(lambda asked: json.dumps(page).encode() if asked.path.endswith("deployments") else api_server(asked))

    _, out, _ = podqos(capsys, "check", "-A", "--only", "PQ101", "--patch", "kubectl")
    assert "kubectl patch deployment web" in out.lower()


# ---- files judged by a cluster ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [("-A",), ("--context", "test"), ("--snapshot", "c.json.gz")], ids=" ".join)
def test_files_are_judged_by_the_policies_of_the_cluster(cluster, served, capsys):
    served(with_policies)
    podqos(capsys, "snapshot", "-o", "c.json.gz")
    Path("new.yaml").write_text(NEW.replace("{name: one}", "{name: one, namespace: shop}"))
    _, explained, _ = podqos(capsys, "explain", "-f", "new.yaml", *cluster)
    _, checked, _ = podqos(capsys, "check", "-f", "new.yaml", *cluster)
    _, admitted, _ = podqos(capsys, "admit", "-f", "new.yaml", *cluster)

    assert "defaultRequest of LimitRange defaults" in explained
    assert "priority 1000 (PriorityClass acme-critical)" in explained
    assert "shop/shell" not in explained
    assert "PQ201 limit-range-changes-class" in checked
    assert "new.yaml:6:16: warning" in checked
    assert "1 object in 1 file checked" in checked
    assert "defaultRequest of LimitRange defaults" in admitted


def test_what_runs_is_charged_to_quotas_before_files_are_admitted(served, capsys):
    served(with_policies)
    Path("new.yaml").write_text(f"{NEW}---\n{NEW.replace('one', 'two')}")
    code, out, _ = podqos(capsys, "admit", "-f", "new.yaml", "-A", "-o", "json")
    outcomes = {each["name"]: each["outcome"] for each in json.loads(out)["items"]}

    assert code == 1
    assert outcomes == {"one": "allowed", "two": "refused"}


def test_files_without_a_namespace_are_in_that_of_the_context(served, capsys):
    served(with_policies)
    Path("new.yaml").write_text(NEW)

    assert "Pod shop/one" in podqos(capsys, "explain", "-f", "new.yaml", "-A")[1]
    assert "Pod other/one" in podqos(capsys, "explain", "-f", "new.yaml", "-A", "-n", "other")[1]
    assert "Pod default/one" in podqos(capsys, "explain", "-f", "new.yaml")[1]


def test_only_policies_and_nodes_are_asked_for_where_files_are_judged(served, capsys):
    server = served(with_policies)
    Path("new.yaml").write_text(NEW)
    podqos(capsys, "admit", "-f", "new.yaml", "--context", "test")
    asked = {request.path.rpartition("/")[2] for request in server.requests}

    assert "limitranges" in asked
    assert not asked & {"pods", "deployments", "summary"}


def test_policies_that_may_not_be_read_are_an_assumption_of_every_answer(served, capsys):
    def answer(request: Request) -> object:
        if request.path.endswith("limitranges"):
            return status(403, "Forbidden", 'limitranges is forbidden: User "me" cannot list resource')
        return api_server(request)

    served(answer)
    Path("new.yaml").write_text(NEW)
    for command in ("explain", "check", "admit"):
        for given in (("-A",), ("-A", "-f", "new.yaml")):
            assert "assumed: limitranges" in podqos(capsys, command, *given)[2].replace("\n", " "), (command, given)


def test_a_policy_that_changes_is_held_against_the_one_of_the_cluster(served, capsys):
    served(with_policies)
    item = json.loads(json.dumps(DEFAULTS))
    item["spec"]["limits"][0] |= {"default": {"memory": "3Gi"}, "defaultRequest": {"memory": "2Gi"}}
    Path("new.yaml").write_text(f"{json.dumps({'kind': 'LimitRange', 'apiVersion': 'v1', **item})}\n---\n{NEW}")
    _, out, err = podqos(capsys, "drift", "-A", "-f", "new.yaml", "-o", "json")
    changed = {each["name"]: each["after"] for each in json.loads(out)["workloads"] if each["before"] is None}

    assert "twice" not in err
    assert list(changed) == ["one"]
    assert changed["one"]["scores"][0]["oomScoreAdj"] == 750  # a request of 2Gi on a node of 8Gi


def test_pods_that_run_are_not_charged_to_their_quota_once_more(served, capsys):
    full = {**QUOTA, "status": {"hard": {"pods": "4"}, "used": {"pods": "4"}}, "spec": {"hard": {"pods": "4"}}}
    page = {"kind": "ResourceQuotaList", "apiVersion": "v1", "metadata": {}, "items": [full]}
    served(lambda asked: json.dumps(page).encode() if asked.path.endswith("resourcequotas") else api_server(asked))
    Path("new.yaml").write_text(NEW.replace("{name: one}", "{name: one, namespace: shop}"))

    assert "PQ207" not in podqos(capsys, "check", "-A")[1]
    assert "exceeded quota: most, requested: pods=1, used: pods=4" in podqos(capsys, "admit", "-A", "-f", "new.yaml")[1]


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("priorityClassName: acme-urgent", "the cluster has no PriorityClass acme-urgent: create it first"),
        ("runtimeClassName: gvisor", "the cluster has no RuntimeClass gvisor: create it first"),
    ],
    ids=["priority", "runtime, of which the list is empty"],
)
def test_what_a_cluster_lists_and_lacks_is_not_there(line, missing, served, capsys):
    empty = {"kind": "RuntimeClassList", "apiVersion": "node.k8s.io/v1", "metadata": {}, "items": []}
    served(lambda asked: json.dumps(empty).encode() if asked.path.endswith("runtimeclasses") else api_server(asked))
    Path("new.yaml").write_text(NEW.replace("priorityClassName: acme-critical", line))
    code, out, err = podqos(capsys, "admit", "-A", "-f", "new.yaml")

    assert code == 1
    assert missing in " ".join(out.split())
    assert "--policies" not in out + err


def test_what_a_cluster_does_not_let_be_listed_may_be_there(served, capsys):
    served(lambda asked: status(403, "Forbidden") if "classes" in asked.path else api_server(asked))
    Path("new.yaml").write_text(NEW)

    assert podqos(capsys, "admit", "-A", "-f", "new.yaml")[0] == 0


# ---- wide, and watching ----------------------------------------------------------------------------------------------


def test_wide_has_a_line_per_pod_with_both_places(served, capsys):
    served()
    _, out, _ = podqos(capsys, "rank", "atlas-1", "-o", "wide")
    evicted, killed = (order.splitlines()[2:] for order in out.split("\n\n")[1:3])
    places = [[row.split()[:2] for row in order] for order in (evicted, killed)]

    assert places[0] == [["1", "shop/shell"], ["2", "shop/web-7d4b9c-aaaaa"], ["3", "shop/db-0"]]
    assert places[1] == [["1", "shop/web-7d4b9c-aaaaa"], ["2", "shop/shell"], ["3", "shop/db-0"]]
    assert [row.split()[6] for row in evicted] == ["2", "1", "3"]  # where the kernel takes it


def test_wide_overview_has_every_namespace_and_name_the_nodes(served, capsys):
    served()
    assert "CPU LIMITS" in podqos(capsys, "overview", "-o", "wide")[1]
    assert podqos(capsys, "overview", "-o", "name")[1].split() == ["node/atlas-1", "node/atlas-2"]


def test_what_watched_a_cluster_says_what_to_run_instead(served, capsys):
    served()
    code, out, err = podqos(capsys, "overview", "--watch")

    assert (code, out) == (2, "")
    assert "unknown option --watch (run the command under `watch`, or open `podqos ui`)" in err


def test_help_names_the_plugin(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-podqos"])
    with pytest.raises(SystemExit):
        podqos(capsys, "rank", "--help")

    assert capsys.readouterr().out.startswith("usage: kubectl podqos rank")
