from __future__ import annotations

import pytest

from admission.pods import container, pod, priority_class
from podqos.admission.changes import FieldChange, Why
from podqos.admission.priority import admit_priority_class, apply_priority, validate_priority_class
from podqos.admission.refusal import Denied

CLASSES = (
    priority_class("high", 1000, preemption_policy="Never"),
    priority_class("usual", 10, global_default=True),
    priority_class("also-usual", 5, global_default=True),
)


@pytest.mark.parametrize(
    ("spec", "classes", "priority"),
    [
        pytest.param({"priority_class_name": "high"}, CLASSES, ("high", 1000, "Never"), id="by-name"),
        pytest.param({}, CLASSES, ("also-usual", 5, "PreemptLowerPriority"), id="lowest-global-default"),
        pytest.param({}, (), ("", 0, "PreemptLowerPriority"), id="no-default"),
        pytest.param({"priority": 0}, (), ("", 0, "PreemptLowerPriority"), id="the-computed-number-may-be-stated"),
    ],
)
def test_a_pod_gets_the_priority_of_its_class(spec, classes, priority):
    """Or of the global default, or none."""
    after = apply_priority(pod(container(), **spec), classes)
    assert (after.spec.priority_class_name, after.spec.priority, after.spec.preemption_policy) == priority


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"priority_class_name": "none"}, "no PriorityClass with name none was found", id="unknown"),
        pytest.param({"priority": 7}, "the integer value of priority (7) must not be provided", id="number"),
        pytest.param(
            {"preemption_policy": "Never"}, "the string value of PreemptionPolicy (Never) must not be", id="policy"
        ),
        pytest.param(
            {"preemption_policy": ""}, "the string value of PreemptionPolicy () must not be", id="empty-policy"
        ),
    ],
)
def test_what_contradicts_the_class_is_refused(spec, words):
    """The number comes from the class, never from the pod."""
    denied = apply_priority(pod(container(), **spec), CLASSES)
    assert isinstance(denied, Denied)
    assert denied.message.startswith(words)


def test_the_record_tells_where_the_number_came_from():
    """Only what changed is recorded."""
    record: list[FieldChange] = []
    apply_priority(pod(container(), priority_class_name="high"), CLASSES, record)
    assert [(change.path, change.after, change.why) for change in record] == [
        ("spec.priority", 1000, Why.PRIORITY_FROM_CLASS),
        ("spec.preemptionPolicy", "Never", Why.PRIORITY_FROM_CLASS),
    ]


@pytest.mark.parametrize(
    ("name", "value", "fields", "path"),
    [
        pytest.param("fine", 1_000_000_000, {}, None, id="highest-user-value"),
        pytest.param("greedy", 1_000_000_001, {}, "value", id="too-high"),
        pytest.param("system-mine", 1, {}, "metadata.name", id="reserved-prefix"),
        pytest.param("system-node-critical", 2_000_001_000, {}, None, id="the-real-one"),
        pytest.param("system-node-critical", 1, {}, "metadata.name", id="wrong-value"),
        pytest.param("system-node-critical", 2_000_001_000, {"global_default": True}, "metadata.name", id="as-default"),
        pytest.param("Upper", 1, {}, "metadata.name", id="bad-name"),
        pytest.param("odd", 1, {"preemption_policy": "Always"}, "preemptionPolicy", id="unknown-policy"),
        pytest.param("empty", 1, {"preemption_policy": ""}, "preemptionPolicy", id="empty-policy"),
    ],
)
def test_a_class_must_make_sense(name, value, fields, path):
    """Names with the prefix system- are Kubernetes' own."""
    paths = [error.path for error in validate_priority_class(priority_class(name, value, **fields))]
    assert paths == ([] if path is None else [path])


def test_there_is_one_global_default():
    """The second one is refused, and the first one named."""
    denied = admit_priority_class(priority_class("third", 1, global_default=True), CLASSES)
    assert denied == Denied("PriorityClass also-usual is already marked as default. Only one default can exist")
    assert admit_priority_class(priority_class("third", 1), CLASSES) is None
