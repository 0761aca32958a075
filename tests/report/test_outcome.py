"""A headline holds for the table below it, and both count every pod of the scenario, shipped or drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from podqos.answers.run_reading import run_view
from podqos.placement.workloads import DAEMON_SET
from podqos.report.simulation.timeline import timeline
from podqos.report.text.style import Style
from podqos.sim.cpu_outcome import CpuOutcome
from podqos.sim.run import FinishedRun, simulate
from podqos.words.outcome import headline
from report.runs import SUMMARY
from scenarios.runs import NAMES, run_of
from sim.test_properties import scenarios

PARTS = {
    "unaffected": r"([\d,]+) of [\d,]+ pods? unaffected",
    "pods": r"[\d,]+ of ([\d,]+) pods?",
    "killed": r"([\d,]+|[Nn]o) OOM kills?",
    "evicted": r"([\d,]+|no) evictions?",
    "interrupted": r"([\d,]+) interrupted",
    "never ran": r"([\d,]+) never ran",
    "waited": r"([\d,]+) waited for a node",
    "short of CPU": r"(?:^|[,;.] )([\d,]+) (?:short of CPU|of [\d,]+ pods? slowed)|(?<=, )[\d,]+(?= slowed)",
    "denied": r"([\d,]+) denied processes or disk space",
}


def said(sentence: str) -> dict[str, int]:
    """Return the numbers of a headline."""
    found = {name: re.search(pattern, sentence) for name, pattern in PARTS.items()}
    texts = {name: match[1] or match[0] for name, match in found.items() if match is not None}
    numbers = {name: 0 if text.lower() == "no" else int(text.replace(",", "")) for name, text in texts.items()}
    if "unaffected" not in numbers:
        numbers["unaffected"] = numbers["pods"] - numbers["short of CPU"]
    return numbers


def table(lines: list[str]) -> list[dict[str, str]]:
    """Return the rows of the table at the end of a report, by heading."""
    start = next(index for index, each in enumerate(lines) if each.startswith("WORKLOAD"))
    headings = re.split(r"\s{2,}", lines[start])
    rows = []
    for each in lines[start + 1 :]:
        if not each:
            break
        rows.append(dict(zip(headings, re.split(r"\s{2,}", each), strict=True)))
    return rows


def number(cell: str) -> int:
    """Return the number in a cell; a dash is none."""
    return 0 if cell == "–" else int(cell.replace(",", ""))


def check(done: FinishedRun) -> None:
    """Hold what is printed against itself, and against the scenario."""
    lines = timeline(run_view(done, {}), Style())
    first, rows = said(lines[1]), table(lines)
    for column, name in {
        "OOM KILLS": "killed",
        "EVICTED": "evicted",
        "NEVER RAN": "never ran",
        "DENIED": "denied",
    }.items():
        assert sum(number(row.get(column, "–")) for row in rows) == first.get(name, 0), (lines[1], column)
    unaffected, pods = zip(*(map(int, row["UNAFFECTED"].split("/")) for row in rows), strict=True)
    assert (sum(unaffected), sum(pods)) == (first["unaffected"], first["pods"]), lines[1]
    for row, own, every in zip(rows, unaffected, pods, strict=True):
        happened = [name for name, cell in list(row.items())[4:] if cell != "–"]
        assert bool(happened) == (own < every), (row, happened)
    named = sum(first.get(name, 0) for name in ("interrupted", "never ran", "waited", "short of CPU", "denied"))
    if named:
        assert first["unaffected"] + named == first["pods"], lines[1]
    else:
        assert first["unaffected"] == first["pods"] or first["killed"] + first["evicted"], lines[1]
    check_sums(done)


def check_sums(done: FinishedRun) -> None:
    """Hold the summary against the scenario: every pod has one outcome, and none is down longer than it is wanted."""
    summary = run_view(done, {}).summary
    found = {row.workload: row for row in summary.workloads}
    for part in (summary, *summary.workloads):
        assert (
            part.pods
            == part.untouched + part.interrupted + part.never_ran + part.waited + part.throttled + part.refused
        )
    changes = done.scenario.workload_changes
    for workload in done.scenario.workloads:
        until_us = done.end_us if workload.deleted_us is None else min(done.end_us, workload.deleted_us)
        wanted_us = until_us - workload.arrives_us
        row = found.get(f"{workload.namespace}/{workload.name}")
        if wanted_us <= 0:
            assert row is None or not row.pods
        elif workload.kind != DAEMON_SET and workload.replicas:
            assert row is not None
            # A rollout has pods of two revisions, a scaled workload those that were added.
            full = f"{workload.kind}/{workload.namespace}/{workload.name}"
            is_changed = done.scenario.autoscalers or any(change.workload == full for change in changes)
            assert row.pods >= workload.replicas if is_changed else row.pods == workload.replicas
            assert max(row.downtime_us, row.throttled_us) <= row.pods * wanted_us


@pytest.mark.parametrize("name", NAMES)
def test_the_headline_of_a_shipped_scenario_holds_for_its_table_and_counts_every_pod(name):
    check(run_of(name))


@settings(max_examples=12)
@given(scenarios())
def test_the_headline_of_any_run_holds_for_its_table_and_counts_every_pod(scenario):
    check(simulate(scenario))


@pytest.mark.slow
@settings(max_examples=50)
@given(scenarios())
def test_a_hundred_headlines_hold_for_their_tables(scenario):
    check(simulate(scenario))


def slowed(pods: int, least: float) -> CpuOutcome:
    """Return an outcome of pods that wanted 4 cpu-s and got half."""
    return CpuOutcome(pods, 4_000_000, 2_000_000, 2_000_000, least, 0.5, 2.0)


HEADLINES = [
    pytest.param({}, "1 of 3 pods unaffected.", id="kills and evictions tell"),
    pytest.param(
        {"interrupted": 1, "never_ran": 1},
        "1 of 3 pods unaffected, 1 interrupted, 1 never ran.",
        id="one never ran",
    ),
    pytest.param(
        {"oom_kills": 0, "evictions": 0},
        "1 of 3 pods unaffected, 2 interrupted.",
        id="neither killed nor evicted",
    ),
    pytest.param(
        {"interrupted": 0, "waited": 1, "throttled": 1},
        "1 of 3 pods unaffected, 1 waited for a node, 1 short of CPU.",
        id="slowed",
    ),
    pytest.param(
        {"interrupted": 0, "waited": 1, "throttled": 1, "cpu": slowed(1, 0.166)},
        "1 of 3 pods unaffected, 1 waited for a node, 1 slowed, worst to 17 %.",
        id="slowed, and by how much",
    ),
    pytest.param(
        {"interrupted": 2, "throttled": 0, "cpu": slowed(2, 0.004)},
        "1 of 3 pods unaffected; 2 slowed, worst to 0.4 %.",
        id="slowed and interrupted",
    ),
    pytest.param(
        {"interrupted": 0, "untouched": 1, "throttled": 2, "cpu": slowed(2, 0.9999)},
        "2 of 3 pods slowed, worst to 99 %.",
        id="slowed and nothing else",
    ),
]


@pytest.mark.parametrize(("changes", "end"), HEADLINES)
def test_a_headline_says_how_pods_were_affected_where_kills_and_evictions_do_not_tell(changes, end):
    assert f"; {end}".removeprefix("; " if "oom_kills" in changes else "") in headline(replace(SUMMARY, **changes))


@pytest.mark.parametrize(("changes", "affected"), HEADLINES)
def test_where_no_pod_is_killed_the_headline_begins_with_those_that_are_affected(changes, affected):
    unharmed = replace(SUMMARY, **{**changes, "oom_kills": 0, "evictions": 0})
    said_first = headline(unharmed)
    assert said_first.endswith(" No OOM kills, no evictions.")
    assert re.match(r"\d of 3 pods ", said_first)
    assert re.split("[,;.]", affected)[0] in said_first
