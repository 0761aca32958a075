"""Usage from Prometheus, over real HTTP: what is asked, what is made of it, what is said where it has nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.serving import Request, Server
from library.test_live_cluster import podqos
from podqos.reading.scenario_files import load_scenario

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: web, resources: {requests: {memory: 8Gi, cpu: 4}, limits: {memory: 8Gi, cpu: 4}}}
"""
POD = "web-7d9f8b6c5d-x2k4q"
MI = 1 << 20
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB)


def prometheus(*, memory: bool = True, cpu: bool = True):
    """Return an answering function: 200 MiB and a quarter of a core, at every step."""

    def answer(request: Request) -> object:
        asked = request.query
        is_memory = "container_memory_working_set_bytes" in asked["query"]
        start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
        times = [start + number * step for number in range(int((end - start) // step) + 1)]
        value = str(200 * MI) if is_memory else "0.25"
        labels = {"namespace": "shop", "pod": POD, "container": "main", "node": "atlas-1"}
        series = [{"metric": labels, "values": [[time, value] for time in times]}]
        result = series if (memory if is_memory else cpu) else []
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()

    return answer


def advice(capsys, url: str, *words: str):
    code, out, err = podqos(capsys, "advise", "-f", "web.yaml", "--prometheus", url, "-o", "json", *words)
    return code, json.loads(out) if code == 0 else None, err


def test_advise_sizes_from_seven_days_of_memory_and_cpu(capsys):
    with Server(prometheus()) as server:
        code, report, err = advice(capsys, server.url)
        asked = [request.query for request in server.requests]
    (container,) = report["workloads"][0]["containers"]

    assert code == 0, err
    assert len(asked) == 2
    assert all(float(each["end"]) - float(each["start"]) == pytest.approx(7 * 86_400) for each in asked)
    assert {each["step"] for each in asked} == {"300"}
    assert 'container!=""' in asked[0]["query"]
    assert container["requests"] == {"cpu": "290m", "memory": "240Mi"}
    assert container["memoryBytes"]["count"] == container["cpuMilli"]["count"] == 2017


def test_a_namespace_and_a_time_are_asked_for(capsys):
    with Server(prometheus()) as server:
        code, _, err = advice(
            capsys, server.url, "-n", "shop", "--from", "2026-11-10T00:00:00Z", "--to", "2026-11-10T06:00:00Z"
        )
        asked = [request.query for request in server.requests]

    assert code == 0, err
    assert all('namespace="shop"' in each["query"] for each in asked)
    assert {(each["start"], each["end"], each["step"]) for each in asked} == {
        ("1794268800.000", "1794290400.000", "60")
    }


def test_what_prometheus_has_no_samples_of_is_an_assumption(capsys):
    with Server(prometheus(cpu=False)) as server:
        code, report, _ = advice(capsys, server.url)

    assert code == 0
    assert {"what": "cpu usage", "value": "not known: Prometheus has no samples", "stateWith": "--usage"} in report[
        "assumptions"
    ]


def test_no_samples_at_all_are_an_error(capsys):
    with Server(prometheus(memory=False, cpu=False)) as server:
        code, _, err = advice(capsys, server.url, "-n", "shop")

    assert code == 2
    assert "Prometheus has no samples" in err
    assert "of the namespace shop" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "yesterday"), "--from"),
        (("--to", "2026-99-99"), "--to"),
        (("--from", "2026-11-10", "--to", "2026-11-09"), "begin earlier"),
    ],
)
def test_a_wrong_time_is_one_message(words, message, capsys):
    code, _, err = advice(capsys, "http://127.0.0.1:1", *words)

    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: (404, {"Content-Type": "text/plain"}, b"404 page not found"),
        lambda _: b"<html>",
        lambda _: b'{"status":"success","data":{"resultType":"vector","result":[]}}',
        lambda _: (400, {}, b'{"status":"error","errorType":"bad_data","error":"no"}'),
    ],
    ids=["no API", "no JSON", "no matrix", "refused"],
)
def test_a_server_that_is_no_prometheus_is_one_line_without_the_password(answer, capsys):
    with Server(answer) as server:
        url = server.url.replace("http://", f"http://me:{SECRET}@")
        code, _, err = advice(capsys, url)

    assert code in {2, 3}
    assert len(err.strip().splitlines()) <= 2, err
    assert SECRET not in err


def test_from_usage_replays_what_prometheus_recorded(capsys):
    words = ("scenario", "from-usage", "tuesday", "-f", "web.yaml", "--node-capacity", "cpu=16,memory=64Gi")
    with Server(prometheus()) as server:
        code, out, err = podqos(capsys, *words, "--prometheus", server.url, "--from", "2h")
    scenario = load_scenario("tuesday.yaml")
    (pod,) = scenario.workloads
    demand = pod.demand_of(0, "main")

    assert code == 0, err
    assert "1 pod of 1 workload" in out
    assert (pod.name, pod.nodes) == (POD, ("atlas-1",))
    assert (demand.anon_bytes.at(0), demand.cpu_milli.at(0)) == (200 * MI, 250)
    assert scenario.duration_us == (2 * 3600 + 60) * 1_000_000


def test_from_usage_without_cpu_says_so(capsys):
    words = ("scenario", "from-usage", "tuesday", "-f", "web.yaml", "--node-capacity", "cpu=16,memory=64Gi")
    with Server(prometheus(cpu=False)) as server:
        code, _, err = podqos(capsys, *words, "--prometheus", server.url)

    assert code == 0
    assert "cpu usage: not known: Prometheus has no samples" in " ".join(err.split())
