"""Prometheus: range queries."""

from __future__ import annotations

import json

import pytest

from cluster.serving import Server
from podqos.advice.sizing.samples import read_samples
from podqos.cluster.patience import Patience
from podqos.cluster.prometheus import Prometheus
from podqos.errors import BadAnswer, ClusterError, InputError, NotFound, Refused, Unreachable

LABELS = {"__name__": "container_memory_working_set_bytes", "namespace": "shop", "pod": "web", "container": "main"}


def answer_with(kind, result):
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def counting(request):
    """Answer a range query with the time as the value."""
    start, end, step = (float(request.query[name]) for name in ("start", "end", "step"))
    points = int((end - start) / step) + 1
    assert points <= 11_000
    values = [[start + number * step, f"{start + number * step:g}"] for number in range(points)]
    return answer_with("matrix", [{"metric": LABELS, "values": values}])


def test_a_range_query_gives_the_series_that_a_file_of_it_gives():
    with Server(counting) as server, Prometheus(server.url) as prometheus:
        (series,) = prometheus.range("m", start=0, end=600, step_seconds=60)
    assert series.values == tuple((float(second), str(second)) for second in range(0, 601, 60))
    data = answer_with("matrix", [{"metric": series.metric, "values": series.values}])
    assert read_samples("file", data)[0].memory_bytes == tuple(range(0, 601, 60))


def test_a_range_with_more_points_than_prometheus_answers_is_asked_for_in_parts():
    with Server(counting) as server, Prometheus(server.url) as prometheus:
        (series,) = prometheus.range("m", start=100, end=100 + 24_999 * 15, step_seconds=15)
    assert len(server.requests) == 3
    assert [time for time, _ in series.values] == [100.0 + 15 * number for number in range(25_000)]


def test_a_series_that_is_not_there_all_the_time_is_still_one():
    def answer(request):
        start = float(request.query["start"])
        return answer_with("matrix", [{"metric": {"pod": "a"}, "values": [[start, "1"]]}] if start else [])

    with Server(answer) as server, Prometheus(server.url) as prometheus:
        found = prometheus.range("m", start=0, end=29_999, step_seconds=1)
    assert [each.values for each in found] == [((10_000.0, "1"), (20_000.0, "1"))]


def test_a_path_a_user_and_a_token_are_used():
    with Server(lambda _: answer_with("matrix", [])) as server:
        url = server.url.replace("http://", "http://me:a%40b@") + "/prometheus/"
        with Prometheus(url) as prometheus:
            assert prometheus.range("up", start=0, end=1, step_seconds=1) == ()
        with Prometheus(server.url, token="t") as prometheus:
            prometheus.range("up", start=0, end=1, step_seconds=1)
    assert server.requests[0].path == "/prometheus/api/v1/query_range"
    assert server.requests[0].header("Authorization") == "Basic bWU6YUBi"
    assert server.requests[1].header("Authorization") == "Bearer t"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        pytest.param(
            (400, {}, b'{"status":"error","errorType":"bad_data","error":"1:3: parse error"}'),
            Refused,
            "400 1:3: parse error",
            id="a query that makes no sense",
        ),
        pytest.param((404, {}, b"404 page not found"), NotFound, "no query API there", id="a wrong path"),
        pytest.param((200, {}, b"<html>"), BadAnswer, "not an answer of Prometheus", id="a page"),
        pytest.param((200, {}, answer_with("string", [1, "x"])), BadAnswer, "not an answer of Prometheus", id="a text"),
        pytest.param((401, {}, b""), ClusterError, "401", id="no credentials"),
        pytest.param((302, {"Location": "/login"}, b""), BadAnswer, "HTTP status 302", id="a login page"),
        pytest.param(lambda _: None, Unreachable, "it closed the connection", id="nobody"),
    ],
)
def test_what_goes_wrong_is_one_line(answer, error, words):
    with (
        Server(lambda _: answer) as server,
        Prometheus(server.url, patience=Patience(attempts=1)) as prometheus,
        pytest.raises(error) as caught,
    ):
        prometheus.range("up", start=0, end=1, step_seconds=1)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"<html>", b"{}", b"", b"time,pod\n1,a", b'{"status":"success","data":{"resultType":"vector"}}']
)
def test_a_range_that_is_no_matrix_is_one_line(data):
    with Server(lambda _: data) as server, Prometheus(server.url) as prometheus, pytest.raises(BadAnswer):
        prometheus.range("m", start=0, end=1, step_seconds=1)


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://x", "", "http://", "http://x:99999"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(InputError, match=r"prometheus: .* is no address of a Prometheus"):
        Prometheus(url)


@pytest.mark.parametrize("bounds", [(1, 0, 1), (0, 1, 0), (0, 1, -1), (float("nan"), 1, 1), (0, float("inf"), 1)])
def test_a_range_must_make_sense(bounds):
    start, end, step = bounds
    with (
        Prometheus("http://127.0.0.1:1") as prometheus,
        pytest.raises(InputError, match="a range begins before it ends"),
    ):
        prometheus.range("m", start=start, end=end, step_seconds=step)
