"""Which errors leave a pod out of an answer, and which only warn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.compare import vectors
from podqos.admission.field_errors import invalid, required
from podqos.admission.pod_validation import validate_new_pod
from podqos.admission.relevance import Question, decides, judge, rejections, tolerated, with_names
from podqos.admission.workload_validation import holder_errors, workload_refusal
from podqos.manifest.kinds import is_served
from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.reading import read
from podqos.model.pod import Container, EmptyDir, ObjectMeta, Pod, PodSpec, Volume, Workload
from podqos.model.quantity import Quantity
from podqos.model.selector import LabelSelector


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("spec.containers", Question.CLASS),
        ("spec.containers[3].resources.limits[memory]", Question.CLASS),
        ("spec.initContainers[0].restartPolicy", Question.CLASS),
        ("spec.resources.claims", Question.CLASS),
        ("spec.resourceClaims[0].name", Question.ADMISSION),
        ("spec.os", Question.CLASS),
        ("spec.restartPolicy", Question.SURVIVAL),
        ("spec.containers[0].restartPolicyRules[1].action", Question.SURVIVAL),
        ("spec.priorityClassName", Question.SURVIVAL),
        ("spec.volumes[0].emptyDir.sizeLimit", Question.SURVIVAL),
        ("spec.volumes[0].name", Question.ADMISSION),
        ("spec.tolerations[0].operator", Question.PLACEMENT),
        ("spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}", Question.PLACEMENT),
        ("spec.containers[0].image", Question.ADMISSION),
        ("spec.containers[0].name", Question.ADMISSION),
        ("metadata.name", Question.ADMISSION),
    ],
)
def test_a_field_matters_from_the_first_question_that_it_decides(path, question):
    assert decides(path) is question


def test_for_admission_everything_matters_and_for_others_what_decides_them():
    image, policy = required("spec.containers[0].image"), invalid("spec.restartPolicy", "x", "")
    assert judge([image, policy], Question.ADMISSION).decisive == (image, policy)
    assert judge([image, policy], Question.SURVIVAL) == judge([policy], Question.SURVIVAL).__class__(
        (policy,), (image,)
    )
    assert judge([image, policy], Question.CLASS).tolerated == (image, policy)


def test_every_error_is_either_decisive_or_tolerated():
    twice = required("spec.containers[0].image")
    judged = judge([twice, twice], Question.CLASS)
    assert len(judged.decisive) + len(judged.tolerated) == 2


_NAMES = st.sampled_from(["app", "a", "A", "", "-a", "a_b", "x" * 63, "x" * 64, "a.b"])
_LABELS = st.dictionaries(
    st.sampled_from(["app", "example.com/app", "a b", "", "-a", "Example.com/app", "x" * 64, "a..b/c"]),
    st.sampled_from(["", "web", "a b", "-", "x" * 64]),
    max_size=2,
)
_CONTAINERS = st.builds(
    Container,
    name=_NAMES,
    image=st.sampled_from(["app", "", " app", "app\n", "\u3000app", "app\x85"]),
    restart_policy=st.sampled_from([None, None, "Always", "Maybe"]),
)


@given(
    pod=st.builds(
        Pod,
        metadata=st.builds(ObjectMeta, name=_NAMES, labels=_LABELS, annotations=_LABELS),
        spec=st.builds(
            PodSpec,
            containers=st.lists(_CONTAINERS, min_size=1, max_size=2).map(tuple),
            volumes=st.lists(st.builds(Volume, name=_NAMES), max_size=2).map(tuple),
            restart_policy=st.sampled_from(["", "Always", "Sometimes"]),
        ),
    ),
    selector=st.none() | st.builds(LabelSelector, match_labels=_LABELS),
    kind=st.sampled_from(["Pod", "Deployment"]),
)
def test_workloads_are_judged_like_what_the_api_server_is_given(pod, selector, kind):
    is_holder = kind == "Deployment"
    workload = Workload(
        kind,
        pod.metadata,
        pod,
        "spec.template" if is_holder else "",
        selector=selector if is_holder else None,
    )
    names = [each.name for each in pod.spec.containers]
    if len({*names}) < len(names):
        return  # which reading refuses
    if not is_holder:
        assert tolerated(workload, Question.CLASS, dict) == judge(validate_new_pod(pod), Question.CLASS).tolerated
        return
    value = _written(pod, selector)
    inside = "spec.template."
    expected = [
        error
        for error in holder_errors(kind, value, pod)
        if not error.path.startswith(inside) or decides(error.path.removeprefix(inside)) is not Question.CLASS
    ]
    assert list(tolerated(workload, Question.CLASS, lambda: value)) == expected


def _written(pod: Pod, selector: LabelSelector | None) -> dict:
    """Return a Deployment with a pod as its template."""
    containers = []
    for container in pod.spec.containers:
        policy = {} if container.restart_policy is None else {"restartPolicy": container.restart_policy}
        containers.append({"name": container.name, "image": container.image} | policy)
    metadata = {"name": pod.metadata.name, "labels": pod.metadata.labels, "annotations": pod.metadata.annotations}
    spec = {"restartPolicy": pod.spec.restart_policy, "containers": containers}
    spec["volumes"] = [{"name": volume.name} for volume in pod.spec.volumes]
    chosen = {} if selector is None else {"selector": {"matchLabels": selector.match_labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": chosen | {"template": {"metadata": metadata, "spec": spec}},
    }


WEB = (Container("web", "web"),)


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (Pod(ObjectMeta("web"), PodSpec(WEB, volumes=(Volume("a"), Volume("a")))), "spec.volumes[1].name"),
        (
            Pod(
                ObjectMeta("web"),
                PodSpec(WEB, volumes=(Volume("a", empty_dir=EmptyDir(size_limit=Quantity.parse("-1Gi"))),)),
            ),
            "spec.volumes[0].emptyDir.sizeLimit",
        ),
        (Pod(ObjectMeta("web", namespace="A_b"), PodSpec(WEB)), "metadata.namespace"),
        (
            Pod(ObjectMeta("web", annotations={"controller.kubernetes.io/pod-deletion-cost": "much"}), PodSpec(WEB)),
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
        ),
        (
            Pod(ObjectMeta("web"), PodSpec((Container("web", "web", restart_policy="Maybe"),))),
            "spec.containers[0].restartPolicy",
        ),
        (
            Pod(ObjectMeta("web"), PodSpec(WEB, init_containers=(Container("setup"),))),
            "spec.initContainers[0].image",
        ),
    ],
    ids=["two volumes of one name", "negative size", "namespace", "deletion cost", "restart policy", "init container"],
)
def test_nor_is(pod, path):
    assert [each.path for each in tolerated(Workload("Pod", pod.metadata, pod), Question.CLASS, dict)] == [path]


def test_what_comes_from_an_api_server_and_what_a_controller_completes_is_not_judged():
    pod = Pod(ObjectMeta("web"), PodSpec((Container("web"),)))
    assert tolerated(Workload("Pod", pod.metadata, pod), Question.CLASS, dict)
    live = ObjectMeta("web", uid="1")
    assert not tolerated(Workload("Pod", live, pod), Question.CLASS, dict)
    assert not tolerated(Workload("Prometheus", pod.metadata, pod, "spec"), Question.CLASS, dict)


def test_containers_without_a_name_are_named_by_their_place():
    pod = Pod(spec=PodSpec((Container("web"), Container()), (Container(),)))
    named = with_names(pod).spec
    assert [each.name for each in (*named.containers, *named.init_containers)] == [
        "web",
        "containers[1]",
        "initContainers[0]",
    ]


def test_both_readings_know_the_selector():
    text = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {app: a}}\n"
    text += b"  template: {spec: {containers: [{name: a, image: a}]}}\n"
    (quick,) = read("a", text).workloads
    (thorough,) = read("a", text + b"status: {replicas: 1}\n").workloads
    assert quick == thorough  # a status is not in the model
    assert quick.selector == LabelSelector({"app": "a"})


@pytest.mark.parametrize("family", ["workload_admission", "workload_admission_hostile"])
def test_nothing_around_a_template_is_missed_by_the_quick_look(family):
    """What is missed is in fields of containers that are in no model, or among the resources, which others check."""
    quick = 0
    for line in vectors(family):
        value = line["input"]
        workload = interpret(next(objects_in(value))).workload if isinstance(value.get("spec"), dict) else None
        if workload is None or workload.is_live or not is_served(workload.kind, value):
            continue
        refusal = workload_refusal(value, workload.kind)
        if rejections(workload, lambda value=value: value):
            assert refusal is not None
            continue
        quick += 1
        errors = () if refusal is None else refusal.errors
        missed = [error.path.removeprefix(f"{workload.pod_path}.spec.") for error in errors]
        assert not [path for path in missed if not UNMODELLED.match(path)], line["id"]
    assert quick > 20


UNMODELLED = re.compile(
    r"resources|((initC|c)ontainers\[\d+\]\.(resources|securityContext|ports|env|envFrom|lifecycle|imagePullPolicy|"
    r"terminationMessagePolicy|volumeMounts|volumeDevices|\w+Probe))|volumes\[\d+\]\.\w+|overhead|securityContext|dns|"
    r"host|readinessGates"
)
