"""What a pod violates."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.compare import vectors
from podqos.admission.defaulting import defaulted
from podqos.manifest.decode import convert
from podqos.model.pod import CLASS_RANK, ObjectMeta, OwnerReference, Pod, PodStatus, QOSClass
from podqos.model.quantity import Quantity
from podqos.policy.judge import judge
from podqos.policy.model import Action
from podqos.policy.violation import Why
from podqos.policy.words import LONGEST, message
from podqos.qos.classes import classify
from policy.demanding import container, one, pod, policy, rule, subject_of, template_of
from strategies import accepted_pods, amounts

EQUAL = '{limits: {cpu: "1", memory: 1Gi}}'


def whys(policies, subject, **options):
    return [violation.why for violation in judge([policies], subject, **options).violations]


# ---- the class -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["Guaranteed", "Burstable"])
def test_a_demanded_class_is_that_of_upstream_on_every_recorded_pod(wanted):
    demanded = rule(f"{{minClass: {wanted}}}")
    rank = CLASS_RANK[QOSClass(wanted)]
    wrong = [
        line["id"]
        for line in vectors("qos")
        if judge([demanded], subject_of(convert(line["input"]["pod"], Pod))).allowed
        != (CLASS_RANK[QOSClass(line["expected"]["qosClassAfterDefaulting"])] >= rank)
    ]
    assert wrong == []


@given(accepted_pods())
def test_the_amounts_of_a_violated_class_are_those_that_decided_it(given_pod):
    (demanded, judged) = rule("{minClass: Guaranteed}"), subject_of(given_pod)
    found = judge([demanded], judged).violations
    assert bool(found) == (classify(defaulted(given_pod)).qos_class is not QOSClass.GUARANTEED)
    for violation in found:
        assert violation.amounts
        assert all(each.request != each.limit or not each.limit for each in violation.amounts)


def test_a_class_may_be_too_high():
    demanded = rule("{maxClass: Burstable}")
    assert whys(demanded, subject_of(one(EQUAL))) == [Why.CLASS_TOO_HIGH]
    assert whys(demanded, subject_of(one())) == []


@pytest.mark.parametrize(
    ("namespace", "own", "violated"),
    [
        ("Burstable", "Guaranteed", True),
        ("Guaranteed", "Burstable", True),
        ("Burstable", "Burstable", False),
        ("BestEffort", None, False),
        (None, None, False),
    ],
)
def test_of_the_classes_that_labels_state_the_strictest_counts(namespace, own, violated):
    demanded = rule("{classLabel: podqos.dev/class}")
    labels = {} if own is None else {"podqos.dev/class": own}
    judged = replace(one("{requests: {cpu: 1}}"), metadata=ObjectMeta("web", "shop", labels=labels))
    of_namespace = ObjectMeta(labels={} if namespace is None else {"podqos.dev/class": namespace})
    assert bool(whys(demanded, subject_of(judged, of_namespace))) is violated


def test_a_label_that_states_no_class_is_a_violation_where_it_stands():
    demanded = rule("{classLabel: podqos.dev/class}")
    given_pod = pod("containers: []", "{name: web, labels: {podqos.dev/class: guaranteed}}")
    (violation,) = judge([demanded], template_of(given_pod)).violations
    assert (violation.why, violation.path) == (
        Why.NO_SUCH_CLASS,
        "spec.template.metadata.labels[podqos.dev/class]",
    )
    assert '"guaranteed", must be Guaranteed, Burstable or BestEffort' in message(violation)


def test_a_template_is_judged_as_its_pods_will_be_stored():
    (violation,) = judge([rule("{minClass: Guaranteed}")], template_of(one("{limits: {cpu: 1}}"))).violations
    assert violation.path == "spec.template.spec.containers[0].resources"
    assert [(each.resource, str(each.request), each.limit) for each in violation.amounts] == [("memory", "None", None)]
    assert whys(rule("{requests: [cpu, memory], minClass: Guaranteed}"), template_of(one(EQUAL))) == []


# ---- requests, limits, ratios ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("require", "resources", "expected"),
    [
        ("{requests: [cpu]}", "{limits: {cpu: 1}}", []),
        ("{requests: [cpu]}", '{requests: {cpu: "0"}}', [Why.NO_REQUEST]),
        ("{limits: [memory]}", "{requests: {memory: 1Gi}}", [Why.NO_LIMIT]),
        ("{limits: [memory], maxLimitRequestRatio: {memory: 2}}", "{}", [Why.NO_LIMIT]),
        ("{maxLimitRequestRatio: {memory: 2}}", "{requests: {memory: 1Gi}}", [Why.NO_LIMIT]),
        ("{maxLimitRequestRatio: {memory: 2}}", '{requests: {memory: "0"}, limits: {memory: 1}}', [Why.NO_REQUEST]),
        ("{maxLimitRequestRatio: {nvidia.com/gpu: 1}}", "{}", []),
        ("{maxLimitRequestRatio: {cpu: 1.1}}", "{requests: {cpu: 10m}, limits: {cpu: 11m}}", []),
        ("{maxLimitRequestRatio: {cpu: 1.1}}", "{requests: {cpu: 1000m}, limits: {cpu: 1101m}}", [Why.RATIO_TOO_HIGH]),
    ],
)
def test_amounts_are_held_to_what_a_rule_demands(require, resources, expected):
    assert whys(rule(require), subject_of(one(resources))) == expected


@given(amounts(), amounts(), st.fractions(min_value=1, max_value=100, max_denominator=1000))
def test_a_ratio_is_compared_exactly(low, high, allowed):
    request, limit = sorted((low.rounded_up_to_milli(), high.rounded_up_to_milli()))
    ratio = float(allowed)
    given_pod = one()
    resources = given_pod.spec.containers[0].resources
    resources = replace(resources, requests={"cpu": request}, limits={"cpu": limit})
    held = replace(given_pod.spec.containers[0], resources=resources)
    given_pod = replace(given_pod, spec=replace(given_pod.spec, containers=(held,)))
    expected = request.nanos <= 0 or limit.nanos > request.nanos * Fraction(str(ratio))
    assert bool(whys(rule(f"{{maxLimitRequestRatio: {{cpu: {ratio!r}}}}}"), subject_of(given_pod))) is expected


def test_every_container_is_held_init_containers_too():
    given_pod = pod(f"{{containers: [{container(EQUAL)}], initContainers: [{container('{}', 'init')}]}}")
    (violation,) = judge([rule("{limits: [memory]}")], subject_of(given_pod)).violations
    assert (violation.container, violation.path) == ("init", "spec.initContainers[0].resources.limits.memory")


def test_where_the_pod_states_an_amount_its_containers_need_not():
    given_pod = pod(
        f"{{containers: [{container()}], resources: {{requests: {{memory: 1Gi}}, limits: {{memory: 4Gi}}}}}}"
    )
    assert whys(rule("{limits: [memory], requests: [memory]}"), subject_of(given_pod)) == []
    (violation,) = judge([rule("{maxLimitRequestRatio: {memory: 2}}")], subject_of(given_pod)).violations
    assert (violation.path, violation.container) == ("spec.resources.limits.memory", "")
    assert "the pod: memory limit 4Gi is 4× its request 1Gi, must be 2× at most" in message(violation)


@pytest.mark.parametrize(
    ("side", "demanded", "expected"),
    [
        ("limits", "limits", []),
        ("requests", "requests", []),
        ("requests", "limits", [("spec.resources.limits.memory", "")]),
    ],
)
def test_either_amount_of_the_pod_makes_it_speak_for_its_containers(side, demanded, expected):
    given_pod = pod(f"{{containers: [{container()}], resources: {{{side}: {{memory: 1Gi}}}}}}")
    found = judge([rule(f"{{{demanded}: [memory]}}")], subject_of(given_pod)).violations
    assert [(each.path, each.container) for each in found] == expected


# ---- priority --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("require", "name", "value", "expected"),
    [
        ("{required: true}", "", 0, [Why.NO_PRIORITY_CLASS]),
        ("{classes: [web]}", "", 0, [Why.NO_PRIORITY_CLASS]),
        ("{classes: [web-*]}", "web-1", 5, []),
        ("{classes: [web-*]}", "batch", 5, [Why.PRIORITY_CLASS_NOT_ALLOWED]),
        ("{forbiddenClasses: [system-*]}", "system-node-critical", 5, [Why.PRIORITY_CLASS_NOT_ALLOWED]),
        ("{forbiddenClasses: [system-*]}", "", 0, []),
        ("{min: 10}", "web", 9, [Why.PRIORITY_TOO_LOW]),
        ("{max: 10}", "web", 11, [Why.PRIORITY_TOO_HIGH]),
        ("{min: 10, max: 10}", "web", 10, []),
        ("{min: 10, max: 10}", "web", None, []),
    ],
)
def test_priorities_are_held_to_what_a_rule_allows(require, name, value, expected):
    given_pod = pod(f"{{containers: [{container()}], priorityClassName: '{name}'}}")
    judgement = judge([rule(f"{{priority: {require}}}")], subject_of(given_pod, priority=value))
    assert [violation.why for violation in judgement.violations] == expected
    assert judgement.unknown_priority is (value is None)


# ---- which objects ---------------------------------------------------------------------------------------------------

LABELLED = pod(
    f"containers: [{container()}]", "{name: web-1, namespace: shop, labels: {app: web}, annotations: {tier: gold}}"
)


@pytest.mark.parametrize(
    ("match", "is_meant"),
    [
        ("{}", True),
        ("{namespaces: [shop]}", True),
        ("{namespaces: ['sh?p']}", True),
        ("{namespaces: [Shop]}", False),
        ("{names: [web-*], kinds: [Pod]}", True),
        ("{kinds: [Deployment]}", False),
        ("{namespaces: [shop], names: [db]}", False),
        ("{objectSelector: {matchLabels: {app: web}}}", True),
        ("{objectSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}", False),
        ("{objectSelector: {}}", True),
        ("{annotations: {tier: gold}}", True),
        ("{annotations: {tier: 'g*'}}", True),
        ("{annotations: {tier: silver}}", False),
        ("{annotations: {other: '*'}}", False),
        ("{annotations: {tier: gold, other: '*'}}", False),
        ("{namespaceSelector: {matchLabels: {team: a}}}", True),
        ("{namespaceSelector: {matchLabels: {team: b}}}", False),
        ("{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}", True),
    ],
)  # fmt: skip
def test_a_rule_is_about_what_matches_every_field(match, is_meant):
    subject = subject_of(LABELLED, ObjectMeta("shop", labels={"team": "a"}))
    assert bool(whys(rule("{minClass: Burstable}", match), subject)) is is_meant


def test_a_workload_is_meant_where_the_pods_it_makes_are():
    demanded = rule("{minClass: Burstable}", "{objectSelector: {matchLabels: {app: web}}, annotations: {tier: gold}}")
    assert whys(demanded, template_of(LABELLED)) == [Why.CLASS_TOO_LOW]
    assert whys(demanded, template_of(one(), metadata=LABELLED.metadata)) == [Why.CLASS_TOO_LOW]
    assert whys(demanded, template_of(one())) == []


def test_the_picture_of_a_static_pod_is_not_judged():
    mirror = pod("containers: [{name: a}]", "{name: a, annotations: {kubernetes.io/config.mirror: x}}")
    assert whys(rule("{minClass: Guaranteed}"), subject_of(mirror)) == []


@pytest.mark.parametrize(
    ("phase", "is_judged"), [("", True), ("Running", True), ("Succeeded", False), ("Failed", False)]
)
def test_a_pod_that_has_ended_is_not_judged(phase, is_judged):
    ended = replace(one(), status=PodStatus(phase))
    assert bool(whys(rule("{minClass: Guaranteed}"), subject_of(ended))) is is_judged


# ---- actions and exemptions ------------------------------------------------------------------------------------------


def test_the_strictest_action_comes_first_and_decides():
    demanded = policy(
        """
        rules:
        - {name: a, require: {limits: [cpu]}, action: Audit}
        - {name: b, require: {limits: [cpu]}, action: Deny}
        - {name: c, require: {limits: [cpu]}, action: Warn}
        """
    )
    judgement = judge([demanded], subject_of(one()))
    assert [each.rule for each in judgement.violations] == ["b", "c", "a"]
    assert (judgement.action, judgement.allowed) == (Action.DENY, False)
    assert judge([demanded], subject_of(one(EQUAL))).action is None


OWNED = replace(
    one(),
    metadata=ObjectMeta(
        "web-5d9c-x",
        "shop",
        labels={"pod-template-hash": "5d9c"},
        owner_references=(OwnerReference("apps/v1", "ReplicaSet", "web-5d9c", controller=True),),
    ),
)
OF_CRON_JOB = replace(
    one(),
    metadata=ObjectMeta(
        "report-29384920-x", "shop", owner_references=(OwnerReference("batch/v1", "Job", "report-29384920", True),)
    ),
)


@pytest.mark.parametrize(
    ("exemption", "judged", "is_exempt"),
    [
        ("namespaces: [shop]", one(), True),
        ("namespaces: [kube-*]", one(), False),
        ("rules: [rule]", one(), True),
        ("rules: [r*], namespaces: [other]", one(), False),
        ("namespaceSelector: {matchLabels: {team: a}}", one(), True),
        ("objects: [Pod/web]", one(), True),
        ("objects: [Deployment/web]", one(), False),
        ("objects: [Deployment/web]", OWNED, True),
        ("objects: [ReplicaSet/*]", OWNED, True),
        ("objects: [Deployment/web-5d9c]", OWNED, False),
        ("objects: [CronJob/report]", OF_CRON_JOB, True),
        ("users: ['system:serviceaccount:ci:*']", one(), True),
        ("users: [admin]", one(), False),
        ("groups: [system:masters]", one(), True),
        ("namespaces: [shop], until: '2026-12-31'", one(), True),
        ("namespaces: [shop], until: '2026-12-30'", one(), False),
    ],
)
def test_an_exemption_is_about_what_matches_every_field(exemption, judged, is_exempt):
    demanded = rule("{minClass: Burstable}", more=f", exemptions: [{{reason: because, {exemption}}}]")
    user = "system:serviceaccount:ci:deployer", "system:masters"
    subject = subject_of(judged, ObjectMeta(labels={"team": "a"}), 0, *user)
    judgement = judge([demanded], subject, today=date(2026, 12, 31))
    assert judgement.allowed is is_exempt
    assert [each.reason for each in judgement.exempted] == (["because"] if is_exempt else [])


def test_where_it_is_not_known_who_asks_no_exemption_of_users_counts():
    demanded = rule("{minClass: Burstable}", more=", exemptions: [{reason: r, users: ['*']}]")
    assert not judge([demanded], subject_of(one())).allowed


POD_LEVEL = "{requests: {memory: 1Gi}, limits: {memory: 2Gi}}"


def sidecar(resources: str) -> str:
    return f"containers: [{container(EQUAL)}, {container(resources, 'proxy')}]"


@pytest.mark.parametrize(
    ("require", "spec", "is_exempt"),
    [
        ("{limits: [memory]}", sidecar("{}"), True),
        ("{minClass: Guaranteed}", sidecar("{}"), True),
        ("{minClass: Guaranteed}", f"containers: [{container()}, {container('{}', 'proxy')}]", False),
        ("{minClass: Guaranteed}", f"containers: [{container('{}', 'proxy')}]", True),
        ("{maxClass: BestEffort}", f"containers: [{container()}, {container(EQUAL, 'proxy')}]", True),
        ("{priority: {required: true}}", sidecar("{}"), False),
        ("{maxLimitRequestRatio: {memory: 1}}", f"{{{sidecar('{}')}, resources: {POD_LEVEL}}}", False),
    ],
)
def test_exempt_containers_are_as_if_they_were_not_there(require, spec, is_exempt):
    demanded = rule(require, more=", exemptions: [{reason: r, containers: [proxy]}]")
    assert judge([demanded], subject_of(pod(spec))).allowed is is_exempt
    all_containers = rule(require, more=", exemptions: [{reason: r, containers: ['*']}]")
    about_the_pod = require.startswith(("{priority", "{max"))
    assert judge([all_containers], subject_of(pod(spec))).allowed is (not about_the_pod or is_exempt)


@given(accepted_pods(), st.sampled_from(["Guaranteed", "Burstable"]), st.sets(st.sampled_from(["c0", "c1", "i*"])))
def test_an_exemption_never_adds_a_violation(given_pod, wanted, exempt):
    require = f"{{minClass: {wanted}, limits: [cpu], maxLimitRequestRatio: {{memory: 1.5}}}}"
    without = judge([rule(require)], subject_of(given_pod)).violations
    more = f", exemptions: [{{reason: r, rules: [rule], containers: [{', '.join(map(repr, sorted(exempt)))}]}}]"
    with_it = judge([rule(require, more=more)], subject_of(given_pod))
    assert set(with_it.violations) <= set(without)
    assert len(with_it.violations) + len(with_it.exempted) == len(without)


def test_two_exemptions_of_containers_count_together():
    more = ", exemptions: [{reason: r, containers: [a]}, {reason: s, containers: [b]}]"
    spec = f"containers: [{container(EQUAL)}, {container('{}', 'a')}, {container('{}', 'b')}]"
    assert judge([rule("{minClass: Guaranteed}", more=more)], subject_of(pod(spec))).allowed


# ---- words -----------------------------------------------------------------------------------------------------------


def test_a_message_names_rule_container_resource_and_both_amounts():
    demanded = policy(
        "rules: [{name: calm, require: {minClass: Guaranteed}, action: Deny, message: 'Ask the platform team.'}]"
    )
    (violation,) = judge([demanded], subject_of(one("{requests: {cpu: 100m}, limits: {cpu: 200m}}"))).violations
    assert message(violation) == (
        'policy "shop", rule "calm": Ask the platform team: QoS class would be Burstable, must be Guaranteed: '
        'container "web" has cpu request 100m and cpu limit 200m, neither memory request nor limit'
    )


@pytest.mark.parametrize(
    ("require", "priority_class", "words"),
    [
        (
            "{minClass: Burstable}",
            "",
            "QoS class would be BestEffort, must be Burstable or better: no container states cpu or memory",
        ),
        ("{priority: {required: true}}", "", "no priorityClassName, must be set"),
        ("{priority: {classes: [web]}}", "", "no priorityClassName, must be web"),
        ("{priority: {classes: [web]}}", "batch", 'priority class "batch" is not allowed, must be web'),
        ("{priority: {forbiddenClasses: [system-*]}}", "system-x", 'priority class "system-x" is not allowed'),
        ("{priority: {min: 10}}", "batch", "priority is 5, must be at least 10"),
        ("{priority: {max: 4}}", "batch", "priority is 5, must be at most 4"),
    ],
)
def test_a_message_says_what_is_and_what_must_be(require, priority_class, words):
    given_pod = pod(f"{{containers: [{container()}], priorityClassName: '{priority_class}'}}")
    (violation,) = judge([rule(require)], subject_of(given_pod, priority=5)).violations
    assert message(violation).endswith(f'": {words}')


def test_a_message_is_cut_and_says_how_much_is_left_out():
    many = ", ".join(container("{requests: {cpu: 100m}}", f"container-{number}") for number in range(64))
    (violation,) = judge([rule("{minClass: Guaranteed}")], subject_of(pod(f"containers: [{many}]"))).violations
    text = message(violation)
    assert len(text) <= LONGEST
    shown = text.count("has cpu request")
    assert text.endswith(f"; and {64 - shown} more")
    assert shown > 3


@given(st.text(max_size=2000), st.text(max_size=300))
def test_no_message_is_too_long(own, actual):
    (violation,) = judge([rule("{limits: [cpu]}")], subject_of(one())).violations
    assert len(message(replace(violation, message=own, actual=actual))) <= LONGEST


def test_a_message_is_one_line_of_printable_characters_whatever_an_annotation_says():
    demanded = policy(
        "rules: [{name: r, require: {classLabel: a/b}, action: Deny, message: 'Ask\n\n  the team.'}]",
    )
    evil = replace(one(), metadata=ObjectMeta("web", annotations={"a/b": "x\r\nWarning: y\x1b[31m\u2028z"}))
    (violation,) = judge([demanded], subject_of(evil)).violations
    assert message(violation) == (
        'policy "shop", rule "r": Ask the team: a/b (metadata.annotations[a/b]) is "x Warning: y [31m z", must be '
        "Guaranteed, Burstable or BestEffort"
    )


def test_amounts_are_worded_as_written():
    (violation,) = judge([rule("{limits: [cpu]}")], subject_of(one("{requests: {cpu: 1500m}}"))).violations
    assert violation.amounts[0].request == Quantity.parse("1.5")
    assert message(violation).endswith('container "web" has cpu request 1500m and no cpu limit, must limit cpu')
