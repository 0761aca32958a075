"""``podqos rehearse``: the prediction holds on the real kernel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from host.machine import needs_node
from podqos.agent.journal import Kind
from podqos.cli.main import main
from podqos.errors import InputError
from podqos.host.linux.load import HeldMemory, value_at
from podqos.host.linux.procfs import Procfs
from podqos.host.node.leftovers import remove_leftovers
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.reading.scenario_files import load_scenario
from podqos.rehearsal import on_this_machine, unrehearsable
from podqos.sim.run import simulate

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "podqos", "rehearse"]

SHORT = ["--until", "5s", "--scale", "1/16"]
SLOWLY = ["--until", "8s", "--speed", "1/2"]
"""Two grow at once: a machine with other things to do may hold one of them up for a moment."""
TRIES = 3
"""Or for a second; that it happens every time is a fault."""
RACERS = ["monitoring/log-collector-worker-1", "batch/analytics-pipeline-0"]
REHEARSALS = {
    "race": ([*SLOWLY, "--scale", "1/16"], "kernel", RACERS),
    "oom-by-class": (SHORT, "kernel", ["default/pod3"]),
    "oom-by-usage": (SHORT, "kernel", ["default/pod2"]),
    "oom-loop": (["--until", "9s", "--scale", "1/16"], "kernel", ["default/pod2", "default/pod2"]),
    "oom-by-request": (SHORT, "kernel", ["default/small-request"]),
    # The kubelet's pass at 50 s comes some seconds after memory is short, and as long before the kernel would kill.
    "accidental-burstable": (["--until", "56s", "--speed", "1.83"], "kubelet", ["production/article-service-0"]),
}


def _places(pid: int) -> set[str]:
    """Return the cgroups and directories of a rehearsal."""
    name = f"podqos-rehearsal-{pid}-*"
    roots = (*Path("/sys/fs/cgroup").glob("*"), Path(tempfile.gettempdir()))
    return {str(path) for root in roots for path in root.glob(name)}


def _left_behind(pid: int) -> list[str]:
    """Return the cgroups, directories and processes of a rehearsal."""
    name = f"podqos-rehearsal-{pid}-"
    found = [*_places(pid)]
    for each in Procfs().pids():
        try:
            line = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if name.encode() in line:
            found.append(line.decode())
    return found


@contextmanager
def _rehearsal() -> Iterator[subprocess.Popen[str]]:
    """Begin a rehearsal; it is over and gone afterwards in any case."""
    command = [*COMMAND, "oom-by-class", "--scale", "1/64"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("the scenario starts" in line for line in process.stderr)
            yield process
        finally:
            process.kill()
            process.wait()
            remove_leftovers()


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize(("name", "expected"), REHEARSALS.items(), ids=REHEARSALS)
def test_the_kernel_takes_the_same_victims_in_the_same_order_as_the_simulation(name, expected):
    options, by, victims = expected
    command = [*COMMAND, str(ROOT / "scenarios" / f"{name.split()[0]}.yaml"), *options, "-o", "json"]
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 1:
            break
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    report = json.loads(done.stdout)
    assert [each["predicted"]["pod"] for each in report["victims"]] == victims
    assert [each["real"]["pod"] for each in report["victims"]] == victims
    assert (report["sameVictims"], report["sameOrder"]) == (True, True)
    assert [note for note in report["notes"] if note in done.stderr] == [], "said twice"
    assert {each[side]["by"] for each in report["victims"] for side in ("predicted", "real")} == {by}


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["SIGINT", "SIGHUP"])
def test_an_interrupted_rehearsal_leaves_nothing_behind(number):
    with _rehearsal() as process:
        assert _left_behind(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=300) == 130
        assert _left_behind(process.pid) == []


@pytest.mark.slow
@needs_node
def test_what_a_killed_rehearsal_left_is_removed_by_the_next_command_and_a_living_one_is_not_touched():
    with _rehearsal() as living, _rehearsal() as killed:
        before = _places(living.pid)
        killed.kill()
        killed.wait()
        assert len(_left_behind(killed.pid)) > 5
        remove_leftovers()
        assert _left_behind(killed.pid) == []
        assert _places(living.pid) == before
        assert living.poll() is None


def test_a_scenario_of_several_nodes_is_refused():
    with pytest.raises(InputError, match="a rehearsal has exactly one node"):
        unrehearsable(load_scenario(str(ROOT / "scenarios" / "slow-leak.yaml")))


def test_what_is_not_rehearsed_is_named():
    assert "cpu" in unrehearsable(load_scenario(str(ROOT / "scenarios" / "race.yaml")))


BAD = {
    "nothing": (["rehearse"], "nothing to rehearse"),
    "no scale": (["rehearse", "race", "--scale", "2"], "'2' is not a fraction up to 1"),
    "no speed": (["rehearse", "race", "--speed", "0"], "'0' is not a speed"),
    "no time": (["rehearse", "race", "--until", "soon"], "--until"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, command, message):
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


CURVE = [(0, 100), (10, 200), (10, 50), (20, 50)]


@pytest.mark.parametrize(("now", "value"), [(0, 100), (5, 150), (9, 190), (10, 50), (15, 50), (99, 50)])
def test_a_load_follows_its_curve(now, value):
    assert value_at(CURVE, 0, now) == value


def test_a_load_repeats_its_curve():
    assert value_at(CURVE, 20, 45) == value_at(CURVE, 0, 5)


def test_a_load_holds_as_much_as_it_should_and_gives_back_the_rest():
    page = os.sysconf("SC_PAGE_SIZE")
    holding = HeldMemory()
    for wanted in (10 * page, (3 << 20) + page, 1 << 20, 0):
        holding.become(wanted)
        assert 0 <= holding.size - wanted < 1 << 20 or holding.size == wanted
    assert (holding.size, holding.chunks) == (0, [])


def test_the_prediction_replaces_no_pod_because_the_machine_has_no_controllers():
    """In the simulation log-collector, which belongs to a DaemonSet, is evicted ten times."""
    there = on_this_machine(load_scenario("graceful-degradation"), CgroupVersion.V2)
    victims = [entry.pod for entry in simulate(there).entries if entry.kind is Kind.EVICTED]
    assert victims == [
        "monitoring/log-collector-worker-1",
        "monitoring/debug-tools",
        "batch/analytics-pipeline-0",
        "batch/search-indexer-1",
    ]
