"""Carriers of kernel logs: what terminals, mails, services, tools and people make of the same lines."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import pprint
import quopri
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

import yaml

Carrier = Callable[[list[str]], str]

HOST = "node-1"
ISO = "2026-01-05T15:19:27.708440Z"


def dmesg(lines: Iterable[str]) -> list[str]:
    """Return lines as dmesg prints them; time passes between them."""
    return [f"[{5864.708440 + number / 1e5:12.6f}] {line}" for number, line in enumerate(lines)]


def syslog(lines: Iterable[str]) -> list[str]:
    """Return lines as syslog daemons write them."""
    return [f"Jan  5 15:19:27 {HOST} kernel: {line}" for line in dmesg(lines)]


def journal(lines: Iterable[str]) -> list[str]:
    """Return lines as journalctl prints them."""
    return [f"Jan 05 15:19:27 {HOST} kernel: {line}" for line in lines]


def each(form: str, inner: Callable[[Iterable[str]], list[str]] = dmesg) -> Carrier:
    """Return the carrier that puts something around every line: ``{n}`` is its number, ``{}`` the line."""
    return lambda lines: "\n".join(form.format(line, n=number) for number, line in enumerate(inner(lines), 1)) + "\n"


def plain(lines: Iterable[str]) -> list[str]:
    """Return lines as they are."""
    return list(lines)


def whole(make: Callable[[list[str]], str], inner: Callable[[Iterable[str]], list[str]] = dmesg) -> Carrier:
    """Return the carrier that is made of all lines at once."""
    return lambda lines: make(inner(lines))


def wrapped(width: int, inner: Callable[[Iterable[str]], list[str]], before: str = "", **how: bool) -> Carrier:
    """Return the carrier that breaks lines between words."""

    def make(lines: list[str]) -> str:
        broken = [part for line in inner(lines) for part in textwrap.wrap(line, width, **how) or [""]]
        return "".join(f"{before}{part}\n" for part in broken)

    return make


def folded(width: int, inner: Callable[[Iterable[str]], list[str]], before: str = "") -> Carrier:
    """Return the carrier that breaks lines at a column."""

    def make(lines: list[str]) -> str:
        broken = [line[at : at + width] for line in inner(lines) for at in range(0, len(line), width)]
        return "".join(f"{before}{part}\n" for part in broken)

    return make


def records(
    make: Callable[[str], object], inner: Callable[[Iterable[str]], list[str]] = plain, *, indent: int | None = None
) -> Carrier:
    """Return the carrier that makes a JSON object of every line."""
    return lambda lines: "".join(json.dumps(make(line), indent=indent) + "\n" for line in inner(lines))


def document(
    make: Callable[[list[str]], object],
    inner: Callable[[Iterable[str]], list[str]] = plain,
    *,
    indent: int | str | None = 2,
    separators: tuple[str, str] | None = None,
) -> Carrier:
    """Return the carrier that makes one JSON document of all lines."""
    return lambda lines: json.dumps(make(inner(lines)), indent=indent, separators=separators) + "\n"


def table(
    header: list[str] | None, row: Callable[[str], list[str]], delimiter: str = ",", *, every: bool = False
) -> Carrier:
    """Return the carrier that makes a row of every line."""

    def make(lines: list[str]) -> str:
        out = io.StringIO()
        quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
        writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n")
        writer.writerows(([header] if header else []) + [row(line) for line in dmesg(lines)])
        return out.getvalue()

    return make


def _human(lines: list[str]) -> str:
    marks = ["[Jan 5 15:19] ", *(f"[  +0.{number % 7:06d}] " for number in range(1, len(lines)))]
    return "".join(f"{mark}{line}\n" for mark, line in zip(marks, lines, strict=True))


def _padded(lines: list[str]) -> str:
    width = max(map(len, lines))
    rows = "".join(f"| {number:<4} | {line:<{width}} |\n" for number, line in enumerate(lines, 1))
    return f"| n    | {'log':<{width}} |\n|------|{'-' * (width + 2)}|\n{rows}"


def _pretty_journal(lines: list[str]) -> str:
    def entry(line: str) -> str:
        fields = {"__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": "1767626367708440", "MESSAGE": line, "_HOSTNAME": HOST}
        inner = ",\n".join(f"\t{json.dumps(name)} : {json.dumps(value)}" for name, value in fields.items())
        return f"{{\n{inner}\n}}\n"

    return "".join(map(entry, lines))


def _unicode(lines: list[str]) -> str:
    text = "\n".join(lines).replace("  ", " \u00a0").replace("-", "\u2011", 1)
    return text.replace("oom_reaper", "oom\u200b_reaper") + "\n"


def _markdown(lines: list[str]) -> str:
    return "".join(line.replace("_", r"\_").replace("[", r"\[").replace("*", r"\*") + "\n" for line in lines)


def _levels(line: str, number: int) -> str:
    return ("warning", "info", "err", "notice")[number % 4] if line else "info"


def _by_level(form: str, inner: Callable[[Iterable[str]], list[str]] = plain) -> Carrier:
    return lambda lines: "".join(
        form.format(line, level=_levels(line, number), n=number) + "\n" for number, line in enumerate(inner(lines), 1)
    )


def _labels(line: str) -> str:
    return f'{ISO} {{host="{HOST}", job="kernel", level="warn"}} {line}'


def _otlp(lines: list[str]) -> object:
    entries = [{"timeUnixNano": "1767626367708440000", "body": {"stringValue": line}} for line in lines]
    host = {"attributes": [{"key": "host.name", "value": {"stringValue": HOST}}]}
    return {"resourceLogs": [{"resource": host, "scopeLogs": [{"scope": {}, "logRecords": entries}]}]}


def _colours(lines: list[str]) -> str:
    return "".join(
        f"\x1b[32m{line[:15]}\x1b[0m{line[15:].replace('oom', chr(27) + '[1;31moom' + chr(27) + '[m')}\n"
        for line in lines
    )


def _languages() -> Iterator[tuple[str, Carrier]]:
    days = {
        "german": "Mo Jan  5 15:19:27 2026",
        "french": "lun. janv.  5 15:19:27 2026",
        "japanese": "月  1月  5 15:19:27 2026",
        "russian": "Пн янв  5 15:19:27 2026",
        "arabic": "الاثنين يناير  5 15:19:27 2026",
        "greek": "Δευ Ιαν  5 15:19:27 2026",
        "portuguese": "seg jan  5 15:19:27 2026",
    }
    for language, date in days.items():
        yield f"dmesg -T in {language}", each(f"[{date}] {{}}", plain)


FIELDS = {"stream": "stdout", "time": ISO}

CARRIERS: dict[str, Carrier] = {
    "bare": each("{}", plain),
    "dmesg": each("{}"),
    "dmesg -T": each("[Mon Jan  5 15:19:27 2026] {}", plain),
    "dmesg -x": _by_level("kern  :{level:<6}: {}", dmesg),
    "dmesg -r": each("<4>{}"),
    "dmesg -d": each("[ 5864.708440 <    0.000012>] {}", plain),
    "dmesg -H": whole(_human, plain),
    "dmesg --time-format=iso": each("2026-01-05T15:19:27,708440+00:00 {}", plain),
    "callers": each("[ 5864.708440][ T1234] {}", plain),
    "callers of interrupts": each("[ 5864.708440][    C3] {}", plain),
    "callers after a space": each("[ 5864.708440] [  T1234] {}", plain),
    "two spaces after the bracket": each("[ 5864.708440]  {}", plain),
    "a tab after the bracket": each("[ 5864.708440]\t{}", plain),
    "kmsg": each("4,339,5864708440,-;{}", plain),
    "kmsg with callers": each("4,339,5864708440,-,caller=T123;{}", plain),
    "netconsole": each("6.1.0,4,{n},5864708440,-;{}", plain),
    "netconsole by syslog": each("Jan  5 15:19:27 10.0.0.7 {}"),
    "netconsole by socat": each("10.0.0.7:6666 {}"),
    "syslog": whole(lambda lines: "\n".join(lines) + "\n", syslog),
    "syslog with milliseconds": each("2026-01-05T15:19:27.708440+01:00 node-1 kernel: {}"),
    "syslog with a pid": each("Jan  5 15:19:27 node-1 kernel[1]: {}"),
    "rfc5424": each("<4>1 2026-01-05T15:19:27.708440Z node-1 kernel - - - {}"),
    "rfc5424 with data": each('<4>1 2026-01-05T15:19:27.708440Z node-1 kernel - - [meta sequenceId="{n}"] {}'),
    "rfc5424 framed": each("119 <4>1 2026-01-05T15:19:27.708440Z node-1 kernel - - - {}"),
    "rsyslog with the facility": _by_level("Jan  5 15:19:27 node-1 kern.{level} kernel: {}", dmesg),
    "busybox logread": each("Jan  5 15:19:27 node-1 kern.warn kernel: {}"),
    "openwrt": each("Mon Jan  5 15:19:27 2026 kern.warn kernel: {}"),
    "openwrt by level": _by_level("Mon Jan  5 15:19:27 2026 kern.{level} kernel: {}", dmesg),
    "journal": whole(lambda lines: "\n".join(lines) + "\n", journal),
    "journal-full": each("Mon 2026-01-05 15:19:27 UTC node-1 kernel: {}", plain),
    "journal-iso": each("2026-01-05T15:19:27+0100 node-1 kernel: {}", plain),
    "journal-precise": each("Jan 05 15:19:27.708440 node-1 kernel: {}", plain),
    "journal-unix": each("1767626367.708440 node-1 kernel: {}", plain),
    "journal-monotonic": each("[ 5864.708440] node-1 kernel: {}", plain),
    "journal in french": each("janv. 05 15:19:27 node-1 kernel: {}", plain),
    "journal-json": records(lambda line: {"__REALTIME_TIMESTAMP": "1767626367708440", "_HOSTNAME": HOST, "MESSAGE": line}),
    "journal-json as bytes": records(lambda line: {"_HOSTNAME": HOST, "MESSAGE": [*line.encode()]}),
    "journal-json-pretty": whole(_pretty_journal, plain),
    "journal-json-sse": lambda lines: "".join(f"data: {json.dumps({'MESSAGE': line, '_HOSTNAME': HOST})}\n\n" for line in lines),
    "journal-json-seq": lambda lines: "".join(f"\x1e{json.dumps({'MESSAGE': line, '_HOSTNAME': HOST})}\n" for line in lines),
    "journal-export": lambda lines: "".join(
        f"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1767626367708440\n_HOSTNAME=node-1\nMESSAGE={line}\nPRIORITY=4\n\n" for line in lines
    ),
    "talos": _by_level("node-1: kern: {level:>7}: [2026-01-05T15:19:27.708440Z]: {}"),
    "talos without a host": _by_level("kern: {level}: [2026-01-05T15:19:27.708440123Z]: {}"),
    "kubectl logs --prefix": each("[pod/node-logger-x7k2p/kmsg] {}"),
    "kubectl logs --prefix --timestamps": each("[pod/node-logger-x7k2p/kmsg] 2026-01-05T15:19:27.708440123Z {}"),
    "stern": each("node-logger-x7k2p kmsg {}"),
    "stern of a syslog": each("node-logger-x7k2p › kmsg {}", syslog),
    "kail": each("default/node-logger-x7k2p[kmsg]: {}"),
    "docker compose": each("kmsg-1  | {}"),
    "docker compose, bare": each("kmsg-1  | {}", plain),
    "docker logs -t": each("2026-01-05T15:19:27.708440123Z {}"),
    "container log": each("2026-01-05T15:19:27.708440123Z stdout F {}"),
    "docker json-file": records(lambda line: {"log": f"{line}\n", **FIELDS}, dmesg),
    "logcli": lambda lines: "".join(_labels(line) + "\n" for line in dmesg(lines)),
    "logcli jsonl": records(lambda line: {"labels": {"host": HOST}, "line": line, "timestamp": ISO}, dmesg),
    "loki api": document(
        lambda lines: {"status": "success", "data": {"resultType": "streams", "result": [
            {"stream": {"host": HOST}, "values": [["1767626367708440000", line] for line in lines]}]}}, dmesg),
    "loki api in one line": document(
        lambda lines: {"data": {"result": [{"stream": {"host": HOST}, "values": [["1767626367708440000", line] for line in lines]}]}},
        dmesg, indent=None),
    "grafana": each("2026-01-05 15:19:27.708\t{}"),
    "fluentd": lambda lines: "".join(
        f'2026-01-05 15:19:27.708440000 +0000 kernel: {json.dumps({"message": line, "host": HOST})}\n' for line in lines),
    "fluentd file": lambda lines: "".join(
        f'2026-01-05T15:19:27+00:00\tkernel\t{json.dumps({"message": line, "host": HOST})}\n' for line in lines),
    "fluent-bit": lambda lines: "".join(
        f'[{number}] kmsg.0: [[1767626367.708440, {{}}], {{"priority"=>4, "sec"=>5864, "msg"=>"{line}"}}]\n'
        for number, line in enumerate(lines)),
    "fluent-bit json": records(lambda line: {"date": 1767626367.70844, "log": line, "host": HOST}),
    "vector": records(lambda line: {"host": HOST, "message": line, "source_type": "journald", "timestamp": ISO}),
    "splunk": records(lambda line: {"preview": False, "result": {"_raw": line, "_time": ISO, "host": HOST}}, syslog),
    "splunk csv": table(["_time", "host", "_raw"], lambda line: [ISO, HOST, line], every=True),
    "elastic": document(lambda lines: {"hits": {"total": {"value": 9}, "hits": [
        {"_index": "logs", "_id": f"a{number}", "_source": {"@timestamp": ISO, "host": {"name": HOST}, "message": line}}
        for number, line in enumerate(lines)]}}),
    "elastic in one line": document(lambda lines: {"hits": {"hits": [
        {"_index": "logs", "_source": {"@timestamp": ISO, "host": {"name": HOST}, "message": line}} for line in lines]}},
        indent=None, separators=(",", ":")),
    "elastic by lines": records(lambda line: {"_source": {"@timestamp": ISO, "host": {"hostname": HOST}, "message": line}}, dmesg),
    "kibana csv": table(["@timestamp", "host.name", "message"], lambda line: ["Jan 5, 2026 @ 15:19:27.708", HOST, line]),
    "datadog": document(lambda lines: {"data": [
        {"id": "x", "attributes": {"timestamp": ISO, "host": HOST, "message": line}} for line in lines]}),
    "cloudwatch text": each("2026-01-05T15:19:27.708000+00:00 node-1 {}"),
    "aws logs tail": each("2026-01-05T15:19:27.708000+00:00 i-0abc123def {}"),
    "aws logs get-log-events": document(
        lambda lines: {"events": [{"timestamp": 1767626367708, "message": line, "ingestionTime": 1} for line in lines],
                       "nextForwardToken": "f/1"}, dmesg, indent=4),
    "aws logs filter-log-events in one line": document(
        lambda lines: {"events": [{"logStreamName": HOST, "timestamp": 1767626367708, "message": line} for line in lines]},
        dmesg, indent=None),
    "aws logs get-query-results": document(lambda lines: {"results": [
        [{"field": "@timestamp", "value": "2026-01-05 15:19:27.708"}, {"field": "@message", "value": line}] for line in lines]}),
    "cloudwatch csv": table(["timestamp", "message"], lambda line: ["1767626367708", line]),
    "cloudwatch insights csv": table(["@timestamp", "@message", "@logStream"], lambda line: ["2026-01-05 15:19:27.708", line, HOST]),
    "gcp lines": records(lambda line: {
        "timestamp": ISO, "jsonPayload": {"MESSAGE": line}, "resource": {"labels": {"node_name": HOST}}}),
    "gcp array": document(lambda lines: [
        {"insertId": f"q{number}", "jsonPayload": {"message": line}, "resource": {"labels": {"node_name": HOST}, "type": "k8s_node"},
         "timestamp": ISO} for number, line in enumerate(lines)]),
    "gcp array in one line": document(lambda lines: [
        {"jsonPayload": {"message": line}, "resource": {"labels": {"node_name": HOST}}, "timestamp": ISO} for line in lines],
        indent=None),
    "gcp text payload": records(lambda line: {"textPayload": line, "timestamp": ISO}, dmesg),
    "gcp yaml": lambda lines: "".join(
        f"---\ninsertId: q{number}\njsonPayload:\n  MESSAGE: '{line}'\ntimestamp: '{ISO}'\n" for number, line in enumerate(lines)),
    "azure csv": table(
        ["TimeGenerated [UTC]", "Computer", "Facility", "SeverityLevel", "SyslogMessage"],
        lambda line: ["1/5/2026, 3:19:27.708 PM", HOST, "kern", "warning", line], every=True),
    "azure csv, quoted where needed": table(
        ["TimeGenerated", "Computer", "SyslogMessage", "Type"], lambda line: ["2026-01-05T15:19:27Z", HOST, line, "Syslog"]),
    "azure json": document(lambda lines: {"tables": [{"name": "PrimaryResult", "columns": [
        {"name": "TimeGenerated", "type": "datetime"}, {"name": "Computer", "type": "string"},
        {"name": "SyslogMessage", "type": "string"}], "rows": [[ISO, HOST, line] for line in lines]}]}),
    "otlp": document(_otlp),
    "otlp in one line": document(_otlp, indent=None),
    "csv without a header": table(None, lambda line: [ISO, HOST, "kern", line]),
    "csv with columns behind": table(None, lambda line: [ISO, line, "kern", "warning"], every=True),
    "semicolons": table(["time", "host", "message"], lambda line: [ISO, HOST, line], ";"),
    "tabs": table(["time", "host", "message"], lambda line: [ISO, HOST, line], "\t"),
    "tabs without a header": each("2026-01-05 15:19:27\tnode-1\tkern\t{}"),
    "logfmt": lambda lines: "".join(f'ts={ISO} host=node-1 level=warn msg="{line}"\n' for line in dmesg(lines)),
    "ansible": lambda lines: 'TASK [dmesg] ****\nok: [node-1] => {\n    "out.stdout_lines": [\n'
    + ",\n".join(f"        {json.dumps(line)}" for line in dmesg(lines)) + "\n    ]\n}\n",
    "ansible in yaml": lambda lines: "ok: [node-1] => \n  out.stdout_lines:\n" + "".join(f"  - '{line}'\n" for line in dmesg(lines)),
    "ansible ad hoc": lambda lines: "node-1 | CHANGED | rc=0 >>\n" + "\n".join(dmesg(lines)) + "\n",
    "salt": lambda lines: "node-1:\n" + "".join(f"    {line}\n" for line in dmesg(lines)),
    "pdsh": each("node-1: {}"),
    "clush": each("node-1: {}", plain),
    "yaml block": lambda lines: "log: |\n" + "".join(f"  {line}\n" for line in lines),
    "yaml list": lambda lines: "lines:\n" + "".join(f'  - "{line}"\n' for line in dmesg(lines)),
    "one json string": document(lambda lines: {"host": HOST, "output": "\n".join(lines)}, dmesg, indent=None),
    "one json string, laid out": document(lambda lines: {"host": HOST, "output": "\n".join(lines)}, dmesg),
    "escaped line ends": lambda lines: 'msg="' + "\\n".join(dmesg(lines)) + '"\n',
    "escaped line ends of Windows": lambda lines: "\\r\\n".join(dmesg(lines)) + "\n",
    "rsyslog's escapes": lambda lines: "Jan  5 15:19:27 node-1 relay: " + "#012".join(dmesg(lines)) + "\n",
    "a python list": lambda lines: repr(dmesg(lines)) + "\n",
    "grep -n": each("{n}:{}"),
    "grep -nH": each("/var/log/kern.log:{n}:{}", syslog),
    "grep -nH, bare": each("oom.txt:{n}:{}", plain),
    "grep -H": each("./logs/kern.log.1:{}"),
    "grep -C": lambda lines: "".join(f"kern.log{'-:'['oom' in line]}{n}{'-:'['oom' in line]}{line}\n" for n, line in enumerate(dmesg(lines), 1)),
    "cat -n": each("{n:6d}\t{}"),
    "cat -n, bare": each("{n:6d}\t{}", plain),
    "nl": each("{n:6d}  {}", plain),
    "numbers with a colon": each("{n}: {}", plain),
    "numbers with a bar": each("{n:4d} | {}", plain),
    "numbers in brackets": each("({n}) {}", plain),
    "cat -A": each("{}$"),
    "cat -A of tabs": lambda lines: "".join(line.replace("] ", "]^I", 1) + "^M$\n" for line in dmesg(lines)),
    "mail": each("> {}"),
    "mail, twice": each("> > {}"),
    "mail, tight": each(">>{}"),
    "mail with a space before": each(" > {}"),
    "mail with a bar": each("| {}"),
    "mail, bare": each("> {}", plain),
    "mail in initials": each("JD> {}", plain),
    "diff": each("+{}"),
    "diff in a mail": each(">> +{}"),
    "diff, bare": each("+{}", plain),
    "removed lines": each("-{}", plain),
    "indented": each("    {}"),
    "indented by tabs": each("\t\t{}", plain),
    "comment": each("# {}", plain),
    "c comment": each(" * {}", plain),
    "latex": each("%% {}"),
    "bullets": each("- {}", plain),
    "stars": each("* {}"),
    "backticks": each("`{}`", plain),
    "quotes": each('"{}"', plain),
    "smart quotes": each("\u201c{}\u201d", plain),
    "quotes and commas": each('  "{}",'),
    "fenced": lambda lines: "Hi,\n\nthis happened:\n```\n" + "\n".join(dmesg(lines)) + "\n```\nAny idea?\n",
    "slack": lambda lines: "Jane Doe  3:19 PM\n```" + "\n".join(dmesg(lines)) + "```\n",
    "markdown's escapes": whole(_markdown),
    "markdown table": whole(_padded),
    "markdown table, bare": whole(_padded, plain),
    "psql": lambda lines: " id | message\n----+------\n" + "".join(f" {n:2d} | {line}\n" for n, line in enumerate(dmesg(lines), 1)),
    "mysql": lambda lines: "".join(f"| {n:4d} | {HOST} | {line:<250} |\n" for n, line in enumerate(dmesg(lines), 1)),
    "entities": lambda lines: "".join(html.escape(f"> {line}") + "\n" for line in dmesg(lines)),
    "non-breaking entities": lambda lines: "".join(line.replace(" ", "&nbsp;") + "\n" for line in dmesg(lines)),
    "pre": lambda lines: "<pre>" + "\n".join(map(html.escape, dmesg(lines))) + "</pre>\n",
    "html rows": lambda lines: "".join(f"<tr><td>{n}</td><td>{html.escape(line)}</td></tr>\n" for n, line in enumerate(dmesg(lines), 1)),
    "html breaks": lambda lines: "<p>" + "<br>".join(map(html.escape, dmesg(lines))) + "</p>\n",
    "html spans": lambda lines: "".join(f'<span class="line">{html.escape(line)}</span><br/>\n' for line in dmesg(lines)),
    "xml": lambda lines: "".join(f'<event host="node-1"><![CDATA[{line}]]></event>\n' for line in dmesg(lines)),
    "colours": whole(_colours),
    "colours without escapes": lambda lines: "".join(f"[0;32m{line}[0m\n" for line in dmesg(lines)),
    "colours of rsyslog": lambda lines: "".join(f"#033[33m{line}#033[0m\n" for line in syslog(lines)),
    "colours of journalctl": lambda lines: "".join(f"\x1b[0;1;39m{line}\x1b[0m\n" for line in journal(lines)),
    "spaces of Unicode": whole(_unicode),
    "ideographic spaces": lambda lines: "".join(line.replace(" ", "\u3000", 3) + "\n" for line in dmesg(lines)),
    "zero-width characters": lambda lines: "".join(f"\u200b{line[:20]}\u2060{line[20:]}\ufeff\n" for line in dmesg(lines)),
    "windows": lambda lines: "\r\n".join(dmesg(lines)) + "\r\n",
    "carriage returns": lambda lines: "\r".join(dmesg(lines)) + "\r",
    "serial console": lambda lines: "\r\r\n".join(dmesg(lines)) + "\r\r\nnode-1 login: ",
    "empty lines between": each("{}\n"),
    "screen session": lambda lines: "".join(f"{line:<250}\n" for line in dmesg(lines)),
    "quoted-printable": lambda lines: quopri.encodestring(("\n".join(dmesg(lines)) + "\n").encode()).decode(),
    "quoted-printable, bare": lambda lines: quopri.encodestring(("\n".join(lines) + "\n").encode()).decode(),
    "log4j": each("2026-01-05 15:19:27,708 WARN  [main] c.e.KernelTail:42 - {}"),
    "log4j, bare": each("2026-01-05 15:19:27,708 WARN  [main] c.e.KernelTail:42 - {}", plain),
    "klog": each("W0105 15:19:27.708440    1234 kmsg.go:42] {}"),
    "klog, bare": each("W0105 15:19:27.708440    1234 kmsg.go:42] {}", plain),
    "logback": each("15:19:27.708 [tail-1] WARN kernel.Log - {}", plain),
    "apache": each("[Mon Jan 05 15:19:27.708440 2026] [kern:warn] [pid 42] {}", plain),
    "python logging": each("WARNING:kernel:{}"),
    "pid and tid": each("01-05 15:19:27.708  1234  5678 W kernel  : {}", plain),
    "android": each("<4>[ 5864.708440]  (0)[123:kswapd0]{}", plain),
    "multitail": each("00] {}"),
    "tmux": each("\u2502 {}"),
    "tail of several": lambda lines: "==> /var/log/kern.log <==\n" + "\n".join(syslog(lines)) + "\n",
    "github actions": each("2026-01-05T15:19:27.7084400Z ##[debug]{}"),
    "gitlab": each("\x1b[0KJob\t{}"),
    "circleci": each("out: {}", plain),
    "jenkins": each("[Pipeline] [2026-01-05T15:19:27.708Z] {}"),
    "heroku": each("2026-01-05T15:19:27.708440+00:00 app[kernel.1]: {}", plain),
    "papertrail": each("Jan 05 15:19:27 node-1 kernel:  {}", plain),
    "irc": each("15:19 <jane> {}", plain),
    "chat": each("[3:19 PM] Jane Doe: {}", plain),
    "jira": lambda lines: "{noformat}\n" + "\n".join(dmesg(lines)) + "\n{noformat}\n",
    "uuid per line": lambda lines: "".join(f"{n * 0x9E3779B97F4A7C15 % (1 << 64):016x} {line}\n" for n, line in enumerate(lines, 1)),
    "relative times": each("  12 ms ago  {}", plain),
    "wrapped at 60": wrapped(60, dmesg),
    "wrapped at 72": wrapped(72, dmesg),
    "wrapped at 80, bare": wrapped(80, plain),
    "wrapped at 80": wrapped(80, syslog),
    "wrapped at 100": wrapped(100, syslog),
    "wrapped at 132": wrapped(132, syslog),
    "wrapped and quoted": wrapped(74, dmesg, "> "),
    "wrapped and indented": wrapped(90, dmesg, "    "),
    "wrapped, long words whole": wrapped(76, dmesg, break_long_words=False, break_on_hyphens=False),
    "wrapped, long words whole, bare": wrapped(76, plain, break_long_words=False, break_on_hyphens=False),
    "folded at 60": folded(60, dmesg),
    "folded at 72": folded(72, dmesg),
    "folded at 80, bare": folded(80, plain),
    "folded at 80": folded(80, syslog),
    "folded at 97": folded(97, dmesg),
    "folded at 132": folded(132, syslog),
    "folded and quoted": folded(78, dmesg, "> "),
    "folded and numbered": lambda lines: "".join(
        f"{n:5d}  {line}\n" for n, line in enumerate(folded(80, dmesg)(lines).splitlines(), 1)),
    **dict(_languages()),
}  # fmt: skip
"""By what one would call them."""
# ruff: noqa: E501 - rows of a table

CARRIERS |= {
    "gelf": records(
        lambda line: {"version": "1.1", "host": HOST, "short_message": line, "timestamp": 1767626367.7, "level": 4}
    ),
    "graylog": document(
        lambda lines: {"messages": [{"message": {"message": line, "source": HOST, "timestamp": ISO}} for line in lines]}
    ),
    "newrelic": document(
        lambda lines: {
            "results": [{"events": [{"message": line, "hostname": HOST, "timestamp": 1767626367708} for line in lines]}]
        }
    ),
    "concat json": lambda lines: "".join(json.dumps({"message": line, "host": HOST}) for line in lines),
    "json in json": records(
        lambda line: {"log": json.dumps({"message": line, "host": HOST}) + "\n", "stream": "stdout"}
    ),
    "cef": each("CEF:0|Linux|kernel|6.1|100|kmsg|3|host=node-1 msg={}", plain),
    "opensearch sql": document(
        lambda lines: {
            "schema": [{"name": "ts", "type": "t"}, {"name": "message", "type": "text"}],
            "datarows": [[ISO, line] for line in lines],
        }
    ),
    "clickhouse compact": document(
        lambda lines: {"meta": [{"name": "ts"}, {"name": "message"}], "data": [[ISO, line] for line in lines]}
    ),
    "clickhouse pretty": lambda lines: "".join(
        f"│ 2026-01-05 15:19:27 │ node-1 │ {line:<220} │\n" for line in dmesg(lines)
    ),
    "clickhouse vertical": lambda lines: "".join(
        f"Row {n}:\n──────\nts:      2026-01-05 15:19:27\nmessage: {line}\n\n" for n, line in enumerate(lines, 1)
    ),
    "psql expanded": lambda lines: "".join(
        f"-[ RECORD {n} ]-----------------\nts      | 2026-01-05\nmessage | {line}\n" for n, line in enumerate(lines, 1)
    ),
    "verbose": lambda lines: "".join(
        f"Mon 2026-01-05 15:19:27.708440 UTC [s=ab{n};i={n};b=cd]\n    _TRANSPORT=kernel\n    PRIORITY=4\n    MESSAGE={line}\n    _HOSTNAME=node-1\n"
        for n, line in enumerate(lines, 1)
    ),
    "rubydebug": lambda lines: "".join(
        f'{{\n       "message" => "{line}",\n    "@timestamp" => 2026-01-05T15:19:27.708Z,\n          "host" => "node-1"\n}}\n'
        for line in lines
    ),
    "python dicts": lambda lines: "".join(f"{ {'message': line, 'host': HOST} }\n" for line in lines),
    "c array": each('    "{}\\n"', plain),
    "echo": each("+ echo '{}'", plain),
    "double syslog": each("Jan  5 15:19:28 relay logger: {}", syslog),
    "kafka": lambda lines: "".join(f"1767626367708\tnull\t{json.dumps({'message': line})}\n" for line in lines),
    "cf logs": each("   2026-01-05T15:19:27.70+0000 [APP/PROC/WEB/0] OUT {}"),
    "minikube": each("* {}"),
    "oc node-logs": each("worker-3 {}", journal),
    "service logs": each("kmsg.1.abc123@node-1    | {}"),
    "emoji": each("🔴 {}", plain),
    "list 1.": each("{n}. {}", plain),
    "list 1)": each("{n}) {}", plain),
    "L12": each("L{n}: {}", plain),
    "telegram": each("[05.01.2026 15:19] Jane: {}", plain),
    "whatsapp": each("05/01/2026, 15:19 - Jane Doe: {}", plain),
    "whatsapp2": each("\u200e[05/01/26, 15:19:27] Jane: {}", plain),
    "bbcode": lambda lines: "[code]" + "\n".join(dmesg(lines)) + "[/code]\n",
    "bbcode color": each("[color=red]{}[/color]"),
    "confluence": lambda lines: "{code:title=x}\n" + "\n".join(dmesg(lines)) + "\n{code}\n",
    "logcat": each("01-05 15:19:27.708     0     0 W         : {}", plain),
    "logcat brief": each("W/kernel  (  123): {}", plain),
    "logcat long": each("[ 01-05 15:19:27.708     0:    0 W/kernel ]\n{}\n", plain),
    "yaml flow": each('- {{message: "{}", host: node-1}}'),
    "toml": lambda lines: 'log = """\n' + "\n".join(dmesg(lines)) + '\n"""\n',
    "ini": each("line{n}={}", plain),
    "powershell": each("oom.txt:{n}:{}"),
    "relative": each("3m12s ago {}", plain),
    "ligatures": lambda lines: "\n".join(line.replace("fi", "\ufb01") for line in dmesg(lines)) + "\n",
    "collapsed": lambda lines: " ".join(dmesg(lines)) + "\n",
    "collapsed syslog": lambda lines: " ".join(syslog(lines)) + "\n",
    "semicolon line": lambda lines: "; ".join(dmesg(lines)) + "\n",
    "bars line": lambda lines: " | ".join(dmesg(lines)) + "\n",
    "collapsed spaces": lambda lines: "\n".join(re.sub(" +", " ", line) for line in dmesg(lines)) + "\n",
    "no brackets": each("5864.708440 {}", plain),
    "epoch ms": each("1767626367708 {}", plain),
    "utc ctime": each("Mon Jan  5 15:19:27 UTC 2026 {}", plain),
    "date rfc2822": each("Mon, 05 Jan 2026 15:19:27 +0000 {}", plain),
    "nginx time": each("[05/Jan/2026:15:19:27 +0000] {}", plain),
    "host col": each("node-1  {}", plain),
    "host=": each("host=node-1 {}"),
    "level pad": each("{n:>6} WARN  kernel {}", plain),
    "parens": each("(kernel) {}", plain),
    "arrow": each("=> {}", plain),
    "json text": lambda lines: json.dumps("\n".join(dmesg(lines))) + "\n",
    "jsonl strings": lambda lines: "".join(json.dumps(line) + "\n" for line in dmesg(lines)),
    "json array strings": document(lambda lines: lines, dmesg),
    "json array strings 1": document(lambda lines: lines, dmesg, indent=None),
    "rtl": lambda lines: "".join(f"\u200f{line}\n" for line in dmesg(lines)),
    "google docs": lambda lines: "".join(f"{line}\u000b" for line in dmesg(lines)),
    "u2028": lambda lines: "\u2028".join(dmesg(lines)),
    "nel": lambda lines: "\u0085".join(dmesg(lines)),
    "crlf in json": document(lambda lines: {"Output": "\r\n".join(lines)}, dmesg, indent=None),
    "gcp describe": document(lambda lines: {"contents": "\n".join(lines), "start": "0"}, syslog),
    "strict html": lambda lines: (
        "<html><body><table>"
        + "".join(
            f"<tr><td class='ln'>{n}</td><td>{html.escape(line)}</td></tr>" for n, line in enumerate(dmesg(lines))
        )
        + "</table>"
    ),
    "markdown quoted fence": lambda lines: "> ```\n" + "".join(f"> {line}\n" for line in dmesg(lines)) + "> ```\n",
    "git diff": lambda lines: (
        "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,9 @@\n" + "".join(f"+{line}\n" for line in dmesg(lines))
    ),
    "rg heading": lambda lines: "kern.log\n" + "".join(f"{n}:{line}\n" for n, line in enumerate(dmesg(lines), 1)),
    "tee ts": each("Jan 05 15:19:27 {}", plain),
    "moreutils ts": each("[2026-01-05 15:19:27] {}", plain),
    "kubectl events like": each("12s         Warning   KernelLog   node/node-1   {}", plain),
    "upper levels": lambda lines: "".join(
        f"{('WARNING', 'INFO', 'ERROR')[n % 3]:<8} {line}\n" for n, line in enumerate(lines)
    ),
    "time and zone above": each("2026-01-05 15:19:27.708 CET\n{}", plain),
    "xml attributes": lambda lines: "".join(
        f'<log level="warn" message="{html.escape(line)}" n="{n}"/>\n' for n, line in enumerate(dmesg(lines))
    ),
    "quoted, then wrapped": lambda lines: "".join(
        "> " + "\n".join(textwrap.wrap(line, 76)) + "\n" for line in dmesg(lines)
    ),
    "quoted, wrapped, quoted": lambda lines: "".join(
        ">> " + "\n> ".join(textwrap.wrap(line, 70)) + "\n" for line in dmesg(lines)
    ),
    "short id": lambda lines: "".join(f"{n * 7919 % 65536:04x} {line}\n" for n, line in enumerate(lines)),
    "uuid": lambda lines: "".join(
        f"{n * 0x9E3779B97F4A7C15 % (1 << 64):016x}-4fc3 node-1 {line}\n" for n, line in enumerate(dmesg(lines), 1)
    ),
}


def _status_bar(lines: list[str]) -> str:
    bar = '[0] 0:bash- 1:dmesg*                   "node-1" 15:19 05-Jan-26\n'
    return "".join(line + "\n" + bar * (number % 12 == 11) for number, line in enumerate(lines))


def _cut(form: str, width: int = 91) -> Carrier:
    """Return the carrier that breaks lines at a column, and puts something around the rest of each."""

    def make(lines: list[str]) -> str:
        first, rest = form.split("\n")
        broken = [
            (rest if at else first).format(line[at : at + width], n=number, more="\\" * (at + width < len(line)))
            for number, line in enumerate(lines, 1)
            for at in range(0, len(line), width)
        ]
        return "\n".join(broken) + "\n"

    return whole(make)


def _mail_in_base64(lines: list[str]) -> str:
    head = "Subject: OOM\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\n"
    return head + base64.encodebytes(("Hi,\r\n" + "\r\n".join(lines) + "\r\n").encode()).decode()


def _mail_with_an_attachment(lines: list[str]) -> str:
    head = (
        'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain\n\nsee below\n\n--x\n'
        'Content-Disposition: attachment; filename="dmesg.txt"\nContent-Transfer-Encoding: base64\n\n'
    )
    return head + base64.encodebytes("\n".join(lines).encode()).decode() + "\n--x--\n"


CARRIERS |= {
    "syslog over tcp": whole(
        lambda lines: "".join(f"{len(f'<4>1 {ISO} {HOST} kernel - - - {line}')} <4>1 {ISO} {HOST} kernel - - - {line}" for line in lines)
    ),
    "gelf with a full message": records(
        lambda line: {"version": "1.1", "host": HOST, "short_message": line[:40], "full_message": line, "timestamp": 1767626367.7}, dmesg
    ),
    "gelf, a report in one": document(
        lambda lines: {"host": HOST, "short_message": lines[0][:30], "full_message": "\n".join(lines), "timestamp": 1767626367.7},
        dmesg, indent=None,
    ),
    "tmux's status bar": whole(_status_bar),
    "bat, wrapped": _cut("{n:4d}   \u2502 {}\n       \u2502 {}"),
    "broken with a backslash": _cut("{}{more}\n{}{more}"),
    "broken with an arrow": _cut("{}\n\u21aa {}"),
    "pprint": whole(lambda lines: pprint.pformat(lines, width=100) + "\n"),
    "strings joined by plus": whole(lambda lines: "var log = " + " +\n  ".join(f"'{line}\\n'" for line in lines) + ";\n"),
    "strings of Go": whole(lambda lines: "[" + " ".join(json.dumps(line) for line in lines) + "]\n"),
    "rows in a statement of SQL": whole(
        lambda lines: "VALUES " + ",".join(f"({n},'{HOST}','{line}')" for n, line in enumerate(lines)) + ";\n"
    ),
    "mail in base64": whole(_mail_in_base64),
    "mail with an attachment": whole(_mail_with_an_attachment),
    "base64": whole(lambda lines: base64.encodebytes("\n".join(lines).encode()).decode()),
    "base64 in one line": whole(lambda lines: base64.b64encode("\n".join(lines).encode()).decode() + "\n"),
    "an address": whole(lambda lines: "https://example.org/?log=" + quote("\n".join(lines)) + "\n"),
    "a form": whole(lambda lines: "log=" + quote_plus("\n".join(lines)) + "\n"),
    "struck over": whole(lambda lines: "".join(re.sub("[aeo]", "\\g<0>\b\\g<0>", line) + "\n" for line in lines)),
    "gcloud in yaml": lambda lines: "$ gcloud logging read oom\n" + "".join(
        yaml.safe_dump({
            "insertId": f"q{n}", "jsonPayload": {"MESSAGE": line, "PRIORITY": "4"},
            "resource": {"labels": {"node_name": HOST}, "type": "k8s_node"}, "timestamp": ISO,
        }, explicit_start=True) for n, line in enumerate(lines)),
    "gcloud in yaml, text": whole(lambda lines: "".join(
        yaml.safe_dump({"insertId": f"q{n}", "labels": {}, "textPayload": f"{line}\n", "timestamp": ISO}, explicit_start=True)
        for n, line in enumerate(lines))),
    "aws in yaml": whole(lambda lines: yaml.safe_dump({"events": [
        {"eventId": str(n), "logStreamName": HOST, "message": line, "timestamp": 1767626367708} for n, line in enumerate(lines)]})),
    "az in yaml": whole(lambda lines: yaml.safe_dump(
        [{"Computer": HOST, "SyslogMessage": line, "TimeGenerated": ISO} for line in lines])),
    "a row of a data dump": whole(lambda lines: '<row Id="1" Body="&lt;pre&gt;' + "&#xA;".join(
        html.escape(html.escape(line, quote=False)) for line in lines) + '&lt;/pre&gt;" Score="3" />\n'),
    "strace": whole(lambda lines: "".join(f'write(1, "{line}\\n", {len(line) + 1}) = {len(line) + 1}\n' for line in lines)),
    "a python list of bytes": whole(lambda lines: repr([line.encode() for line in lines]) + "\n"),
    "breaks that a page allows": whole(lambda lines: "".join(html.escape(line).replace("/", "/<wbr>") + "<br>\n" for line in lines)),
    "read as Windows-1252": whole(
        lambda lines: "".join(line.replace("  ", " \u00a0").encode().decode("cp1252") + "\n" for line in lines)
    ),
    "gitlab with times": each("2026-01-05T15:19:27.708440Z 01O {}"),
    "severity before kernel": each("Jan  5 15:19:27 node-1 warning kernel: {}", plain),
    "export of a query": table(["insertId", "jsonPayload.MESSAGE", "resource.labels.node_name", "timestamp"], lambda line: ["q", line, HOST, ISO]),
}  # fmt: skip


NEWEST_FIRST: dict[str, Carrier] = {
    "dmesg": lambda lines: "\n".join(reversed(dmesg(lines))) + "\n",
    "bare": lambda lines: "\n".join(reversed(lines)) + "\n",
    "gcp": document(lambda lines: [{"jsonPayload": {"message": line}, "timestamp": ISO} for line in reversed(lines)]),
    "csv": lambda lines: "@timestamp,message\n" + "".join(f'{ISO},"{line}"\n' for line in reversed(lines)),
    "json lines": records(lambda line: {"message": line}, lambda lines: [*lines][::-1]),
}
"""As consoles of services show and export them."""
