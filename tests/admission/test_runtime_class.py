from __future__ import annotations

import pytest

from admission.pods import amounts, container, pod, quota
from podqos.admission.chain import admit
from podqos.admission.changes import Change, Why
from podqos.admission.policies import Policies
from podqos.admission.refusal import Code, Denied
from podqos.admission.runtime_class import apply_runtime_class, overhead_mismatch
from podqos.model.pod import ObjectMeta, Toleration
from podqos.model.policy import Overhead, RuntimeClass, RuntimeScheduling

SANDBOX = RuntimeClass(ObjectMeta("sandbox"), "kata", Overhead(amounts("cpu=250m,memory=160Mi")))
PLAIN = RuntimeClass(ObjectMeta("plain"), "runc")
PINNED = RuntimeClass(
    ObjectMeta("pinned"), "gvisor", scheduling=RuntimeScheduling({"pool": "a"}, (Toleration("pool", "Exists"),))
)
CLASSES = (SANDBOX, PLAIN, PINNED)


def test_the_overhead_of_the_class_is_written_into_the_pod():
    """With its reason."""
    record: list[Change] = []
    after = apply_runtime_class(pod(container(), runtime_class_name="sandbox"), CLASSES, record)
    assert after.spec.overhead == amounts("cpu=250m,memory=160Mi")
    assert {(change.path, change.why, change.source) for change in record} == {
        ("spec.overhead", Why.RUNTIME_CLASS_OVERHEAD, "sandbox")
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"runtime_class_name": "none"}, 'pod rejected: RuntimeClass "none" not found', id="unknown"),
        pytest.param(
            {"runtime_class_name": "sandbox", "overhead": amounts("cpu=1")},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another-overhead",
        ),
        pytest.param(
            {"runtime_class_name": "pinned", "node_selector": {"pool": "b"}},
            "conflict: runtimeClass.scheduling.nodeSelector[pool] = a; pod.spec.nodeSelector[pool] = b",
            id="another-pool",
        ),
    ],
)
def test_what_contradicts_the_class_is_refused(spec, words):
    """In the API server's words."""
    denied = apply_runtime_class(pod(container(), **spec), CLASSES)
    assert isinstance(denied, Denied)
    assert denied.message == words


def test_scheduling_constraints_are_merged():
    """The pod's own stay."""
    own = Toleration("other", "Exists")
    spec = apply_runtime_class(
        pod(container(), runtime_class_name="pinned", node_selector={"disk": "ssd"}, tolerations=(own,)), CLASSES
    ).spec
    assert spec.node_selector == {"disk": "ssd", "pool": "a"}
    assert spec.tolerations == (own, Toleration("pool", "Exists"))


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        pytest.param({}, False, id="none"),
        pytest.param({"overhead": amounts("cpu=1")}, True, id="without-class"),
        pytest.param({"overhead": amounts("cpu=1"), "runtime_class_name": "plain"}, True, id="class-without-overhead"),
        pytest.param(
            {"overhead": amounts("memory=160Mi,cpu=0.25"), "runtime_class_name": "sandbox"},
            False,
            id="as-the-class-says",
        ),
        pytest.param({"overhead": amounts("cpu=1"), "runtime_class_name": "sandbox"}, True, id="another"),
        pytest.param({"overhead": {}}, True, id="empty-is-not-absent"),
    ],
)
def test_an_overhead_needs_a_class_that_gives_it(spec, refused):
    """Users do not choose their overhead."""
    assert (overhead_mismatch(pod(container(), **spec), CLASSES) is not None) is refused


def test_an_empty_name_is_an_error_of_the_server():
    """It asks for an object without a name."""
    refusal = admit(pod(container(), runtime_class_name=""), Policies(runtime_classes=CLASSES)).refusal
    assert (refusal.code, refusal.message) == (Code.INTERNAL_ERROR, "resource name may not be empty")


def test_the_overhead_of_a_class_is_not_rounded_until_it_is_read():
    """A quota counts, and quotes, what the class says."""
    fine = RuntimeClass(ObjectMeta("fine"), "kata", Overhead(amounts("cpu=123456700n")))
    given = pod(container(requests="cpu=1"), runtime_class_name="fine")
    refusal = admit(given, Policies(runtime_classes=(fine,), resource_quotas=(quota(hard="requests.cpu=1"),))).refusal
    assert "requested: requests.cpu=1123456700n, used: requests.cpu=0, limited: requests.cpu=1" in refusal.message
    assert str(admit(given, Policies(runtime_classes=(fine,))).pod.spec.overhead["cpu"]) == "124m"
