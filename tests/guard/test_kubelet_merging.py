"""The settings of a kubelet that runs: file, drop-ins and flags."""

from __future__ import annotations

import pytest

from podqos.errors import InvalidConfiguration
from podqos.guard.kubelet_merging import KubeletText, merged_settings

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def text(fields: str, name: str = "a.yaml") -> KubeletText:
    return KubeletText(name, (HEADER + fields).encode())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("", id="empty"),
        pytest.param("- a", id="a list"),
        pytest.param("maxPods: 5", id="without a kind"),
        pytest.param(HEADER.replace("KubeletConfiguration", "KubeProxyConfiguration"), id="another kind"),
        pytest.param(HEADER.replace("v1beta1", "v1alpha1"), id="another version"),
        pytest.param(f"{HEADER}---\n{HEADER}", id="two documents"),
    ],
)
@pytest.mark.parametrize("is_drop_in", [False, True], ids=["file", "drop-in"])
def test_a_file_must_be_one_configuration_of_a_kubelet(data, is_drop_in):
    wrong = KubeletText("wrong.yaml", data.encode())
    with pytest.raises(InvalidConfiguration, match=r"wrong\.yaml: not a kubelet configuration file"):
        merged_settings(text("") if is_drop_in else wrong, [wrong] if is_drop_in else [], {})


def test_comments_and_empty_documents_around_it_do_not_matter():
    data = f"# by the installer\n---\n{HEADER}maxPods: 5\n---\n# end\n".encode()
    assert merged_settings(KubeletText("a.yaml", data), [], {}).configuration.max_pods == 5


def test_a_drop_in_is_a_merge_patch():
    """RFC 7396: objects are merged, null removes, all else replaces."""
    drop_in = text("systemReserved: {cpu: null, memory: 2Gi}\nevictionSoft: {memory.available: 1Gi}\nmaxPods: null\n")
    file = text("systemReserved: {cpu: 100m, memory: 1Gi, pid: '9'}\nmaxPods: 5\n")
    soft = text("evictionSoftGracePeriod: {memory.available: 1m}\n")
    config = merged_settings(file, [drop_in, soft], {}).configuration
    assert config.system_reserved == {"memory": "2Gi", "pid": "9"}
    assert (config.eviction_soft, config.max_pods) == ({"memory.available": "1Gi"}, 110)


def test_flags_replace_fields_but_add_feature_gates():
    file = text("featureGates: {NodeSwap: false, MemoryQoS: false}\nkubeReserved: {memory: 1Gi}\n")
    flags = {"feature-gates": ["MemoryQoS=true"], "kube-reserved": ["cpu=1"], "v": ["2"]}
    config = merged_settings(file, [], flags).configuration
    assert config.feature_gates == {"NodeSwap": False, "MemoryQoS": True}
    assert config.kube_reserved == {"cpu": "1"}


def test_default_thresholds_are_those_of_a_file():
    assert merged_settings(None, [], {}).configuration.eviction_hard == {}
    assert merged_settings(text(""), [], {}).configuration.eviction_hard["memory.available"] == "100Mi"


def test_settings_with_which_no_kubelet_starts_are_refused_with_their_place():
    file = text("cpuManagerPolicy: static\n")
    with pytest.raises(InvalidConfiguration, match=r"a\.yaml: cpuManagerPolicy: static needs CPUs"):
        merged_settings(file, [], {})
    assert merged_settings(text("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"), [], {})
    with pytest.raises(InvalidConfiguration, match=r"enforceNodeAllocatable: without cgroupsPerQOS"):
        merged_settings(text("cgroupsPerQOS: false\n"), [], {})
    assert merged_settings(text("cgroupsPerQOS: false\nenforceNodeAllocatable: []\n"), [], {})
