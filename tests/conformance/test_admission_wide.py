from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate

WHICH_QUOTA_SPEAKS_FIRST = {"x-q-prio/0013/rnd"}


def parts(message: str | None) -> list[str]:
    """Return the errors of a message: upstream walks maps, so their order is left to chance."""
    head, _, errors = (message or "").partition(" is invalid: ")
    errors = errors[1:-1] if errors.startswith("[") else errors
    return [head, *sorted(re.split(r", (?=spec|metadata)", errors))]


def answers(lines: Iterable[dict], *, about: bool) -> Iterable[tuple[dict, dict]]:
    return [(line, evaluate("admission", line["input"])) for line in lines if bool(line.get("about")) is about]


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
        if not got.get("notJudged") and difference(line["expected"], got) is not None
    }
    assert silent == set()


def test_a_pod_that_names_another_namespace_is_a_bad_request():
    """No vector has one: it is what the handler of the request checks first."""
    pod = {"metadata": {"name": "p", "namespace": "b"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    answers = [evaluate("admission", {"namespace": {"metadata": {"name": name}}, "pod": pod}) for name in ("a", "b")]
    assert [(answer["allowed"], answer.get("code")) for answer in answers] == [(False, 400), (True, None)]
