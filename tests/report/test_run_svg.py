"""A run as a still picture."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.answers.run_story import RunSpan, drawn_until_us
from podqos.report.simulation.marks import rail
from podqos.report.simulation.plot import plots_of
from podqos.report.simulation.svg import run_svg
from podqos.sim.node.recording import LookSpan
from report.runs import GI, KILLED, LOGS, NODE, RUN, event, series

SVG = "{http://www.w3.org/2000/svg}"


def _texts(picture):
    return ["".join(each.itertext()) for each in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_it_names_the_pods_the_thresholds_and_the_outcome():
    texts = " ".join(_texts(run_svg(RUN, NODE)))
    for expected in ("small", "web", "logs", "batch", "hard: memory.available < 100Mi", "the kernel kills at 64Mi"):
        assert expected in texts


def test_every_kill_has_a_numbered_mark_in_the_shape_of_who_did_it():
    picture = run_svg(RUN, NODE)
    assert re.findall(r'font-weight="700"[^>]*>(\d+)<', picture) == ["1", "2"]
    assert picture.count("<circle") == 3, "in the legend, above the panels, and where the pod ends"


def test_every_victim_is_named_with_the_reason():
    texts = _texts(run_svg(RUN, NODE))
    for pod, cause in (("logs", "all 8Gi of the machine used"), ("batch", "memory.available 90Mi < 100Mi")):
        assert texts[texts.index(cause) - 1] == pod


def test_what_happens_again_is_told_once_with_how_often():
    again = replace(RUN, kills=tuple(replace(KILLED, time_us=time_us) for time_us in (1_000_000, 5_000_000, 9_000_000)))
    texts = _texts(run_svg(again, NODE))
    assert "logs ×3" in texts
    assert texts.count(KILLED.cause) == 1


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


def test_every_look_of_the_kubelet_is_a_tick_and_many_are_a_band():
    looks = (LookSpan(0, 10_000_000), LookSpan(11_000_000, 11_000_000))
    (ticks,) = re.findall(r'd="((?:M[\d.]+ [\d.]+v12){2})"', run_svg(RUN, replace(NODE, looks=looks)))
    assert [float(each.split()[0]) for each in ticks.split("M")[1:]] == [70, 623]
    day = replace(RUN, end_us=86_400_000_000, kills=())
    picture = run_svg(day, replace(NODE, looks=(LookSpan(0, 86_400_000_000),)))
    assert "v12M" not in picture
    assert 'opacity=".45"' in picture


STORIES = [
    pytest.param((), 0, 100, id="nothing happened"),
    pytest.param((10,), 12, 17, id="all is over soon"),
    pytest.param((10, 12), 60, 100, id="an outage lasts"),
    pytest.param((10,), 40, 45, id="a condition lasts"),
]


@pytest.mark.parametrize(("kills", "ends", "until"), STORIES)
def test_a_picture_does_not_end_before_the_story(kills, ends, until):
    assert drawn_until_us(RunSpan(100, kills), ends) == until


def test_victims_that_are_not_marked_are_counted():
    later = event(15_000_000, Kind.EVICTED, "web evicted by the kubelet", RUN.pods[0])
    assert "later victims not marked: 1" in _texts(run_svg(replace(RUN, events=(*RUN.events, later)), NODE))
    assert not any("not marked" in words for words in _texts(run_svg(RUN, NODE)))


def test_only_the_panels_of_the_story_are_drawn():
    assert not any(words.startswith("CPU granted") for words in _texts(run_svg(RUN, NODE)))
    texts = _texts(run_svg(RUN, replace(NODE, panels=("cpu",))))
    assert any(words.startswith("CPU granted") for words in texts)
    assert not any(words.startswith("Memory ") for words in texts)


def test_pods_that_were_short_of_cpu_have_a_line_of_their_share_and_a_mark_where_they_ran():
    picture = run_svg(RUN, replace(NODE, panels=("cpu",)))
    texts = _texts(picture)
    assert any(words.startswith("CPU share") for words in texts)
    assert any(words.endswith(": 50 %") for words in texts)
    assert any("red: short of CPU" in words for words in texts)


def test_pods_that_got_all_their_cpu_have_neither():
    enough = tuple(replace(series, cpu_granted_milli=series.cpu_wanted_milli) for series in NODE.pods)
    texts = _texts(run_svg(RUN, replace(NODE, pods=enough, panels=("cpu",))))
    assert not any("CPU share" in words or "short of CPU" in words for words in texts)


def test_the_limit_of_all_pods_is_drawn_where_pods_reach_it_on_top_of_the_system():
    """The system grows from 1Gi to 2Gi, and pods may use 5Gi."""
    picture = run_svg(RUN, replace(NODE, pods_limit_bytes=5 * GI, system_bytes=(GI, GI, GI, GI, GI, 2 * GI)))
    (path,) = re.findall(r'd="(M[^"]*)" fill="none" stroke="#1b2430"', picture)
    heights = [float(point.split()[1]) for point in path[1:].split("L")]
    (capacity,) = map(float, re.findall(r'd="M70 ([\d.]+)L1176 \1" stroke="#1b2430"', picture))
    of_all = 300 / 8
    assert (heights[0], heights[-1]) == (capacity + 2 * of_all, capacity + of_all)
    assert "limit of all pods, 5Gi" in _texts(picture)


def test_a_limit_of_all_pods_beyond_the_machine_is_not_drawn():
    picture = run_svg(RUN, replace(NODE, pods_limit_bytes=8 * GI))
    assert not any("limit of all pods" in words for words in _texts(picture))


def test_kills_too_close_to_tell_apart_share_a_mark():
    together = replace(RUN, kills=tuple(replace(kill, time_us=10_000_000) for kill in RUN.kills))
    assert "2×" in _texts(run_svg(together, NODE))


def test_names_cannot_break_the_picture():
    odd = replace(RUN, name="<b> & co")
    assert "<b> & co" in _texts(run_svg(odd, NODE))


def test_the_same_run_gives_the_same_bytes():
    assert run_svg(RUN, NODE) == run_svg(RUN, NODE)


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


def test_a_run_without_kills_shows_all_of_it():
    quiet = replace(RUN, kills=())
    assert "20 s" in _texts(run_svg(quiet, NODE))
