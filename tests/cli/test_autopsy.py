"""``podqos autopsy`` as a user meets it."""

from __future__ import annotations

import csv
import gzip
import io
import sys

import pytest

from deaths import parsed
from kernel.oom_logs import CARRIERS, cgroup, killed, machine
from podqos.cli.main import main
from podqos.logs.said import Said
from podqos.logs.search import LogReader

ROWS = [(7, 1000, 200_000, 100, 0, 100, "python3"), (8, 1000, 100_000, 100, 0, 100, "sh")]
LOG = "\n".join([*machine(), *cgroup(ROWS, 7, "python3")]) + "\n"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, uid: 11111111-2222-3333-4444-555555555555}
spec: {containers: [{name: app, image: x, resources: {requests: {memory: 1Gi}}}]}
"""


def autopsy(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main(["autopsy", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "kern.log"
    path.write_text(LOG)
    return path


def test_the_verdict_comes_first(capsys, log):
    code, out, err = autopsy(capsys, log)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "2 OOM kills, all explained by the rules."
    assert lines[2] == "The machine ran out of memory: java (main) [x] (pid 102) was killed."
    assert "A container reached its limit: python3 (pid 7) was killed." in lines
    assert "  next      sh (pid 8), 100,000 pages (390.6Mi) behind" in lines


def test_json_has_the_pod_of_the_path(capsys, log, tmp_path):
    (tmp_path / "pods.yaml").write_text(POD)
    code, out, _ = autopsy(capsys, log, "-f", tmp_path / "pods.yaml", "-o", "json")
    first, second = parsed(out)["kills"]
    assert code == 0
    assert (first["scope"], first.get("pod", "")) == ("machine", "")
    assert (second["scope"], second["pod"], second["container"]) == ("container", "shop/web", "app")
    assert (second["followsRule"], second["trigger"]["pid"], second["victims"][0]["pid"]) == (True, 7, 7)


def test_csv_has_a_row_per_victim(capsys, log):
    _, out, _ = autopsy(capsys, log, "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["pid"], row["scope"], row["runnerUp"]) for row in rows] == [
        ("102", "machine", "101"),
        ("7", "container", "8"),
    ]


def test_a_log_may_be_piped_in_or_gzipped(capsys, log, monkeypatch, tmp_path):
    expected = autopsy(capsys, log)
    packed = tmp_path / "kern.log.gz"
    packed.write_bytes(gzip.compress(LOG.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    for given in (packed, "-"):
        code, out, err = autopsy(capsys, given)
        # The next command names the file.
        assert (code, out.partition("\nRun next:")[0], err) == (0, expected[1].partition("\nRun next:")[0], "")


@pytest.mark.parametrize("carrier", ["syslog", "journal-export", "journal-json"])
def test_reports_are_found_wherever_they_lie_in_a_large_log(capsys, tmp_path, carrier):
    path = tmp_path / "large.log"
    other = CARRIERS[carrier]("eth0: the room is full") + "\n"
    report = "".join(CARRIERS[carrier](line) + "\n" for line in cgroup(ROWS, 7, "python3"))
    repeated = [report.replace("failcnt 12", f"failcnt {n}") for n in range(12)]
    path.write_text("".join(other * (900 + 37 * n) + each for n, each in enumerate(repeated)) + other)
    _, out, _ = autopsy(capsys, path, "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["pid"] for row in rows] == ["7"] * 12
    assert {row["where"] for row in rows} == {"node-1"}


def test_a_log_that_comes_line_by_line_is_read_the_same():
    class Records:  # as /dev/kmsg hands them out
        def __init__(self):
            self._lines = iter(CARRIERS["kmsg"](line) + "\n" for line in LOG.splitlines())

        def read(self, _: int, /) -> bytes:
            return next(self._lines, "").encode()

    found = [*LogReader(Said()).read(Records())]
    assert [(len(report.tasks), [*report.victims]) for report in found] == [(3, [102]), (2, [7])]


def test_a_line_without_end_does_not_hide_what_follows(capsys, tmp_path):
    path = tmp_path / "long.log"
    path.write_text("x" * 3_000_000 + "\n" + LOG)
    assert autopsy(capsys, path)[1].startswith("2 OOM kills")


def test_names_cannot_draw_on_the_terminal(capsys, tmp_path):
    path = tmp_path / "kern.log"
    path.write_text(killed(9, "\x1b[2Jevil") + "\n")
    _, out, _ = autopsy(capsys, path)
    assert "evil" in out
    assert "\x1b" not in out


def test_a_log_without_kills_is_no_error(capsys, tmp_path):
    path = tmp_path / "kern.log"
    path.write_text("[    1.000000] all is well\n")
    code, out, err = autopsy(capsys, path)
    assert (code, out.splitlines()[0], err) == (0, "No OOM kills and no evictions found.", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.log"], "absent.log: No such file"),
        (["-", "-"], "standard input can be read only once"),
        (["x", "--top", "many"], "'many' is not a number above zero"),
        (["."], "Is a directory"),
        (["--live", "a.log", "b.log"], "only one log can be followed"),
        (["--live", "-o", "markdown"], "-o markdown needs a log that ends"),
        (["--live", "--html", "x.html"], "--html needs a log that ends"),
        (["--live", "absent.log"], "absent.log: No such file"),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, said):
    code, out, err = autopsy(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_broken_gzip_is_named(capsys, tmp_path):
    path = tmp_path / "kern.log.gz"
    path.write_bytes(gzip.compress(LOG.encode())[:-20])
    code, _, err = autopsy(capsys, path)
    assert (code, err.count("\n")) == (2, 1)
    assert "broken gzip" in err
