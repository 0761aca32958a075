"""What is installed in a cluster: one source, printed as manifests and written as a chart and as kustomize bases."""

import base64
import importlib.util
import json
import re
import shutil
import subprocess
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from msgspec import structs

import podqos
from podqos.cli.command_list import parser_of
from podqos.cli.main import main
from podqos.manifest.kinds import POD_HOLDERS
from podqos.model.quantity import Quantity
from podqos.web.certificate import make, service_names
from podqos.web.guard_installation import GuardInstallation, guard_objects
from podqos.web.installation import (
    STARTER_POLICY,
    WEBHOOK,
    ServingCertificate,
    Settings,
    exporter_objects,
    namespace_object,
    webhook_objects,
)
from podqos.web.webhook_rules import Watched
from programs import HELM, needs_helm

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
POLICY = 'rules: "<{{ a }}>"\n'
GIVEN = ServingCertificate(certificate="Y2VydA==", key="a2V5", authority="Y2E=")

_spec = importlib.util.spec_from_file_location("deploy_tool", ROOT / "tools/deploy.py")
deploy_tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(deploy_tool)

ALL_SETTINGS = [
    Settings(),
    Settings(namespace="qos", image="mirror.local/podqos@sha256:00", replicas=3, failure_policy="Fail", mutate=True),
    Settings(given=GIVEN),
    Settings(namespace="010", image="y"),
    Settings(given=GIVEN, mutate=True),
]


def values_of(settings):
    values = yaml.safe_load((DEPLOY / "chart/values.yaml").read_text())
    values["image"] = settings.image
    values["webhook"] |= {
        "replicas": settings.replicas,
        "failurePolicy": settings.failure_policy,
        "mutate": settings.mutate,
        "policy": POLICY,
    }
    if settings.given:
        values["webhook"]["certificate"] = {"from": "given", **structs.asdict(settings.given)}
    return values


ALL_GUARDS = [
    GuardInstallation(),
    GuardInstallation(namespace="qos", image="local/podqos:1", mode="enforce", may_use_eviction_api=True),
    GuardInstallation(namespace="010", image="1.5"),
    GuardInstallation(host_pid=True, kubelet_config="/etc/kubernetes/kubelet.yaml"),
    GuardInstallation(kubelet_config="/var/lib/kubelet/config.yaml", may_use_eviction_api=True, mode="enforce"),
]


def values_of_guard(settings):
    guard = {
        "enabled": True,
        "mode": settings.mode,
        "hostPID": settings.host_pid,
        "kubeletConfig": settings.kubelet_config,
        "evictionAPI": settings.may_use_eviction_api,
    }
    return values_of(Settings(image=settings.image)) | {"guard": guard}


def found(path, scope):
    for name in path.strip().removeprefix(".").split("."):
        scope = scope[name]
    return scope


def holds(condition, scope):
    if equal := re.fullmatch(r'eq (\S+) "(.*)"', condition):
        return found(equal[1], scope) == equal[2]
    wanted, path = condition.removeprefix("not ") == condition, condition.removeprefix("not ")
    return bool(found(path, scope)) is wanted


def rendered(template, scope):
    """Render a template as Helm would, as far as ours go: values, quote, and conditions."""
    lines, open_conditions = [], []
    for line in template.splitlines():
        if begin := re.fullmatch(r"\{\{- if (.*) \}\}", line):
            open_conditions.append(holds(begin[1], scope))
        elif line == "{{- end }}":
            open_conditions.pop()
        elif all(open_conditions):
            quoted = re.sub(r"\{\{ (\S+) \| quote \}\}", lambda m: json.dumps(found(m[1], scope)), line)
            lines.append(re.sub(r"\{\{ (\.\S+) \}\}", lambda m: str(found(m[1], scope)), quoted))
    assert not open_conditions
    return [each for each in yaml.safe_load_all("\n".join(lines)) if each]


def by_name(objects):
    objects = list(objects)
    names = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(names) == len(objects)
    return names


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_the_chart_renders_to_what_the_commands_print(settings):
    scope = {"Values": values_of(settings), "Release": {"Namespace": settings.namespace}}
    templates = DEPLOY / "chart/templates"

    assert by_name(rendered((templates / "webhook.yaml").read_text(), scope)) == by_name(
        webhook_objects(settings, POLICY)
    )
    assert by_name(rendered((templates / "exporter.yaml").read_text(), scope)) == by_name(exporter_objects(settings))


@pytest.mark.parametrize("settings", ALL_GUARDS)
def test_the_chart_renders_to_the_guard_that_the_command_prints(settings):
    scope = {"Values": values_of_guard(settings), "Release": {"Namespace": settings.namespace}}

    template = (DEPLOY / "chart/templates/guard.yaml").read_text()
    assert by_name(rendered(template, scope)) == by_name(guard_objects(settings))


def test_the_chart_installs_no_guard_unless_it_is_asked_to():
    assert rendered((DEPLOY / "chart/templates/guard.yaml").read_text(), {"Values": values_of(Settings())}) == []


@pytest.mark.parametrize("part", ["webhook", "exporter"])
def test_parts_of_the_chart_can_be_left_out(part):
    values = values_of(Settings())
    values[part]["enabled"] = False

    assert rendered((DEPLOY / f"chart/templates/{part}.yaml").read_text(), {"Values": values}) == []


def test_what_is_committed_is_what_the_tool_writes():
    for place, files in (("chart", deploy_tool.chart_files()), ("kustomize", deploy_tool.kustomize_files())):
        assert {str(path.relative_to(DEPLOY / place)) for path in (DEPLOY / place).rglob("*.*")} == set(files)
        for name, text in files.items():
            assert (DEPLOY / place / name).read_text() == text, f"{place}/{name} is old: make deploy"


@needs_helm
@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_helm_renders_the_same(settings, tmp_path):
    (tmp_path / "values.yaml").write_text(json.dumps(values_of(settings)))
    command = [HELM, "template", "podqos", str(DEPLOY / "chart"), "-n", settings.namespace, "-f", "values.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    expected = [*webhook_objects(settings, POLICY), *exporter_objects(settings)]
    assert by_name(filter(None, yaml.safe_load_all(done.stdout))) == by_name(expected)


@needs_helm
@pytest.mark.parametrize("settings", ALL_GUARDS)
def test_helm_renders_the_same_guard(settings, tmp_path):
    values = values_of_guard(settings)
    values["webhook"]["enabled"] = values["exporter"]["enabled"] = False
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    command = [HELM, "template", "podqos", str(DEPLOY / "chart"), "-n", settings.namespace, "-f", "values.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert by_name(filter(None, yaml.safe_load_all(done.stdout))) == by_name(guard_objects(settings))


# ---- what the objects say ------------------------------------------------------------------------------------------


def pods_of(objects):
    return [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]


EVERYTHING = [*webhook_objects(Settings(mutate=True), POLICY), *exporter_objects(Settings())]


@pytest.mark.parametrize("spec", pods_of(EVERYTHING))
def test_pods_meet_the_restricted_pod_security_standard(spec):
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_podqos_finds_nothing_wrong_with_its_own_pods(tmp_path):
    (tmp_path / "all.yaml").write_text(deploy_tool.written(EVERYTHING))
    objects = podqos.load(str(tmp_path))
    result = podqos.check(objects)

    assert [item.check for item in result.items if item.severity in {"error", "warning"}] == []
    assert {each.qos_class for each in podqos.explain(objects).items} == {"Guaranteed"}


def test_no_part_may_write():
    verbs = {
        verb for each in EVERYTHING if each["kind"] == "ClusterRole" for rule in each["rules"] for verb in rule["verbs"]
    }

    assert verbs == {"get", "list", "watch"}


def test_the_webhook_may_watch_what_it_watches():
    (role,) = (each for each in EVERYTHING if each["kind"] == "ClusterRole" and each["metadata"]["name"] == WEBHOOK)
    granted = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    watched = [kind.resource for kind in Watched(None, print)._kinds]

    assert granted == {(resource.group, resource.plural) for resource in watched}


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_a_cluster_comes_up_without_the_webhook(kind):
    (webhook,) = next(each for each in EVERYTHING if each["kind"] == kind)["webhooks"]
    (excluded,) = webhook["namespaceSelector"]["matchExpressions"]

    assert webhook["failurePolicy"] == "Ignore"
    assert excluded["operator"] == "NotIn"
    assert {"podqos", "kube-system"} <= set(excluded["values"])
    assert GuardInstallation().namespace in excluded["values"], "a node needs its guard, whatever the webhook does"


def test_the_starter_policy_has_nothing_against_the_guard(tmp_path, capsys):
    (tmp_path / "guard.yaml").write_text(deploy_tool.written(GUARD))

    assert main(["policy", "test", "-f", STARTER_POLICY, str(tmp_path / "guard.yaml"), "-o", "json"]) == 0
    (judged,) = json.loads(capsys.readouterr().out)["items"]
    assert judged["action"] is None, "exempt"


@pytest.mark.parametrize("spec", pods_of(EVERYTHING))
def test_a_busy_node_restarts_no_part_for_being_slow(spec):
    (container,) = spec["containers"]
    alive, ready = container["livenessProbe"], container["readinessProbe"]

    assert alive["timeoutSeconds"] * alive["failureThreshold"] >= 60
    assert ready["timeoutSeconds"] == 5, "an API server waits no longer either"


@pytest.mark.parametrize("spec", pods_of(EVERYTHING))
def test_logs_of_any_kubelet_fit_into_the_limit_on_disk(spec):
    (container,) = spec["containers"]
    largest_log, files = Quantity.parse("50Mi"), 5

    assert Quantity.parse(container["resources"]["limits"]["ephemeral-storage"]).nanos > files * largest_log.nanos


@pytest.mark.parametrize("part", ["webhook", "exporter"])
def test_one_part_can_be_removed_without_the_namespace_that_others_use(part):
    objects = {"webhook": webhook_objects(Settings(mutate=True), POLICY), "exporter": exporter_objects(Settings())}
    labels = [each["metadata"]["labels"] for each in objects[part]]

    assert {each["app.kubernetes.io/component"] for each in labels} == {part}
    assert "app.kubernetes.io/component" not in namespace_object(Settings())["metadata"]["labels"]


# ---- the guard -------------------------------------------------------------------------------------------------------

GUARD = list(guard_objects(GuardInstallation()))


def guard_pod(settings):
    (daemons,) = (each for each in guard_objects(settings) if each["kind"] == "DaemonSet")
    return daemons["spec"]["template"]["spec"]


@pytest.mark.parametrize("settings", ALL_GUARDS)
def test_the_guard_has_no_more_of_the_host_than_it_needs(settings):
    spec = guard_pod(settings)
    (container,) = spec["containers"]
    security = container["securityContext"]

    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK", "KILL", "SYS_NICE", "SYS_RESOURCE"]}
    assert not {"privileged"} & set(security)
    assert not {"hostNetwork", "hostIPC"} & set(spec)
    writable = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/sys/fs/cgroup", "/var/lib/podqos/guard", "/run/podqos/guard"]


def test_the_guard_is_not_throttled_and_the_last_to_go():
    spec = guard_pod(GuardInstallation())
    (container,) = spec["containers"]

    assert "cpu" not in container["resources"]["limits"]
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_the_guard_only_watches_unless_it_is_told_to_enforce():
    assert "--shadow" in guard_pod(GuardInstallation())["containers"][0]["args"]
    assert "--enforce" in guard_pod(GuardInstallation(mode="enforce"))["containers"][0]["args"]


def test_the_options_of_the_guards_pod_are_those_of_the_command():
    for settings in ALL_GUARDS:
        parser, _ = parser_of("guard")
        arguments = guard_pod(settings)["containers"][0]["args"]
        assert arguments[0] == "guard"
        parser.parse_args(arguments[1:])


def test_the_guard_may_patch_statuses_and_write_events_and_nothing_else():
    rules = {
        (name, verb)
        for each in GUARD
        if each["kind"] == "ClusterRole"
        for rule in each["rules"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }

    reads = {(name, verb) for name in ("pods", "nodes") for verb in ("get", "list", "watch")}
    assert rules == reads | {("nodes/configz", "get")} | {("pods/status", "patch"), ("events", "create")}


def test_every_right_to_write_has_a_policy_that_is_bound_and_denies():
    policies = {each["metadata"]["name"]: each["spec"] for each in GUARD if each["kind"] == "ValidatingAdmissionPolicy"}
    bindings = [each["spec"] for each in GUARD if each["kind"] == "ValidatingAdmissionPolicyBinding"]

    assert {each["policyName"] for each in bindings} == set(policies)
    assert all(each["validationActions"] == ["Deny"] for each in bindings)
    for spec in policies.values():
        assert spec["failurePolicy"] == "Fail"
        assert "system:serviceaccount:podqos-guard:podqos-guard" in spec["matchConditions"][0]["expression"]
        # A refusal must not look like the 422 of a pod with another uid.
        assert {each["reason"] for each in spec["validations"]} == {"Forbidden"}


def test_podqos_finds_nothing_wrong_with_the_guard(tmp_path):
    (tmp_path / "guard.yaml").write_text(deploy_tool.written(GUARD))
    result = podqos.check(podqos.load(str(tmp_path)))

    assert [item.check for item in result.items if item.severity in {"error", "warning"}] == []


def test_a_guard_is_printed_with_its_own_namespace(capsys):
    code, said = printed(
        capsys, "guard", "manifests", "--image", "local/podqos:1", "--enforce", "--eviction-api", "--host-pid"
    )
    settings = GuardInstallation(image="local/podqos:1", mode="enforce", may_use_eviction_api=True, host_pid=True)

    assert code == 0
    assert list(yaml.safe_load_all(said.out)) == [namespace_object(settings), *guard_objects(settings)]
    assert namespace_object(settings)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_a_kubelets_file_has_an_absolute_path(capsys):
    code, said = printed(capsys, "guard", "manifests", "--kubelet-config", "config.yaml")

    assert code == 2
    assert "--kubelet-config: 'config.yaml' is not an absolute path" in said.err


# ---- the commands ----------------------------------------------------------------------------------------------------


def printed(capsys, *arguments):
    code = main([*map(str, arguments)])
    return code, capsys.readouterr()


def test_manifests_are_printed_with_what_is_asked_for(capsys, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(deploy_tool.POLICY.replace("action: Warn", "action: Deny"))
    chosen = ("-n", "qos", "--image", "local/podqos:1", "--replicas", "3", "--fail-closed", "--mutate")
    code, said = printed(capsys, "webhook", "manifests", *chosen, "--policy", policy)
    settings = Settings(namespace="qos", image="local/podqos:1", replicas=3, failure_policy="Fail", mutate=True)

    assert code == 0
    expected = [namespace_object(settings), *webhook_objects(settings, policy.read_text())]
    assert list(yaml.safe_load_all(said.out)) == expected
    assert said.err == ""


def test_the_exporter_is_printed_as_a_list_for_other_programs(capsys):
    _, said = printed(capsys, "exporter", "manifests", "-o", "json")

    assert json.loads(said.out)["items"] == [namespace_object(Settings()), *exporter_objects(Settings())]
    assert "is a placeholder: set your image with --image" in said.err


def test_a_certificate_travels_without_the_key_of_its_authority(capsys, tmp_path):
    printed(capsys, "webhook", "certificate", tmp_path)
    _, said = printed(capsys, "webhook", "manifests", "--certificate", tmp_path)
    secret = next(each for each in yaml.safe_load_all(said.out) if each["kind"] == "Secret")

    assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert base64.b64encode((tmp_path / "tls.key").read_bytes()).decode() == secret["data"]["tls.key"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "Not_A_Name"], "'Not_A_Name' is not a valid namespace name"),
        (["--image", ""], "--image: '' is not a valid image"),
        (["--image", "podqos 1.0"], "--image: 'podqos 1.0' is not a valid image"),
        (["--policy", "-"], "--policy: standard input can be read only once"),
        (["--replicas", "0"], "0 replicas serve nothing"),
        (["--policy", "absent.yaml"], "absent.yaml"),
        (["--certificate", "absent"], "absent/tls.crt"),
    ],
)
def test_what_cannot_be_installed_is_refused(capsys, arguments, message):
    code, said = printed(capsys, "webhook", "manifests", *arguments)

    assert code == 2
    assert message in said.err
    assert said.out == ""


def test_a_certificate_of_another_namespace_is_refused(capsys, tmp_path):
    printed(capsys, "webhook", "certificate", tmp_path)
    code, said = printed(capsys, "webhook", "manifests", "--certificate", tmp_path, "-n", "qos")

    assert code == 2
    assert "for podqos-webhook.podqos.svc, not for podqos-webhook.qos.svc" in said.err
    assert f"webhook certificate {tmp_path} -n qos" in said.err
    assert said.out == ""


def test_an_expired_certificate_is_refused(capsys, tmp_path):
    make(str(tmp_path), service_names(WEBHOOK, "podqos"), now=datetime(2020, 1, 1, tzinfo=UTC))
    code, said = printed(capsys, "webhook", "manifests", "--certificate", tmp_path)

    assert code == 2
    assert "tls.crt: the certificate expired on 2020-12-31" in said.err


def test_what_is_no_certificate_is_refused(capsys, tmp_path):
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).write_text("none")
    code, said = printed(capsys, "webhook", "manifests", "--certificate", tmp_path)

    assert code == 2
    assert "tls.crt: not a PEM certificate with DNS names" in said.err


def test_the_policy_can_be_read_in_what_is_printed(capsys):
    _, said = printed(capsys, "webhook", "manifests")

    assert textwrap.indent(deploy_tool.POLICY, "    ", lambda _: True).rstrip() in said.out


def test_the_api_server_asks_about_every_kind_that_the_webhook_judges():
    registered = next(
        each for each in webhook_objects(Settings(), POLICY) if each["kind"] == "ValidatingWebhookConfiguration"
    )
    resources = {each for rule in registered["webhooks"][0]["rules"] for each in rule["resources"]}

    assert {f"{kind.lower()}s" for kind in POD_HOLDERS} <= resources


def test_a_chart_with_a_given_certificate_has_to_be_given_one():
    schema = json.loads((DEPLOY / "chart/values.schema.json").read_text())
    of_certificate = schema["properties"]["webhook"]["properties"]["certificate"]

    assert of_certificate["if"] == {"properties": {"from": {"const": "given"}}}
    assert {name: each["minLength"] for name, each in of_certificate["then"]["properties"].items()} == {
        "certificate": 1,
        "key": 1,
        "authority": 1,
    }


@pytest.mark.parametrize("command", ["exporter", "webhook"])
@pytest.mark.parametrize("listen", ["8443", "0.0.0.0:", "0.0.0.0:65536", "0.0.0.0:" + "9" * 5000])
def test_what_is_no_address_is_said(capsys, command, listen):
    code, said = printed(capsys, command, "--listen", listen)

    assert code == 2
    assert "is not a valid address (for example 0.0.0.0:8443)" in said.err


# ---- systemd units ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").iterdir()), ids=lambda unit: unit.name)
def test_systemd_understands_the_units_and_podqos_their_options(tmp_path, unit):
    (command,) = re.findall(r"^ExecStart=/usr/local/bin/podqos (.*)$", unit.read_text(), re.MULTILINE)
    name, *words = command.split()
    assert parser_of(name)[0].parse_args(words)
    file = tmp_path / unit.name
    file.write_text(unit.read_text().replace("/usr/local/bin/podqos", "/bin/true"))
    words = ["systemd-analyze", "verify", "--man=no", str(file)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert [line for line in said.splitlines() if unit.name in line] == []
