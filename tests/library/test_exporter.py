"""The exporter: what a watched cluster becomes as metrics, and that rules and dashboard ask for what there is."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import promql_parser
import pytest
import yaml
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from cluster.serving import Request, Server, Wire, status, watch_of
from library import clusters
from library.test_live_cluster import _PLURALS, api_server
from podqos.cluster import asking, watching
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.errors import Unauthorized
from podqos.manifest import decode, pruning
from podqos.model.data_age import DataAge
from podqos.questions.metrics import overview_metrics
from podqos.questions.overview import overview
from podqos.reading.mirror import Mirror
from podqos.serve.exporter import Exporter, HeadroomGrowth, serve

DOCS = Path(__file__).parents[2] / "docs" / "exporter"


def watched(events: dict[str, list[dict]], then: Callable[[Wire], object] = Wire.stall):
    """Return a server that streams what exists and then these events, and then does something else."""

    def answer(request: Request) -> object:
        if request.query.get("watch") not in {"1", "true"}:
            return api_server(request)
        last = request.path.rpartition("/")[2]
        if last not in _PLURALS:
            return 404, {"Content-Type": "text/plain"}, b"404 page not found\n"
        version, items = clusters.LISTS[_PLURALS[last]]
        kind = {"kind": _PLURALS[last].removesuffix("List"), "apiVersion": version}
        lines = [json.dumps({"type": "ADDED", "object": {**kind, **item}}).encode() for item in items]
        end = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
        lines.append(json.dumps({"type": "BOOKMARK", "object": {**kind, **end}}).encode())
        lines += [json.dumps(each).encode() for each in events.get(last, ())]
        return watch_of(lines, then=then)

    return answer


@pytest.fixture
def mirrored():
    """Yield a function that mirrors a served cluster, complete."""
    opened: list = []

    def start(answer) -> Mirror:
        server = Server(answer).__enter__()
        cluster = Cluster(Access(server=server.url))
        opened.extend((cluster, server))
        mirror = Mirror(cluster)
        mirror.start()
        return mirror

    yield start
    for each in opened:
        each.__exit__(None, None, None)


def until(condition, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.02)


def test_threads_that_watch_make_no_decoders(mirrored, monkeypatch):
    """Two that did so at once crashed the process: msgspec shares what it knows of a type before it knows all of it."""
    for cached in (decode.model_decoder, pruning._decoder, pruning._pruned):
        cached.cache_clear()
    made = []

    def decoder(*arguments, **options):
        made.append(threading.current_thread())
        return real(*arguments, **options)

    real = msgspec.json.Decoder
    monkeypatch.setattr(msgspec.json, "Decoder", decoder)
    mirror = mirrored(watched({}))
    until(lambda: mirror.is_complete)
    mirror.snapshot()
    assert made
    assert {each for each in made if each is not threading.main_thread()} == set()


def test_a_mirror_has_what_exists_and_what_happens(mirrored):
    gone = clusters.PODS[3]
    mirror = mirrored(watched({"pods": [{"type": "DELETED", "object": gone}]}))
    until(lambda: mirror.is_complete)

    def names() -> list[str]:
        return sorted(each.workload.pod.metadata.name for each in mirror.snapshot().objects.workloads)

    until(lambda: names() == ["db-0", "web-7d4b9c-aaaaa", "web-7d4b9c-bbbbb"])


def test_nothing_secret_is_in_memory(mirrored):
    mirror = mirrored(watched({}))
    until(lambda: mirror.is_complete)

    assert clusters.SECRET.encode() not in b"".join(mirror._lines())


def test_what_interrupts_watches_is_told_once_and_known_until_it_is_over(monkeypatch):
    for each in (asking, watching):
        monkeypatch.setattr(each, "pause_seconds", lambda *_: 0.1)
    falls_ill, recovers = threading.Event(), threading.Event()

    def answer(request: Request) -> object:
        if not request.query.get("watch") or not request.path.endswith(("/pods", "/nodes")):
            return watched({})(request)
        if "resourceVersion" not in request.query:
            return watched({}, then=lambda _: falls_ill.wait(300))(request)
        return watch_of([], then=Wire.stall) if recovers.is_set() else status(500, "InternalError", "etcd is ill")

    said: list[str] = []
    with Server(answer) as server, Cluster(Access(server=server.url)) as cluster:
        mirror = Mirror(cluster, say=said.append)
        mirror.start()
        until(lambda: mirror.is_complete)
        exporter = Exporter(mirror, every_seconds=60)
        healthy = exporter.metrics()
        falls_ill.set()
        until(lambda: mirror.interrupted == 2 and any("etcd is ill" in each for each in mirror.troubles))
        ill = exporter.metrics()
        recovers.set()
        until(lambda: not mirror.interrupted)

    assert [text.splitlines()[-1] for text in (healthy, ill)] == [
        "podqos_exporter_watches_interrupted 0",
        "podqos_exporter_watches_interrupted 2",
    ]
    assert len(said) == len(set(said))


def test_a_question_that_fails_is_an_answer_and_no_traceback(mirrored, monkeypatch, capsys):
    mirror = mirrored(watched({}))
    until(lambda: mirror.is_complete)
    mirror.measure_in_background()
    until(lambda: mirror.is_measured)
    monkeypatch.setattr(mirror, "known", _refused)
    with serve(Exporter(mirror), "127.0.0.1", 0) as server:
        assert got(server, "/metrics") == (500, "cannot get nodes/proxy: 401 Unauthorized\n")
    assert "Traceback" not in capsys.readouterr().err


def _refused() -> None:
    raise Unauthorized("cannot get nodes/proxy: 401 Unauthorized", status=401)


def test_the_exporter_ends_when_it_is_told_to(served):
    """As the first process of a container a program that does not listen to SIGTERM is killed half a minute later."""
    served(watched({}))
    command = [sys.executable, "-m", "podqos", "exporter", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("podqos exporter: http://127.0.0.1:")
        process.terminate()
        assert process.wait(300) == 0


def test_pods_that_may_not_be_watched_are_fatal(mirrored):
    def answer(request: Request) -> object:
        return status(403, "Forbidden") if request.path.endswith("/pods") else watched({})(request)

    mirror = mirrored(answer)
    until(lambda: mirror.fatal is not None)
    assert "pods" in str(mirror.fatal)


def got(server, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.address[1], timeout=300)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_endpoint_serves_metrics_once_everything_was_read(mirrored):
    mirror = mirrored(watched({}))
    mirror.measure_in_background()
    with serve(Exporter(mirror), "127.0.0.1", 0) as server:
        until(lambda: got(server, "/readyz")[0] == 200)
        text = got(server, "/metrics")[1]
        assert got(server, "/readyz")[0] == got(server, "/healthz")[0] == 200
        assert got(server, "/elsewhere")[0] == 404

    assert len(list(text_string_to_metric_families(text))) > 10
    assert 'podqos_pods{namespace="shop",qos_class="BestEffort"} 1\n' in text
    assert re.search(
        r'podqos_node_next_victim_info\{node="atlas-1",order="eviction",namespace="shop",pod="shell"', text
    )
    # What the kubelet of atlas-1 measured: 4 of 8 GiB are in use, and it evicts at 500 MiB.
    assert f'podqos_node_memory_headroom_bytes{{node="atlas-1"}} {(4 << 30) - (500 << 20)}\n' in text
    assert 'podqos_node_usage_measured{node="atlas-2"} 0\n' in text


def test_the_time_to_pressure_follows_from_how_headroom_shrank():
    whole = overview(clusters.snapshot())
    node = next(each for each in whole.nodes if each.name == "atlas-1")
    growth = HeadroomGrowth()

    def at(now: float, headroom: int) -> dict[str, float]:
        shrunk = replace(whole, nodes=(replace(node, headroom_bytes=headroom),))
        return growth.pressure_seconds(shrunk, {"atlas-1": now})

    assert at(0, 1000) == {}
    assert at(100, 900) == {"atlas-1": 900.0}  # 1 byte a second
    assert at(200, 1100) == {}  # it grew instead
    assert at(1300, -1) == {"atlas-1": 0.0}


def test_headroom_that_does_not_shrink_says_nothing_of_pressure():
    whole = overview(clusters.snapshot())
    growth = HeadroomGrowth()
    for now in (0.0, 100.0, 200.0):
        assert growth.pressure_seconds(whole, dict.fromkeys(("atlas-1", "atlas-2"), now)) == {}


def test_names_cannot_break_out_of_labels():
    whole = overview(clusters.snapshot())
    odd = replace(whole.nodes[0], name='a"} 1\nfake{b="')
    text = overview_metrics(replace(whole, nodes=(odd,)), {})

    assert "\nfake{" not in text
    assert r'node="a\"} 1\nfake{b=\""' in text


# ---- what goes with it ----------------------------------------------------------------------------------------------


class StillCluster:
    """What an exporter asks of a mirror."""

    interrupted = 0
    is_current = True
    known = staticmethod(clusters.snapshot)

    @staticmethod
    def age() -> DataAge:
        return DataAge(1.5, 20.0)

    @staticmethod
    def usage_ages() -> dict[str, float]:
        return {"atlas-1": 20.0}


def names_served() -> set[str]:
    text = Exporter(StillCluster()).metrics() + overview_metrics(overview(clusters.snapshot()), {"atlas-1": 1.0})
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def expressions() -> list[str]:
    groups = yaml.safe_load((DOCS / "alerts.yaml").read_text())["groups"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    board = json.loads((DOCS / "dashboard.json").read_text())
    return rules + [target["expr"] for panel in board["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("expression", expressions())
def test_rules_and_dashboard_ask_for_metrics_that_there_are(expression):
    promql_parser.parse(expression.replace("$node", "node"))
    asked = set(re.findall(r"podqos_\w+", expression))

    assert asked
    assert asked <= names_served()


def test_every_metric_is_documented():
    page = (DOCS.parent / "how-to/metrics.md").read_text()
    for name in names_served():
        assert f"`{name}`" in page
