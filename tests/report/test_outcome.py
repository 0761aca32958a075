"""A headline holds for the table below it, and both count every pod of the scenario, shipped or drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from podqos.answers.run_reading import run_view
from podqos.model.pod import QOSClass
from podqos.placement.workloads import DAEMON_SET
from podqos.report.simulation.timeline import timeline
from podqos.report.text.style import Style
from podqos.sim.cpu_outcome import CpuOutcome
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.summary import WorkloadSummary, run_summary
from podqos.words.outcome import headline, short_of_cpu
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
    "short of CPU": r"; ([\d,]+) short of CPU",
    "denied": r"([\d,]+) denied processes or disk space",
}


def said(sentence: str) -> dict[str, int]:
    """Return the numbers of a headline."""
    found = {name: re.search(pattern, sentence) for name, pattern in PARTS.items()}
    texts = {name: match[1] for name, match in found.items() if match is not None}
    return {name: 0 if text.lower() == "no" else int(text.replace(",", "")) for name, text in texts.items()}


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
    # Each pod is counted once, and again if it was short of CPU as well.
    named = sum(first.get(name, 0) for name in ("interrupted", "never ran", "waited", "denied"))
    affected = first["pods"] - first["unaffected"]
    assert named <= affected, lines[1]
    assert first.get("short of CPU", 0) <= affected <= named + first.get("short of CPU", 0) or (
        not named and first["killed"] + first["evicted"]
    ), lines[1]
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


def web(least: float, name: str = "web") -> WorkloadSummary:
    """Return a workload of which a pod got this share of the CPU it wanted."""
    return WorkloadSummary(f"shop/{name}", QOSClass.BURSTABLE, 0, 2, 1, 0, 0, 0, 0, 0, 0, cpu=slowed(1, least))


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
        "1 of 3 pods unaffected, 1 waited for a node; 1 short of CPU.",
        id="throttled",
    ),
    pytest.param(
        {"interrupted": 0, "waited": 1, "throttled": 1, "cpu": slowed(1, 0.166), "workloads": (web(0.166),)},
        "1 of 3 pods unaffected, 1 waited for a node; 1 short of CPU "
        "(worst: shop/web, down to 17 % of the CPU it wanted).",
        id="throttled, and by how much",
    ),
    pytest.param(
        {"interrupted": 2, "throttled": 0, "cpu": slowed(2, 0.004), "workloads": (web(0.004), web(0.9, "a"))},
        "1 of 3 pods unaffected; 2 short of CPU at some time (worst: shop/web, down to 0.4 % of the CPU it wanted).",
        id="throttled and interrupted",
    ),
    pytest.param(
        {"interrupted": 0, "untouched": 1, "throttled": 2, "cpu": slowed(2, 0.9999), "workloads": (web(0.9999),)},
        "1 of 3 pods unaffected; 2 short of CPU (worst: shop/web, down to 99 % of the CPU it wanted).",
        id="throttled and nothing else",
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


@pytest.mark.parametrize("name", ["cpu-burst", "hpa-at-cpu-limit", "midnight-cron-storm", "probe-starvation"])
def test_a_pod_that_was_denied_a_thousandth_of_a_core_is_short_of_cpu_and_not_unaffected(name):
    done = run_of(name)
    denied = {account.pod for account in done.cpu if account.throttled_us}
    summary = run_summary(done)
    assert denied
    assert said(headline(summary))["short of CPU"] == short_of_cpu(summary) <= summary.pods - summary.untouched
    for workload in summary.workloads:
        pods = {pod for pod in denied if pod.startswith(f"{workload.workload}-")}
        assert bool(workload.cpu and workload.cpu.slowed) == bool(pods), workload.workload
        assert workload.untouched <= workload.pods - (workload.cpu.slowed if workload.cpu else 0)
