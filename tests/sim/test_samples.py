"""Measured samples, as people and Prometheus write them."""

import pytest

from podqos.errors import InputError
from podqos.sim.scenario_format.shapes import read_samples

MI = 2**20
PROMETHEUS = b"""{"status": "success", "data": {"resultType": "matrix", "result": [
  {"metric": {"pod": "web-1"}, "values": [[1700000000, "2.5e+08"], [1700000030.5, "3e8"]]},
  {"metric": {"pod": "web-0"}, "values": [[1700000000, "1"], [1700000060, "2"]]},
  {"metric": {"pod": "db-0"}, "values": [[1700000000, "7"]]}]}}"""


def points(data, **arguments):
    (series,) = read_samples("file", data, **arguments)
    return [(time, amount.value) for time, amount in series.points]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"time,memory\n0,1Mi\n10,2Mi\n", id="CSV with seconds"),
        pytest.param(b"time, memory\n0s, 1Mi\n10s, 2Mi\n", id="CSV with durations"),
        pytest.param(b"memory,timestamp\n1Mi,2026-01-01T00:00:00Z\n2Mi,2026-01-01T00:00:10Z\n", id="CSV with dates"),
        pytest.param(b"\xef\xbb\xbftime,memory\n1700000000,1048576\n1700000010,2097152\n", id="CSV, from 1970"),
        pytest.param(b'[{"time": 0, "memory": "1Mi"}, {"time": 10, "memory": "2Mi"}]', id="JSON objects"),
        pytest.param(b'[[0, "1Mi"], [10.0, 2097152]]', id="JSON pairs"),
        pytest.param(b"time,memory\n0,1Mi\n5,\n10,2Mi\n", id="what is empty was not measured"),
    ],
)
def test_tables(data):
    assert points(data) == [(0, MI), (10_000_000, 2 * MI)]


def test_a_column_is_chosen_by_name():
    assert points(b"time,cpu,memory\n0,1,5\n", column="memory") == [(0, 5)]


def test_prometheus_series_are_matched_by_labels_and_come_in_their_order():
    series = read_samples("file", PROMETHEUS, match={"pod": "web-*"})
    assert [each.labels["pod"] for each in series] == ["web-0", "web-1"]
    assert [(time, amount.value) for time, amount in series[1].points] == [(0, 250_000_000), (30_500_000, 300_000_000)]


@pytest.mark.parametrize(
    ("data", "arguments", "what"),
    [
        (b"", {}, "no samples"),
        (b"time,memory\n", {}, "no samples"),
        (b"time,cpu,memory\n0,1,2\n", {}, "several columns"),
        (b"time,memory\n0,1\n", {"column": "memroy"}, 'unknown column "memroy"'),
        (b"time,memory\n5,1\n4,1\n", {}, "not later"),
        (b"time,memory\n0,lots\n", {}, "not a valid quantity"),
        (b"time,memory\n0,-5\n", {}, "below zero"),
        (b"time,memory\n2026-99-99,1\n", {}, "not a date"),
        (b"time,memory\n0,1,2\n", {}, "more or fewer columns"),
        (b"{nonsense", {}, "not JSON"),
        (b'{"data": {"resultType": "vector", "result": []}}', {}, "vector"),
        (b'{"status": "error"}', {}, "Prometheus returned error"),
        (b"[1, 2]", {}, "pair"),
        (PROMETHEUS, {"match": {"pod": "nobody"}}, "no series matches"),
    ],
)
def test_what_cannot_be_used_is_refused_with_place_and_help(data, arguments, what):
    with pytest.raises(InputError, match=what) as caught:
        read_samples("usage.csv", data, **arguments)
    assert caught.value.where.startswith("usage.csv")
    assert caught.value.fix
