"""Usage from Prometheus, over real HTTP: what is asked, what is made of it, what is said where it has nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.serving import Request, Server
from library.test_live_cluster import podqos
from podqos.cluster.prometheus import PrometheusAccess
from podqos.reading.queried_usage import UsageQuery, queried_usage
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


LABELS = {"namespace": "shop", "pod": POD, "container": "main", "node": "atlas-1"}
USED = {
    "container_memory_working_set_bytes": lambda _time: str(200 * MI),
    "container_cpu_usage_seconds_total": lambda _time: "0.25",
}
Values = dict[str, Callable[[float], str]]


def prometheus(used: Values = USED, *, memory: bool = True, cpu: bool = True, labels=(LABELS,), **extra: object):
    """Return an answering function: at every step what ``used`` has for the metric; by default 200 MiB, 250m."""
    without = {
        "container_memory_working_set_bytes": not memory,
        "container_cpu_usage_seconds_total": not cpu,
    }

    def answer(request: Request) -> object:
        asked = request.query
        name = next((name for name in used if name in asked["query"] and not without.get(name)), None)
        start, end, step = (float(asked[key]) for key in ("start", "end", "step"))
        times = [start + number * step for number in range(int((end - start) // step) + 1)]
        result = [
            {"metric": dict(each), "values": [[time, used[name](time)] for time in times if used[name](time)]}
            for each in (labels if name is not None else ())
        ]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **extra}).encode()

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
    seconds = max(float(each["end"]) for each in asked) - min(float(each["start"]) for each in asked)
    assert seconds in {7 * 86_400, 7 * 86_400 + 300}
    assert all(float(each["end"]) - float(each["start"]) <= 86_400 for each in asked), "a day at a time"
    assert {each["step"] for each in asked} == {"300"}
    assert all('container!=""' in each["query"] and 'namespace="shop"' in each["query"] for each in asked)
    assert container["memoryBytes"]["count"] == container["cpuMilli"]["count"] in {2017, 2018}
    assert container["memoryBytes"]["most"] == 200 * MI
    assert container["cpuMilli"]["most"] == 250


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


def test_manifests_without_a_namespace_may_be_the_reason_for_no_samples(capsys):
    Path("web.yaml").write_text(WEB.replace(", namespace: shop", ""))
    with Server(prometheus(memory=False, cpu=False)) as server:
        code, _, err = advice(capsys, server.url)

    assert code == 2
    assert "of the namespace default" in err
    assert "Manifests without a namespace are in default unless you give -n" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "yesterday"), "--from"),
        (("--to", "2026-99-99"), "--to"),
        (("--from", "2026-11-10", "--to", "2026-11-09"), "start earlier"),
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
    assert scenario.duration_us in {(2 * 3600 + 60) * 1_000_000, (2 * 3600 + 120) * 1_000_000}


def test_from_usage_without_cpu_says_so(capsys):
    words = ("scenario", "from-usage", "tuesday", "-f", "web.yaml", "--node-capacity", "cpu=16,memory=64Gi")
    with Server(prometheus(cpu=False)) as server:
        code, _, err = podqos(capsys, *words, "--prometheus", server.url)

    assert code == 0
    assert "cpu usage: not known: Prometheus has no samples" in " ".join(err.split())


# ---- OOM kills, starts, and how much history there is ----------------------------------------------------------------


def samples(used: Values, **how: object):
    """Return what is asked of a server for an hour."""
    with Server(prometheus(used, **how)) as server:
        access = PrometheusAccess(url=server.url)
        query = UsageQuery(access=access, start_seconds=NOON, end_seconds=NOON + 3600, with_kills=True)
        return queried_usage(query).samples()


NOON = 1_794_312_000.0


def test_oom_kills_are_counted_by_the_reason_of_each_restart():
    (found,) = samples(
        {
            **USED,
            "container_oom_events_total": lambda _time: "",
            "last_terminated_reason": lambda time: "1" if time >= NOON + 600 else "",
            "restarts_total": lambda time: str(4 + (time >= NOON + 600) + (time >= NOON + 1800)),
            "resource_limits": lambda time: str(
                (256 if time < NOON + 900 else 300 if time < NOON + 2400 else 512) * MI
            ),
        }
    )
    assert (found.oom_kills, found.restarts) == (2, 2)
    assert found.oom_limit_bytes == 300 * MI, "the limit of then: it was raised since"


def test_oom_kills_are_counted_by_the_counter_where_it_saw_more():
    (found,) = samples({**USED, "container_oom_events_total": lambda time: str(int(time >= NOON + 600) * 3)})
    assert found.oom_kills == 3


def test_an_oom_kill_before_the_time_asked_about_counts():
    (found,) = samples({**USED, "last_terminated_reason": lambda _time: "1", "restarts_total": lambda _time: "7"})
    assert (found.oom_kills, found.restarts, found.oom_limit_bytes) == (1, 0, None)


def test_a_peak_after_a_restart_is_that_of_a_start():
    (found,) = samples(
        {
            "container_memory_working_set_bytes": lambda time: str((900 if time == NOON + 1860 else 100) * MI),
            "restarts_total": lambda time: str(int(time >= NOON + 1800)),
        }
    )
    assert (found.startup_peak_bytes, max(found.memory_bytes)) == (900 * MI, 900 * MI)
    assert len(found.memory_times_us) == len(found.memory_bytes) == 61


def test_no_metrics_of_kills_is_an_assumption(capsys):
    with Server(prometheus()) as server:
        code, report, _ = advice(capsys, server.url)

    assert code == 0
    assert {
        "what": "OOM kills and restarts",
        "value": "none: Prometheus has no samples",
        "stateWith": "kube-state-metrics in Prometheus",
    } in report["assumptions"]


# ---- whom to ask, and as whom ----------------------------------------------------------------------------------------


def test_a_token_a_tenant_and_headers_are_sent(capsys, monkeypatch):
    Path("token").write_text("t0ken\n")
    Path("key").write_text("k3y\n")
    words = (
        "--prometheus-header",
        "X-Scope-OrgID:team-a",
        "--prometheus-header",
        "X-Key:@key",
        "--prometheus-header",
        "X-Env: prod",
    )
    with Server(prometheus()) as server:
        code, _, err = advice(capsys, server.url, "--prometheus-token-file", "token", *words)
        assert code == 0, err
        monkeypatch.setenv("PODQOS_PROMETHEUS_TOKEN", "from-env")
        assert advice(capsys, server.url)[0] == 0
        Path("basic").write_text("Basic bWU6cGE1NQ==\n")
        assert advice(capsys, server.url, "--prometheus-header", "Authorization:@basic")[0] == 0
    first, last = server.requests[0], server.requests[-1]
    assert first.header("Authorization") == "Bearer t0ken"
    assert first.header("X-Scope-OrgID") == "team-a"
    assert (first.header("X-Key"), first.header("X-Env")) == ("k3y", "prod")
    assert "Bearer from-env" in {request.header("Authorization") for request in server.requests}
    assert last.header("Authorization") == "Basic bWU6cGE1NQ=="


def test_labels_choose_among_what_a_shared_store_has(capsys):
    words = ("--prometheus-label", "cluster=prod", "--prometheus-label", 'region=~"eu-.*"')
    with Server(prometheus()) as server:
        code, _, err = advice(capsys, server.url, *words)
    assert code == 0, err
    assert all('cluster="prod",region=~"eu-.*"' in request.query["query"] for request in server.requests)


def test_pods_of_several_clusters_are_not_mixed_unless_that_is_asked_for(capsys):
    labels = [{**LABELS, "cluster": name} for name in ("prod", "dev")]
    with Server(prometheus(labels=labels)) as server:
        code, _, err = advice(capsys, server.url)
        assert (code, err.count("\n")) == (2, 1)
        assert "samples of 2 clusters: dev and prod (choose one: --prometheus-label cluster=dev)" in err
        assert advice(capsys, server.url, "--prometheus-label", "cluster=~dev|prod")[0] == 0


def test_partial_data_is_said(capsys):
    with Server(prometheus(warnings=["No StoreAPIs matched for this query"])) as server:
        code, report, _ = advice(capsys, server.url)
    said = [each for each in report["assumptions"] if each["what"] == "usage"]
    assert code == 0
    assert [each["value"] for each in said] == [
        "complete, though Prometheus warns: No StoreAPIs matched for this query"
    ]


BAD = {
    "a user": (
        ("--prometheus-user", "me"),
        "unknown option --prometheus-user (write --prometheus-header Authorization:@F",
    ),
    "no verification": (
        ("--prometheus-insecure",),
        "unknown option --prometheus-insecure (give the CA with --prometheus",
    ),
    "no such token": (("--prometheus-token-file", "nowhere"), "nowhere"),
    "a token of two lines": (("--prometheus-token-file", "web.yaml"), "token-file: not a valid bearer token"),
    "an empty token": (("--prometheus-token-file", "empty"), "--prometheus-token-file: empty is empty"),
    "not a header": (("--prometheus-header", "hunter2"), "--prometheus-header: not a valid header"),
    "a header of two lines": (("--prometheus-header", "X-A: b\r\nX-C: hunter2"), "not a valid header value"),
    "a header twice": (("--prometheus-header", "X-A:1", "--prometheus-header", "x-a:2"), "x-a is given twice"),
    "a tenant": (("--prometheus-tenant", "a"), "(write --prometheus-header X-Scope-OrgID:TENANT)"),
    "not a certificate": (("--prometheus-ca", "web.yaml"), "web.yaml contains no PEM certificate"),
    "not a label": (("--prometheus-label", "prod"), "--prometheus-label: 'prod' does not select series"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_a_wrong_option_is_one_message_before_anything_is_asked(words, message, capsys):
    Path("empty").write_text("\n")
    with Server(prometheus()) as server:
        code, _, err = advice(capsys, server.url, *words)
    assert (code, err.count("\n")) == (2, 1), err
    assert message in err
    assert "hunter2" not in err
    assert server.requests == []


def test_options_of_a_prometheus_that_is_not_named_are_refused(capsys):
    code, _, err = podqos(capsys, "advise", "-f", "web.yaml", "--prometheus-header", "A: a")
    assert code == 2
    assert "--prometheus-header: no Prometheus given (add --prometheus URL)" in err


def test_how_much_history_there_is_is_said_and_published(capsys):
    with Server(prometheus()) as server:
        words = ("--from", "2026-11-10T00:00:00Z", "--to", "2026-11-17T00:00:00Z")
        _, report, _ = advice(capsys, server.url, *words)
        _, out, _ = podqos(capsys, "advise", "-f", "web.yaml", "--prometheus", server.url, *words)
        _, short, _ = podqos(capsys, "advise", "-f", "web.yaml", "--prometheus", server.url, "--from", "2h")
    coverage = report["workloads"][0]["containers"][0]["coverage"]
    assert (coverage["first"], coverage["last"]) == ("2026-11-10T00:00:00Z", "2026-11-17T00:00:00Z")
    assert (coverage["samples"], coverage["replicas"], coverage["gaps"], coverage["shortfalls"]) == (2017, 1, 0, [])
    assert "based on 7 d 0 h of history, 2,017 samples of 1 replica, no gaps" in out
    assert "provisional: too little data to lower anything" in " ".join(short.split())
    assert "less than a day of history" in " ".join(short.split())
