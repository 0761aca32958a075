"""The webhook over HTTPS: what its paths answer, what it counts, and that nothing is lost while files are replaced."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
import time

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podqos.admission.review import InvalidReview, read_review
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Door, Reviewer, _live_pod, _object, _workload
from podqos.manifest.kinds import POD_HOLDERS
from podqos.policy.reading import read_policy
from podqos.serve.audit import AuditLog
from podqos.serve.certificate import make
from podqos.serve.reloading import Reloaded, ReviewerMaker
from podqos.serve.webhook import Webhook, waits
from reviews import GUARANTEED, LOOSE, container, deployment, pod, policy, review
from serve.serving import NAMES, served

OFFENDER = pod(container(resources=LOOSE))


def strict():
    return Reviewer((read_policy(policy(GUARANTEED)).policy,), warn_on=FailOn.INFO)


@pytest.fixture
def audited():
    return io.BytesIO()


@pytest.fixture
def server(tmp_path, audited):
    with served(tmp_path, strict(), audit=audited) as server:
        yield server


def metrics(server):
    status, body = server.ask("/metrics")
    assert status == 200
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_a_review_is_answered_with_its_uid(server):
    status, body = server.ask("/validate?timeout=10s", review(pod(), uid="abc"))
    assert status == 200
    answer = json.loads(body)
    assert answer["response"]["uid"] == "abc"
    assert answer["response"]["allowed"] is True


def test_a_violation_is_refused(server):
    _, body = server.ask("/validate", review(OFFENDER))
    refused = json.loads(body)["response"]
    assert refused["allowed"] is False
    assert refused["status"]["code"] == 403
    assert 'policy "shop", rule "guaranteed"' in refused["status"]["message"]


def test_mutating_sends_a_patch(server):
    proxy = container("proxy", {"requests": {"cpu": "10m", "memory": "16Mi"}})
    asking = pod(container(), proxy, annotations={"podqos.dev/keep-class": "Guaranteed"})
    _, body = server.ask("/mutate", review(asking))
    assert json.loads(body)["response"]["patchType"] == "JSONPatch"


@pytest.mark.parametrize("body", [b"", b"{}", b"no json", b"[" * 50_000])
def test_what_is_no_review_is_a_bad_request(server, body):
    status, text = server.ask("/validate", body, method="POST")
    assert status == 400
    assert text.count(b"\n") == 1
    assert metrics(server)[("podqos_webhook_errors_total", ("reason", "bad-review"))] == 1


def test_paths_and_methods_that_do_not_exist_say_which_do(server):
    status, text = server.ask("/nothing")
    assert status == 404
    assert b"/validate" in text
    assert server.ask("/validate")[0] == 405
    assert server.ask("/metrics", b"x")[0] == 405


def test_it_is_healthy_and_ready_until_it_drains(server):
    assert server.ask("/healthz") == (200, b"ok\n")
    assert server.ask("/readyz") == (200, b"ok\n")
    server.webhook.drain()
    assert server.ask("/healthz")[0] == 200
    assert server.ask("/readyz") == (503, b"draining\n")
    server.webhook.is_ready()
    assert server.ask("/readyz")[0] == 503


def test_while_it_drains_each_answer_ends_its_connection(server):
    connection = server.connect()
    server.webhook.drain()
    assert server.ask("/validate", review(pod()), connection=connection)[0] == 200
    assert connection.sock is None  # the answer said so
    assert server.ask("/validate", review(pod()))[0] == 200


def test_a_bug_of_ours_is_left_to_the_failure_policy(server):
    class Broken(Reviewer):
        def decide(self, *_):
            raise ZeroDivisionError

    server.webhook.reviewer = Broken()
    assert server.ask("/validate", review(pod()))[0] == 500
    server.webhook.reviewer = Reviewer()
    assert server.ask("/validate", review(pod()))[0] == 200
    assert metrics(server)[("podqos_webhook_errors_total", ("reason", "internal"))] == 1


def test_metrics_are_prometheus_text(server):
    server.ask("/validate", review(OFFENDER))
    server.ask("/validate", review(deployment()))
    server.ask("/validate", review({"kind": "Widget"}, operation="EXPLODE"))
    found = metrics(server)
    asked = (
        "podqos_webhook_reviews_total",
        ("allowed", "false"),
        ("kind", "Pod"),
        ("operation", "CREATE"),
        ("webhook", "validate"),
    )
    assert found[asked] == 1
    assert (
        found[
            (
                "podqos_webhook_reviews_total",
                ("allowed", "true"),
                ("kind", "other"),
                ("operation", "other"),
                ("webhook", "validate"),
            )
        ]
        == 1
    )
    assert (
        found[("podqos_webhook_violations_total", ("action", "Deny"), ("policy", "shop"), ("rule", "guaranteed"))] == 1
    )
    assert found[("podqos_webhook_review_seconds_count", ("webhook", "validate"))] == 3
    assert found[("podqos_webhook_review_seconds_bucket", ("le", "+Inf"), ("webhook", "validate"))] == 3
    assert found[("podqos_webhook_certificate_expiry_timestamp_seconds",)] > time.time()
    assert found[("process_resident_memory_bytes",)] > 0


def test_every_request_has_a_line_in_the_audit_log(server, audited):
    server.ask("/validate", review(OFFENDER, uid="line-1"))
    server.ask("/mutate", review(pod(), uid="line-2", dryRun=True))
    server.webhook.audit.close()
    first, second = map(json.loads, audited.getvalue().splitlines())
    assert (first["requestId"], first["allowed"], first["qosClass"], first["user"]) == (
        "line-1",
        False,
        "Burstable",
        "alice",
    )
    assert first["violations"][0]["why"] == "ClassTooLow"
    assert (second["requestId"], second["webhook"], second["dryRun"]) == ("line-2", "mutate", True)


def test_an_audit_log_that_does_not_keep_up_loses_lines_and_says_so(monkeypatch):
    monkeypatch.setattr("podqos.serve.audit._MOST_LINES", 3)

    class Stuck(io.BytesIO):
        def write(self, _):
            gate.wait(300)
            raise BrokenPipeError

    gate = threading.Event()
    log = AuditLog(Stuck())
    for _ in range(10):
        log.write(b"x")
    assert log.dropped >= 4
    gate.set()
    log.close()
    assert log.dropped == 10


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("timeout=10s", 10.0),
        ("timeout=500ms", 0.5),
        ("timeout=1m30s", 90.0),
        ("", None),
        ("timeout=soon", None),
        ("other=1s", None),
    ],
)
def test_the_api_server_says_how_long_it_waits(query, seconds):
    assert waits(query) == seconds


# ---- large reviews --------------------------------------------------------------------------------------------------


def large(count=1500, **more):
    return review(pod(*(container(f"c{number}") for number in range(count))), **more)


def test_a_large_review_is_decided_beside_the_others(server):
    assert len(large()) > 64 << 10
    status, body = server.ask("/validate?timeout=30s", large(uid="large"))
    assert status == 200
    assert json.loads(body)["response"]["uid"] == "large"


def test_what_two_threads_count_is_counted_and_can_be_read_meanwhile():
    """Large reviews are counted in a thread of their own; the switch interval makes the threads meet often."""
    webhook, body, times = Webhook(strict(), AuditLog(None)), review(OFFENDER), 1500

    def asked():
        return asyncio.run(webhook.handle("GET", "/metrics", "", b""))

    threads = [
        threading.Thread(target=lambda: [webhook.review(Door.VALIDATE, body) for _ in range(times)]) for _ in range(2)
    ]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert asked().status_code == 200
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    read = text_string_to_metric_families(asked().body.decode())
    found = {sample.name: sample.value for family in read for sample in family.samples}
    assert found["podqos_webhook_reviews_total"] == found["podqos_webhook_violations_total"] == 2 * times
    assert found["podqos_webhook_review_seconds_count"] == 2 * times


def test_a_decision_that_takes_too_long_is_left_to_the_failure_policy(server):
    gate = threading.Event()

    class Slow(Reviewer):
        def decide(self, *arguments):
            gate.wait(300)
            return super().decide(*arguments)

    server.webhook.reviewer = Slow()
    status, text = server.ask("/validate?timeout=100ms", large())
    gate.set()
    assert (status, text) == (504, b"no decision before the deadline\n")
    assert metrics(server)[("podqos_webhook_errors_total", ("reason", "deadline"))] == 1


def test_more_large_reviews_than_can_wait_are_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr("podqos.serve.webhook._LARGE_AT_ONCE", 1)
    gate = threading.Event()

    class Waiting(Reviewer):
        def decide(self, *arguments):
            gate.wait(300)
            return super().decide(*arguments)

    with served(tmp_path, Waiting()) as server:
        first = threading.Thread(target=server.ask, args=("/validate?timeout=300s", large()))
        first.start()
        end = time.monotonic() + 300
        while not server.webhook._large_waiting and time.monotonic() < end:
            time.sleep(0.01)
        assert server.ask("/validate", large())[0] == 429
        gate.set()
        first.join(300)
        assert server.ask("/validate?timeout=300s", large())[0] == 200


# ---- files that are replaced ----------------------------------------------------------------------------------------


def mount(folder, text, generation):
    """Write a file as a ConfigMap is mounted: through a link to a directory, which is turned at once."""
    inner = folder / f"..{generation}"
    inner.mkdir(parents=True)
    (inner / "policy.yaml").write_text(text)
    link = folder / "..new"
    link.symlink_to(inner.name)
    link.replace(folder / "..data")
    if not (folder / "policy.yaml").exists():
        (folder / "policy.yaml").symlink_to("..data/policy.yaml")


def test_a_mounted_policy_is_read_again_when_its_link_turns(tmp_path):
    folder = tmp_path / "policy"
    mount(folder, yaml.safe_dump(policy(GUARANTEED)), 1)
    deciding = ReviewerMaker([str(folder)], None, CheckOptions(), FailOn.NEVER)
    webhook = Webhook(deciding.reviewer(), AuditLog(None))
    deciding.use = lambda reviewer: setattr(webhook, "reviewer", reviewer)
    source = Reloaded("policy", [str(folder)], deciding.read)
    assert source.look() is None

    mount(folder, yaml.safe_dump(policy(GUARANTEED | {"action": "Warn"})), 2)
    assert source.look() is True
    assert b'"allowed":true' in webhook.review("validate", review(OFFENDER)).body

    mount(folder, "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: x}\nspec: {rules: 7}\n", 3)
    assert source.look() is False
    assert "policy.yaml" in source.error
    assert source.look() is None
    assert b'"allowed":true' in webhook.review("validate", review(OFFENDER)).body

    mount(folder, yaml.safe_dump(policy(GUARANTEED)), 4)
    assert source.look() is True
    assert source.error == ""
    assert b'"allowed":false' in webhook.review("validate", review(OFFENDER)).body


def test_nothing_is_lost_or_answered_wrongly_while_policy_and_certificate_are_replaced(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy(GUARANTEED)))
    deciding = ReviewerMaker([str(file)], None, CheckOptions(), FailOn.NEVER)
    with served(tmp_path / "certs", deciding.reviewer()) as server:
        webhook = server.webhook
        deciding.use = lambda reviewer: setattr(webhook, "reviewer", reviewer)
        certificate = webhook.certificate
        sources = [
            Reloaded("policy", [str(file)], deciding.read),
            Reloaded("certificate", [certificate.certificate, certificate.key], certificate.load),
        ]
        wrong, answered, stop = [], [], threading.Event()

        def client(number):
            kept = server.connect()
            count = 0
            while not stop.is_set():
                uid = f"{number}-{count}"
                fresh = count % 10 == 0
                status, body = server.ask("/validate", review(OFFENDER, uid=uid), connection=None if fresh else kept)
                if status != 200 or json.loads(body)["response"]["uid"] != uid:
                    wrong.append((uid, status, body))
                count += 1
            answered.append(count)
            kept.close()

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for each in clients:
            each.start()
        reloaded = 0
        for generation in range(12):
            action = "Warn" if generation % 2 else "Deny"
            file.write_text(yaml.safe_dump(policy(GUARANTEED | {"action": action, "name": f"rule-{generation}"})))
            make(str(tmp_path / "certs"), NAMES, force=True)
            reloaded += sum(bool(source.look()) for source in sources)
            time.sleep(0.03)
        stop.set()
        for each in clients:
            each.join(300)
        assert wrong == []
        assert len(answered) == 4
        assert reloaded == 24


def test_new_connections_get_the_new_certificate_and_old_ones_go_on(tmp_path):
    with served(tmp_path, Reviewer()) as server:
        kept = server.connect()
        with server.socket() as client:
            before = client.getpeercert(binary_form=True)
        make(str(tmp_path), NAMES, force=True)
        server.webhook.certificate.load()
        with server.socket() as client:
            assert client.getpeercert(binary_form=True) != before
        assert kept.sock.getpeercert(binary_form=True) == before
        assert server.ask("/healthz", connection=kept)[0] == 200
        kept.close()


def test_a_key_that_does_not_fit_leaves_the_old_certificate_in_use(tmp_path):
    with served(tmp_path / "certs", Reviewer()) as server:
        certificate = server.webhook.certificate
        make(str(tmp_path / "other"), NAMES)
        source = Reloaded("certificate", [certificate.certificate, certificate.key], certificate.load)
        (tmp_path / "certs" / "tls.key").write_bytes((tmp_path / "other" / "tls.key").read_bytes())
        assert source.look() is False
        assert "does not match" in source.error
        assert server.ask("/healthz")[0] == 200


# ---- whatever comes -------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WEBHOOK = Webhook(strict(), AuditLog(None))


def mutilated(draw, value):
    """Replace one part of a document by something else."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(JSON)
    key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    copied = value.copy()
    copied[key] = mutilated(draw, copied[key])
    return copied


@st.composite
def mutilated_reviews(draw):
    thing = draw(
        st.sampled_from(
            [OFFENDER, pod(), deployment(), pod(container(), annotations={"podqos.dev/keep-class": "Guaranteed"})]
        )
    )
    whole = json.loads(
        review(thing, draw(st.sampled_from(["CREATE", "UPDATE", "DELETE"])), old=draw(st.sampled_from([None, thing])))
    )
    return json.dumps(mutilated(draw, whole)).encode()


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutilated_reviews(), st.sampled_from(["/validate", "/mutate"]))
def test_any_review_gets_a_decision_or_a_bad_request_and_never_an_error_of_ours(body, path):
    answer = asyncio.run(WEBHOOK.handle("POST", path, "", body))
    assert answer.status_code in {200, 400}, answer.body
    if answer.status_code == 200:
        response = json.loads(answer.body)["response"]
        assert response["uid"] == json.loads(body)["request"]["uid"]
        assert isinstance(response["allowed"], bool)
        assert all("\n" not in each for each in response.get("warnings", ()))


@given(mutilated_reviews())
def test_a_pod_read_in_one_pass_is_the_one_read_part_by_part(body):
    try:
        request = read_review(body)
    except InvalidReview:
        return
    quick = _live_pod(request)
    event("read in one pass" if quick else "looked at more closely")
    if quick is not None and quick.kind == "Pod":
        assert quick == _workload(POD_HOLDERS["Pod"], _object(request), request.namespace)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_bad_request(body):
    assert WEBHOOK.review("validate", body).status_code == 400
