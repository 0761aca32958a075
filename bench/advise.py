"""Back-test of ``advise``: sized from the first week of generated traces, judged by the second, beside krr and VPA.

Run: ``python bench/advise.py`` (two minutes of CPU time); ``--write`` renews docs/pictures/advise.svg and the tables in
bench/RESULTS.md, ``--seed N`` draws other traces (the published ones are held out: nothing was tuned with them).

A container is OOM-killed if it wants more than its limit at any time of the second week. Memory reserved beyond need is
its limit less what it uses, on average over that week; requests equal limits for all three. Everybody sees the same:
five-minute maxima of every replica, the OOM kills, and the limit of today.

The baselines are written from their documentation. krr (https://github.com/robusta-dev/krr, simple strategy): memory
is the maximum of all pods + 15 %, at least 100Mi; CPU the highest pod's 95th percentile, at least 10m. VPA
(https://github.com/kubernetes/autoscaler, recommender): every container's daily peaks of memory, with a half-life of
24 h, in exponential buckets from 10 MB that grow by 5 %; the end of the 90th percentile's bucket + 15 %, at least
250Mi a pod. An OOM kill counts as a peak of 1.2 times the request, and at least 100 MiB above it. CPU likewise from all
samples in buckets from 0.01 cores, at least 25m. Its recommendation of the last moment is taken; a live VPA would
follow later.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from advise_picture import Curve, Panel, picture
from history import record
from numpy.typing import NDArray
from traces import A_DAY, FAMILIES, HALF, HELD_OUT, MIB, STEP_SECONDS, WORKLOADS, Trace, traces

from podqos.advice.sizing.coverage import coverage_of
from podqos.advice.sizing.matrix import BurstPattern
from podqos.advice.sizing.memory_need import USUAL, Caution, MemoryEvidence, Replica, evidence_of, need_by
from podqos.advice.sizing.sizing import UsageHistory, memory_seen, size
from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceRequirements

ROOT = Path(__file__).resolve().parents[1]
GIB = 1 << 30
STEP_US = STEP_SECONDS * 10**6
WORTHS = [int(8 * MIB * 2 ** (step / 4)) for step in range(56)]
"""What one OOM kill is worth, from 8Mi to 128Gi: the points of our curve."""
MARGINS = [0.01 * 1.25**step for step in range(24)]
"""Those of the baselines' curves, from 1 % to 170 %."""
SHORT = A_DAY // 4
"""Six hours of history: too little for anybody."""


class Score(NamedTuple):
    """How sizes fared."""

    killed: int
    """Containers."""
    reserved_gib: float
    """Beyond need."""

    def __add__(self, other: object) -> Score:
        """Return both together."""
        assert isinstance(other, Score)
        return Score(self.killed + other.killed, self.reserved_gib + other.reserved_gib)


class Judge:
    """The second week of a workload."""

    def __init__(self, trace: Trace) -> None:
        later = trace.demand_bytes[:, HALF:]
        self._most = later.max(axis=1)
        self._sorted = np.sort(later.ravel())
        self._sums = np.concatenate([[0], np.cumsum(self._sorted, dtype=np.float64)])

    def score(self, limit_bytes: int) -> Score:
        """Judge a limit."""
        below = int(np.searchsorted(self._sorted, limit_bytes))
        spare = (limit_bytes * below - self._sums[below]) / HALF / GIB
        return Score(int((self._most > limit_bytes).sum()), float(spare))


# ---- the baselines -----------------------------------------------------------------------------------------------


def krr_memory(seen: NDArray[np.int64], margin: float = 0.15) -> int:
    """Return krr's request and limit of memory, in whole MiB."""
    return max(100, math.ceil(int(seen.max()) * (1 + margin) / MIB)) * MIB


def krr_cpu(milli: NDArray[np.int64]) -> int:
    """Return krr's request of CPU: of the pods' 95th percentiles, interpolated as Prometheus does, the highest."""
    return max(10, math.ceil(np.quantile(milli, 0.95, axis=1).max()))


class Buckets(NamedTuple):
    """VPA's exponential histogram: each bucket is 5 % wider than the one before."""

    first: float

    def end_of_percentile(self, values: NDArray[np.float64], weights: NDArray[np.float64], percentile: float) -> float:
        """Return the end of the bucket that the percentile of the weights falls into."""
        buckets = np.where(values < self.first, 0, np.log(values / self.first * 0.05 + 1) / np.log(1.05)).astype(
            np.int64
        )
        order = np.argsort(buckets, kind="stable")
        sums = np.cumsum(weights[order])
        bucket = int(buckets[order][int(np.searchsorted(sums, percentile * sums[-1]))])
        return float(self.first * (1.05 ** (bucket + 1) - 1) / 0.05)


def vpa_memory(trace: Trace, seen: NDArray[np.int64], margin: float = 0.15) -> int:
    """Return VPA's target of memory."""
    days = math.ceil(seen.shape[1] / A_DAY)
    peaks = np.stack([seen[:, day * A_DAY : (day + 1) * A_DAY].max(axis=1) for day in range(days)], axis=1)
    peaks = peaks.astype(np.float64)
    if trace.oom_kills:
        # A container that hits its limit is OOM-killed that day.
        bumped = max(trace.limit_bytes * 1.2, trace.limit_bytes + 100 * MIB)
        peaks = np.where(peaks >= trace.limit_bytes, bumped, peaks)
    weights = np.tile(2.0 ** np.arange(days), (len(peaks), 1))
    target = Buckets(1e7).end_of_percentile(peaks.ravel(), weights.ravel(), 0.9)
    return int(max(250 * MIB, target * (1 + margin)))


def vpa_cpu(milli: NDArray[np.int64]) -> int:
    """Return VPA's target of CPU."""
    age_days = np.arange(milli.shape[1]) / A_DAY
    weights = np.tile(2.0**age_days, (len(milli), 1))
    cores = Buckets(0.01).end_of_percentile((milli / 1000).ravel(), weights.ravel(), 0.9)
    return max(25, math.ceil(cores * 1.15 * 1000))


# ---- ours --------------------------------------------------------------------------------------------------------


def usage_of(trace: Trace, seen: NDArray[np.int64], milli: NDArray[np.int64]) -> UsageHistory:
    """Return what ``advise`` would read of it."""
    times_us = tuple(range(0, seen.shape[1] * STEP_US, STEP_US))
    replicas = tuple(Replica(tuple(row.tolist()), times_us) for row in seen)
    memory = tuple(value for replica in replicas for value in replica.memory_bytes)
    return UsageHistory(
        memory_bytes=memory,
        cpu_milli=tuple(milli.ravel().tolist()),
        oom_kills=trace.oom_kills,
        replicas=replicas,
        coverage=coverage_of([times_us] * len(replicas), len(memory), are_dates=False),
    )


def today(trace: Trace) -> ResourceRequirements:
    """Return what it requests and is limited to now."""
    amounts = {MEMORY: Quantity.of_units(trace.limit_bytes, "BinarySI")}
    return ResourceRequirements(requests=amounts, limits=amounts)


def evidence(usage: UsageHistory, trace: Trace) -> MemoryEvidence:
    """Return what of the usage decides."""
    found = evidence_of(memory_seen(usage, today(trace)))
    assert found is not None
    return found


# ---- the comparison ----------------------------------------------------------------------------------------------


class Beaten(NamedTuple):
    """What ours comes to at a baseline's kills, or memory; None where our curve does not get there."""

    value: float | None
    is_better: bool
    gives_up: bool = False
    """Whether only by giving up rare peaks, which podqos never advises."""


class Family:
    """Scores of all methods on the traces of one family, added up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.containers = 0
        self.needed_gib = 0.0
        self.points: dict[str, Score] = {}
        self.curves: dict[str, list[Score]] = {}

    def add(self, method: str, score: Score) -> None:
        """Add what a method does with its defaults."""
        self.points[method] = self.points.get(method, Score(0, 0)) + score

    def add_curve(self, method: str, scores: Iterable[Score]) -> None:
        """Add what it does with all margins."""
        before = self.curves.get(method)
        found = list(scores)
        self.curves[method] = found if before is None else [a + b for a, b in zip(before, found, strict=True)]

    def at_kills(self, base: Score) -> Beaten:
        """Return the least that we reserve with no more kills."""
        least = [
            min((score.reserved_gib for score in self.curves[curve] if score.killed <= base.killed), default=math.inf)
            for curve in ("podqos", "giving up")
        ]
        return _beaten(least, base.reserved_gib)

    def at_reservation(self, base: Score) -> Beaten:
        """Return the fewest that we kill with no more memory."""
        fewest = [
            min(
                (score.killed for score in self.curves[curve] if score.reserved_gib <= base.reserved_gib),
                default=math.inf,
            )
            for curve in ("podqos", "giving up")
        ]
        return _beaten(fewest, base.killed)


def _beaten(found: Sequence[float], theirs: float) -> Beaten:
    """Return what podqos can advise, or, only where that is no better, what it could if it gave up rare peaks."""
    advised, given_up = found
    if advised < theirs or given_up >= min(advised, theirs):
        return Beaten(None if advised == math.inf else advised, is_better=advised < theirs)
    return Beaten(given_up, is_better=True, gives_up=True)


def judge_cpu(trace: Trace, request_milli: int, limit_milli: int | None = None) -> NDArray[np.float64]:
    """Return sums of starved samples, spare cores, throttled samples, and samples."""
    later = trace.cpu_milli[:, HALF:]
    throttled = 0 if limit_milli is None else int((later > limit_milli).sum())
    spare = np.maximum(0, request_milli - later).sum() / HALF / 1000
    return np.array([int((later > request_milli).sum()), spare, throttled, later.size], dtype=np.float64)


class Comparison:
    """All families."""

    def __init__(self) -> None:
        self.families = {name: Family(name) for name in (*FAMILIES, "all")}
        self.short: dict[str, Score] = {}
        self.cpu: dict[str, NDArray[np.float64]] = {}

    def take(self, trace: Trace) -> None:
        """Size and judge one workload."""
        judge = Judge(trace)
        seen, milli = trace.seen_bytes, trace.cpu_milli[:, :HALF]
        usage = usage_of(trace, seen, milli)
        shown = evidence(usage, trace)
        sized = size(usage, QOSClass.GUARANTEED, BurstPattern.STEADY, today(trace)).resources
        points = {
            "krr": judge.score(krr_memory(seen)),
            "VPA": judge.score(vpa_memory(trace, seen)),
            "podqos": judge.score(sized.limits[MEMORY].value),
            "today": judge.score(trace.limit_bytes),
        }
        curves = {
            "krr": [judge.score(krr_memory(seen, margin)) for margin in MARGINS],
            "VPA": [judge.score(vpa_memory(trace, seen, margin)) for margin in MARGINS],
            "podqos": [judge.score(need_by(shown, Caution(worth)).need_bytes) for worth in WORTHS],
            "giving up": [
                judge.score(need_by(shown, Caution(worth, gives_up_rare_peaks=True)).need_bytes) for worth in WORTHS
            ],
        }
        for family in (self.families[trace.family], self.families["all"]):
            family.containers += trace.replicas
            family.needed_gib += float(trace.demand_bytes[:, HALF:].mean(axis=1).sum()) / GIB
            for method, score in points.items():
                family.add(method, score)
            for method, scores in curves.items():
                family.add_curve(method, scores)
        self._take_short(trace, judge)
        self._take_cpu(trace, usage, sized)

    def _take_short(self, trace: Trace, judge: Judge) -> None:
        seen, milli = trace.seen_bytes[:, -SHORT:], trace.cpu_milli[:, HALF - SHORT : HALF]
        usage = usage_of(trace, seen, milli)
        sized = size(usage, QOSClass.GUARANTEED, BurstPattern.STEADY, today(trace)).resources
        limits = {
            "krr": krr_memory(seen),
            "VPA": vpa_memory(trace, seen),
            "podqos": sized.limits[MEMORY].value,
            "today": trace.limit_bytes,
        }
        for method, limit in limits.items():
            self.short[method] = self.short.get(method, Score(0, 0)) + judge.score(limit)

    def _take_cpu(self, trace: Trace, usage: UsageHistory, guaranteed: ResourceRequirements) -> None:
        milli = trace.cpu_milli[:, :HALF]
        burstable = size(usage, QOSClass.BURSTABLE, BurstPattern.STEADY, today(trace)).resources
        limit = guaranteed.limits[CPU].milli_value
        sums = {
            "krr": judge_cpu(trace, krr_cpu(milli)),
            "VPA": judge_cpu(trace, vpa_cpu(milli)),
            "podqos": judge_cpu(trace, burstable.requests[CPU].milli_value),
            "podqos, Guaranteed": judge_cpu(trace, limit, limit),
        }
        for method, found in sums.items():
            self.cpu[method] = self.cpu.get(method, np.zeros(4)) + found


def compare(seeds: Sequence[int], families: Sequence[str], workloads: int) -> Comparison:
    comparison = Comparison()
    for seed in seeds:
        for trace in traces(seed, tuple(families), workloads):
            comparison.take(trace)
    return comparison


# ---- what is printed ---------------------------------------------------------------------------------------------


def tables(comparison: Comparison) -> list[str]:
    """Return the tables for bench/RESULTS.md."""
    columns = ["containers", "krr", "VPA", "podqos"]
    columns += ["at krr's kills", "at krr's memory", "at VPA's kills", "at VPA's memory"]
    lines = [f"| traces | {' | '.join(columns)} |", "|---" + "|---:" * len(columns) + "|"]
    lines += [_row(family) for family in comparison.families.values() if family.containers]
    lines += ["", "| six hours of history, all traces | OOM-killed | reserved beyond need |", "|---|---:|---:|"]
    lines += [
        f"| {name} | {score.killed:,} | {score.reserved_gib:,.0f}Gi |" for name, score in comparison.short.items()
    ]
    lines += ["", "| CPU | time above the request | throttled | requested beyond use |", "|---|---:|---:|---:|"]
    for name, (starved, spare, throttled, of) in comparison.cpu.items():
        lines.append(f"| {name} | {starved / of:.2%} | {throttled / of:.3%} | {spare:,.0f} cores |")
    return lines


def _row(family: Family) -> str:
    cells = [f"{score.killed:,} / {score.reserved_gib:,.0f}Gi" for score in _shown(family)]
    for base in (family.points["krr"], family.points["VPA"]):
        reserved, killed = family.at_kills(base), family.at_reservation(base)
        cells += [_cell(reserved, "{:,.0f}Gi", base.reserved_gib), _cell(killed, "{:,.0f} kills")]
    name = f"**{family.name}**" if family.name == "all" else family.name
    return f"| {name} | {family.containers:,} | {' | '.join(cells)} |"


def _cell(beaten: Beaten, text: str, of: float | None = None) -> str:
    if beaten.value is None:
        return "–"
    less = "" if of is None else f" ({beaten.value / of - 1:+.0%})"
    return text.format(beaten.value) + less + ("†" if beaten.gives_up else "")


def _shown(family: Family) -> list[Score]:
    return [family.points[name] for name in ("krr", "VPA", "podqos")]


def losses(comparison: Comparison) -> list[str]:
    """Return where a baseline is at least as good as our curve."""
    found = []
    for family in comparison.families.values():
        for name in ("krr", "VPA") if family.containers else ():
            base = family.points[name]
            if not family.at_kills(base).is_better:
                found.append(f"{family.name}: with {name}'s {base.killed} kills we do not reserve less")
            if not family.at_reservation(base).is_better and base.killed:
                found.append(f"{family.name}: with {name}'s memory we do not kill fewer than {base.killed}")
    return found


def panels(comparison: Comparison) -> list[Panel]:
    """Return the pictures' data: kills in percent of containers over memory in percent of need."""

    def scaled(family: Family, scores: Sequence[Score]) -> list[tuple[float, float]]:
        return [
            (100 * score.reserved_gib / family.needed_gib, 100 * score.killed / family.containers) for score in scores
        ]

    return [
        Panel(
            name,
            [
                Curve(method, scaled(family, family.curves[method]), scaled(family, [family.points[method]])[0])
                for method in ("krr", "VPA", "podqos")
            ]
            + [Curve("giving up", scaled(family, family.curves["giving up"]), None)],
        )
        for name, family in comparison.families.items()
    ]


def write(lines: Sequence[str], comparison: Comparison) -> None:
    (ROOT / "docs/pictures/advise.svg").write_text(picture(panels(comparison)))
    results = ROOT / "bench/RESULTS.md"
    text = results.read_text()
    begin, end = "<!-- advise: tables -->\n", "<!-- advise: end -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert after, "RESULTS.md has no place for the tables"
    results.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="draw these traces instead of the held-out ones")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="only traces of these families")
    parser.add_argument("--workloads", type=int, default=WORKLOADS, help="of each family and seed")
    parser.add_argument("--write", action="store_true", help="renew docs/pictures/advise.svg and bench/RESULTS.md")
    options = parser.parse_args(arguments)
    began = time.process_time()
    comparison = compare(options.seed or HELD_OUT, options.family or FAMILIES, options.workloads)
    lines = tables(comparison)
    print("\n".join(lines))
    lost = losses(comparison)
    print("\n" + ("\n".join(lost) if lost else "no losses: at every baseline's point, in every family, ours is better"))
    print(f"worth of one OOM kill: {USUAL.worth_bytes / GIB:.0f}Gi; {time.process_time() - began:.0f} s of CPU time")
    whole = comparison.families["all"].points
    if options.seed is None and options.family is None and options.workloads == WORKLOADS:
        record("advise: kills, ours / krr", whole["podqos"].killed / whole["krr"].killed, "ratio")
        record("advise: reserved, ours / krr", whole["podqos"].reserved_gib / whole["krr"].reserved_gib, "ratio")
    if options.write:
        write(lines, comparison)
    return 0


if __name__ == "__main__":
    sys.exit(main())
