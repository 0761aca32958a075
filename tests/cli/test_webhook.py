"""``podqos webhook``: answers without a server, certificates, and a server that ends without losing a request."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main
from reviews import GUARANTEED, LOOSE, container, deployment, pod, policy, review


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(yaml.safe_dump(policy(GUARANTEED)))
    Path("good.json").write_bytes(review(pod()))
    Path("bad.json").write_bytes(review(pod(container(resources=LOOSE))))
    return tmp_path


def test_an_allowed_review_exits_with_0(files, capsys):
    assert main(["webhook", "test", "-f", "good.json", "--policy", "policy.yaml"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["response"]["uid"] == "u-1"
    assert answer["response"]["allowed"] is True


def test_a_refused_review_exits_with_1(files, capsys):
    assert main(["webhook", "test", "-f", "bad.json", "--policy", "policy.yaml"]) == 1
    assert json.loads(capsys.readouterr().out)["response"]["status"]["code"] == 403


def test_without_a_policy_only_findings_are_told(files, capsys):
    assert main(["webhook", "test", "-f", "bad.json", "--warn-on", "info"]) == 0
    assert json.loads(capsys.readouterr().out)["response"]["warnings"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not JSON"),
        ("[]", "not an AdmissionReview"),
        ('{"kind": "Pod"}', "kind: must be AdmissionReview, not 'Pod'"),
        (None, "No such file"),
    ],
)
def test_bad_input_is_one_line_and_exits_with_2(files, capsys, text, what):
    if text is not None:
        Path("review.json").write_text(text)
    assert main(["webhook", "test", "-f", "review.json"]) in ({2} if text is not None else {2, 3})
    out, err = capsys.readouterr()
    assert out == ""
    assert what in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "kind: Policy\napiVersion: podqos.dev/v1alpha1\nmetadata: {name: x}\nspec: {rules: 7}\n",
        "a: [",
        "kind: LimitRange\napiVersion: v1\nmetadata: {name: x}\nspec: {limits: [{min: {cpu: 2}, max: {cpu: 1}}]}\n",
    ],
)
def test_a_policy_that_is_not_in_order_exits_with_2_and_says_where(files, capsys, text):
    Path("policy.yaml").write_text(text)
    assert main(["webhook", "test", "-f", "good.json", "--policy", "policy.yaml"]) == 2
    assert "policy.yaml" in capsys.readouterr().err


def test_one_mistake_in_a_policy_is_counted_once(files, capsys):
    Path("policy.yaml").write_text("kind: Policy\napiVersion: podqos.dev/v1\nmetadata: {name: x}\nspec: {rules: []}\n")
    assert main(["webhook", "test", "-f", "good.json", "--policy", "policy.yaml"]) == 2
    assert "more)" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "# nothing yet\n", yaml.safe_dump(pod())])
def test_files_without_anything_to_decide_by_are_not_taken_for_a_policy(files, capsys, text):
    Path("policy.yaml").write_text(text)
    assert main(["webhook", "test", "-f", "bad.json", "--policy", "policy.yaml"]) == 2
    assert "policy.yaml: no policy in these files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("resources", "where"),
    [
        (
            {"limits": {"cpu": "much"}},
            'request.object.spec.containers[0].resources.limits.cpu: "much" is not a valid quantity',
        ),
        ({"limits": 7}, "request.object.spec.containers[0].resources.limits: must be"),
    ],
)
def test_an_object_that_cannot_be_judged_is_named_with_file_field_and_reason(files, capsys, resources, where):
    Path("odd.json").write_bytes(review(pod(container(resources=resources))))
    assert main(["webhook", "test", "-f", "odd.json"]) == 2
    assert f"odd.json: {where}" in capsys.readouterr().err


def test_a_review_that_is_too_deep_is_said_to_be_so(files, capsys):
    Path("deep.json").write_text('{"request": ' + "[" * 100_000)
    assert main(["webhook", "test", "-f", "deep.json"]) == 2
    assert "deep.json: nested too deeply" in capsys.readouterr().err


def test_a_policy_that_does_not_exist_exits_with_an_error(files, capsys):
    assert main(["webhook", "test", "-f", "good.json", "--policy", "missing.yaml"]) == 2
    assert "missing.yaml" in capsys.readouterr().err


def test_limit_ranges_beside_the_policy_count(files, capsys):
    Path("limits.yaml").write_text(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: defaults, namespace: shop}\n"
        "spec: {limits: [{type: Container, default: {cpu: '1', memory: 1Gi}}]}\n"
    )
    Path("review.json").write_bytes(review(deployment(container(resources={}))))
    asked = ["webhook", "test", "-f", "review.json", "--policy", "policy.yaml"]
    assert main(asked) == 1
    assert main([*asked, "--policy", "limits.yaml"]) == 0


def test_an_override_of_a_file_is_applied(files, capsys):
    Path("override.yaml").write_text(
        "apiVersion: operator.autoscaling.openshift.io/v1\nkind: ClusterResourceOverride\nmetadata: {name: cluster}\n"
        "spec: {podResourceOverride: {spec: {memoryRequestToLimitPercent: 50}}}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
        "  labels: {clusterresourceoverrides.admission.autoscaling.openshift.io/enabled: 'true'}\n"
    )
    assert main(["webhook", "test", "-f", "good.json", "--policy", "override.yaml", "--webhook", "mutate"]) == 0
    assert json.loads(capsys.readouterr().out)["response"]["patchType"] == "JSONPatch"


def test_1_37_is_said_to_be_approximate(files, capsys):
    assert main(["webhook", "test", "-f", "good.json", "--kubernetes-version", "1.37"]) == 0
    assert "assumed: rules of Kubernetes 1.37: approximate" in capsys.readouterr().err


def test_a_certificate_is_made_and_then_still_good(files, capsys):
    assert main(["webhook", "certificate", "certs"]) == 0
    assert "created" in capsys.readouterr().out
    assert main(["webhook", "certificate", "certs"]) == 0
    assert "is still valid" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--days", "0"], ["--name", "under score!"]])
def test_a_certificate_without_use_is_not_made(files, capsys, arguments):
    assert main(["webhook", "certificate", "certs", *arguments]) == 2
    assert not Path("certs").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "over HTTPS only"),
        (["--certificate", "nowhere"], "nowhere"),
        (["--certificate", "certs", "--listen", "8443"], "not a valid address"),
        (["--certificate", "certs", "--policy", "missing.yaml"], "missing.yaml"),
        (["--certificate", "certs", "--policy", "-"], "standard input can be read only once"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(files, capsys, arguments, what):
    main(["webhook", "certificate", "certs"])
    capsys.readouterr()
    assert main(["webhook", *arguments]) in {2, 3}
    err = capsys.readouterr().err
    assert what in err
    assert err.count("\n") == 1


def test_an_address_that_is_taken_is_said_in_the_words_of_the_system(files, capsys):
    main(["webhook", "certificate", "certs"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["webhook", "--certificate", "certs", "--listen", address]) == 3
    assert f"error: {address}: Address already in use (choose another address with --listen)" in capsys.readouterr().err


class Client:
    """Asks over and over, as an API server does: with kept connections, and anew when told that one ends."""

    def __init__(self, port, trust):
        self.port, self.trust, self.connection = port, trust, None

    def ask(self, uid):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=300, context=self.trust)
        self.connection.request("POST", "/validate?timeout=10s", review(pod(), uid=uid))
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.will_close:
            self.connection = None
        return answer["response"]["uid"]


def test_a_server_told_to_stop_is_first_not_ready_then_answers_what_is_under_way_and_exits_with_0(files):
    assert main(["webhook", "certificate", "certs", "--name", "127.0.0.1"]) == 0
    command = [
        sys.executable, "-m", "podqos", "webhook", "--certificate", "certs", "--policy", "policy.yaml",
        "--listen", "127.0.0.1:0", "--drain", "10m", "--audit", "audit.log",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = next(int(line.rpartition(":")[2]) for line in process.stderr if "listening on" in line)
        trust = ssl.create_default_context(cafile="certs/ca.crt")
        told, asked, answered = threading.Event(), [], []

        def run(number):
            client, count = Client(port, trust), 0
            while client.connection is not None or not told.is_set():
                uid = f"{number}-{count}"
                asked.append(uid)
                answered.append(client.ask(uid))
                count += 1

        threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        while len(answered) < 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert any("shutting down" in line for line in process.stderr)
        probe = http.client.HTTPSConnection("127.0.0.1", port, timeout=300, context=trust)
        probe.request("GET", "/readyz")
        assert probe.getresponse().status == 503
        probe.close()
        told.set()
        for thread in threads:
            thread.join(300)
        process.send_signal(signal.SIGTERM)  # told twice: at once
        assert process.wait(300) == 0
        assert sorted(answered) == sorted(asked)
        lines = [json.loads(line) for line in Path("audit.log").read_text().splitlines()]
        assert sorted(line["requestId"] for line in lines) == sorted(asked)
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def test_a_server_told_to_stop_ends_by_itself_when_its_drain_is_over(files):
    assert main(["webhook", "certificate", "certs"]) == 0
    command = [sys.executable, "-m", "podqos", "webhook", "--certificate", "certs", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--drain", "100ms"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert any("listening on" in line for line in process.stderr)
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
        finally:
            process.kill()
