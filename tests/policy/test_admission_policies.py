"""Printed admission policies say what ``judge`` says; their expressions are evaluated by a CEL library."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml

from conformance.compare import vectors
from podqos.admission.defaulting import defaulted
from podqos.manifest.decode import convert
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, profile_for
from podqos.policy import cel
from podqos.policy.admission_objects import object_name
from podqos.policy.admission_policies import Wish, admission_policies
from podqos.policy.model import Action
from podqos.policy.words import message
from podqos.qos.classes import classify
from podqos.questions.policy import documents
from policy import drawing
from policy.api_server import ApiServer, EvaluationError, Request, evaluate

Value = dict[str, Any]
CLASSES = ("BestEffort", "Burstable", "Guaranteed")
SOMEONE = ("someone", ("system:authenticated",))
ADMIN = ("admin", ("system:masters", "system:authenticated"))
FULL = {"cpu": "1", "memory": "1Gi"}
DEPLOYED = {"selector": {}, "replicas": 1}


def policy(*rules: Value, **spec: Any) -> Value:
    """Return a policy; a rule without a name or an action gets one."""
    named = [{"name": f"r{index}", "action": "Deny", **rule} for index, rule in enumerate(rules)]
    return {
        "apiVersion": "podqos.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "shop"},
        "spec": {"rules": named, **spec},
    }


def printed(value: Value, **wish: Any) -> list[Value]:
    return [each.value for each in admission_policies([drawing.read(value)], Wish(**wish)).objects]


def server(value: Value, **wish: Any) -> ApiServer:
    return ApiServer(printed(value, **wish))


def container(name: str = "web", requests: Value | None = None, limits: Value | None = None, **more: Any) -> Value:
    stated = {side: each for side, each in (("requests", requests), ("limits", limits)) if each}
    return {"name": name, "image": "app", "resources": stated, **more}


def pod(*containers: Value, labels: Value | None = None, **spec: Any) -> Value:
    metadata = {"name": "web-1", "namespace": "shop", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [*containers], **spec}}


def deployment(*containers: Value, labels: Value | None = None, **spec: Any) -> Value:
    metadata = {"name": "web", "namespace": "shop", **({"labels": labels} if labels else {})}
    template = {"metadata": {}, "spec": {"containers": [*containers], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {**DEPLOYED, "template": template},
    }


def namespace(**labels: str) -> Value:
    return {
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop", **labels}},
    }


def failures(server: ApiServer, value: Value, old: Value | None = None, **labels: str) -> list[str]:
    """Return the policies that an object violates."""
    found = server.validate(Request(object=drawing.as_stored(value), old=old, namespace=namespace(**labels)))
    return [each.policy.removeprefix("podqos.shop.") for each in found]


# ---- the same as classify and judge ----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_template", [False, True], ids=["pods", "templates"])
def test_the_class_is_that_of_classify_for_every_valid_pod_of_the_conformance_vectors(as_template):
    demands = {"minClass": "Guaranteed"}
    about = "workloads" if as_template else "pods"
    [variables] = [
        each["spec"]["variables"]
        for each in printed(policy({"require": demands}))
        if each["kind"].endswith("Policy") and each["metadata"]["name"].endswith(about)
    ]
    seen = set()
    for line in vectors("qos"):
        if line["expected"]["apiValidationErrors"]:
            continue
        value = line["input"]["pod"]
        value = {"kind": "Pod", "metadata": {"name": "p"}, "spec": value["spec"]}
        if as_template:
            value = {"kind": "Deployment", "metadata": {"name": "p"}, "spec": {"template": {"spec": value["spec"]}}}
        known: Value = {}
        for each in variables:
            with suppress(EvaluationError):  # a variable that is not used may fail
                known[each["name"]] = evaluate(each["expression"], object=drawing.as_stored(value), variables=known)
        found = CLASSES[known["class"]]
        assert found == line["expected"]["qosClassAfterDefaulting"], line["id"]
        seen.add(found)
    assert seen == set(CLASSES)


@pytest.mark.parametrize("minor", [30, 34, 36, 37])
def test_every_drawn_object_violates_the_rules_that_judge_says(minor):
    draw = drawing.seeded(minor)
    profile = profile_for((1, minor))
    violated = judged = 0
    for _ in range(60):
        drawn = drawing.read(drawing.policy(draw, "shop", ("ns-a", "ns-b")))
        api_server = ApiServer(each.value for each in admission_policies([drawn], Wish(profile=profile)).objects)
        for _ in range(8):
            found = drawing.namespace(draw, draw.choice(("ns-a", "ns-b")))
            make = draw.choice((drawing.pod, drawing.workload))
            value = make(draw, found["metadata"]["name"], pod_level=profile.pod_level_resources)
            if not drawing.is_valid(value, profile):
                continue
            who = draw.choice((SOMEONE, ADMIN))
            request = Request(object=drawing.as_stored(value, profile), namespace=found, user=who[0], groups=who[1])
            rules = {each.policy.split(".")[2] for each in api_server.validate(request)}
            expected = {each.rule for each in drawing.judged(drawn, value, found, who, profile)}
            assert rules == expected, (drawn, value, found)
            violated, judged = violated + len(expected), judged + 1
    assert judged > 250
    assert violated > 50


def test_templates_count_sidecars_and_init_containers_towards_the_pods_own_request():
    """A pod limited as a whole is Guaranteed if what its containers request together is the limit."""
    api_server = server(policy({"require": {"minClass": "Guaranteed"}}))
    half = {"cpu": "500m", "memory": "512Mi"}
    sidecar = container("proxy", half, restartPolicy="Always")
    for init, is_guaranteed in (
        ([sidecar], True),
        ([container("setup", half)], False),
        ([container("setup", FULL)], True),
        ([sidecar, container("setup", half)], True),
        (
            [container("setup", half), sidecar, container("more", half), container("proxy-2", restartPolicy="Always")],
            True,
        ),
        ([sidecar, container("setup", {"cpu": "500m", "memory": "511Mi"})], True),
        ([container("setup", {"cpu": "501m", "memory": "512Mi"})], False),
    ):
        value = deployment(container("web", half), initContainers=init, resources={"limits": FULL})
        assert (failures(api_server, value) == []) is is_guaranteed, init
        stored = classify(defaulted(drawing.workload_of(value).pod)).qos_class
        assert (stored is QOSClass.GUARANTEED) is is_guaranteed


def test_a_ratio_is_compared_without_a_rounding_error():
    """3 × 1.1 is 3.3000000000000003 in floating point."""
    api_server = server(policy({"require": {"maxLimitRequestRatio": {"cpu": 1.1, "memory": 12.345678}}}))
    memory = {"memory": "1000000"}
    for cpu, limit, memory_limit, is_allowed in (
        ("3", "3300m", "12345678", True),
        ("3", "3301m", "12345678", False),
        ("3", "3300m", "12345679", False),
        ("100m", "110m", "1M", True),
    ):
        value = pod(container("web", {"cpu": cpu, **memory}, {"cpu": limit, "memory": memory_limit}))
        assert (failures(api_server, value) == []) is is_allowed, (cpu, limit, memory_limit)


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "web",
        "web-*",
        "*-web",
        "w?b",
        "[a-f]*",
        "[!a-f]*",
        "[]x]*",
        "[z-a]",
        "a.b*",
        "[",
        "web[",
        "w^*",
        "×?*",
        "[a-]*",
        "[!]w]*",
        "**",
    ],
)
def test_patterns_fit_what_fnmatch_fits(glob):
    for name in (
        "",
        "web",
        "web-1",
        "x-web",
        "wab",
        "b",
        "z",
        "a.b",
        "axb",
        "[",
        "web[",
        "]x",
        "w^",
        "-",
        "a\nb",
        "×a",
    ):
        assert evaluate(cel.fits(cel.quoted(name), (glob,))) == fnmatchcase(name, glob), name


@pytest.mark.parametrize(
    "text", ["plain", "it's", 'a "b"', "back\\slash", "new\nline", "tab\t", "…×", "\x00", "\U000e0001"]
)
def test_texts_are_quoted(text):
    assert evaluate(cel.quoted(text)) == text


# ---- messages --------------------------------------------------------------------------------------------------------


def test_a_message_names_container_resource_and_both_amounts_as_judge_does():
    wanted = policy({"require": {"minClass": "Guaranteed"}, "message": "Ask the platform team."})
    value = pod(container("web", FULL, FULL), container("proxy", {"cpu": "100m"}, {"cpu": "200m"}))
    [found] = server(wanted).validate(Request(object=drawing.as_stored(value), namespace=namespace()))
    [violation] = drawing.judged(drawing.read(wanted), value, namespace(), SOMEONE)
    assert found.message == message(violation)
    assert found.message.endswith(
        'team: QoS class would be Burstable, must be Guaranteed: container "proxy" has cpu request 100m '
        "and cpu limit 200m, neither memory request nor limit"
    )
    assert found.reason == "Forbidden"


@pytest.mark.parametrize(
    ("demanded", "name"),
    [
        ({"required": True}, ""),
        ({"classes": ["web"]}, ""),
        ({"classes": ["web"]}, "batch-low"),
        ({"forbiddenClasses": ["b*"]}, "batch-low"),
    ],
    ids=["none", "none of some", "another", "forbidden"],
)
def test_a_message_about_priority_classes_is_that_of_judge(demanded, name):
    wanted = policy({"require": {"priority": demanded}})
    value = pod(container("web"), **({"priorityClassName": name} if name else {}))
    [found] = server(wanted).validate(Request(object=drawing.as_stored(value), namespace=namespace()))
    [violation] = drawing.judged(drawing.read(wanted), value, namespace(), SOMEONE)
    assert found.message == message(violation)


@pytest.mark.parametrize("limits", [[], ["memory"]])
@pytest.mark.parametrize("requests", [[], ["memory"]])
@pytest.mark.parametrize("requested", [{}, {"memory": "1Gi"}])
def test_a_missing_amount_is_told_once_where_a_ratio_needs_it_too(requests, limits, requested):
    wanted = policy({"require": {"requests": requests, "limits": limits, "maxLimitRequestRatio": {"memory": 2}}})
    value = pod(container("web", requested))
    found = server(wanted).validate(Request(object=drawing.as_stored(value), namespace=namespace()))
    assert len(found) == len(drawing.judged(drawing.read(wanted), value, namespace(), SOMEONE))


def test_a_message_is_cut_at_900_characters():
    value = pod(*(container(f"container-{index}") for index in range(40)))
    [found] = server(policy({"require": {"minClass": "Guaranteed"}})).validate(
        Request(object=value, namespace=namespace())
    )
    assert len(found.message) == 900
    assert found.message.endswith("…")


# ---- which objects, and when -----------------------------------------------------------------------------------------


def test_nothing_that_is_missing_makes_an_expression_fail():
    everything = policy(
        {"require": {"minClass": "Guaranteed", "classLabel": "podqos.dev/class"}},
        {"require": {"maxClass": "BestEffort", "requests": ["cpu"], "limits": ["example.com/dongle"]}},
        {
            "require": {
                "maxLimitRequestRatio": {"cpu": 2},
                "priority": {"required": True, "forbiddenClasses": ["x"], "min": 0},
            }
        },
        {
            "match": {"objectSelector": {"matchLabels": {"a": "b"}}, "annotations": {"a": "b"}},
            "require": {"minClass": "Burstable"},
        },
        exemptions=[
            {"reason": "o", "objects": ["DaemonSet/*"]},
            {"reason": "n", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            {"reason": "c", "containers": ["proxy"], "groups": ["x"]},
        ],
    )
    api_server = server(everything)
    spec = {"containers": [{"name": "web"}]}
    nothing: Value = {"metadata": {"name": "shop"}}
    for value in (
        {"kind": "Pod", "metadata": {"generateName": "web-"}, "spec": spec},
        {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}},
        {
            "kind": "CronJob",
            "metadata": {"name": "web"},
            "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}},
        },
    ):
        assert {
            each.policy.split(".")[2] for each in api_server.validate(Request(object=value, namespace=nothing))
        } >= {"r0", "r1"}
        changed = copy.deepcopy(value)
        drawing.template_of(changed)["spec"]["containers"][0]["name"] = "db"
        api_server.validate(Request(object=changed, old=value, namespace=nothing))
    assert api_server.validate(Request(object={"kind": "Namespace", **nothing}, namespace=nothing)) == []


def test_pods_are_judged_when_created_alone():
    api_server = server(policy({"require": {"minClass": "Guaranteed"}}))
    assert failures(api_server, pod(container())) == ["r0.pods"]
    assert failures(api_server, pod(container()), old=pod(container("old"))) == []


def test_mirror_pods_are_not_judged():
    value = pod(container())
    value["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    assert failures(server(policy({"require": {"minClass": "Guaranteed"}})), value) == []


def test_a_template_is_judged_again_only_if_it_or_a_label_changed():
    api_server = server(policy({"require": {"classLabel": "podqos.dev/class"}}))
    old = deployment(container(), labels={"podqos.dev/class": "Guaranteed"})
    assert failures(api_server, old) == ["r0.workloads"]
    scaled = copy.deepcopy(old)
    scaled["spec"]["replicas"] = 5
    scaled["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    assert failures(api_server, scaled, old) == []
    changed = copy.deepcopy(old)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"
    assert failures(api_server, changed, old) == ["r0.workloads"]
    unlabelled = deployment(container())
    assert failures(api_server, old, unlabelled) == ["r0.workloads"]
    annotated = copy.deepcopy(unlabelled)
    annotated["metadata"]["annotations"] = {"podqos.dev/class": "Burstable"}
    assert failures(api_server, annotated, unlabelled) == ["r0.workloads"]


def test_what_is_being_deleted_or_was_made_by_another_object_is_not_judged_as_a_template():
    api_server = server(policy({"require": {"minClass": "Guaranteed"}}))
    old = deployment(container())
    deleted = deployment(container("other"))
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert failures(api_server, deleted, old) == []
    made = {**deployment(container()), "kind": "ReplicaSet"}
    made["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web", "controller": True}]
    assert failures(api_server, made) == []


def test_the_stricter_label_wins():
    api_server = server(policy({"require": {"classLabel": "podqos.dev/class"}}))
    burstable = container("web", {"cpu": "1"})
    key = "podqos.dev/class"
    for of_namespace, of_pod, is_refused in (
        ("Burstable", "Guaranteed", True),
        ("Guaranteed", "Burstable", True),
        ("Burstable", "BestEffort", False),
        ("BestEffort", "Burstable", False),
    ):
        value = pod(burstable, labels={key: of_pod})
        assert bool(failures(api_server, value, **{key: of_namespace})) is is_refused


def test_a_label_that_names_no_class_is_refused_where_it_is_written():
    api_server = server(policy({"require": {"classLabel": "podqos.dev/class"}}))
    old = namespace(team="a")
    for value, is_refused in (("Guaranteed", False), ("guaranteed", True), ("", True)):
        labelled = {**namespace(**{"podqos.dev/class": value}), "kind": "Namespace"}
        for request in (Request(object=labelled), Request(object=labelled, old=old)):
            found = api_server.validate(request)
            assert [each.policy for each in found] == ["podqos.shop.r0.namespaces"] * is_refused
    mistaken = {**namespace(**{"podqos.dev/class": "x"}), "kind": "Namespace"}
    assert api_server.validate(Request(object=mistaken, old=copy.deepcopy(mistaken))) == []
    assert failures(api_server, pod(container(), labels={"podqos.dev/class": "Garanteed"})) == ["r0.pods"]


def test_templates_are_warned_about_where_their_pods_are_refused():
    def actions(rule: Value, **wish: Any) -> dict[str, list[str]]:
        return {
            each["metadata"]["name"].rpartition(".")[2]: each["spec"]["validationActions"]
            for each in printed(policy({"require": {"minClass": "Burstable"}, **rule}), **wish)
            if each["kind"].endswith("Binding")
        }

    deny, warn, audit = ["Deny", "Audit"], ["Warn", "Audit"], ["Audit"]
    assert actions({"action": "Deny"}) == {"pods": deny, "workloads": warn, "cronjobs": warn}
    assert actions({"action": "Warn"}) == {"pods": warn, "workloads": warn, "cronjobs": warn}
    assert actions({"action": "Audit"}) == {"pods": audit, "workloads": audit, "cronjobs": audit}
    assert actions({"match": {"kinds": ["Deployment"]}}) == {"workloads": deny}
    assert actions({}, templates=Action.DENY) == {"pods": deny, "workloads": deny, "cronjobs": deny}
    assert actions({"action": "Warn"}, templates=Action.DENY) == {"pods": warn, "workloads": warn, "cronjobs": warn}
    assert actions({}, templates=Action.AUDIT) == {"pods": deny, "workloads": audit, "cronjobs": audit}


def test_an_exemption_that_has_expired_is_left_out_and_one_that_will_is_said():
    wanted = policy(
        {"require": {"minClass": "Guaranteed"}},
        exemptions=[{"reason": "migration", "namespaces": ["shop"], "until": "2026-06-30"}],
    )
    before, after = ({"today": date(2026, month, 1)} for month in (6, 7))
    assert failures(server(wanted, **before), pod(container())) == []
    assert failures(server(wanted, **after), pod(container())) == ["r0.pods"]
    said = {
        each.what: each.detail
        for wish in (before, after)
        for each in admission_policies([drawing.read(wanted)], Wish(**wish)).not_expressed
        if each.of == ("migration",)
    }
    assert said == {"Expiry": "2026-06-30", "Expired": "2026-06-30"}


@pytest.mark.parametrize(
    ("demanded", "is_said"),
    [
        ({"required": True}, True),
        ({"classes": ["web"]}, True),
        ({"min": 0}, True),
        ({"max": 0}, True),
        ({"forbiddenClasses": ["x"]}, False),
    ],
    ids=str,
)
def test_a_priority_that_templates_need_not_state_is_said_to_be_left(demanded, is_said):
    """What is forbidden can be seen in a template, what the default class gives cannot."""
    wanted = policy({"require": {"priority": demanded}})
    left = {each.what for each in admission_policies([drawing.read(wanted)], Wish()).not_expressed}
    assert ("TemplatePriority" in left) is is_said


@pytest.mark.parametrize(
    ("require", "said"),
    [
        ({"requests": ["cpu"]}, ["LimitRange", "Resize"]),
        ({"limits": ["cpu"]}, ["LimitRange", "Resize"]),
        ({"maxLimitRequestRatio": {"cpu": 2}}, ["LimitRange", "Resize"]),
        ({"minClass": "Burstable"}, ["LimitRange"]),
        ({"priority": {"required": True}}, []),
    ],
    ids=str,
)
def test_what_depends_on_amounts_is_said_to_miss_resizes_and_defaults(require, said):
    """A resize is not asked about; a template does not have what a LimitRange fills in."""
    found = admission_policies([drawing.read(policy({"require": require}))], Wish()).not_expressed
    assert sorted({each.what for each in found} & {"Resize", "LimitRange"}) == said


def test_a_pattern_among_the_names_of_namespaces_counts_as_they_do():
    api_server = server(policy({"match": {"namespaces": ["shop", "team-*"]}, "require": {"minClass": "Burstable"}}))

    def is_refused(name: str) -> bool:
        value = drawing.as_stored(pod(container()))
        value["metadata"]["namespace"] = name
        about = {"kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
        return bool(api_server.validate(Request(object=value, namespace=about)))

    assert [is_refused(name) for name in ("shop", "team-a", "other")] == [True, True, False]


# ---- mutation --------------------------------------------------------------------------------------------------------


def mutated(value: Value, wanted: Value, **wish: Any) -> Value:
    """Return a pod as it is stored after the mutation: filled in before, and again after it."""
    return mutated_by(server(wanted, mutate=True, **wish), value)


def mutated_by(api_server: ApiServer, value: Value) -> Value:
    return drawing.as_stored(api_server.mutate(Request(object=drawing.as_stored(value), namespace=namespace())))


def class_of(value: Value) -> QOSClass:
    return classify(convert({"metadata": {}, "spec": value["spec"]}, Pod)).qos_class


GUARANTEED = policy({"require": {"minClass": "Guaranteed"}})
GIVEN = {"limits": {"cpu": "100m", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("value", "wish"),
    [
        (pod(container("web", FULL)), {}),
        (pod(container("web", FULL, {"cpu": "1"})), {}),
        (pod(container("web", FULL), initContainers=[container("init", FULL)]), {}),
        (pod(container("web", FULL), initContainers=[container("proxy", restartPolicy="Always")]), GIVEN),
        (pod(container("web", FULL, FULL), container("proxy")), GIVEN),
        (pod(container("web", FULL, FULL), container("proxy", {"cpu": "50m"})), GIVEN),
        (pod(container("web"), resources={"requests": FULL}), {}),
    ],
)  # fmt: skip
def test_limits_that_are_missing_are_filled_in_and_the_pod_is_guaranteed(value, wish):
    assert class_of(drawing.as_stored(value)) is not QOSClass.GUARANTEED
    found = mutated(value, GUARANTEED, **wish)
    assert class_of(found) is QOSClass.GUARANTEED
    assert mutated(found, GUARANTEED, **wish) == found
    assert server(GUARANTEED).validate(Request(object=found, namespace=namespace())) == []


@pytest.mark.parametrize(
    "value",
    [
        pod(container("web", FULL, FULL)),
        pod(container("web")),
        pod(container("web", FULL), container("proxy")),
        pod(container("web", FULL), container("proxy", FULL, {"cpu": "2", "memory": "1Gi"})),
        pod(container("web", {"cpu": "0", "memory": "1Gi"})),
        pod(container("web", FULL), resources={"requests": {"cpu": "1"}}),
        pod(container("web", FULL), resources={}),
        pod(container("web", {"cpu": "1"}, {"cpu": "2"}), resources={"requests": FULL}),
    ],
)  # fmt: skip
def test_a_pod_is_left_alone_that_would_not_become_guaranteed_or_is_already(value):
    assert mutated(value, GUARANTEED) == drawing.as_stored(value)


def test_every_drawn_pod_is_guaranteed_after_the_mutation_or_is_as_it_was():
    draw = drawing.seeded(5)
    servers = [server(GUARANTEED, mutate=True), server(GUARANTEED, mutate=True, **GIVEN)]
    filled = 0
    for index in range(600):
        value = drawing.pod(draw, "shop")
        if not drawing.is_valid(value):
            continue
        before = drawing.as_stored(value)
        after = mutated_by(servers[index % 2], value)
        if after != before:
            filled += 1
            assert class_of(after) is QOSClass.GUARANTEED
            assert drawing.is_valid(after)
            for field in ("containers", "initContainers"):
                for new, old in zip(after["spec"].get(field, ()), before["spec"].get(field, ()), strict=True):
                    for side, stated in old.get("resources", {}).items():
                        assert stated.items() <= new["resources"][side].items()
    assert filled > 30


def test_exempt_containers_are_not_filled_in_and_do_not_count():
    wanted = policy({"require": {"minClass": "Guaranteed"}}, exemptions=[{"reason": "mesh", "containers": ["proxy"]}])
    found = mutated(pod(container("web", FULL), container("proxy", {"cpu": "1"})), wanted)
    web, proxy = found["spec"]["containers"]
    assert web["resources"]["limits"] == FULL
    assert proxy["resources"] == {"requests": {"cpu": "1"}}


def test_limits_are_filled_in_only_where_guaranteed_is_demanded():
    for demands, is_filled in (
        ({"minClass": "Burstable"}, False),
        ({"maxClass": "Burstable"}, False),
        ({"classLabel": "podqos.dev/class"}, False),
        ({"minClass": "Guaranteed", "classLabel": "podqos.dev/class"}, True),
    ):
        value = pod(container("web", FULL))
        assert (mutated(value, policy({"require": demands})) != drawing.as_stored(value)) is is_filled, demands
    labelled = pod(container("web", FULL), labels={"podqos.dev/class": "Guaranteed"})
    assert class_of(mutated(labelled, policy({"require": {"classLabel": "podqos.dev/class"}}))) is QOSClass.GUARANTEED


def test_a_container_that_is_injected_later_is_filled_in_when_the_policy_is_asked_again():
    found = mutated(pod(container("web", FULL)), GUARANTEED, **GIVEN)
    found["spec"]["containers"].append(container("proxy"))
    assert class_of(mutated(found, GUARANTEED, **GIVEN)) is QOSClass.GUARANTEED


# ---- versions --------------------------------------------------------------------------------------------------------


def test_the_mutation_has_the_version_that_its_kubernetes_serves():
    def versions(minor: int) -> tuple[set[str], set[str]]:
        found = admission_policies([drawing.read(GUARANTEED)], Wish(profile=profile_for((1, minor)), mutate=True))
        mutating = {each.value["apiVersion"] for each in found.objects if each.value["kind"].startswith("Mutating")}
        return mutating, {each.what for each in found.not_expressed}

    group = "admissionregistration.k8s.io"
    assert versions(36) == ({f"{group}/v1"}, {"LimitRange"})
    assert versions(35) == ({f"{group}/v1beta1"}, {"LimitRange", "MutationOff"})
    assert versions(33) == (set(), {"LimitRange", "Mutation"})


@pytest.mark.parametrize("minor", [30, 33])
def test_what_a_version_does_not_know_is_not_used(minor):
    """Comprehensions of two variables are there since 1.32, and a pod's own resources since 1.34."""
    wanted = policy({"require": {"minClass": "Guaranteed", "maxLimitRequestRatio": {"memory": 2}}})
    said = json.dumps(printed(wanted, profile=profile_for((1, minor)), mutate=True))
    assert "transformList" not in said
    assert "spec.resources" not in said
    assert "transformList" in json.dumps(printed(wanted))


# ---- shape -----------------------------------------------------------------------------------------------------------


def test_objects_have_the_shape_that_the_api_server_takes():
    """Recorded from a v1.36.4 server: both Deny and Warn are refused; conditions do not know the namespace."""
    draw = drawing.seeded(3)
    fields = {
        "ValidatingAdmissionPolicy": {
            "failurePolicy", "matchConstraints", "matchConditions", "variables", "validations",
        },
        "ValidatingAdmissionPolicyBinding": {"policyName", "matchResources", "validationActions"},
        "MutatingAdmissionPolicy": {
            "failurePolicy", "matchConstraints", "matchConditions", "variables", "mutations", "reinvocationPolicy",
        },
        "MutatingAdmissionPolicyBinding": {"policyName", "matchResources"},
    }  # fmt: skip
    for number in range(40):
        objects = printed(drawing.policy(draw, f"p{number}", ("ns-a", "ns-b")), mutate=True)
        assert len({(each["kind"], each["metadata"]["name"]) for each in objects}) == len(objects)
        for each in objects:
            spec = each["spec"]
            assert spec.keys() <= fields[each["kind"]]
            assert each["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "podqos"
            assert not {"Deny", "Warn"} <= {*spec.get("validationActions", ())}
            assert "namespaceObject" not in json.dumps(spec.get("matchConditions"))
            names = [variable["name"] for variable in spec.get("variables", ())]
            assert len(set(names)) == len(names)
            for validation in spec.get("validations", ()):
                assert validation["reason"] == "Forbidden"
                assert "\n" not in validation["expression"] + validation["message"]
        policies = [each["metadata"]["name"] for each in objects if not each["kind"].endswith("Binding")]
        assert policies == [each["spec"]["policyName"] for each in objects if each["kind"].endswith("Binding")]


def test_variables_are_named_before_they_are_used():
    draw = drawing.seeded(4)
    for number in range(40):
        for each in printed(drawing.policy(draw, f"p{number}", ("ns-a",)), mutate=True):
            known: set[str] = set()
            for variable in each["spec"].get("variables", ()):
                used = {word.partition(".")[0] for word in _after(variable["expression"], "variables.")}
                assert used <= known
                known.add(variable["name"])
            rest = json.dumps([each["spec"].get("validations"), each["spec"].get("mutations")])
            assert {word.partition(".")[0] for word in _after(rest, "variables.")} <= known


def _after(text: str, prefix: str) -> list[str]:
    words = text.split(prefix)[1:]
    return ["".join(char if char.isalnum() else "." for char in word[:30]) for word in words]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b-c"), ("a-b", "c")),
        (("a" * 253, "b"), ("a" * 253, "c")),
        (("a.b", "c"), ("a-b", "c")),
        (("x.", "y"), ("x", "y")),
    ],
)
def test_names_are_valid_and_those_of_different_rules_differ(one, other):
    names = [object_name(*each, "pods") for each in (one, other)]
    assert names[0] != names[1]
    for name in names:
        assert len(name) <= 253
        assert all(part and part[0].isalnum() and part[-1].isalnum() for part in name.split("."))


def test_yaml_is_read_as_the_same_objects_and_is_always_the_same():
    draw = drawing.seeded(6)
    for number in range(4):
        drawn = drawing.read(drawing.policy(draw, f"p{number}", ("ns-a",)))
        found = admission_policies([drawn], Wish(mutate=True))
        text = "\n".join(documents(found))
        assert [each for each in yaml.safe_load_all(text) if each] == [each.value for each in found.objects]
        assert text == "\n".join(documents(admission_policies([drawn], Wish(mutate=True))))
    assert LATEST.pod_level_resources
