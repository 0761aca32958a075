"""A report is the same whatever carries it: terminals, journals, services, mail. A cut or broken one claims no more."""

from __future__ import annotations

import csv
import gzip
import io
import json
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from podqos.logs.carriers import Carrier
from podqos.logs.kernel_lines import ReportReader
from podqos.logs.report import Constraint, OOMReport
from podqos.logs.said import Said
from podqos.logs.search import LogReader
from podqos.reading.logs import Log, opened

HOST, ISO = "node-1", "2026-01-05T15:19:27.708440Z"
OOMS = Path(__file__).parent.parent / "kernel" / "ooms"


@cache
def recorded() -> dict[str, tuple[str, ...]]:
    """Return the lines of twelve recorded reports: of containers, pods and machines, of four kernels."""
    found = {}
    for path in sorted(OOMS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            records = [json.loads(line) for line in file]
        by_scope = {"oom_memcg" in "".join(each["log"]): each for each in records}
        for each in [*by_scope.values(), records[len(records) // 2]]:
            lines = [record.partition(";")[2] for record in each["log"]]
            name = f"{path.name.partition('.jsonl')[0]} {each['name']}"
            found[name] = tuple(part for line in lines for part in line.replace("\\x0a", "\n").split("\n"))
    return dict([*found.items()][:12])


def dmesg(lines: Iterable[str]) -> list[str]:
    return [f"[{5864.708440 + number / 1e5:12.6f}] {line}" for number, line in enumerate(lines)]


def syslog(lines: Iterable[str]) -> list[str]:
    return [f"Jan  5 15:19:27 {HOST} kernel: {line}" for line in dmesg(lines)]


def plain(lines: Iterable[str]) -> list[str]:
    return list(lines)


def each(form: str, inner: Callable[[Iterable[str]], list[str]] = dmesg) -> Callable[[Iterable[str]], str]:
    """Put something around every line: ``{n}`` is its number, ``{level}`` varies."""
    levels = ("warn", "info", "err", "notice")
    return lambda lines: "".join(
        form.format(line, n=number, level=levels[number % 4]) + "\n" for number, line in enumerate(inner(lines), 1)
    )


def records(make: Callable[[str], object], inner: Callable[[Iterable[str]], list[str]] = plain):
    """Make a line of JSON of every line."""
    return lambda lines: "".join(json.dumps(make(line)) + "\n" for line in inner(lines))


def document(make: Callable[[list[str]], object], indent: int | None = 2):
    """Make one JSON document of all lines."""
    return lambda lines: json.dumps(make(dmesg(lines)), indent=indent) + "\n"


def human(lines: Iterable[str]) -> str:
    marks = ["[Jan 5 15:19] ", *(f"[  +0.{number % 7:06d}] " for number in range(1, 9999))]
    return "".join(f"{mark}{line}\n" for mark, line in zip(marks, lines, strict=False))


def in_csv(lines: Iterable[str]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["@timestamp", "host.name", "message", "id"])
    rows.writerows([ISO, HOST, line, "a1"] for line in dmesg(lines))
    return out.getvalue()


def context(lines: Iterable[str]) -> str:
    """Print as grep -C does: what matched has colons."""
    return "".join(
        f"kern.log{':' if 'oom' in line else '-'}{number}{':' if 'oom' in line else '-'}{line}\n"
        for number, line in enumerate(syslog(lines), 1)
    )


def coloured(lines: Iterable[str]) -> str:
    return "".join(
        f"\x1b[32m{line[:15]}\x1b[0m{line[15:].replace('oom', chr(27) + '[1;31moom' + chr(27) + '[m')}\n"
        for line in dmesg(lines)
    )


def wrapped(
    width: int, inner: Callable[[Iterable[str]], list[str]], before: str = ""
) -> Callable[[Iterable[str]], str]:
    def make(lines: Iterable[str]) -> str:
        broken = [part for line in inner(lines) for part in textwrap.wrap(line, width) or [""]]
        return "".join(f"{before}{part}\n" for part in broken)

    return make


def folded(width: int, inner: Callable[[Iterable[str]], list[str]]) -> Callable[[Iterable[str]], str]:
    return lambda lines: "".join(
        f"{line[at : at + width]}\n" for line in inner(lines) for at in range(0, max(1, len(line)), width)
    )


def gcp(line: str) -> object:
    return {
        "insertId": "q",
        "jsonPayload": {"MESSAGE": line},
        "resource": {"labels": {"node_name": HOST}},
        "timestamp": ISO,
    }


CARRIERS: dict[str, Callable[[Iterable[str]], str]] = {
    "bare": each("{}", plain),
    "dmesg": each("{}"),
    "dmesg -T": each("[Mon Jan  5 15:19:27 2026] {}", plain),
    "dmesg -x": each("kern  :{level:<6}: {}"),
    "dmesg -H": human,
    "dmesg, caller": each("[ 5864.708440][ T1234] {}", plain),
    "kmsg": each("4,339,5864708440,-;{}", plain),
    "journalctl": each("Jan 05 15:19:27 node-1 kernel: {}", plain),
    "journalctl -o short-iso": each("2026-01-05T15:19:27+0100 node-1 kernel: {}", plain),
    "journalctl -o short-full": each("Mon 2026-01-05 15:19:27 UTC node-1 kernel: {}", plain),
    "journalctl -o json": records(
        lambda line: {"__REALTIME_TIMESTAMP": "1767626367708440", "_HOSTNAME": HOST, "MESSAGE": line}
    ),
    "journalctl -o json, bytes": records(lambda line: {"_HOSTNAME": HOST, "MESSAGE": [*line.encode()]}),
    "journalctl -o json-pretty": lambda lines: "".join(
        json.dumps({"_HOSTNAME": HOST, "MESSAGE": line}, indent=8) + "\n" for line in lines
    ),
    "journalctl -o export": lambda lines: "".join(
        f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767626367708440\n_HOSTNAME=node-1\nMESSAGE={line}\nPRIORITY=4\n\n"
        for line in lines
    ),
    "syslog": lambda lines: "\n".join(syslog(lines)) + "\n",
    "syslog, iso": each("2026-01-05T15:19:27.708440+01:00 node-1 kernel: {}"),
    "rfc5424": each("<4>1 2026-01-05T15:19:27.708440Z node-1 kernel - - - {}"),
    "docker json-file": records(lambda line: {"log": f"{line}\n", "stream": "stdout", "time": ISO}, dmesg),
    "cri": each("2026-01-05T15:19:27.708440123Z stdout F {}"),
    "cloudwatch": document(lambda lines: {"events": [{"timestamp": 1767626367708, "message": line} for line in lines]}),
    "cloudwatch insights": document(
        lambda lines: {
            "results": [[{"field": "@message", "value": line}, {"field": "@ptr", "value": "x"}] for line in lines]
        }
    ),
    "cloud logging": records(gcp, dmesg),
    "cloud logging, array": document(lambda lines: [gcp(line) for line in lines], indent=None),
    "cloud logging, text": records(lambda line: {"textPayload": line, "timestamp": ISO}, dmesg),
    "loki": document(
        lambda lines: {
            "data": {
                "result": [{"stream": {"host": HOST}, "values": [["1767626367708440000", line] for line in lines]}]
            }
        }
    ),
    "logcli jsonl": records(lambda line: {"labels": {"host": HOST}, "line": line, "timestamp": ISO}, dmesg),
    "elastic": document(
        lambda lines: {
            "hits": {
                "hits": [{"_source": {"@timestamp": ISO, "host": {"name": HOST}, "message": line}} for line in lines]
            }
        }
    ),
    "datadog": document(
        lambda lines: {"data": [{"attributes": {"timestamp": ISO, "host": HOST, "message": line}} for line in lines]}
    ),
    "splunk": records(lambda line: {"result": {"_raw": line, "host": HOST}}, syslog),
    "csv": in_csv,
    "kubectl logs --prefix": each("[pod/node-logger-x7k2p/kmsg] {}"),
    "stern": each("node-logger-x7k2p kmsg {}"),
    "grep -n": each("kern.log:{n}:{}", syslog),
    "grep -C": context,
    "quoted": each("> {}"),
    "quoted twice": each("> > {}", syslog),
    "fence": lambda lines: "```\n" + "\n".join(dmesg(lines)) + "\n```\n",
    "quoted fence": lambda lines: "> ```\n" + "".join(f"> {line}\n" for line in dmesg(lines)) + "> ```\n",
    "colour": coloured,
    "tabs": each("[ 5864.708440]\t{}", plain),
    "crlf": lambda lines: "\r\n".join(dmesg(lines)) + "\r\n",
    "wrapped at 72": wrapped(72, dmesg),
    "wrapped at 100": wrapped(100, syslog),
    "wrapped and quoted": wrapped(76, dmesg, "> "),
    "folded at 80": folded(80, syslog),
    "folded at 132": folded(132, dmesg),
    "newest first": lambda lines: "\n".join(reversed(dmesg(lines))) + "\n",
    "newest first, json": lambda lines: "".join(json.dumps(gcp(line)) + "\n" for line in reversed(dmesg(lines))),
}


def read(data: bytes) -> list[OOMReport]:
    reader = ReportReader()
    return [*reader.feed(Carrier().lines(data)), *reader.end()]


def summary(report: OOMReport) -> tuple[object, ...]:
    return (
        report.constraint,
        report.oom_cgroup,
        report.task_cgroup,
        report.chosen,
        report.victims,
        report.tasks,
        report.counters,
        report.ram_pages,
        report.gfp_mask,
    )


def scope(report: OOMReport) -> bool | None:
    """Return whether a cgroup ran out; a machine's policy is in the last lines alone."""
    return None if report.constraint is None else report.constraint is Constraint.MEMCG


@pytest.mark.parametrize("carrier", CARRIERS)
def test_whatever_carries_a_report_it_is_the_same(carrier):
    assert len(recorded()) == 12
    for name, lines in recorded().items():
        expected = [*map(summary, read("\n".join(lines).encode()))]
        assert expected[0][0] is not None, name
        assert [*map(summary, read(CARRIERS[carrier](lines).encode()))] == expected, name


@pytest.mark.parametrize("carrier", CARRIERS)
def test_where_the_head_or_the_tail_is_cut_off_no_other_scope_is_claimed(carrier):
    for name, lines in recorded().items():
        whole = read("\n".join(lines).encode())
        text = CARRIERS[carrier](lines)
        for part in (text[len(text) // 3 :], text[: len(text) * 2 // 3], text[len(text) // 4 : -len(text) // 4]):
            for report in read(part.encode()):
                assert scope(report) in {None, *map(scope, whole)}, name
                assert report.oom_cgroup in {None, *(each.oom_cgroup for each in whole)}, name
                assert {*report.victims} <= {pid for each in whole for pid in each.victims}, name


@pytest.mark.parametrize(
    "coded",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.replace("\n", "\r\n").encode(),
    ],
    ids=["utf-8 with bom", "utf-16 le", "utf-16 be", "gzip", "crlf"],
)
def test_however_a_log_is_coded_it_is_read(coded):
    lines = next(iter(recorded().values()))
    with opened(Log("log", coded("\n".join(syslog(lines)) + "\n"))) as log:
        (report,) = LogReader(Said()).read(log)
    assert summary(report) == summary(read("\n".join(lines).encode())[0])


@pytest.mark.parametrize(
    ("carrier", "at", "host"),
    [
        ("dmesg", "5864.708440", ""),
        ("dmesg -T", "Mon Jan  5 15:19:27 2026", ""),
        ("kmsg", "5864.708440", ""),
        ("syslog", "Jan  5 15:19:27", HOST),
        ("journalctl -o short-iso", "2026-01-05T15:19:27+0100", HOST),
        ("rfc5424", ISO, HOST),
        ("journalctl -o json", "1767626367.708440", HOST),
        ("journalctl -o export", "1767626367.708440", HOST),
        ("cloud logging", ISO, HOST),
        ("loki", "1767626367.708440", HOST),
        ("elastic", ISO, HOST),
        ("csv", ISO, HOST),
    ],
)
def test_time_and_host_are_those_of_the_carrier(carrier, at, host):
    lines = next(iter(recorded().values()))
    (report,) = read(CARRIERS[carrier](lines).encode())
    assert (report.at, report.host) == (at, host)


def test_lines_broken_at_changing_columns_are_refused_by_name():
    for name, lines in recorded().items():
        broken = [part for n, line in enumerate(lines) for part in textwrap.wrap(line, 30 + n * 7 % 60)]
        carrier, reader = Carrier(), ReportReader()
        found = [*reader.feed(carrier.lines("\n".join(broken).encode())), *reader.end()]
        whole = read("\n".join(lines).encode())
        assert carrier.is_broken or [{*each.victims} for each in found] == [{*each.victims} for each in whole], name
        assert {*map(scope, found)} <= {None, *map(scope, whole)}, name
