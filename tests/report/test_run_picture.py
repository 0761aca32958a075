"""The layout of a run's picture, from which the still picture and the page both draw."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from podqos.answers.picture.axes import apart, height_of, linear_axis, logarithmic_axis, round_step
from podqos.answers.picture.layout import node_picture, with_pictures
from podqos.answers.run_picture import Label, LayerKind, LineKind, Measures
from podqos.answers.run_view import RunView
from podqos.report.simulation.svg import run_svg
from podqos.wording import mebibytes
from report.runs import EVICTED, GI, KILLED, MI, NODE, RUN


def _panel(node, name):
    return next(panel for panel in node_picture(RUN, node).panels if panel.name == name)


def test_panels_are_the_story_then_what_is_hidden_then_rows():
    panels = [(panel.name, panel.is_hidden) for panel in node_picture(RUN, NODE).panels]
    hidden = [("cpu", True), ("cpu-share", True)]
    assert panels == [("memory", False), ("left", False), *hidden, ("conditions", False), ("lifelines", False)]


def test_the_still_picture_has_the_heights_of_the_layout():
    measures, conditions = Measures(), _panel(NODE, "conditions")
    difference = _height(run_svg(RUN, NODE)) - _height(run_svg(RUN, replace(NODE, conditions=())))
    assert difference == conditions.height + measures.title + measures.gap


def _height(picture):
    return int(picture.partition("viewBox=")[2].split('"')[1].split()[3])


def test_a_stack_has_the_system_at_the_bottom_and_then_the_pods_of_the_node():
    layers = _panel(NODE, "memory").layers
    assert [layer.kind for layer in layers] == [LayerKind.SYSTEM, *[LayerKind.POD] * 3]
    assert [layer.label for layer in layers] == ["system", "web", "batch", "logs"]
    assert {layer.columns for layer in layers[1:]} == {("anonBytes", "activeFileBytes")}


def test_where_most_memory_is_never_used_the_axis_ends_earlier_and_the_note_says_so():
    panel = _panel(replace(NODE, memory_bytes=64 * GI), "memory")
    assert panel.axis.high < 32 * GI
    assert "the axis ends at" in panel.note
    assert panel.height == panel.narrow_height


def test_rows_say_when_a_pod_ran_and_where_it_ended():
    rows = {row.label: row for row in _panel(NODE, "lifelines").rows}
    assert [(span.from_us, span.to_us) for span in rows["batch"].spans] == [(0, 10_000_000)]
    assert [rows[name].victims for name in ("logs", "batch", "web")] == [(0,), (1,), ()]


def test_victims_of_the_same_workload_for_the_same_reason_are_alike():
    again = replace(RUN, kills=(KILLED, EVICTED, replace(KILLED, cause="all 9Gi of the machine used")))
    assert [victim.alike for victim in node_picture(again, NODE).victims] == [0, 1, 0]


def test_pages_have_the_pictures_of_all_nodes_and_other_outputs_have_none():
    shown = with_pictures(replace(RUN, nodes=(NODE, replace(NODE, name="other"))))
    assert [picture.node for picture in shown.pictures] == ["node", "other"]
    assert RUN.pictures == ()
    assert msgspec.json.decode(msgspec.json.encode(shown), type=RunView) == shown


def test_a_node_of_nothing_can_be_drawn():
    empty = replace(NODE, memory_bytes=0, kernel_min_bytes=0, thresholds=(), pods=(), cpu_milli=0)
    assert node_picture(RUN, empty).panels


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(8 * GI, ["0", "2Gi", "4Gi", "6Gi", "8Gi"]), (300 * MI, ["0", "64Mi", "128Mi", "192Mi", "256Mi"])],
)
def test_ticks_of_bytes_are_powers_of_two_apart(high, ticks):
    assert [tick.words for tick in linear_axis(high, mebibytes, wanted=5, is_binary=True).ticks] == ticks


@pytest.mark.parametrize(("rough", "step"), [(0.3, 1), (1, 1), (1.2, 2), (4, 5), (6, 10), (130, 200), (1000, 1000)])
def test_other_steps_are_one_two_or_five(rough, step):
    assert round_step(rough) == step


def test_a_logarithmic_axis_draws_what_is_below_it_at_its_bottom():
    axis = logarithmic_axis(32 * MI, 8 * GI, mebibytes)
    assert [height_of(axis, 130, value) for value in (0, 512 * MI, 8 * GI)] == [130, 65, 0]


def test_labels_never_lie_on_one_another_or_outside():
    labels = [Label(LineKind.HARD, y, "words") for y in (-20, 5, 6, 7, 129, 400)]
    placed = [label.y for label in apart(labels, 130)]
    assert placed[0] >= 0
    assert placed[-1] <= 130
    assert all(other - one >= Measures().line for one, other in pairwise(placed))
