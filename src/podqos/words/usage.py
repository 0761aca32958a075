"""How much history advice rests on, in one line. Why that is too little is a doubt of the advice (``words.advice``)."""

from __future__ import annotations

from podqos.advice.sizing.coverage import Coverage, Shortfall
from podqos.model.time_units import SECOND_US
from podqos.wording import counted
from podqos.words.durations import two_units


def coverage_line(coverage: Coverage) -> str:
    """Return ``7 d 0 h of history, 6,051 samples of 3 replicas, no gaps``: it continues "based on"."""
    if Shortfall.RECOMMENDATION in coverage.shortfalls:
        return "a VerticalPodAutoscaler's recommendation, not measurements"
    if coverage.samples <= 1:
        return "one sample" if coverage.samples else "no samples"
    of = f"{counted(coverage.samples, 'sample')} of {counted(coverage.replicas, 'replica')}"
    if coverage.seconds is None:
        return f"{of}, without times"
    gaps = "no gaps"
    if coverage.gaps:
        longest = two_units(coverage.longest_gap_seconds * SECOND_US)
        gaps = f"{counted(coverage.gaps, 'gap')}, the longest {longest}"
    return f"{two_units(coverage.seconds * SECOND_US)} of history, {of}, {gaps}"
