"""What ``podqos … manifests`` prints, created in a real API server, which then asks the webhook."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import closing, contextmanager
from http import HTTPStatus
from urllib.error import HTTPError

import pytest

from guard.kubelets import wait_until
from podqos.cli.main import main
from real_api_server import ApiServer, writes

pytestmark = [pytest.mark.slow, writes]
_PLURALS = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "Namespace": "namespaces"}
POLICY = """apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: strict}
spec:
  rules:
    - {name: no-best-effort, require: {minClass: Burstable}, action: Deny}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as started:
        yield started


def printed(capsys, *words: str) -> list[dict]:
    capsys.readouterr()
    assert main([*words, "--image", "registry.example.com/podqos:1", "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)["items"]


def path_of(made: dict) -> str:
    group, _, version = made["apiVersion"].rpartition("/")
    where = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if namespace := made["metadata"].get("namespace"):
        where += f"/namespaces/{namespace}"
    return f"{where}/{_PLURALS.get(made['kind'], made['kind'].lower() + 's')}"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["exporter", "manifests"], id="exporter"),
        pytest.param(["webhook", "manifests", "--mutate", "--fail-closed"], id="webhook"),
        pytest.param(["guard", "manifests"], id="guard"),
        pytest.param(
            ["guard", "manifests", "--enforce", "--host-pid", "--eviction-api", "--kubelet-config", "/etc/k.yaml"],
            id="guard with everything",
        ),
    ],
)
def test_an_api_server_takes_every_field_that_is_printed(server, capsys, tmp_path, words):
    if words[0] == "webhook":
        assert main(["webhook", "certificate", str(tmp_path / "certs")]) == 0
        words = [*words, "--certificate", str(tmp_path / "certs")]
    for made in printed(capsys, *words):
        try:
            server.call("POST", f"{path_of(made)}?fieldValidation=Strict&fieldManager=test", made)
        except HTTPError as error:
            if error.code != HTTPStatus.CONFLICT:  # namespaced objects of the case before
                pytest.fail(f"{made['kind']} {made['metadata']['name']}: {error.read().decode()}")
    for made in reversed(printed(capsys, *words)):
        if made["kind"] != "Namespace" and "namespace" not in made["metadata"]:
            server.call("DELETE", f"{path_of(made)}/{made['metadata']['name']}")


# ---- the webhook -----------------------------------------------------------------------------------------------------


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return listening.getsockname()[1]


def made_certificate(folder, *options: str) -> None:
    assert main(["webhook", "certificate", str(folder), "--name", "127.0.0.1", *options]) == 0


@contextmanager
def webhook(folder, port: int):
    words = ["webhook", "--listen", f"127.0.0.1:{port}", "--certificate", folder / "certs", "--audit", "none"]
    command = [sys.executable, "-m", "podqos", *words, "--policy", folder / "policy.yaml", "--drain", "0s"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: process.poll() is not None or is_listening(port), "the webhook listens")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def is_listening(port: int) -> bool:
    with closing(socket.socket()) as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def configuration(capsys, folder, port: int, *options: str) -> dict:
    words = ["webhook", "manifests", "--certificate", str(folder / "certs"), *options]
    (made,) = (each for each in printed(capsys, *words) if each["kind"] == "ValidatingWebhookConfiguration")
    client = made["webhooks"][0]["clientConfig"]
    del client["service"]  # the API server of a test reaches no Services
    client["url"] = f"https://127.0.0.1:{port}/validate"
    return made


def attempt(server, name: str, requests: dict | None = None) -> str:
    """Create a pod as a dry run; return what the server says against it."""
    container = {"name": "c", "image": "x", "resources": {"requests": requests or {}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    try:
        server.call("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    except HTTPError as error:
        return json.loads(error.read())["message"]
    return ""


def test_an_api_server_asks_the_webhook_also_while_certificate_and_authority_are_replaced(server, capsys, tmp_path):
    made_certificate(tmp_path / "certs")
    (tmp_path / "policy.yaml").write_text(POLICY)
    port = free_port()
    made = configuration(capsys, tmp_path, port, "--fail-closed")
    place = path_of(made)
    with webhook(tmp_path, port):
        server.call("POST", place, made)
        wait_until(lambda: "no-best-effort" in attempt(server, "bad"), "the API server asks it")
        assert attempt(server, "good", {"memory": "64Mi"}) == ""

        # As documented: first the API server trusts the new authority as well, then the webhook gets its certificate.
        shutil.copytree(tmp_path / "certs", tmp_path / "next")
        (tmp_path / "next" / "ca.key").unlink()
        old = (tmp_path / "certs" / "ca.crt").read_bytes()
        made_certificate(tmp_path / "next", "--force")
        both = (tmp_path / "next" / "ca.crt").read_bytes()
        assert both != old
        bundle = base64.b64encode(both).decode()
        patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        server.call("PATCH", f"{place}/podqos-webhook", patch, kind="application/json-patch+json")
        serial = served(port)
        for name in ("tls.key", "tls.crt"):
            shutil.copy(tmp_path / "next" / name, tmp_path / "certs" / name)

        def is_replaced() -> bool:
            assert attempt(server, "good", {"memory": "64Mi"}) == "", "no request fails meanwhile"
            return served(port) != serial

        wait_until(is_replaced, "the webhook serves the new certificate")
        for _ in range(5):
            assert attempt(server, "good", {"memory": "64Mi"}) == ""
    assert "failed calling webhook" in attempt(server, "good", {"memory": "64Mi"}), "fails closed"
    patch = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    server.call("PATCH", f"{place}/podqos-webhook", patch, kind="application/json-patch+json")
    wait_until(lambda: attempt(server, "bad") == "", "fails open")
    server.call("DELETE", f"{place}/podqos-webhook")


def served(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port))
