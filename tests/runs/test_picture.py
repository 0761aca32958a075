"""The picture of a run: its layout, its colours, and the SVG."""

from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import msgspec
import pytest
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.amounts import mebibytes
from podqos.model.pod import QOSClass
from podqos.runs.drawing import plots_of, rail, run_svg
from podqos.runs.layout import apart, height_of, linear_axis, logarithmic_axis, node_picture, with_pictures
from podqos.runs.picture import Label, LayerKind, LineKind, Measures
from podqos.runs.view import RunView
from podqos.text.svg import SHADES, shade
from runs.small import EVICTED, GI, KILLED, LOGS, MI, NODE, RUN, event, series


@pytest.mark.parametrize(
    "pod", ["shop/web-0", "shop/web-0-r1", "shop/web-17", "shop/web-x2x4z", "shop/web-5d9c7bd4f-x2x4z"]
)
def test_replicas_have_the_colour_of_their_workload(pod):
    assert shade(QOSClass.BURSTABLE, pod) == shade(QOSClass.BURSTABLE, "shop/web")


def test_a_word_at_the_end_of_a_name_is_not_taken_for_what_a_controller_adds():
    assert len({shade(QOSClass.BURSTABLE, f"shop/{name}") for name in ("search-api", "search-worker", "search")}) > 1


@pytest.mark.parametrize("qos_class", list(QOSClass))
def test_pods_of_a_class_are_spread_over_all_of_its_shades(qos_class):
    found = {shade(qos_class, f"team-{number % 7}/service-{number}-api") for number in range(200)}
    assert found == set(SHADES[qos_class])


def test_no_two_classes_share_a_colour():
    assert len({colour for shades in SHADES.values() for colour in shades}) == sum(map(len, SHADES.values()))


@pytest.mark.parametrize("colour", [colour for shades in SHADES.values() for colour in shades])
def test_a_colour_stands_out_from_a_light_and_from_a_dark_page(colour):
    for page, least in (("#ffffff", 2.0), ("#171e27", 2.5)):
        one, other = sorted((_luminance(colour), _luminance(page)))
        assert (other + 0.05) / (one + 0.05) >= least


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _panel(node, name):
    return next(panel for panel in node_picture(RUN, node).panels if panel.name == name)


def test_panels_are_the_story_then_what_is_hidden_then_rows():
    panels = [(panel.name, panel.is_hidden) for panel in node_picture(RUN, NODE).panels]
    hidden = [("cpu", True), ("cpu-share", True)]
    assert panels == [("memory", False), ("left", False), *hidden, ("conditions", False), ("lifelines", False)]


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


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(8 * GI, ["0", "2Gi", "4Gi", "6Gi", "8Gi"]), (300 * MI, ["0", "64Mi", "128Mi", "192Mi", "256Mi"])],
)
def test_ticks_of_bytes_are_powers_of_two_apart(high, ticks):
    assert [tick.words for tick in linear_axis(high, mebibytes, wanted=5, is_binary=True).ticks] == ticks


def test_a_logarithmic_axis_draws_what_is_below_it_at_its_bottom():
    axis = logarithmic_axis(32 * MI, 8 * GI, mebibytes)
    assert [height_of(axis, 130, value) for value in (0, 512 * MI, 8 * GI)] == [130, 65, 0]


def test_labels_never_lie_on_one_another_or_outside():
    labels = [Label(LineKind.HARD, y, "words") for y in (-20, 5, 6, 7, 129, 400)]
    placed = [label.y for label in apart(labels, 130)]
    assert placed[0] >= 0
    assert placed[-1] <= 130
    assert all(other - one >= Measures().line for one, other in pairwise(placed))


SVG = "{http://www.w3.org/2000/svg}"


def _texts(picture):
    return ["".join(each.itertext()) for each in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_names_of_victims_never_lie_on_one_another():
    kills = tuple(
        replace(KILLED, time_us=1_000_000 + index * 600_000, cause=f"reason {chr(97 + index)}") for index in range(12)
    )
    labels = rail(plots_of(replace(RUN, kills=kills), [NODE])[0]).labels
    assert len(labels) > 3
    for one, other in combinations(labels, 2):
        apart = one.left + one.width < other.left or other.left + other.width < one.left
        assert apart or one.lane != other.lane


def test_a_name_that_fits_nowhere_keeps_its_beginning_and_its_end():
    name = "a" * 200 + "-0"
    key = f"ns/{name}"
    long = replace(RUN, pods=(replace(RUN.pods[0], key=key), *RUN.pods[1:]), kills=(replace(KILLED, pod=key),))
    (victim, row) = [words for words in _texts(run_svg(long, NODE)) if words.startswith("aaa")]
    assert victim.endswith("a-0")
    assert row.endswith("a-0")
    assert "…" in victim
    assert "…" in row


def test_pods_of_the_same_name_are_told_apart_by_their_namespaces():
    twin = replace(RUN, pods=(*RUN.pods, replace(RUN.pods[1], key="other/logs")))
    assert f"{LOGS.key}" in _texts(run_svg(twin, NODE))


def test_a_picture_of_a_part_says_so():
    long, early = replace(RUN, end_us=100_000_000), replace(NODE, drawn_until_us=15_400_000)
    assert "only the first 15.4 s of 100 s are shown" in _texts(run_svg(long, early))
    assert not any("are shown" in words for words in _texts(run_svg(RUN, NODE)))


def test_nodes_lie_below_each_other_over_the_same_time():
    early, late = replace(NODE, drawn_until_us=10_000_000), replace(NODE, name="other", drawn_until_us=15_000_000)
    texts = _texts(run_svg(RUN, early, late))
    assert [texts.index(name) for name in ("node", "other")] == sorted(texts.index(name) for name in ("node", "other"))
    assert "only the first 15.0 s of 20 s are shown" in texts
    assert texts.count("14 s") == 2, "each has the whole axis"


STORIES = [
    pytest.param((), 0, 100, id="nothing happened"),
    pytest.param((10,), 12, 17, id="all is over soon"),
    pytest.param((10, 12), 60, 100, id="an outage lasts"),
    pytest.param((10,), 40, 45, id="a condition lasts"),
]


def test_victims_that_are_not_marked_are_counted():
    later = event(15_000_000, Kind.EVICTED, "web evicted by the kubelet", RUN.pods[0])
    assert "later victims not marked: 1" in _texts(run_svg(replace(RUN, events=(*RUN.events, later)), NODE))
    assert not any("not marked" in words for words in _texts(run_svg(RUN, NODE)))


def test_names_cannot_break_the_picture():
    odd = replace(RUN, name="<b> & co")
    assert "<b> & co" in _texts(run_svg(odd, NODE))


def test_a_long_run_of_many_pods_stays_small():
    times = tuple(range(0, 20_000_000, 10_000))
    values = [(index * 7919) % 4096 * 1024 * 1024 for index in range(len(times))]
    node = replace(
        NODE,
        times_us=times,
        available_bytes=tuple(values),
        free_bytes=tuple(values),
        system_bytes=(1 << 30,) * len(times),
        pods=tuple(series(index % 3, *values) for index in range(30)),
    )
    assert len(run_svg(RUN, node)) < 60_000
