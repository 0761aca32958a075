"""Parameters of a sweep: what each changes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.errors import InputError
from podqos.eviction.ranking import Policy
from podqos.model.quantity import Quantity
from podqos.reading.scenario_files import load_scenario
from podqos.runs.variations import distribution, plan
from podqos.sim.variation import Parameter, Variation, parse_varied

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: main
          image: web
          resources: {limits: {memory: 1Gi, cpu: "1"}}
"""
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: shop}
spec:
  duration: 60s
  manifests: [web.yaml]
  nodes:
    - name: worker
      capacity: {cpu: 4, memory: 8Gi}
      filesystems: {nodefs: {capacity: 100Gi}}
  workloads:
    - workload: web
      demand: {memory: {points: {0s: 100Mi, 10s: 300Mi}}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "web.yaml").write_text(MANIFEST)
    (tmp_path / "shop.yaml").write_text(SCENARIO)
    return str(tmp_path / "shop.yaml")


def _varied(path: str, text: str):
    each = parse_varied(text)
    return load_scenario(path, Variation([(each.parameter, each.values[0])]))


def test_growth_is_stretched_from_where_it_begins(scenario):
    changed = _varied(scenario, "growth@web=2")
    assert changed.workloads[0].demand_of(0, "main").anon_bytes.at(10_000_000) == 500 << 20
    assert changed.workloads[0].demand_of(0, "main").anon_bytes.at(0) == 100 << 20


def test_a_limit_is_set_before_admission_so_that_the_request_follows(scenario):
    """A limit without a request becomes the request."""
    container = _varied(scenario, "limits.memory@shop/web:main=2Gi").workloads[0].pod.spec.containers[0]
    assert container.resources.requests["memory"] == Quantity.parse("2Gi")


def test_a_threshold_is_set_on_all_nodes(scenario):
    config = _varied(scenario, "kubelet.evictionHard.memory.available=1Gi").nodes[0].spec.config
    assert config.eviction_hard == {"memory.available": "1Gi"}


def test_other_settings_of_the_kubelet_go_by_their_name(scenario):
    assert _varied(scenario, "kubelet.maxPods=7").nodes[0].spec.config.max_pods == 7


OF_THE_WHOLE = {
    "phase=2s": lambda found: found.nodes[0].spec.loop_phase_us == 2_000_000,
    "policy=qos-tiers": lambda found: found.policy is Policy.QOS_TIERS,
    "replicas@web=5": lambda found: found.workloads[0].replicas == 5,
    "priority@web=1000": lambda found: found.workloads[0].pod.spec.priority == 1000,
    "spec.duration=5s": lambda found: found.duration_us == 5_000_000,
    "spec.nodes[0].capacity.memory=16Gi": lambda found: found.nodes[0].spec.memory_bytes == 16 << 30,
    "spec.nodes[worker].capacity.cpu=2": lambda found: found.nodes[0].spec.cpu_milli == 2000,
}


@pytest.mark.parametrize(("text", "holds"), OF_THE_WHOLE.items(), ids=OF_THE_WHOLE)
def test_a_parameter_changes_what_it_names(scenario, text, holds):
    assert not holds(load_scenario(scenario))
    assert holds(_varied(scenario, text))


BAD = {
    "growth": "'growth' has no values",
    "growth@web=": "has no values",
    "speed=1,2": "unknown parameter speed",
    "limits.memory=1Gi": "no workload given",
    "growth@shop=2": "the scenario has no workload shop",
    "growth@web=fast": "'fast' is not a number",
    "limits.memory@web:side=1Gi": "no such container: side",
    "limits.memory@web=lots": "limits.memory@web: 'lots' is not a quantity (such as 512Mi or 250m)",
    "policy=fair": "unknown policy fair",
    "phase=soon": "phase",
    "kubelet.maxPod=1": "maxPod: unknown field",
    "spec.nodes[3].capacity.memory=1Gi": "no such field: spec.nodes.3",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=BAD)
def test_what_makes_no_sense_is_refused_with_what_it_was(scenario, text, message):
    with pytest.raises(InputError) as caught:
        _varied(scenario, text)
    assert message in str(caught.value)


def test_a_plan_has_every_combination_under_every_seed():
    varied = [parse_varied("phase=0s,5s"), parse_varied("growth=1,2,3")]
    points = list(plan(varied, (0, 1)))
    assert len(points) == 12
    assert [tuple(value for _, value in values) for values, _ in points[:3]] == [("0s", "1"), ("0s", "1"), ("0s", "2")]
    assert points[0][0][0] == (Parameter("phase"), "0s")


def test_percentiles_are_figures_that_occurred():
    found = distribution([1, 2, 3, 10])
    assert (found.least, found.median, found.p95, found.most, found.mean) == (1, 2, 10, 10, 4)
