"""Uploads are capped before anything is made of them, and what they cost grows with their size, not with its square."""

from __future__ import annotations

import cProfile
import pstats

import pytest

from podqos.errors import InputError
from podqos.placement.filters import Filters
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import MOST_NODES, read_given, read_paths
from web.ui.running import POD

SCENARIO = """apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: fleet}
spec:
  duration: 5m
  manifests: [pod.yaml]
  nodes: NODES
  workloads: [{workload: leaky, demand: {memory: 10Mi}}]
"""
DAEMON_SET = b"""apiVersion: apps/v1
kind: DaemonSet
metadata: {name: leaky}
spec:
  selector: {matchLabels: {app: leaky}}
  template:
    metadata: {labels: {app: leaky}}
    spec:
      containers: [{name: c, image: i, resources: {limits: {memory: 100Mi}}}]
"""
MACHINE = "capacity: {cpu: 4, memory: 8Gi}"


def scenario(nodes):
    return SCENARIO.replace("NODES", nodes).encode()


def listed(count):
    return scenario("".join(f"\n    - {{name: n{number}, {MACHINE}}}" for number in range(count)))


def calls(work):
    """Return how many functions something calls: the same on a busy machine."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize(
    ("nodes", "where"),
    [
        (f"[{{name: w, count: 100000, {MACHINE}}}]", "s.yaml:7:21"),
        (f"[{{name: a, count: 2501, {MACHINE}}}, {{name: b, count: 2500, {MACHINE}}}]", "s.yaml:7:21"),
        (f"[{', '.join(f'{{name: n{number}, {MACHINE}}}' for number in range(MOST_NODES + 1))}]", "s.yaml:7:3"),
    ],
    ids=["one count", "two counts", "listed"],
)
def test_a_scenario_with_too_many_nodes_is_rejected_where_it_says_so_before_any_is_made(nodes, where, monkeypatch):
    monkeypatch.setattr("podqos.reading.scenario_files.resolve", None)  # would make them
    with pytest.raises(InputError) as error:
        read_given({"s.yaml": scenario(nodes), "pod.yaml": POD})
    assert error.value.where == where
    assert f"nodes; a page shows at most {MOST_NODES:,}" in error.value.what
    assert error.value.fix == "lower count, or list fewer nodes"


def test_listed_nodes_of_manifests_are_capped_like_pods():
    nodes = "---\n".join(
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{number}}}\n" for number in range(MOST_NODES + 1)
    )
    with pytest.raises(InputError, match="5,001 nodes; a page shows at most 5,000"):
        read_given({"nodes.yaml": nodes.encode(), "pod.yaml": POD})


def test_what_the_command_line_names_is_not_capped(tmp_path):
    (tmp_path / "s.yaml").write_bytes(scenario(f"[{{name: w, count: {MOST_NODES + 1}, {MACHINE}}}]"))
    (tmp_path / "pod.yaml").write_bytes(POD)
    source = read_paths([str(tmp_path / "s.yaml")])
    assert source.scenario.nodes[0].count == MOST_NODES + 1


def test_listed_nodes_are_read_in_linear_time():
    read_given({"s.yaml": listed(10), "pod.yaml": POD})  # imports
    one, two = (calls(lambda: read_given({"s.yaml": listed(count), "pod.yaml": POD})) for count in (60, 120))  # noqa: B023
    assert two < 2.2 * one


def test_the_scheduler_asks_each_pod_of_a_daemon_set_about_its_own_node_only(monkeypatch):
    asked = []
    ask = Filters.first_reasons
    monkeypatch.setattr(Filters, "first_reasons", lambda self, state: asked.append(state.name) or ask(self, state))
    nodes = f"[{{name: w, count: 30, {MACHINE}}}]"
    view = page_about(read_given({"s.yaml": scenario(nodes), "pod.yaml": DAEMON_SET})).cluster()
    assert len(view.pods) == 30
    assert sorted(asked) == sorted({*asked})
