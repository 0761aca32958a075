"""How much history advice rests on, in one line."""

from __future__ import annotations

from podqos.advice.sizing.coverage import LEAST_SAMPLES, LEAST_SECONDS, MOST_MISSING_PERCENT, Coverage, Shortfall
from podqos.model.time_units import SECOND_US
from podqos.wording import counted
from podqos.words.durations import two_units

SHORTFALLS = {
    Shortfall.FEW_SAMPLES: f"fewer than {LEAST_SAMPLES} samples",
    Shortfall.SHORT_HISTORY: f"less than {LEAST_SECONDS // 3600} hours",
    Shortfall.GAPS: f"more than {MOST_MISSING_PERCENT} % of the time is missing",
    Shortfall.RECOMMENDATION: "what a VerticalPodAutoscaler recommends, not what was measured",
    Shortfall.UNKNOWN_LENGTH: "samples have no times",
}


def coverage_line(coverage: Coverage) -> str:
    """Return ``7 d 0 h of history, 6,051 samples of 3 replicas, no gaps``; where that is too little, why.

    It continues "based on".
    """
    if Shortfall.RECOMMENDATION in coverage.shortfalls:
        return SHORTFALLS[Shortfall.RECOMMENDATION]
    if not coverage.samples:
        return "no samples"
    of = f"{counted(coverage.samples, 'sample')} of {counted(coverage.replicas, 'replica')}"
    if coverage.seconds is None:
        line = f"history of unknown length, {of}"
    elif coverage.samples == 1:
        line = "one sample"
    else:
        gaps = "no gaps"
        if coverage.gaps:
            longest = two_units(coverage.longest_gap_seconds * SECOND_US)
            gaps = f"{counted(coverage.gaps, 'gap')}, the longest {longest}"
        line = f"{two_units(coverage.seconds * SECOND_US)} of history, {of}, {gaps}"
    if not coverage.is_provisional:
        return line
    return f"{line}; too little: {', '.join(SHORTFALLS[shortfall] for shortfall in coverage.shortfalls)}"
