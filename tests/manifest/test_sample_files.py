"""Files of figures: tables and range queries, whoever reads them."""

from __future__ import annotations

import pytest

from podqos.errors import InputError
from podqos.manifest.samples import PrometheusSeries, SampleRow, read_amount, read_samples
from podqos.model.quantity import Quantity


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_byte_order_marks_and_spaces_do_not_matter(mark, end):
    data = f"{mark}pod , memory{end}web, 1Gi {end}db,{end}".encode()
    columns = ("pod", "memory")
    assert list(read_samples("f", data)) == [
        SampleRow({"pod": "web", "memory": "1Gi"}, "f:2", columns, "f:1"),
        SampleRow({"pod": "db"}, "f:3", columns, "f:1"),
    ]


def test_a_json_list_has_objects_or_pairs():
    rows = read_samples("f", b'[{"pod": "web"}, [5, "1Gi"]]')
    assert [(row.fields, row.where) for row in rows] == [
        ({"pod": "web"}, "f: [0]"),
        ({"time": 5, "value": "1Gi"}, "f: [1]"),
    ]


def test_a_range_query_is_its_series():
    data = (
        b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1.5, "2"]]}]}}'
    )
    assert read_samples("f", data) == (PrometheusSeries({}, ((1.5, "2"),)),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"a,b\n1\n", "f:2: the row has more or fewer columns", id="a-short-row"),
        pytest.param(b'a\n"' + b"x" * 200_000 + b'"\n', r"f:\d: not CSV: field larger", id="a-field-without-end"),
        pytest.param(b"[" * 100_000, "f: not JSON: maximum recursion", id="deep"),
        pytest.param(b"[1]", r"f: \[0\]: a sample must be an object", id="no-row"),
        pytest.param(b'{"data": []}', "f: not a Prometheus response", id="another-object"),
        pytest.param(b"{}", "f: the result is a missing", id="nothing"),
    ],
)
def test_what_cannot_be_read_is_one_line(data, message):
    with pytest.raises(InputError, match=message) as caught:
        list(read_samples("f", data))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "amount"),
    [("1Gi", "1Gi"), ("250m", "250m"), ("2.5e+08", "250M"), ("0.1", "100m"), (7, "7"), (0.5, "500m"), ("1e-30", "0")],
)
def test_amounts_are_written_as_kubernetes_or_prometheus_writes_them(written, amount):
    assert read_amount(written) == Quantity.parse(amount)


@pytest.mark.parametrize("written", ["NaN", "+Inf", "lots", "", True, [], "-1", "-0.5Gi"])
def test_what_is_no_amount_is_refused(written):
    with pytest.raises(InputError, match=r"not a valid quantity|below zero"):
        read_amount(written)
