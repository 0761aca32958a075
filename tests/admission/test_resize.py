from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, limit_range, pod, quota, resources
from podqos.admission.chain import Step, admit
from podqos.admission.policies import Policies
from podqos.admission.refusal import Code
from podqos.admission.resize import resize
from podqos.model.pod import MIRROR_ANNOTATION, ObjectMeta, PodOS, PodStatus, QOSClass, ResizePolicy
from podqos.model.profile import profile_for
from podqos.model.resources import ResourceClaim, ResourceRequirements
from podqos.model.scheduling import TopologySpreadConstraint
from podqos.model.selector import LabelSelector, LabelSelectorRequirement

RUNNING = PodStatus("Running", QOSClass.BURSTABLE)
OLD = replace(pod(container(requests="cpu=100m,memory=64Mi", limits="cpu=500m,memory=128Mi")), status=RUNNING)


def _resized(**spec):
    return replace(OLD, spec=replace(OLD.spec, **spec))


def _to(requests: str, limits: str):
    return _resized(containers=(container(requests=requests, limits=limits),))


class TestAgainstTheRecordedApiServer:
    """Two PATCH requests to pods/resize of a v1.36.4 API server."""

    def test_more_cpu_is_allowed(self):
        """Recorded: 200 with requests 200m, limits 800m."""
        admission = resize(OLD, _to("cpu=200m,memory=64Mi", "cpu=800m,memory=128Mi"), Policies())
        assert admission.allowed
        assert admission.pod.spec.containers[0].resources == resources("cpu=200m,memory=64Mi", "cpu=800m,memory=128Mi")
        assert admission.pod.status == RUNNING

    def test_a_change_of_class_is_refused(self):
        """Recorded: 422, in these words."""
        refusal = resize(OLD, _to("cpu=800m,memory=128Mi", "cpu=800m,memory=128Mi"), Policies()).refusal
        assert refusal.code is Code.INVALID
        assert refusal.message == (
            'Pod "p" is invalid: spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'
        )


@pytest.mark.parametrize(
    ("requests", "limits", "complaint"),
    [
        pytest.param(
            "cpu=100m",
            "cpu=500m",
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot",
            id="request-removed",
        ),
        pytest.param(
            "cpu=100m,memory=64Mi",
            "cpu=500m",
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
            id="limit-removed",
        ),
        pytest.param(
            "cpu=100m,memory=64Mi,ephemeral-storage=1Gi",
            "cpu=500m,memory=128Mi",
            "spec: Forbidden: only cpu and memory resources are mutable",
            id="storage",
        ),
        pytest.param(
            "cpu=1,memory=64Mi",
            "cpu=500m,memory=128Mi",
            'spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit of',
            id="request-over-limit",
        ),
    ],
)
def test_only_cpu_and_memory_change_and_nothing_is_taken_away(requests, limits, complaint):
    """Validation (422) as for a new pod, and the rules of resize."""
    admission = resize(OLD, _to(requests, limits), Policies())
    assert admission.refused_by is Step.RESIZE
    assert complaint in admission.refusal.message


def test_whatever_else_changes_is_silently_dropped():
    """Only resources are taken from the new object."""
    wished = _resized(containers=(replace(OLD.spec.containers[0], image="other:2"),), priority_class_name="high")
    assert resize(OLD, wished, Policies()).pod == OLD


@pytest.mark.parametrize(
    ("containers", "complaint"),
    [
        pytest.param((), "spec.containers: Forbidden: containers may not be added or removed on resize", id="removed"),
        pytest.param(
            (container("other", limits="cpu=1"),),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
            id="renamed",
        ),
    ],
)
def test_containers_stay_as_they_are(containers, complaint):
    """Number, names, order."""
    assert complaint in resize(OLD, _resized(containers=containers), Policies()).refusal.message


def test_init_containers_that_are_no_sidecars_can_be_resized_since_1_36():
    """Before, only sidecars could: the others had run."""
    sidecar, init = container("s", requests="cpu=1", restart_policy="Always"), container("i", requests="cpu=1")
    old = _resized(init_containers=(sidecar, init))
    more = resources("cpu=2")
    grown_sidecar = replace(old, spec=replace(old.spec, init_containers=(replace(sidecar, resources=more), init)))
    assert resize(old, grown_sidecar, Policies()).allowed
    grown_init = replace(old, spec=replace(old.spec, init_containers=(sidecar, replace(init, resources=more))))
    assert resize(old, grown_init, Policies()).allowed
    before = profile_for((1, 35))
    assert resize(old, grown_sidecar, Policies(), before).allowed
    refusal = resize(old, grown_init, Policies(), before).refusal
    assert "spec: Forbidden: resources for non-sidecar init containers are immutable" in refusal.message


def test_an_init_container_that_would_have_to_restart_is_refused_only_where_it_is_resized():
    again = (ResizePolicy("cpu", "RestartContainer"),)
    init = replace(container("i", requests="cpu=1"), resize_policy=again)
    old, more = _resized(init_containers=(init,)), resources("cpu=2")
    words = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    grown = _resized(init_containers=(replace(init, resources=more),))
    assert words in resize(old, grown, Policies()).refusal.message
    other = replace(old, spec=replace(old.spec, containers=_to("cpu=200m,memory=64Mi", "cpu=800m").spec.containers))
    assert words not in resize(old, other, Policies()).refusal.message


def test_limits_of_sidecars_cannot_be_removed():
    """The same rule, under the sidecar's path."""
    sidecar = container("s", requests="cpu=1", limits="cpu=2", restart_policy="Always")
    unlimited = replace(sidecar, resources=resources("cpu=1"))
    refusal = resize(_resized(init_containers=(sidecar,)), _resized(init_containers=(unlimited,)), Policies()).refusal
    assert "spec.initContainers[0].resources.limits: Forbidden: resource limits cannot be removed" in refusal.message


def test_sidecars_too_keep_what_is_not_cpu_or_memory():
    """The path names the container."""
    sidecar = container("s", requests="cpu=1", restart_policy="Always")
    old = _resized(init_containers=(sidecar,))
    grown = _resized(init_containers=(replace(sidecar, resources=resources("cpu=1,ephemeral-storage=1Gi")),))
    assert resize(old, grown, Policies()).refusal.fields == ("spec.initContainers[0]",)


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        pytest.param(resources("cpu=1"), resources("cpu=2"), "", id="more"),
        pytest.param(
            resources("cpu=1"), None, "spec.resources: Forbidden: pod-level resources cannot be removed", id="gone"
        ),
        pytest.param(
            resources("cpu=1,memory=1Gi"),
            resources("cpu=1"),
            "pod-level resource requests cannot be removed",
            id="one-gone",
        ),
        pytest.param(
            resources("cpu=1", "cpu=2"),
            resources("cpu=1"),
            "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed",
            id="limit-gone",
        ),
        pytest.param(
            resources("cpu=1"),
            resources("cpu=1,hugepages-2Mi=2Mi", "hugepages-2Mi=2Mi"),
            "only cpu and memory resources are mutable at pod-level",
            id="huge-pages",
        ),
        pytest.param(ResourceRequirements(), ResourceRequirements(), "", id="empty-before-and-after"),
    ],
)
def test_pod_level_resources_follow_the_same_rules(before, after, complaint):
    """Cpu and memory change, nothing is taken away."""
    main = container(requests="cpu=100m")
    status = PodStatus("Running", QOSClass.BURSTABLE if before and before.requests else QOSClass.BEST_EFFORT)
    old = replace(pod(main, resources=before), status=status)
    refusal = resize(old, pod(main, resources=after), Policies()).refusal
    assert (complaint in refusal.message) if complaint else (refusal is None)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        pytest.param(
            replace(OLD, metadata=ObjectMeta("p", annotations={MIRROR_ANNOTATION: "x"})), "static pods", id="static"
        ),
        pytest.param(_resized(os=PodOS("windows")), "windows pods", id="windows"),
    ],
)
def test_static_and_windows_pods_cannot_be_resized(old, words):
    """Whatever the change."""
    assert f"{words} cannot be resized" in resize(old, OLD, Policies()).refusal.message


def test_containers_with_claims_cannot_be_resized():
    """Upstream compares without the claims, so they always differ."""
    claimed = replace(OLD.spec.containers[0], resources=replace(resources("cpu=1"), claims=(ResourceClaim("gpu"),)))
    old = _resized(containers=(claimed,))
    assert "only cpu and memory resources are mutable" in resize(old, old, Policies()).refusal.message


def test_limit_range_bounds_apply():
    """As for a new pod."""
    policies = Policies(limit_ranges=(limit_range("lr", max="cpu=600m", default_request="cpu=100m"),))
    admission = resize(OLD, _to("cpu=200m,memory=64Mi", "cpu=800m,memory=128Mi"), policies)
    assert admission.refused_by is Step.LIMIT_RANGE_BOUNDS


def test_the_quota_counts_what_is_more():
    """100m more fit, 200m more do not."""
    policies = Policies(resource_quotas=(quota(hard="requests.cpu=300m", used="requests.cpu=200m"),))
    assert resize(OLD, _to("cpu=200m,memory=64Mi", "cpu=500m,memory=128Mi"), policies).allowed
    admission = resize(OLD, _to("cpu=300m,memory=64Mi", "cpu=500m,memory=128Mi"), policies)
    assert admission.refused_by is Step.RESOURCE_QUOTA
    assert "requested: requests.cpu=200m" in admission.refusal.message


def test_keys_merged_into_a_selector_at_creation_are_not_merged_again():
    """Or no pod with matchLabelKeys could ever be resized."""
    merged = LabelSelector(match_expressions=(LabelSelectorRequirement("v", "In", ("1",)),))
    spread = TopologySpreadConstraint(1, "zone", "DoNotSchedule", merged, match_label_keys=("v",))
    labelled = ObjectMeta("p", labels={"v": "1"})
    old = replace(_resized(topology_spread_constraints=(spread,)), metadata=labelled)
    more = replace(old.spec.containers[0], resources=resources("cpu=2,memory=64Mi", "cpu=2,memory=128Mi"))
    new = replace(old, spec=replace(old.spec, containers=(more,)))
    assert "exists in both" not in str(resize(old, new, Policies()).refusal)
    assert "exists in both" in str(admit(old, Policies()).refusal)


def test_since_1_37_a_resize_that_leaves_pod_level_resources_out_keeps_them():
    """A client that does not know the field drops it; up to 1.36 that is an attempt to remove them."""
    old = _resized(resources=resources("cpu=1,memory=64Mi", "cpu=1,memory=128Mi"))
    new = _to("cpu=200m,memory=64Mi", "cpu=500m,memory=128Mi")
    assert not resize(old, new, Policies(), profile_for((1, 36))).allowed
    kept = resize(old, new, Policies(), profile_for((1, 37)))
    assert (kept.allowed, kept.pod.spec.resources) == (True, old.spec.resources)


def test_since_1_37_a_resize_fills_pod_level_amounts_in():
    """The containers are limited, so the pod is, once it has resources of its own."""
    new = _resized(resources=resources("cpu=200m,memory=64Mi"))
    before, since = (resize(OLD, new, Policies(), profile_for((1, minor))) for minor in (36, 37))
    assert before.pod.spec.resources == resources("cpu=200m,memory=64Mi")
    assert since.pod.spec.resources == resources("cpu=200m,memory=64Mi", "cpu=500m,memory=128Mi")
