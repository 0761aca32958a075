"""PQ105–PQ117 at their edges."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from advice.bundles import check_text
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks.bundle import CheckOptions


def found(text, options=None):
    """Return the findings but for those about the disk."""
    return [finding for finding in check_text(text, options) if finding.check != "PQ108"]


def ids(text, options=None):
    """Return what they are called."""
    return [finding.check for finding in found(text, options)]


def container(requests: str, limits: str) -> str:
    """Return resources in flow style."""
    return f"{{requests: {{cpu: 1, {requests}}}, limits: {{cpu: 2, {limits}}}}}"


@pytest.mark.parametrize(
    ("ratio", "expected"), [(Fraction(4), []), (Fraction(3), ["PQ105"]), (Fraction(399, 100), ["PQ105"])]
)
def test_the_ratio_of_limit_to_request_may_be_reached_but_not_exceeded(ratio, expected):
    text = pod(container("memory: 1Gi", "memory: 4Gi"))

    assert ids(text, replace(CheckOptions(), memory_ratio=ratio)) == expected


@pytest.mark.parametrize(
    ("demanded", "namespace", "is_checked"),
    [
        pytest.param("memory: 2", "default", False, id="the policy judges it"),
        pytest.param("cpu: 2", "default", True, id="of another resource"),
        pytest.param("memory: 2", "other", True, id="of another namespace"),
    ],
)
def test_where_a_policy_demands_a_ratio_the_check_has_none_of_its_own(demanded, namespace, is_checked):
    policy = (
        "---\napiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: calm}\nspec:\n  rules:\n"
        f"    - {{name: r, match: {{namespaces: [{namespace}]}}, action: Warn, "
        f"require: {{maxLimitRequestRatio: {{{demanded}}}}}}}\n"
    )
    text = pod(container("memory: 1Gi", "memory: 4Gi")) + policy
    assert ("PQ105" in ids(text, replace(CheckOptions(), memory_ratio=Fraction(3)))) is is_checked


def test_no_ratio_is_taken_of_an_amount_in_the_wrong_unit():
    assert set(ids(pod(container("memory: 512m", "memory: 4")))) == {"PQ117"}


def test_the_raised_request_is_the_smallest_in_whole_mebibytes():
    (finding,) = found(pod(container("memory: 1Mi", "memory: 1Gi")), replace(CheckOptions(), memory_ratio=Fraction(3)))

    assert [(edit.value, edit.replaces) for edit in finding.patch.edits] == [("342Mi", "1Mi")]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param("{limits: {memory: 1Gi}}", ["PQ106"], id="limit alone"),
        pytest.param('{requests: {memory: "0"}, limits: {memory: 1Gi}}', [], id="a request of zero is a statement"),
        pytest.param("{requests: {memory: 1Gi}}", ["PQ107"], id="request alone"),
        pytest.param("{requests: {cpu: 1}}", ["PQ120"], id="cpu alone"),
    ],
)
def test_half_of_memory(resources, expected):
    assert ids(pod(resources)) == expected


def test_a_missing_limit_is_told_once():
    """What PQ101 says about a container PQ107 does not say again."""
    assert ids(pod(FULL, "{requests: {cpu: 1, memory: 1Gi}}")) == ["PQ101"]


def test_sidecars_count_and_other_init_containers_do_not():
    text = pod(BURST, init=["{requests: {memory: 1Gi}}", "{requests: {memory: 1Gi}}"])
    text = text.replace("{name: i1,", "{name: i1, restartPolicy: Always,")

    assert [(finding.check, finding.container) for finding in found(text)] == [("PQ107", "i1"), ("PQ119", "i1")]


def test_pod_level_resources_are_left_to_the_pod():
    text = pod("{requests: {memory: 1Gi}}", extra="resources: {limits: {cpu: 2, memory: 2Gi}}")

    assert ids(text) == []


def test_one_finding_about_the_disk_for_all_containers():
    findings = [each for each in check_text(pod(BURST, "{requests: {cpu: 1}}", "{}")) if each.check == "PQ108"]

    assert [finding.facts.containers for finding in findings] == [("c1", "c2")]


def test_a_small_sidecar_matters_only_in_an_important_pod():
    sidecar = "{requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: 1, memory: 64Mi}}"
    text = pod(container("memory: 4Gi", "memory: 8Gi"), sidecar)
    important = text.replace("spec:\n", "spec:\n  priority: 1000000\n", 1)

    assert ids(text) == []
    assert [(each.check, each.container, each.facts.oom_score_adj) for each in found(important)] == [
        ("PQ114", "c1", 999)
    ]


@pytest.mark.parametrize(
    ("small", "main", "expected"),
    [
        pytest.param("32Mi", "1344Mi", [], id="999 and 980"),
        pytest.param("32Mi", "1377Mi", ["PQ114"], id="999 and 979"),
        pytest.param("656Mi", "2Gi", ["PQ114"], id="990 and 969"),
        pytest.param("721Mi", "2Gi", [], id="989 and 969"),
    ],
)
def test_a_sidecar_is_small_from_990_on_beside_a_container_that_is_twenty_points_safer(small, main, expected):
    """oom_score_adj on a node of 64Gi, of which 1377Mi are 21 thousandths."""
    sidecar = f"{{requests: {{cpu: 50m, memory: {small}}}, limits: {{cpu: 1, memory: 1Gi}}}}"
    text = pod(container(f"memory: {main}", "memory: 4Gi"), sidecar)
    found_ids = ids(text.replace("spec:\n", "spec:\n  priority: 1000000\n", 1))
    assert [each for each in found_ids if each == "PQ114"] == expected


def test_a_sidecar_that_keeps_the_pod_from_being_guaranteed_is_one_finding():
    text = pod(FULL, "{requests: {cpu: 50m, memory: 32Mi}}").replace("spec:\n", "spec:\n  priority: 1000000\n", 1)

    assert ids(text) == ["PQ101"]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(container("memory: 1Gi", "memory: 512Mi"), ["PQ111"], id="request above limit"),
        pytest.param(container("memory: 1Gi", "memory: -1Gi"), ["PQ111", "PQ112"], id="negative, so above it as well"),
        pytest.param("{requests: {gpu: 1}}", ["PQ112"], id="no such resource"),
        pytest.param("{limits: {hugepages-2Mi: 4Mi}}", ["PQ112"], id="huge pages need cpu or memory"),
    ],
)
def test_what_the_api_server_refuses(resources, expected):
    assert sorted(set(ids(pod(resources)))) == expected


def test_what_comes_from_an_api_server_has_been_accepted():
    text = pod(container("memory: 1Gi", "memory: 512Mi")).replace("{name: p,", "{name: p, uid: u,")

    assert ids(text) == []


@pytest.mark.parametrize(
    ("resources", "meant"),
    [
        pytest.param("{requests: {memory: 512m}, limits: {memory: 1Gi}}", ["512Mi"], id="thousandths of a byte"),
        pytest.param("{requests: {memory: 512Mi}, limits: {memory: 512m}}", ["512Mi"], id="below its request, too"),
        pytest.param('{requests: {memory: "512"}, limits: {memory: 1Gi}}', ["512Mi"], id="bytes"),
        pytest.param("{limits: {ephemeral-storage: 512m}}", ["512Mi"], id="thousandths of a byte on disk"),
        pytest.param("{requests: {cpu: 500M}}", ["500m"], id="millions of cores"),
        pytest.param('{requests: {cpu: 500M}, limits: {cpu: "1"}}', ["500m"], id="above its limit, too"),
        pytest.param("{limits: {cpu: 100Mi}}", ["100m"], id="mebibytes of cores"),
        pytest.param("{requests: {cpu: 250M}, limits: {cpu: 1000M}}", ["1000m", "250m"], id="both sides in one patch"),
        pytest.param('{requests: {memory: "64"}, limits: {memory: "128"}}', ["128Mi", "64Mi"], id="both without unit"),
    ],
)
def test_a_unit_that_shows_what_was_meant_is_fixed(resources, meant):
    (finding,) = [each for each in found(pod(resources)) if each.check == "PQ117"]

    assert [edit.value for edit in finding.patch.edits] == meant


@pytest.mark.parametrize(
    ("resources", "readings"),
    [
        pytest.param("{limits: {memory: 4}}", ["4Mi", "4Gi"], id="4 bytes"),
        pytest.param("{limits: {memory: 1.5}}", ["1.5Gi"], id="a byte and a half"),
        pytest.param("{limits: {memory: 2m}}", ["2Mi", "2Gi"], id="too few mebibytes"),
        pytest.param("{limits: {memory: 1073741824m}}", ["1073741824"], id="bytes with a unit they do not have"),
        pytest.param("{limits: {memory: 536870912m}}", ["536870912"], id="the same below a mebibyte"),
        pytest.param('{limits: {cpu: "50", memory: 64Mi}}', ["50m"], id="fifty cores beside next to no memory"),
        pytest.param('{limits: {ephemeral-storage: "100"}}', ["100Mi", "100Gi"], id="a disk without unit"),
        pytest.param("{limits: {memory: 512Ki}}", ["512Mi"], id="kibibytes"),
        pytest.param('{limits: {memory: "262144"}}', ["262144Ki"], id="probably kibibytes"),
        pytest.param("{limits: {memory: 64Ti}}", ["64Gi", "64Mi"], id="more memory than any machine"),
        pytest.param('{limits: {memory: "900000000000000000000"}}', [], id="out of this world"),
        pytest.param('{limits: {cpu: "500"}}', ["500m"], id="500 cores"),
        pytest.param('{limits: {cpu: "150"}}', ["150m"], id="fewer cores, but a round number"),
        pytest.param('{limits: {cpu: "2000"}}', ["2000m"], id="more cores than any machine"),
        pytest.param('{limits: {cpu: "1921", memory: 8Ti}}', ["1921m"], id="one core more than any machine"),
        pytest.param("{limits: {memory: 32769Gi}}", ["32769Mi"], id="a gibibyte more than any machine"),
        pytest.param('{limits: {cpu: "1000000"}}', [], id="a million cores, not 1M"),
        pytest.param("{limits: {cpu: 500000m}}", ["500m"], id="what a wrong fix left"),
        pytest.param('{limits: {cpu: "500000"}}', [], id="half a million cores"),
        pytest.param("{limits: {cpu: 2Gi}}", ["2"], id="gibibytes of cores"),
        pytest.param("{limits: {cpu: 4M}}", ["4"], id="four million cores"),
        pytest.param("{limits: {cpu: 0.5m}}", ["500m"], id="less than a thousandth"),
        pytest.param("{limits: {cpu: 512Mi, memory: 500m}}", ["512m"], id="cpu and memory swapped"),
        pytest.param("{requests: {memory: 1Gi}, limits: {memory: 512m}}", ["512Mi"], id="still below its request"),
    ],
)
def test_a_unit_that_does_not_show_what_was_meant_is_named_and_left_alone(resources, readings):
    findings = [each for each in found(pod(resources)) if not each.patch.is_complete and each.check == "PQ117"]

    assert findings
    assert list(findings[0].facts.readings) == readings
    assert all(f" {each}" in findings[0].facts.sentence("c") for each in readings)
    assert list(findings[0].patch.candidates) == readings


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ('{limits: {memory: "900000000000000000000"}}', "more than any machine has"),
        ("{limits: {cpu: 1n}}", "too little for a container"),
    ],
)
def test_an_amount_that_nothing_explains_is_called_too_large_or_too_small(resources, why):
    (finding,) = [each for each in found(pod(resources)) if each.check == "PQ117"]
    assert finding.facts.sentence("c").endswith(f", {why}")


def test_where_both_sides_mean_something_else_neither_is_offered_for_both():
    (finding,) = [each for each in found(pod("{requests: {memory: 2}, limits: {memory: 4}}")) if each.check == "PQ117"]
    assert finding.patch.candidates == ()


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param("{requests: {memory: 1Mi}, limits: {memory: 6Mi}}", id="a mebibyte may be requested"),
        pytest.param("{requests: {memory: 128974848000m}}", id="whole bytes in thousandths, as VPA writes them"),
        pytest.param('{limits: {cpu: "64", memory: 512Mi}}', id="many cores and as much memory as they need"),
        pytest.param('{requests: {cpu: "96", memory: 4Ti}}', id="a large machine"),
        pytest.param('{requests: {cpu: "200", memory: 512Gi}}', id="as large in memory"),
        pytest.param('{requests: {cpu: "100"}, limits: {nvidia.com/gpu: 8}}', id="a machine with devices"),
        pytest.param("{requests: {cpu: 150000m}}", id="thousandths on purpose"),
        pytest.param('{requests: {cpu: "151"}}', id="not a round number"),
        pytest.param('{requests: {cpu: "1920", memory: 32Ti}}', id="the largest machine"),
    ],
)
def test_large_and_small_amounts_that_exist_are_left_alone(resources):
    assert "PQ117" not in ids(pod(resources))


@pytest.mark.parametrize(
    ("capacity", "fixed"),
    [
        pytest.param('cpu: "4", memory: 16Gi', [["16384Mi"]], id="it fits"),
        pytest.param('cpu: "4", memory: 8Gi', [[]], id="no node could hold it"),
    ],
)
def test_a_fix_writes_nothing_that_no_node_of_the_input_holds(capacity, fixed):
    node = f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-1}}\nstatus: {{capacity: {{{capacity}}}}}\n"
    text = pod('{limits: {memory: "16384"}}') + node

    findings = [each for each in found(text) if each.check == "PQ117"]
    assert [[edit.value for edit in each.patch.edits] for each in findings] == fixed


def test_a_node_of_the_input_that_has_so_many_cores_makes_them_plausible():
    node = '---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {capacity: {cpu: "896", memory: 4Ti}}\n'

    assert "PQ117" not in ids(pod('{requests: {cpu: "500"}}') + node)


def test_the_pods_own_resources_are_looked_at_as_well():
    text = pod("{}").replace("spec:", "spec:\n  resources: {requests: {cpu: 500M}}", 1)

    (finding,) = [each for each in found(text) if each.check == "PQ117"]
    assert finding.facts.sentence("") == "the pod has a cpu request of 500M; 500m was probably meant"


def test_nothing_is_derived_from_an_amount_in_the_wrong_unit():
    findings = found(pod("{limits: {memory: 4}}"))

    assert [each.check for each in findings if each.patch.is_complete] == []


@pytest.mark.parametrize(
    ("resources", "paths"),
    [
        pytest.param('{limits: {cpu: "0"}}', ["limits.cpu"], id="limit"),
        pytest.param('{requests: {cpu: "0"}}', ["requests.cpu"], id="request"),
        pytest.param('{requests: {cpu: "0"}, limits: {cpu: 0m}}', ["limits.cpu", "requests.cpu"], id="both"),
        pytest.param('{requests: {cpu: "0"}, limits: {cpu: "1"}}', [], id="nothing is reserved on purpose"),
        pytest.param('{limits: {ephemeral-storage: "0"}}', [], id="no say in the class"),
    ],
)
def test_zeros(resources, paths):
    findings = [finding for finding in found(pod(resources)) if finding.check == "PQ116"]

    removed = [
        edit.path.removeprefix("spec.containers[0].resources.") for each in findings for edit in each.patch.edits
    ]
    assert removed == paths


@pytest.mark.parametrize(
    ("policy", "expected"), [("static", ["PQ115"]), ("none", [])], ids=["static policy", "no policy"]
)
def test_fractions_of_cores_matter_under_the_static_policy(policy, expected):
    kubelet = (
        "---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"cpuManagerPolicy: {policy}\nsystemReserved: {{cpu: 500m, memory: 1Gi}}\n"
        "evictionHard: {memory.available: 1Gi, nodefs.available: 10%}\n"
    )
    text = pod("{requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 500m, memory: 1Gi}}") + kubelet

    assert ids(text) == expected


@pytest.mark.parametrize(
    ("volume", "severity"),
    [
        *(("dshm", "info"), ("shm", "info"), ("web-shm", "info"), ("shared-memory", "info")),
        *(("cache", "warning"), ("ashman", "warning")),
    ],
)
def test_shared_memory_without_a_size_limit_is_an_info(volume, severity):
    (finding,) = found(pod(FULL, extra=f"volumes: [{{name: {volume}, emptyDir: {{medium: Memory}}}}]"))

    assert (finding.check, finding.severity) == ("PQ109", severity)


@pytest.mark.parametrize(
    ("limit", "severity"), [("memory: 2Gi", "info"), ("memory: 2180Mi", "info"), ("memory: 2300Mi", "warning")]
)
def test_a_ratio_that_is_nearly_kept_is_an_info(limit, severity):
    (finding,) = found(pod(container("memory: 500Mi", limit)))

    assert (finding.check, finding.severity) == ("PQ105", severity)


def test_resources_that_need_a_limit_are_named():
    text = pod("{requests: {cpu: 1, example.com/gpu: 1, example.com/nic: 2}, limits: {cpu: 1, example.com/nic: 2}}")
    (finding,) = found(text)

    assert finding.facts.sentence("").endswith("non overcommitable resources: example.com/gpu")
    assert finding.patch.paths == ("spec.containers[0].resources.limits[example.com/gpu]",)
