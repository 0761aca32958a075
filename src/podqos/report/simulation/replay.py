"""What became of recorded usage, and of a cluster as it is now, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.sim.scenario_format.recorded_usage import Replayed
from podqos.wording import counted

_MOST_NAMES = 10


def replay_lines(told: Replayed) -> Iterator[str]:
    """Yield what the scenario holds, and what it leaves out."""
    yield f"{counted(told.pods, 'pod')} of {counted(told.workloads, 'workload')} with {told.kept:,} samples"
    if told.kept < told.samples:
        off = f"off by at most {float(told.tolerance * 100):g} %" if told.tolerance else "exact"
        yield f"{told.samples - told.kept:,} of {told.samples:,} samples are left out; the curves are {off}"
    for what, count in told.irregular.items():
        yield f"{counted(count, 'sample')}: {what.value}"
    if told.unplaced:
        yield f"node unknown, so the scheduler places: {counted(told.unplaced, 'pod')}"
    for name, why in list(told.unmatched.items())[:_MOST_NAMES]:
        yield f"left out: {name}: {why}"
    if len(told.unmatched) > _MOST_NAMES:
        yield f"left out: {len(told.unmatched) - _MOST_NAMES:,} more"
    if told.without_samples:
        some = ", ".join(told.without_samples[:_MOST_NAMES])
        more = len(told.without_samples) - _MOST_NAMES
        yield f"no samples, so they do not run: {some}" + (f" and {more:,} more" if more > 0 else "")


def cluster_lines(nodes: int, pods: int, sources: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield what a scenario of a cluster holds; ``sources`` says how many pods use what whom says."""
    yield f"{counted(pods, 'pod')} on {counted(nodes, 'node')}"
    for source, count in sorted(sources):
        yield f"usage of {counted(count, 'pod')}: {source}"
