"""Admission as a documented value, in words, and in lines."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, limit_range, pod, quota
from podqos.admission.chain import Step
from podqos.admission.changes import Change, FieldChange, Why
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.policies import ClusterPolicies, Policies
from podqos.admission.refusal import Code
from podqos.admission.resource_override import PROFILES
from podqos.admission.workloads import Admissions
from podqos.controls import own
from podqos.model.pod import ObjectMeta, QOSClass, Workload
from podqos.model.policy import ClusterResourceOverride, Namespace
from podqos.model.quantity import Quantity
from podqos.questions.admit import AdmissionList, AdmissionReport, Outcome, csv_rows, report, table, text
from podqos.text import admission as words
from podqos.text import changes
from podqos.text.style import Style

PLAIN = Style()
INDENT = " " * 29
TRAP = limit_range("default-limits", default="cpu=1,memory=512Mi", default_request="cpu=100m,memory=128Mi")


def _in_shop(policy):
    return replace(policy, metadata=replace(policy.metadata, namespace="shop"))


def listed(*items: AdmissionReport) -> AdmissionList:
    """Return a whole answer."""
    return AdmissionList(items, "1.36", None)


def lines_of(item: AdmissionReport, style: Style = PLAIN) -> list[str]:
    """Return its block, without what is said once below all."""
    return list(text(listed(item), style))[:-1]


def admitted(given, *, kind: str = "Deployment", replicas: int | None = None, **policies) -> AdmissionReport:
    """Report what becomes of a pod in the namespace ``shop``; a field stands on the line of its length."""
    metadata = ObjectMeta("web", "shop")
    path = "" if kind == "Pod" else "spec.template"
    for field in ("limit_ranges", "resource_quotas"):
        policies[field] = tuple(map(_in_shop, policies.get(field, ())))
    namespace = Namespace(ObjectMeta("shop", labels={PROFILES["current"].opt_in_label: "true"}))
    admissions = Admissions(ClusterPolicies(Policies(**policies), (namespace,)))
    outcome = admissions.create(Workload(kind, metadata, replace(given, metadata=metadata), path, replicas))
    return report(outcome, "web.yaml", lambda path: (len(path), 1))


def test_every_rule_behind_a_change_has_words():
    for why in Why:
        assert changes.reason(FieldChange("spec.priority", None, 0, why, "name"))


def test_every_status_has_a_name():
    assert [words.status(code) for code in Code] == [
        "400 Bad Request",
        "403 Forbidden",
        "404 Not Found",
        "422 Invalid",
        "500 Internal Server Error",
    ]


def test_a_reason_names_the_policy_behind_it():
    change = Change(
        "spec.containers[0].resources.limits", "cpu", None, Quantity.parse("1"), Why.LIMIT_RANGE_DEFAULT, "lr"
    )
    assert changes.reason(change) == "default of LimitRange lr"


@pytest.mark.parametrize(
    ("given", "policies", "step", "sentence"),
    [
        pytest.param(
            pod(container()),
            {"limit_ranges": (TRAP,)},
            Step.LIMIT_RANGER,
            "LimitRange default-limits set default requests and limits",
            id="limit-range",
        ),
        pytest.param(
            pod(container(requests="cpu=1,memory=512Mi")),
            {"limit_ranges": (TRAP,)},
            Step.LIMIT_RANGER,
            "LimitRange default-limits set default limits",
            id="limits-only",
        ),
        pytest.param(
            pod(container()),
            {"limit_ranges": (limit_range("a", default="cpu=1"), limit_range("b", default_request="memory=1Gi"))},
            Step.LIMIT_RANGER,
            "LimitRanges a and b set default requests and limits",
            id="two-limit-ranges",
        ),
        pytest.param(
            pod(container(requests="cpu=1,memory=1Gi", limits="cpu=1,memory=1Gi")),
            {"override": ClusterResourceOverride(cpu_request_to_limit_percent=50)},
            Step.CLUSTER_RESOURCE_OVERRIDE,
            "the ClusterResourceOverride set its requests",
            id="override",
        ),
        pytest.param(
            pod(container(limits="cpu=1,memory=1Gi")),
            {},
            Step.DEFAULTING,
            "limits were copied to missing requests",
            id="defaulting",
        ),
    ],
)
def test_why_the_class_changed(given, policies, step, sentence):
    (changed,) = (each for each in admitted(given, **policies).steps if each.reason)
    assert (changed.step, changed.reason) == (step, sentence)


def test_defaults_in_an_undefined_order_are_told_with_names_and_amounts():
    conflict = ConflictingDefaults("limits", "cpu", ("a", "b"), (Quantity.parse("1"), Quantity.parse("2")))
    assert words.conflict(conflict).startswith("several LimitRanges default the cpu limit (a 1 and b 2)")


class TestValue:
    def test_the_trap_of_source_002(self):
        item = admitted(pod(container("collector")), limit_ranges=(TRAP,))
        assert (item.qos_class_as_written, item.qos_class_defaulted, item.qos_class) == (
            QOSClass.BEST_EFFORT,
            QOSClass.BEST_EFFORT,
            QOSClass.BURSTABLE,
        )
        assert (item.class_changed, item.is_finding, item.outcome) == (True, True, Outcome.ALLOWED)
        (stored,) = item.containers
        assert (stored.requests, stored.limits) == (
            {"cpu": "100m", "memory": "128Mi"},
            {"cpu": "1", "memory": "512Mi"},
        )

    def test_defaulting_alone_is_no_finding(self):
        item = admitted(pod(container(limits="cpu=1,memory=1Gi")))
        assert item.qos_class_as_written is not item.qos_class
        assert not item.is_finding

    def test_changes_name_the_container_and_what_was_there(self):
        item = admitted(
            pod(container("app", limits="cpu=1"), init=(container("setup"),)),
            limit_ranges=(TRAP,),
            override=ClusterResourceOverride(cpu_request_to_limit_percent=50),
        )
        changes = {
            (change.container, change.resource, change.before, change.after)
            for step in item.steps
            for change in step.changes
            if change.resource == "cpu"
        }
        assert changes == {
            ("app", "cpu", None, "1"),
            ("app", "cpu", "1", "500m"),
            ("setup", "cpu", None, "100m"),
            ("setup", "cpu", None, "1"),
            ("setup", "cpu", "100m", "500m"),
        }

    @pytest.mark.parametrize(
        ("given", "policies", "path"),
        [
            pytest.param(
                pod(container(requests="cpu=2", limits="cpu=1")),
                {},
                "spec.containers[0].resources.requests",
                id="validation",
            ),
            pytest.param(
                pod(container("a"), init=(container("b", requests="example.com/gpu=1", limits="example.com/gpu=1"),)),
                {"limit_ranges": (limit_range("lr", min="example.com/gpu=2", default="example.com/gpu=2"),)},
                "spec.initContainers[0].resources.requests[example.com/gpu]",
                id="bound-of-a-container",
            ),
            pytest.param(
                pod(container(limits="cpu=3")),
                {"limit_ranges": (limit_range("lr", type="Pod", max="cpu=2"),)},
                "spec.containers",
                id="bound-of-the-pod",
            ),
            pytest.param(
                pod(container("a")),
                {"resource_quotas": (quota(hard="requests.cpu=1"),)},
                "spec.containers[0].resources",
                id="quota-wants-it-stated",
            ),
            pytest.param(
                pod(container(), priority_class_name="high"), {}, "spec.priorityClassName", id="priority-class"
            ),
            pytest.param(pod(container(), runtime_class_name="kata"), {}, "spec.runtimeClassName", id="runtime-class"),
        ],
    )
    def test_a_refusal_points_at_the_fields_in_the_manifest(self, given, policies, path):
        item = admitted(given, **policies)
        (field, *_) = item.refusal.fields
        assert field.path == f"spec.template.{path}"
        assert field.line == len(field.path)
        assert field.message

    def test_a_quota_that_is_used_up_is_about_no_field(self):
        item = admitted(pod(container()), replicas=3, resource_quotas=(quota(hard="pods=2"),))
        assert (item.outcome, item.pods_admitted, item.refusal.fields) == (Outcome.PARTLY_ALLOWED, 2, ())

    def test_what_podqos_was_not_given_may_exist(self):
        item = admitted(pod(container(), priority_class_name="high"))
        assert item.refusal.hint == "if the cluster has the PriorityClass high, give it with --policies"


class TestText:
    def test_steps_that_change_nothing_share_a_line_in_their_order(self):
        lines = lines_of(admitted(pod(container("app")), limit_ranges=(TRAP,)), PLAIN)
        drift = "BestEffort → Burstable: LimitRange default-limits set default requests and limits"
        assert lines[:5] == [
            "Deployment shop/web  BestEffort → Burstable",
            "  passed                     Defaulting, NamespaceLifecycle",
            f"! LimitRanger                {drift}",
            f"{INDENT}app requests: cpu 100m, memory 128Mi (defaultRequest of LimitRange default-limits)",
            f"{INDENT}app limits: cpu 1, memory 512Mi (default of LimitRange default-limits)",
        ]
        assert lines[-2:] == ["  outcome                    allowed", ""]

    def test_a_refusal_is_the_last_step_with_its_places(self):
        given = pod(container(limits="cpu=3"))
        lines = lines_of(admitted(given, limit_ranges=(limit_range("lr", max="cpu=2"),)))
        assert lines[0] == "Deployment shop/web  Burstable → rejected"
        message = 'pods "web-xxxxxxxxxx-xxxxx" is forbidden: maximum cpu usage per Container is 2, but limit is 3'
        stored = "the Deployment itself is stored; its controller keeps trying and reports FailedCreate"
        assert lines[-4:] == [
            f"! LimitRanger (validating)   rejected, 403 Forbidden: {message}",
            f"{INDENT}web.yaml:53:1: spec.template.spec.containers[0].resources.limits.cpu",
            f"  note                       {stored}",
            "",
        ]

    def test_replicas_until_the_quota_is_used_up(self):
        lines = list(
            text(listed(admitted(pod(container()), replicas=3, resource_quotas=(quota(hard="pods=2"),))), PLAIN)
        )
        assert lines[0] == "Deployment shop/web × 3  BestEffort"
        denied = "is forbidden: exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2"
        message = f'pods "web-xxxxxxxxxx-xxxxx" {denied}'
        quota_lines = [line for line in lines if "ResourceQuota" in line]
        assert quota_lines == [f"! ResourceQuota              rejected, 403 Forbidden: {message}"]
        assert "  outcome                    2 of 3 pods allowed" in lines

    def test_a_warning_where_the_order_of_limit_ranges_decides(self):
        lines = list(
            text(listed(admitted(pod(container()), limit_ranges=(TRAP, limit_range("b", default="cpu=2")))), PLAIN)
        )
        assert any(line.startswith("! warning") and "cpu limit (default-limits 1 and b 2)" in line for line in lines)

    def test_a_terminal_gets_colours_and_its_width(self):
        lines = lines_of(admitted(pod(container()), limit_ranges=(TRAP,)), Style(colour=True, width=80))
        assert any(own("\x1b[1;31m! ") in line for line in lines)


def test_the_table_has_a_line_per_workload():
    good = admitted(pod(container()), limit_ranges=(TRAP,))
    bad = admitted(pod(container(), priority_class_name="high"))
    header, first, second, _ = table(listed(good, bad), PLAIN)
    assert header.split("  ")[0] == "NAMESPACE"
    assert first.split() == ["shop", "Deployment/web", "BestEffort", "Burstable", "LimitRanger", "allowed"]
    assert second.split()[:5] == ["shop", "Deployment/web", "BestEffort", "–", "–"]
    assert second.endswith(
        'rejected by Priority, 403 Forbidden: pods "web-xxxxxxxxxx-" is forbidden: no PriorityClass with name high was '
        "found"
    )


def test_a_csv_row_has_a_value_for_every_column():
    item = admitted(pod(container()), replicas=3, resource_quotas=(quota(hard="pods=2"),))
    headings, (values,) = csv_rows(listed(item))
    row = dict(zip(headings, values, strict=True))
    assert (row["pods"], row["pods_admitted"], row["outcome"], row["code"]) == (3, 2, "partly allowed", 403)
