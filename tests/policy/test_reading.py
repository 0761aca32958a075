"""What is wrong with a policy is told at its place; nothing that can be written breaks the reading."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.objects.objects import Objects
from podqos.policy.judge import judge
from podqos.policy.model import Policy
from podqos.policy.reading import read_policy
from policy.demanding import one, policy, subject_of, template_of

ROOT = Path(__file__).resolve().parents[2]
RULE = """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata:
  name: shop
spec:
  rules:
  - name: web
    require: {minClass: Guaranteed}
    action: Deny
"""

WRONG = {
    "another version": (
        RULE.replace("v1alpha1", "v2"),
        '1:1: error: apiVersion: no kind "Policy" in version "podqos.dev/v2" (use podqos.dev/v1alpha1)',
    ),
    "no name": (
        RULE.replace("metadata:\n  name: shop\n", "metadata: {}\n"),
        '3:1: error: metadata: object missing required field "name"',
    ),
    "a bad name": (
        RULE.replace("name: shop", "name: My Shop"),
        "4:3: error: metadata.name: a lowercase RFC 1123 subdomain",
    ),
    "no spec": (
        "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\n",
        '1:1: error: object missing required field "spec"',
    ),
    "an empty spec": (
        "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec: {}\n",
        "4:1: error: spec: has no requirements (add rules or budgets)",
    ),
    "an unknown field": (
        RULE.replace("minClass", "minclass"),
        '8:15: error: spec.rules[0].require.minclass: unknown field "minclass" (did you mean "minClass"?)',
    ),
    "an unknown class": (
        RULE.replace("Guaranteed", "guaranteed"),
        "8:15: error: spec.rules[0].require.minClass: must be one of Guaranteed, Burstable, BestEffort, not",
    ),
    "no action": (
        RULE.replace("    action: Deny\n", ""),
        '7:5: error: spec.rules[0]: object missing required field "action" (add it)',
    ),
    "an unknown action": (
        RULE.replace("Deny", "deny"),
        '9:5: error: spec.rules[0].action: must be one of Deny, Warn, Audit, not "deny"',
    ),
    "a rule without a demand": (
        RULE.replace("minClass: Guaranteed", ""),
        "8:5: error: spec.rules[0].require: has no requirements",
    ),
    "every pod is": (
        RULE.replace("Guaranteed", "BestEffort"),
        "spec.rules[0].require.minClass: every pod is at least BestEffort",
    ),
    "no pod is more": (
        RULE.replace("minClass", "maxClass"),
        "8:15: error: spec.rules[0].require.maxClass: no pod is above Guaranteed",
    ),
    "no class is both": (
        RULE.replace("minClass: Guaranteed", "minClass: Guaranteed, maxClass: Burstable"),
        "require.maxClass: is below minClass Guaranteed: no pod can satisfy both",
    ),
    "two rules of a name": (
        RULE + "  - name: web\n    require: {limits: [cpu]}\n    action: Warn\n",
        '10:5: error: spec.rules[1].name: Duplicate value: "web"',
    ),
    "no resource": (
        RULE.replace("minClass: Guaranteed", "limits: [cpu, mem]"),
        '8:29: error: spec.rules[0].require.limits[1]: unknown resource "mem"',
    ),
    "a resource twice": (
        RULE.replace("minClass: Guaranteed", "limits: [cpu, cpu]"),
        'require.limits[1]: Duplicate value: "cpu"',
    ),
    "a ratio below one": (
        RULE.replace("minClass: Guaranteed", "maxLimitRequestRatio: {cpu: 0.5}"),
        "8:38: error: spec.rules[0].require.maxLimitRequestRatio.cpu: expected a number >= 1, not 0.5",
    ),
    "no ratio": (
        RULE.replace("minClass: Guaranteed", "maxLimitRequestRatio: {cpu: twice}"),
        'maxLimitRequestRatio.cpu: must be a number, not "twice"',
    ),
    "an endless ratio": (
        RULE.replace("minClass: Guaranteed", "maxLimitRequestRatio: {cpu: .inf}"),
        "8:43: error: .inf is not a number that JSON can carry",
    ),
    "a ratio too large": (
        RULE.replace("minClass: Guaranteed", f"maxLimitRequestRatio: {{cpu: 1{'0' * 400}}}"),
        "maxLimitRequestRatio.cpu: ",
    ),
    "no priority is both": (
        RULE.replace("minClass: Guaranteed", "priority: {min: 2, max: 1}"),
        "8:26: error: spec.rules[0].require.priority.min: is above max 1",
    ),
    "a priority without a demand": (
        RULE.replace("minClass: Guaranteed", "priority: {}"),
        "8:15: error: spec.rules[0].require.priority: has no requirements",
    ),
    "no label": (
        RULE.replace("minClass: Guaranteed", "classLabel: a/b/c"),
        "8:15: error: spec.rules[0].require.classLabel: Invalid value",
    ),
    "a selector that selects nothing": (
        RULE
        + "    match:\n      objectSelector:\n        matchLabels: {a: b}\n"
        + "        matchExpressions: [{key: a, operator: DoesNotExist}]\n",
        "13:28: error: spec.rules[0].match.objectSelector.matchExpressions[0]: contradicts matchLabels",
    ),
    "an operator without values": (
        RULE + "    match:\n      namespaceSelector:\n        matchExpressions: [{key: a, operator: In}]\n",
        "12:28: error: spec.rules[0].match.namespaceSelector.matchExpressions[0].values: Required value",
    ),
    "an unknown operator": (
        RULE + "    match: {objectSelector: {matchExpressions: [{key: a, operator: in}]}}\n",
        "operator: must be one of In, NotIn, Exists, DoesNotExist",
    ),
    "a label that cannot be": (
        RULE + "    match: {objectSelector: {matchLabels: {a: 'b c'}}}\n",
        '10:30: error: spec.rules[0].match.objectSelector.matchLabels: Invalid value: "b c"',
    ),
    "a kind in lower case": (
        RULE + "    match: {kinds: [deployment]}\n",
        '10:21: error: spec.rules[0].match.kinds[0]: unknown kind "deployment" (did you mean Deployment?)',
    ),
    "an empty pattern": (
        RULE + "    match: {names: ['']}\n",
        "spec.rules[0].match.names[0]: is empty and matches nothing",
    ),
    "an exemption of all": (
        RULE + "  exemptions:\n  - reason: why not\n",
        "11:5: error: spec.exemptions[0]: does not say what is exempt, and so would exempt everything",
    ),
    "an exemption without a reason": (
        RULE + "  exemptions:\n  - {reason: '', rules: [web]}\n",
        "11:6: error: spec.exemptions[0].reason: must not be empty",
    ),
    "an exemption from no rule": (
        RULE + "  exemptions:\n  - {reason: r, rules: [wbe]}\n",
        '11:25: error: spec.exemptions[0].rules[0]: no such rule or budget: "wbe" (did you mean "web"?)',
    ),
    "no object": (
        RULE + "  exemptions:\n  - {reason: r, objects: [web]}\n",
        'spec.exemptions[0].objects[0]: "web" is not of the form Kind/name (write */web)',
    ),
    "an object in lower case": (
        RULE + "  exemptions:\n  - {reason: r, objects: [deployment/web]}\n",
        'spec.exemptions[0].objects[0]: unknown kind "deployment" (did you mean Deployment?)',
    ),
    "no day": (
        RULE + "  exemptions:\n  - {reason: r, rules: [web], until: '2027-13-01'}\n",
        'spec.exemptions[0].until: "2027-13-01" is not a valid date (write it as "2027-01-31")',
    ),
    "a week": (
        RULE + "  exemptions:\n  - {reason: r, rules: [web], until: '2027-W01-1'}\n",
        'spec.exemptions[0].until: "2027-W01-1" is not a valid date',
    ),
    "a day that is a date": (
        RULE + "  exemptions:\n  - {reason: r, rules: [web], until: 20270131}\n",
        "spec.exemptions[0].until: must be a string, not 20270131 (put it in quotes)",
    ),
    "a budget of nothing": (
        RULE + "  budgets:\n  - {name: b, resource: cpu}\n",
        "11:5: error: spec.budgets[0]: has no requirements",
    ),
    "a budget of zero": (
        RULE + "  budgets:\n  - {name: b, resource: cpu, limits: 0}\n",
        "11:30: error: spec.budgets[0].limits: expected a number > 0, not 0",
    ),
    "a budget with the name of a rule": (
        RULE + "  budgets:\n  - {name: web, resource: cpu, limits: 1}\n",
        '11:6: error: spec.budgets[0].name: Duplicate value: "web"',
    ),
    "two policies of a name": (
        RULE + "---\n" + RULE,
        '14:3: error: metadata.name: Policy "shop" is already defined in policy.yaml (rename one)',
    ),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_with_line_and_column(text, told):
    objects = Objects().with_text("policy.yaml", text.encode())
    read = objects.own_policies
    assert any(told in str(problem) for problem in objects.problems), [*map(str, objects.problems)]
    assert len(read) == ("two" in told or "already" in told)


def test_everything_wrong_is_told_at_once():
    text = RULE.replace("Deny", "deny").replace("Guaranteed", "guaranteed").replace("name: web", "nam: web")
    objects = Objects().with_text("policy.yaml", text.encode())
    assert not objects.own_policies
    assert [problem.line for problem in objects.problems] == [7, 8, 9]


def test_a_custom_resource_of_another_group_that_is_called_policy_is_left_alone():
    objects = Objects().with_text("policy.yaml", RULE.replace("podqos.dev/v1alpha1", "kyverno.io/v1").encode())
    assert (objects.own_policies, objects.problems) == ((), [])


def test_every_field_of_the_schema_is_described_for_editors():
    schema = json.loads((ROOT / "docs/schema/policy.json").read_text())
    bare = [
        f"{name}.{field}"
        for name, each in schema["$defs"].items()
        for field, about in each.get("properties", {}).items()
        if "description" not in about and "$ref" not in about
    ]
    assert bare == []


# ---- hostile input ---------------------------------------------------------------------------------------------------

_NAMES = (  # noqa: SIM905 - easier to read
    "rules budgets exemptions name match require action minClass maxClass classLabel limits requests "
    "maxLimitRequestRatio priority min max classes namespaces objectSelector matchLabels matchExpressions key "
    "operator values reason objects containers until resource per kinds annotations memory cpu"
).split()
_TEXTS = st.sampled_from(
    ["a", "", "*", "[", "[!", "**/**", "Guaranteed", "Deny", "In", "Exists", "2027-01-01", "memory"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=5),
    max_leaves=25,
)
_RULES = st.fixed_dictionaries(
    {"name": _TEXTS, "require": st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=4), "action": _TEXTS},
    optional={"match": st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=4), "message": _TEXTS},
)
_SPECS = _VALUES | st.fixed_dictionaries(
    {"rules": st.lists(_RULES, max_size=2)},
    optional={"budgets": st.lists(_VALUES, max_size=2), "exemptions": st.lists(_VALUES, max_size=2)},
)


@given(_SPECS)
def test_whatever_a_policy_says_it_is_read_and_judges_or_is_told_what_is_wrong(spec):
    head = {"apiVersion": "podqos.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "a"}}
    reading = read_policy({**head, "spec": spec})
    assert (reading.policy is None) == bool(reading.findings)
    if reading.policy is not None:
        judge([reading.policy], subject_of(one()))
        judge([reading.policy], template_of(one()))


@pytest.mark.parametrize("glob", ["*a" * 200 + "b", "[" * 500, "?" * 500 + "*", "[a-" * 100])
def test_a_pattern_cannot_take_long(glob):
    demanded = policy(f"rules: [{{name: r, match: {{names: ['{glob}']}}, require: {{limits: [cpu]}}, action: Deny}}]")
    long = msgspec.structs.replace(one(), metadata=msgspec.structs.replace(one().metadata, name="a" * 253))
    judge([demanded], subject_of(long))


def test_a_policy_can_be_written_and_read_again():
    demanded = policy((ROOT / "scenarios/policy/policy.yaml").read_text().partition("spec:\n")[2])
    assert msgspec.json.decode(msgspec.json.encode(demanded), type=Policy) == demanded
