"""The class, the facts that decide it, and the fewest lines that would change it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.model.pod import Container, Pod, PodSpec, QOSClass
from podqos.model.profile import profile_for
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import ResourceRequirements
from podqos.qos.classes import class_per_resource, classify, deciding_resources
from podqos.qos.edits import edits_to_guaranteed
from strategies import accepted_pods, pods

RANK = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


def amounts(text: str) -> dict[str, Quantity]:
    """``cpu=1 memory=1Gi`` as a resource list."""
    return {name: Quantity.parse(amount) for name, amount in (part.split("=") for part in text.split())}


def container(requests: str = "", limits: str = "", name: str = "c") -> Container:
    return Container(name=name, resources=ResourceRequirements(amounts(requests), amounts(limits)))


def pod(*containers: Container, **spec) -> Pod:
    return Pod(spec=PodSpec(containers=containers, **spec))


def test_the_container_without_limits_is_named_as_the_reason():
    good = container("cpu=2 memory=4Gi", "cpu=2 memory=4Gi", "article-service")
    bad = container("cpu=100m memory=128Mi", name="envoy-sidecar")
    found = classify(pod(good, bad))
    assert found.qos_class is QOSClass.BURSTABLE
    assert [(missing.place.container, missing.resource) for missing in found.missing_limits] == [
        ("envoy-sidecar", "cpu"),
        ("envoy-sidecar", "memory"),
    ]


def test_the_resource_whose_sums_differ_is_named_with_both_sums():
    found = classify(pod(container("cpu=1 memory=1Gi", "cpu=1 memory=2Gi")))
    assert not found.missing_limits
    (unequal,) = found.unequal
    assert (unequal.resource, str(unequal.requests), str(unequal.limits)) == ("memory", "1Gi", "2Gi")


def test_empty_pod_level_resources_take_the_decision_from_the_containers():
    guaranteed = container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")
    found = classify(pod(guaranteed, resources=ResourceRequirements()))
    assert (found.qos_class, found.decided_by) == (QOSClass.BEST_EFFORT, "pod")


@pytest.mark.parametrize(
    ("minor", "qos_class", "decided_by"),
    [(36, QOSClass.BEST_EFFORT, "pod"), (37, QOSClass.GUARANTEED, "containers")],
)
def test_since_1_37_pod_level_resources_that_state_nothing_decide_nothing(minor, qos_class, decided_by):
    """KEP-2837, gate PodLevelResourcesFixKubeletQOSClass."""
    guaranteed = container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")
    found = classify(pod(guaranteed, resources=ResourceRequirements()), profile_for((1, minor)))
    assert (found.qos_class, found.decided_by) == (qos_class, decided_by)


def test_pod_level_huge_pages_alone_still_decide_in_1_37():
    guaranteed = container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")
    stated = ResourceRequirements(limits={"hugepages-2Mi": Quantity.parse("4Mi")})
    found = classify(pod(guaranteed, resources=stated), profile_for((1, 37)))
    assert (found.qos_class, found.decided_by) == (QOSClass.BEST_EFFORT, "pod")


@given(accepted_pods())
def test_comparing_container_by_container_as_1_37_does_gives_the_same_class(accepted):
    """Upstream compares no sums any more; for pods that an API server takes that changes nothing."""
    profile = profile_for((1, 37))
    shapes = set()
    for _, asked in deciding_resources(accepted, profile):
        for name in ("cpu", "memory"):
            request, limit = asked.requests.get(name, ZERO), asked.limits.get(name, ZERO)
            shapes.add("differs" if request != limit else "equal" if request else "nothing")
    by_shapes = {frozenset({"equal"}): QOSClass.GUARANTEED, frozenset({"nothing"}): QOSClass.BEST_EFFORT}
    assert classify(accepted, profile).qos_class is by_shapes.get(frozenset(shapes), QOSClass.BURSTABLE)


def test_pod_level_resources_are_unknown_before_1_34():
    guaranteed = container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")
    before = classify(pod(guaranteed, resources=ResourceRequirements()), profile_for((1, 33)))
    assert (before.qos_class, before.decided_by) == (QOSClass.GUARANTEED, "containers")


def test_init_containers_count_since_1_16():
    spec = pod(container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi"), init_containers=(container(),))
    assert classify(spec).qos_class is QOSClass.BURSTABLE
    assert classify(spec, profile_for((1, 15))).qos_class is QOSClass.GUARANTEED


def test_ephemeral_containers_never_count():
    spec = pod(container("cpu=1 memory=1Gi", "cpu=1 memory=1Gi"), ephemeral_containers=(container(),))
    assert classify(spec).qos_class is QOSClass.GUARANTEED


@given(pods(), st.data())
def test_removing_a_limit_never_raises_the_class(spec, data):
    before = classify(spec).qos_class
    index = data.draw(st.integers(0, len(spec.spec.containers) - 1))
    chosen = spec.spec.containers[index]
    without = replace(chosen, resources=ResourceRequirements(chosen.resources.requests, {}))
    containers = (*spec.spec.containers[:index], without, *spec.spec.containers[index + 1 :])
    after = classify(replace(spec, spec=replace(spec.spec, containers=containers))).qos_class
    assert RANK[after] <= RANK[before]


@given(pods())
def test_the_reasons_are_there_exactly_when_the_pod_is_not_guaranteed(spec):
    found = classify(spec)
    assert (found.qos_class is QOSClass.GUARANTEED) == (not found.missing_limits and not found.unequal)


@given(pods())
def test_the_proposed_edits_make_any_pod_guaranteed(spec):
    edited = defaulted(apply(spec, edits_to_guaranteed(spec)))
    assert classify(edited).qos_class is QOSClass.GUARANTEED


@given(pods())
def test_no_edit_is_proposed_for_a_pod_that_is_guaranteed_container_by_container(spec):
    once = apply(spec, edits_to_guaranteed(spec))
    assert edits_to_guaranteed(once) == ()


@pytest.mark.parametrize(
    ("requests", "limits", "lines"),
    [
        pytest.param("cpu=1 memory=1Gi", "", 2, id="a limit per resource"),
        pytest.param("", "cpu=1 memory=1Gi", 0, id="requests follow limits"),
        pytest.param("cpu=1", "cpu=1 memory=1Gi", 0, id="the missing request follows its limit"),
        pytest.param("cpu=1 memory=1Gi", "cpu=2 memory=1Gi", 1, id="one line for one difference"),
        pytest.param("", "", 2, id="nothing set: two limits to choose"),
    ],
)
def test_the_edit_is_as_small_as_it_can_be(requests, limits, lines):
    assert len(edits_to_guaranteed(pod(container(requests, limits)))) == lines


@pytest.mark.parametrize(
    ("requests", "limits", "cpu", "memory"),
    [
        ("cpu=1 memory=1Gi", "cpu=1 memory=2Gi", QOSClass.GUARANTEED, QOSClass.BURSTABLE),
        ("cpu=1", "", QOSClass.BURSTABLE, QOSClass.BEST_EFFORT),
        ("cpu=0", "", QOSClass.BEST_EFFORT, QOSClass.BEST_EFFORT),
    ],
)
def test_cpu_and_memory_of_one_container_can_differ_in_class(requests, limits, cpu, memory):
    assert class_per_resource(container(requests, limits).resources) == {"cpu": cpu, "memory": memory}


def apply(spec: Pod, edits) -> Pod:
    """Write the edits into a pod; where an amount has to be chosen, choose one."""
    places = {"spec": spec.spec.resources}
    places |= {f"spec.containers[{i}]": c.resources for i, c in enumerate(spec.spec.containers)}
    places |= {f"spec.initContainers[{i}]": c.resources for i, c in enumerate(spec.spec.init_containers)}
    for edit in edits:
        place, _, rest = edit.path.partition(".resources.")
        side, _, name = rest.partition(".")
        before = places[place]
        after = {**getattr(before, side), name: edit.value or Quantity.parse("1Gi")}
        places[place] = replace(before, **{side: after})
    return replace(
        spec,
        spec=replace(
            spec.spec,
            resources=places["spec"],
            containers=tuple(
                replace(c, resources=places[f"spec.containers[{i}]"]) for i, c in enumerate(spec.spec.containers)
            ),
            init_containers=tuple(
                replace(c, resources=places[f"spec.initContainers[{i}]"])
                for i, c in enumerate(spec.spec.init_containers)
            ),
        ),
    )
