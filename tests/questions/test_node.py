"""rank, forecast, thresholds, drift and advise called by a program: values, with what they assume, and no output."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from podqos.advice.sizing.description import DescribedWorkload
from podqos.advice.sizing.matrix import Description
from podqos.advice.sizing.samples import read_samples
from podqos.api import advise
from podqos.errors import InputError, InvalidArgument
from podqos.model.assumption import Assumption
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.orders.drift import DriftStatus
from podqos.orders.usage import UsageRow
from podqos.questions.advise import advised_patches, new_objects
from podqos.questions.drift import drift
from podqos.questions.forecast import forecast
from podqos.questions.node import node_state
from podqos.questions.rank import rank
from podqos.questions.thresholds import thresholds
from podqos.reading.loading import load
from podqos.reading.usage import read_usage

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform"
GI = 1 << 30

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: i, resources: {requests: {memory: 4Gi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: batch}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: app, image: i}]}
"""
NODE = """\
---
apiVersion: v1
kind: Node
metadata: {name: n%s}
status: {capacity: {memory: %s}}
"""

MEMORY = Assumption("node memory", "64Gi", "--node-memory")
KUBELET = Assumption("kubelet settings", "defaults", "--kubelet-config")
USAGE = Assumption("usage", "the pods' requests, or 64Mi without one", "--usage")
RESERVED = Kubelet(KubeletConfiguration(kube_reserved={"memory": "4Gi"}))
ROWS = [UsageRow(name, memory=Quantity.parse("1Gi")) for name in ("web", "batch")]


@pytest.fixture(autouse=True)
def silent(capfd):
    """Let a test fail in which something is printed."""
    yield
    assert capfd.readouterr() == ("", "")


def objects(text: str = PODS, source: str = "pods.yaml") -> Objects:
    found = Objects().with_text(source, text.encode())
    assert found.problems == []
    return found


# ---- what is assumed ---------------------------------------------------------------------------------------------


def test_an_answer_carries_everything_that_nobody_stated():
    assert rank(objects()).assumptions == (MEMORY, USAGE, KUBELET)
    assert forecast(objects(), growing="web").assumptions == (MEMORY, USAGE, KUBELET)
    assert thresholds().assumptions == (MEMORY,)


def test_an_answer_of_which_everything_is_stated_assumes_nothing():
    stated = {"node_memory_bytes": 16 * GI, "kubelet": RESERVED}
    state = node_state(objects(), ROWS, **stated)
    assert rank(state).assumptions == ()
    assert forecast(state, growing="web").assumptions == ()
    assert thresholds(RESERVED, node_memory_bytes=16 * GI).assumptions == ()
    assert drift(objects(), objects(), ROWS, **stated).assumptions == ()


def test_the_memory_of_a_node_is_that_of_the_smallest_node_among_the_objects():
    given = objects(PODS + NODE % (1, "32Gi") + NODE % (2, "16Gi"))
    answer = rank(node_state(given, ROWS, kubelet=RESERVED))
    assert (answer.node.memory_bytes, answer.assumptions) == (16 * GI, ())
    assert rank(node_state(given, ROWS, node_memory_bytes=8 * GI)).node.memory_bytes == 8 * GI


def test_pods_are_taken_to_use_what_they_request_and_a_nominal_amount_without_a_request():
    used = {place.pod: place.usage for place in rank(objects()).eviction_order}
    assert used == {"default/web": 4 * GI, "default/batch-0": 64 << 20, "default/batch-1": 64 << 20}


def test_pods_without_figures_are_named_and_no_more_than_three():
    known = [UsageRow("web", memory=Quantity.parse("1Gi"))]
    many = objects(PODS.replace("replicas: 2", "replicas: 5"))
    (assumed,) = node_state(many, known, node_memory_bytes=16 * GI).assumptions
    what = "usage of default/batch-0, default/batch-1, default/batch-2 and 2 more"
    assert assumed == Assumption(what, "their requests, or 64Mi without one", "--usage")


def test_a_kubelets_settings_count_without_a_file():
    rows = [UsageRow("web", memory=Quantity.parse("11Gi"))]
    answer = rank(node_state(objects(), rows, node_memory_bytes=16 * GI, kubelet=RESERVED))
    assert (answer.node.oom_cgroup, answer.node.oom_total_bytes) == ("/kubepods.slice", 12 * GI)


def test_drift_takes_both_versions_to_use_what_the_older_one_requests():
    answer = drift(objects(), objects(PODS.replace("4Gi", "2Gi")))
    amounts = "the requests of the older version, or 64Mi without one"
    what = Assumption("unmeasured usage", amounts, "--usage")
    assert answer.assumptions == (MEMORY, what, KUBELET)
    assert [each.workload for each in answer.workloads if each.fails] == ["Pod default/web"]


def test_advice_names_the_priority_class_that_is_not_among_the_objects():
    classed = PODS.replace(
        "spec: {containers: [{name: app, image: i, resources",
        "spec: {priorityClassName: x, containers: [{name: app, image: i, resources",
    )
    answer = advise(objects(classed), descriptions=[DescribedWorkload("batch", Description(False))])
    assert [(each.what, each.value) for each in answer.assumptions][-1] == ("priority of class x", "0")


# ---- values --------------------------------------------------------------------------------------------------------


def test_pods_of_files_are_ranked_the_same_way_every_time_and_problems_are_told_once():
    given = load(SCENARIO / "accidental" / "article-service.yaml", SCENARIO / "platform")
    rows = read_usage(SCENARIO / "usage.csv")
    first, problems = rank(node_state(given, rows)), list(given.problems)
    assert len(problems) == 1
    assert rank(node_state(given, rows)) == first
    assert given.problems == problems


def test_probabilities_and_times_of_a_forecast_are_exact():
    answer = forecast(node_state(objects(), ROWS, node_memory_bytes=16 * GI), growing="web", rates=[GI])
    (growth,) = answer.growths
    assert isinstance(growth.kubelet_first, Fraction)
    assert sum(each.probability for each in growth.outcomes) == 1
    assert [each.text for each in growth.outcomes] != [""]


def test_what_fails_is_decided_by_what_is_allowed():
    old, new = objects(), objects(PODS.replace("4Gi", "2Gi"))
    allowed = drift(old, new, allowed=["web"])
    web = next(each for each in allowed.workloads if each.name == "web")
    assert (web.status, web.fails, allowed.fails) == (DriftStatus.AHEAD, False, False)
    with pytest.raises(InvalidArgument, match="no such workload: nobody"):
        drift(old, new, allowed=["nobody"])


def test_advice_leaves_the_objects_as_they_are():
    given, described = objects(), [DescribedWorkload("new", Description(False), memory=Quantity.parse("1Gi"))]
    answer = advise(given, descriptions=described)
    assert len(given.workloads) == 2
    assert [(each.workload, each.before) for each in answer.workloads] == [("Deployment default/new", None)]
    *classes, deployment = new_objects(answer, described)
    assert [each["kind"] for each in classes] == ["PriorityClass"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"memory": "1127Mi"}
    assert advised_patches(given, answer) == []


def test_samples_that_fit_no_workload_are_a_problem_of_the_input():
    given = objects()
    advise(given, samples=read_samples("s.csv", b"pod,memory\nweb,1Gi\nnobody,1Gi\n"))
    assert [str(each) for each in given.problems] == ["s.csv:3: warning: no workload matches the samples of nobody"]


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank(Objects()), "no pods to rank"),
        (lambda: read_usage("missing.csv"), "missing.csv: No such file"),
        (lambda: node_state(objects(), node_memory_bytes=1), "1 bytes is too little memory for a node"),
        (lambda: rank(node_state(objects(), node_memory_bytes=GI)), "the pods use 4224Mi, but the node has 1Gi"),
        (lambda: forecast(objects(), growing=""), "no growing pod given"),
        (lambda: forecast(objects(), growing="wbe"), r"no such pod: wbe \(did you mean web\?\)"),
        (lambda: drift(Objects(), Objects()), "no workloads in either version"),
        (lambda: advise(Objects()), "nothing to advise about"),
        (lambda: advise(objects()), "no usage or description for 2 workloads"),
        (
            lambda: advise(objects(), descriptions=[DescribedWorkload("a/", Description(True))]),
            "is not a valid workload name",
        ),
    ],
)
def test_what_cannot_be_answered_raises_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_state_alone_is_returned_as_it_is():
    state = node_state(load(SCENARIO / "platform"), node_memory_bytes=64 * GI)
    assert node_state(state) is state


@pytest.mark.parametrize("function", [rank, partial(forecast, growing="system")])
def test_objects_alone_are_a_node_of_which_nothing_is_stated(function):
    assert function(objects()) == function(node_state(objects()))


@pytest.mark.parametrize(
    "function",
    [
        lambda **given: node_state(objects(), **given),
        lambda **given: drift(objects(), objects(), **given),
        thresholds,
    ],
)
def test_an_argument_that_is_not_known_is_refused(function):
    with pytest.raises(TypeError, match="node_memory"):
        function(node_memory=64 * GI)
