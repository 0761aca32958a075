"""Forecast and What if open on the container whose growth does most harm, and say it in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.answers.page.forecast import ForecastRequest
from podqos.answers.page.what_if import KubeletEdit, WhatIf
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_given, read_paths

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def _node(name: str, memory: str = "16Gi") -> dict[str, object]:
    amounts = {"memory": memory, "cpu": "8", "pods": "100"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, node: str, requests: str = "", limits: str = "") -> dict[str, object]:
    resources: dict[str, object] = {}
    if requests:
        resources["requests"] = {"memory": requests}
    if limits:
        resources["limits"] = {"memory": limits}
    container = {"name": "app", "image": "app", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def _page(*objects: dict[str, object]):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    return page_about(read_given({"all.json": text.encode()}))


def test_a_container_without_a_limit_is_riskier_than_a_larger_one_with_a_limit():
    page = _page(_node("a"), _pod("large", "a", "8Gi", "8Gi"), _pod("small", "a", "1Gi"))
    view = page.forecast(ForecastRequest())
    assert view.growing == "shop/small:app"
    assert "no memory limit" in view.chosen


def test_one_whose_growth_hits_another_pod_is_riskier_than_one_that_is_hit_itself():
    page = page_about(read_paths([str(SCENARIOS / "oom-by-class.yaml")]))
    view = page.forecast(ForecastRequest())
    (outcome,) = view.report.growths[0].outcomes
    assert (view.growing, outcome.pod) == ("default/pod1:app", "default/pod3")
    assert view.chosen == "Selected because its growth does the most harm: another pod is evicted or killed first."
    assert view.verdict.endswith("instead, and the growth continues.")


def test_a_node_on_which_every_container_is_limited_is_passed_over_for_one_with_a_risk():
    page = _page(
        _node("full", "8Gi"),
        _node("roomy", "64Gi"),
        _pod("limited", "full", "7Gi", "7Gi"),
        _pod("open", "roomy", "1Gi"),
    )
    view = page.forecast(ForecastRequest())
    assert (view.node, view.growing) == ("roomy", "shop/open:app")
    named = page.forecast(ForecastRequest(node="full"))
    assert named.growing == "shop/limited:app"


def test_where_no_growth_can_use_up_the_node_that_is_said():
    view = _page(_node("a"), _pod("one", "a", "1Gi", "2Gi"), _pod("two", "a", "2Gi", "2Gi")).forecast(ForecastRequest())
    assert view.chosen == (
        "Every container here has a memory limit that stops its growth: none can use up the node alone."
    )
    assert view.by_rate == (
        "The container's own memory limit ends the growth at every rate: the kubelet has no reason to act."
    )
    assert view.verdict.endswith(", at its own memory limit.")


@pytest.mark.parametrize(
    ("hard", "rate", "verdict", "by_rate"),
    [
        ("100Mi", 128 << 20, "the kernel kills it after", "The kernel acts first at every growth rate"),
        ("1Gi", 1 << 20, "the kubelet evicts it after", "Up to 89Mi/s the kubelet evicts before"),
        ("1Gi", 128 << 20, "of the time the kubelet evicts it after", "Up to 89Mi/s the kubelet evicts before"),
    ],
)
def test_the_verdict_says_who_acts_first_and_when(hard, rate, verdict, by_rate):
    request = ForecastRequest(kubelet=KubeletEdit(eviction_hard=hard), rate_bytes_per_second=rate)
    view = _page(_node("a"), _pod("one", "a", "1Gi")).forecast(request)
    assert verdict in view.verdict
    assert view.by_rate.startswith(by_rate)
    assert view.verdict == view.report.growths[0].text


def test_what_if_says_who_acts_first_before_and_after():
    page = _page(_node("a"), _pod("one", "a", "1Gi"))
    view = page.what_if(WhatIf(growing="shop/one", kubelet=KubeletEdit(eviction_hard="1Gi")))
    assert view.forecast is not None
    assert view.forecast.text_before.startswith("The kernel acts first at every growth rate")
    assert view.forecast.text_after.startswith("Up to 89Mi/s the kubelet evicts before the kernel kills")
