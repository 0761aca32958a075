"""Policy objects of manifests become values of the model, or findings with the field at fault."""

from __future__ import annotations

import pytest

from podqos.manifest.kinds import is_policy
from podqos.manifest.policies import read_policy
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    Namespace,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
)
from podqos.model.quantity import Quantity

OPERATOR = "operator.autoscaling.openshift.io/v1"


def _object(kind: str, api_version: str = "v1", **fields) -> tuple[str, str, dict]:
    return kind, api_version, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}} | fields


PERCENTAGES = {"memoryRequestToLimitPercent": 50, "cpuRequestToLimitPercent": 25, "limitCPUToMemoryPercent": 200}
OVERRIDE = ClusterResourceOverride(50, 25, 200)


@pytest.mark.parametrize(
    ("written", "model"),
    [
        pytest.param(_object("Namespace", spec={"finalizers": ["kubernetes"]}), Namespace, id="Namespace"),
        pytest.param(_object("LimitRange", spec={"limits": [{"type": "Pod"}]}), LimitRange, id="LimitRange"),
        pytest.param(
            _object("ResourceQuota", spec={"hard": {"pods": 3}, "scopeSelector": {"matchExpressions": []}}),
            ResourceQuota,
            id="ResourceQuota",
        ),
        pytest.param(
            _object("PriorityClass", "scheduling.k8s.io/v1", value=7, description="seven"),
            PriorityClass,
            id="PriorityClass",
        ),
        pytest.param(
            _object("RuntimeClass", "node.k8s.io/v1", handler="kata", overhead={"podFixed": {"cpu": "1"}}),
            RuntimeClass,
            id="RuntimeClass",
        ),
    ],
)
def test_each_kind_is_read(written, model):
    reading = read_policy(*written)
    assert (type(reading.policy), reading.findings) == (model, ())


def test_amounts_are_read_as_in_pods():
    """A number, a text, and null for zero."""
    amounts = {"cpu": 1, "memory": "1Gi", "ephemeral-storage": None}
    policy = read_policy(*_object("LimitRange", spec={"limits": [{"type": "Container", "max": amounts}]})).policy
    assert policy.spec.limits[0].max == {
        "cpu": Quantity.parse("1"),
        "memory": Quantity.parse("1Gi"),
        "ephemeral-storage": Quantity.parse("0"),
    }


@pytest.mark.parametrize(
    ("written", "path", "generation"),
    [
        pytest.param(
            _object("ClusterResourceOverride", OPERATOR, spec={"podResourceOverride": {"spec": PERCENTAGES}}),
            ("spec", "podResourceOverride", "spec"),
            "current",
            id="operator",
        ),
        pytest.param(_object("ClusterResourceOverrideConfig", **PERCENTAGES), (), "okd-3.9", id="okd-3.9"),
        pytest.param(
            _object("ClusterResourceOverrideConfig", spec=PERCENTAGES | {"forceSelinuxRelabel": True}),
            ("spec",),
            "current",
            id="webhook",
        ),
    ],
)
def test_the_override_is_read_in_every_shape_and_the_shape_tells_its_generation(written, path, generation):
    reading = read_policy(*written)
    assert (reading.policy, reading.path, reading.generation) == (OVERRIDE, path, generation)


def _limits(**item) -> tuple[str, str, dict]:
    return _object("LimitRange", spec={"limits": [{"type": "Container"} | item]})


@pytest.mark.parametrize(
    ("written", "path", "words"),
    [
        pytest.param(_object("LimitRange", spec={"limit": []}), ("spec", "limit"), 'mean "limits"?', id="misspelt"),
        pytest.param(
            _limits(defaultRequests={}),
            ("spec", "limits", 0, "defaultRequests"),
            'mean "defaultRequest"?',
            id="misspelt-below",
        ),
        pytest.param(
            _limits(min={"cpu": "1x"}), ("spec", "limits", 0, "min", "cpu"), "not a valid quantity", id="value"
        ),
        pytest.param(
            _object("PriorityClass", "scheduling.k8s.io/v1", value="high"), ("value",), "whole number", id="wrong-type"
        ),
        pytest.param(_object("LimitRange", "apps/v1"), ("apiVersion",), "use v1", id="wrong-group"),
        pytest.param(_object("LimitRange", ""), (), "add apiVersion: v1", id="no-version"),
        pytest.param(_object("limitrange"), ("kind",), "did you mean LimitRange?", id="wrong-case"),
        pytest.param(_object("LimitRange", metadata={}), ("metadata", "name"), "Required value", id="no-name"),
        pytest.param(
            _object("ClusterResourceOverride", OPERATOR, spec={}),
            ("spec", "podResourceOverride"),
            "must be a mapping",
            id="override-without-percentages",
        ),
        pytest.param(
            _object("ClusterResourceOverrideConfig", cpuRequestToRequestPercent=50),
            ("cpuRequestToRequestPercent",),
            "does not model",
            id="override-not-modelled",
        ),
        pytest.param(
            _object("ClusterResourceOverrideConfig", cpuRequestToLimit=50),
            ("cpuRequestToLimit",),
            'mean "cpuRequestToLimitPercent"?',
            id="override-misspelt",
        ),
    ],
)
def test_what_does_not_fit_is_found_with_its_field_and_how_to_mend_it(written, path, words):
    reading = read_policy(*written)
    assert reading.policy is None
    (finding,) = reading.findings
    assert finding.path == path
    assert words in f"{finding.what} ({finding.fix})"


def test_an_object_of_an_api_server_may_be_newer_than_we_are():
    """It was checked there."""
    stored = {"name": "x", "uid": "1"}
    assert read_policy(*_object("Namespace", metadata=stored, status={"phase": "Active", "news": 1})).policy
    assert not read_policy(*_object("Namespace", status={"phase": "Active", "news": 1})).policy


@pytest.mark.parametrize(
    ("kind", "api_version", "expected"),
    [
        ("LimitRange", "v1", True),
        ("PriorityClass", "scheduling.k8s.io/v1beta1", True),
        ("PriorityClass", "v1", True),  # probably meant
        ("PriorityClass", "example.com/v1", False),
        ("Service", "v1", False),
    ],
)
def test_kinds_of_custom_groups_are_somebody_elses(kind, api_version, expected):
    assert is_policy(kind, api_version) is expected
