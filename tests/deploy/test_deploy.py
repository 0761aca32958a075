"""What is installed in a cluster: one source, which chart, kustomize bases and commands show alike."""

import base64
import json
import re
import shutil
import subprocess
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import podqos
from podqos.cli.command_list import parser_of
from podqos.cli.main import main
from podqos.cluster.resources import NODES, PODS
from podqos.manifest.kinds import POD_HOLDERS
from podqos.model.quantity import Quantity
from podqos.reading.live_cluster import ABOUT_PODS, WORKLOADS
from podqos.serve import settings
from podqos.serve.certificate import make, service_names
from podqos.serve.installation import WEBHOOK, manifests, starter_policy
from podqos.serve.webhook_rules import Watched
from podqos.version import __version__
from programs import HELM, needs_helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/chart"
STARTER = Path(starter_policy()).read_text()
POLICY = 'rules: "<{{ a }}>"\n'
GIVEN = {"from": "given", "certificate": "Y2VydA==", "key": "a2V5", "authority": "Y2E="}
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def objects(part, namespace="podqos", image="podqos", *, policy=STARTER, **chosen):
    """Return the namespace and the objects of a part, with the chart's defaults but for what is chosen."""
    values = {**VALUES, "image": image, part: {**VALUES[part], **chosen}}
    return [*yaml.safe_load_all(manifests(part, namespace, values, policy))]


def by_name(each):
    each = list(each)
    names = {(one["kind"], one["metadata"]["name"]): one for one in each}
    assert len(names) == len(each)
    return names


@needs_helm
@pytest.mark.parametrize(
    ("part", "namespace", "image", "chosen"),
    [
        ("exporter", "podqos", "podqos", {}),
        ("exporter", "010", "1.5", {}),
        ("webhook", "podqos", "podqos", {}),
        ("webhook", "qos", "local/podqos@sha256:00", {"replicas": 3, "failurePolicy": "Fail", "mutate": True}),
        ("webhook", "1e3", "y", {"certificate": GIVEN}),
        ("webhook", "podqos", "podqos", {"certificate": GIVEN, "mutate": True, "policy": POLICY}),
        ("guard", "podqos-guard", "podqos", {}),
        ("guard", "qos", "local/podqos:1", {"mode": "enforce", "evictionAPI": True}),
        ("guard", "010", "1.5", {"hostPID": True, "kubeletConfig": "/etc/kubernetes/kubelet.yaml"}),
        ("guard", "g", "podqos", {"kubeletConfig": "/k.yaml", "evictionAPI": True, "mode": "enforce"}),
    ],
)
def test_helm_renders_what_the_commands_print(part, namespace, image, chosen, tmp_path):
    values = {"image": image, **{each: {"enabled": each == part} for each in ("exporter", "webhook", "guard")}}
    values[part] |= chosen
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    command = [HELM, "template", "podqos", str(CHART), "-n", namespace, "-f", "values.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    expected = by_name(objects(part, namespace, image, **chosen))
    del expected["Namespace", namespace]
    assert by_name(filter(None, yaml.safe_load_all(done.stdout))) == expected


@needs_helm
def test_the_chart_installs_webhook_and_exporter_and_no_guard_unless_it_is_asked_to():
    done = subprocess.run([HELM, "template", "podqos", str(CHART)], capture_output=True, text=True, check=True)
    found = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in yaml.safe_load_all(done.stdout)}

    assert found == {"webhook", "exporter"}


@needs_helm
def test_a_chart_with_a_given_certificate_has_to_be_given_one():
    command = [HELM, "template", "podqos", str(CHART), "--set", "webhook.certificate.from=given"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "webhook.certificate.key" in done.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
@pytest.mark.parametrize("part", ["exporter", "webhook", "guard"])
def test_the_manifests_are_kustomize_bases_with_the_defaults(part):
    command = ["kubectl", "kustomize", str(CHART / "manifests" / part)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    namespace = settings.GUARD_NAMESPACE if part == "guard" else settings.NAMESPACE

    assert by_name(yaml.safe_load_all(done.stdout)) == by_name(objects(part, namespace))


def test_the_chart_has_the_version_of_podqos():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == __version__
    assert chart["version"] == __version__.replace(".dev", "-dev."), "as Helm takes it"
    assert VALUES["image"] == settings.IMAGE


def test_addresses_are_those_of_the_programs():
    (serving,) = pods_of(objects("webhook"))
    (mutating,) = (each for each in objects("webhook", mutate=True) if each["kind"] == "MutatingWebhookConfiguration")

    assert f"--listen=0.0.0.0:{settings.PORT}" in serving["containers"][0]["args"]
    assert f"--listen=0.0.0.0:{settings.EXPORTER_PORT}" in pods_of(objects("exporter"))[0]["containers"][0]["args"]
    assert mutating["webhooks"][0]["clientConfig"]["service"]["path"] == settings.MUTATE_PATH


# ---- what the objects say ------------------------------------------------------------------------------------------


def pods_of(found):
    return [each["spec"]["template"]["spec"] for each in found if each["kind"] == "Deployment"]


EVERYTHING = [*objects("webhook", mutate=True), *objects("exporter")[1:]]


def written(found):
    return yaml.safe_dump_all(found)


@pytest.mark.parametrize("spec", pods_of(EVERYTHING))
def test_pods_meet_the_restricted_pod_security_standard(spec):
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_podqos_finds_nothing_wrong_with_its_own_pods(tmp_path):
    (tmp_path / "all.yaml").write_text(written(EVERYTHING))
    loaded = podqos.load(str(tmp_path))
    result = podqos.check(loaded)

    assert [item.check for item in result.items if item.severity in {"error", "warning"}] == []
    assert {each.qos_class for each in podqos.explain(loaded).items} == {"Guaranteed"}


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


def test_the_exporter_may_watch_what_it_watches():
    (role,) = (each for each in objects("exporter") if each["kind"] == "ClusterRole")
    granted = {
        (group, name)
        for rule in role["rules"]
        if rule["verbs"] == ["list", "watch"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
    }
    watched = (NODES, PODS, *ABOUT_PODS, *WORKLOADS)

    assert granted == {(resource.group, resource.plural) for resource in watched}


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_a_cluster_comes_up_without_the_webhook(kind):
    (webhook,) = next(each for each in EVERYTHING if each["kind"] == kind)["webhooks"]
    (excluded,) = webhook["namespaceSelector"]["matchExpressions"]

    assert webhook["failurePolicy"] == "Ignore"
    assert excluded["operator"] == "NotIn"
    assert {"podqos", "kube-system"} <= set(excluded["values"])
    assert settings.GUARD_NAMESPACE in excluded["values"], "a node needs its guard, whatever the webhook does"


def test_the_starter_policy_has_nothing_against_the_guard(tmp_path, capsys):
    (tmp_path / "guard.yaml").write_text(written(GUARD))

    assert main(["policy", "test", "-f", starter_policy(), str(tmp_path / "guard.yaml"), "-o", "json"]) == 0
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
    namespace, *others = objects(part)

    assert {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in others} == {part}
    assert "app.kubernetes.io/component" not in namespace["metadata"]["labels"]


# ---- the guard -------------------------------------------------------------------------------------------------------

GUARD = objects("guard", settings.GUARD_NAMESPACE)
ALL_GUARDS = [
    {},
    {"mode": "enforce", "evictionAPI": True},
    {"hostPID": True, "kubeletConfig": "/etc/kubernetes/kubelet.yaml"},
]


def guard_pod(**chosen):
    (daemons,) = (each for each in objects("guard", **chosen) if each["kind"] == "DaemonSet")
    return daemons["spec"]["template"]["spec"]


@pytest.mark.parametrize("chosen", ALL_GUARDS)
def test_the_guard_has_no_more_of_the_host_than_it_needs(chosen):
    spec = guard_pod(**chosen)
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
    spec = guard_pod()
    (container,) = spec["containers"]

    assert "cpu" not in container["resources"]["limits"]
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_the_guard_only_watches_unless_it_is_told_to_enforce():
    assert "--shadow" in guard_pod()["containers"][0]["args"]
    assert "--enforce" in guard_pod(mode="enforce")["containers"][0]["args"]


def test_the_options_of_the_guards_pod_are_those_of_the_command():
    for chosen in ALL_GUARDS:
        parser, _ = parser_of("guard")
        arguments = guard_pod(**chosen)["containers"][0]["args"]
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
    (tmp_path / "guard.yaml").write_text(written(GUARD))
    result = podqos.check(podqos.load(str(tmp_path)))

    assert [item.check for item in result.items if item.severity in {"error", "warning"}] == []


def test_a_guard_is_printed_with_its_own_namespace(capsys):
    code, said = printed(
        capsys, "guard", "manifests", "--image", "local/podqos:1", "--enforce", "--eviction-api", "--host-pid"
    )
    chosen = {"mode": "enforce", "evictionAPI": True, "hostPID": True}

    assert code == 0
    found = list(yaml.safe_load_all(said.out))
    assert found == objects("guard", settings.GUARD_NAMESPACE, "local/podqos:1", **chosen)
    assert found[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


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
    policy.write_text(STARTER.replace("action: Warn", "action: Deny"))
    chosen = ("-n", "qos", "--image", "local/podqos:1", "--replicas", "3", "--fail-closed", "--mutate")
    code, said = printed(capsys, "webhook", "manifests", *chosen, "--policy", policy)
    values = {"replicas": 3, "failurePolicy": "Fail", "mutate": True}

    assert code == 0
    assert list(yaml.safe_load_all(said.out)) == objects(
        "webhook", "qos", "local/podqos:1", policy=policy.read_text(), **values
    )
    assert said.err == ""


def test_the_exporter_is_printed_as_a_list_for_other_programs(capsys):
    _, said = printed(capsys, "exporter", "manifests", "-o", "json")

    assert json.loads(said.out)["items"] == objects("exporter", image=settings.IMAGE)
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


def test_what_is_printed_can_be_read(capsys):
    _, said = printed(capsys, "webhook", "manifests")

    assert textwrap.indent(STARTER, "    ", lambda _: True).rstrip() in said.out
    assert not re.search(r"#>|\{\{", said.out)


def test_the_api_server_asks_about_every_kind_that_the_webhook_judges():
    registered = next(each for each in objects("webhook") if each["kind"] == "ValidatingWebhookConfiguration")
    resources = {each for rule in registered["webhooks"][0]["rules"] for each in rule["resources"]}

    assert {f"{kind.lower()}s" for kind in POD_HOLDERS} <= resources


@pytest.mark.parametrize("command", ["exporter", "webhook"])
@pytest.mark.parametrize("listen", ["8443", "0.0.0.0:", "0.0.0.0:65536", "0.0.0.0:" + "9" * 5000])
def test_what_is_no_address_is_said(capsys, command, listen):
    code, said = printed(capsys, command, "--listen", listen)

    assert code == 2
    assert "is not a valid address (for example 0.0.0.0:8443)" in said.err


# ---- systemd units ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("unit", sorted((ROOT / "deploy/systemd").iterdir()), ids=lambda unit: unit.name)
def test_systemd_understands_the_units_and_podqos_their_options(tmp_path, unit):
    (command,) = re.findall(r"^ExecStart=/usr/local/bin/podqos (.*)$", unit.read_text(), re.MULTILINE)
    name, *words = command.split()
    assert parser_of(name)[0].parse_args(words)
    file = tmp_path / unit.name
    file.write_text(unit.read_text().replace("/usr/local/bin/podqos", "/bin/true"))
    words = ["systemd-analyze", "verify", "--man=no", str(file)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert [line for line in said.splitlines() if unit.name in line] == []
