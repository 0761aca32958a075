from __future__ import annotations

import pytest

from podqos.errors import InvalidConfiguration
from podqos.eviction.settings import (
    EvictionSettings,
    parse_pairs,
    settings_from_configuration,
    settings_from_flags,
    settings_from_kubelet_arguments,
)
from podqos.eviction.thresholds import pressure_transition_period_ns

HARD = {"memory.available": "100Mi", "nodefs.available": "10%"}
SOFT = {"memory.available": "500Mi", "nodefs.available": "15%"}
GRACE = {"memory.available": "2m", "nodefs.available": "1m30s"}


def test_a_document_flags_and_kubelet_arguments_say_the_same():
    """The example of the content platform, in all three spellings."""
    expected = EvictionSettings(
        eviction_hard=HARD,
        eviction_soft=SOFT,
        eviction_soft_grace_period=GRACE,
        eviction_max_pod_grace_period=30,
        enforce_node_allocatable=("pods",),
    )
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "evictionHard": HARD,
        "evictionSoft": SOFT,
        "evictionSoftGracePeriod": GRACE,
        "evictionMaxPodGracePeriod": 30,
        "enforceNodeAllocatable": ["pods"],
        "maxPods": 110,
    }
    flags = [
        "--eviction-hard=memory.available<100Mi,nodefs.available<10%",
        "--eviction-soft",
        "memory.available<500Mi,nodefs.available<15%",
        "--eviction-soft-grace-period=memory.available=2m,nodefs.available=1m30s",
        "--eviction-max-pod-grace-period=30",
        "--enforce-node-allocatable=pods",
        "--v=2",
        "--register-node",
    ]
    arguments = {
        "eviction-hard": ["memory.available<100Mi", "nodefs.available<10%"],
        "eviction-soft": ["memory.available<500Mi", "nodefs.available<15%"],
        "eviction-soft-grace-period": ["memory.available=2m", "nodefs.available=1m30s"],
        "eviction-max-pod-grace-period": ["30"],
        "enforce-node-allocatable": ["pods"],
        "kube-reserved": ["cpu=200m,memory=512Mi"],
    }
    assert settings_from_configuration(document) == expected
    assert settings_from_flags(flags) == expected
    assert settings_from_kubelet_arguments(arguments) == expected


@pytest.mark.parametrize(
    ("flag", "pairs"),
    [
        ("", {}),
        (",,a<1,,", {"a": "1"}),
        (" a < 1 , b<2", {"a": "1", "b": "2"}),
        ("a<", {"a": ""}),
        ("<1", {"": "1"}),
        ("a<1<2", {"a": "1<2"}),
        ("a<1,a<2", {"a": "2"}),
    ],
)
def test_a_flag_is_split_as_the_kubelet_splits_it(flag, pairs):
    assert parse_pairs(flag, "<") == pairs


def test_a_pair_without_its_separator_is_an_error_that_names_it():
    with pytest.raises(InvalidConfiguration) as error:
        settings_from_flags(["--eviction-hard=memory.available=100Mi"])
    assert "memory.available=100Mi: malformed pair, expect string<string" in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eviction-hard": "memory.available<1Gi"}, "eviction-hard: expected a list of strings"),
        ({"eviction-max-pod-grace-period": ["soon"]}, "'soon' is not a whole number"),
        ({"fail-swap-on": ["maybe"]}, "'maybe' is neither true nor false"),
    ],
)
def test_a_bad_kubelet_argument_is_one_clear_message(arguments, message):
    with pytest.raises(InvalidConfiguration) as error:
        settings_from_kubelet_arguments(arguments)
    assert message in str(error.value)
    assert error.value.fix


def test_a_flag_without_its_value_is_an_error():
    with pytest.raises(InvalidConfiguration, match="flag needs a value"):
        settings_from_flags(["--eviction-hard"])


def test_a_document_of_the_wrong_shape_names_the_field():
    with pytest.raises(InvalidConfiguration) as error:
        settings_from_configuration({"evictionHard": {"memory.available": 100}})
    assert error.value.where == "evictionHard[...]"


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        (settings_from_configuration({}), 300),
        (settings_from_configuration({"evictionPressureTransitionPeriod": "0s"}), 300),
        (settings_from_configuration({"evictionPressureTransitionPeriod": "30s"}), 30),
        (settings_from_flags(["--eviction-pressure-transition-period=0s"]), 0),
    ],
)
def test_zero_as_transition_period_means_the_default_in_a_document_and_zero_as_a_flag(settings, seconds):
    """Documents are defaulted, and defaulting cannot tell zero from absent; flags come after it."""
    assert pressure_transition_period_ns(settings) == seconds * 10**9


@pytest.mark.parametrize(
    ("flag", "value"), [("--fail-swap-on=false", False), ("--fail-swap-on", True), ("--fail-swap-on=T", True)]
)
def test_boolean_flags_need_no_value(flag, value):
    assert settings_from_flags([flag, "--eviction-hard="]) == EvictionSettings(fail_swap_on=value, eviction_hard={})
