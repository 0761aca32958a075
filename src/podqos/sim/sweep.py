"""A scenario under many values and seeds: the plan of all runs, what is kept of each, and the statistics over all.

Runs are independent, so they can execute anywhere and in any order. ``library`` starts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.time_units import SECOND_US
from podqos.sim.variation import Assignment, Varied


class Point(Struct, frozen=True):
    """One run of a sweep."""

    assignments: tuple[Assignment, ...]
    seed: int | None

    @property
    def values(self) -> tuple[str, ...]:
        """The values alone, in the order of the parameters."""
        return tuple(value for _, value in self.assignments)


class WorkloadResult(Struct, frozen=True, gc=False, rename="camel"):
    """How a workload fared in a run."""

    pods: int
    untouched: int
    oom_kills: int
    evictions: int
    restarts: int
    downtime_us: int
    never_ran: int = 0
    """As in ``WorkloadSummary``, like all others."""
    waited: int = 0
    throttled: int = 0
    refused: int = 0
    mean_share: float = 1.0
    """What its slowed pods got of the CPU they wanted, as in ``CpuOutcome``."""
    least_share: float = 1.0

    @property
    def survived(self) -> bool:
        """Whether all its pods ran and none was interrupted; some may have waited, or been short of something."""
        slowed = self.waited + self.throttled + self.refused
        return self.untouched + slowed == self.pods and not self.never_ran


class RunResult(Struct, frozen=True):
    """What is kept of a run."""

    values: tuple[str, ...]
    seed: int | None
    workloads: dict[str, WorkloadResult]
    oom_kills: int
    evictions: int
    first_us: int | None = None
    """When the first pod was killed or evicted."""
    first_workload: str | None = None
    first_by: str | None = None


class Distribution(Struct, frozen=True, gc=False, rename="camel"):
    """How a figure is distributed over runs."""

    least: float
    median: float
    p95: float
    most: float
    mean: float


class WorkloadSurvival(Struct, frozen=True, rename="camel"):
    """How a workload fares under one choice of values, over all seeds."""

    workload: str
    survived: float
    """The share of runs in which all its pods ran and none was interrupted."""
    oom_kills: Distribution
    evictions: Distribution
    never_ran: Distribution
    downtime_seconds: Distribution
    mean_share: Distribution = Distribution(1, 1, 1, 1, 1)
    """The share of the CPU they wanted that its slowed pods got: 1 where none was slowed."""
    least_share: Distribution = Distribution(1, 1, 1, 1, 1)
    """The least share of what it wanted that a container got at any time of a run."""


class Combination(Struct, frozen=True, rename="camel"):
    """One choice of values."""

    values: tuple[str, ...]
    """In the order of the parameters."""
    runs: int
    kernel_first: float
    """The share of runs in which the kernel acted first; in the rest the kubelet did, or neither."""
    kubelet_first: float
    first_victims: dict[str, float]
    """The share of runs in which a workload lost the first pod."""
    oom_kills: Distribution
    evictions: Distribution
    workloads: tuple[WorkloadSurvival, ...]
    never_ran: Distribution = Distribution(0, 0, 0, 0, 0)
    """Pods that could not be placed, or were rejected."""


class Sweep(Listing[Combination], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos simulate --vary … -o json``. Fields are added, never renamed or removed."""

    scenario: str
    parameters: tuple[str, ...]
    runs: int
    combinations: tuple[Combination, ...]
    assumptions: tuple[Assumption, ...] = ()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Sweep"
    placement_held: bool = False
    """Whether what pods may request was the scenario's own, whatever settings of kubelets were varied."""

    def _listed(self) -> tuple[Combination, ...]:
        return self.combinations


def plan(varied: Sequence[Varied], seeds: Sequence[int] = ()) -> Iterator[Point]:
    """Yield every combination of values under every seed; without seeds, under the scenario's own."""
    for values in product(*(each.values for each in varied)):
        assignments = tuple((each.parameter, value) for each, value in zip(varied, values, strict=True))
        for seed in seeds or (None,):
            yield Point(assignments, seed)


def combinations(results: Iterable[RunResult]) -> tuple[Combination, ...]:
    """Group the runs by values, in the order in which these first appear."""
    groups: dict[tuple[str, ...], list[RunResult]] = {}
    for result in results:
        groups.setdefault(result.values, []).append(result)
    return tuple(_combination(values, runs) for values, runs in groups.items())


def _combination(values: tuple[str, ...], runs: Sequence[RunResult]) -> Combination:
    fallen = Counter(run.first_workload for run in runs if run.first_workload is not None)
    most_first = sorted(fallen, key=lambda name: (-fallen[name], name))
    names = dict.fromkeys(name for run in runs for name in run.workloads)
    return Combination(
        values=values,
        runs=len(runs),
        kernel_first=sum(run.first_by == "kernel" for run in runs) / len(runs),
        kubelet_first=sum(run.first_by == "kubelet" for run in runs) / len(runs),
        first_victims={name: fallen[name] / len(runs) for name in most_first},
        oom_kills=distribution([run.oom_kills for run in runs]),
        evictions=distribution([run.evictions for run in runs]),
        workloads=tuple(
            _survival(name, [run.workloads[name] for run in runs if name in run.workloads]) for name in names
        ),
        never_ran=distribution([sum(workload.never_ran for workload in run.workloads.values()) for run in runs]),
    )


def _survival(name: str, results: Sequence[WorkloadResult]) -> WorkloadSurvival:
    return WorkloadSurvival(
        name,
        sum(result.survived for result in results) / len(results),
        oom_kills=distribution([result.oom_kills for result in results]),
        evictions=distribution([result.evictions for result in results]),
        never_ran=distribution([result.never_ran for result in results]),
        downtime_seconds=distribution([result.downtime_us / SECOND_US for result in results]),
        mean_share=distribution([result.mean_share for result in results]),
        least_share=distribution([result.least_share for result in results]),
    )


def distribution(figures: Sequence[float]) -> Distribution:
    """Return how figures are distributed; a percentile is the figure that this share does not exceed."""
    ordered = sorted(figures)

    def percentile(percent: int) -> float:
        return ordered[-(-len(ordered) * percent // 100) - 1]

    return Distribution(ordered[0], percentile(50), percentile(95), ordered[-1], sum(ordered) / len(ordered))
