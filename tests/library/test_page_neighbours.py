"""Whom a pod comes before and after in both kill orders, in words with both sides in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_paths

PLATFORM = Path(__file__).parents[2] / "scenarios/content-platform"


@pytest.fixture(scope="module")
def page():
    return page_about(read_paths([str(PLATFORM / "platform"), str(PLATFORM / "usage.csv")]))


@pytest.mark.parametrize(
    ("pod", "neighbour", "words"),
    [
        pytest.param(
            "batch/analytics-pipeline-0",
            ("kubelet", True, "monitoring/debug-tools"),
            "that one has priority 0, this pod 100000",
            id="priority",
        ),
        pytest.param(
            "batch/analytics-pipeline-0",
            ("kubelet", False, "batch/content-generator-0"),
            "this pod uses more than it requests, that one doesn't",
            id="over its request",
        ),
        pytest.param(
            "production/search-api-0",
            ("kubelet", False, "production/article-service-0"),
            "this pod is 248Mi under its request, that one is 1Gi under its request",
            id="what is left of the request",
        ),
        pytest.param(
            "batch/content-generator-0",
            ("kubelet", False, "batch/content-generator-1"),
            "a tie, decided by the order in which the kubelet lists its pods",
            id="tie",
        ),
        pytest.param(
            "batch/analytics-pipeline-0",
            ("kernel", True, "batch/search-indexer-0"),
            "that one uses 10Gi, this pod 3Gi, which outweighs oom_score_adj 829 vs 937",
            id="memory outweighs the adjustment",
        ),
        pytest.param(
            "batch/analytics-pipeline-0",
            ("kernel", False, "batch/content-generator-1"),
            "this pod has oom_score_adj 937, that one 829, which outweighs 3Gi vs 9Gi in use",
            id="the adjustment outweighs memory",
        ),
    ],
)
def test_a_neighbour_has_the_reason_with_both_sides(page, pod, neighbour, words):
    found = {(near.by, near.is_earlier, near.pod): near.text for near in page.pod(pod).neighbours}
    assert found[neighbour] == words


def test_the_first_comes_after_none_and_the_last_before_none(page):
    first = page.pod("monitoring/log-collector").neighbours
    assert all(not near.is_earlier for near in first)
    last = page.pod("production/search-api-0").neighbours
    assert [near.is_earlier for near in last if near.by == "kernel"] == [True]
