"""The shipped scenarios, each run once with all checkers on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from podqos.agent.journal import Entry
from podqos.reading.scenario_files import load_scenario
from podqos.reading.shipped_scenarios import shipped_scenarios
from podqos.sim.run import FinishedRun, simulate

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
PAGES = ROOT / "docs" / "scenarios"
NAMES = shipped_scenarios()

MI = 2**20
GI = 2**30
PAGE = 4096

Told = tuple[float, str, str]


@cache
def run_of(name: str) -> FinishedRun:
    """Return the run of a shipped scenario."""
    return simulate(load_scenario(name), check=True)


def entries(name: str, *kinds: str) -> list[Entry]:
    """Return the entries of some kinds."""
    return [entry for entry in run_of(name).entries if entry.kind in kinds]


def told(name: str, *kinds: str) -> list[Told]:
    """Return when, in tenths of seconds, what happened to whom (a pod without its namespace, or a node)."""
    return [
        (round(entry.time_us / 1_000_000, 1), entry.kind.value, (entry.pod or entry.node).rpartition("/")[2])
        for entry in entries(name, *kinds)
    ]


def kills(name: str) -> list[Told]:
    """Return who was killed or evicted."""
    return told(name, "OOMKilled", "Evicted", "Preempted")
