"""Nothing in a log is trusted: whatever it holds, ``podqos autopsy`` answers, in time, in memory, in its own words."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.oom_logs import CARRIERS, cgroup, killed, machine
from podqos.answers.autopsy import one_by_one
from podqos.cli.main import main
from podqos.controls import harmless
from podqos.errors import InputError
from podqos.library.autopsy import autopsy
from podqos.manifest.encoding import json_line
from podqos.reading.logs import Log
from podqos.report.simulation.html import SLOT
from podqos.report.survival.autopsy import csv_rows, text
from podqos.report.survival.autopsy_markdown import markdown
from podqos.report.text.style import Style
from podqos.words.autopsy_story import page_of
from timing import takes_less_than

PODQOS = str(Path(sys.executable).with_name("podqos"))
ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
KLOG = "I0105 15:19:27.708440    1234 eviction_manager.go:369]"
KUBELET = [
    f'{KLOG} "Eviction manager: attempting to reclaim" resourceName="memory"',
    f'{KLOG} "Eviction manager: pods ranked for eviction" pods=["shop/web-0","shop/db-0"]',
    f'{KLOG} "Eviction manager: pod is evicted successfully" pod="shop/web-0"',
    "1s Warning Evicted pod/web-0 The node was low on resource: memory. Threshold quantity: 100Mi, available: 92Mi.",
]
SAMPLES = [
    *("\n".join(map(CARRIERS[carrier], [*machine(), *cgroup(ROWS, 7, "python3")])).encode() for carrier in CARRIERS),
    "\n".join(KUBELET).encode(),
]
GARBAGE = [
    b"\0" * 9,
    b"\xff\xfe\x00",
    b"\x1b[2J\x1b]8;;x\x07",
    b"9" * 400,
    b"-9223372036854775809",
    b"\n",
    b"{",
    b'"',
    b"[",
    b"\\u0000",
]


def every_output(data: bytes) -> None:
    """Make all that can be made of a log."""
    found = autopsy([Log("log", data)])
    said = "\n".join(text(found, Style(width=80))) + "\n".join(text(found, Style(colour=True), verbose=True))
    assert "\x1b]" not in harmless(said)
    assert "\x1b[2J" not in harmless(said)
    assert all(json.loads(json_line(each)) for each in (found, page_of(found), *one_by_one(found)))
    assert "\x1b" not in "\n".join(markdown(found))
    assert all(len(row) == len(headings) for headings, rows in [csv_rows(found)] for row in rows)


@given(st.sampled_from(SAMPLES), st.randoms(use_true_random=False), st.integers(0, 25))
@settings(max_examples=120, deadline=None)
def test_a_log_with_damage_is_told_as_far_as_it_goes(sample, draw, times):
    data = bytearray(sample)
    for _ in range(times):
        at, end = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
        end = min(end, at + draw.choice((1, 8, 200)))
        match draw.randrange(4):
            case 0:
                data[at:end] = b""
            case 1:
                data[at:at] = draw.choice(GARBAGE)
            case 2:
                data[at:end] = bytes(draw.randrange(256) for _ in range(end - at))
            case _:
                data[at:at] = data[draw.randrange(len(data) + 1) :][:300]
    every_output(bytes(data))


@given(st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_what_is_no_log_is_no_error(data):
    every_output(b"oom-kill " + data + b"\nKilled process " + data + b"\nEvict " + data)


@pytest.mark.parametrize(
    "line",
    [
        "Out of memory: Killed process 99999999999999999999 (x) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
        "Out of memory: Killed process -1 (x) total-vm:1kB",
        "Out of memory: Killed process ١٢ (x) total-vm:1kB",
        killed(4194304, "pid beyond the largest"),
        killed(9, "x").replace("total-vm:1200000kB", f"total-vm:{'9' * 300}kB"),
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=99999-0,oom_memcg=,task_memcg=,task=,pid=,uid=",
        f"memory: usage {'9' * 20}kB, limit {'9' * 20}kB, failcnt {'9' * 20}",
        f"Node 99999 Normal free:{'9' * 18}kB min:{'9' * 18}kB low:1kB present:{'9' * 18}kB",
        f"{'9' * 15} pages RAM",
        f"[{'9' * 10}] {'9' * 19} {'9' * 19} {'9' * 19} {'9' * 19} {'9' * 19} {'9' * 19} -{'9' * 18} x",
        f"[      1]  1 1 1 1 1 1 {'9' * 19} x",
        "a invoked oom-killer: gfp_mask=0xffffffffffffffff(x), order=999, oom_score_adj=-99999",
    ],
)
def test_absurd_numbers_are_told_or_left_out(line):
    for lines in (
        [line],
        [*machine()[:-1], line, machine()[-1]],
        [*cgroup(ROWS, 7, "python3")[:8], line, *cgroup(ROWS, 7, "python3")[8:]],
    ):
        every_output("\n".join(lines).encode())


def lines(count: int, line: str, first: str = "") -> bytes:
    """Return many lines, each with its own number in place of @."""
    return "".join([first, *(line.replace("@", str(number)) + "\n" for number in range(count))]).encode()


GROUP = "Tasks in /a are going to be killed due to memory.oom.group set"
KILLS = "Killed process @ (x) total-vm:1kB, anon-rss:1kB, file-rss:1kB"
EVICTED = f'{KLOG.replace("708440", "@")} "Eviction manager: pod is evicted successfully" pod="a/b"'
SLOW = {
    "marks in one line": lambda n: b"oom-kill " * n * 9,
    "marks in every line": lambda n: lines(n, "oom-kill"),
    "kubelet's words": lambda n: lines(n, "Evict"),
    "reports that begin": lambda n: lines(n, "a invoked oom-killer: order=0"),
    "reports of many hosts": lambda n: lines(n, "Jan  5 15:19:27 h@ kernel: a invoked oom-killer:"),
    "kills": lambda n: lines(n, KILLS),
    "rows": lambda n: lines(n, "[@]  1 1 1 1 1 1 1 x", "\n".join(machine()[:11]) + "\n"),
    "a group": lambda n: lines(n, KILLS, f"a invoked oom-killer:\n{GROUP}\n"),
    "zones": lambda n: lines(n, "Node @ Normal free:1kB min:1kB low:1kB present:1kB", "a invoked oom-killer:\n"),
    "entries without end": lambda n: lines(n, "__CURSOR=s\nMESSAGE=oom-kill"),
    "one pod evicted": lambda n: lines(n, "1s Warning Evicted pod/a The node was low on x", "LAST SEEN\n"),
    "one pod evicted at other times": lambda n: lines(n, EVICTED),
    "fields without end": lambda n: lines(n // 100, f'{KLOG} "eviction manager: x" {"a=" * 2000}'),
}


@pytest.mark.parametrize("kind", SLOW)
def test_four_times_as_much_does_not_take_many_times_as_long(kind):
    def seconds(size):
        data, best = SLOW[kind](size), float("inf")
        for _ in range(3):
            began = time.process_time()
            autopsy([Log("log", data)])
            best = min(best, time.process_time() - began)
        return best

    # Sixteen times is what a square would take.
    assert seconds(2000) < 10 * seconds(500) + 0.05


def test_memory_does_not_grow_with_a_line_nor_with_the_log():
    script = (
        "import sys, resource; from podqos.library.autopsy import autopsy; from podqos.reading.logs import Log\n"
        "class Endless:\n"
        "    left = int(sys.argv[1])\n"
        "    def read(self, size):\n"
        "        part = KIND[:min(size, self.left)]; self.left -= len(part); return part\n"
        "KIND = (b'x' if sys.argv[2] == 'line' else b'Jan  5 15:19:27 node kernel: eth0 is up\\n') * 8000\n"
        "autopsy([Log('log', b'', Endless())]); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )

    def peak_kb(size, kind):
        command = [sys.executable, "-c", script, str(size), kind]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    least = peak_kb(1, "line")
    assert peak_kb(60_000_000, "line") < least + 8192
    assert peak_kb(60_000_000, "lines") < least + 8192


def test_of_very_many_kills_the_last_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr("podqos.answers.autopsy.MOST_KILLS", 5)
    found = autopsy([Log("log", "\n".join(killed(pid, "x") for pid in range(1, 21)).encode())])
    assert [kill.victims[0].pid for kill in found.kills] == [16, 17, 18, 19, 20]
    assert found.kills_left_out == 15
    assert "(and 15 before them)" in "\n".join(text(found, Style()))


def test_of_very_many_kills_the_last_keep_their_ranking_and_tree(monkeypatch):
    monkeypatch.setattr("podqos.answers.autopsy.MOST_PICTURES", 2)
    lines = [line for number in range(1, 5) for line in small_report(number)]
    found = autopsy([Log("log", "\n".join(lines).encode())])
    assert [bool(kill.ranking) for kill in found.kills] == [False, False, True, True]
    assert [bool(kill.tree) for kill in found.kills] == [False, False, True, True]
    assert {(kill.follows_rule, kill.tasks) for kill in found.kills} == {(True, 2)}


def small_report(number):
    """Return a report whose machine has two tasks."""
    prefix = f"Jan  5 15:19:{number:02d} node kernel: [{number}.5] "
    return [
        f"{prefix}x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        f"{prefix}1000 pages RAM",
        f"{prefix}[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        f"{prefix}[ {number * 10}]     0    {number * 10}      900      700     4096        0             0 x",
        f"{prefix}[ {number * 10 + 1}]     0    {number * 10 + 1}      900      100     4096        0             0 y",
        f"{prefix}oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task=x,pid={number * 10},uid=0",
        prefix + killed(number * 10, "x"),
    ]


def test_a_gzip_bomb_is_refused_before_it_has_gone_off(tmp_path, monkeypatch):
    monkeypatch.setattr("podqos.reading.logs._FREE_BYTES", 1 << 20)
    bomb = tmp_path / "kern.log.gz"
    bomb.write_bytes(gzip.compress(b"\0" * 30_000_000))
    with pytest.raises(InputError, match="expands to more than 500 times its size"):
        autopsy([str(bomb)])
    usual = tmp_path / "usual.gz"
    lines = "".join(f"Jan  5 15:19:27 node kernel: {random.Random(n).random()}\n" for n in range(60_000))  # noqa: S311
    usual.write_bytes(gzip.compress(lines.encode()) + gzip.compress((killed(9, "x") + "\n").encode()) + b"\0" * 512)
    assert len(autopsy([str(usual)]).kills) == 1


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"LPKSHHRH" + b"\0" * 99, "a journald file, not a log (journalctl --file"),
        (b"\xfd7zXZ\0" + b"\0" * 99, "compressed with xz, not a log (xz -dc"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 99, "compressed with zstd"),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_a_log_without_kills(capsys, tmp_path, head, said):
    path = tmp_path / "log"
    path.write_bytes(head)
    assert main(["autopsy", str(path)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_terminal_and_a_pipe_see_no_control_of_a_log(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("podqos.library.simulation.built_viewer", lambda: f"<html>{SLOT}</html>")
    path = tmp_path / "kern.log"
    path.write_text("\n".join(cgroup([(7, 0, 9, 1, 0, 0, "\x1b[2J\x1b]0;x\x07e\rvil")], 7, "\x9bevil")) + "\n")
    for output in ("text", "json", "jsonl", "yaml", "csv", "markdown"):
        assert main(["autopsy", str(path), "-o", output, "-v"]) == 0
        out, _ = capfd.readouterr()
        assert not {"\x1b", "\x07", "\r", "\x9b"} & set(out), output
        assert "vil" in out
    assert main(["autopsy", str(path), "--html", str(tmp_path / "page.html")]) == 0
    assert not {"\x1b", "\x07", "\r"} & set((tmp_path / "page.html").read_text())


def test_what_is_read_from_a_pipe_is_read_once_and_whole():
    data = "".join(f"[ {n}.5] {line}\n" for n in range(50) for line in machine()).encode()
    done = subprocess.run([PODQOS, "autopsy", "-", "-o", "jsonl"], input=data, capture_output=True, check=True)
    assert len(done.stdout.splitlines()) == 50


@pytest.mark.parametrize("rest", [b"\n" * 300_000, b'{"a":\n' * 30_000, b" \n{" * 50_000, b"[" * 100_000])
def test_what_follows_a_watch_is_not_read_over_and_over(capsys, tmp_path, rest):
    path = tmp_path / "watch.json"
    path.write_bytes(b'{"type": "ADDED", "object": {"kind": "Pod"}}\n' + rest)

    def work() -> None:
        assert main(["autopsy", str(path)]) in {0, 2}

    assert takes_less_than(60, work)
