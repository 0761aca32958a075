"""The same reports in everything that carries kernel logs: the answer is that of the bare report."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.carriers import CARRIERS, HOST, ISO, NEWEST_FIRST, Carrier, dmesg, each, folded, plain, syslog, wrapped
from kernel.oom_logs import CONTAINER, cgroup, killed, machine, table
from podqos.answers.autopsy import AutopsyRequest, autopsies
from podqos.kernel.carriers.prefixes import known

BIG = (7, 1000, 200_000, 100, 5, 100, "python3")
SMALL = (8, 1000, 90_000, 100, 5, 100, "worker 7 (x)")
OLD = [
    "sh invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0",
    "sh cpuset=/ mems_allowed=0",
    "CPU: 9 PID: 8 Comm: sh Tainted: P           OX 3.13.0-43-generic #72-Ubuntu",
    "Task in /docker/a killed as a result of limit of /docker",
    "memory: usage 1024kB, limit 1024kB, failcnt 1",
    "memory+swap: usage 1024kB, limit 9007199254740988kB, failcnt 0",
    "Memory cgroup stats for /docker: cache:20KB rss:1004KB rss_huge:0KB mapped_file:0KB",
    "Memory cgroup stats for /docker/a: cache:20KB rss:1004KB",
    *table([BIG, SMALL], "nr_ptes"),
    "Memory cgroup out of memory: Kill process 7 (python3) score 990 or sacrifice child",
    "Killed process 9 (child) total-vm:8kB, anon-rss:4kB, file-rss:0kB",
]


def _recorded(file: str, number: int) -> list[str]:
    """Return a report of a real kernel, without what carried it."""
    lines = gzip.decompress((Path(__file__).parent / "ooms" / file).read_bytes()).decode().splitlines()
    return [line for record in json.loads(lines[number])["log"] for line in known(record).text.split("\n")]


REPORTS = {
    "cgroup": cgroup([BIG, SMALL], 7, "python3"),
    "machine": machine(),
    "old": OLD,
    "rate limited": [killed(why="Memory cgroup out of memory"), killed(9, "x y")],
    "real": _recorded("linux-6.1.jsonl.gz", 12),
}


def of_the_pod() -> list[str]:
    """Return the report of an old kernel about a container of a pod."""
    at = OLD.index("Task in /docker/a killed as a result of limit of /docker")
    return [
        *OLD[:at],
        f"Task in {CONTAINER} killed as a result of limit of {CONTAINER}",
        *(line for line in OLD[at + 1 :] if "/docker" not in line),
    ]


def answered(text: str | bytes) -> tuple[object, set[tuple[str, str]]]:
    """Return what is told of a log, and when and where it happened."""
    found = autopsies([nullcontext(io.BytesIO(text.encode() if isinstance(text, str) else text))], AutopsyRequest())
    told = json.loads(msgspec.json.encode(found))
    for field in ("read", "nextSteps"):  # how many lines there were, and what to do at that time on that host
        told.pop(field, None)
    places = {(kill.pop("at"), kill.pop("host")) for kill in told["kills"]}
    return told, places


BARE = {name: answered("\n".join(lines) + "\n")[0] for name, lines in REPORTS.items()}


def test_the_reports_differ_and_say_something():
    assert {name: len(told["kills"]) for name, told in BARE.items()} == dict.fromkeys(REPORTS, 1) | {"rate limited": 2}
    assert [kill["scope"] for told in BARE.values() for kill in told["kills"]][:2] == ["container", "machine"]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_report_is_the_same_whatever_carries_it(carrier):
    for name, lines in REPORTS.items():
        told, places = answered(CARRIERS[carrier](lines))
        assert told == BARE[name], name
        for at, host in places:
            assert host in {"", HOST, "10.0.0.7", "i-0abc123def"}
            assert not at or any(figures in at for figures in ("5864.", "15:19", "1767626367.", "3:19")), at


@pytest.mark.parametrize(
    ("carrier", "at", "host"),
    [
        ("dmesg -H", "Jan 5 15:19", ""),
        ("netconsole by syslog", "Jan  5 15:19:27", "10.0.0.7"),
        ("busybox logread", "Jan  5 15:19:27", HOST),
        ("openwrt", "Mon Jan  5 15:19:27 2026", ""),
        ("talos", "2026-01-05T15:19:27.708440Z", HOST),
        ("stern of a syslog", "Jan  5 15:19:27", HOST),
        ("grep -nH", "Jan  5 15:19:27", HOST),
        ("journal in french", "janv. 05 15:19:27", HOST),
        ("dmesg -T in japanese", "月  1月  5 15:19:27 2026", ""),
        ("log4j, bare", "2026-01-05 15:19:27,708", ""),
        ("logfmt", "2026-01-05T15:19:27.708440Z", HOST),
        ("loki api", "1767626367.708440000", HOST),
        ("otlp", "1767626367.708440000", HOST),
        ("gcp array", "2026-01-05T15:19:27.708440Z", HOST),
        ("gcloud in yaml", "2026-01-05T15:19:27.708440Z", HOST),
        ("aws in yaml", "1767626367.708", HOST),
        ("azure csv", "1/5/2026, 3:19:27.708 PM", HOST),
        ("journal-json-pretty", "1767626367.708440", HOST),
        ("ansible", "5864.708440", HOST),
        ("wrapped at 80", "Jan  5 15:19:27", HOST),
    ],
)
def test_time_and_host_are_kept_where_the_carrier_has_them(carrier, at, host):
    assert answered(CARRIERS[carrier](REPORTS["cgroup"]))[1] == {(at, host)}


@pytest.mark.parametrize("carrier", NEWEST_FIRST)
def test_a_report_whose_newest_line_is_first_is_turned(carrier):
    for name in ("cgroup", "machine", "old", "real"):
        assert answered(NEWEST_FIRST[carrier](REPORTS[name]))[0] == BARE[name], name
    twice = NEWEST_FIRST[carrier]([*REPORTS["cgroup"], "eth0: link up", *REPORTS["machine"]])
    assert answered(twice)[0]["kills"] == [*BARE["machine"]["kills"], *BARE["cgroup"]["kills"]]


def test_what_all_kills_have_in_common_is_no_carrier():
    told, _ = answered("".join(killed(pid, "x") + "\n" for pid in range(1, 31)))
    assert [(kill["victims"][0]["pid"], kill["victims"][0]["name"]) for kill in told["kills"]] == [
        (pid, "x") for pid in range(1, 31)
    ]


def test_hosts_that_write_at_the_same_time_are_no_log_with_the_newest_line_first():
    lines = {
        host: [f"Jan  5 15:19:27 {host} kernel: {line}" for line in REPORTS[host]] for host in ("machine", "cgroup")
    }
    longer = [*lines["cgroup"], *lines["cgroup"][-1:] * len(lines["machine"])]
    mixed = [line for pair in zip(lines["machine"], longer, strict=False) for line in pair]
    told, places = answered("\n".join([*mixed, *lines["cgroup"][-5:]]) + "\n")
    assert {host for _, host in places} == {"machine", "cgroup"}
    assert {(kill["scope"], kill["tasks"], kill["followsRule"]) for kill in told["kills"]} == {
        ("machine", 3, True),
        ("container", 2, True),
    }


@pytest.mark.parametrize("form", ["{}", "\u201c{}\u201d", "\u2013 {}"])
@pytest.mark.parametrize("space", [" ", "\u00a0"])
def test_a_text_of_windows_has_plain_spaces_quotes_and_dashes(form, space):
    for name, lines in REPORTS.items():
        text = each(form)([line.replace("  ", f"{space} ") for line in lines]).replace("-", "\u2013")
        assert answered(text.encode("cp1252"))[0] == BARE[name], name


def test_a_message_in_binary_is_read_in_journalds_export_format():
    entries = [
        f"__CURSOR=s={n}\n_HOSTNAME={HOST}\nMESSAGE\n".encode()
        + (len(line) + 1).to_bytes(8, "little").replace(b"\n", b"\v")
        + f"{line}\x01\nPRIORITY=4\n\n".encode()
        for n, line in enumerate(REPORTS["machine"])
    ]
    assert [kill["scope"] for kill in answered(b"".join(entries))[0]["kills"]] == ["machine"]


@pytest.mark.parametrize("name", REPORTS)
def test_a_log_that_has_every_line_twice_has_each_kill_once(name):
    text = "".join(f"{line}\n{line}\n" for line in syslog(REPORTS[name]))
    told = [(kill["scope"], kill["followsRule"], kill["tasks"]) for kill in answered(text)[0]["kills"]]
    assert told == [(kill["scope"], kill["followsRule"], kill["tasks"]) for kill in BARE[name]["kills"]]


def test_a_field_of_a_table_may_hold_many_reports():
    lines = [*dmesg(REPORTS["machine"]), *dmesg("eth0: link up" for _ in range(300)), *dmesg(REPORTS["cgroup"])]
    found = answered("time,host,log\n" + f'{ISO},{HOST},"' + "\n".join(lines) + '"\n')[0]
    assert found["kills"] == [*BARE["machine"]["kills"], *BARE["cgroup"]["kills"]]


def test_text_that_follows_records_in_yaml_is_read():
    text = CARRIERS["gcloud in yaml"](REPORTS["machine"]) + "\n".join(dmesg(REPORTS["cgroup"])) + "\n"
    assert answered(text)[0]["kills"] == [*BARE["machine"]["kills"], *BARE["cgroup"]["kills"]]


@pytest.mark.parametrize(
    ("limited", "scope"),
    [
        (CONTAINER, "container"),
        (f"{CONTAINER}'", "container"),
        (CONTAINER[:-9], "cgroup"),
        (CONTAINER.replace("burstable", "burst│able"), "cgroup"),
        (f"{CONTAINER[:40]}/", "cgroup"),
        (f"{CONTAINER[:40]}...{CONTAINER[-20:]}", "cgroup"),
    ],
)
def test_a_path_that_lost_a_part_says_only_that_a_cgroup_was_full(limited, scope):
    lines = [line.replace(f"of {CONTAINER}", f"of {limited}") for line in of_the_pod()]
    told, _ = answered("\n".join(lines) + "\n")
    assert [kill["scope"] for kill in told["kills"]] == [scope]


@pytest.mark.parametrize("make", [wrapped, folded])
@pytest.mark.parametrize("inner", [plain, dmesg, syslog])
def test_lines_may_be_broken_at_any_column(make, inner):
    wrong = [
        (width, name)
        for width in range(60, 133, 9)
        for name in ("cgroup", "machine")
        if answered(make(width, inner)(REPORTS[name]))[0] != BARE[name]
    ]
    assert not wrong


PREFIXES = st.lists(
    st.one_of(
        st.sampled_from(
            ["node-7", "kernel", "WARN", "kmsg", "[tail]", "app", "|", ">", "-", "::", "(x)", "pod/a-b1c2"]
        ),
        st.sampled_from(["{n}", "2026-01-05 15:19:27", "15:19:27.708", "<4>", "[{n}]", "id={n}"]),
        st.text("abcdefghijklmnopqrstuvwxyzäöüжд月", min_size=2, max_size=8),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(PREFIXES, st.sampled_from([" ", ": ", "\t", " | ", "] "]), st.sampled_from(["", '"', " |", "</td>", " #"]))
def test_any_prefix_and_whatever_follows_the_message_is_taken_off(words, end, suffix):
    carrier: Carrier = each(" ".join(words) + end + "{}" + suffix, plain)
    for name in ("cgroup", "machine"):
        assert answered(carrier(REPORTS[name]))[0] == BARE[name]


@pytest.mark.parametrize(
    "text",
    [
        "when the kernel prints Killed process, the victim is gone",
        '+\tpr_err("%s: Killed process %d (%s) total-vm:%lukB, anon-rss:%lukB\\n",',
        "[ pid ] is the first column of the table, uid the second",
        "such kills are `oom-kill:constraint=CONSTRAINT_NONE`, i.e. those of the machine",
        '# they look like:\n#   "Out of memory: Kill process 7 (python3) score 900 or sacrifice child"',
        "# they look like:\n#   Out of memory: Killed process 7 (python3) total-vm:...,anon-rss:...",
    ],
)
def test_prose_and_source_code_are_no_reports(text):
    assert not answered(f"{text}\n")[0]["kills"]
