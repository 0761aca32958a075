"""What files hold, as one value: read once, nothing printed, everything wrong kept as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.manifest.problems import Severity
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.policy import LimitRange, Namespace
from podqos.model.service import Service
from podqos.objects.node_pods import node_pods
from podqos.objects.objects import Objects
from podqos.reading.loading import load

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, template: {spec: {containers: [{name: app, image: app}]}}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {capacity: {cpu: 4, memory: 8Gi}}\n"
BUDGET = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: 1}\n"
DEFAULTS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {cpu: 1}}]}
"""
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\n"


@pytest.fixture
def files(tmp_path: Path):
    """Write files and load their directory."""

    def of(namespace: str = "default", **texts: str) -> Objects:
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        return load(tmp_path, namespace=namespace)

    return of


def test_every_kind_is_found_with_nothing_wrong(files, capsys):
    objects = files(a=WEB + "---\n" + DEFAULTS, b=NODE, c=SERVICE + "---\n" + BUDGET, d=KUBELET, e="a: 1\n")
    assert [found.workload.metadata.name for found in objects.workloads] == ["web"]
    assert [len(objects.of(model)) for model in (Node, Service, PodDisruptionBudget, LimitRange, Namespace)] == [
        1, 1, 1, 1, 0,
    ]  # fmt: skip
    assert [each.settings.configuration.max_pods for each in objects.kubelets] == [7]
    assert (objects.problems, objects.left_out) == ([], 1)
    assert capsys.readouterr() == ("", "")


def test_what_names_no_namespace_is_in_the_given_one(files):
    objects = files("shop", a=WEB + "---\n" + DEFAULTS, b=WEB.replace("name: web", "name: web, namespace: other"))
    keys = [found.workload.pod.key for found in objects.workloads]
    assert keys == ["shop/web", "other/web"]
    assert objects.cluster().policies.limit_ranges[0].metadata.namespace == "shop"


def test_problems_are_kept_once_with_their_place_and_nothing_is_raised_or_printed(files, tmp_path, capsys):
    objects = files(a=WEB.replace("image: app", "imag: app"), b="kind: {", c=NODE.replace("8Gi", "8gb"))
    assert [Path(problem.source).name for problem in sorted(objects.problems)] == ["a.yaml", "b.yaml"]
    for _ in range(2):
        assert objects.of(Node) == ()
        assert objects.errors == 3
    assert max(objects.problems).line == 4
    assert load(tmp_path / "none").problems[0].fix == "check the path"
    (tmp_path / "empty").mkdir()
    assert load(tmp_path / "empty").problems[0].what == "contains no YAML or JSON files"
    assert capsys.readouterr() == ("", "")


def test_a_malformed_object_is_no_problem_until_its_kind_is_asked_for(files):
    objects = files(a=WEB, b=SERVICE.replace("{app: web}", "3"))
    assert (objects.of(Node), objects.problems) == ((), [])
    assert (objects.of(Service), objects.errors) == ((), 1)


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(WEB)
    (tmp_path / "link.yaml").symlink_to(file)
    assert len(load(tmp_path, file, f"{tmp_path}/../{tmp_path.name}/web.yaml").workloads) == 1


def test_progress_is_told_after_every_file(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(WEB.replace("web", name))
    told = []
    load(tmp_path, progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_of_files_with_what_the_cluster_has_only_policies_count(tmp_path):
    web, stored = tmp_path / "web.yaml", tmp_path / "stored.yaml"
    web.write_text(WEB + "---\n" + DEFAULTS)
    stored.write_text(WEB.replace("web", "other") + "---\n" + DEFAULTS.replace("cpu: 1", "cpu: 2") + "---\nx: 1\n")
    objects = load(web, policies=[stored])
    assert [found.workload.metadata.name for found in objects.workloads] == ["web"]
    (applied,) = objects.of(LimitRange)
    assert (str(applied.spec.limits[0].default["cpu"]), objects.problems, objects.left_out) == ("1", [], 0)


@pytest.mark.parametrize("stored_first", [True, False])
def test_an_applied_policy_replaces_the_stored_one_in_whichever_order_they_come(stored_first):
    objects = Objects()
    texts = [("applied", DEFAULTS, False), ("stored", DEFAULTS.replace("cpu: 1", "cpu: 2"), True)]
    for name, text, are_stored in reversed(texts) if stored_first else texts:
        objects = objects.with_text(name, text.encode(), are_stored=are_stored)
    (policy,) = objects.of(LimitRange)
    assert (str(policy.spec.limits[0].default["cpu"]), objects.problems) == ("1", [])


def test_a_policy_given_twice_counts_once_and_is_a_warning(files):
    objects = files(a=DEFAULTS, b=DEFAULTS.replace("cpu: 1", "cpu: 2"))
    (policy,) = objects.of(LimitRange)
    assert str(policy.spec.limits[0].default["cpu"]) == "1"
    assert [(each.severity, each.what) for each in objects.problems] == [
        (Severity.WARNING, "LimitRange defaults is defined twice")
    ]
    assert objects.policy_problems == objects.problems


def test_what_comes_later_replaces_what_came_before(files):
    objects = files(a=WEB, b=WEB.replace("replicas: 2", "replicas: 3"))
    assert [found.workload.replicas for found in objects.latest()] == [3]
    assert [problem.severity for problem in objects.problems] == [Severity.WARNING]
    assert [pod.pod.key for pod in node_pods(objects)] == ["default/web-0", "default/web-1", "default/web-2"]


def test_pods_from_files_have_uids_that_are_the_same_in_every_run(files):
    uids = [entry.pod.metadata.uid for entry in node_pods(files(a=WEB))]
    assert len(set(uids)) == 2
    assert all(uids)
    assert [entry.pod.metadata.uid for entry in node_pods(files())] == uids
    assert not any(found.workload.is_live for found in files().workloads)


@pytest.mark.parametrize("name", ["workloads", "problems", "assumptions", "notes", "namespace", "anything"])
def test_what_was_read_cannot_be_changed(files, name):
    objects = files(a=WEB)
    with pytest.raises(AttributeError, match=f"objects do not change: {name}"):
        setattr(objects, name, ())


def test_a_further_file_joins_the_workloads_that_were_chosen(files):
    objects = files(a=WEB, b=WEB.replace("web", "other")).only([])
    further = objects.with_text("c", WEB.replace("web", "third").encode())
    assert [found.workload.metadata.name for found in further.workloads] == ["third"]
    assert objects.workloads == ()


def test_what_answers_find_out_is_noted_beside_the_objects(files):
    objects = files(a=WEB, b=WEB.replace("replicas: 2", "replicas: 3"))
    own = objects.only(objects.workloads)
    shared = objects.with_workloads(objects.workloads[:1])
    own.latest()
    assert (len(own.problems), objects.problems) == (1, [])
    objects.latest()
    assert (shared.problems, shared.notes) == (objects.problems, objects.notes)


def test_classes_are_assumed_for_the_workloads_that_name_them_whatever_was_asked_before(files):
    gold = WEB.replace("containers:", "priorityClassName: gold, containers:")
    objects = files(a=gold, b=gold.replace("web", "other").replace("gold", "silver"))
    for found, name in zip(objects.workloads, ("gold", "silver"), strict=True):
        own = objects.only([found])
        assert [pod.pod.spec.priority_class_name for pod in node_pods(own)] == [name, name]
        assert own.missing == {("PriorityClass", name)}


def test_an_unknown_keyword_is_refused(tmp_path):
    with pytest.raises(TypeError, match="polices"):
        load(tmp_path, polices=())
