"""Usage files: both notations, and one line for whatever is wrong with them."""

from __future__ import annotations

import json

import pytest

from podqos.errors import InputError
from podqos.model.quantity import Quantity
from podqos.orders.usage import COLUMNS, UsageRow, read_usage

CSV = b"""\
pod, container, memory, anon, processes
batch/a, main, 6Gi, 4Gi, 2
b, , 250Mi, ,
"""
YAML = b"""\
# what `kubectl top` showed
- {pod: batch/a, container: main, memory: 6Gi, anon: 4Gi, processes: 2}
- pod: b
  memory: 250Mi
"""


@pytest.mark.parametrize(("data", "lines"), [(CSV, (2, 3)), (YAML, (2, 3))], ids=["csv", "yaml"])
def test_both_notations_say_the_same(data, lines):
    assert read_usage("u", data) == (
        UsageRow("batch/a", "main", Quantity.parse("6Gi"), Quantity.parse("4Gi"), processes=2, where=f"u:{lines[0]}"),
        UsageRow("b", memory=Quantity.parse("250Mi"), where=f"u:{lines[1]}"),
    )


def test_json_is_yaml():
    assert read_usage("u", b'[{"pod": "a", "memory": "1Gi", "inodes": 5}]')[0].inodes == 5


def test_every_column_is_read():
    row = "a,c,8Mi,2Mi,1Mi,1Mi,1Mi,3,9Mi,7"
    (read,) = read_usage("u", f"{','.join(COLUMNS)}\n{row}\n".encode())
    assert all(getattr(read, name) for name in UsageRow.__struct_fields__ if name != "is_listed")


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter():
    assert len(read_usage("u", b"\xef\xbb\xbf- pod: a\r\n  memory: 1Mi\r\n")) == 1
    assert len(read_usage("u", b"\xef\xbb\xbfpod,memory\r\na,1Mi\r\n")) == 1


BAD = {
    "no such column": (b"- {pod: a, mem: 1Gi}", "u:1: unknown column 'mem' (did you mean memory?)"),
    "not a valid quantity": (b"pod,memory\na,1gx\n", "u:2: memory: "),
    "not a number": (b"pod,processes\na,two\n", "u:2: processes: "),
    "below zero": (b"pod,memory\na,-1Gi\n", "u:2: amounts can't be negative"),
    "no processes": (b"- {pod: a, processes: 0}", "u:1: amounts can't be negative, and processes must be at least 1"),
    "too many processes": (b"- {pod: a, processes: 1000000}", "u:1: 1000000 processes (at most 100000"),
    "no pod": (b"pod,memory\n,1Gi\n", "u:2: "),
    "part larger than the whole": (b"- {pod: a, memory: 1Gi, anon: 2Gi}", "u:1: anon (2Gi) is part of memory (1Gi)"),
    "no such column in a heading": (b"pod,memroy\na,\n", "u:1: unknown column 'memroy' (did you mean \"memory\"?)"),
    "no figures": (b"pod,image\na,nginx\n", "u:1: no column has usage (the columns are pod,"),
    "too many columns": (b"pod,memory\na,1Gi,3\n", "u:2: the row has more or fewer columns"),
    "too few columns": (b"pod,memory\na\n", "u:2: the row has more or fewer columns"),
    "not a list": (b"pod: a\n", "u: not a usage file"),
    "a list of texts": (b"- a\n- b\n", "u:1: a row must be a mapping"),
    "broken YAML": (b"- {pod: a\n", "u:"),
    "a column twice": (b"- {pod: a, pod: b}\n", "u:1:"),
}


@pytest.mark.parametrize(("data", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_in_a_line_with_its_place(data, message):
    with pytest.raises(InputError) as caught:
        read_usage("u", data)
    text = str(caught.value)
    assert text.startswith(message)
    assert "\n" not in text
    assert text.endswith(")")  # how to mend it


# ---- the forms that monitoring has -----------------------------------------------------------------------------------

TIMES = {
    "rows": "Time,Namespace,Pod,Container,Memory,CPU\n"
    "1794268800,shop,web-a,app,100Mi,1\n1794269100,shop,web-a,app,120Mi,1\n"
    "1794260000,shop,web-gone,app,900Mi,1\n1794269100,shop,web-b,app,80Mi,1\n",
    "Grafana": '"Time","shop/web-a/app","shop/web-gone/app","shop/web-b/app"\n'
    "2026-11-09 21:33:20,,900 MiB,\n2026-11-10 00:00:00,100 MiB,,\n2026-11-10 00:05:00,120 MiB,,80 MiB\n",
    "promtool": '{container="app", namespace="shop", pod="web-a"} =>\n'
    "104857600 @[1794268800]\n125829120 @[1794269100]\n"
    '{container="app", namespace="shop", pod="web-gone"} =>\n943718400 @[1794260000]\n'
    '{container="app", namespace="shop", pod="web-b"} =>\n83886080 @[1794269100]\n',
}


@pytest.mark.parametrize("text", TIMES.values(), ids=TIMES)
def test_of_a_table_over_time_the_newest_sample_counts_and_pods_that_are_gone_do_not(text):
    rows = read_usage("u", text.encode())
    assert [(row.pod, row.container, row.memory.value >> 20) for row in rows] == [
        ("shop/web-a", "app", 120),
        ("shop/web-b", "app", 80),
    ]
    assert all(row.is_listed for row in rows), "monitoring knows of more pods than the manifests at hand"


def test_an_answer_of_prometheus_is_a_table_of_memory():
    memory, cpu = "container_memory_working_set_bytes", "container_cpu_usage_seconds_total"
    series = [
        {"metric": {"__name__": name, "namespace": "shop", "pod": "a", "container": container}, "values": [[5, value]]}
        for name, container, value in ((memory, "c", "1048576"), (cpu, "c", "7"), (memory, "", "9"))
    ]
    data = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})
    (row,) = read_usage("u", data.encode())
    assert (row.pod, row.container, row.memory.value) == ("shop/a", "c", 1 << 20)


def test_columns_may_be_in_any_case_and_spelling_and_there_may_be_more():
    (row,) = read_usage("u", b"POD;Memory;inactive_file;cpu;image\nweb;1Gi;5Mi;250m;nginx\n")
    assert (str(row.memory), str(row.inactive_file)) == ("1Gi", "5Mi")


def test_kubectl_top_without_headings_printed_twice_is_what_was_used_last():
    (row,) = read_usage("u", b"web-a  app  5m  10Mi\nweb-a  app  5m  20Mi\n")
    assert (row.pod, row.container, str(row.memory), row.is_listed) == ("web-a", "app", "20Mi", True)
