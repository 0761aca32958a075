"""``podqos policy test`` as a user meets it, and policies in ``podqos check``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
import yaml

from podqos.cli.main import main
from podqos.reading.shipped_scenarios import scenario_dir

EXAMPLE = scenario_dir("policy")
POLICY = """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rules:
  - name: limits
    require: {limits: [memory]}
    action: %s
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop%s}
spec:
  containers:
  - name: web
    image: web
    resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: worker}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n"


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def run(capsys, *words) -> tuple[int, str, str]:
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


def policy_test(capsys, *words) -> tuple[int, str, str]:
    return run(capsys, "policy", "test", *words)


def expecting(text: str) -> str:
    return POD % f", annotations: {{podqos.dev/expect: {text}}}"


# ---- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "fail_on", "code", "verdict"),
    [
        ("Deny", "deny", 1, "1 object: 1 would be rejected."),
        ("Warn", "deny", 0, "1 object: 1 warned about."),
        ("Warn", "warn", 1, "1 object: 1 warned about."),
        ("Audit", "warn", 0, "1 object: 1 recorded."),
        ("Audit", "audit", 1, "1 object: 1 recorded."),
        ("Deny", "never", 0, "1 object: 1 would be rejected."),
    ],
)
def test_the_verdict_comes_first_and_decides_the_exit_code(capsys, action, fail_on, code, verdict):
    write(POLICY % action, "policy.yaml")
    write(POD % "", "pods/web.yaml")
    found = policy_test(capsys, "-f", "policy.yaml", "-f", "pods", "--fail-on", fail_on)
    rule = "; rejected by shop/limits." if action == "Deny" else "."
    assert (found[0], found[1].splitlines()[0]) == (code, f"{verdict.removesuffix('.')}{rule}")
    assert "  pods/web.yaml:8:50: " in found[1]
    assert 'container "web" has memory request 1Gi and no memory limit, must limit memory' in found[1]


def test_what_violates_nothing_passes(capsys):
    write(POLICY % "Deny", "policy.yaml")
    write((POD % "").replace("limits: {cpu: 1}", "limits: {memory: 1Gi}"), "pod.yaml")
    code, out, _ = policy_test(capsys, "policy.yaml", "pod.yaml")
    assert (code, out) == (0, "1 object: no violations.\n")


def test_the_example_does_what_its_tests_expect(capsys):
    code, out, err = policy_test(capsys, "-f", str(EXAMPLE / "policy.yaml"), "-f", str(EXAMPLE / "pods"))
    assert code == 0
    assert out.startswith("all 8 expectations met; 8 objects: 4 would be rejected, 1 warned about, 2 exempt.\n")
    assert "labels of" not in err


# ---- expectations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "is_met"),
    [
        ("deny", True),
        ("deny limits", True),
        ("'deny, limits'", True),
        ("warn", False),
        ("allow", False),
        ("deny other", False),
    ],
)
def test_an_annotation_makes_an_object_a_test_of_the_policy(capsys, expected, is_met):
    write(POLICY % "Deny" + "  - {name: other, require: {limits: [cpu]}, action: Warn}\n", "policy.yaml")
    write(expecting(expected), "pod.yaml")
    code, out, _ = policy_test(capsys, "policy.yaml", "pod.yaml")
    assert code == (0 if is_met else 1)
    assert ("the 1 expectation met" if is_met else "1 of 1 expectation not met") in out
    assert ("(as expected)" in out) is is_met
    assert ("pod.yaml:1:1: Pod shop/web: expected" in out) is not is_met


def test_what_is_not_expected_still_fails(capsys):
    write(POLICY % "Deny", "policy.yaml")
    write(expecting("deny") + "---\n" + (POD % "").replace("name: web, name", "name: other, name"), "pods.yaml")
    assert policy_test(capsys, "policy.yaml", "pods.yaml")[0] == 1


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("refuse", 'must begin with one of deny, warn, audit, allow, not "refuse"'),
        ("deny limit", 'no rule "limit" (did you mean "limits"?)'),
        ("''", "must begin with one of"),
    ],
)
def test_an_expectation_that_cannot_be_is_bad_input(capsys, expected, told):
    write(POLICY % "Deny", "policy.yaml")
    write(expecting(expected), "pod.yaml")
    code, out, err = policy_test(capsys, "policy.yaml", "pod.yaml")
    assert (code, out) == (2, "")
    assert f"pod.yaml:3:54: error: metadata.annotations[podqos.dev/expect]: {told}" in err


# ---- outputs ---------------------------------------------------------------------------------------------------------


def test_json_and_yaml_have_everything(capsys):
    write(POLICY % "Deny", "policy.yaml")
    write(POD % "", "pod.yaml")
    code, out, _ = policy_test(capsys, "policy.yaml", "pod.yaml", "-o", "json")
    report = json.loads(out)
    assert (code, report["kind"], report["policies"]) == (1, "PolicyReport", ["shop"])
    (item,) = report["items"]
    (violation,) = item["violations"]
    assert (item["action"], violation["facts"]["why"], violation["container"]) == ("Deny", "NoLimit", "web")
    assert (violation["line"], violation["column"], violation["path"]) == (
        8,
        50,
        "spec.containers[0].resources.limits.memory",
    )
    assert yaml.safe_load(policy_test(capsys, "policy.yaml", "pod.yaml", "-o", "yaml")[1]) == report
    assert policy_test(capsys, "policy.yaml", "pod.yaml", "-o", "name")[1] == "pod/web\n"


def test_junit_has_a_case_for_each_object_and_budget(capsys):
    write(POLICY % "Deny" + "  budgets: [{name: b, resource: memory, requests: 0.1, action: Deny}]\n", "policy.yaml")
    write(expecting("warn") + "---\n" + NODE, "pod.yaml")
    code, out, _ = policy_test(capsys, "policy.yaml", "pod.yaml", "-o", "junit")
    suites = fromstring(out)  # noqa: S314 - our own output
    assert (code, suites.get("tests"), suites.get("failures")) == (1, "2", "2")
    assert [case.get("classname") for case in suites.iter("testcase")] == ["Pod shop/web", "Policy shop"]
    assert [case.get("name") for case in suites.iter("testcase")] == ["warn", "b requests"]
    assert 'message="expected warn, found deny"' in out


# ---- which policies, which objects -----------------------------------------------------------------------------------


def test_a_policy_found_in_a_directory_applies_there_and_below(capsys):
    write(POLICY % "Deny", "all/team/policy.yaml")
    write(POD % "", "all/team/web/pod.yaml")
    write((POD % "").replace("name: web,", "name: other,"), "all/other/pod.yaml")
    code, out, _ = policy_test(capsys, "-f", "all", "-o", "json")
    assert code == 1
    assert [item["name"] for item in json.loads(out)["items"]] == ["web"]


def test_a_directory_of_policies_alone_applies_to_all(capsys):
    write(POLICY % "Deny", "policies/policy.yaml")
    write(POD % "", "pods/pod.yaml")
    code, _, err = policy_test(capsys, "-f", "policies", "-f", "pods")
    assert code == 1
    assert "own directory" not in err


def test_check_says_which_policies_apply_to_their_own_directory_only(capsys):
    write(POLICY % "Deny", "all/team/policy.yaml")
    write(POD % "", "all/other/pod.yaml")
    _, out, err = run(capsys, "check", "all")
    assert "PQ702" not in out
    assert (
        "policies of all/team/policy.yaml: for their own directory and below (to apply them to all: -f FILE or " in err
    )


@pytest.mark.parametrize("kind", ["policy", "Polcy"])
def test_a_policy_whose_kind_is_misspelt_is_told_and_not_left_out(capsys, kind):
    write((POLICY % "Deny").replace("kind: Policy", f"kind: {kind}"), "policy.yaml")
    write(POD % "", "pod.yaml")
    for words in (("policy", "test"), ("check",)):
        code, _, err = run(capsys, *words, "policy.yaml", "pod.yaml")
        assert code == 2
        assert f'policy.yaml:2:1: error: kind: must be one of Policy, not "{kind}"' in err


def test_policies_of_the_cluster_and_its_namespaces_can_be_given_besides(capsys):
    write(POLICY % "Deny" + "    match: {namespaceSelector: {matchLabels: {team: a}}}\n", "cluster/policy.yaml")
    write(POD % "", "pod.yaml")
    code, _, err = policy_test(capsys, "pod.yaml", "--policies", "cluster")
    assert code == 0
    assert "labels of namespace shop: none (-f NAMESPACES)" in err
    write("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: a}}\n", "cluster/namespace.yaml")
    code, _, err = policy_test(capsys, "pod.yaml", "--policies", "cluster")
    assert code == 1
    assert "labels of" not in err


def test_what_a_limit_range_gives_a_pod_counts(capsys):
    write(POLICY % "Deny", "policy.yaml")
    limit_range = (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: defaults, namespace: shop}\n"
        "spec: {limits: [{type: Container, default: {memory: 2Gi}}]}\n"
    )
    write((POD % "") + "---\n" + limit_range, "pod.yaml")
    assert policy_test(capsys, "policy.yaml", "pod.yaml")[0] == 0


def test_an_annotation_for_the_linter_keeps_nothing_from_being_refused(capsys):
    write(POLICY % "Deny", "policy.yaml")
    write(POD % ", annotations: {podqos.dev/ignore: PQ702}", "pod.yaml")
    assert policy_test(capsys, "policy.yaml", "pod.yaml")[0] == 1
    assert "PQ702" not in run(capsys, "check", "policy.yaml", "pod.yaml")[1]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"pod.yaml": POD % ""}, "no policy"),
        ({"policy.yaml": POLICY % "Deny"}, "no workloads to test"),
        ({"policy.yaml": POLICY % "deny", "pod.yaml": POD % ""}, "policy.yaml:8:5: error: spec.rules[0].action: must"),
        (
            {"policy.yaml": POLICY % "Deny", "pod.yaml": (POD % "").replace("containers:", "container:")},
            "pod.yaml:5:3: error",
        ),
    ],
    ids=["no-policy", "no-pods", "a-wrong-policy", "a-wrong-pod"],
)
def test_bad_input_is_told_and_nothing_is_judged(capsys, files, told):
    for name, text in files.items():
        write(text, name)
    code, out, err = policy_test(capsys, *files)
    assert (code, out) == (2, "")
    assert told in err


# ---- check: the same language ----------------------------------------------------------------------------------------


def test_check_finds_what_the_policy_test_does_with_the_severity_of_the_action(capsys):
    severities = []
    for action in ("Deny", "Warn", "Audit"):
        write(POLICY % action, "policy.yaml")
        write(POD % "", "pod.yaml")
        report = json.loads(run(capsys, "check", "policy.yaml", "pod.yaml", "-o", "json")[1])
        (item,) = (item for item in report["items"] if item["check"] == "PQ702")
        severities.append(item["severity"])
        assert (item["line"], item["column"]) == (8, 50)
    assert severities == ["error", "warning", "info"]


def test_the_configuration_holds_a_policy_in_the_same_words(capsys):
    write(POD % "", "pod.yaml")
    rules = yaml.safe_load(POLICY % "Deny")["spec"]
    write(yaml.safe_dump({"policy": rules}), ".podqos.yaml")
    assert 'policy ".podqos.yaml", rule "limits"' in run(capsys, "check", "pod.yaml")[1]
    code, out, _ = policy_test(capsys, "pod.yaml")
    assert code == 1
    assert 'policy ".podqos.yaml", rule "limits"' in out


def test_what_is_wrong_with_the_policy_of_the_configuration_is_told_at_its_place(capsys):
    write(POD % "", "pod.yaml")
    write("policy:\n  rules:\n  - name: a\n    require: {limits: [disk]}\n    action: Deny\n", ".podqos.yaml")
    for words in (("check", "pod.yaml"), ("policy", "test", "pod.yaml")):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert '.podqos.yaml:4:24: error: policy.rules[0].require.limits[0]: unknown resource "disk"' in err


def test_an_exempt_violation_is_a_suppressed_finding(capsys):
    write(POLICY % "Deny" + "  exemptions: [{reason: on its way, containers: [web]}]\n", "policy.yaml")
    write(POD % "", "pod.yaml")
    report = json.loads(run(capsys, "check", "policy.yaml", "pod.yaml", "-v", "-o", "json")[1])
    (item,) = (item for item in report["items"] if item["check"] == "PQ702")
    assert item["suppression"] == {"by": "policy", "reason": "on its way"}
    assert "PQ702" not in run(capsys, "check", "policy.yaml", "pod.yaml")[1]


def test_an_exemption_counts_until_its_day_is_over(capsys):
    write(POD % "", "pod.yaml")
    for until, code in (("2000-01-01", 1), ("2999-12-31", 0)):
        exemption = f"  exemptions: [{{reason: r, rules: [limits], until: '{until}'}}]\n"
        write(POLICY % "Deny" + exemption, "policy.yaml")
        assert policy_test(capsys, "policy.yaml", "pod.yaml")[0] == code


def test_a_budget_of_a_policy_takes_the_place_of_the_usual_one(capsys):
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 5\n  template:\n    spec:\n"
        "      containers:\n"
        "      - {name: web, image: web, resources: {requests: {memory: 1Gi}, limits: {memory: 3Gi}}}\n"
    )
    write(deployment + "---\n" + NODE, "web.yaml")
    assert "PQ502" in run(capsys, "check", "web.yaml")[1]
    for budget, found in (("limits: 2", False), ("limits: 1.5", True)):
        write(f"policy: {{budgets: [{{name: memory, resource: memory, {budget}}}]}}\n", ".podqos.yaml")
        out = run(capsys, "check", "web.yaml")[1]
        assert "PQ502" not in out
        assert ("PQ705" in out) is found


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (["policy.yaml"], "policy.yaml:5:"),
        (["--policies", "policy.yaml"], "web.yaml:8:"),
        ([], "web.yaml:8:"),
    ],
)
def test_an_exceeded_budget_is_told_wherever_its_policy_is_from(capsys, given, place):
    budget = "budgets: [{name: m, resource: memory, requests: 0.1}]"
    write(f"apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {{name: a}}\nspec:\n  {budget}\n", "policy.yaml")
    write((POD % "") + "---\n" + NODE, "web.yaml")
    if not given:
        write(f"policy: {{{budget}}}\n", ".podqos.yaml")
    _, out, _ = run(capsys, "check", "web.yaml", *given)
    assert f"  {place}" in out
    assert "warning PQ705 policy-budget" in out


def test_a_budget_among_the_options_is_refused_with_where_it_belongs(capsys):
    write(POD % "", "pod.yaml")
    write("options: {memoryBudget: 3}\n", ".podqos.yaml")
    code, _, err = run(capsys, "check", "pod.yaml")
    assert code == 2
    assert (
        ".podqos.yaml:1:11: error: options.memoryBudget: is a budget of a policy "
        "(policy: {budgets: [{name: memory, resource: memory, limits: RATIO}]})"
    ) in err


def test_an_injected_sidecar_is_judged_with_the_pod_and_shown_at_it(capsys):
    write((POLICY % "Deny").replace("limits: [memory]", "minClass: Guaranteed"), "policy.yaml")
    write((POD % "").replace("limits: {cpu: 1}", "limits: {cpu: 1, memory: 1Gi}"), "pod.yaml")
    assert policy_test(capsys, "policy.yaml", "pod.yaml")[0] == 0
    write("inject: [istio]\n", ".podqos.yaml")
    found = run(capsys, "check", "policy.yaml", "pod.yaml", "--only", "PQ701")[1]
    assert 'container "istio-proxy" has cpu request 100m and cpu limit 2' in found
    assert "fix  set requests and limits for the injected containers" in found


def test_a_ratio_of_a_policy_takes_the_place_of_the_usual_one(capsys):
    write((POD % "").replace("limits: {cpu: 1}", "limits: {memory: 5Gi}"), "pod.yaml")
    assert "PQ105" in run(capsys, "check", "pod.yaml")[1]
    for ratio, found in ((6, False), (4.5, True)):
        write(
            (POLICY % "Deny").replace("limits: [memory]", f"maxLimitRequestRatio: {{memory: {ratio}}}"), "policy.yaml"
        )
        out = run(capsys, "check", "policy.yaml", "pod.yaml")[1]
        assert "PQ105" not in out
        assert ("PQ703" in out) is found


@pytest.mark.parametrize("how", ["option", "configuration", "among the files"])
def test_check_reads_a_policy_however_it_is_given(capsys, how):
    write(POLICY % "Deny", "platform/policy.yaml")
    write(POD % "", "apps/pod.yaml")
    words = {"option": ["apps", "--policies", "platform"], "configuration": ["apps"], "among the files": ["."]}[how]
    if how == "configuration":
        write("policies: [platform]\n", ".podqos.yaml")
    if how == "among the files":
        write("policies: [platform/policy.yaml]\n", ".podqos.yaml")
    code, out, _ = run(capsys, "check", *words)
    assert code == 1
    assert out.count("PQ702 policy-resources") == 1


def test_a_wrong_policy_of_the_cluster_stops_check(capsys):
    write(POLICY % "Refuse", "platform/policy.yaml")
    write(POD % "", "pod.yaml")
    code, _, err = run(capsys, "check", "pod.yaml", "--policies", "platform")
    assert code == 2
    assert (
        'platform/policy.yaml:8:5: error: spec.rules[0].action: must be one of Deny, Warn, Audit, not "Refuse"' in err
    )
