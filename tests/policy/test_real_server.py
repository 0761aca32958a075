"""The printed policies in a real API server, where there is one: see ``tests/cluster/test_real_server.py``."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import time
from contextlib import closing
from random import Random
from typing import Any

import pytest

from cluster.test_real_server import ApiServer, writes
from podqos.policy.admission_policies import admission_policies
from podqos.qos.classes import classify
from policy import drawing

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
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=trust, timeout=60)

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
        """Create policies and bindings, and see that their types are right."""
        for each in objects:
            resource = each["kind"].lower().replace("policy", "policies", 1) + "s"
            resource = (
                resource.removesuffix("s")
                if resource.endswith("policiess")
                else resource.replace("policiesb", "policyb")
            )
            status, body, _ = self.ask("POST", f"{ROOT}/{resource}", each)
            assert status == 201, body["message"][:2000]

    def await_policies(self) -> None:
        """Wait until every policy was checked."""
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
    draw = Random(7)
    found = {name: drawing.namespace(draw, name) for name in NAMESPACES}
    for each in found.values():
        assert client.create(each)[0] == 201
    return found


def test_every_drawn_object_gets_the_verdict_of_judge_and_the_class_of_classify(client, namespaces):
    """All policies at once, all of them only warning: of refusals, an API server says the first alone."""
    draw = Random(11)
    policies = [drawing.read(drawing.policy(draw, f"p{number}", NAMESPACES)) for number in range(12)]
    printed = [each.value for each in admission_policies(policies).objects]
    for each in printed:
        if "validationActions" in each["spec"]:
            each["spec"]["validationActions"] = ["Warn"]
    client.apply(*printed)
    client.await_policies()
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
