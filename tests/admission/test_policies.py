from __future__ import annotations

import pytest

from admission.pods import amounts, limit_range, priority_class, quota
from podqos.admission.policies import Policies, validate_policies
from podqos.model.pod import ObjectMeta, Toleration
from podqos.model.policy import (
    ClusterResourceOverride,
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Overhead,
    RuntimeClass,
    RuntimeScheduling,
    ScopeRequirement,
    ScopeSelector,
)


def _complaints(**policies) -> list[str]:
    return [str(error) for error in validate_policies(Policies(**policies))]


def test_sensible_policies_raise_no_complaint():
    """The LimitRange of source 002 among them."""
    bounds = limit_range("lr", default="cpu=1,memory=512Mi", default_request="cpu=100m,memory=128Mi")
    assert (
        _complaints(
            limit_ranges=(bounds,),
            resource_quotas=(quota(hard="pods=5,requests.cpu=2,count/pods=5,requests.example.com/gpu=1"),),
            priority_classes=(priority_class("a", 1, global_default=True), priority_class("b", 2)),
            override=ClusterResourceOverride(25),
        )
        == []
    )


# bounds → the complaints, without the item they are about
LIMIT_RANGES = [
    pytest.param(
        {"min": "cpu=2", "max": "cpu=1"},
        [
            'min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
            'defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
            'default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
        ],
        id="min-above-max",
    ),
    pytest.param(
        {"default": "cpu=3", "max": "cpu=2", "default_request": "cpu=1"},
        ['default[cpu]: Invalid value: "2": default value 3 is greater than max value 2'],
        id="default-above-max",
    ),
    pytest.param(
        {"default": "cpu=1", "default_request": "cpu=2"},
        ['defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1'],
        id="default-request-above-default",
    ),
    pytest.param(
        {"max_limit_request_ratio": "cpu=500m"},
        ['maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        id="ratio-below-one",
    ),
    pytest.param(
        {"min": "cpu=1", "max": "cpu=2", "max_limit_request_ratio": "cpu=3"},
        ['maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
        id="ratio-that-means-nothing",
    ),
    pytest.param(
        {"type": "Pod", "default": "cpu=1"},
        ["default: Forbidden: may not be specified when `type` is 'Pod'"],
        id="default-for-pods",
    ),
    pytest.param(
        {"type": "PersistentVolumeClaim"},
        ["limits: Required value: either minimum or maximum storage value is required, but neither was provided"],
        id="claim-without-storage",
    ),
    pytest.param(
        {"type": "Node"},
        ['type: Invalid value: "Node": must be a standard limit type or fully qualified'],
        id="unknown-type",
    ),
    pytest.param(
        {"default": "a.io/b=2", "default_request": "a.io/b=1"},
        ['defaultRequest[a.io/b]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in a.io/b'],
        id="overcommitted-device",
    ),
    pytest.param(
        {"max": "pods=1"},
        [
            f'{field}[pods]: Invalid value: "pods": must be a standard resource for containers'
            for field in ("max", "default", "defaultRequest")
        ],
        id="not-of-containers",
    ),
]


@pytest.mark.parametrize(("bounds", "complaints"), LIMIT_RANGES)
def test_a_limit_range_must_make_sense(bounds, complaints):
    """In the API server's words, with the object named."""
    prefix = 'LimitRange "lr" is invalid: spec.limits[0].'
    assert _complaints(limit_ranges=(limit_range("lr", **bounds),)) == [prefix + complaint for complaint in complaints]


def test_complaints_about_what_nobody_wrote_are_known_as_echoes():
    """The defaults were filled in from the maximum."""
    errors = validate_policies(Policies(limit_ranges=(limit_range("lr", min="cpu=2", max="cpu=1"),)))
    assert [error.is_echo for error in errors] == [False, True, True]
    errors = validate_policies(Policies(limit_ranges=(limit_range("lr", max="cpu=1", default="cpu=2"),)))
    assert [(error.error.path, error.is_echo) for error in errors] == [
        ("spec.limits[0].defaultRequest[cpu]", True),
        ("spec.limits[0].default[cpu]", False),
    ]


def test_a_limit_range_has_one_item_of_each_type():
    """Two would hide each other's defaults."""
    twice = LimitRange(ObjectMeta("lr"), LimitRangeSpec((LimitRangeItem("Pod"), LimitRangeItem("Pod"))))
    assert _complaints(limit_ranges=(twice,)) == [
        'LimitRange "lr" is invalid: spec.limits[1].type: Duplicate value: "Pod"'
    ]


def _selector(*requirements: tuple) -> ScopeSelector:
    return ScopeSelector(tuple(ScopeRequirement(*requirement) for requirement in requirements))


QUOTAS = [
    pytest.param({"scopes": ("Fast",)}, 'spec.scopes: Invalid value: "Fast": unsupported scope', id="unknown-scope"),
    pytest.param(
        {"scopes": ("BestEffort", "NotBestEffort"), "hard": "pods=1"},
        'spec.scopes: Invalid value: "BestEffort, NotBestEffort": conflicting scopes',
        id="contradiction",
    ),
    pytest.param(
        {"scopes": ("BestEffort",), "hard": "requests.cpu=1"},
        'spec.scopes: Invalid value: "BestEffort": unsupported scope applied to resource',
        id="best-effort-has-no-cpu",
    ),
    pytest.param({"hard": "gpu=1"}, 'spec.hard[gpu]: Invalid value: "gpu": must be a standard resource', id="unknown"),
    pytest.param(
        {"hard": "storage=1"},
        'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
        id="not-a-quota-resource",
    ),
    pytest.param({"hard": "pods=-1"}, 'spec.hard[pods]: Invalid value: "-1": must be greater', id="negative"),
    pytest.param({"hard": "pods=500m"}, 'spec.hard[pods]: Invalid value: "500m": must be an integer', id="half-a-pod"),
    pytest.param(
        {"scope_selector": _selector(("Fast", "Exists"))},
        'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Fast": unsupported scope',
        id="unknown-scope-in-selector",
    ),
    pytest.param(
        {"scope_selector": _selector(("PriorityClass", "In"))},
        "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value",
        id="in-nothing",
    ),
    pytest.param(
        {"scope_selector": _selector(("PriorityClass", "Exists", ("high",)))},
        'spec.scopeSelector.matchExpressions.values: Invalid value: "high": must be no value',
        id="exists-with-value",
    ),
    pytest.param(
        {"scope_selector": _selector(("PriorityClass", "Like", ("high",)))},
        'spec.scopeSelector.matchExpressions.operator: Invalid value: "Like": not a valid selector operator',
        id="unknown-operator",
    ),
    pytest.param(
        {"scope_selector": _selector(("BestEffort", "In", ("x",)))},
        "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' when scope is any of",
        id="class-scope-takes-no-values",
    ),
    pytest.param(
        {"scope_selector": _selector(("Terminating", "Exists"), ("NotTerminating", "Exists"))},
        'spec.scopeSelector.matchExpressions: Invalid value: "Terminating, NotTerminating": conflicting scopes',
        id="contradiction-in-selector",
    ),
    pytest.param(
        {"hard": "services=1", "scope_selector": _selector(("PriorityClass", "Exists"))},
        'spec.scopeSelector.matchExpressions: Invalid value: "PriorityClass": unsupported scope applied to resource',
        id="services-have-no-priority",
    ),
]


@pytest.mark.parametrize(("spec", "complaint"), QUOTAS)
def test_a_quota_must_make_sense(spec, complaint):
    """An unknown scope would count nothing, silently."""
    found = _complaints(resource_quotas=(quota(**spec),))
    assert any(line.startswith(f'ResourceQuota "quota" is invalid: {complaint}') for line in found), found


def test_two_global_defaults_are_an_error():
    """The API server lets only one in."""
    classes = (priority_class("a", 1, global_default=True), priority_class("b", 2, global_default=True))
    assert _complaints(priority_classes=classes) == [
        'PriorityClass "b" is invalid: PriorityClass a is already marked as default. Only one default can exist'
    ]


def test_a_reserved_priority_class_and_a_senseless_override_are_errors():
    """Each names its object."""
    complaints = _complaints(priority_classes=(priority_class("system-x", 1),), override=ClusterResourceOverride(101))
    assert [line.partition(" is invalid")[0] for line in complaints] == [
        'PriorityClass "system-x"',
        'ClusterResourceOverride "cluster"',
    ]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"handler": "runc"}, None, id="fine"),
        pytest.param({}, "handler: Required value", id="without-handler"),
        pytest.param({"handler": "Run_C"}, 'handler: Invalid value: "Run_C"', id="handler"),
        pytest.param(
            {"handler": "runc", "overhead": Overhead(amounts("cpu=-1"))},
            'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="overhead",
        ),
        pytest.param(
            {"handler": "runc", "scheduling": RuntimeScheduling({"a b": ""})},
            'scheduling.nodeSelector: Invalid value: "a b"',
            id="selector",
        ),
        pytest.param(
            {"handler": "runc", "scheduling": RuntimeScheduling({}, (Toleration("a", "Exists"),) * 2)},
            "scheduling.tolerations[1]: Duplicate value",
            id="toleration-twice",
        ),
    ],
)
def test_a_runtime_class_must_make_sense(fields, complaint):
    """It needs a handler before anything else."""
    found = _complaints(runtime_classes=(RuntimeClass(ObjectMeta("rc"), **fields),))
    assert (not found) if complaint is None else found[0].startswith(f'RuntimeClass "rc" is invalid: {complaint}')
