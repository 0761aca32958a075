"""Usage files: both notations, and one line for whatever is wrong with them."""

from __future__ import annotations

import pytest

from podqos.errors import InputError
from podqos.model.quantity import Quantity
from podqos.survival.node.usage_file import COLUMNS, UsageRow, read_usage

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
    "not an amount": (b"pod,memory\na,1gi\n", "u:2: memory: "),
    "not a number": (b"pod,processes\na,two\n", "u:2: processes: "),
    "below zero": (b"pod,memory\na,-1Gi\n", "u:2: an amount is below zero"),
    "no processes": (b"- {pod: a, processes: 0}", "u:1: an amount is below zero, or there are no processes"),
    "too many processes": (b"- {pod: a, processes: 1000000}", "u:1: 1000000 processes (at most 100000"),
    "no pod": (b"pod,memory\n,1Gi\n", "u:2: "),
    "part larger than the whole": (b"- {pod: a, memory: 1Gi, anon: 2Gi}", "u:1: anon (2Gi) is part of memory (1Gi)"),
    "no such column in a heading": (b"pod,mem\na,\n", "u:1: unknown column 'mem' (did you mean memory?)"),
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
