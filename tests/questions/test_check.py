"""``podqos check``: what is found and where, the gate, suppression, baselines, fixes; as a command and as values."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

import podqos
from podqos import Gate, Ignore
from podqos.advice.checks import examples
from podqos.advice.checks.baseline import baseline_of
from podqos.advice.checks.catalogue import CHECKS
from podqos.cli.main import main
from podqos.objects.objects import Objects
from podqos.questions.check import Checked
from podqos.questions.findings import CheckReport
from questions.sarif_rules import problems as sarif_problems
from said import without_assumptions

# The sidecar keeps the pod from being Guaranteed: PQ101, a warning with a complete patch.
BURSTABLE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: article-service
  namespace: production
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - name: app
          image: app
          resources:
            requests: {cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi}
            limits: {cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi}
        - name: envoy  # added by hand
          image: envoy
          resources:
            requests: {cpu: 100m, memory: 128Mi, ephemeral-storage: 1Gi}
            limits: {ephemeral-storage: 1Gi}
"""
GUARANTEED = BURSTABLE.replace(
    "            limits: {ephemeral-storage: 1Gi}\n",
    "            limits: {cpu: 100m, memory: 128Mi, ephemeral-storage: 1Gi}\n",
)
# A limit without a request: PQ106, for information. The pod is Guaranteed.
NO_REQUEST = GUARANTEED.replace("            requests: {cpu: 100m, memory: 128Mi, ephemeral-storage: 1Gi}\n", "")
# More requested than allowed: PQ111, an error.
IMPOSSIBLE = GUARANTEED.replace('limits: {cpu: "2", memory: 4Gi', 'limits: {cpu: "2", memory: 1Gi')


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a repository of its own, so that no configuration above it is found."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "web.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def check(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["check", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, without_assumptions(captured.err)


def found(capsys, *arguments: object) -> list[str]:
    """Run the command and return the checks that found something."""
    _, out, _ = check(capsys, *arguments, "-o", "json")
    return [item["check"] for item in json.loads(out)["items"]]


# ---- what is found -----------------------------------------------------------------------------------------------


def test_a_finding_is_told_with_place_reason_consequence_and_patch(capsys):
    write(BURSTABLE)
    code, out, err = check(capsys, "web.yaml")
    assert (code, err) == (1, "")
    assert "\nDeployment production/article-service\n  web.yaml:20:11: warning PQ101 accidental-burstable, " in out
    assert "container envoy" in out
    assert "spec.template.spec.containers[1].resources.limits.cpu: 100m" in out
    assert "\n1 warning; 1 object in 1 file checked" in out


def test_what_nobody_stated_is_said_once_and_is_part_of_the_json(capsys):
    write(BURSTABLE.replace("      containers:\n", "      priorityClassName: gold\n      containers:\n", 1))
    assumed = [
        ("node memory", "64Gi", "--node-memory"),
        ("cluster policies", "none", "-f POLICIES"),
        ("priority of class gold", "0", "--priority gold=VALUE"),
    ]
    line = "; ".join(f"{what}: {value} ({state_with})" for what, value, state_with in assumed)

    for options in ([], ["--diff"], ["--patch", "kubectl"]):
        main(["check", "web.yaml", *options])
        assert f"assumed: {line}\n" in capsys.readouterr().err
    main(["check", "web.yaml", "-o", "json"])
    out, err = capsys.readouterr()
    assert [tuple(each.values()) for each in json.loads(out)["assumptions"]] == assumed
    assert err == ""


def test_stated_memory_counts_before_a_node_and_both_leave_nothing_assumed(capsys):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: worker}\nstatus: {capacity: {memory: 8Gi}}\n"
    write(f"{BURSTABLE}---\n{node}")

    def scores(*options):
        main(["check", "web.yaml", "-o", "json", *options])
        report = json.loads(capsys.readouterr().out)
        assert not any(each["what"] == "node memory" for each in report["assumptions"])
        return {item["effects"]["now"]["oomScoreAdj"] for item in report["items"] if item["check"] == "PQ101"}

    # 1000 − 1000 × 128Mi / the node's memory
    assert scores() == {985}
    assert scores("--node-memory", "4Gi") == {969}


def test_services_and_budgets_without_a_namespace_are_in_that_of_the_option(capsys):
    budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
    budget += "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
    write(f"{CHECKS['PQ104'].example.text}---\n{budget}")

    for namespace in ("default", "shop"):
        _, out, _ = check(capsys, "web.yaml", "-n", namespace, "-o", "json")
        assert [item["check"] for item in json.loads(out)["items"]] == ["PQ104", "PQ306"]


@pytest.mark.parametrize(
    "command", [["check"], ["place", "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi,pods=9"]]
)
def test_a_budget_with_a_nonsense_amount_is_reported_with_its_place(capsys, command):
    budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
    budget += "spec: {minAvailable: many, selector: {matchLabels: {app: web}}}\n"
    write(f"{budget}---\n{GUARANTEED}")
    code = main([*command, "web.yaml"])
    what = "error: spec.minAvailable: 'many' is neither a number nor a percentage (write 1 or 50%)"
    assert f"web.yaml:4:8: {what}" in capsys.readouterr().err
    assert code == 2


def test_the_verdict_is_data_of_the_report_as_well(capsys):
    write(BURSTABLE)
    _, text, _ = check(capsys, "web.yaml")
    for reader, output in ((json.loads, "json"), (msgspec.yaml.decode, "yaml")):
        _, out, _ = check(capsys, "web.yaml", "-o", output)
        report = reader(out)
        found = report["verdict"]
        assert found["text"] == text.splitlines()[0]
        (item,) = (each for each in report["items"] if each["fingerprint"] == found["fingerprint"])
        assert (found["check"], found["reason"], found["fate"]) == ("PQ101", item["reason"], "by-class")
    write(GUARANTEED)
    assert json.loads(check(capsys, "web.yaml", "-o", "json")[1])["verdict"] is None


@pytest.mark.parametrize("given", ["missing.yaml", "empty.yaml"])
def test_what_cannot_be_checked_is_not_said_to_be_free_of_findings(capsys, given):
    write("# nothing\n", "empty.yaml")
    code, out, err = check(capsys, given)
    assert (code, out) == (2, "")
    assert given in err


def test_policies_in_the_same_files_count(capsys):
    limit_range = """\
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: production}
spec: {limits: [{type: Container, default: {memory: 64Mi}}]}
"""
    write(BURSTABLE + "---\n" + limit_range)
    assert "PQ203" in found(capsys, "web.yaml")


def test_a_resize_that_changes_the_class_is_found(capsys):
    write(GUARANTEED)
    write(BURSTABLE, "resized.yaml")
    code, out, _ = check(capsys, "web.yaml", "--resize", "resized.yaml", "-o", "json")
    items = json.loads(out)["items"]
    assert code == 1
    assert [(item["check"], item["source"]) for item in items] == [("PQ113", "resized.yaml")]


def test_a_misspelt_kind_is_not_skipped_without_a_word(capsys):
    write(BURSTABLE.replace("kind: Deployment", "kind: Deploymnt"))
    code, _, err = check(capsys, "web.yaml")
    assert code == 2
    assert err.startswith(
        'web.yaml:2:1: warning: kind: unknown kind "Deploymnt", so it is not checked (did you mean Deployment?)\n'
    )
    assert "nothing to check" in err


def test_many_files_on_all_cores_give_what_each_gives_alone(capsys):
    for number in range(700):
        write(BURSTABLE.replace("article-service", f"service-{number}") + "#" * 1000, f"many/{number:03}.yaml")
    write(IMPOSSIBLE, "many/last.yaml")
    checks = found(capsys, "many")
    assert checks == ["PQ101"] * 700 + ["PQ111"]


# ---- severities and the exit code --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fail_on", "code"),
    [
        (IMPOSSIBLE, "error", 1),
        (BURSTABLE, "error", 0),
        (BURSTABLE, "warning", 1),
        (NO_REQUEST, "warning", 0),
        (NO_REQUEST, "info", 1),
        (IMPOSSIBLE, "never", 0),
        (GUARANTEED, "info", 0),
    ],
)
def test_the_exit_code_follows_the_severity(capsys, text, fail_on, code):
    write(text)
    assert check(capsys, "web.yaml", "--fail-on", fail_on)[0] == code


def test_infos_are_left_out_for_people_and_pull_requests_unless_asked_for_and_stay_in_every_other_output(capsys):
    write(NO_REQUEST)
    code, out, _ = check(capsys, "web.yaml")
    assert (code, out.splitlines()[0]) == (0, "no findings above info; 1 object in 1 file checked")
    assert check(capsys, "web.yaml", "-o", "github")[1] == ""
    for asked in (["-v"], ["--min-severity", "info"], ["--fail-on", "info"]):
        assert ": info PQ106 " in check(capsys, "web.yaml", *asked)[1]
        assert "::notice " in check(capsys, "web.yaml", *asked, "-o", "github")[1]
    for output in ("json", "yaml", "sarif", "junit"):
        assert "PQ106" in check(capsys, "web.yaml", "-o", output)[1]


def test_no_sentence_is_said_three_times(capsys):
    for check_id, each in CHECKS.items():
        for copy in ("one", "two", "three"):
            write(each.example.text, f"all/{check_id}-{copy}.yaml")
    _, out, _ = check(capsys, "all", "-v")
    texts = Counter(line.strip() for line in out.splitlines() if line.strip() and line.strip()[:4] in {"why ", "so  "})
    assert len(texts) > len(CHECKS)
    assert [text for text, times in texts.items() if times > 2 and "same as for" not in text] == []


def test_no_pod_is_said_to_be_first_because_it_is_not_known_what_pods_use(capsys):
    """``rank`` names who is first, by what pods use; at their limits it may be another."""
    other = CHECKS["PQ102"].example.text
    write(f"{BURSTABLE}---\n{other}")
    _, out, _ = check(capsys, "web.yaml")
    assert "when every pod is at its memory limit" in out
    assert not re.search(r"(evicted|killed|pick \S+|kills \S+) first", out)


def test_what_is_below_the_least_severity_is_counted_and_does_not_fail(capsys):
    write(BURSTABLE)
    code, out, _ = check(capsys, "web.yaml", "--min-severity", "error", "--fail-on", "info")
    assert code == 0
    assert out == "no findings; 1 object in 1 file checked\n  1 hidden by --min-severity\n"


def test_bad_input_is_2_and_the_rest_is_checked(capsys):
    write(BURSTABLE + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {container: []}\n")
    code, out, err = check(capsys, "web.yaml")
    assert code == 2
    assert "PQ101" in out
    assert 'web.yaml:27:8: error: spec.container: unknown field "container" (did you mean "containers"?)' in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: error: No such file or directory (check the path)"),
        (["web.yaml", "--config-file", "no.yaml"], "--config-file no.yaml: no such file (check the path)"),
        (["web.yaml", "--baseline", "no.json"], "no.json: No such file or directory (check the path)"),
        (["web.yaml", "--write-baseline"], "no file to write the baseline to (give it with --baseline FILE)"),
        (["-", "-f", "-"], "standard input can be read only once"),
        (["web.yaml", "--node-memory", "0"], "--node-memory: must be above zero, not 0"),
        (["web.yaml", "--kubernetes-version", "9.9"], "unknown Kubernetes version '9.9'"),
        (["--explain", "accidental-burstabel"], 'did you mean "accidental-burstable"?'),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(capsys, arguments, message):
    write(BURSTABLE)
    code, _, err = check(capsys, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


# ---- suppression -------------------------------------------------------------------------------------------------

IGNORED = BURSTABLE.replace(
    "  namespace: production\n",
    "  namespace: production\n  annotations: {podqos.dev/ignore: PQ101, podqos.dev/ignore-reason: a canary}\n",
)


def test_an_annotation_suppresses_and_is_counted(capsys):
    write(IGNORED)
    code, out, _ = check(capsys, "web.yaml")
    assert code == 0
    assert out.splitlines() == [
        "no findings; 1 object in 1 file checked",
        "  1 suppressed by annotation or configuration (-v shows them)",
    ]


def test_what_is_suppressed_can_be_shown_with_its_reason(capsys):
    write(IGNORED)
    code, out, _ = check(capsys, "web.yaml", "-v")
    assert code == 0
    assert "PQ101" in out
    assert "suppressed by annotation: a canary" in out


def test_an_annotation_that_names_no_check_is_told(capsys):
    write(IGNORED.replace("ignore: PQ101", "ignore: 'PQ101, accidental-burstabel'"))
    code, _, err = check(capsys, "web.yaml")
    assert code == 0
    assert err == (
        "web.yaml:6:17: warning: metadata.annotations[podqos.dev/ignore]: "
        'no check "accidental-burstabel" (did you mean "accidental-burstable"?)\n'
    )


def test_the_configuration_is_found_above_what_is_checked(capsys):
    write(BURSTABLE, "apps/team/web.yaml")
    write("ignore: [{checks: [PQ101], paths: [apps/*], reason: next quarter}]\n", ".podqos.yaml")
    _, out, _ = check(capsys, "apps", "-v", "-o", "json")
    assert json.loads(out)["items"][0]["suppression"] == {"by": "configuration", "reason": "next quarter"}
    assert check(capsys, "apps/team/web.yaml")[0] == 0
    assert check(capsys, "apps", "--config-file", "none")[0] == 1


def test_options_come_before_the_configuration(capsys):
    write(BURSTABLE)
    write("minSeverity: error\nfailOn: error\n", ".podqos.yaml")
    assert check(capsys, "web.yaml")[0] == 0
    assert check(capsys, "web.yaml", "--min-severity", "info", "--fail-on", "warning")[0] == 1


def test_the_configuration_sets_options_injectors_policies_and_switches_checks_off(capsys):
    write(GUARANTEED, "apps/web.yaml")
    write("inject: [istio]\n", ".podqos.yaml")
    assert "PQ205" in found(capsys, "apps")
    write("inject: [istio]\ndisable: [injector-downgrade, PQ101]\n", ".podqos.yaml")
    assert "PQ205" not in found(capsys, "apps")
    wide = GUARANTEED.replace("limits: {cpu: 100m, memory: 128Mi", "limits: {cpu: 200m, memory: 300Mi")
    write(wide, "apps/web.yaml")
    write("{}\n", ".podqos.yaml")
    assert "PQ105" not in found(capsys, "apps")
    write("options: {memoryRatio: 1.5}\n", ".podqos.yaml")
    assert "PQ105" in found(capsys, "apps")


def test_policies_of_the_configuration_count_from_its_directory(capsys, monkeypatch):
    write(
        GUARANTEED.replace("spec:\n      containers", "spec:\n      priorityClassName: gone\n      containers"),
        "apps/web.yaml",
    )
    write(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: other}\nvalue: 5\n", "cluster/pc.yaml"
    )
    write("policies: [cluster]\n", ".podqos.yaml")
    monkeypatch.chdir("apps")
    assert "PQ305" in found(capsys, "web.yaml")


def test_files_of_podqos_itself_are_not_taken_for_manifests(capsys):
    write(BURSTABLE, "apps/web.yaml")
    write("baseline: known.json\n", "apps/.podqos.yaml")
    assert check(capsys, "apps", "--write-baseline")[0] == 0
    code, out, err = check(capsys, "apps")
    assert (code, err) == (0, "")
    assert "1 known from the baseline" in out


WRONG_CONFIGURATIONS = {
    "misspelt key": ("minSeverty: error\n", '1:1: error: minSeverty: unknown field "minSeverty" (did you mean "minSev'),
    "no such severity": ("failOn: fatal\n", "1:1: error: failOn: must be one of error, warning, info, never, not "),
    "no reason": ("ignore:\n- checks: [PQ101]\n", '2:3: error: ignore[0]: object missing required field "reason"'),
    "empty reason": ("ignore:\n- checks: [PQ101]\n  reason: ''\n", "3:3: error: ignore[0].reason: "),
    "ignores nothing": ("ignore:\n- reason: why not\n", "2:3: error: ignore[0]: does not say what to ignore"),
    "no such check": ("ignore: [{checks: [PQ10l], reason: r}]\n", 'ignore[0].checks[0]: unknown check "PQ10l"'),
    "no such check to disable": ("disable: [accidental-burstabel]\n", '(did you mean "accidental-burstable"?)'),
    "no such injector": ("inject: [istoi]\n", 'inject[0]: unknown injector "istoi" (did you mean "istio"?)'),
    "wrong type": ("options: {memoryRatio: high}\n", '1:11: error: options.memoryRatio: must be a number, not "high"'),
    "out of range": ("options: {memoryRatio: 0.5}\n", "1:11: error: options.memoryRatio: expected"),
    "no amount": ("options: {growthPerSecond: fast}\n", 'options.growthPerSecond: "fast" is not a valid quantity'),
    "not above zero": ("options: {nodeMemory: '0'}\n", 'options.nodeMemory: "0" is not above zero'),
    "version as a number": ("kubernetesVersion: 1.30\n", "kubernetesVersion: must be a string, not 1.3"),
    "no such version": ("kubernetesVersion: '2.0'\n", "kubernetesVersion: unknown Kubernetes version '2.0'"),
    "set twice": ("failOn: info\nfailOn: error\n", '2:1: key "failOn" is set twice'),
    "a list": ("- a\n", "1:1: error: must be a mapping, not a list"),
    "broken": ("a: [\n", "broken YAML"),
    "two documents": ("a: 1\n---\nb: 1\n", "2 documents (it must be one)"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS.keys())
def test_a_wrong_configuration_is_told_with_its_place(capsys, text, message):
    write(BURSTABLE)
    write(text, ".podqos.yaml")
    code, out, err = check(capsys, "web.yaml")
    assert (code, out) == (2, "")
    assert ".podqos.yaml" in err
    assert message in err


# ---- baseline ----------------------------------------------------------------------------------------------------


def test_a_baseline_hides_what_is_known_until_something_new_comes(capsys):
    write(BURSTABLE)
    code, out, err = check(capsys, "web.yaml", "--baseline", "known.json", "--write-baseline")
    assert (code, out, err) == (0, "", "known.json: 1 known finding\n")
    code, out, _ = check(capsys, "web.yaml", "--baseline", "known.json")
    assert code == 0
    assert "1 known from the baseline" in out
    write("# moved down\n\n" + BURSTABLE + "---\n" + BURSTABLE.replace("article-service", "new"))
    code, out, _ = check(capsys, "web.yaml", "--baseline", "known.json")
    assert code == 1
    assert "Deployment production/new" in out
    assert "article-service" not in out


def test_a_stale_entry_is_told_and_removed(capsys):
    write(BURSTABLE)
    write(BURSTABLE.replace("article-service", "other"), "other.yaml")
    check(capsys, "web.yaml", "other.yaml", "--baseline", "known.json", "--write-baseline")
    write(GUARANTEED)
    code, _, err = check(capsys, "web.yaml", "--baseline", "known.json")
    assert code == 0
    assert err.splitlines() == [
        "known.json: PQ101 of Deployment production/article-service, container envoy is no longer found",
        "known.json: --write-baseline removes these entries",
    ]
    check(capsys, "web.yaml", "--baseline", "known.json", "--write-baseline")
    left = json.loads(Path("known.json").read_text())["findings"]
    assert [entry["name"] for entry in left] == ["other"]


def test_a_baseline_has_one_entry_a_line(capsys):
    write(BURSTABLE + "---\n" + BURSTABLE.replace("article-service", "other"))
    check(capsys, "web.yaml", "--baseline", "known.json", "--write-baseline")
    lines = Path("known.json").read_text().splitlines()
    assert [json.loads(line.strip(" ,"))["name"] for line in lines if "fingerprint" in line] == [
        "article-service",
        "other",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"finding": []}', 'known.json:1:2: finding: unknown field "finding" (did you mean "findings"?)'),
        ("{", "known.json"),
        ('{"findings": [{"check": 1}]}', "known.json:1:16: findings[0].check: must be a string"),
    ],
)
def test_a_broken_baseline_is_told_with_its_place(capsys, text, message):
    write(BURSTABLE)
    write(text, "known.json")
    code, _, err = check(capsys, "web.yaml", "--baseline", "known.json")
    assert code == 2
    assert message in err


# ---- mending -----------------------------------------------------------------------------------------------------


def test_fix_writes_the_patch_and_nothing_else(capsys):
    path = write(BURSTABLE)
    code, out, err = check(capsys, path, "--fix", "--only", "PQ101")
    assert code == 0
    assert out == "no findings; 1 object in 1 file checked\n"
    assert "web.yaml: fixed 1 finding" in err
    before, after = BURSTABLE.splitlines(), path.read_text().splitlines()
    assert [line for line in after if line not in before] == [
        "            limits: {ephemeral-storage: 1Gi, cpu: 100m, memory: 128Mi}"
    ]
    assert len(after) == len(before)
    text = path.read_bytes()
    check(capsys, path, "--fix", "--only", "PQ101")
    assert path.read_bytes() == text


@pytest.mark.parametrize("options", [["--fix"], ["--diff"], ["--patch", "json"]], ids=" ".join)
def test_no_limit_is_added_unasked(capsys, options):
    path = write(BURSTABLE)
    code, out, err = check(capsys, path, *options)
    assert code == 1
    assert path.read_text() == BURSTABLE
    assert not any(line.startswith("+") for line in out.splitlines())
    if options[0] == "--patch":
        assert out == "[]\n"
    else:
        assert "1 fix needs your decision (--fix --only PQ101 applies it)" in err


def test_a_fix_with_a_cost_is_shown_and_says_how_it_is_applied(capsys):
    _, out, _ = check(capsys, write(BURSTABLE))
    assert "fix  spec.template.spec.containers[1].resources.limits.cpu: 100m" in out
    assert "cost envoy is throttled at its cpu limit of 100m, even on an idle node" in out
    assert "1 fix needs your decision (--fix --only PQ101 applies it)" in out


@pytest.mark.parametrize("options", [["--diff"], ["--fix", "--diff"], ["--diff", "--fix"]], ids=" ".join)
def test_diff_shows_and_writes_nothing(capsys, options):
    path = write(BURSTABLE)
    code, out, err = check(capsys, path, "--only", "PQ101", *options)
    assert code == 1
    assert "\n+            limits: {ephemeral-storage: 1Gi, cpu: 100m, memory: 128Mi}\n" in out
    assert "would fix 1 finding" in err
    assert path.read_text() == BURSTABLE


def test_fix_turns_standard_input_into_standard_output(capfdbinary, monkeypatch):
    path = write(BURSTABLE)
    with path.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code = main(["check", "-", "--fix", "--only", "PQ101"])
    assert code == 0
    assert yaml.safe_load(capfdbinary.readouterr().out) == yaml.safe_load(GUARANTEED)


def test_a_file_that_cannot_be_written_is_3(capsys, monkeypatch):
    path = write(BURSTABLE)
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, _, err = check(capsys, path, "--fix", "--only", "PQ101")
    assert code == 3
    assert "read-only" in err
    assert path.read_text() == BURSTABLE


@pytest.mark.parametrize("notation", ["kubectl", "kustomize", "json"])
def test_patches_are_printed_instead(capsys, notation):
    path = write(BURSTABLE)
    code, out, _ = check(capsys, path, "--only", "PQ101", "--patch", notation)
    assert code == 1
    assert "128Mi" in out
    assert "article-service" in out
    assert path.read_text() == BURSTABLE


SHARED = BURSTABLE.replace(
    "          resources:\n            requests: {cpu: 100m",
    "          resources: &small\n            requests: {cpu: 100m",
)
SHARED += "        - {name: exporter, image: exporter, resources: *small}\n"


@pytest.mark.parametrize(("notation", "start"), [("kubectl", "kubectl patch "), ("kustomize", "# "), ("json", "[")])
def test_what_cannot_be_edited_is_printed_as_a_patch(capsys, notation, start):
    path = write(SHARED)
    code, out, err = check(capsys, path, "--fix", "--only", "PQ101", "--patch", notation)
    assert code == 1
    assert out.startswith(start)
    assert "exporter" in out
    assert "the anchor &small is used in several places" in err
    assert "kubectl" not in err
    assert path.read_text() == SHARED


# ---- about the checks --------------------------------------------------------------------------------------------


def test_all_checks_are_listed(capsys):
    code, out, _ = check(capsys, "--list")
    _, as_json, _ = check(capsys, "--list", "-o", "json")
    items = json.loads(as_json)["items"]
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [item["id"] for item in items]
    assert all(item["why"] and item["fix"] and item["bad"] and item["good"] for item in items)


@pytest.mark.parametrize("name", ["PQ101", "pq101", "accidental-burstable"])
def test_a_check_is_explained(capsys, name):
    code, out, _ = check(capsys, "--explain", name)
    assert code == 0
    assert out.startswith("PQ101 accidental-burstable (warning): ")
    assert all(heading in out for heading in ("Why it matters", "How to fix it", "Instead of", "Write"))


# ---- outputs of a whole run --------------------------------------------------------------------------------------


def test_json_is_what_the_schema_describes_and_yaml_says_the_same(capsys):
    write(BURSTABLE + "---\n" + IMPOSSIBLE.replace("article-service", "other"))
    _, as_json, _ = check(capsys, "web.yaml", "-o", "json")
    _, as_yaml, _ = check(capsys, "web.yaml", "-o", "yaml")
    report = msgspec.json.decode(as_json, type=CheckReport)
    assert [item.check for item in report.items] == ["PQ101", "PQ111"]
    assert report.summary.errors == report.summary.warnings == 1
    assert json.loads(as_json) == yaml.safe_load(as_yaml)


def test_sarif_of_a_run_keeps_to_the_standard_and_its_fixes_mend_the_file(capsys):
    path = write(BURSTABLE + "---\n" + IGNORED.replace("article-service", "other"))
    code, out, _ = check(capsys, path, "-o", "sarif")
    log = json.loads(out)
    assert code == 1
    assert sarif_problems(log) == []
    first, second = log["runs"][0]["results"]
    assert second["suppressions"][0]["justification"] == "a canary"
    replacement = first["fixes"][0]["artifactChanges"][0]["replacements"][0]
    region = replacement["deletedRegion"]
    lines = path.read_text().splitlines(keepends=True)
    lines[region["startLine"] - 1 : region["endLine"] - 1] = [replacement["insertedContent"]["text"]]
    assert yaml.safe_load("".join(lines).split("---\n")[0]) == yaml.safe_load(GUARANTEED)


def test_github_shows_what_could_not_be_read(capsys):
    write(BURSTABLE + "---\na: [\n")
    code, out, _ = check(capsys, "web.yaml", "-o", "github")
    assert code == 2
    assert out.startswith("::error file=web.yaml,line=25,col=1,title=broken YAML")


@pytest.mark.parametrize("output", ["table", "json", "yaml", "sarif", "github", "junit"])
def test_the_same_input_gives_the_same_bytes(output):
    write(
        "---\n".join(
            text.replace("article-service", f"s{number}") for number, text in enumerate((BURSTABLE, IMPOSSIBLE))
        )
    )
    printed = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "podqos", "check", "web.yaml", "-o", output],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        printed.add((done.returncode, done.stdout, done.stderr))
    assert len(printed) == 1


# ---- interrupted -------------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_does_not_turn_findings_into_success():
    write("---\n".join(BURSTABLE.replace("article-service", f"service-{number}") for number in range(300)))
    for output in ("json", "table"):
        script = f"set -o pipefail; {sys.executable} -m podqos check web.yaml -v -o {output} | head -n 1"
        assert subprocess.run(["bash", "-c", script], capture_output=True, check=False).returncode == 1


def test_ctrl_c_ends_it_without_a_traceback():
    command = subprocess.Popen(
        [sys.executable, "-m", "podqos", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    giving_up = threading.Timer(60, command.kill)
    giving_up.start()
    assert command.stdin is not None
    # More than a pipe holds: this returns once the command reads its input.
    command.stdin.write("#" * (1 << 18))
    command.stdin.flush()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=300)
    giving_up.cancel()
    assert (command.returncode, err) == (130, "podqos: interrupted\n")


NODE_CRITICAL = """\
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: kube-system}
spec: {priorityClassName: system-node-critical, containers: [{name: c, image: i, resources: {requests: {memory: 1Gi}}}]}
"""


def test_the_kernels_victim_is_that_of_rank_where_a_kubelet_limits_all_pods_together(capsys, tmp_path):
    """Points are in thousandths of that limit: 11Gi outweigh 170 of them below 52Gi, and not below 64Gi."""
    large = "{limits: {cpu: 50m, memory: 11Gi}, requests: {cpu: 50m, memory: 11Gi}}"
    pods = [
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{containers}]}}\n"
        for name, containers in (
            ("small", "{name: c, image: i}"),
            ("large", f"{{name: c, image: i, resources: {large}}}, {{name: d, image: i}}"),
        )
    ]
    kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nsystemReserved: {memory: 12Gi}\n"
    (tmp_path / "pods.yaml").write_text("---\n".join(pods))
    (tmp_path / "kubelet.yaml").write_text(kubelet)
    (tmp_path / "usage.csv").write_text("pod,container,memory\nsmall,c,256Mi\nlarge,c,11Gi\nlarge,d,256Mi\n")
    files = [str(tmp_path / name) for name in ("pods.yaml", "kubelet.yaml")]
    main(["check", *files, "--node-memory", "64Gi", "--config-file", "none", "-o", "json"])
    items = json.loads(capsys.readouterr().out)["items"]
    usage = ["--usage", str(tmp_path / "usage.csv")]
    main(["rank", files[0], *usage, "--node-memory", "64Gi", "--kubelet-config", files[1], "-o", "json"])
    killed = json.loads(capsys.readouterr().out)["killOrder"][0]["pod"]
    told = {each["name"]: each["effects"]["killedBefore"] for each in items if each["check"] == "PQ101"}
    assert told == {"large": "default/small"}
    assert killed == "default/large"


# ---- as values -------------------------------------------------------------------------------------------------------

# No memory limit: PQ107, a warning. No ephemeral-storage limit: PQ108, for information.
OPEN = examples.web("cpu: 500m, memory: 512Mi")


def objects_of(**texts: str) -> Objects:
    objects = Objects()
    for name, text in texts.items():
        objects = objects.with_text(f"{name}.yaml", text.encode())
    return objects


def checks(report: podqos.CheckReport) -> list[str]:
    return [item.check for item in report.items]


def test_what_is_odd_about_the_files_is_among_their_problems_and_the_notes():
    objects = objects_of(a=OPEN.replace("{name: web}", "{name: web, annotations: {podqos.dev/ignore: PQ999}}"))
    report = podqos.check(objects)
    assert [str(problem) for problem in objects.problems] == list(report.notes)
    assert 'no check "PQ999"' in report.notes[0]
    assert podqos.check(objects) == report


def test_what_is_ignored_or_known_is_shown_on_request_and_fails_nothing():
    objects = objects_of(a=OPEN)
    known = baseline_of(Checked(objects).findings[:1])
    gate = Gate(ignore=(Ignore(reason="no disk", checks=("PQ108",)),), baseline=known)
    report = podqos.check(objects, gate=gate)
    assert (report.items, report.summary.suppressed, report.summary.in_baseline) == ((), 1, 1)
    shown = podqos.check(objects, gate=Gate(ignore=gate.ignore, baseline=known, show_suppressed=True))
    assert [item.suppression.by for item in shown.items] == ["baseline", "configuration"]
    assert not shown.fails


def test_a_resize_is_held_against_what_runs():
    running = objects_of(a=examples.web(*examples.EQUAL))
    wanted = objects_of(b=examples.web('cpu: "1", memory: 1Gi', 'cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi'))
    (item,) = podqos.check(running, resized=wanted).items
    assert (item.check, item.source) == ("PQ113", "b.yaml")
    assert podqos.check(objects_of(), resized=wanted).items == ()
    assert [problem.what for problem in wanted.problems] == ["no Pod default/web to resize"]


def test_fixing_leaves_the_objects_as_they_were_and_gives_what_comes_after():
    objects = objects_of(a=OPEN.replace("memory: 512Mi}", "memory: 512m}"), b=OPEN)
    before = Checked(objects)
    fixes, after = before.fix()
    assert [file.source for file in fixes.files] == ["a.yaml"]
    assert b"512Mi" in after.text("a.yaml")
    assert before.text("a.yaml") != after.text("a.yaml")
    assert [item.check for item in before.report.items if item.source == "a.yaml"] == ["PQ107", "PQ108", "PQ117"]
    assert [item.check for item in after.report.items if item.source == "a.yaml"] == ["PQ107", "PQ108"]
    assert objects.with_texts({}).workloads == objects.workloads
