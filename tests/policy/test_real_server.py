"""The printed policies in a real API server, where there is one: see ``tests/cluster/test_real_server.py``."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cluster.test_real_server import ASSETS, ApiServer, writes
from podqos.cli.main import main
from podqos.policy.admission_policies import Wish, admission_policies
from podqos.qos.classes import classify
from podqos.reading.shipped_scenarios import scenario_dir
from policy import drawing
from policy.api_server import ApiServer as ApiServerModel
from policy.api_server import Request

pytestmark = [pytest.mark.slow, writes]

Value = dict[str, Any]
ROOT = "/apis/admissionregistration.k8s.io/v1"
NAMESPACES = tuple(f"drawn-{letter}" for letter in "abcdef")
ADMIN = ("admin", ("system:masters", "system:authenticated"))
PATHS = {"Pod": "/api/v1/namespaces/{}/pods", "Namespace": "/api/v1/namespaces"} | {
    kind: (f"/apis/{version}" if "/" in version else "/api/v1") + "/namespaces/{}/" + kind.lower() + "s"
    for kind, version in drawing.TEMPLATES.items()
}


class Client:
    """Asks an API server over one connection."""

    def __init__(self, server: ApiServer) -> None:
        self.url = server.url
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=trust, timeout=300)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: Value | None = None) -> tuple[int, Value, list[str]]:
        """Return the status, the body and the warnings."""
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []

    def create(self, value: Value, query: str = "") -> tuple[int, Value, list[str]]:
        path = PATHS[value["kind"]].format(value["metadata"].get("namespace", "default"))
        return self.ask("POST", path + query, value)

    def apply(self, *objects: Value) -> None:
        """Create policies and bindings."""
        for each in objects:
            resource = each["kind"].lower().removesuffix("y") + ("ies" if each["kind"].endswith("y") else "s")
            status, body, _ = self.ask("POST", f"{ROOT}/{resource}", each)
            assert status == 201, body["message"][:2000]

    def forget(self) -> None:
        """Delete all policies and bindings."""
        for kind in ("validating", "mutating"):
            for resource in ("policybindings", "policies"):
                assert self.ask("DELETE", f"{ROOT}/{kind}admission{resource}")[0] == 200
        time.sleep(2)

    def await_policies(self) -> None:
        """Wait until every policy was checked, and see that its types are right."""
        for _ in range(100):
            _, found, _ = self.ask("GET", f"{ROOT}/validatingadmissionpolicies")
            if all(each.get("status", {}).get("observedGeneration") for each in found["items"]):
                break
            time.sleep(0.2)
        warnings = {
            each["metadata"]["name"]: each["status"].get("typeChecking", {}).get("expressionWarnings")
            for each in found["items"]
        }
        assert {name: each for name, each in warnings.items() if each} == {}
        time.sleep(2)  # what is checked is not yet what is enforced


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as server, closing(Client(server)) as client:
        for name in ("web", "batch-low"):
            body = {"metadata": {"name": name}, "value": drawing.PRIORITIES[name]}
            assert client.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)[0] == 201
        yield client


@pytest.fixture(scope="module")
def namespaces(client):
    draw = drawing.seeded(7)
    found = {name: drawing.namespace(draw, name) for name in NAMESPACES}
    for each in found.values():
        assert client.create(each)[0] == 201
    return found


def test_every_drawn_object_gets_the_verdict_of_judge_and_the_class_of_classify(client, namespaces, request):
    """All policies at once, all of them only warning: of refusals, an API server says the first alone."""
    draw = drawing.seeded(11)
    policies = [drawing.read(drawing.policy(draw, f"p{number}", NAMESPACES)) for number in range(12)]
    printed = [each.value for each in admission_policies(policies).objects]
    for each in printed:
        if "validationActions" in each["spec"]:
            each["spec"]["validationActions"] = ["Warn"]
    client.apply(*printed)
    client.await_policies()
    request.addfinalizer(client.forget)
    wrong, right, warned = [], 0, 0
    for _ in range(600):
        name = draw.choice(NAMESPACES)
        value = (drawing.pod if draw.random() < 0.5 else drawing.workload)(draw, name)
        status, body, warnings = client.create(value, "?dryRun=All")
        if status != 201:
            assert not drawing.is_valid(value), body["message"]
            continue
        # Some kinds get the labels of their template, or the template those of the object.
        value["metadata"]["labels"] = body["metadata"].get("labels", {})
        drawing.template_of(value).setdefault("metadata", {})["labels"] = (
            drawing.template_of(body).get("metadata", {}).get("labels", {})
        )
        found = set(re.findall(r"ValidatingAdmissionPolicy 'podqos\.(p\d+\.rule-\d)\.", " ".join(warnings)))
        expected = {
            f"{policy.name}.{violation.rule}"
            for policy in policies
            for violation in drawing.judged(policy, value, namespaces[name], ADMIN)
        }
        if found != expected:
            wrong.append((found ^ expected, value["kind"], value, namespaces[name], warnings))
        if value["kind"] == "Pod":
            qos_class = classify(drawing.workload_of(drawing.as_stored(value)).pod).qos_class
            assert body["status"]["qosClass"] == qos_class
        right, warned = right + 1, warned + len(found)
    assert not wrong, f"{len(wrong)} of {right}, such as {wrong[0]}"
    assert right > 300
    assert warned > 300


@pytest.mark.skipif(not Path(f"{ASSETS}/kubectl").exists(), reason="no kubectl beside the API server")
def test_applying_what_is_printed_again_changes_nothing_and_all_of_it_can_be_deleted(client, capsys):
    def kubectl(*words: str, text: str = "") -> list[str]:
        reach = ("--server", client.url, "--token", "admin", "--insecure-skip-tls-verify", "--kubeconfig", "/dev/null")
        ran = subprocess.run(
            [f"{ASSETS}/kubectl", *reach, *words], input=text, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    assert main(["policy", "cel", "-f", str(scenario_dir("policy") / "policy.yaml"), "--fill-limits"]) == 0
    printed = capsys.readouterr().out
    objects = printed.count("\n---\n")
    for change in ("created", "unchanged"):
        answers = [line.rpartition(" ")[2] for line in kubectl("apply", "-f", "-", text=printed)]
        assert answers == [change] * objects
    client.await_policies()
    deleting = [line.partition("kubectl ")[2].split() for line in printed.splitlines() if "kubectl delete" in line]
    assert sum(len(kubectl(*words)) for words in deleting) == objects
    time.sleep(2)


# ---- one policy, as it is printed ------------------------------------------------------------------------------------

FULL = {"cpu": "1", "memory": "1Gi"}
POLICY = {
    "apiVersion": "podqos.dev/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "shop"},
    "spec": {
        "rules": [
            {
                "name": "keep",
                "match": {"namespaceSelector": {"matchExpressions": [{"key": "plain", "operator": "DoesNotExist"}]}},
                "require": {"classLabel": "podqos.dev/class"},
                "action": "Deny",
            }
        ]
    },
}


@pytest.fixture(scope="module")
def shop(client):
    wish = Wish(mutate=True, limits={"cpu": "100m", "memory": "64Mi"})
    client.apply(*(each.value for each in admission_policies([drawing.read(POLICY)], wish).objects))
    client.await_policies()
    labels = {"podqos.dev/class": "Guaranteed"}
    assert (
        client.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop", "labels": labels}})[0]
        == 201
    )
    yield client
    client.forget()


def pod(*containers: Value, **spec: Any) -> Value:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [*containers], **spec}}


def container(name: str, **stated: Value) -> Value:
    return {"name": name, "image": "app", "resources": stated}


def test_a_pod_of_a_lower_class_is_refused_and_told_why(shop):
    wrong = container("proxy", requests=FULL, limits={"cpu": "2", "memory": "1Gi"})
    status, body, _ = shop.create(pod(container("web", limits=FULL), wrong))
    assert (status, body["reason"]) == (403, "Forbidden")
    assert body["message"].endswith(
        'denied request: policy "shop", rule "keep": QoS class would be Burstable, must be Guaranteed: '
        'container "proxy" has cpu request 1 and cpu limit 2'
    )


@pytest.mark.parametrize(
    "value",
    [
        pod(container("web", requests=FULL)),
        pod(container("web", requests=FULL), container("proxy")),
        pod(container("web", limits=FULL), initContainers=[container("init", requests=FULL), container("init-2")]),
        pod(container("web"), resources={"requests": FULL}),
        pod(
            container("web", requests={"cpu": "1"}), initContainers=[{**container("proxy"), "restartPolicy": "Always"}]
        ),
    ],
)
def test_limits_that_are_missing_are_filled_in_and_the_pod_is_guaranteed(shop, value):
    status, body, _ = shop.create(value, "?dryRun=All")
    assert status == 201, body["message"]
    assert body["status"]["qosClass"] == "Guaranteed"


def test_every_drawn_pod_gets_the_class_that_the_mutation_makes(shop):
    own = ApiServerModel(
        each.value
        for each in admission_policies(
            [drawing.read(POLICY)], Wish(mutate=True, limits={"cpu": "100m", "memory": "64Mi"})
        ).objects
    )
    namespace = {"metadata": {"name": "shop", "labels": {"podqos.dev/class": "Guaranteed"}}}
    draw = drawing.seeded(3)
    seen = []
    for _ in range(300):
        value = drawing.pod(draw, "shop")
        for field in ("labels", "annotations"):
            value["metadata"].get(field, {}).pop("podqos.dev/class", None)
        if not drawing.is_valid(value):
            continue
        after = own.mutate(Request(object=drawing.as_stored(value), namespace=namespace))
        expected = classify(drawing.workload_of(drawing.as_stored(after)).pod).qos_class
        status, body, _ = shop.create(value, "?dryRun=All")
        assert status == (201 if expected == "Guaranteed" else 403), (value, body.get("message"))
        if status == 201:
            assert body["status"]["qosClass"] == "Guaranteed"
        seen.append(status)
    assert seen.count(201) > 50
    assert seen.count(403) > 20


def test_a_container_that_another_policy_injects_is_filled_in_as_well(shop):
    """It comes later in the alphabet, so that ours has to be asked again."""
    inject = (
        "JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'proxy', image: 'p'}}"
    )
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "matchConditions": [{"name": "asked", "expression": "object.?metadata.?labels[?'inject'].hasValue()"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{inject}]"}}],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "zz-inject"}}
    shop.apply(
        {**head, "kind": "MutatingAdmissionPolicy", "spec": policy},
        {**head, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "zz-inject"}},
    )
    time.sleep(3)
    value = pod(container("web", requests=FULL))
    value["metadata"]["labels"] = {"inject": "yes"}
    status, body, _ = shop.create(value, "?dryRun=All")
    assert status == 201, body["message"]
    found = {each["name"]: each["resources"].get("limits") for each in body["spec"]["containers"]}
    assert found == {"web": FULL, "proxy": {"cpu": "100m", "memory": "64Mi"}}
    assert body["status"]["qosClass"] == "Guaranteed"


def test_what_a_limit_range_fills_in_counts_for_pods_and_not_for_templates(shop):
    metadata = {"name": "limited", "labels": {"podqos.dev/class": "Guaranteed"}}
    assert shop.create({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata})[0] == 201
    limits = {"limits": [{"type": "Container", "default": FULL, "defaultRequest": FULL}]}
    path = "/api/v1/namespaces/limited/limitranges"
    assert shop.ask("POST", path, {"metadata": {"name": "limits"}, "spec": limits})[0] == 201
    time.sleep(2)
    value = pod(container("web"))
    value["metadata"]["namespace"] = "limited"
    assert shop.create(value, "?dryRun=All")[0] == 201
    template = {"metadata": {"labels": {"app": "web"}}, "spec": value["spec"]}
    value |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    value["spec"] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    status, _, warnings = shop.create(value, "?dryRun=All")
    assert (status, len(warnings)) == (201, 1)


def test_a_deployment_is_warned_about_when_it_changes_and_can_be_scaled(shop):
    value: Value = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container("web", requests=FULL)]},
            },
        },
    }
    status, body, warnings = shop.create(value)
    assert status == 201
    assert len(warnings) == 1
    assert (
        'container \\"web\\" has cpu request 1 and no cpu limit, memory request 1Gi and no memory limit' in warnings[0]
    )
    path = PATHS["Deployment"].format("shop") + "/web"
    body["spec"]["replicas"] = 3
    status, body, warnings = shop.ask("PUT", path, body)
    assert (status, warnings) == (200, [])
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"
    status, body, warnings = shop.ask("PUT", path, body)
    assert (status, len(warnings)) == (200, 1)
    assert shop.ask("DELETE", path + "?propagationPolicy=Foreground")[0] == 200


def test_a_namespace_with_a_label_that_names_no_class_is_refused(shop):
    labels = {"podqos.dev/class": "guaranteed"}
    status, body, _ = shop.create(
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "other", "labels": labels}}
    )
    assert status == 403
    assert body["message"].endswith(
        'podqos.dev/class "guaranteed" is not a QoS class, must be Guaranteed, Burstable or BestEffort'
    )


def test_sixty_four_containers_stay_within_what_expressions_may_cost(shop):
    """More of a pod's own resources, init containers and sidecars than a pod will have."""
    many = [container(f"c{index}", requests={"cpu": "100m"}) for index in range(64)]
    init = [{**container(f"i{index}", requests={"cpu": "1m"}), "restartPolicy": "Always"} for index in range(64)]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": many, "initContainers": init}}
    template["spec"]["resources"] = {"limits": {"cpu": "6464m", "memory": "1Gi"}}
    value = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "many", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    status, _, warnings = shop.create(value, "?dryRun=All")
    assert (status, warnings) == (201, [])
    template["spec"]["resources"]["limits"]["cpu"] = "6465m"
    status, _, warnings = shop.create(value, "?dryRun=All")
    assert "the pod has cpu request 6464m and cpu limit 6465m" in warnings[0]
    assert shop.create(pod(*many, initContainers=init), "?dryRun=All")[0] == 201
