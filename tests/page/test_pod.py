"""A pod's neighbours, and what it used over time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.errors import InputError
from podqos.page.history import MOST_POINTS, thinned
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about

PLATFORM = Path(__file__).parents[2] / "scenarios/content-platform"


@pytest.fixture(scope="module")
def page():
    return page_about(read_paths([str(PLATFORM / "platform"), str(PLATFORM / "usage.csv")]))


def test_a_neighbour_has_the_reason_that_rank_says(page):
    for pod in ("batch/analytics-pipeline-0", "production/search-api-0", "batch/content-generator-0"):
        found = page.pod(pod)
        near = {(each.by, each.is_earlier): each for each in found.neighbours}
        if ("kernel", False) in near:
            assert near["kernel", False].text == found.kills[0].reason


def test_the_first_comes_after_none_and_the_last_before_none(page):
    first = page.pod("monitoring/log-collector").neighbours
    assert all(not near.is_earlier for near in first)
    last = page.pod("production/search-api-0").neighbours
    assert [near.is_earlier for near in last if near.by == "kernel"] == [True]


INCIDENT = Path(__file__).parents[2] / "scenarios/content-platform/incident"
GI = 2**30
MEMORY = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}


def _pod(name: str, resources: dict[str, object] | None = None, **status: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"containers": [{"name": "app", "image": "app", "resources": resources or {}}]},
        "status": {"phase": "Running", **status},
    }


def _deployment(name: str) -> dict[str, object]:
    pod = {"spec": {"containers": [{"name": "app", "image": "app", "resources": MEMORY}]}}
    metadata = {"name": name, "namespace": "shop"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, **pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _table(*rows: str, columns: str = "time,pod,container,memory") -> bytes:
    return "\n".join((columns, *rows, "")).encode()


def _usage(pod: str, *objects: dict[str, object], **tables: bytes):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    given = {"all.json": text.encode(), **{f"{name}.csv": data for name, data in tables.items()}}
    return page_about(read_given(given)).pod(pod).usage


STEADY = _table(
    "2026-11-16T14:00:00Z,shop/web,app,1Gi",
    "2026-11-16T14:01:00Z,shop/web,app,1945Mi",
    "2026-11-16T14:02:00Z,shop/web,app,1Gi",
)


def test_a_line_has_request_limit_and_its_peak_in_words():
    usage = _usage("shop/web", _pod("web", MEMORY), samples=STEADY)
    (chart,) = usage.charts
    assert (chart.container, chart.request_bytes, chart.limit_bytes) == ("app", GI, 2 * GI)
    assert chart.text == "Peak 1.9Gi at 14:01:00, 95 % of the limit (2Gi)."
    (line,) = chart.lines
    assert [point.bytes for point in line.points] == [GI, 1945 << 20, GI]
    assert usage.end_seconds - usage.start_seconds == 120
    assert usage.axis == "UTC"
    assert [tick.label for tick in usage.ticks] == ["14:00:00", "14:00:30", "14:01:00", "14:01:30", "14:02:00"]
    assert usage.how == ""


def test_a_table_of_one_moment_and_one_over_time_are_taken_together():
    moment = b"pod,memory\nshop/web,512Mi\n"
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [_pod("web", MEMORY)]})
    page = page_about(read_given({"all.json": text.encode(), "now.csv": moment, "samples.csv": STEADY}))
    assert page.cluster().pods[0].used_bytes == 512 << 20
    assert len(page.pod("shop/web").usage.charts[0].lines[0].points) == 3
    with pytest.raises(InputError, match="more than one"):
        read_given({"all.json": text.encode(), "now.csv": moment, "then.csv": moment})


def test_the_kill_that_a_log_dates_is_marked_at_its_moment():
    pod = "production/article-service-6b9c7d5f4-x2x7q"
    table = _table(
        f"2026-11-16T03:10:00Z,{pod},logging-sidecar,40Gi",
        f"2026-11-16T03:11:00Z,{pod},logging-sidecar,45Gi",
    )
    given = {name: (INCIDENT / name).read_bytes() for name in ("pods.yaml", "kern.log")}
    usage = page_about(read_given({**given, "samples.csv": table})).pod(pod).usage
    (chart,) = usage.charts
    (death,) = chart.deaths
    assert (death.by, death.text) == ("kernel", "OOM-killed at 03:12:07")
    assert death.seconds == usage.end_seconds
    assert chart.text == "Peak 45Gi at 03:11:00, no request and no limit. OOM-killed at 03:12:07."


def test_kills_that_the_samples_count_are_marked():
    table = _table(
        "2026-11-16T14:00:00Z,shop/web,app,1Gi,",
        "2026-11-16T14:01:00Z,shop/web,app,2Gi,1",
        "2026-11-16T14:02:00Z,shop/web,app,1Gi,0",
        columns="time,pod,container,memory,oomKills",
    )
    usage = _usage("shop/web", _pod("web", MEMORY), samples=table)
    assert [death.text for death in usage.charts[0].deaths] == ["OOM-killed at 14:01:00"]


def test_a_rise_of_prometheus_counter_is_a_kill():
    labels = {"namespace": "shop", "pod": "web", "container": "app"}

    def series(name, *values):
        points = [[1_794_837_600 + 60 * index, str(value)] for index, value in enumerate(values)]
        return {"metric": {"__name__": name, **labels}, "values": points}

    result = [
        series("container_memory_working_set_bytes", GI, 2 * GI, GI),
        series("container_oom_events_total", 0, 0, 1),
    ]
    answer = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    usage = _usage("shop/web", _pod("web", MEMORY), samples=answer)
    (chart,) = usage.charts
    assert [death.seconds for death in chart.deaths] == [1_794_837_720]


def test_samples_of_a_workloads_pods_stand_for_a_pod_without_its_own():
    table = _table(
        *(f"2026-11-16T14:0{minute}:00Z,shop/web-7d8b9c4f5-x2k9p,,{minute + 1}00Mi" for minute in range(3)),
        *(f"2026-11-16T14:0{minute}:00Z,shop/web-7d8b9c4f5-zzzzz,app,{minute + 3}00Mi" for minute in range(3)),
        *(f"2026-11-16T14:0{minute}:00Z,shop/web-admin-7d8b9c4f5-zzzzz,app,9Gi" for minute in range(3)),
    )
    now = b"pod,memory\nshop/web,100Mi\n"
    usage = _usage("shop/web-0", _deployment("web"), _deployment("web-admin"), now=now, samples=table)
    assert usage.whose == "Deployment shop/web"
    assert [(line.pod, line.peak_bytes >> 20) for line in usage.charts[0].lines] == [
        ("shop/web-7d8b9c4f5-zzzzz", 500),
        ("shop/web-7d8b9c4f5-x2k9p", 300),
    ]


def test_a_gap_in_the_samples_is_not_bridged():
    minutes = [0, 1, 2, 3, 30, 31]
    table = _table(*(f"2026-11-16T14:{minute:02}:00Z,shop/web,app,1Gi" for minute in minutes))
    (line,) = _usage("shop/web", _pod("web", MEMORY), samples=table).charts[0].lines
    assert [point.is_after_gap for point in line.points] == [False, False, False, False, True, False]


def test_where_nothing_is_known_nothing_is_drawn_and_one_line_says_how_to_get_it():
    usage = _usage("shop/web", _pod("web", MEMORY), now=b"pod,memory\nshop/web,512Mi\n")
    assert usage.charts == ()
    assert "time, pod, container and memory" in usage.how
    assert "--prometheus URL" in usage.how


def test_of_many_samples_a_bounded_number_is_left_and_no_peak_is_lost():
    points = [(index, 1000 + index % 7) for index in range(20_000)]
    points[12_345] = (12_345, 5000)
    points[777] = (777, 1)
    left = thinned(points, MOST_POINTS)
    assert len(left) <= MOST_POINTS
    assert {points[0], points[-1], points[777], points[12_345]} <= set(left)
    assert [time for time, _ in left] == sorted({time for time, _ in left})
    assert thinned(points[:MOST_POINTS], MOST_POINTS) == points[:MOST_POINTS]


def test_times_without_a_date_are_shown_as_recorded():
    table = _table("02:00:00,web,app,1Gi", "02:30:00,web,app,1Gi", "04:00:00,web,app,1536Mi")
    usage = _usage("shop/web", _pod("web", MEMORY), samples=table)
    assert usage.axis == "as recorded"
    assert usage.charts[0].text == "Peak 1.5Gi at 4:00, 75 % of the limit (2Gi)."
