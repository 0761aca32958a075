"""What a command comes to stands in its first lines; the figures it rests on follow."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.cli.main import main
from podqos.runs.variations import Combination, Distribution, Sweep, WorkloadSurvival, table
from podqos.text.style import Style

ROOT = Path(__file__).resolve().parents[2]
ACCIDENTAL = ROOT / "scenarios/content-platform/accidental"
WEB = ACCIDENTAL / "article-service.yaml"


@pytest.mark.parametrize(
    ("command", "line", "conclusion"),
    [
        (["check", WEB], 0, "Deployment production/article-service is evicted once it uses more than it requests, "),
        (
            ["drift", ACCIDENTAL / "article-service-fixed.yaml", WEB],
            0,
            "1 workload is worse off. Of 1 compared: 1 downgraded.",
        ),
        (
            ["drift", WEB, ACCIDENTAL / "article-service-fixed.yaml"],
            0,
            "No workload is worse off. Of 1 compared: 1 upgraded.",
        ),
        (["thresholds"], 1, "  memory.available: 100Mi is too low"),
        (["cpu", WEB, "--cores", "14"], 0, "The pods want "),
        (
            ["simulate", "race"],
            1,
            "2 OOM kills, no evictions; 7 of 9 pods unaffected.",
        ),
        (["place", WEB, "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi,pods=9"], 0, "1 of 1 "),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_the_conclusion_comes_first_and_once(capsys, command, line, conclusion):
    main([str(word) for word in command])
    lines = capsys.readouterr().out.splitlines()
    assert lines[line].startswith(conclusion)
    assert sum(each.startswith(conclusion) for each in lines) == 1


def test_a_long_time_down_is_in_minutes_and_never_in_powers_of_ten():
    none = Distribution(0, 0, 0, 0, 0)
    down = replace(none, median=1040.0, p95=7.25)
    found = WorkloadSurvival("shop/web", 0.5, none, none, none, down)
    lines = table(Sweep("race", ("phase",), 2, (Combination(("0s",), 2, 1, 0, {}, none, none, (found,)),)), Style())
    assert lines[-1].endswith("17 min 20 s    7.25 s")


@pytest.mark.parametrize(("term", "is_coloured"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_gets_no_colours(term, is_coloured):
    reader, writer = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": term}
    command = [sys.executable, "-m", "podqos", "check", str(WEB)]
    subprocess.run(command, stdout=writer, stderr=subprocess.DEVNULL, env=environment, check=False)
    os.close(writer)
    assert (b"\x1b[" in os.read(reader, 65536)) is is_coloured
    os.close(reader)
