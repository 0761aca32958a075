"""A kubelet's settings in every notation."""

from __future__ import annotations

import json

import pytest

from podqos.errors import InputError
from podqos.manifest.kubelet import Notation, kubelet_settings, kubelet_settings_in
from podqos.manifest.reading import read
from podqos.model.kubelet_config import KubeletConfiguration

FIELDS = {
    "systemReserved": {"memory": "1Gi"},
    "evictionSoft": {"memory.available": "2Gi"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
    "maxPods": 20,
}
EXPECTED = KubeletConfiguration(
    system_reserved={"memory": "1Gi"},
    eviction_soft={"memory.available": "2Gi"},
    eviction_soft_grace_period={"memory.available": "1m30s"},
    max_pods=20,
)
ARGUMENTS = {
    "system-reserved": ["memory=1Gi"],
    "eviction-soft": ["memory.available<2Gi"],
    "eviction-soft-grace-period": ["memory.available=1m30s"],
    "max-pods": ["20"],
}
TEXT = "system-reserved=memory=1Gi --eviction-soft='memory.available<2Gi' max-pods=20 "
DOCUMENTS = {
    "KubeletConfiguration": (
        {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **FIELDS},
        ("KubeletConfiguration", "evictionSoft[memory.available]"),
    ),
    "configz": (
        {"kubeletconfig": FIELDS},
        ("KubeletConfiguration", "kubeletconfig.evictionSoft[memory.available]"),
    ),
    "OpenShift 4": (
        {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "KubeletConfig",
            "metadata": {"name": "small"},
            "spec": {"machineConfigPoolSelector": {}, "kubeletConfig": FIELDS},
        },
        ("KubeletConfig", "spec.kubeletConfig.evictionSoft[memory.available]"),
    ),
    "OpenShift 3": (
        {"apiVersion": "v1", "kind": "NodeConfig", "nodeName": "one", "kubeletArguments": ARGUMENTS},
        ("NodeConfig", "kubeletArguments.eviction-soft"),
    ),
    "as the documentation shows it": (
        {"kubeletArguments": ARGUMENTS},
        ("NodeConfig", "kubeletArguments.eviction-soft"),
    ),
    "as one text": (
        {"kubeletArguments": TEXT + 'eviction-soft-grace-period="memory.available=1m30s"'},
        ("NodeConfig", "kubeletArguments.eviction-soft"),
    ),
}


@pytest.mark.parametrize(("document", "told"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_every_notation_says_the_same_and_knows_its_places(document, told):
    settings = kubelet_settings(document)
    assert settings.configuration == EXPECTED
    data = json.dumps(document).encode()
    (other,) = read("file.json", data).others
    assert (other.kind, settings.notation.place('evictionSoft["memory.available"]')) == told
    assert kubelet_settings_in("file.json", data) == settings


@pytest.mark.parametrize(
    "document",
    [[], "text", {}, {"apiVersion": "v1", "kind": "Node"}, {"apiVersion": "example.com/v1", "kind": "KubeletConfig"}],
    ids=["list", "text", "empty", "node", "somebody else's"],
)
def test_what_holds_no_kubelets_settings_is_left_alone(document):
    assert kubelet_settings(document) is None


def test_a_node_config_without_arguments_has_the_defaults():
    for document in ({"apiVersion": "v1", "kind": "NodeConfig"}, {"kubeletArguments": None}):
        assert kubelet_settings(document).configuration == KubeletConfiguration()


def test_fields_without_a_flag_are_at_the_arguments():
    assert Notation.ARGUMENTS.place("memorySwap.swapBehavior") == "kubeletArguments"
    assert Notation.CONFIGURATION.place("") == ""


WRONG = {
    "a list": ({"kubeletArguments": ["max-pods=20"]}, "kubeletArguments: must be a mapping from flags to lists"),
    "an open quotation": ({"kubeletArguments": 'max-pods="20'}, "kubeletArguments: a quotation mark is missing"),
    "no flag": ({"kubeletArguments": "twenty pods"}, "kubeletArguments: 'twenty' is not a valid flag"),
    "misspelt": ({"kubeletArguments": {"max-pod": ["20"]}}, "kubeletArguments.max-pod: unknown kubelet flag"),
    "an amount": ({"kubeletArguments": {"kube-reserved": ["memory=x"]}}, "kubeletArguments.kube-reserved: 'x': "),
    "a resource": ({"kubeletArguments": {"kube-reserved": ["disk=1"]}}, "kube-reserved: 'disk' cannot be reserved"),
    "a duration": (
        {"kubeletArguments": {"eviction-pressure-transition-period": ["5"]}},
        "kubeletArguments.eviction-pressure-transition-period: time: missing unit",
    ),
    "in /configz": ({"kubeletconfig": {"maxPods": -1}}, "kubeletconfig.maxPods: -1 is negative"),
    "a text in /configz": ({"kubeletconfig": "x"}, "kubeletconfig: must be a mapping"),
    "nothing": ({"a": 1}, "file: contains no kubelet configuration"),
}


@pytest.mark.parametrize(("document", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line_with_file_and_place(document, message):
    with pytest.raises(InputError) as error:
        kubelet_settings_in("file", json.dumps(document).encode())
    text = str(error.value)
    assert text.startswith("file: " if message.startswith("file") else "file:1:")
    assert message in text
    assert error.value.fix
    assert "\n" not in text


def test_a_file_holds_one_kubelets_settings_beside_other_documents():
    text = b"kind: Other\n---\nkubeletArguments: {max-pods: ['20']}\n"
    assert kubelet_settings_in("file", text).configuration.max_pods == 20
    with pytest.raises(InputError, match="contains 2 kubelet configurations"):
        kubelet_settings_in("file", text + b"---\nkubeletArguments: {}\n")


@pytest.mark.parametrize(
    "text", ['{"kubeletconfig": {"memoryThrottlingFactor": 0.9}}', "kubeletconfig: {memoryThrottlingFactor: 0.9}"]
)
def test_a_number_with_a_fraction_is_read_from_json_as_from_yaml(text):
    assert kubelet_settings_in("configz", text.encode()).configuration.memory_throttling_factor == 0.9
