"""``podqos admit`` as a user meets it: outputs, options, bad input, exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main
from podqos.reading.shipped_scenarios import scenario_dir
from said import without_assumptions

PLATFORM = scenario_dir("content-platform")

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: app
          image: app
          resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}
"""
BARE = """\
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: shop}
spec:
  containers:
    - name: app
      image: app
"""


def limit_range(name: str, item: str, namespace: str = "shop") -> str:
    return (
        f"apiVersion: v1\nkind: LimitRange\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec:\n  limits:\n    - {{type: Container, {item}}}\n"
    )


def quota(spec: str, status: str = "") -> str:
    return f"apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q, namespace: shop}}\nspec: {spec}\n" + (
        f"status: {status}\n" if status else ""
    )


DEFAULTS = limit_range("default-limits", "default: {cpu: 1, memory: 512Mi}, defaultRequest: {cpu: 100m, memory: 128Mi}")


@pytest.fixture
def file(tmp_path: Path):
    """Write objects into a file of a name."""

    def write(name: str, *objects: str) -> Path:
        path = tmp_path / name
        path.write_text("---\n".join(objects))
        return path

    return write


def admit(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and what is said besides assumptions."""
    code = main(["admit", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, without_assumptions(captured.err)


def items(capsys, *arguments: object) -> list[dict]:
    """Run the command and return the items of its JSON."""
    return json.loads(admit(capsys, *arguments, "-o", "json")[1])["items"]


class TestTheLimitRangeTrap:
    """Source 002, on the content platform."""

    TRAP = PLATFORM / "accidental" / "limit-range.yaml"

    def test_nobody_touched_the_log_collector_and_it_is_burstable(self, capsys):
        code, out, err = admit(capsys, "-f", PLATFORM / "platform" / "log-collector.yaml", "--policies", self.TRAP)
        assert (code, err) == (1, "")
        assert "DaemonSet monitoring/log-collector  BestEffort → Burstable" in out
        assert (
            "! LimitRanger                BestEffort → Burstable: "
            "LimitRange default-limits set default requests and limits"
        ) in out
        assert "collector limits: cpu 1, memory 512Mi (default of LimitRange default-limits)" in out

    def test_the_platform_itself_does_not_drift(self, capsys):
        code, out, err = admit(capsys, "-f", PLATFORM / "platform", "-o", "csv")
        assert (code, err) == (0, "8 workloads processed; skipped 4 objects without pods or policies\n")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert len(rows) == 8
        assert {row["class_changed"] for row in rows} == {"false"}
        assert {row["name"]: row["pods_admitted"] for row in rows if row["pods_admitted"] != "1"} == {
            "content-generator": "2",
            "search-indexer": "2",
        }

    def test_with_the_trap_only_the_two_of_that_namespace_do(self, capsys):
        code, out, _ = admit(capsys, "-f", PLATFORM / "platform", "--policies", self.TRAP, "-o", "table")
        assert code == 1
        changed = [line.split()[1] for line in out.splitlines() if "LimitRanger" in line]
        assert changed == ["Pod/debug-tools", "DaemonSet/log-collector"]

    def test_a_forgotten_sidecar_looks_complete_and_the_pod_is_still_not_guaranteed(self, capsys):
        logging = PLATFORM / "accidental" / "article-service-logging.yaml"
        policies = PLATFORM / "platform" / "02-limit-range.yaml"
        (item,) = items(capsys, "-f", logging, "--policies", policies)
        assert item["containers"][1]["limits"] == {"cpu": "1", "memory": "512Mi"}
        assert (item["qosClass"], item["classChanged"]) == ("Burstable", False)


def test_that_there_are_no_policies_is_an_assumption(capsys, file):
    main(["admit", "-f", str(file("web.yaml", WEB))])
    assert capsys.readouterr().err == "assumed: cluster policies: none (-f POLICIES)\n"
    main(["admit", "-f", str(file("web.yaml", WEB)), "--policies", str(file("policy.yaml", DEFAULTS))])
    assert capsys.readouterr().err == ""


class TestTheOverride:
    """Source 003: a minimum of 1 cpu, a limit of 1, and an override that makes the request 0.2."""

    OBJECTS = (
        (
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n"
            '    clusterresourceoverrides.admission.autoscaling.openshift.io/enabled: "true"\n'
        ),
        "apiVersion: v1\nkind: ClusterResourceOverrideConfig\ncpuRequestToLimitPercent: 20\n",
        limit_range("least", "min: {cpu: 1}"),
        BARE + "      resources: {limits: {cpu: 1, memory: 1Gi}}\n",
    )

    def test_okd_39_is_refused_by_the_limit_range(self, capsys, file):
        code, out, _ = admit(capsys, "-f", file("all.yaml", *self.OBJECTS), "--override-profile", "okd-3.9")
        assert code == 1
        assert (
            "! ClusterResourceOverride    Guaranteed → Burstable: the ClusterResourceOverride set its requests" in out
        )
        assert (
            '! LimitRanger (validating)   rejected, 403 Forbidden: pods "bare" is forbidden: '
            "minimum cpu usage per Container is 1, but request is 200m"
        ) in out

    def test_the_present_one_raises_to_the_minimum(self, capsys, file):
        code, out, _ = admit(capsys, "-f", file("all.yaml", *self.OBJECTS), "--override-profile", "current")
        assert code == 0
        assert "outcome                    allowed" in out

    @pytest.mark.parametrize(
        ("percentages", "profile"),
        [("cpuRequestToLimitPercent: 20", "okd-3.9"), ("spec: {cpuRequestToLimitPercent: 20}", "current")],
    )
    def test_the_profile_follows_from_the_shape_and_is_part_of_the_value(self, capsys, file, percentages, profile):
        objects = [text.replace("cpuRequestToLimitPercent: 20", percentages) for text in self.OBJECTS]
        _, out, _ = admit(capsys, "-f", file("all.yaml", *objects), "-o", "json")
        whole = json.loads(out)
        (item,) = whole["items"]
        assert (whole["overrideProfile"], item["override"]["profile"]) == (profile, profile)

    def test_a_profile_without_an_override_is_a_mistake(self, capsys, file):
        code, out, err = admit(capsys, "-f", file("web.yaml", WEB), "--override-profile", "okd-3.9")
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert "--override-profile: no ClusterResourceOverride in the input" in err


# ---- outcomes ----------------------------------------------------------------------------------------------------


def test_all_admitted_as_written_is_zero(capsys, file):
    code, out, err = admit(capsys, "-f", file("web.yaml", WEB))
    assert (code, err) == (0, "")
    assert "Deployment shop/web × 2  Guaranteed" in out
    assert "2 of 2 pods allowed" in out


def test_limits_alone_become_guaranteed_by_defaulting_which_is_no_finding(capsys, file):
    code, out, _ = admit(capsys, "-f", file("web.yaml", WEB.replace("requests: {cpu: 1, memory: 1Gi}, ", "")))
    assert code == 0
    assert "Burstable → Guaranteed: limits were copied to missing requests" in out


def test_replicas_are_admitted_until_the_quota_is_used_up(capsys, file):
    path = file("all.yaml", quota('{hard: {pods: "3"}}'), WEB, WEB.replace("name: web", "name: more"))
    code, out, _ = admit(capsys, "-f", path, "-o", "csv")
    assert code == 1
    first, second = csv.DictReader(io.StringIO(out))
    assert (first["pods_admitted"], first["outcome"]) == ("2", "allowed")
    assert (second["pods_admitted"], second["outcome"]) == ("1", "partly allowed")
    assert second["message"] == (
        'pods "more-xxxxxxxxxx-xxxxx" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3'
    )


@pytest.mark.parametrize(
    ("written", "step", "code_and_place"),
    [
        pytest.param(
            BARE.replace("spec:", "spec:\n  priority: 5"),
            "Priority",
            (403, 4, "spec.priorityClassName"),
            id="a priority without its class",
        ),
        pytest.param(
            BARE + "      resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n",
            "Validation",
            (422, 8, "spec.containers[0].resources.requests"),
            id="request above limit",
        ),
        pytest.param(
            BARE + "      resource: {}\n", "Decoding", (400, 8, "spec.containers[0].resource"), id="misspelt field"
        ),
        pytest.param(
            BARE.replace("containers:\n    - name: app\n      image: app", "containers: []"),
            "Validation",
            (422, 5, "spec.containers"),
            id="no containers",
        ),
    ],
)
def test_a_refusal_has_a_step_a_code_and_a_place(capsys, file, written, step, code_and_place):
    (item,) = items(capsys, "-f", file("bare.yaml", written))
    refusal = item["refusal"]
    assert (refusal["step"], item["outcome"]) == (step, "refused")
    field = refusal["fields"][0]
    assert (refusal["code"], field["line"], field["path"]) == code_and_place


def test_a_namespace_that_the_cluster_does_not_have_is_404(capsys, file):
    """Only --policies can tell which ones there are."""
    elsewhere = file("cluster.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: elsewhere}\n")
    web = file("web.yaml", WEB)
    assert admit(capsys, "-f", web, "-f", elsewhere)[0] == 0
    (item,) = items(capsys, "-f", web, "--policies", elsewhere)
    assert (item["refusal"]["code"], item["refusal"]["message"]) == (404, 'namespaces "shop" not found')


def test_system_priority_classes_are_always_there(capsys, file):
    path = file("bare.yaml", BARE.replace("spec:", "spec:\n  priorityClassName: system-node-critical"))
    assert [item["priority"] for item in items(capsys, "-f", path)] == [2_000_001_000]


def test_two_limit_ranges_that_default_the_same_are_a_warning(capsys, file):
    path = file("all.yaml", limit_range("a", "default: {cpu: 1}"), limit_range("b", "default: {cpu: 2}"), BARE)
    (item,) = items(capsys, "-f", path)
    assert [(each["side"], each["resource"], each["amounts"]) for each in item["warnings"]] == [
        ("limits", "cpu", ["1", "2"]),
        ("requests", "cpu", ["1", "2"]),
    ]
    assert "which one applies is undefined" in admit(capsys, "-f", path)[1]


# ---- options -----------------------------------------------------------------------------------------------------


def test_objects_without_a_namespace_are_in_the_one_given(capsys, file):
    """Pods and policies alike."""
    path = file("all.yaml", DEFAULTS.replace(", namespace: shop", ""), BARE.replace(", namespace: shop", ""))
    (item,) = items(capsys, "-f", path, "-n", "stage")
    assert (item["namespace"], item["classChanged"]) == ("stage", True)


def test_an_older_version_drops_what_it_does_not_know(capsys, file):
    path = file("bare.yaml", BARE + "  resources: {limits: {cpu: 1, memory: 1Gi}}\n")
    assert [item["qosClass"] for item in items(capsys, "-f", path)] == ["Guaranteed"]
    (item,) = items(capsys, "-f", path, "--kubernetes-version", "1.30")
    assert item["qosClass"] == "BestEffort"


def test_what_is_applied_replaces_what_the_cluster_has_and_the_quota_keeps_its_count(capsys, file):
    stored = file("cluster.yaml", DEFAULTS, quota('{hard: {pods: "9"}}', '{hard: {pods: "9"}, used: {pods: "2"}}'))
    applied = file("all.yaml", limit_range("default-limits", "max: {cpu: 2}"), quota('{hard: {pods: "3"}}'), WEB)
    (item,) = items(capsys, "-f", applied, "--policies", stored)
    assert (item["podsAdmitted"], item["pods"]) == (1, 2)
    assert item["classChanged"] is False


def test_a_file_named_twice_counts_once(capsys, file):
    path = file("all.yaml", DEFAULTS, BARE)
    assert len(items(capsys, "-f", path, "--policies", path)) == 1


class TestResize:
    """The pods of -f with other resources."""

    OLD = BARE + "      resources: {requests: {cpu: 1}, limits: {cpu: 2}}\n"

    def test_an_allowed_resize(self, capsys, file):
        new = self.OLD.replace("cpu: 1", "cpu: 1500m")
        path, resized = file("old.yaml", self.OLD), file("new.yaml", new)
        code, out, _ = admit(capsys, "-f", path, "--resize", resized)
        assert code == 0
        assert "resize of Pod shop/bare  Burstable" in out
        assert "Resize                     app requests: cpu 1 → 1500m (requested)" in out

    def test_one_that_would_change_the_class_is_refused(self, capsys, file):
        path = file("old.yaml", self.OLD, limit_range("lr", "default: {memory: 1Gi}"))
        resized = file("new.yaml", self.OLD.replace("requests: {cpu: 1}", "requests: {cpu: 2}"))
        created, outcome = items(capsys, "-f", path, "--resize", resized)
        assert (created["operation"], created["outcome"]) == ("create", "allowed")
        assert (outcome["operation"], outcome["refusal"]["code"]) == ("resize", 422)
        assert "Pod QOS Class may not change as a result of resizing" in outcome["refusal"]["message"]
        assert outcome["source"] == str(resized)

    def test_a_pod_that_runs_is_not_created_again(self, capsys, file):
        path = file("old.yaml", self.OLD.replace("{name: bare,", "{name: bare, uid: abc,"))
        resized = file("new.yaml", self.OLD.replace("cpu: 1", "cpu: 1500m"))
        assert [item["operation"] for item in items(capsys, "-f", path, "--resize", resized)] == ["resize"]

    def test_what_is_not_there_cannot_be_resized(self, capsys, file):
        path, resized = file("old.yaml", self.OLD), file("new.yaml", self.OLD.replace("bare", "other"))
        code, out, err = admit(capsys, "-f", path, "--resize", resized)
        assert code == 2
        assert "Pod shop/bare" in out
        assert err.splitlines()[0] == (
            f"{resized}:3:12: error: metadata.name: no Pod shop/other to resize (give it with -f, as it is now)"
        )

    def test_older_versions_cannot(self, capsys, file):
        path = file("old.yaml", self.OLD)
        code, _, err = admit(capsys, "-f", path, "--resize", path, "--kubernetes-version", "1.32")
        assert (code, len(err.splitlines())) == (2, 1)
        assert "--resize: Kubernetes 1.32 cannot resize pods in place" in err


# ---- what the API server cannot read, and what podqos does not judge -----------------------------------------------


class TestDecodingAtEveryDepth:
    """podqos could read on; the API server does not."""

    def test_a_number_for_a_text_is_refused_with_its_place(self, capsys, file):
        path = file("web.yaml", WEB + "          env: [{name: PORT, value: 5}]\n")
        code, out, err = admit(capsys, "-f", path)
        assert (code, err) == (1, "")
        assert (
            "! Decoding                   rejected, 400 Bad Request: "
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number into '
            "Go struct field EnvVar.spec.template.spec.containers.env.value of type string"
        ) in out
        assert f"{path}:14:30: spec.template.spec.containers[0].env[0].value" in out

    def test_unknown_fields_are_listed_each_with_its_place(self, capsys, file):
        path = file("bare.yaml", BARE + "      tty: true\n  volumes: [{name: a, emptyDir: {size: 1Gi}}]\n")
        (item,) = items(capsys, "-f", path)
        assert (item["outcome"], item["refusal"]["step"], item["refusal"]["code"]) == ("refused", "Decoding", 400)
        assert [(field["path"], field["line"]) for field in item["refusal"]["fields"]] == [
            ("spec.volumes[0].emptyDir.size", 9)
        ]

    def test_the_others_are_followed(self, capsys, file):
        path = file("two.yaml", BARE + "      command: sh\n", WEB)
        assert [item["outcome"] for item in items(capsys, "-f", path)] == ["refused", "allowed"]

    def test_what_comes_from_an_api_server_it_can_read(self, capsys, file):
        """It may be newer than the table of fields."""
        live = BARE.replace("{name: bare", "{uid: u1, name: bare") + "      fieldOfTomorrow: 1\n"
        assert items(capsys, "-f", file("live.yaml", live))[0]["outcome"] == "allowed"

    def test_a_resize_is_decoded_too(self, capsys, file):
        path, resized = file("bare.yaml", BARE), file("new.yaml", BARE + "      args: run\n")
        created, refused = items(capsys, "-f", path, "--resize", resized)
        assert (created["outcome"], refused["operation"], refused["refusal"]["code"]) == ("allowed", "resize", 400)


class TestWhatIsNotJudged:
    """Never a silent yes."""

    POD = BARE + "  serviceAccountName: nobody\n  volumes: [{name: data, rbd: {}}]\n"
    FIELDS = ("spec.serviceAccountName", "spec.volumes[0].rbd")

    def test_the_fields_of_this_pod_are_printed_and_listed(self, capsys, file):
        path = file("bare.yaml", self.POD)
        code, out, _ = admit(capsys, "-f", path)
        assert code == 0
        assert "  not evaluated              spec: serviceAccountName; spec.volumes[0]: rbd\n" in out
        assert items(capsys, "-f", path)[0]["notJudged"] == [*self.FIELDS]

    def test_table_and_csv_say_so(self, capsys, file):
        path = file("bare.yaml", self.POD)
        assert "allowed; 2 fields not evaluated" in admit(capsys, "-f", path, "-o", "table")[1]
        (row,) = csv.DictReader(io.StringIO(admit(capsys, "-f", path, "-o", "csv")[1]))
        assert row["not_judged"] == "spec.serviceAccountName spec.volumes[0].rbd"

    def test_a_pod_of_which_everything_is_judged_has_no_such_line(self, capsys, file):
        path = file("bare.yaml", BARE)
        assert "not evaluated" not in admit(capsys, "-f", path)[1]
        assert items(capsys, "-f", path)[0]["notJudged"] == []

    def test_the_pod_security_level_of_the_namespace_is_named(self, capsys, file):
        namespace = (
            "apiVersion: v1\nkind: Namespace\n"
            "metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}\n"
        )
        assert items(capsys, "-f", file("all.yaml", namespace, BARE))[0]["notJudged"] == ["PodSecurity restricted"]

    def test_a_pod_that_cannot_be_read_has_the_list_too(self, capsys, file):
        (item,) = items(capsys, "-f", file("bare.yaml", self.POD + "  restartPolicy: 5\n"))
        assert (item["refusal"]["code"], item["notJudged"]) == (400, [*self.FIELDS])


def test_the_template_of_a_custom_kind_is_its_controllers_business(capsys, file):
    rollout = WEB.replace("apps/v1", "argoproj.io/v1alpha1").replace("kind: Deployment", "kind: Rollout")
    (item,) = items(capsys, "-f", file("web.yaml", rollout + "          livenessProbe: {}\n"))
    assert (item["outcome"], item["notJudged"]) == ("allowed", ["Rollout (its controller makes the pods)"])


def test_a_constraint_that_place_refuses_is_refused_by_admit_with_the_same_words(capsys, file):
    """One implementation."""
    spread = "  topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n"
    path = file("bare.yaml", BARE + spread)
    (item,) = items(capsys, "-f", path)
    (field,) = item["refusal"]["fields"]
    assert (field["path"], field["message"]) == (
        "spec.topologySpreadConstraints[0].maxSkew",
        "Invalid value: 0: must be greater than zero",
    )
    main(["place", "-f", str(path), "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi,pods=9"])
    assert f"{field['path']}: {field['message']}" in capsys.readouterr().err


# ---- outputs -----------------------------------------------------------------------------------------------------


def test_json_and_yaml_say_the_same(capsys, file):
    path = file("all.yaml", DEFAULTS, BARE, WEB)
    whole = json.loads(admit(capsys, "-f", path, "-o", "json")[1])
    assert whole == yaml.safe_load(admit(capsys, "-f", path, "-o", "yaml")[1])
    assert (whole["kind"], whole["kubernetesVersion"], whole["overrideProfile"]) == ("AdmissionList", "1.36", None)
    assert [item["name"] for item in whole["items"]] == ["bare", "web"]


def test_colour_only_on_request(capsys, file):
    path = file("all.yaml", DEFAULTS, BARE)
    assert "\x1b[" not in admit(capsys, "-f", path)[1]
    assert "\x1b[1;31m! \x1b[0m" in admit(capsys, "-f", path, "--color", "always")[1]


def test_what_is_in_a_file_comes_in_its_order(capsys, file):
    """Also what cannot be read."""
    path = file("all.yaml", BARE.replace("image", "imge").replace("bare", "broken"), WEB, BARE)
    assert [item["name"] for item in items(capsys, "-f", path)] == ["broken", "web", "bare"]


def test_the_limit_range_trap_of_the_platform_is_named(capsys):
    collector, trap = PLATFORM / "platform/log-collector.yaml", PLATFORM / "accidental/limit-range.yaml"
    assert main(["admit", "-f", str(collector), "--policies", str(trap)]) == 1
    assert "LimitRange default-limits set default requests and limits" in capsys.readouterr().out


# ---- bad input ---------------------------------------------------------------------------------------------------


def global_default(name: str) -> str:
    return (
        f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n"
        "value: 1\nglobalDefault: true\n"
    )


BAD_POLICIES = {
    "min above max": (
        limit_range("lr", "min: {cpu: 2}, max: {cpu: 1}"),
        "6:31: error: spec.limits[0].min.cpu: Invalid value",
        "min value 2 is greater than max value 1",
    ),
    "unknown quota scope": (
        quota('{hard: {pods: "1"}, scopes: [Bursty]}'),
        "4:27: error: spec.scopes: Invalid value",
        "unsupported scope",
    ),
    "second global default": (
        "---\n".join(map(global_default, "ab")),
        "11:1: error: globalDefault: ",
        "Only one default can exist",
    ),
    "reserved name": (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: system-x, namespace: x}\nvalue: 1\n",
        "3:12: error: metadata.name: Forbidden",
        "reserved for system use",
    ),
    "misspelt field": (
        DEFAULTS.replace("defaultRequest", "defaultRequests"),
        "6:59: error: spec.limits[0].defaultRequests: unknown field",
        'did you mean "defaultRequest"?',
    ),
    "is not a valid quantity": (
        quota("{hard: {requests.memory: 128mi}}"),
        '4:15: error: spec.hard[requests.memory]: "128mi" is not a valid quantity',
        "did you mean 128Mi?",
    ),
    "wrong type": (quota("{hard: 3}"), "4:8: error: spec.hard: must be a mapping, not 3", ""),
    "wrong version": (
        DEFAULTS.replace("apiVersion: v1", "apiVersion: apps/v1"),
        '1:1: error: apiVersion: no kind "LimitRange" in version "apps/v1"',
        "use v1",
    ),
    "given twice": (
        f"{DEFAULTS}---\n{DEFAULTS}",
        "8:1: error: LimitRange default-limits is defined twice",
        "remove one; the other is at ",
    ),
    "senseless override": (
        "apiVersion: v1\nkind: ClusterResourceOverrideConfig\ncpuRequestToLimitPercent: 101\n",
        "3:1: error: cpuRequestToLimitPercent: Invalid value: 101",
        "must be between 0 and 100",
    ),
    "override without percentages": (
        "apiVersion: v1\nkind: ClusterResourceOverrideConfig\n",
        "1:1: error: ",
        "no percentages were specified",
    ),
}


@pytest.mark.parametrize("option", ["-f", "--policies"])
@pytest.mark.parametrize("row", BAD_POLICIES.values(), ids=BAD_POLICIES)
def test_a_policy_that_could_not_exist_is_one_line_and_nothing_is_admitted(capsys, file, row, option):
    """Whatever came out would be about another cluster."""
    policy, place, words = row
    bad = file("bad.yaml", policy)
    code, out, err = admit(capsys, "-f", file("web.yaml", WEB), option, bad)
    assert (code, out) == (2, "")
    first, last = err.splitlines()
    assert first.startswith(f"{bad}:{place}")
    assert words in first
    assert last == "no workloads processed; 1 error"


def test_a_pod_that_cannot_be_read_is_one_line_and_the_rest_is_followed(capsys, file):
    path = file("all.yaml", WEB, BARE + "      resource: {}\n")
    code, out, err = admit(capsys, "-f", path, "-o", "table")
    assert code == 2
    assert "Deployment/web" in out
    assert "Decoding, 400 Bad Request" in out
    first, last = err.splitlines()
    assert first == (
        f'{path}:22:7: error: spec.containers[0].resource: unknown field "resource" (did you mean "resources"?)'
    )
    assert last == "2 workloads processed; 1 error"


def test_broken_yaml_and_missing_files_are_one_line_each_and_the_rest_is_followed(capsys, file):
    broken = file("broken.yaml", "a: [\n")
    code, out, err = admit(capsys, "-f", file("web.yaml", WEB), "-f", broken, "-f", broken.parent / "missing.yaml")
    assert code == 2
    assert "Deployment shop/web" in out
    lines = err.splitlines()
    assert len(lines) == 3
    assert any("broken YAML" in line for line in lines)
    assert any("missing.yaml" in line and "check the path" in line for line in lines)


def test_policies_that_cannot_be_read_leave_nothing_to_say(capsys, file):
    broken = file("broken.yaml", "a: [\n")
    code, out, _ = admit(capsys, "-f", file("web.yaml", WEB), "--policies", broken)
    assert (code, out) == (2, "")


def test_broken_workloads_among_the_policies_do_not_matter(capsys, file):
    """They are not asked about."""
    cluster = file("cluster.yaml", DEFAULTS, WEB.replace("image", "imge"))
    code, _, err = admit(capsys, "-f", file("web.yaml", WEB), "--policies", cluster)
    assert (code, err) == (0, "")


def test_objects_that_are_neither_are_skipped_and_counted(capsys, file):
    path = file("all.yaml", WEB, DEFAULTS, "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    code, _, err = admit(capsys, "-f", path)
    assert (code, err) == (0, "1 workload processed; skipped 1 object without pods or policies\n")


def test_no_workloads_at_all_is_bad_input(capsys, file):
    code, _, err = admit(capsys, "-f", file("policies.yaml", DEFAULTS))
    assert (code, err) == (2, "no workloads processed\n")


@pytest.mark.parametrize(
    "options",
    [["--kubernetes-version", "1.99"], ["--policies", "-"], ["--resize", "-"]],
    ids=" ".join,
)
def test_bad_options_are_one_line(capsys, options):
    code, out, err = admit(capsys, "-f", "-", *options)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_standard_input_is_read_for_a_dash():
    command = [sys.executable, "-m", "podqos", "admit", "-f", "-", "-o", "csv"]
    done = subprocess.run(command, input=WEB, capture_output=True, text=True, check=True)
    assert "shop,Deployment,web,create,Guaranteed,Guaranteed,false,2,2,allowed" in done.stdout
