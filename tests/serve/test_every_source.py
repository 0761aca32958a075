"""Every view of every kind of source, over HTTP: an answer, or one error that is true; and all tell the same figures.

What the page says of files is what the commands say of them.
"""

from __future__ import annotations

import json
import sys
from urllib.parse import urlencode

import pytest
from tests.library.page_sources import run_file, sources

from podqos.cli.main import main
from podqos.errors import InputError
from podqos.manifest.encoding import json_line
from podqos.serve.sources import read_given
from podqos.serve.work import blast_of
from serve.running import running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
SOURCES = sources()
TABLES = ("usage.csv", "top.txt")
NO_MANIFESTS = {"kern.log", "cluster.json", "small.yaml", "journal.jsonl"}
MANIFESTS = [name for name, files in SOURCES.items() if not NO_MANIFESTS & {*files}]

# What cannot be answered, by source: words of the error, for each node of which views are asked.
NO_PODS = "no pods"
CANNOT = {
    "pods of a node that is too small": {"one": "the pods use 2Gi, but the node has 1Gi"},
    "pods of one node, with its Node": {"two": NO_PODS},
    "pods of several nodes, and an empty one": {"three": NO_PODS, "four": NO_PODS},
    "several KubeletConfigurations": dict.fromkeys(("one", "two"), "2 different kubelet configurations"),
    "a KubeletConfiguration that starts no kubelet": {"one": "kubelet.yaml: evictionHard", "two": "kubelet.yaml"},
    "only refused pods": {"": "the API server would reject all of its pods"},
    "refused pods of several nodes": {"one": "would reject all", "two": "would reject all"},
    "only pods that ended": {"one": NO_PODS},
    "pods that ended on several nodes": {"one": NO_PODS},
    "Nodes alone": {"one": NO_PODS, "two": NO_PODS},
    "a scenario": {"two": NO_PODS},
    "a scenario without room": {"one": NO_PODS, "two": NO_PODS},
}


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


class Asking:
    """A visitor with one source."""

    def __init__(self, server, files):
        self.visitor = server.visitor()
        self.info = self.visitor.upload(files)

    def get(self, view, **query):
        return self.answer(f"{view}?{urlencode(query)}")

    def post(self, view, **body):
        return self.answer(view, json.dumps(body).encode())

    def answer(self, path, body=None):
        """Return an answer, or the text of an error."""
        status, _, data = self.visitor.ask(f"/api/sources/{self.info['id']}/{path}", body)
        assert status in {200, 422}, (path, status, data)
        value = json.loads(data)
        return value if status == 200 else value["error"]["message"]


def blasted(files, node):
    """Return what a run of the page computes, or the text of an error."""
    try:
        return json.loads(json_line(blast_of(read_given(files), (), node, lambda _: None)))
    except InputError as error:
        return str(error)


def command(capsys, tmp_path, files, name, *options):
    """Return what a command prints about files, as JSON; the text of its error where it says one."""
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    manifests = [part for file in files if file not in TABLES for part in ("-f", str(tmp_path / file))]
    usage = [part for file in files if file in TABLES for part in ("--usage", str(tmp_path / file))]
    takes_usage = name in {"rank", "forecast", "blast"}
    main([name, *manifests, *(usage if takes_usage else ()), *options, "-o", "json"])
    said = capsys.readouterr()
    return json.loads(said.out) if said.out else said.err


# ---- every view of every source --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_every_view_of_a_source_answers_or_says_why_not(server, name):
    asking = Asking(server, SOURCES[name])
    views = asking.info["views"]
    for view in ("check", "autopsy"):
        if view in views:
            assert isinstance(asking.get(view), dict), view
    if "check" in views:
        assert isinstance(asking.post("fix"), dict)
    if "cluster" not in views:
        return
    cluster = asking.get("cluster")
    cannot = CANNOT.get(name, {})
    for panel in cluster["nodes"]:
        expect_node(asking, SOURCES[name], cluster, panel, cannot.get(panel["name"]))
    ranked = [panel for panel in cluster["nodes"] if panel["name"] not in cannot]
    whole = asking.post("what-if"), asking.post("forecast"), blasted(SOURCES[name], "")
    if ranked:
        # Where no node is named, all views show the one with least headroom.
        least = min(ranked, key=lambda panel: panel["headroomBytes"])["name"]
        assert [each["node"] for each in whole[:2]] == [least, least]
        assert {leak["node"] for leak in whole[2]["leaks"]} == {least or "node"}
    else:
        assert all(isinstance(each, str) for each in whole), whole
    for told in (asking.post("what-if", node="gone"), asking.post("forecast", node="gone")):
        assert told.startswith("no such node: gone")
    if "run" not in views:
        assert blasted(SOURCES[name], "gone").startswith("no such node: gone")
    for block in cluster["pods"]:
        expect_pod(asking, block, cannot.get(block["node"]))
    assert asking.get("pods", pod="shop/gone").startswith("no such pod: shop/gone")


def expect_node(asking, files, cluster, panel, error):
    """Expect that the views of a node agree, or say the same."""
    name = panel["name"]
    views = asking.post("what-if", node=name, growing=""), asking.post("forecast", node=name)
    radius = blasted(files, name)
    own = [block for block in cluster["pods"] if block["node"] == name]
    assert panel["pods"] == len(own)
    if error is not None:
        assert all(error in each for each in views), views
        assert isinstance(radius, (str, dict))
        return
    assert panel["problem"] == ""
    what_if, forecast = views
    assert what_if["headroomBeforeBytes"] == what_if["headroomAfterBytes"] == panel["headroomBytes"]
    assert forecast["thresholdBytes"] == panel["thresholdBytes"]
    for key in ("kernelLeftBeforeBytes", "kernelLeftAfterBytes"):
        assert what_if[key] == panel["kernelLeftBytes"], key
    assert what_if["firstBy"] == panel["firstBy"]
    headroom = panel["headroom"]
    assert headroom["availableBytes"] - headroom["thresholdBytes"] == panel["headroomBytes"]
    assert forecast["availableBytes"] - forecast["thresholdBytes"] >= panel["headroomBytes"]
    assert forecast["report"]["nodeMemoryBytes"] == panel["memoryBytes"]
    assert panel["usedBytes"] == panel["memoryBytes"] - forecast["availableBytes"]
    assert [f"{each['namespace']}/{each['name']}" for each in own] == [each["pod"] for each in what_if["pods"]]
    for block, compared in zip(own, what_if["pods"], strict=True):
        assert compared["before"] == compared["after"]
        for key in ("qosClass", "oomScoreAdj", "evictionPlace", "killPlace", "spared"):
            assert compared["before"][key] == block[key], key
    grow = {each.partition(":")[0] for each in forecast["choices"]}
    assert grow == {each["pod"] for each in what_if["pods"]}
    leaking = {leak["pod"] for leak in radius["leaks"] if leak["node"] == (name or "node")}
    assert leaking == grow, radius
    assert {each["what"] for each in radius["assumptions"]} <= {each["what"] for each in cluster["assumptions"]}


def expect_pod(asking, block, error):
    """Expect that the views of a pod agree with its block."""
    pod = f"{block['namespace']}/{block['name']}"
    page = asking.get("pods", pod=pod, node=block["node"])
    edited = asking.post("what-if", edits=[{"pod": pod, "priority": 7}], growing=pod)
    grown = asking.post("forecast", growing=pod, node=block["node"])
    if block["evictionPlace"] is None:
        why = error or "is not on a node"
        assert why in edited, edited
        assert why in grown, grown
        return
    assert (page["node"], page["workload"]) == (block["node"], block["workload"])
    for key in ("qosClass", "oomScoreAdj", "evictionPlace", "killPlace", "spared"):
        assert page["standing"][key] == block[key], key
    assert page["explanation"]["qosClass"] == block["qosClass"]
    scores = {each["container"]: each["oomScoreAdj"] for each in page["kills"]}
    assert scores.items() <= _scores(page["explanation"]).items()
    assert edited["node"] == grown["node"] == block["node"]
    assert grown["growing"].startswith(f"{pod}:")


# ---- what the commands say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_page_says_of_files_what_the_commands_say(server, name, tmp_path, capsys):
    files = SOURCES[name]
    asking = Asking(server, files)
    cluster = asking.get("cluster")

    def asked(command_name, *options):
        return command(capsys, tmp_path, files, command_name, *options)

    for panel in cluster["nodes"]:
        node = panel["name"]
        own = [block for block in cluster["pods"] if block["node"] == node]
        at = ("--node", node) if len(cluster["nodes"]) > 1 else ()
        if name == "pods that name no node, larger than usual":
            at = ("--node-memory", str(panel["memoryBytes"]))  # where the command refuses, the page assumes more
        if not own:
            continue
        rank = asked("rank", *at)
        if panel["problem"]:
            assert panel["problem"] in rank.replace(f"{tmp_path}/", "")
            continue
        if "strangers" in name:
            assert "no such pod: a-alien" in rank  # which the page notes, and shows the others
            continue
        assert rank["node"]["memoryBytes"] == panel["memoryBytes"]
        assert rank["node"]["headroom"] == panel["headroom"]
        order = [(each["pod"], each["place"], each["kernelPlace"], each["usage"]) for each in rank["evictionOrder"]]
        assert order == [
            (f"{each['namespace']}/{each['name']}", each["evictionPlace"], each["killPlace"], each["usedBytes"])
            for each in own
        ]
        forecast = asking.post("forecast", node=node)
        growing = ("--growing", forecast["growing"], "--rate", "128Mi/s")
        assert asked("forecast", *at, *growing)["growths"] == forecast["report"]["growths"]
        blast = asked("blast", *at)
        if name == "usage above a limit":
            assert "above its limit" in blast  # the command refuses it, the page counts it as the limit and says so
        else:
            assert blast["leaks"] == blasted(files, node)["leaks"]
    explain = asked("explain")
    explained = {_name(each): each for each in (explain["items"] if isinstance(explain, dict) else ())}
    for block in cluster["pods"]:
        page = asking.get("pods", pod=f"{block['namespace']}/{block['name']}", node=block["node"])
        if isinstance(page, dict):
            said = explained[_name(page["explanation"])]
            assert page["explanation"]["qosClass"] == said["qosClass"]
            assert page["explanation"]["reason"] == said["reason"]
            if "larger than usual" not in name:
                assert _scores(page["explanation"]) == _scores(said)
    check = asked("check", "--config-file", "none")
    findings = check["items"] if isinstance(check, dict) else []
    assert [each["check"] for each in asking.get("check")["items"]] == [each["check"] for each in findings]


def _name(explained):
    return tuple(explained[key] for key in ("kind", "namespace", "name"))


def _scores(explained):
    return {each["name"]: each["oomScoreAdj"] for each in explained["containers"]}


# ---- what is not uploaded --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("pods of several nodes, with usage", "two"),
        pytest.param("a snapshot", "atlas-1", marks=pytest.mark.slow),
        pytest.param("pods of a node that is too small", "", marks=pytest.mark.slow),
    ],
)
def test_a_run_over_http_is_the_one_computed_here(server, name, node):
    visitor = server.visitor()
    source = visitor.upload(SOURCES[name])
    job = visitor.value("/api/jobs", {"kind": "blast", "source": source["id"], "node": node})
    ended = visitor.ended(job["id"])
    here = blasted(SOURCES[name], node)
    if isinstance(here, str):
        assert (ended["state"], ended["error"]) == ("failed", here)
    else:
        assert visitor.value(f"/api/jobs/{job['id']}/result") == here


def test_a_run_that_is_uploaded_has_one_view(server, tmp_path):
    for name, data in SOURCES["a scenario"].items():
        (tmp_path / name).write_bytes(data)
    asking = Asking(server, {"run.json": run_file(str(tmp_path))})
    assert asking.info["views"] == ["run"]
    assert asking.get("run")["nodes"]


@pytest.mark.slow
def test_files_that_a_command_is_started_with_are_shown_as_those_that_are_uploaded(server, tmp_path):
    name = "pods of several nodes, with usage"
    for file, data in SOURCES[name].items():
        (tmp_path / file).write_bytes(data)
    uploaded = Asking(server, SOURCES[name]).get("cluster")
    with running(*(tmp_path / file for file in SOURCES[name])) as started:
        live = started.visitor().value("/api/sources/start/cluster")
    for key in ("nodes", "pods", "classes", "assumptions"):
        assert live[key] == uploaded[key]
