"""``podqos demo``: one story on one screen, told with the answers of other commands, and the page it leaves."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from podqos.cli.commands import demo
from podqos.cli.main import main
from podqos.errors import HostError
from podqos.manifest.encoding import SLOT
from podqos.reading import built_page, shipped_scenarios
from podqos.runs import run as simulation
from podqos.runs.run import simulate as run_anew
from podqos.sim.scenario.scenario import Scenario

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      resources: {requests: {memory: 64Mi}}
"""


@pytest.fixture(autouse=True, scope="module")
def viewer():
    """Stand in for the page that npm builds: what is tested here is what is written into it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(built_page, "built_viewer", lambda: f"<html>{SLOT}</html>")
        yield


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> tuple[str, Path]:
    """Return what is printed in an empty directory, and that directory."""
    folder = tmp_path_factory.mktemp("my files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return _told(), folder


RUNS: dict[str, simulation.Run] = {}


def _run(scenario: Scenario) -> simulation.Run:
    """Return the run of a scenario, which is the same each time."""
    if scenario.name not in RUNS:
        RUNS[scenario.name] = run_anew(scenario)
    return RUNS[scenario.name]


def _told() -> str:
    with redirect_stdout(StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "simulate", _run)
        assert main(["demo"]) == 0
    return out.getvalue()


def _commands(text: str) -> list[list[str]]:
    """Return every command that is printed, as a shell would read it."""
    found = re.findall(r"\bpodqos (?:simulate|check|explain|rank|ui) .+", text)
    return [shlex.split(re.split(r"  +", line)[0])[1:] for line in found]


def _rows(text: str, width: int = 80) -> int:
    """Return how many rows of a terminal a text takes; it breaks long lines."""
    return sum(max(1, -(-len(line) // width)) for line in text.splitlines())


def summary(capsys, name):
    assert main(["simulate", name, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)["summary"]


def test_it_takes_no_more_than_60_rows_of_80_columns(story):
    out, _ = story
    assert _rows(out) <= 60
    too_long = [line for line in out.splitlines() if len(line) > 80]
    assert all("podqos check " in line or "file://" in line for line in too_long), "only paths are never broken"


def test_with_the_long_paths_of_an_installation_it_still_does(tmp_path, monkeypatch):
    installed = tmp_path / "pipx/venvs/podqos/lib/python3.11/site-packages/podqos" / "scenarios"
    installed.parent.mkdir(parents=True)
    installed.symlink_to(Path(__file__).resolve().parents[2] / "scenarios")
    here = tmp_path / "work" / "of the team"
    here.mkdir(parents=True)
    monkeypatch.setattr(shipped_scenarios, "_PACKAGE", installed.parent)
    monkeypatch.chdir(here)
    out = _told()
    assert f"podqos check {installed}/content-platform/accidental/article-service.yaml\n" in out
    assert _rows(out.replace(str(tmp_path), "/home/developer/.local/share")) <= 60


def test_the_story_has_its_turns_in_order(story):
    turns = [
        "8 services on a node with 16 cores and 64Gi",
        "warning PQ101 accidental-burstable, container envoy-sidecar",
        "90 s  ● article-service-0 evicted",
        "resources.limits.memory: 128Mi",
        "7 OOM kills: it needs 1536Mi, its limit is 128Mi.",
        "2Gi, 33% above",
        "analytics-job-3 ",
        "file://",
        "In a directory with your own manifests:",
    ]
    places = [story[0].find(turn) for turn in turns]
    assert -1 not in places
    assert places[:3] == sorted(places[:3])
    assert places[4:] == sorted(places[4:])


def test_every_service_of_the_platform_is_listed(story):
    manifests = shipped_scenarios.scenario_dir("content-platform") / "platform"
    services = {path.stem for path in manifests.glob("[a-z]*.yaml")}
    assert len(services) == 8
    rows = re.findall(r"^  (\S+) +(?:Guaranteed|Burstable|BestEffort)  +\d", story[0], re.MULTILINE)
    assert set(rows) == services


def test_its_numbers_are_those_of_simulate(story, capsys):
    table = {line.split("  ")[1].strip(): line for line in story[0].splitlines() if line.startswith("  ")}
    accident, undersized, fixed = (
        {row["workload"]: row for row in summary(capsys, name)["workloads"]} for name in demo.DAYS
    )
    service, jobs = "production/article-service", "batch/analytics-job"
    assert accident[service]["evictions"] == 1
    assert accident[service]["downtimeUs"] == 310_000_000
    assert re.search(r" evicted, down 5 min 10 s +4 of 4 unaffected$", table["no limit"])
    assert undersized[service]["oomKills"] == 7
    assert undersized[jobs]["evictions"] == 1
    assert re.search(r" 7 OOM kills, down 9 min 59 s +3 of 4 unaffected, 1 evicted$", table["128Mi"])
    assert fixed[service]["untouched"] == 1
    assert (fixed[jobs]["untouched"], fixed[jobs]["neverRan"]) == (3, 1)
    assert re.search(r" unaffected +3 of 4 unaffected, 1 pending$", table["2Gi"])


def test_every_command_works_as_printed_from_where_it_was_called(story, capsys, monkeypatch):
    out, folder = story
    commands = _commands(out)
    assert [command[0] for command in commands] == [
        *("check", "simulate", "simulate", "simulate", "ui"),
        *("check", "explain", "rank"),
    ]
    monkeypatch.chdir(folder)
    (folder / "web.yaml").write_text(POD)
    for command in commands:
        if command[0] == "ui":
            command += ["--html", str(folder / "served.html")]
        assert main(command) in {0, 1}, command
        assert "error" not in capsys.readouterr().err


def test_as_a_plugin_of_kubectl_it_names_commands_of_kubectl(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-podqos", "demo"])
    out = _told()
    assert out.count("kubectl podqos ") == len(_commands(out)) == 8


def test_in_a_clone_paths_are_short(monkeypatch, tmp_path):
    root = tmp_path / "clone"
    root.mkdir()
    (root / "scenarios").symlink_to(Path(__file__).resolve().parents[2] / "scenarios")
    monkeypatch.setattr(shipped_scenarios, "_PACKAGE", root / "src" / "podqos")
    monkeypatch.setattr(shipped_scenarios, "_SOURCE_TREE", root)
    monkeypatch.chdir(root)
    assert "$ podqos check scenarios/content-platform/accidental/article-service.yaml\n" in _told()


def test_it_leaves_one_file_the_page_and_says_where(story):
    out, folder = story
    page = Path(unquote(urlparse(re.search(r"file://\S+", out)[0]).path))
    assert page == folder / demo.PAGE
    assert b"article-service-0 evicted" in page.read_bytes()


def test_where_the_page_cannot_be_written_the_story_is_told_to_the_end(tmp_path, monkeypatch):
    def fails(*_: object) -> None:
        raise HostError("no space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("podqos.reading.written_files.write_file", fails)
    out = _told()
    assert "The page was not written: no space left on device" in out
    assert out.rstrip().endswith("which pods are evicted and OOM-killed first")


def test_without_the_page_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    def fails() -> str:
        raise HostError("podqos was installed without the page")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(built_page, "built_viewer", fails)
    out = _told()
    assert "installed without the page" in out
    assert "file://" not in out
    assert list(tmp_path.iterdir()) == []
