"""PQ2xx at their edges."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advice.bundles import apply_patch, bundle_of, check, check_text, plain_objects
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import Choice
from podqos.model.pod import QOSClass


def limit_range(item: str, name="lr", namespace="default") -> str:
    """Return a LimitRange with one item for containers."""
    return (
        f"---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{limits: [{{type: Container, {item}}}]}}\n"
    )


DEFAULTS = "default: {cpu: 1, memory: 512Mi}, defaultRequest: {cpu: 100m, memory: 128Mi}"


def found(text, options=None):
    """Return the findings but for those about the disk."""
    return [finding for finding in check_text(text, options) if finding.check != "PQ108"]


def ids(text, options=None):
    """Return what they are called."""
    return [finding.check for finding in found(text, options)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            pod("{}") + limit_range(DEFAULTS), ["PQ201"], id="BestEffort becomes Burstable, and only that is told"
        ),
        pytest.param(pod("{}") + limit_range("default: {cpu: 1, memory: 1Gi}"), ["PQ201"], id="even Guaranteed"),
        pytest.param(pod("{}") + limit_range(DEFAULTS, namespace="other"), ["PQ102"], id="of another namespace"),
        pytest.param(pod(FULL) + limit_range(DEFAULTS), [], id="nothing left to fill in"),
        pytest.param(pod(FULL, "{}") + limit_range(DEFAULTS), ["PQ101"], id="a spoilt pod stays Burstable"),
        pytest.param(
            pod(FULL, "{requests: {memory: 128Mi}}") + limit_range(DEFAULTS),
            ["PQ101"],
            id="one sidecar without limits is one finding",
        ),
        pytest.param(
            pod(FULL, "{}") + limit_range("default: {cpu: 1, memory: 1Gi}"),
            ["PQ201"],
            id="a spoilt pod is saved by equal defaults",
        ),
        pytest.param(pod("{requests: {memory: 256Mi}}") + limit_range(DEFAULTS), ["PQ202"], id="a hidden maximum"),
        pytest.param(
            pod("{requests: {memory: 1Gi}}") + limit_range(DEFAULTS), ["PQ203"], id="a default below the request"
        ),
        pytest.param(pod(BURST) + limit_range("max: {memory: 1Gi}"), ["PQ203"], id="above the maximum"),
        pytest.param(pod(BURST) + limit_range("min: {memory: 4Gi}"), ["PQ203"], id="below the minimum"),
        pytest.param(pod(BURST) + limit_range("maxLimitRequestRatio: {memory: 1}"), ["PQ203"], id="too far apart"),
    ],
)
def test_limit_ranges(text, expected):
    assert ids(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(pod("{}") + limit_range(DEFAULTS), id="class"),
        pytest.param(pod("{}", kind="Deployment") + limit_range(DEFAULTS), id="class of a template"),
        pytest.param(pod("{requests: {memory: 1Gi}}") + limit_range(DEFAULTS), id="default below the request"),
        pytest.param(pod(FULL) + limit_range("max: {cpu: 500m}"), id="maximum"),
        pytest.param(pod(BURST) + limit_range("min: {memory: 4Gi}"), id="minimum above the limit"),
    ],
)
def test_patches_satisfy_the_limit_range(text):
    finding = found(text)[0]
    assert finding.patch.is_complete
    objects = plain_objects(text)
    apply_patch(objects[0], finding.patch)

    assert finding.check not in [each.check for each in check(bundle_of(objects))]


def test_no_memory_limit_is_lowered_to_please_a_limit_range_and_the_number_to_look_up_is_named():
    (finding,) = found(pod(BURST) + limit_range("max: {memory: 512Mi}"))
    assert not finding.patch.is_complete
    assert finding.patch.refuted.endswith(
        "are not offered: c0 may use 2Gi of memory now, and there is no evidence that 512Mi is enough"
    )
    assert finding.patch.look_up == "the peak memory usage of c0 (now: kubectl top pod --containers)"


def test_the_class_of_the_manifest_and_the_class_that_runs_are_both_told():
    (finding,) = found(pod("{}") + limit_range(DEFAULTS))

    assert (finding.facts.before, finding.facts.after) == (QOSClass.BEST_EFFORT, QOSClass.BURSTABLE)
    assert (finding.facts.sources, finding.facts.containers) == (("lr",), ("c0",))
    assert finding.consequence.now.oom_score_adj == 999
    assert finding.consequence.repaired.oom_score_adj == 1000


def test_the_field_at_fault_is_that_of_the_container_at_fault():
    (trap,) = found(pod("{limits: {ephemeral-storage: 1Gi}}", "{}") + limit_range("default: {memory: 1Gi}"))
    (refused,) = found(pod(FULL, BURST) + limit_range("max: {memory: 1Gi}"))

    assert (trap.check, trap.path) == ("PQ201", "spec.containers[0].resources")
    assert (refused.check, refused.path, refused.container) == ("PQ203", "spec.containers[1].resources", "c1")


def test_limit_ranges_of_different_namespaces_do_not_conflict():
    one, other = limit_range("default: {memory: 1Gi}"), limit_range("default: {memory: 2Gi}", "lr2", "other")

    assert ids(one + other) == []
    assert ids(one + limit_range("default: {memory: 2Gi}", "lr2")) == ["PQ204"]
    agreeing = limit_range("default: {memory: 2Gi}", "lr3", "agreeing")
    assert ids(agreeing + one + limit_range("default: {memory: 2Gi}", "lr2")) == ["PQ204"]


@pytest.mark.parametrize(
    ("text", "injector", "expected"),
    [
        pytest.param(pod(FULL), "istio", ["PQ205"], id="istio"),
        pytest.param(pod(FULL), "linkerd", ["PQ205"], id="linkerd"),
        pytest.param(pod(FULL), "vault", [], id="vault is asked for"),
        pytest.param(pod(BURST), "istio", [], id="Burstable stays Burstable"),
        pytest.param(pod("{}"), "istio", ["PQ102"], id="an injector never lowers BestEffort"),
    ],
)
def test_injectors(text, injector, expected):
    assert ids(text, replace(CheckOptions(), inject=(injector,))) == expected


def test_an_injector_without_limits_needs_a_choice():
    (finding,) = found(pod(FULL), replace(CheckOptions(), inject=("linkerd",)))

    assert finding.patch.needs_choice is Choice.INJECTOR_RESOURCES
    assert "metadata.annotations[config.linkerd.io/proxy-cpu-limit]" in finding.patch.paths
    assert (finding.consequence.now.qos_class, finding.consequence.repaired.qos_class) == (
        QOSClass.BURSTABLE,
        QOSClass.GUARANTEED,
    )


def test_an_annotation_that_is_no_amount_is_a_finding_and_not_the_end():
    text = pod(FULL).replace("{name: p,", "{name: p, annotations: {sidecar.istio.io/proxyCPU: lots},")

    assert ids(text, replace(CheckOptions(), inject=("istio",))) == ["PQ112"]


def quota(hard: str) -> str:
    """Return a ResourceQuota."""
    head = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\n"
    return f"{head}spec: {{hard: {{{hard}}}}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod("{}") + quota("requests.memory: 4Gi"), ["PQ206"], id="nothing stated"),
        pytest.param(pod("{}") + quota("requests.memory: 4Gi") + limit_range(DEFAULTS), ["PQ201"], id="filled in"),
        pytest.param(pod(BURST) + quota("requests.memory: 4Gi"), [], id="fits"),
        pytest.param(pod(BURST) + quota("requests.memory: 512Mi"), ["PQ207"], id="does not fit"),
        pytest.param(pod(BURST) + quota('pods: "1"'), [], id="one pod"),
    ],
)
def test_quotas(text, expected):
    assert ids(text) == expected


def test_the_container_that_does_not_state_what_a_quota_counts_is_named():
    (finding,) = [each for each in found(pod(BURST, "{}") + quota("requests.memory: 4Gi")) if each.check == "PQ206"]
    assert (finding.facts.containers, finding.path) == (("c1",), "spec.containers[1].resources")


def test_how_many_pods_a_quota_lets_in():
    text = pod(BURST, kind="Deployment").replace("spec:\n", "spec:\n  replicas: 5\n", 1)
    (finding,) = found(text + quota("requests.memory: 3Gi"))

    assert (finding.facts.pods, finding.facts.admitted) == (5, 3)


def test_no_fix_lowers_the_memory_limit_that_a_limit_range_fills_in():
    text = pod(FULL, "{requests: {cpu: 1, memory: 64Mi}}") + limit_range("default: {cpu: 1, memory: 512Mi}")
    (finding,) = [each for each in found(text) if each.check == "PQ101"]
    assert not finding.patch.is_complete
    assert finding.patch.refuted.endswith(
        "c1 may use 512Mi of memory now, and there is no evidence that 64Mi is enough"
    )
