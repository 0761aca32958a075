from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import amounts, container, limit_range, pod, priority_class, quota, resources
from podqos.admission.chain import Step, admit
from podqos.admission.changes import Why
from podqos.admission.limit_range_bounds import LimitRangeDenied
from podqos.admission.policies import Policies
from podqos.admission.refusal import Code
from podqos.admission.resource_override import PROFILES, Exempt, OverrideUse
from podqos.model.pod import ObjectMeta, PodStatus, QOSClass
from podqos.model.policy import ClusterResourceOverride, Namespace, NamespaceStatus, Overhead, RuntimeClass
from podqos.model.profile import parse_version

# Source 002: the LimitRange of the production namespace.
PRODUCTION = limit_range("default-limits", default="cpu=1,memory=512Mi", default_request="cpu=100m,memory=128Mi")


class TestTheLimitRangeTrap:
    """Source 002: a container without resources inherits requests.cpu=100m, limits.cpu=1, and the pod is Burstable."""

    def test_a_pod_that_states_nothing_becomes_burstable(self):
        """It was BestEffort as written, and nobody touched it."""
        admission = admit(pod(container()), Policies(limit_ranges=(PRODUCTION,)))
        assert admission.pod.spec.containers[0].resources == resources("cpu=100m,memory=128Mi", "cpu=1,memory=512Mi")
        (drift,) = admission.drift
        assert (drift.step, drift.class_before, drift.class_after) == (
            Step.LIMIT_RANGER,
            QOSClass.BEST_EFFORT,
            QOSClass.BURSTABLE,
        )
        assert {change.source for change in drift.changes} == {"default-limits"}

    def test_a_sidecar_that_states_nothing_takes_guaranteed_away(self):
        """The class of a pod must be verified, not assumed."""
        given = pod(container("app", limits="cpu=1,memory=1Gi"), container("sidecar"))
        assert admit(given, Policies(limit_ranges=(PRODUCTION,))).pod.status.qos_class is QOSClass.BURSTABLE

    def test_a_request_above_the_default_limit_is_invalid_not_forbidden(self):
        """The user never wrote the limit that the API server complains about."""
        admission = admit(pod(container(requests="cpu=2")), Policies(limit_ranges=(PRODUCTION,)))
        assert admission.refused_by is Step.VALIDATION
        assert admission.refusal.code is Code.INVALID
        assert admission.refusal.fields == ("spec.containers[0].resources.requests",)


class TestTheOverride:
    """Source 003: a LimitRange asks for at least 1 cpu, a container has a limit of 1, the override makes it 0.2."""

    OVERRIDE = ClusterResourceOverride(cpu_request_to_limit_percent=20)
    NAMESPACE = Namespace(ObjectMeta("shop", labels={PROFILES["current"].opt_in_label: "true"}))
    GIVEN = pod(container(limits="cpu=1"))

    def _admit(self, profile: str):
        return admit(
            self.GIVEN,
            Policies(
                self.NAMESPACE,
                (limit_range("least", min="cpu=1"),),
                override=self.OVERRIDE,
                override_profile=PROFILES[profile],
            ),
        )

    def test_okd_39_overrides_and_the_limit_range_refuses(self):
        """The override does not look at the LimitRange."""
        admission = self._admit("okd-3.9")
        assert admission.refused_by is Step.LIMIT_RANGE_BOUNDS
        assert admission.refusal.code is Code.FORBIDDEN
        assert admission.refusal.message == (
            'pods "p" is forbidden: minimum cpu usage per Container is 1, but request is 200m'
        )
        assert isinstance(admission.refusal.denied, LimitRangeDenied)
        (violation,) = admission.refusal.denied.violations
        assert violation.subject.container == "main"

    def test_the_present_one_raises_to_the_minimum(self):
        """So the pod is admitted, and stays what it was."""
        admission = self._admit("current")
        assert admission.allowed
        assert admission.pod.spec.containers[0].resources == resources("cpu=1", "cpu=1")

    def test_the_override_acts_on_limits_that_a_limit_range_filled_in(self):
        """LimitRange defaults come before it."""
        policies = Policies(self.NAMESPACE, (PRODUCTION,), override=self.OVERRIDE)
        admission = admit(pod(container()), policies)
        assert admission.pod.spec.containers[0].resources.requests == amounts("cpu=200m,memory=128Mi")
        assert [result.step for result in admission.steps if result.changes] == [
            Step.LIMIT_RANGER,
            Step.PRIORITY,
            Step.DEFAULT_TOLERATION_SECONDS,
            Step.CLUSTER_RESOURCE_OVERRIDE,
        ]

    def test_it_takes_guaranteed_away(self):
        """That is its purpose: overcommit."""
        given = pod(container(limits="cpu=1,memory=1Gi"))
        admission = admit(given, Policies(self.NAMESPACE, override=self.OVERRIDE))
        assert [(result.step, result.class_after) for result in admission.drift] == [
            (Step.DEFAULTING, QOSClass.GUARANTEED),
            (Step.CLUSTER_RESOURCE_OVERRIDE, QOSClass.BURSTABLE),
        ]

    def test_a_namespace_without_the_label_is_left_alone(self):
        """The step does not run at all, and the admission says why."""
        admission = admit(self.GIVEN, Policies(Namespace(ObjectMeta("shop")), override=self.OVERRIDE))
        assert Step.CLUSTER_RESOURCE_OVERRIDE not in {result.step for result in admission.steps}
        assert admission.override == OverrideUse("shop", PROFILES["current"], Exempt.NOT_OPTED_IN)
        assert admit(self.GIVEN, Policies(Namespace(ObjectMeta("shop")))).override is None


def test_the_steps_come_in_the_order_of_the_api_server():
    """Mutating, validation, validating, quota last."""
    policies = Policies(TestTheOverride.NAMESPACE, override=TestTheOverride.OVERRIDE)
    assert [result.step for result in admit(pod(container()), policies).steps] == [
        Step.DEFAULTING,
        Step.NAMESPACE_LIFECYCLE,
        Step.LIMIT_RANGER,
        Step.PRIORITY,
        Step.DEFAULT_TOLERATION_SECONDS,
        Step.RUNTIME_CLASS,
        Step.CLUSTER_RESOURCE_OVERRIDE,
        Step.LIMIT_RANGER_AGAIN,
        Step.VALIDATION,
        Step.LIMIT_RANGE_BOUNDS,
        Step.RUNTIME_CLASS_OVERHEAD,
        Step.RESOURCE_QUOTA,
    ]


BAD = pod(container(requests="cpu=2", limits="cpu=1"), priority_class_name="none", runtime_class_name="none")


@pytest.mark.parametrize(
    ("given", "policies", "step", "code"),
    [
        pytest.param(BAD, Policies(namespace=None), Step.NAMESPACE_LIFECYCLE, Code.NOT_FOUND, id="no-namespace"),
        pytest.param(
            BAD,
            Policies(Namespace(ObjectMeta("old"), NamespaceStatus("Terminating"))),
            Step.NAMESPACE_LIFECYCLE,
            Code.FORBIDDEN,
            id="namespace-on-its-way-out",
        ),
        pytest.param(BAD, Policies(), Step.PRIORITY, Code.FORBIDDEN, id="priority-before-runtime-class"),
        pytest.param(
            BAD,
            Policies(priority_classes=(priority_class("none", 1),)),
            Step.RUNTIME_CLASS,
            Code.FORBIDDEN,
            id="runtime-class-before-validation",
        ),
        pytest.param(
            replace(BAD, spec=replace(BAD.spec, priority_class_name="", runtime_class_name=None)),
            Policies(limit_ranges=(limit_range("lr", max="cpu=100m"),)),
            Step.VALIDATION,
            Code.INVALID,
            id="validation-before-bounds",
        ),
        pytest.param(
            pod(container(requests="cpu=1", limits="cpu=1")),
            Policies(limit_ranges=(limit_range("lr", max="cpu=100m"),), resource_quotas=(quota(hard="pods=0"),)),
            Step.LIMIT_RANGE_BOUNDS,
            Code.FORBIDDEN,
            id="bounds-before-quota",
        ),
        pytest.param(
            pod(container(), overhead=amounts("cpu=1")),
            Policies(resource_quotas=(quota(hard="pods=0"),)),
            Step.RUNTIME_CLASS_OVERHEAD,
            Code.FORBIDDEN,
            id="overhead-before-quota",
        ),
        pytest.param(
            pod(container()),
            Policies(resource_quotas=(quota(hard="pods=0"),)),
            Step.RESOURCE_QUOTA,
            Code.FORBIDDEN,
            id="quota-last",
        ),
    ],
)
def test_the_first_step_that_objects_decides(given, policies, step, code):
    """With its status code; later steps are not asked."""
    admission = admit(given, policies)
    assert (admission.refused_by, admission.refusal.code) == (step, code)
    assert step not in {result.step for result in admission.steps}


def test_a_status_that_comes_with_the_manifest_is_dropped():
    """The API server computes the class itself."""
    given = replace(pod(container()), status=PodStatus("Running", QOSClass.GUARANTEED))
    assert admit(given, Policies()).pod.status == PodStatus("Pending", QOSClass.BEST_EFFORT)


def test_runtime_overhead_counts_against_the_quota():
    """It is in the pod before the quota looks."""
    sandbox = RuntimeClass(ObjectMeta("sandbox"), overhead=Overhead(amounts("cpu=250m")))
    given = pod(container(requests="cpu=1"), runtime_class_name="sandbox")
    admission = admit(given, Policies(runtime_classes=(sandbox,), resource_quotas=(quota(hard="cpu=1"),)))
    assert admission.refused_by is Step.RESOURCE_QUOTA
    assert "requested: cpu=1250m" in admission.refusal.message


def test_ephemeral_containers_cannot_be_created_with_a_pod():
    """They are added to a running one."""
    admission = admit(pod(container(), ephemeral_containers=(container("debug"),)), Policies())
    assert admission.refusal.message == (
        'Pod "p" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create'
    )


@pytest.mark.parametrize(
    ("metadata", "paths"),
    [
        pytest.param(ObjectMeta(), ("metadata.name",), id="none"),
        pytest.param(ObjectMeta("Web"), ("metadata.name",), id="upper-case"),
        pytest.param(ObjectMeta(generate_name="web-"), (), id="generated"),
        pytest.param(
            ObjectMeta(generate_name="Web-"), ("metadata.generateName", "metadata.name"), id="generated-from-upper-case"
        ),
    ],
)
def test_a_pod_needs_a_name(metadata, paths):
    """Its own or a generated one; the API server judges both what it is generated from and the name itself."""
    admission = admit(replace(pod(container()), metadata=metadata), Policies())
    assert (admission.refusal.fields if admission.refusal else ()) == paths


def test_every_change_is_recorded_with_its_reason():
    """What a report shows, step by step."""
    admission = admit(pod(container(limits="cpu=1")), Policies(limit_ranges=(PRODUCTION,)))
    reasons = [(result.step, change.why) for result in admission.steps for change in result.changes]
    assert reasons == [
        (Step.DEFAULTING, Why.REQUEST_FROM_LIMIT),
        (Step.LIMIT_RANGER, Why.LIMIT_RANGE_DEFAULT_REQUEST),
        (Step.LIMIT_RANGER, Why.LIMIT_RANGE_DEFAULT),
        (Step.PRIORITY, Why.PRIORITY_WITHOUT_CLASS),
        (Step.PRIORITY, Why.PRIORITY_WITHOUT_CLASS),
        (Step.DEFAULT_TOLERATION_SECONDS, Why.TOLERATION_OF_LOST_NODES),
        (Step.DEFAULT_TOLERATION_SECONDS, Why.TOLERATION_OF_LOST_NODES),
    ]


def test_versions_before_pod_level_resources_drop_them():
    """And the containers decide the class."""
    given = pod(container(), resources=resources("cpu=1", "cpu=1"))
    admission = admit(given, Policies(), parse_version("1.30"))
    assert admission.pod.spec.resources is None
    assert admission.pod.status.qos_class is QOSClass.BEST_EFFORT
    assert admission.steps[0].changes[0].why is Why.POD_LEVEL_RESOURCES_UNKNOWN


def test_before_init_containers_counted_a_quota_for_best_effort_counts_such_pods():
    """Up to 1.15 an init container did not change the class."""
    given = pod(container(), init=(container("i", requests="cpu=1"),))
    policies = Policies(resource_quotas=(quota(hard="pods=0", scopes=("BestEffort",)),))
    assert admit(given, policies).allowed
    assert admit(given, policies, parse_version("1.15")).refused_by is Step.RESOURCE_QUOTA


def test_a_stored_pod_is_defaulted_again_when_it_is_read():
    """Pod-level requests then follow what LimitRanger gave the containers; the class was settled before."""
    bounds = limit_range("lr", default_request="memory=256Mi")
    given = pod(container(), resources=resources(limits="cpu=1"))
    admission = admit(given, Policies(limit_ranges=(bounds,)))
    assert admission.pod.spec.resources.requests == amounts("cpu=1,memory=256Mi")
    assert admission.pod.status.qos_class is QOSClass.BURSTABLE
    last = admission.steps[-1]
    assert (last.step, [change.resource for change in last.changes]) == (Step.DEFAULTING_ON_READ, ["memory"])


def test_a_pod_that_reading_does_not_change_has_no_such_step():
    assert Step.DEFAULTING_ON_READ not in {result.step for result in admit(pod(container()), Policies()).steps}


@pytest.mark.parametrize(
    ("version", "step", "pod_level"),
    [
        ("1.36", Step.DEFAULTING, resources("cpu=4", "cpu=4")),
        ("1.37", Step.POD_LEVEL_DEFAULTING, resources("cpu=100m,memory=128Mi", "cpu=4,memory=512Mi")),
    ],
)
def test_since_1_37_pod_level_amounts_follow_what_admission_gave_the_containers(version, step, pod_level):
    """Up to 1.36 the pod asks for its whole limit before the LimitRange gives its container a request of 100m.

    What is read later has the memory request of the containers in both.
    """
    given, policies = pod(container(), resources=resources("", "cpu=4")), Policies(limit_ranges=(PRODUCTION,))
    admission = admit(given, policies, parse_version(version))
    written = [
        result.step for result in admission.steps if any("spec.resources" in each.path for each in result.changes)
    ]
    assert written[0] is step
    assert admission.pod.spec.resources.requests == {**amounts("memory=128Mi"), **pod_level.requests}
    assert admission.pod.spec.resources.limits == pod_level.limits
    assert (Step.DEFAULTING_ON_READ in written) == (version == "1.36")
