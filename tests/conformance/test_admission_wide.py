from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.compare import difference, vectors
from podqos.cli.eval.admission import evaluate

WHICH_QUOTA_SPEAKS_FIRST = {"x-q-prio/0013/rnd"}


def parts(message: str | None) -> list[str]:
    """Return the errors of a message: upstream walks maps, so their order is left to chance."""
    head, _, errors = (message or "").partition(" is invalid: ")
    errors = errors[1:-1] if errors.startswith("[") else errors
    return [head, *sorted(re.split(r", (?=spec|metadata)", errors))]


def answers(lines: Iterable[dict], *, about: bool) -> Iterable[tuple[dict, dict]]:
    return [(line, evaluate(line["input"])) for line in lines if bool(line.get("about")) is about]


def is_judged(line: dict) -> bool:
    """Whether the answer turns on nothing that podqos leaves out."""
    error = line["expected"].get("error") or ""
    return not re.search(r"metadata\.(finalizers|ownerReferences|annotations\.seccomp)|violates PodSecurity", error)


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


def test_what_turns_on_parts_that_are_not_judged_is_said_to():
    """Owners, finalizers, Pod Security: never a silent yes."""
    silent = {
        line["id"]
        for line, got in answers(vectors("admission_wide"), about=True)
        if not is_judged(line) and not got.get("notJudged")
    }
    assert silent == set()


def test_fields_that_decide_nothing_else_are_refused_in_the_servers_words():
    """Volumes, mounts, ports, environment, probes, lifecycle, security contexts, DNS, claims."""
    lines = [pair for pair in answers(vectors("admission_wide"), about=True) if is_judged(pair[0])]
    wrong = {line["id"]: got for line, got in lines if parts(line["expected"]["error"]) != parts(got.get("error"))}
    assert len(lines) > 50
    assert wrong == {}


def test_a_pod_that_names_another_namespace_is_a_bad_request():
    """No vector has one: it is what the handler of the request checks first."""
    pod = {"metadata": {"name": "p", "namespace": "b"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    answers = [evaluate({"namespace": {"metadata": {"name": name}}, "pod": pod}) for name in ("a", "b")]
    assert [(answer["allowed"], answer.get("code")) for answer in answers] == [(False, 400), (True, None)]
