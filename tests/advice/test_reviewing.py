"""What is decided about a review, as data."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from podqos.admission.keeping import WhyNotKept
from podqos.admission.policies import ClusterPolicies, Policies
from podqos.admission.review import InvalidReview, read_review
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Door, Reviewer, ReviewNotJudged
from podqos.manifest.decode import convert
from podqos.model.pod import QOSClass
from podqos.model.policy import ClusterResourceOverride, LimitRange, Namespace, PriorityClass
from podqos.policy.reading import read_policy
from podqos.questions.review import response
from reviews import GUARANTEED, LOOSE, container, deployment, pod, policy, review

OPT_IN = "clusterresourceoverrides.admission.autoscaling.openshift.io/enabled"


def policies(*rules, exemptions=()):
    if not rules:
        return ()
    reading = read_policy(policy(*rules, exemptions=exemptions))
    assert reading.policy is not None, reading.findings
    return (reading.policy,)


def validated(body, *rules, exemptions=(), cluster=None, warn_on=FailOn.NEVER):
    return Reviewer(policies(*rules, exemptions=exemptions), cluster, warn_on=warn_on).validate(read_review(body))


def mutated(body, cluster=None):
    return Reviewer((), cluster).mutate(read_review(body))


def limit_range(**item):
    return convert(
        {"metadata": {"name": "bounds", "namespace": "shop"}, "spec": {"limits": [{"type": "Container", **item}]}},
        LimitRange,
    )


# ---- validating -----------------------------------------------------------------------------------------------------


def test_a_pod_of_the_class_asked_for_is_allowed():
    decision = validated(review(pod()), GUARANTEED)
    assert decision.allowed
    assert decision.qos_class is QOSClass.GUARANTEED


def test_what_a_runtime_is_told_is_held_against_the_limit():
    heap = {**container(), "env": [{"name": "JAVA_OPTS", "value": "-Xmx64g"}]}
    decision = validated(review(pod(heap)), warn_on=FailOn.ERROR)

    assert [each.check for each in decision.findings] == ["PQ122"]


@pytest.mark.parametrize(
    "thing", [pod(container(resources=LOOSE)), deployment(container(resources=LOOSE))], ids=["Pod", "Deployment"]
)
def test_a_pod_and_what_makes_it_are_refused_for_the_same_reason(thing):
    decision = validated(review(thing), GUARANTEED)
    assert not decision.allowed
    [violation] = decision.judgement.violations
    assert (violation.rule, violation.actual, violation.wanted) == ("guaranteed", "Burstable", "Guaranteed")
    answer = response(decision)
    assert answer.status.code == 403
    assert 'container "main"' in answer.status.message


def test_a_sidecar_that_demotes_a_guaranteed_pod_is_named():
    decision = validated(review(pod(container(), container("proxy", LOOSE))), GUARANTEED)
    assert 'container "proxy"' in response(decision).status.message
    assert 'container "main"' not in response(decision).status.message


def test_a_template_is_judged_with_the_limit_as_its_missing_request():
    only_limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert validated(review(deployment(container(resources=only_limits))), GUARANTEED).allowed


def test_a_template_is_judged_with_the_defaults_of_its_namespaces_limit_range():
    cluster = ClusterPolicies(Policies(limit_ranges=(limit_range(default={"cpu": "1", "memory": "1Gi"}),)))
    decision = validated(review(deployment(container(resources={}))), GUARANTEED, cluster=cluster)
    assert decision.allowed
    assert decision.qos_class is QOSClass.GUARANTEED
    [step] = decision.drift
    assert (step.class_before, step.class_after) == (QOSClass.BEST_EFFORT, QOSClass.GUARANTEED)
    assert response(decision).warnings[0].startswith("the pods will be Guaranteed, not BestEffort: LimitRange bounds")


def test_a_deployment_is_told_at_once_that_its_pods_will_be_refused():
    cluster = ClusterPolicies(Policies(limit_ranges=(limit_range(max={"memory": "512Mi"}),)))
    decision = validated(review(deployment()), cluster=cluster, warn_on=FailOn.INFO)
    assert decision.allowed
    assert "PQ203" not in {each.check for each in decision.findings}  # said already
    assert "maximum memory usage per Container is 512Mi" in decision.refusal.message
    assert response(decision).warnings[0].startswith("the pods will be rejected: ")


def test_an_update_counts_only_where_template_or_labels_change():
    old = deployment(container(resources=LOOSE))
    scaled = deployment(container(resources=LOOSE), replicas=5)
    labelled = deployment(container(resources=LOOSE), labels={"tier": "critical"})
    assert validated(review(scaled, "UPDATE", old=old), GUARANTEED).not_judged is ReviewNotJudged.UNCHANGED
    assert not validated(review(labelled, "UPDATE", old=old), GUARANTEED).allowed
    assert not validated(review(deployment(container("new", LOOSE)), "UPDATE", old=old), GUARANTEED).allowed


def test_annotations_count_only_where_a_rule_asks_for_them():
    old = deployment(container(resources=LOOSE))
    noted = deployment(container(resources=LOOSE), annotations={"deployment.kubernetes.io/revision": "2"})
    assert validated(review(noted, "UPDATE", old=old), GUARANTEED).not_judged is ReviewNotJudged.UNCHANGED
    asks = GUARANTEED | {"match": {"annotations": {"deployment.kubernetes.io/revision": "*"}}}
    assert not validated(review(noted, "UPDATE", old=old), asks).allowed


def test_what_is_being_deleted_can_always_be_updated():
    leaving = deployment(container("new", LOOSE), deletionTimestamp="2026-11-16T00:00:00Z")
    decision = validated(review(leaving, "UPDATE", old=deployment()), GUARANTEED)
    assert decision.not_judged is ReviewNotJudged.BEING_DELETED


@pytest.mark.parametrize(
    ("operation", "sub_resource", "why"),
    [
        ("DELETE", "", ReviewNotJudged.OPERATION),
        ("CONNECT", "exec", ReviewNotJudged.OPERATION),
        ("UPDATE", "", ReviewNotJudged.UPDATE),
        ("UPDATE", "status", ReviewNotJudged.SUBRESOURCE),
        ("UPDATE", "ephemeralcontainers", ReviewNotJudged.SUBRESOURCE),
    ],
)
def test_what_changes_no_amounts_is_not_judged(operation, sub_resource, why):
    offender = pod(container(resources=LOOSE))
    body = review(offender, operation, old=offender, sub_resource=sub_resource)
    decision = validated(body, GUARANTEED)
    assert decision.allowed
    assert decision.not_judged is why


@pytest.mark.parametrize("kind", ["ConfigMap", "Scale", "Widget"])
def test_kinds_without_pods_are_not_judged(kind):
    assert validated(review(pod() | {"kind": kind}), GUARANTEED).not_judged is ReviewNotJudged.KIND


def test_a_kind_of_another_group_is_not_judged():
    body = review(deployment(), kind={"group": "example.com", "version": "v1", "kind": "Deployment"})
    assert validated(body, GUARANTEED).not_judged is ReviewNotJudged.KIND


def test_a_resize_must_not_change_the_class():
    old = pod() | {"status": {"qosClass": "Guaranteed"}}
    new = pod(container(resources=LOOSE))
    decision = validated(review(new, "UPDATE", old=old, sub_resource="resize"))
    assert decision.changes_class
    assert not decision.allowed
    assert "Guaranteed to Burstable" in response(decision).status.message


def test_a_resize_is_held_to_the_policy():
    ratio = {"name": "ratio", "require": {"maxLimitRequestRatio": {"memory": 2}}, "action": "Deny"}
    old = pod(container(resources={"limits": {"memory": "128Mi"}, "requests": {"memory": "64Mi"}})) | {
        "status": {"qosClass": "Burstable"}
    }
    new = pod(container(resources=LOOSE))
    decision = validated(review(new, "UPDATE", old=old, sub_resource="resize"), ratio)
    assert not decision.allowed
    assert not decision.changes_class


def test_the_namespace_of_the_request_counts():
    only = GUARANTEED | {"match": {"namespaces": ["shop"]}}
    offender = pod(container(resources=LOOSE))
    assert not validated(review(offender, namespace="shop"), only).allowed
    assert validated(review(offender, namespace="batch"), only).allowed


def test_labels_of_the_namespace_come_from_the_cluster():
    only = GUARANTEED | {"match": {"namespaceSelector": {"matchLabels": {"tier": "critical"}}}}
    critical = convert({"metadata": {"name": "shop", "labels": {"tier": "critical"}}}, Namespace)
    offender = review(pod(container(resources=LOOSE)))
    assert validated(offender, only).allowed
    assert not validated(offender, only, cluster=ClusterPolicies(Policies(), (critical,))).allowed


def test_the_priority_of_a_template_is_that_of_its_class():
    most = {"name": "priority", "require": {"priority": {"max": 1000}}, "action": "Deny"}
    high = convert({"metadata": {"name": "high"}, "value": 100_000}, PriorityClass)
    thing = deployment()
    thing["spec"]["template"]["spec"]["priorityClassName"] = "high"
    assert not validated(review(thing), most, cluster=ClusterPolicies(Policies(priority_classes=(high,)))).allowed
    unknown = validated(review(thing), most)
    assert unknown.allowed
    assert unknown.judgement.unknown_priority


def test_who_asks_can_be_exempt():
    exemption = {"reason": "CI", "users": ["ali*"]}
    decision = validated(review(pod(container(resources=LOOSE))), GUARANTEED, exemptions=(exemption,))
    assert decision.allowed
    assert len(decision.judgement.exempted) == 1


def test_an_exemption_ends_with_its_last_day():
    exemption = {"reason": "moving", "namespaces": ["shop"], "until": "2026-11-16"}
    reviewer = Reviewer(policies(GUARANTEED, exemptions=(exemption,)))
    request = read_review(review(pod(container(resources=LOOSE))))
    assert reviewer.validate(request, date(2026, 11, 16)).allowed
    assert not reviewer.validate(request, date(2026, 11, 17)).allowed


def test_findings_are_told_from_the_severity_asked_for_the_worst_first():
    body = review(pod(container(resources={})))
    everything = validated(body, warn_on=FailOn.INFO).findings
    assert [each.severity.rank for each in everything] == sorted(each.severity.rank for each in everything)
    assert everything
    assert not validated(body, warn_on=FailOn.NEVER).findings
    assert {each.severity for each in validated(body, warn_on=FailOn.ERROR).findings} <= {"error"}


def test_findings_that_an_annotation_ignores_are_not_told():
    found = validated(review(pod(container(resources={}))), warn_on=FailOn.INFO).findings
    ignored = pod(container(resources={}), annotations={"podqos.dev/ignore": ",".join(each.check for each in found)})
    assert not validated(review(ignored), warn_on=FailOn.INFO).findings


def test_a_pod_without_a_name_of_its_own_is_judged():
    nameless = pod(container(resources=LOOSE))
    nameless["metadata"] = {"generateName": "web-"}
    decision = validated(review(nameless), GUARANTEED)
    assert decision.name == "web-"
    assert not decision.allowed


def test_what_cannot_be_read_is_left_to_the_failure_policy():
    for body in (review(None, old=pod()), review({"kind": "Pod", "metadata": {}, "spec": {"containers": 7}})):
        with pytest.raises(InvalidReview):
            validated(body)


# ---- mutating -------------------------------------------------------------------------------------------------------


def overriding(**labels):
    override = ClusterResourceOverride(memory_request_to_limit_percent=50, cpu_request_to_limit_percent=25)
    namespace = convert({"metadata": {"name": "shop", "labels": labels or {OPT_IN: "true"}}}, Namespace)
    return ClusterPolicies(Policies(override=override), (namespace,))


def operations(decision):
    return [(each.op, each.path, each.value) for each in decision.patch]


def test_an_override_is_applied_as_a_patch():
    decision = mutated(review(pod()), overriding())
    assert operations(decision) == [
        ("replace", "/spec/containers/0/resources/requests/memory", "512Mi"),
        ("replace", "/spec/containers/0/resources/requests/cpu", "250m"),
    ]
    assert decision.qos_class is QOSClass.BURSTABLE


def test_missing_requests_are_added_with_their_parents():
    only_limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    decision = mutated(review(pod(container(resources=only_limits))), overriding())
    assert operations(decision)[0] == ("add", "/spec/containers/0/resources/requests", {"memory": "512Mi"})


def test_an_override_leaves_namespaces_alone_that_have_not_opted_in():
    assert mutated(review(pod()), overriding(other="x")).patch == ()


def test_a_sidecar_is_limited_only_where_the_pod_asks():
    proxy = container("proxy", {"requests": {"cpu": "10m", "memory": "16Mi"}})
    assert mutated(review(pod(container(), proxy))).patch == ()
    asking = pod(container(), proxy, annotations={"podqos.dev/keep-class": "Guaranteed"})
    decision = mutated(review(asking))
    assert operations(decision) == [
        ("add", "/spec/containers/1/resources/limits", {"cpu": "10m"}),
        ("add", "/spec/containers/1/resources/limits/memory", "16Mi"),
    ]
    assert decision.qos_class is QOSClass.GUARANTEED


def test_where_requests_are_overridden_no_class_is_kept():
    asking = pod(container(), container("proxy", LOOSE), annotations={"podqos.dev/keep-class": "Guaranteed"})
    decision = mutated(review(asking), overriding())
    assert decision.kept.why_not is WhyNotKept.OVERRIDDEN
    assert all("/requests" in each.path for each in decision.patch)


def test_limits_of_a_sidecar_that_a_limit_range_refuses_are_warned_about():
    proxy = container("proxy", {"requests": {"cpu": "10m", "memory": "16Mi"}})
    asking = pod(container(), proxy, annotations={"podqos.dev/keep-class": "Guaranteed"})
    cluster = ClusterPolicies(Policies(limit_ranges=(limit_range(min={"memory": "32Mi"}),)))
    decision = mutated(review(asking), cluster)
    assert "minimum memory usage per Container is 32Mi" in decision.refusal.message


@pytest.mark.parametrize("thing", [deployment(), pod()], ids=["Deployment", "Pod"])
def test_only_new_pods_are_changed(thing):
    decision = mutated(review(thing, "UPDATE", old=thing), overriding())
    assert decision.not_judged is ReviewNotJudged.NOT_MUTATED
    assert decision.patch == ()


def test_a_pod_that_the_api_server_will_refuse_is_left_alone():
    twice = pod(container(), container())
    assert mutated(review(twice), overriding()).not_judged is ReviewNotJudged.NOT_IN_ORDER


def test_dry_runs_are_answered_like_others():
    body = review(pod(container(resources=LOOSE)), dryRun=True)
    assert not validated(body, GUARANTEED).allowed


def test_both_doors_answer_by_their_name():
    request = read_review(review(pod()))
    assert Reviewer().decide(Door.MUTATE, request).door is Door.MUTATE
    assert Reviewer().decide(Door.VALIDATE, request).door is Door.VALIDATE
    assert msgspec.json.encode(response(Reviewer().decide(Door.MUTATE, request)))
