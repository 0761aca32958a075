"""What a live cluster tells of deaths, over real HTTP: which nodes are asked, and what is said if they refuse."""

from __future__ import annotations

import json

import pytest

from cli.test_autopsy_kubelet import DB, EVENTS, KERNEL_LOG, NODE, WEB
from cluster.serving import Request, status
from deaths import parsed
from podqos.cli.main import main

OTHER = {**DB, "metadata": {"name": "agent", "namespace": "ops", "uid": "u-agent"}, "status": {"phase": "Running"}}
LISTS = {"nodes": ("NodeList", [NODE]), "pods": ("PodList", [WEB, DB, OTHER]), "events": ("EventList", EVENTS)}
KUBELET_LOG = (
    'Nov 16 10:00:00 node-1 kubelet[7]: I1116 10:00:00.1 7 eviction_manager.go:1] "Eviction manager: pods ranked for '
    'eviction" pods=["shop/web-0","shop/db-0"]\n'
    'Nov 16 10:00:01 node-1 kubelet[7]: I1116 10:00:01.1 7 eviction_manager.go:1] "Eviction manager: pod is evicted '
    'successfully" pod="shop/web-0"\n'
)
SUMMARY = {
    "node": {"nodeName": "node-1", "memory": {"availableBytes": 1 << 30, "workingSetBytes": 7 << 30}},
    "pods": [],
}


def serving(*, logs: bool = True, query: bool = True, refused: frozenset[str] = frozenset()):
    """Return a server; ``refused`` are plurals that may not be listed in all namespaces."""

    def answer(request: Request) -> object:
        last = request.path.rstrip("/").rpartition("/")[2]
        if request.path == "/version":
            return json.dumps({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}).encode()
        if request.path.endswith("/proxy/logs/"):
            return KUBELET_LOG.encode() if query else b'<!doctype html>\n<pre><a href="kern.log">kern.log</a></pre>'
        if "/proxy/logs/" in request.path:
            return KERNEL_LOG.encode() if logs and last == "messages" else status(404, "NotFound", "no such file")
        if "/proxy/" in request.path:
            return json.dumps(SUMMARY if last == "summary" else {"kubeletconfig": {}}).encode()
        if last in LISTS and "metrics" not in request.path:
            kind, items = LISTS[last]
            parts = request.path.split("/")
            namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else None
            if last in refused and namespace is None:
                return status(403, "Forbidden", f'{last} is forbidden: User "me" cannot list resource "{last}"')
            inside = [each for each in items if namespace in {None, each["metadata"].get("namespace")}]
            return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": inside}).encode()
        return status(404, "NotFound", "not here")

    return answer


def autopsy(capsys, *words: str) -> tuple[dict, list[str]]:
    code = main(["autopsy", *words, "-o", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    found = parsed(out)
    return found, [f"{each['what']}: {each['value']}" for each in found["assumptions"]]


@pytest.mark.parametrize("words", [("--context", "test"), ("-A",), ("-n", "shop"), ("web-0",), ("-n", "shop", "web-0")])
def test_a_live_cluster_tells_of_its_evictions_with_the_logs_of_the_nodes(served, capsys, words):
    server = served(serving())
    found, assumed = autopsy(capsys, *words)
    (eviction,) = found["evictions"]
    assert eviction["foundIn"] == ["event", "status", "kubeletLog"]
    assert {each["name"] for each in eviction["ranking"]} == {"shop/web-0", "shop/db-0", "ops/agent"}
    assert [each["logPlace"] for each in eviction["ranking"] if each["logPlace"]] == [1, 2]
    assert len(found["kills"]) == (0 if "web-0" in words else 1)
    assert assumed == []
    assert {request.method for request in server.requests} == {"GET"}


def test_logs_that_nodes_do_not_hand_out_are_said(served, capsys):
    served(serving(logs=False, query=False))
    found, assumed = autopsy(capsys, "-A")
    assert [each["foundIn"] for each in found["evictions"]] == [["event", "status"]]
    assert [each.partition(" of node")[0] for each in assumed] == ["kernel log", "kubelet log"]
    assert "/var/log has no kern.log, messages or syslog" in assumed[0]
    assert "does not support log queries" in assumed[1]


def test_a_kubelet_is_asked_for_logs_of_any_media_type_and_for_statistics_as_json(served, capsys):
    server = served(serving())  # it answers 406 to anything else, as a kubelet does
    autopsy(capsys, "-A")
    asked = {request.path.partition("/proxy/")[2]: request.header("Accept") for request in server.requests}
    assert {asked[path] for path in ("logs/", "logs/kern.log", "logs/messages")} == {"*/*"}
    assert {asked[path] for path in ("stats/summary", "configz")} == {"application/json"}


def test_with_rights_in_one_namespace_the_pod_is_still_explained(served, capsys):
    served(serving(refused=frozenset({"nodes", "pods", "events"})))
    found, assumed = autopsy(capsys, "-n", "shop", "web-0")
    (eviction,) = found["evictions"]
    assert {each["name"] for each in eviction["ranking"]} == {"shop/web-0", "shop/db-0"}
    assert any("nodes" in each for each in assumed)


def test_a_snapshot_keeps_the_events_that_tell_why_something_died(served, capsys):
    served(serving())
    assert main(["snapshot", "-o", "c.json.gz"]) == 0
    capsys.readouterr()
    found, _ = autopsy(capsys, "--snapshot", "c.json.gz")
    assert [each["foundIn"] for each in found["evictions"]] == [["event", "status"]]
    assert ["MemoryPressure began" in line for line in found["nodeEvents"]] == [True]
    assert len(found["unreported"]) == 2


def test_a_pod_that_the_cluster_does_not_know_is_refused(capsys, served):
    served(serving())
    assert main(["autopsy", "-n", "shop", "wep-0"]) == 2
    assert "no such file or pod: 'wep-0'" in capsys.readouterr().err
