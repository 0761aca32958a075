"""A run as a still picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from podqos.report.simulation.svg import run_svg
from report.runs import NODE, RUN, series

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
    assert picture.count("<circle") == 2, "one in the legend, one for the eviction"


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
