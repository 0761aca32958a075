"""Commands on a live cluster, over real HTTP: what is asked, what is said where something may not be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cluster.serving import Request, status
from library import clusters
from podqos.cli.main import main
from podqos.reading.snapshot_files import read_snapshot

_PLURALS = {
    "nodes": "NodeList",
    "pods": "PodList",
    "deployments": "DeploymentList",
    "statefulsets": "StatefulSetList",
    "priorityclasses": "PriorityClassList",
}


def _selected(request: Request, items: list[dict]) -> list[dict]:
    """Return what is left of a list after namespace and field selector."""
    field, _, value = request.query.get("fieldSelector", "").partition("=")
    parts = request.path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else None
    return [
        item
        for item in items
        if (field != "spec.nodeName" or item["spec"].get("nodeName") == value)
        and (field != "metadata.name" or item["metadata"]["name"] == value)
        and namespace in {None, item["metadata"]["namespace"]}
    ]


def api_server(request: Request) -> object:
    """Answer as the API server of the small cluster: one kubelet of two can be reached."""
    last = request.path.rpartition("/")[2]
    if request.path == "/version":
        return json.dumps({"major": "1", "minor": "34", "gitVersion": "v1.34.2"}).encode()
    if "/nodes/atlas-1/proxy/" in request.path:
        return clusters.summary() if last == "summary" else clusters.CONFIGZ
    if "/proxy/" in request.path:
        return status(503, "ServiceUnavailable", "error trying to reach service: connection refused")
    if last in _PLURALS and "metrics" not in request.path:
        version, items = clusters.LISTS[_PLURALS[last]]
        body = {"kind": _PLURALS[last], "apiVersion": version, "metadata": {}, "items": _selected(request, items)}
        return json.dumps(body).encode()
    return 404, {"Content-Type": "text/plain"}, b"404 page not found\n"


def podqos(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("explain", "-A", "-o", "csv"), "shop,shell,shell,BestEffort,1000"),
        (("explain", "-n", "shop", "-o", "csv"), "shop,db-0,db,Guaranteed,-997"),
        (("explain", "--context", "test", "-o", "csv"), "shop,db-0,db,Guaranteed,-997"),
        (("explain", "deploy/web", "-o", "csv"), "shop,web,web,Burstable,"),
        (("explain", "po/shell", "-o", "csv"), "shop,shell,shell,BestEffort,1000"),
        (("check", "-A"), "Pod shop/shell is evicted before shop/web when every pod is at its memory limit"),
        (("check", "pod/shell"), "Pod shop/shell is evicted before shop/web when every pod is at its memory limit"),
        (("rank", "atlas-1"), "shop/shell"),
        (("cpu", "atlas-1"), "4 are available"),
        (("thresholds", "atlas-1"), "500Mi"),
        (("forecast", "atlas-1", "--growing", "shop/shell", "--rate", "1Gi/s"), "shop/shell"),
        (("blast", "-A", "--node", "atlas-1"), "3 pods on one node"),
        (("blast", "atlas-1"), "3 pods on one node"),
        (("place", "-A"), "4 of 4 pods are placed on 2 nodes"),
        (("overview",), "2 nodes, 4 pods"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_every_command_reads_the_live_cluster(words, expected, served, capsys):
    server = served()
    code, out, err = podqos(capsys, *words)

    assert code in {0, 1}, err
    assert expected in out
    assert {request.method for request in server.requests} == {"GET"}


def test_a_nodes_name_asks_for_that_node_alone(served, capsys):
    server = served()
    podqos(capsys, "rank", "atlas-1")
    asked = [request.target for request in server.requests]

    assert len(asked) <= 5, asked
    assert any("fieldSelector=spec.nodeName%3Datlas-1" in each for each in asked)


def test_a_node_leaves_parts_of_its_cores_to_pods(served, capsys):
    def reserving(request: Request) -> object:
        answer = api_server(request)
        return answer.replace(b'"cpu": "4"', b'"cpu": "3920m"') if request.path.endswith("/nodes") else answer

    served(reserving)
    assert "; 3.92 are available" in podqos(capsys, "cpu", "atlas-1")[1]


@pytest.mark.parametrize(("swap_bytes", "is_told"), [(0, False), (4 << 30, True), (None, True)])
def test_swap_is_a_warning_unless_the_kubelet_says_that_there_is_none(served, capsys, swap_bytes, is_told):
    def swapping(request: Request) -> object:
        answer = api_server(request)
        if request.path.endswith("/configz"):
            lets = b'"failSwapOn": false, "memorySwap": {"swapBehavior": "LimitedSwap"}, "evictionHard"'
            return answer.replace(b'"evictionHard"', lets)
        if request.path.endswith("/summary") and swap_bytes is not None:
            swap = f'"swap": {{"swapAvailableBytes": {swap_bytes}, "swapUsageBytes": 0}}, "nodeName"'
            return answer.replace(b'"nodeName"', swap.encode())
        return answer

    served(swapping)
    warnings = json.loads(podqos(capsys, "thresholds", "atlas-1", "-o", "json")[1])["warnings"]
    assert ("SwapHidesPressure" in [each["kind"] for each in warnings]) is is_told


def test_thresholds_say_that_the_kubelet_was_not_asked_and_why(served, capsys):
    served()
    known, unknown = (podqos(capsys, "thresholds", node)[2] for node in ("atlas-1", "atlas-2"))

    assert "kubelet settings" not in known
    assert "kubelet settings of node atlas-2: not known: cannot get nodes/proxy: 503" in unknown
    assert "kubelet settings: defaults (--kubelet-config)" in unknown


def test_a_kubelet_that_cannot_measure_its_disks_still_says_what_memory_pods_use(served, capsys):
    def without_disks(request: Request) -> object:
        if request.path.endswith("/summary") and "only_cpu_and_memory" not in request.query:
            return status(500, "InternalError", "failed to get rootFs stats")
        return api_server(request)

    served()
    measured = json.loads(podqos(capsys, "rank", "atlas-1", "-o", "json")[1])
    served(without_disks)
    code, out, _ = podqos(capsys, "rank", "atlas-1", "-o", "json")

    assert code == 0
    assert json.loads(out)["evictionOrder"] == measured["evictionOrder"]
    (missing,) = (each for each in json.loads(out)["assumptions"] if each["what"] == "disk usage of node atlas-1")
    assert missing["value"] == "not known: cannot get nodes/proxy: 500 failed to get rootFs stats"


def test_manifests_are_held_against_what_runs(served, capsys):
    served()
    Path("new.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 2\n"
        "  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: x}]}\n"
    )
    code, out, _ = podqos(capsys, "drift", "-A", "-f", "new.yaml")

    assert code == 1
    assert "Deployment shop/web" in out
    assert "Burstable → BestEffort" in out


def test_new_pods_are_placed_beside_those_that_run(served, capsys):
    served()
    Path("new.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: new, namespace: shop}\nspec:\n  containers:\n"
        "    - {name: a, image: x, resources: {requests: {cpu: 3, memory: 1Gi}}}\n"
    )
    code, out, _ = podqos(capsys, "place", "-A", "-f", "new.yaml", "-o", "json")
    placed = {each["name"]: each["node"] for each in json.loads(out)["pods"]}

    assert placed["new"] == "atlas-2"
    assert code == 0


def test_a_snapshot_of_a_live_cluster_answers_like_the_cluster(served, capsys):
    served()
    assert podqos(capsys, "snapshot", "-o", "c.json.gz")[0] == 0
    live = podqos(capsys, "rank", "atlas-1", "-o", "json")[1]
    kept = podqos(capsys, "rank", "--snapshot", "c.json.gz", "--node", "atlas-1", "-o", "json")[1]
    without = [{**json.loads(each), "assumptions": None} for each in (live, kept)]

    assert without[0] == without[1]
    assert clusters.SECRET not in "".join(map(str, read_snapshot("c.json.gz").objects.workloads))


@pytest.mark.parametrize("file", ["c.json", "c.json.gz"])
def test_a_file_says_what_it_is_and_in_which_version_and_is_known_by_it(file, served, capsys):
    served()
    podqos(capsys, "snapshot", "-o", file)
    data = Path(file).read_bytes()
    header = json.loads((gzip.decompress(data) if file.endswith(".gz") else data).splitlines()[0])

    assert (header["apiVersion"], header["kind"]) == ("podqos.dev/v1alpha1", "ClusterSnapshot")
    assert "shop/shell" in podqos(capsys, "rank", "--snapshot", file, "--node", "atlas-1")[1]


def test_without_names_the_namespace_that_was_asked_about_has_none_either(served, capsys):
    served()
    podqos(capsys, "snapshot", "-n", "shop", "--anonymize", "-o", "c.json")

    assert "shop" not in Path("c.json").read_text()
    assert read_snapshot("c.json").objects.workloads


def test_a_kubelet_that_cannot_be_reached_is_said_and_no_failure(served, capsys):
    served()
    code, _, err = podqos(capsys, "rank", "atlas-2")

    assert code == 0
    assert "atlas-2" in err.partition("assumed:")[2]


def test_what_may_not_be_read_is_said_and_the_rest_is_answered(served, capsys):
    def answer(request: Request) -> object:
        if "priorityclasses" in request.path or "/proxy/" in request.path:
            words = f'{request.path.rpartition("/")[2]} is forbidden: User "me" cannot get resource'
            return status(403, "Forbidden", words)
        return api_server(request)

    served(answer)
    code, _, err = podqos(capsys, "overview")

    assert code == 0
    assert "priorityclasses" in err
    assert "usage of 2 nodes (atlas-1, atlas-2)" in err


def test_pods_that_may_not_be_listed_are_one_error_with_the_rbac(served, capsys):
    def answer(request: Request) -> object:
        if request.path.endswith("/pods"):
            return status(403, "Forbidden", 'pods is forbidden: User "me" cannot list resource "pods"')
        return api_server(request)

    served(answer)
    code, out, err = podqos(capsys, "explain", "-A")

    assert code not in {0, 1}
    assert not out
    assert "cannot list pods as me" in err
    assert "kind: ClusterRole" in err


def no_nodes(request: Request) -> object:
    """Answer as to a user who may read one namespace and nothing of the cluster."""
    if "/namespaces/shop/" in request.path or request.path == "/version":
        return api_server(request)
    what = request.path.rpartition("/")[2]
    return status(
        403, "Forbidden", f'{what} is forbidden: User "me" cannot list resource "{what}" at the cluster scope'
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("explain", "-n", "shop", "-o", "csv"), "shop,db-0,db,Guaranteed,-997"),
        (("explain", "deploy/web", "-o", "csv"), "shop,web,web,Burstable,"),
        (("check", "-n", "shop"), "objects of test checked"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_who_may_read_one_namespace_gets_answers_about_it(words, expected, served, capsys):
    served(no_nodes)
    code, out, err = podqos(capsys, *words)

    assert code in {0, 1}
    assert expected in out
    assert "nodes, namespaces, priorityclasses, " in err
    assert err.count(": none (permission of me to list them)") == 1


@pytest.mark.parametrize("words", [("explain", "-A"), ("rank", "atlas-1"), ("overview",)], ids=" ".join)
def test_all_namespaces_and_nodes_need_the_right_to_list_nodes(words, served, capsys):
    served(no_nodes)
    code, out, err = podqos(capsys, *words)

    assert (code, out) == (3, "")
    assert "cannot list nodes as me" in err


def test_without_names_what_could_not_be_read_is_still_said_in_words(served, capsys):
    served()
    podqos(capsys, "snapshot", "--anonymize", "-o", "c.json.gz")
    said = [each for each in read_snapshot("c.json.gz").assumptions if "node" in each.what]

    assert [(each.what.rpartition(" ")[0], each.value) for each in said] == [
        ("usage of node", "not known"),
        ("kubelet settings of node", "not known"),
    ]
    assert {each.what.rpartition(" ")[2] for each in said} <= set(read_snapshot("c.json.gz").nodes)
    assert "atlas" not in str(said)


def test_a_node_that_does_not_exist_is_one_line(served, capsys):
    served()
    code, _, err = podqos(capsys, "rank", "atlas-9")

    assert code == 2
    assert "no such node: atlas-9" in err
    assert len(err.splitlines()) == 1


def test_nothing_is_left_of_a_snapshot_that_fails(served, capsys):
    def answer(request: Request) -> object:
        return status(403, "Forbidden") if request.path.endswith("/pods") else api_server(request)

    served(answer)
    assert podqos(capsys, "snapshot", "-o", "c.json.gz")[0] not in {0, 1}
    assert not [each for each in Path.cwd().iterdir() if "c.json" in each.name]


# ---- a cluster's lists -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["List", "ConfigMapList", "Table"])
def test_a_list_of_another_kind_than_was_asked_for_is_an_error(kind, served, capsys):
    def answer(request: Request) -> object:
        if request.path.endswith("/pods"):
            return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": []}).encode()
        return api_server(request)

    served(answer)
    for words in (["explain", "-A"], ["check", "-A"], ["rank", "atlas-1"], ["snapshot", "-o", "c.json"], ["overview"]):
        code, out, err = podqos(capsys, *words)
        assert (code, out) == (3, ""), words
        assert f"it sent {kind} instead of a list of pods" in err


@pytest.mark.parametrize("output", ["c.json", "-"])
def test_snapshot_prints_the_rights_that_were_missing(output, served, capfdbinary):
    def answer(request: Request) -> object:
        if request.path.endswith("/limitranges"):
            return status(403, "Forbidden", 'limitranges is forbidden: User "jane" cannot list resource "limitranges"')
        return api_server(request)

    served(answer)
    assert main(["snapshot", "-o", output]) == 0
    out, err = (text.decode() for text in capfdbinary.readouterr())
    written = out if output == "-" else Path(output).read_text()
    assert "limitranges: none (permission of jane to list them)" in " ".join(err.split())
    (missing,) = (json.loads(line) for line in written.splitlines() if '"list":"LimitRangeList"' in line)
    assert missing["assumption"]["stateWith"] == "permission of jane to list them"
