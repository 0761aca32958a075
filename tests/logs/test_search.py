"""Of a large log what is around words about kills is read closely, wherever it is; what is not read is said."""

from __future__ import annotations

import io
import json

import pytest

from kernel.oom_logs import ROWS, cgroup, killed, machine
from podqos.logs import search
from podqos.logs.report import OOMReport
from podqos.logs.said import Said
from podqos.logs.search import LogReader

NOISE = "".join(f"Jan  5 15:18:{n % 60:02d} node-1 sshd[{n}]: session opened for user {n}\n" for n in range(60_000))
"""Of three megabytes."""
LIMIT = cgroup(ROWS, 102, "java (main) [x]")


def syslog(lines: list[str]) -> str:
    return "".join(f"Jan  5 15:19:27 node-1 kernel: [ 5864.70{n % 10000:04d}] {line}\n" for n, line in enumerate(lines))


def read(*texts: str, said: Said | None = None) -> list[OOMReport]:
    reader = LogReader(said or Said())
    return [report for text in texts for report in reader.read(io.BytesIO(text.encode()))]


@pytest.mark.parametrize("at", [0, 1 << 16, (1 << 20) - 3000, (1 << 20) - 100, 1 << 20, 2_500_000, len(NOISE)])
def test_a_report_is_found_whole_wherever_it_is(at):
    at = NOISE.rfind("\n", 0, at) + 1
    (report,) = read(NOISE[:at] + syslog(LIMIT) + NOISE[at:])
    assert len(report.tasks) == 3
    assert report.oom_cgroup
    assert report.victims[102].is_reaped
    assert (report.host, report.counters["memory"].failures) == ("node-1", 12)


def test_a_table_of_many_tasks_is_read_to_its_end():
    rows = [(pid, 1000, 90, 1, 0, 0, "worker") for pid in range(200, 9000)]
    (report,) = read(NOISE + syslog(machine([*ROWS, *rows])) + NOISE)
    assert len(report.tasks) == 8803
    assert [*report.victims] == [102]


def test_lines_of_others_between_those_of_a_report_do_not_matter():
    lines = syslog(LIMIT).splitlines(keepends=True)
    others = NOISE.splitlines(keepends=True)[: len(lines) * 20]
    mixed = "".join(line + "".join(others[n * 20 : n * 20 + 20]) for n, line in enumerate(lines))
    (report,) = read(NOISE + mixed + NOISE)
    assert len(report.tasks) == 3
    assert [*report.victims] == [102]


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize("times", [10, 20_000])
def test_json_of_any_length_is_read(indent, times):
    others = [{"message": f"eth0: link {n}", "host": "node-1"} for n in range(times)]
    own = [{"message": line, "host": "node-1"} for line in LIMIT]
    (report,) = read(json.dumps({"hits": [*others, *own, *others]}, indent=indent))
    assert len(report.tasks) == 3
    assert [*report.victims] == [102]


def test_two_logs_with_the_same_report_have_one():
    journal = "".join(f"Jan 05 15:19:27 node-1 kernel: {line}\n" for line in LIMIT)
    assert len(read(syslog(LIMIT), journal)) == 1
    assert len(read(syslog(LIMIT) + journal)) == 1
    assert len(read(syslog(LIMIT), syslog(LIMIT).replace("15:19:27", "15:49:11"))) == 2
    assert len(read(syslog(LIMIT), syslog(LIMIT).replace("node-1", "node-2"))) == 2


def test_what_is_not_read_closely_is_said(monkeypatch):
    monkeypatch.setattr(search, "MOST_BYTES", 1 << 20)
    said = Said()
    hostile = 'sh: "Killed process" is what the kernel says when it is out of memory: oom-kill\n' * 40_000
    assert read(hostile, said=said) == []
    assert 2_000_000 < said.read.unread_bytes < len(hostile)
    assert said.read.bytes == len(hostile)


def test_no_more_reports_are_read_than_can_be_examined(monkeypatch):
    monkeypatch.setattr(search, "MOST_REPORTS", 5)
    said = Said()
    assert len(read(syslog([killed(n, "x", n) for n in range(100, 120)]), said=said)) == 5
    assert said.read.is_report_limit


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a\nThe container was OOMKilled, they say.\n", 2, "OOMKilled"),
        ("exit code 137\nsomething out of memory\n", 2, "out of memory"),
        ("a\nb\nexit code: 137\n", 3, "exit code: 137"),
        ("nothing at all\n", None, None),
    ],
)
def test_the_line_that_looks_most_like_a_kill_is_kept(text, line, word):
    said = Said()
    assert read(text, said=said) == []
    mention = said.read.mention
    assert (line, word) == ((None, None) if mention is None else (mention.line, mention.word))


def test_what_a_log_is_of_is_counted():
    said = Said()
    kubelet = "Jan  5 15:19:27 node-1 kubelet[1]: I0105 15:19:27.708440    1 kubelet.go:2407] x\n"
    read(syslog(LIMIT) + kubelet * 3, said=said)
    assert (said.read.kernel_messages, said.read.kubelet_messages) == (len(LIMIT), 3)
    assert said.read.lines == len(LIMIT) + 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("-- No entries --\n", "lacks_journal"),
        ("bash: journalctl: command not found\n", "lacks_journal"),
        ("kern: warning: [2026-01-05T15:19:27.708440123Z]: eth0: up\n", "is_talos"),
    ],
)
def test_a_system_without_a_journal_is_known(text, name):
    said = Said()
    read(text, said=said)
    assert getattr(said.read, name)


def test_the_pod_and_the_node_that_kubectl_debug_names_are_known():
    said = Said()
    made = "Creating debugging pod node-debugger-worker-1-x7k2p with container debugger on node worker-1.\n"
    read(made + syslog(LIMIT), said=said)
    assert (said.read.debug_pods, said.read.node) == (("node-debugger-worker-1-x7k2p",), "worker-1")


def test_a_journal_of_podqos_is_read_entry_by_entry():
    entry = {"time_us": 5, "node": "n", "kind": "Evicted", "pod": "shop/web-0", "by": "kubelet"}
    said = Said()
    read("".join(json.dumps(entry | {"time_us": n}) + "\n" for n in range(3)), said=said)
    assert [each.time_us for each in said.journal] == [0, 1, 2]
