"""The back-test of ``bench/advise.py``, small: sizes of the first week of traces, judged by the second."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = str(Path(__file__).resolve().parents[2] / "bench")


@pytest.fixture
def backtest(monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(BENCH)
    import advise

    yield advise
    for name in ("advise", "advise_picture", "history", "traces"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_fewer_containers_are_oom_killed_with_less_memory_than_by_krr(backtest):
    comparison = backtest.compare((31,), backtest.FAMILIES, 12)
    whole = comparison.families["all"]
    ours, krr, vpa = (whole.points[name] for name in ("podqos", "krr", "VPA"))
    assert ours.killed < min(krr.killed, vpa.killed)
    assert ours.reserved_gib < krr.reserved_gib
    assert whole.at_kills(krr).is_better
    assert whole.at_kills(vpa).is_better
    assert comparison.short["podqos"].killed <= comparison.short["today"].killed


@pytest.mark.slow
def test_a_point_of_the_curve_is_what_advise_says(backtest):
    """The default of the curve is the same as going through the sizing of a container."""
    trace = backtest.traces(7, ("spikes",), 1)
    (own,) = trace
    usage = backtest.usage_of(own, own.seen_bytes, own.cpu_milli[:, : backtest.HALF])
    need = backtest.need_by(backtest.evidence(usage, own))
    sized = backtest.size(usage, backtest.QOSClass.GUARANTEED, backtest.BurstPattern.STEADY, backtest.today(own))
    assert sized.need == need
