"""Prometheus: range queries."""

from __future__ import annotations

import json

import pytest

from cluster.serving import Server
from podqos.advice.sizing.samples import read_samples
from podqos.cluster.patience import Patience
from podqos.cluster.prometheus import PATIENCE, Prometheus, PrometheusAccess, TimeRange
from podqos.errors import BadAnswer, ClusterError, InputError, NotFound, Refused, Unreachable

LABELS = {"__name__": "container_memory_working_set_bytes", "namespace": "shop", "pod": "web", "container": "main"}


def asking(url, patience=PATIENCE, **access):
    return Prometheus(PrometheusAccess(url=url, **access), patience=patience)


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
    with Server(counting) as server, asking(server.url) as prometheus:
        (series,) = prometheus.range("m", TimeRange(0, 600, 60)).series
    assert series.values == tuple((float(second), str(second)) for second in range(0, 601, 60))
    data = answer_with("matrix", [{"metric": series.metric, "values": series.values}])
    assert read_samples("file", data)[0].memory_bytes == tuple(range(0, 601, 60))


def test_a_range_with_more_points_than_prometheus_answers_is_asked_for_in_parts():
    with Server(counting) as server, asking(server.url) as prometheus:
        (series,) = prometheus.range("m", TimeRange(100, 100 + 24_999 * 15, 15)).series
    assert len(server.requests) == 3
    assert [time for time, _ in series.values] == [100.0 + 15 * number for number in range(25_000)]


def test_a_series_that_is_not_there_all_the_time_is_still_one():
    def answer(request):
        start = float(request.query["start"])
        return answer_with("matrix", [{"metric": {"pod": "a"}, "values": [[start, "1"]]}] if start else [])

    with Server(answer) as server, asking(server.url) as prometheus:
        found = prometheus.range("m", TimeRange(0, 29_999, 1)).series
    assert [each.values for each in found] == [((10_000.0, "1"), (20_000.0, "1"))]


def test_a_path_a_user_and_a_token_are_used():
    with Server(lambda _: answer_with("matrix", [])) as server:
        url = server.url.replace("http://", "http://me:a%40b@") + "/prometheus/"
        with asking(url) as prometheus:
            assert prometheus.range("up", TimeRange(0, 1, 1)).series == ()
        with asking(server.url, token="t") as prometheus:
            prometheus.range("up", TimeRange(0, 1, 1))
    assert server.requests[0].path == "/prometheus/api/v1/query_range"
    assert server.requests[0].header("Authorization") == "Basic bWU6YUBi"
    assert server.requests[1].header("Authorization") == "Bearer t"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        pytest.param(
            (400, {}, b'{"status":"error","errorType":"bad_data","error":"1:3: parse error"}'),
            Refused,
            "400: 1:3: parse error",
            id="a query that makes no sense",
        ),
        pytest.param((404, {}, b"404 page not found"), NotFound, "no query API at this URL", id="a wrong path"),
        pytest.param((200, {}, b"<html>"), BadAnswer, "not a Prometheus response", id="a page"),
        pytest.param((200, {}, answer_with("string", [1, "x"])), BadAnswer, "not a Prometheus response", id="a text"),
        pytest.param((401, {}, b""), ClusterError, "401", id="no credentials"),
        pytest.param((302, {"Location": "/login"}, b""), BadAnswer, "HTTP status 302", id="a login page"),
        pytest.param(lambda _: None, Unreachable, "the server closed the connection", id="nobody"),
    ],
)
def test_what_goes_wrong_is_one_line(answer, error, words):
    with (
        Server(lambda _: answer) as server,
        asking(server.url, patience=Patience(attempts=1)) as prometheus,
        pytest.raises(error) as caught,
    ):
        prometheus.range("up", TimeRange(0, 1, 1))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"<html>", b"{}", b"", b"time,pod\n1,a", b'{"status":"success","data":{"resultType":"vector"}}']
)
def test_a_range_that_is_no_matrix_is_one_line(data):
    with Server(lambda _: data) as server, asking(server.url) as prometheus, pytest.raises(BadAnswer):
        prometheus.range("m", TimeRange(0, 1, 1))


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://x", "", "http://", "http://x:99999"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(InputError, match="is not the address of a Prometheus"):
        asking(url)


@pytest.mark.parametrize("bounds", [(1, 0, 1), (0, 1, 0), (0, 1, -1), (float("nan"), 1, 1), (0, float("inf"), 1)])
def test_a_range_must_make_sense(bounds):
    start, end, step = bounds
    with (
        asking("http://127.0.0.1:1") as prometheus,
        pytest.raises(InputError, match="a range begins before it ends"),
    ):
        prometheus.range("m", TimeRange(start, end, step))


# ---- too much at once, partial data, and who is told what ------------------------------------------------------------

TOO_MANY = {
    "Prometheus": (422, "query processing would load too many samples into memory in query execution"),
    "Prometheus, by resolution": (400, "exceeded maximum resolution of 11,000 points per timeseries."),
    "Prometheus, out of time": (503, "query timed out in expression evaluation"),
    "Mimir": (422, "the query exceeded the maximum number of chunks (limit: 2000000 chunks) (err-mimir-max-chunks)"),
    "VictoriaMetrics": (
        422,
        "cannot select more than -search.maxSamplesPerQuery=1000000000 samples; possible solutions: increase the limit",
    ),
}


@pytest.mark.parametrize(("status", "message"), TOO_MANY.values(), ids=TOO_MANY)
def test_where_a_part_is_too_much_smaller_ones_are_asked_for(status, message):
    def answer(request):
        points = (float(request.query["end"]) - float(request.query["start"])) / 60 + 1
        if points > 30:
            return status, {}, json.dumps({"status": "error", "errorType": "execution", "error": message}).encode()
        return counting(request)

    with Server(answer) as server, asking(server.url) as prometheus:
        (series,) = prometheus.range("m", TimeRange(0, 99 * 60, 60)).series
    assert [time for time, _ in series.values] == [60.0 * number for number in range(100)]
    refused = 2 * (3 if status == 503 else 1)
    assert len(server.requests) == refused + 4, "a size that was too much is not tried again"


def test_a_refusal_that_has_nothing_to_do_with_size_is_said_at_once():
    body = json.dumps({"status": "error", "errorType": "execution", "error": "found duplicate series"}).encode()
    with (
        Server(lambda _: (422, {}, body)) as server,
        asking(server.url) as prometheus,
        pytest.raises(Refused) as caught,
    ):
        prometheus.range("m", TimeRange(0, 6000, 60))
    assert len(server.requests) == 1
    assert "Prometheus rejected the query: 422: found duplicate series" in str(caught.value)


def test_where_one_point_is_too_much_it_says_what_to_ask_instead():
    body = json.dumps({"status": "error", "error": "too many samples"}).encode()
    with (
        Server(lambda _: (422, {}, body)) as server,
        asking(server.url) as prometheus,
        pytest.raises(ClusterError) as caught,
    ):
        prometheus.range("m", TimeRange(0, 6000, 60))
    assert "too many samples" in str(caught.value)
    assert caught.value.fix == "query a single namespace or a shorter time range"


def test_an_answer_that_does_not_come_in_time_is_asked_for_in_smaller_parts():
    def answer(request):
        if float(request.query["end"]) - float(request.query["start"]) > 300:
            return lambda wire: wire.stall()
        return counting(request)

    patience = Patience(attempts=1, stall_seconds=1.0, total_seconds=5.0)
    with Server(answer) as server, asking(server.url, patience) as prometheus:
        (series,) = prometheus.range("m", TimeRange(0, 600, 60)).series
    assert len(series.values) == 11
    assert len(server.requests) >= 4


def test_an_answer_that_is_too_long_is_asked_for_in_smaller_parts():
    patience = Patience(most_bytes=2_000)
    with Server(counting, compresses=True) as server, asking(server.url, patience) as prometheus:
        (series,) = prometheus.range("m", TimeRange(0, 199 * 60, 60)).series
    assert len(series.values) == 200
    assert all(request.header("Accept-Encoding") == "gzip" for request in server.requests)


def test_a_server_that_fails_for_a_moment_is_asked_again(pauses):
    left = [(503, {}, b"upstream"), (502, {}, b"<html>bad gateway</html>")]

    def answer(request):
        return left.pop() if left else counting(request)

    with Server(answer) as server, asking(server.url) as prometheus:
        (series,) = prometheus.range("m", TimeRange(0, 600, 60)).series
    assert len(series.values) == 11
    assert pauses == [0.25, 0.5]


def test_a_server_that_rounds_times_gives_each_sample_once():
    def answer(request):
        start, end = float(request.query["start"]), float(request.query["end"])
        values = [[time, "1"] for time in range(int(start) - 60, int(end) + 61, 60)]
        return answer_with("matrix", [{"metric": {"pod": "a"}, "values": values}])

    with Server(answer) as server, asking(server.url) as prometheus:
        (series,) = prometheus.range("m", TimeRange(600, 1800, 60, 7)).series
    assert [time for time, _ in series.values] == [float(time) for time in range(540, 1861, 60)]


@pytest.mark.parametrize(
    ("extra", "warning"),
    [
        ({"warnings": ["receive store 10.0.0.7:10901: context deadline exceeded"]}, "receive store 10.0.0.7:10901"),
        ({"isPartial": True}, "the response is partial"),
    ],
    ids=["Thanos", "VictoriaMetrics"],
)
def test_what_a_server_says_about_missing_data_is_kept_once(extra, warning):
    def answer(request):
        return json.dumps({**json.loads(counting(request)), **extra}).encode()

    with Server(answer) as server, asking(server.url) as prometheus:
        found = prometheus.range("m", TimeRange(0, 600, 60, 5))
    (said,) = found.warnings
    assert warning in said
    assert len(found.series) == 1


def test_headers_go_with_every_request_and_secrets_into_no_message():
    access = {"headers": (("X-Scope-OrgID", "team-a"), ("X-Key", "hunter3"))}
    with (
        Server(lambda _: (401, {}, b"no")) as server,
        asking(server.url.replace("://", "://me:hunter2@"), **access) as prometheus,
    ):
        assert "hunter" not in repr(PrometheusAccess(url=server.url, **access))
        with pytest.raises(Refused) as caught:
            prometheus.range("m", TimeRange(0, 1, 1))
    assert [request.header("X-Scope-OrgID") for request in server.requests] == ["team-a"]
    assert server.requests[0].header("Authorization") == "Basic bWU6aHVudGVyMg=="
    assert str(caught.value).endswith("401 Unauthorized: no (the password of me was not accepted)")


def test_a_tenant_that_is_missing_is_named():
    with (
        Server(lambda _: (401, {}, b"no org id\n")) as server,
        asking(server.url) as prometheus,
        pytest.raises(Refused) as caught,
    ):
        prometheus.range("m", TimeRange(0, 1, 1))
    assert str(caught.value).endswith("401 Unauthorized: no org id (give a tenant)")


def test_a_redirect_to_another_host_is_not_followed():
    with Server(counting) as other:
        location = {"Location": f"{other.url}/api?token=hunter2"}
        with (
            Server(lambda _: (302, location, b"")) as server,
            asking(server.url, token="t") as prometheus,
            pytest.raises(BadAnswer) as caught,
        ):
            prometheus.range("m", TimeRange(0, 1, 1))
    assert other.requests == []
    assert f"a redirect to {other.url}/api, which podqos does not follow (use that address)" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_unknown_authority_is_refused_and_a_given_one_trusted(authority):
    with Server(counting, tls=authority.serving()) as server:
        with asking(server.url) as prometheus, pytest.raises(Unreachable) as caught:
            prometheus.range("m", TimeRange(0, 1, 1))
        assert "its certificate is not trusted" in str(caught.value)
        assert "kubeconfig" not in str(caught.value)
        with asking(server.url, ca_data=authority.certificate.read_text()) as prometheus:
            assert prometheus.range("m", TimeRange(0, 1, 1)).series


def test_a_server_that_never_finishes_is_given_up_after_a_few_smaller_parts():
    patience = Patience(attempts=1, stall_seconds=0.1, total_seconds=1.0)
    with (
        Server(lambda _: lambda wire: wire.stall()) as server,
        asking(server.url, patience) as prometheus,
        pytest.raises(ClusterError) as caught,
    ):
        prometheus.range("m", TimeRange(0, 600_000, 60))
    assert len(server.requests) <= 4
    assert "no data for 0.1 s (query a single namespace or a shorter time range)" in str(caught.value)
