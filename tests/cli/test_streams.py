"""Standard streams while a command runs, and after it."""

from __future__ import annotations

import gc
import io
import sys

from podqos.cli.streams import GuardedStream


def test_a_stream_that_its_owner_closed_before_it_is_collected_is_left_alone(monkeypatch):
    """From Python 3.13 on, what a finalizer cannot flush is reported."""
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    below = io.StringIO()
    guarded = GuardedStream(below)
    guarded.write("text")
    below.close()
    del guarded
    gc.collect()
    assert reported == []


def test_a_stream_that_is_collected_leaves_that_of_its_owner_open():
    below = io.StringIO()
    guarded = GuardedStream(below)
    guarded.write("text")
    guarded.close()
    del guarded
    gc.collect()
    assert below.getvalue() == "text"
