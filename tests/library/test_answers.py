"""The public functions: they answer as the commands do, and print nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import podqos
from podqos.cli.main import main

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform" / "platform"
LIMITS_ONLY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: app, image: app, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}
"""
CAPACITY = {"cpu": podqos.Quantity.parse("16"), "memory": podqos.Quantity.parse("64Gi")}
ANSWERS = {
    "explain": (podqos.explain, ()),
    "admit": (podqos.admit, ()),
    "check": (podqos.check, ("--config-file", "none")),
    "cpu": (lambda objects: podqos.cpu(objects, cores=14), ("--cores", "14")),
    "place": (
        lambda objects: podqos.place(objects, node_count=2, node_capacity=CAPACITY),
        ("--nodes", "2", "--node-capacity", "cpu=16,memory=64Gi"),
    ),
}


LISTED = {
    podqos.ExplanationList: "items",
    podqos.CheckReport: "items",
    podqos.AdmissionList: "items",
    podqos.PolicyReport: "items",
    podqos.PlacementReport: "pods",
    podqos.CpuReport: "pods",
    podqos.DriftReport: "workloads",
    podqos.AdviceReport: "workloads",
    podqos.ForecastReport: "growths",
    podqos.ThresholdsReport: "thresholds",
    podqos.BlastRadius: "leaks",
    podqos.Sweep: "combinations",
}
"""Which field of a list-like answer its items are."""


@pytest.mark.parametrize("command", ANSWERS)
def test_a_function_returns_what_its_command_prints_and_prints_nothing(command, capsys):
    function, options = ANSWERS[command]
    main([command, "-f", str(PLATFORM), "-o", "json", *options])
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(podqos.json_bytes(function(podqos.load(PLATFORM)))) == printed
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_the_same_when_it_is_asked_for_again(command):
    function, _ = ANSWERS[command]
    objects = podqos.load(PLATFORM)
    first, problems = function(objects), list(objects.problems)
    for other, _ in ANSWERS.values():
        other(objects)
    assert function(objects) == first
    assert objects.problems == problems


@pytest.mark.parametrize("answer", LISTED, ids=lambda answer: answer.__name__)
def test_an_answer_that_is_a_list_has_a_length_an_order_and_items_by_number(answer):
    field = LISTED[answer]
    others = [name for name in answer.__struct_fields__[: _required(answer)] if name != field]
    listed = answer(**dict.fromkeys(others, ()), **{field: ("first", "second", "third")})
    assert (len(listed), list(listed)) == (3, ["first", "second", "third"])
    assert (listed[0], listed[-1], listed[1:]) == ("first", "third", ("second", "third"))
    assert "second" in listed
    with pytest.raises(IndexError):
        listed[3]


def _required(answer):
    return len(answer.__struct_fields__) - len(answer.__struct_defaults__)


def test_items_of_an_answer_are_those_of_its_field():
    answer = podqos.explain(podqos.load(PLATFORM))
    assert tuple(answer) == answer.items
    assert answer[0].name == "analytics-pipeline"
    assert len(answer) == len(answer.items) > 1


def test_an_answer_without_items_is_false_like_an_empty_list():
    assert not podqos.explain(podqos.load())


def test_an_autopsy_lists_deaths():
    assert list(podqos.Autopsy(("kill", "eviction"), node_events=("line",))) == ["kill", "eviction"]


def test_two_orders_are_not_one_list():
    with pytest.raises(TypeError):
        iter(podqos.rank(podqos.load(PLATFORM)))


def test_the_class_of_a_workload_is_the_one_as_stored(tmp_path):
    (tmp_path / "web.yaml").write_text(LIMITS_ONLY)
    (item,) = podqos.explain(podqos.load(tmp_path)).items
    assert (item.qos_class, item.qos_class_as_written) == ("Guaranteed", "Burstable")


def test_what_the_api_server_would_refuse_is_left_out_and_a_problem(tmp_path):
    (tmp_path / "web.yaml").write_text(LIMITS_ONLY.replace("limits:", "requests: {cpu: 2, memory: 1Gi}, limits:"))
    for function in (podqos.explain, ANSWERS["place"][0]):
        objects = podqos.load(tmp_path)
        function(objects)
        (problem,) = objects.problems
        assert problem.line == 4
        assert "must be less than or equal to cpu limit" in problem.what


def test_nothing_to_answer_about(tmp_path):
    objects = podqos.load()
    assert podqos.explain(objects).items == podqos.admit(objects).items == ()
    with pytest.raises(podqos.InputError, match="no pods to show"):
        podqos.cpu(objects)
    with pytest.raises(podqos.InputError, match="no nodes to place"):
        podqos.place(objects)


def test_policies_that_are_not_in_order_are_said_and_not_gone_by():
    text = b"apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\nspec: {limit: []}\n"
    objects = podqos.Objects().with_text("policy.yaml", text)
    with pytest.raises(podqos.InputError, match="the policies are not valid") as caught:
        podqos.admit(objects)
    assert "policy.yaml:4:8: error: spec.limit" in str(caught.value)


def test_a_kubelet_comes_from_a_file(tmp_path):
    file = tmp_path / "kubelet.yaml"
    file.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: cgroupfs\n")
    objects = podqos.load(PLATFORM)
    answer = podqos.explain(objects, kubelet=podqos.load_kubelet(file), node_memory_bytes=1 << 36)
    assert answer.items[0].cgroups[0].path.startswith("/kubepods/")
    assert answer.assumptions == ()


@pytest.mark.parametrize("memory", ["0", "-1", "1"])
def test_a_node_with_next_to_no_memory_does_not_count(tmp_path, memory):
    node = f"apiVersion: v1\nkind: Node\nmetadata: {{name: broken}}\nstatus: {{capacity: {{memory: {memory}}}}}\n"
    (tmp_path / "web.yaml").write_text(f"{LIMITS_ONLY}---\n{node}")
    answer = podqos.explain(podqos.load(tmp_path))
    assert answer.node_memory_bytes == 64 << 30
    assert answer.assumptions[0].what == "node memory"


def test_so_little_stated_is_no_node():
    with pytest.raises(podqos.InputError, match="1 bytes is too little memory for a node"):
        podqos.explain(podqos.load(PLATFORM), node_memory_bytes=1)


@pytest.mark.parametrize("function", [podqos.advise, podqos.judge_policies], ids=lambda function: function.__name__)
def test_a_misspelt_option_is_refused_rather_than_ignored(function):
    with pytest.raises(TypeError, match="profil"):
        function(podqos.load(PLATFORM), profil=podqos.parse_version("1.30"))
