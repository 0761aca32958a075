import pytest
from hypothesis import given

from podqos.admission.changes import Change
from podqos.admission.defaulting import on_decoding
from podqos.admission.keeping import WhyNotKept, keep_guaranteed
from podqos.manifest.decode import convert_pod
from podqos.model.pod import QOSClass
from podqos.qos.classes import classify
from strategies import pods

MAIN = {"name": "main", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
KEEP = {"podqos.dev/keep-class": "Guaranteed"}


def pod(*containers, annotations=KEEP, init=(), **spec):
    return convert_pod({
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    })  # fmt: skip


def class_of(kept):
    return classify(on_decoding(kept.pod)).qos_class


def test_a_pod_that_does_not_ask_is_left_alone():
    assert keep_guaranteed(pod(MAIN, {"name": "proxy"}, annotations={})) is None


def test_a_pod_that_is_guaranteed_needs_nothing():
    assert keep_guaranteed(pod(MAIN)) is None


def test_a_sidecar_that_only_requests_is_limited_to_that():
    proxy = {"name": "proxy", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    record: list[Change] = []
    kept = keep_guaranteed(pod(MAIN, proxy), record=record)
    assert class_of(kept) is QOSClass.GUARANTEED
    assert kept.containers == ("proxy",)
    assert [(each.path, each.resource, str(each.after)) for each in record] == [
        ("spec.containers[1].resources.limits", "cpu", "100m"),
        ("spec.containers[1].resources.limits", "memory", "64Mi"),
    ]


def test_a_sidecar_whose_limits_are_higher_requests_them():
    proxy = {
        "name": "proxy",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
    }
    kept = keep_guaranteed(pod(MAIN, init=[proxy | {"restartPolicy": "Always"}]))
    assert class_of(kept) is QOSClass.GUARANTEED
    [container] = kept.pod.spec.init_containers
    assert str(container.resources.requests["cpu"]) == "2"
    assert str(container.resources.limits["memory"]) == "1Gi"


def test_a_sidecar_without_amounts_gets_those_of_the_annotation():
    stated = KEEP | {"podqos.dev/sidecar-limits": "cpu=50m, memory=32Mi"}
    kept = keep_guaranteed(pod(MAIN, {"name": "proxy"}, annotations=stated))
    assert class_of(kept) is QOSClass.GUARANTEED
    assert str(kept.pod.spec.containers[1].resources.limits["memory"]) == "32Mi"


@pytest.mark.parametrize(
    ("annotations", "containers", "why"),
    [
        ({"podqos.dev/keep-class": "Burstable"}, [MAIN, {"name": "proxy"}], WhyNotKept.NO_SUCH_CLASS),
        (KEEP, [{"name": "a"}, {"name": "b"}], WhyNotKept.NOT_MEANT),
        (KEEP, [MAIN, {"name": "proxy"}], WhyNotKept.AMOUNTS_UNKNOWN),
        (KEEP | {"podqos.dev/sidecar-limits": "cpu=50m"}, [MAIN, {"name": "proxy"}], WhyNotKept.AMOUNTS_UNKNOWN),
        (KEEP | {"podqos.dev/sidecar-limits": "cpu=much"}, [MAIN, {"name": "proxy"}], WhyNotKept.LIMITS_UNREADABLE),
        (KEEP | {"podqos.dev/sidecar-limits": "gpu=1"}, [MAIN, {"name": "proxy"}], WhyNotKept.LIMITS_UNREADABLE),
        (KEEP | {"podqos.dev/sidecar-limits": "cpu=-1"}, [MAIN, {"name": "proxy"}], WhyNotKept.LIMITS_UNREADABLE),
    ],
)
def test_what_cannot_be_kept_is_left_as_it_is_and_says_why(annotations, containers, why):
    asking = pod(*containers, annotations=annotations)
    kept = keep_guaranteed(asking)
    assert kept.why_not is why
    assert kept.pod is asking


def test_what_the_pod_states_as_a_whole_is_not_touched():
    kept = keep_guaranteed(pod(MAIN, {"name": "proxy"}, resources={"limits": {"cpu": "2"}}))
    assert kept.why_not is WhyNotKept.NOT_MEANT


@given(pods())
def test_keeping_makes_a_pod_guaranteed_or_leaves_it_and_twice_is_once(drawn):
    from msgspec.structs import replace

    annotations = KEEP | {"podqos.dev/sidecar-limits": "cpu=50m,memory=32Mi"}
    asking = replace(drawn, metadata=replace(drawn.metadata, annotations=annotations))
    kept = keep_guaranteed(asking)
    if kept is None or kept.why_not is not None:
        return
    assert class_of(kept) is QOSClass.GUARANTEED
    assert keep_guaranteed(on_decoding(kept.pod)) is None
