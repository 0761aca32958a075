"""A run in the terminal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.controls import own
from podqos.eviction.signals import Signal
from podqos.report.simulation.timeline import csv_table, seconds, timeline
from podqos.report.text.style import Style, visible_length
from podqos.sim.node.recording import ThresholdLine
from podqos.sim.series import SignalSeries
from podqos.words.outcome import headline
from report.runs import BATCH, GI, MI, NODE, RUN, WEB, event

PLAIN = Style()


def _lines(run=RUN, style=PLAIN):
    return timeline(run, style)


def _line(text, lines):
    (found,) = [line for line in lines if text in line]
    return found


def test_who_was_killed_by_whom_when_and_at_which_place():
    lines = _lines()
    kernel = _line("logs (main) OOM-killed", lines)
    assert "1.000 s" in kernel
    assert "◆" in kernel
    assert "(BestEffort)" in kernel
    assert "OOM kill order #1, eviction order #2" in kernel
    assert "●" in _line("batch evicted by the kubelet", lines)


def test_a_kill_is_followed_by_its_reasons_and_by_what_would_have_saved_the_pod():
    lines = [line.strip() for line in _lines()]
    at = next(index for index, line in enumerate(lines) if "OOM-killed (" in line)
    assert lines[at + 1 : at + 3] == [
        "The machine had no memory left of 8Gi.",
        "saved by: use 300Mi less → ns/batch would have been killed instead",
    ]


def test_where_nothing_saves_a_pod_that_is_not_said_of_what_does_not():
    useless = replace(RUN.kills[0], savings=(replace(RUN.kills[0].savings[0], saves=False),))
    lines = [line.strip() for line in _lines(replace(RUN, kills=(useless, *RUN.kills[1:])))]
    assert "not saved by: use 300Mi less → ns/batch would have been killed instead" in lines
    assert not [line for line in lines if line.startswith("saved by")]


def test_memory_is_told_once_a_time_and_at_a_kill_as_it_was_just_before():
    lines = _lines()
    assert "nothing left" in _line("OOM-killed (", lines)
    assert "90Mi left" in _line("MemoryPressure begins", lines)
    assert "left" not in _line("evicted by the kubelet (", lines)


@pytest.mark.parametrize(
    ("signal", "left", "expected"),
    [
        (Signal.NODEFS, 12 * GI, "12Gi disk left"),
        (Signal.NODEFS, 12 * GI + 512 * MI, "12.5Gi disk left"),
        (Signal.NODEFS_INODES, 2_000_000, "2,000,000 inodes left"),
        (Signal.PID, 2205, "2,205 pids left"),
    ],
)
def test_where_the_story_is_of_a_disk_or_of_process_ids_that_is_what_is_left(signal, left, expected):
    series = SignalSeries(signal, 128 * GI, (left,) * len(NODE.times_us))
    threshold = ThresholdLine(signal, True, left + 1, 0, f"{signal} < 1")
    node = replace(NODE, panels=(signal.value,), signals=(series,), thresholds=(*NODE.thresholds, threshold))
    lines = _lines(replace(RUN, nodes=(node,)))
    assert expected in _line("MemoryPressure begins", lines)
    assert f"; {signal} < 1" in _line("8Gi, 4 cores", lines)


def test_where_the_story_is_of_cpu_what_is_wanted_is_told():
    lines = _lines(replace(RUN, nodes=(replace(NODE, panels=("cpu",)),)))
    assert "█░" in _line("MemoryPressure begins", lines)
    assert "2 cores wanted" in _line("MemoryPressure begins", lines)


def test_pods_that_get_their_cpu_again_are_no_longer_short_of_it():
    short = [event(2_000_000, Kind.THROTTLED, "wants CPU", each) for each in (WEB, BATCH)]
    again = [replace(each, time_us=3_000_000, is_over=True) for each in short]
    lines = _lines(replace(RUN, events=(*short, *again), kills=()))
    assert _line("2.000 s", lines).endswith("  short of CPU: web, batch")
    assert _line("3.000 s", lines).endswith("  no longer short of CPU: web, batch")


def test_pods_that_start_together_share_a_line_and_housekeeping_has_none():
    lines = _lines()
    assert "started: web, logs, batch" in _line("started", lines)
    assert not [line for line in lines if "admitted" in line]


def test_the_end_counts_per_workload_level_and_signal():
    lines = _lines()
    assert headline(RUN.summary) in lines
    assert "OOM kills by limit reached: node 1" in lines
    assert "evictions by signal: memory.available 1" in lines
    assert _line("ns/logs ", lines).split() == ["ns/logs", "BestEffort", "0", "0/1", "1", "–", "–", "19.0", "s", "–"]


def test_of_many_nodes_it_is_said_how_many_are_left_out():
    many = replace(RUN, summary=replace(RUN.summary, nodes=1000))
    assert "1 of 1,000 nodes are shown above; --node NAME shows another" in _lines(many)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_can_be_wrapped_stays_within_the_width(width):
    long = replace(RUN, kills=tuple(replace(kill, reasons=("word " * 60,)) for kill in RUN.kills))
    lines = _lines(long, Style(width=width))
    assert max(visible_length(line) for line in lines if "word" in line) <= width


def test_colour_changes_nothing_but_colour():
    coloured = _lines(style=Style(colour=True))
    assert any(own("\x1b[") in line for line in coloured)
    assert [visible_length(line) for line in coloured] == [len(line) for line in _lines()]


def test_a_node_without_a_recording_still_tells_what_happened():
    bare = replace(NODE, times_us=(), available_bytes=(), free_bytes=(), system_bytes=(), pods=())
    assert "OOM-killed" in "\n".join(_lines(replace(RUN, nodes=(bare,))))


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (1_000_000, "1.000 s"),
        (119_999_000, "119.999 s"),
        (120_000_000, "2 min"),
        (125_500_000, "2 min 5.5 s"),
        (12_000_000_000, "3 h 20 min"),
    ],
)
def test_times_are_for_people(time_us, text):
    assert seconds(time_us) == text


def test_csv_has_a_row_per_workload():
    rows = list(csv_table(RUN.summary)[1])
    assert [row[0] for row in rows] == ["ns/web", "ns/logs", "ns/batch"]
    assert rows[1][5:10] == (1, 0, 0, 0, 19.0)
