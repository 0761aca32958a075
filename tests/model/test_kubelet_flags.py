from __future__ import annotations

import msgspec
import pytest

from podqos.errors import InvalidConfiguration
from podqos.model.kubelet_config import API_VERSION, KIND, KNOWN_FIELDS, KubeletConfiguration, kubelet_configuration
from podqos.model.kubelet_flags import (
    FLAGS,
    IGNORED_FLAGS,
    Form,
    arguments_from_words,
    fields_from_arguments,
    flag_of,
    flag_values,
    parse_pairs,
)

EXAMPLES: dict[Form, tuple[list[str], object]] = {
    Form.TEXT: (["/a", "/b"], "/b"),
    Form.DURATION: (["1m30s"], "1m30s"),
    Form.INTEGER: (["20", "30"], 30),
    Form.BOOLEAN: (["true", "F"], False),
    Form.LIST: (["pods,kube-reserved", "system-reserved"], ["pods", "kube-reserved", "system-reserved"]),
    Form.EQUALS: (["memory=1Gi,cpu=1", "cpu=2"], {"memory": "1Gi", "cpu": "2"}),
    Form.BELOW: (
        ["memory.available<1Gi", "nodefs.available<5%"],
        {"memory.available": "1Gi", "nodefs.available": "5%"},
    ),
    Form.GATES: (["MemoryQoS=true,Other=false"], {"MemoryQoS": True, "Other": False}),
    Form.TAINTS: (
        ["a=b:NoSchedule", "c:NoExecute"],
        [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "c", "value": "", "effect": "NoExecute"}],
    ),
}


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_sets_the_field_of_its_name(flag):
    field, form = FLAGS[flag]
    values, expected = EXAMPLES[form]
    given = fields_from_arguments({flag: values})
    assert (given.fields, given.ignored) == ({field: expected}, ())
    assert field in KNOWN_FIELDS


def test_every_field_that_has_a_flag_upstream_is_reached_by_one():
    """The others came after flags were frozen, and can be set in the file alone."""
    decoded = {field.encode_name for field in msgspec.structs.fields(KubeletConfiguration)}
    assert decoded - {field for field, _ in FLAGS.values()} == {
        "crashLoopBackOff", "memoryReservationPolicy", "memorySwap", "memoryThrottlingFactor",
        "mergeDefaultEvictionSettings", "singleProcessOOMKill",
    }  # fmt: skip


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if not flag.startswith("experimental-")])
def test_a_field_is_written_back_as_its_flag(flag):
    field, form = FLAGS[flag]
    assert flag_of(field) == flag
    if form is not Form.TAINTS:
        fields = fields_from_arguments({flag: EXAMPLES[form][0]}).fields
        assert fields_from_arguments({flag: flag_values(flag, fields[field])}).fields == fields


def test_flags_that_decide_nothing_are_named_and_those_that_look_misspelt_refused():
    given = fields_from_arguments({"node-labels": ["a=b"], "max-pods": ["20"], "acme-tracing": ["on"]})
    assert (given.fields, given.ignored) == ({"maxPods": 20}, ("node-labels", "acme-tracing"))
    assert not set(IGNORED_FLAGS) & set(FLAGS)
    with pytest.raises(InvalidConfiguration, match="unknown kubelet flag 'eviction-hrad'") as error:
        fields_from_arguments({"eviction-hrad": ["memory.available<1Gi"]})
    assert error.value.fix == "did you mean eviction-hard?"


@pytest.mark.parametrize("values", [None, []], ids=["null", "empty"])
def test_a_flag_that_is_never_used_leaves_the_default(values):
    assert fields_from_arguments({"eviction-hard": values}).fields == {}


def test_an_empty_use_of_a_map_clears_its_default():
    assert fields_from_arguments({"eviction-hard": [""]}).fields == {"evictionHard": {}}


WRONG = {
    "a text in place of a list": (
        {"eviction-hard": "memory.available<1Gi"},
        "eviction-hard: expected a list of strings",
    ),
    "a mapping in place of a list": ({"eviction-hard": {"memory.available": "1Gi"}}, "eviction-hard: expected a list"),
    "a number in place of a text": ({"max-pods": [250]}, "max-pods: 250 is not a string"),
    "not a number": ({"eviction-max-pod-grace-period": ["soon"]}, "'soon' is not a whole number"),
    "too long a number": ({"max-pods": ["9" * 30]}, "is not a whole number"),
    "not a boolean": ({"fail-swap-on": ["maybe"]}, "'maybe' is neither true nor false"),
    "an empty boolean": ({"fail-swap-on": [""]}, "'' is neither true nor false"),
    "the wrong separator": ({"eviction-hard": ["memory.available=1Gi"]}, "'memory.available=1Gi': malformed pair"),
    "a gate": ({"feature-gates": ["MemoryQoS=on"]}, "'on' is neither true nor false"),
    "a taint": ({"register-with-taints": ["a=b"]}, "'a=b' is not a valid taint"),
    "not modelled": ({"experimental-allocatable-ignore-eviction": ["true"]}, "not supported"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_bad_value_is_one_message_that_names_its_flag(arguments, message):
    with pytest.raises(InvalidConfiguration) as error:
        fields_from_arguments(arguments)
    assert message in str(error.value)
    assert error.value.where == next(iter(arguments))
    assert error.value.fix
    assert "\n" not in str(error.value)


def test_what_is_not_modelled_may_be_off():
    assert fields_from_arguments({"experimental-allocatable-ignore-eviction": ["false"]}).fields == {}


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
def test_a_map_is_split_as_the_kubelet_splits_it(flag, pairs):
    assert parse_pairs(flag, "<") == pairs


def test_a_command_line_is_taken_apart():
    words = ["--max-pods", "20", "--fail-swap-on", "--eviction-hard=memory.available<1Gi", "kube-reserved=memory=1Gi"]
    assert arguments_from_words([*words, "--max-pods=30"]) == {
        "max-pods": ["20", "30"],
        "fail-swap-on": ["true"],
        "eviction-hard": ["memory.available<1Gi"],
        "kube-reserved": ["memory=1Gi"],
    }


@pytest.mark.parametrize(("word", "message"), [("--max-pods", "flag needs a value"), ("pods", "not a valid flag")])
def test_a_command_line_that_is_none_is_refused(word, message):
    with pytest.raises(InvalidConfiguration, match=message):
        arguments_from_words([word])


def test_zero_as_transition_period_means_the_default_in_a_document_and_zero_as_a_flag():
    """Documents are defaulted, and defaulting cannot tell zero from absent; flags come after it."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "evictionPressureTransitionPeriod": "0m"}
    assert kubelet_configuration(document).eviction_pressure_transition_period == "5m"
    assert kubelet_configuration(document, is_defaulted=False).eviction_pressure_transition_period == "0m"
