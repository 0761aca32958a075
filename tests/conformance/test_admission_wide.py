from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.compare import difference, vectors
from podqos.admission.chain import admit
from podqos.admission.decoding import read_pod
from podqos.cli.eval.admission import evaluate, policies_of

READ_BY_NODES = re.compile(
    r"spec\.(hostname|volumes\[\d+\](\.(name|emptyDir\.sizeLimit|hostPath(\..*)?))?"
    r"|(initC|c)ontainers\[\d+\]\.((ports|env|volumeMounts)\b|(liveness|readiness|startup)Probe).*)"
)
WHICH_QUOTA_SPEAKS_FIRST = {"x-q-prio/0013/rnd"}


def parts(message: str | None) -> list[str]:
    """Return the errors of a message: upstream walks maps, so their order is left to chance."""
    head, _, errors = (message or "").partition(" is invalid: ")
    errors = errors[1:-1] if errors.startswith("[") else errors
    return [head, *sorted(re.split(r", (?=spec|metadata)", errors))]


def answers(lines: Iterable[dict], *, about: bool) -> Iterable[tuple[dict, dict]]:
    return [(line, evaluate(line["input"])) for line in lines if bool(line.get("about")) is about]


def test_every_vector_about_what_podqos_judges_agrees():
    """Random pods in 21 namespaces, most with one fault each, as a running API server answered them."""
    wrong = {
        line["id"]: found
        for line, got in answers(vectors("admission_wide"), about=False)
        if (found := difference(line["expected"], got)) is not None
    }
    assert wrong == {}


def test_the_words_are_the_servers():
    """All of them, in any order."""
    wrong = {
        line["id"]: got["error"]
        for line, got in answers(vectors("admission_wide"), about=False)
        if line["expected"].get("error") and parts(line["expected"]["error"]) != parts(got.get("error"))
    }
    assert wrong.keys() == WHICH_QUOTA_SPEAKS_FIRST


def test_what_turns_on_other_parts_of_a_pod_is_said_not_to_be_judged():
    """Volumes, probes, ports, security: never a silent yes."""
    silent = {
        line["id"]
        for line, got in answers(vectors("admission_wide"), about=True)
        if difference(line["expected"], got) is not None and not got.get("notJudged")
    }
    assert silent == set()


def test_what_only_a_node_reads_is_refused_in_the_servers_words_where_all_fields_count():
    """Volumes, mounts, ports, environment and probes, as a node checks them before it runs a pod."""
    wrong, judged = {}, 0
    for line in vectors("admission_wide"):
        given, expected = line["input"], line["expected"]
        if not expected.get("fields") or not all(map(READ_BY_NODES.fullmatch, expected["fields"])):
            continue
        judged += 1
        pod = read_pod(given["pod"])
        refusal = admit(pod, policies_of(given), written=given["pod"]["spec"]).refusal
        if refusal is None or parts(refusal.message) != parts(expected["error"]):
            wrong[line["id"]] = refusal
    assert judged > 20
    assert wrong == {}


def test_what_a_node_checks_besides_refuses_nothing_that_the_server_takes():
    refused = {
        line["id"]: refusal.message
        for line in vectors("admission_wide")
        if line["expected"]["allowed"]
        and (
            refusal := admit(
                read_pod(line["input"]["pod"]), policies_of(line["input"]), written=line["input"]["pod"]["spec"]
            ).refusal
        )
        is not None
    }
    assert refused == {}


def test_a_pod_that_names_another_namespace_is_a_bad_request():
    """No vector has one: it is what the handler of the request checks first."""
    pod = {"metadata": {"name": "p", "namespace": "b"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    answers = [evaluate({"namespace": {"metadata": {"name": name}}, "pod": pod}) for name in ("a", "b")]
    assert [(answer["allowed"], answer.get("code")) for answer in answers] == [(False, 400), (True, None)]
