"""Most lines of a log are passed over, and most of a report is read as blocks: that changes no answer."""

from __future__ import annotations

import gzip
import io
import json
from functools import cache
from pathlib import Path

import pytest

from kernel.oom_logs import cgroup, killed, machine
from podqos.answers import kubelet_side, log_marks, oom_reports, other_killers, repeated_lines
from podqos.answers.autopsy import AutopsyRequest, autopsies
from podqos.answers.event_lines import EventLines, Taken
from podqos.answers.kubelet_side import KubeletSide
from podqos.answers.oom_reports import reports
from podqos.answers.repeated_lines import RepeatedLines, shape
from podqos.kernel import oom_reader
from podqos.kernel.log_lines import Unwrapper
from podqos.kernel.oom_reader import OOMReader
from podqos.kernel.oom_report import OOMReport
from podqos.survival.autopsy.autopsy import Examiner

FOLDER = Path(__file__).parent / "ooms"
NOISE = 80
"""Lines, more than are read after one of the OOM killer's."""
FIRST = "".join(f"Jan  5 15:19:27 node-7 sshd[{at % 10}]: session {at:0100d} opened\n" for at in range(2500))
"""More than is read line by line at the beginning of a log."""
ROWS = [(pid, 1000, 1000 + pid, 10, 0, 100, f"worker {pid}") for pid in range(100, 400)]
TRACE = [f" frame_{at}+0x{at:x}/0x99" for at in range(20)]


@cache
def _recorded() -> list[list[str]]:
    logs = []
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            unwrapper = Unwrapper()
            log = json.loads(line)["log"]
            read = [message for each in log for message in unwrapper.feed(each)] + list(unwrapper.end())
            logs.append([message.text for message in read])
    return logs


def _carried(lines: list[str], host: str = "node-7") -> list[str]:
    return [f"Jan  5 15:19:27 {host} kernel: [{at + 1000:5d}.{at:06d}] {line}\n" for at, line in enumerate(lines)]


def _read(text: str) -> list[OOMReport]:
    return list(reports(io.BytesIO(text.encode())))


def _answers(found: list[OOMReport]) -> list[object]:
    examiner = Examiner()
    return [examiner.examine(report) for report in found]


def _noise(at: int) -> str:
    own = "".join(
        f"Jan  5 15:19:27 node-7 kernel: [ 9999.{at:06d}] eth{at}: link {n} is up\n" for n in range(NOISE // 2)
    )
    return own + "".join(f"Jan  5 15:19:27 node-7 sshd[{at}]: session {n} opened\n" for n in range(NOISE // 2))


@pytest.mark.parametrize("number", range(0, 40, 13))
def test_noise_between_the_lines_of_a_real_report_changes_nothing(number):
    texts = _recorded()
    lines = _carried(texts[number % len(texts)])
    noisy = []
    for at, (line, text) in enumerate(zip(lines, texts[number % len(texts)], strict=True)):
        # What a cgroup holds is one figure per line, and only together they are known by.
        is_figure = text.count(" ") == 1 and text.replace(" ", "").replace("_", "").isalnum()
        noisy.append(line if is_figure else _noise(at) + line)
    assert _answers(_read(FIRST + "".join(noisy))) == _answers(_read("".join(lines)))


def _messages_read_singly(monkeypatch, text: str) -> tuple[list[OOMReport], int]:
    """Return the reports of a log, and how many of the messages were read by themselves."""
    fed = []
    feed = OOMReader._feed
    with monkeypatch.context() as patched:
        patched.setattr(OOMReader, "_feed", lambda self, message: fed.append(message) or feed(self, message))
        return _read(text), len(fed)


def _read_singly(monkeypatch, text: str) -> list[OOMReport]:
    """Return the reports of a log, read line by line."""
    with monkeypatch.context() as patched:
        patched.setattr(oom_reports, "_MOST_TOGETHER", 1)
        patched.setattr(oom_reader, "_FEW", 1 << 40)
        return _read(text)


def test_rows_frames_and_figures_are_read_as_blocks_with_the_same_answer(monkeypatch):
    lines = cgroup(ROWS, 399, "worker 399")
    text = FIRST + "".join(_carried([*lines[:1], *TRACE, *lines[1:]]) * 20)
    blocks, singly = _messages_read_singly(monkeypatch, text)
    assert blocks == _read_singly(monkeypatch, text)
    assert singly < len(FIRST.splitlines()) + 20 * 8


@pytest.mark.parametrize("lines", [machine(ROWS, kill=killed(399, "worker 399")), cgroup(ROWS, 399, "worker 399")])
def test_all_of_a_report_up_to_its_kill_is_read_as_one_block(monkeypatch, lines):
    text = FIRST + "".join(_carried([*lines[:2], "Call Trace:", " <TASK>", *TRACE, " </TASK>", *lines[2:]])) * 20
    found, singly = _messages_read_singly(monkeypatch, text)
    assert found == _read_singly(monkeypatch, text)
    assert singly < len(FIRST.splitlines()) + 6 * len(found)


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[0;33m1000 pages RAM\x1b[0m",
        "[T1234] 1000 pages RAM",
        "kworker/0:1: page allocation failure: order:4, mode:0xcc0",
        "sysrq: Show Memory",
        "sysrq: Manual OOM execution",
        "[  70000]  1000 70000     5000     1000    98304        0          5000 impossible",
        "[  70000]  1000 70000",
        "Out of memory: Kill process 399 (worker 399) score 900 or sacrifice child",
        "other invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "memory: usage 5000kB, limit 5000kB, failcnt 1",
        "** 12 printk messages dropped **",
        "",
        "nichts davon zählt",
    ],
)
def test_a_line_in_the_middle_of_a_block_means_what_it_means_by_itself(monkeypatch, line):
    lines = machine(ROWS[:60], kill=killed(159, "worker 159"))
    logs = [[*lines[:place], line, *lines[place:]] for place in (len(lines), 3, 12, 40)]
    text = FIRST + "".join("".join(_carried(log)) for log in logs)
    assert _read(text) == _read_singly(monkeypatch, text)


def test_reports_of_one_kernel_that_are_mixed_are_told_apart_in_blocks_as_well(monkeypatch):
    one, other = cgroup(ROWS, 399, "worker 399"), cgroup(ROWS[:50], 149, "worker 149")
    text = FIRST + "".join(_carried([*one[:4], *other[:6], *one[4:-3], *other[6:], *one[-3:]])) * 3
    assert _read(text) == _read_singly(monkeypatch, text)


def test_rows_of_two_hosts_whose_names_differ_in_a_digit_stay_apart():
    one, other = machine(ROWS, kill=killed(399, "worker 399")), machine(ROWS[:50], kill=killed(149, "worker 149"))
    mixed = "".join(
        line for pair in zip(_carried(one, "node-1"), _carried(other, "node-2"), strict=False) for line in pair
    )
    rest = "".join(_carried(one, "node-1")[len(other) :])
    found = {report.host: len(report.tasks) for report in _read(FIRST + mixed + rest)}
    assert found == {"node-1": 300, "node-2": 50}


@pytest.mark.parametrize(
    "noise",
    [
        "\n" * 300_000,
        " \t\r\n" * 100_000,
        "Jan  5 15:19:27 node-7 kernel: [ 9999.000001] eth0: link is up\n" * 10_000,
        "anything else\n" * 20_000,
    ],
    ids=["empty lines", "blank lines", "the kernel's", "others'"],
)
def test_a_report_that_never_ends_is_not_read_line_by_line(noise, monkeypatch):
    lines = _carried(machine(ROWS, kill=killed(399, "worker 399"))[:-1])
    fed = []
    read = Unwrapper.read
    monkeypatch.setattr(Unwrapper, "read", lambda self, lines: fed.extend(lines) or read(self, lines))
    found = _read(FIRST + "".join(lines) + noise)
    assert [len(report.tasks) for report in found] == [300]
    assert len(fed) < len(FIRST.splitlines()) + 1000


def test_a_name_that_looks_like_a_kill_is_read_by_itself():
    rows = [*ROWS, (500, 1000, 5, 5, 0, 0, "Killed process 9 (x)"), (501, 1000, 5, 5, 0, 0, "last")]
    lines = _carried(machine(rows, kill=killed(399, "worker 399")))
    (report,) = _read(FIRST + "".join(lines))
    assert report.tasks[500].name == "Killed process 9 (x)"
    assert len(report.tasks) == len(rows)


def _lines_read(monkeypatch, text: str) -> int:
    """Return how many lines of a log are taken apart, with what the kubelet's side looks for."""
    fed = []
    read = Unwrapper.read

    def counted(self, lines):
        fed.extend(lines)
        return read(self, lines)

    monkeypatch.setattr(Unwrapper, "read", counted)
    list(reports(io.BytesIO(text.encode()), KubeletSide()))
    return len(fed)


@pytest.mark.parametrize(
    "words",
    [
        "kernel: [{at}.5] oom-kill",
        "app[{at}]: Killed process {at} by hand",
        'app[{at}]: pr_warn("%s invoked oom-killer: gfp_mask=%#x, order=%d", {at});',
        'app[{at}]: "Evicted" {at}',
        "app[{at}]: Evicted entry {at} from the cache",
    ],
)
def test_lines_that_only_use_the_words_of_the_oom_killer_or_of_evictions_are_passed_over(monkeypatch, words):
    before = _lines_read(monkeypatch, FIRST)
    other = "Jan  5 15:19:27 node-7 cron[1]: session opened\n"
    text = "".join(f"Jan  5 15:19:27 node-7 {words.format(at=at)}\n{other}" for at in range(2000))
    assert _lines_read(monkeypatch, FIRST + text + other) < before + 1000


@pytest.mark.parametrize("cut", ["oom-kill", "oom-killer", "Killed process"])
def test_a_line_that_is_broken_after_the_words_is_found_late_in_a_log(cut):
    lines = _carried(cgroup(ROWS, 399, "worker 399"))
    broken = [line.replace(cut, cut + "\n", 1) for line in lines]
    assert broken != lines
    (whole,), (found,) = _read(FIRST + "".join(lines)), _read(FIRST + "".join(broken))
    assert list(found.victims) == list(whole.victims)


@pytest.mark.parametrize("hosts", [1, 50])
def test_a_report_without_a_kill_is_given_up_after_many_lines_and_a_later_one_is_found(monkeypatch, hosts):
    endless = "".join(
        f"Jan  5 15:19:27 node-{at % hosts} kernel: [{at:5d}.5] memory: usage {at}kB, limit {at}kB, failcnt 7\n"
        for at in range(5000)
    )
    monkeypatch.setattr(oom_reader, "_MOST_LINES", 500)
    assert _lines_read(monkeypatch, FIRST + endless) < _lines_read(monkeypatch, FIRST) + 1500
    last = _read(FIRST + endless + "".join(_carried(cgroup(ROWS, 399, "worker 399"), "node-last")))[-1]
    assert list(last.victims) == [399]
    assert len(last.tasks) == len(ROWS)


KILL = "Out of memory: Killed process 399 (java) total-vm:1200kB, anon-rss:1100kB, file-rss:0kB, shmem-rss:0kB"


@pytest.mark.parametrize("space", [" ", "\u00a0", "&nbsp;"])
def test_a_kill_is_found_late_in_a_log_whatever_stands_for_its_spaces(space):
    first = "".join(f"Jan  5 15:19:27 node-7 sshd[{at % 10}]: session {at:0200d} opened\n" for at in range(1500))
    text = f"{first}{''.join(_carried([KILL]))}{first}".replace(" ", space)
    assert [list(found.victims) for found in _read(text)] == [[399]]


def test_a_kill_that_a_mail_program_broke_is_found_late_in_a_log():
    first = "".join(f"Jan  5 15:19:27 node-7 sshd[{at % 10}]: session {at} opened\n" for at in range(4000))
    text = first + "".join(_carried([KILL])).replace("Killed process", "Killed\nprocess") + first
    assert [list(found.victims) for found in _read(text)] == [[399]]


@pytest.mark.parametrize(
    "said",
    [
        'eviction_manager.go:372] "Eviction manager: attempting to reclaim" resourceName="memory"',
        "eviction_manager.go:329] eviction manager: attempting to reclaim memory",
    ],
)
@pytest.mark.parametrize("far", [False, True], ids=["late", "far into a log of the kernel"])
def test_a_kubelet_is_heard_late_in_a_log_whether_it_quotes_its_messages_or_not(monkeypatch, said, far):
    head = "Jan  5 15:19:27 node-7 kubelet[3]: I0105 15:19:27.5  3 "
    first = head + ('kubelet.go:1] "Starting"\n' if '"' in said else "kubelet.go:1] Starting\n") + FIRST
    if far:
        first = "".join(_carried(["eth0: link is up"])) + first
        monkeypatch.setattr(log_marks, "VERY_LARGE", 1 << 17)
    heard = []
    monkeypatch.setattr(KubeletSide, "feed", lambda _, message: heard.append(message.text))
    list(reports(io.BytesIO(f"{first}{head}{said}\n{FIRST}".encode()), KubeletSide()))
    assert [said in text for text in heard] == [True]


def test_errors_that_differ_in_figures_alone_are_counted_with_the_same_answer(monkeypatch):
    kinds = ("Java heap space", "Metaspace", "GC overhead limit exceeded")
    lines = []
    for at in range(3000):
        host = ("node-1", "node-11", "db")[at % 7 % 3]
        head = f"Jan  5 15:{at // 60 % 60:02d}:{at % 60:02d} {host} app[{at % 3}]:"
        lines.append(f'{head} Exception in thread "w-{at % 50}" java.lang.OutOfMemoryError: {kinds[at % 5 % 3]}\n')
        if at % 3 == 0:
            lines.append(f"{head} \tat com.example.Cache.put(Cache.java:{at})\n")
    text = FIRST + "".join(lines) + FIRST

    def failures():
        return autopsies([io.BytesIO(text.encode())], AutopsyRequest()).program_failures

    counted, read = failures(), _lines_read(monkeypatch, text)
    monkeypatch.setattr(RepeatedLines, "learn", lambda *_, **__: None)
    assert failures() == counted
    assert sum(failure.times for failure in counted) == 3000
    assert read < _lines_read(monkeypatch, text) - 2000


def test_kills_of_programs_beyond_the_most_are_counted_without_being_read(monkeypatch):
    monkeypatch.setattr(other_killers, "_MOST_KILLS", 10)
    kill = "Jan  5 15:19:27.{at} node-{host} systemd-oomd[8]: Killed /a-{at:x}.service due to memory pressure for / being 60.00% > 50.00% for > 20s with reclaim activity\n"  # noqa: E501
    text = FIRST + "".join(kill.format(at=at, host=at % 3) for at in range(500))
    found = autopsies([io.BytesIO(text.encode())], AutopsyRequest())
    assert (len(found.userspace_kills), found.userspace_kills_left_out) == (10, 490)
    assert _lines_read(monkeypatch, text) < _lines_read(monkeypatch, FIRST) + 400


NAMES = ("shard", "lease.web", "probe_b", "quorum-x", "ledger7", "gateway")


def test_errors_that_differ_in_names_and_in_what_else_is_said_are_counted_with_the_same_answer(monkeypatch):
    lines = []
    for at in range(3000):
        one, other = NAMES[at % 6], NAMES[at // 6 % 6]
        head = f"Jan  5 15:{at // 60 % 60:02d}:{at % 60:02d} node-{at % 3} {one}-{other}[{at}]: "
        thread = f'Exception in thread "{other}-{at}" ' if at % 2 else f"request {at:x} of {one}.{other} failed: "
        lines.append(f"{head}{thread}java.lang.OutOfMemoryError: {('Java heap space', 'Metaspace')[at % 5 % 2]}\n")
    text = FIRST + "".join(lines) + FIRST

    def failures():
        return autopsies([io.BytesIO(text.encode())], AutopsyRequest()).program_failures

    counted, read = failures(), _lines_read(monkeypatch, text)
    monkeypatch.setattr(RepeatedLines, "learn", lambda *_, **__: None)
    assert failures() == counted
    assert sum(failure.times for failure in counted) == 3000
    assert read < _lines_read(monkeypatch, text) - 2500


SILENT = (
    "app[{at}]: raise MemoryError for {name} {at:x}",
    "app[{at}]: {name} used {at} MiB because of memory limits. {name} is fine",
    'kubelet[{at}]: E0105 15:19:27.5    {at} pods.go:7] "Evicted container is gone" containerID="{at:x}" {name}',
)
TELLING = (
    "systemd[1]: app.service: Failed with result 'oom-kill'.",
    "app[7]: MemoryError",
    "app[7]: MemoryError: Unable to allocate 3.2 GiB for an array",
    "systemd-oomd[8]: Killed /a due to memory pressure for / being 60.00% > 50.00% for > 9s with reclaim activity",
    'kubelet[3]: I0105 15:19:27.5  3 eviction_manager.go:6] "Eviction manager: pod is evicted successfully" pod="a/b"',
    "kernel: [9.5] Out of memory: Killed process 399 (java) total-vm:1200kB, anon-rss:1100kB, file-rss:0kB",
)


@pytest.mark.parametrize("silent", SILENT)
def test_lines_that_never_told_anything_are_passed_over_and_what_tells_something_among_them_is_read(
    monkeypatch, silent
):
    head = "Jan  5 15:19:27 node-7 "
    noise = [f"{head}{silent.format(at=at, name=NAMES[at % 6])}\n" for at in range(3000)]
    assert _lines_read(monkeypatch, FIRST + "".join(noise)) < _lines_read(monkeypatch, FIRST) + 500
    for telling in TELLING:
        text = FIRST + "".join([*noise[:2000], f"{head}{telling}\n", *noise[2000:]])
        found = autopsies([io.BytesIO(text.encode())], AutopsyRequest())
        told = (found.kills, found.userspace_kills, found.program_failures, found.evictions, found.node_events)
        assert sum(map(len, told)) == 1, telling


def test_lines_of_no_common_shape_that_no_pattern_matches_are_passed_over(monkeypatch):
    head, between = "Jan  5 15:19:27 node-7 ", (" ", ", ", " (", ") ", ' "', "; ", " =")
    said = ("app[{at}]:", "no", "{at:x}", "or", "MemoryError was", "what", "we", "got", "after", "all", "that", "{at}")
    noise = [
        head + "".join(word + between[(at >> place) % 7] for place, word in enumerate(said)).format(at=at) + ".\n"
        for at in range(3000)
    ]
    assert len({shape(line.encode()) for line in noise}) > 1000
    monkeypatch.setattr(repeated_lines, "_MOST_SHAPES", 100)
    assert _lines_read(monkeypatch, FIRST + "".join(noise)) < _lines_read(monkeypatch, FIRST) + 1000
    for telling in TELLING:
        found = autopsies(
            [io.BytesIO((FIRST + "".join([*noise[:2000], f"{head}{telling}\n", *noise])).encode())], AutopsyRequest()
        )
        told = (found.kills, found.userspace_kills, found.program_failures, found.evictions, found.node_events)
        assert sum(map(len, told)) == 1, telling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("app exited with code 1", "app exited with code 137"),
        ("oom_kill 0", "oom_kill 10"),
        ("Memory: java was killed", "Memory java: was killed"),
        ("Killing process 12 java", "Killing process of java"),
    ],
)
def test_lines_that_differ_in_what_a_pattern_may_look_for_have_different_shapes(one, other):
    assert shape(one.encode()) != shape(other.encode())


def test_what_a_runtime_says_of_kills_beyond_the_most_that_are_kept_is_not_read(monkeypatch):
    monkeypatch.setattr(kubelet_side, "_MOST_SIGNS", 10)
    line = 'Jan  5 15:19:27 node-7 containerd[{}]: level=info msg="TaskOOM event container_id:\\"{:064x}\\""\n'
    text = FIRST + "".join(line.format(at, at) for at in range(2000))
    assert _lines_read(monkeypatch, text) < _lines_read(monkeypatch, FIRST) + 500


def test_kills_in_several_lines_beyond_the_most_are_counted_without_being_read(monkeypatch):
    monkeypatch.setattr(other_killers, "_MOST_KILLS", 10)
    kills = "".join(LOW.replace("4711", str(at + 100)).replace("374", str(at)) for at in range(1000))
    found = autopsies([io.BytesIO((FIRST + kills).encode())], AutopsyRequest())
    assert (len(found.userspace_kills), found.userspace_kills_left_out) == (10, 990)
    assert _lines_read(monkeypatch, FIRST + kills) < _lines_read(monkeypatch, FIRST) + 1200


def _event(at: int, reason: str, message: str, **fields: object) -> str:
    about = {"kind": "Pod", "namespace": "shop", "name": f"web-{at}", "uid": f"{at:032x}"}
    event = {"involvedObject": about, "reason": reason, "message": message, "firstTimestamp": f"2026-01-05T15:{at}:00Z"}
    return json.dumps(event | {"source": {"host": "node-1"}} | fields) + "\n"


def test_events_in_lines_of_json_are_taken_as_they_are_found_with_the_same_answer(monkeypatch):
    kinds = [
        ("Pulled", "Pulled image", {}),
        ("Evicted", "The node was low on resource: memory. ", {}),
        ("Killing", "Container app failed liveness probe, will be restarted", {}),
        ("BackOff", "app said: java.lang.OutOfMemoryError: Java heap space", {}),
        ("OOMKilling", "Memory cgroup out of memory: Killed process 12 (java) total-vm:9kB, anon-rss:5kB", {}),
        ("Pulled", "Pulled image", {"count": "three"}),
        ("", "nothing", {}),
    ]
    lines = [_event(at, *kinds[at % 7][:2], **kinds[at % 7][2]) for at in range(10, 60)]
    text = "".join([*lines[:20], "Jan  5 15:19:27 node-7 app[1]: MemoryError\n", *lines[20:]] * 20)

    def answer():
        return autopsies([io.BytesIO(text.encode())], AutopsyRequest())

    taken, read = answer(), _lines_read(monkeypatch, text)
    monkeypatch.setattr(EventLines, "read", lambda _, lines: Taken([], lines))
    assert answer() == taken
    assert (len(taken.evictions), len(taken.program_failures)) == (7, 1)
    assert taken.read.events > 800
    assert read < _lines_read(monkeypatch, text) - 400


JAVA = "Jan  5 15:19:27 node-7 app[1]: java.lang.OutOfMemoryError: Java heap space\n"
LOW = (
    "Jan  5 15:19:27 node-7 earlyoom[5]: mem avail:   374 of  7841 MiB ( 4.78%), swap free:    0 of    0 MiB ( 0.00%)\n"
    "Jan  5 15:19:27 node-7 earlyoom[5]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\n"
    'Jan  5 15:19:27 node-7 earlyoom[5]: sending SIGTERM to process 4711 uid 0 "java": badness 900, VmRSS 4096 MiB\n'
)


@pytest.mark.parametrize(
    ("first", "text", "failures"),
    [
        (_carried(["eth0: link is up"]), JAVA, 0),
        (_carried(["eth0: link is up"]), "".join(_carried([KILL])) + FIRST[:60_000] + JAVA, 1),
        ([], JAVA, 1),
    ],
)
def test_far_into_a_log_of_the_kernel_programs_errors_are_read_after_kills_alone(monkeypatch, first, text, failures):
    log = "".join(first) + FIRST + text + FIRST + LOW + FIRST
    for largest, times in ((1 << 30, 1), (1 << 18, failures)):
        monkeypatch.setattr(log_marks, "VERY_LARGE", largest)
        found = autopsies([io.BytesIO(log.encode())], AutopsyRequest())
        assert sum(failure.times for failure in found.program_failures) == times
        (kill,) = found.userspace_kills
        assert (kill.pid, kill.memory_available_bytes) == (4711, 374 << 20)
