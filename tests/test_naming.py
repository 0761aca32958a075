"""Texts that name fields are texts, keep their fields where they are added, and are spelled by whoever prints them."""

from __future__ import annotations

import pickle

import pytest

from podqos.errors import HostError, InvalidArgument
from podqos.manifest.encoding import json_bytes, yaml_bytes
from podqos.manifest.problems import Problem, Severity
from podqos.naming import Field, NamingText, hint, naming, published, stated_with

GIVE = "give it with " + naming("node_memory", "64Gi") + ", or wait"


def _shouted(field: Field) -> str | None:
    return field.name.upper() if field.name == "node_memory" else None


def _spelled(text: str) -> str:
    return text.spelled(_shouted) if isinstance(text, NamingText) else text


def test_to_a_program_a_text_names_the_parameter():
    assert GIVE == "give it with node_memory=64Gi, or wait"
    assert type(str(GIVE)) is str


def test_a_field_stays_one_where_texts_are_added_on_either_side():
    assert GIVE.fields == (Field("node_memory", "64Gi"),)
    assert _spelled("no: " + GIVE + "!") == "no: give it with NODE_MEMORY, or wait!"


def test_a_field_that_the_reader_cannot_state_keeps_its_name():
    assert _spelled("see " + naming("cores")) == "see cores"


@pytest.mark.parametrize(
    ("field", "read"), [("node_memory", "reserve less, or NODE_MEMORY"), ("cores", "reserve less")]
)
def test_a_hint_is_left_out_for_readers_who_cannot_state_its_fields(field: str, read: str):
    text = "reserve less" + hint(", or " + naming(field))
    assert text == f"reserve less, or {field}"
    assert _spelled(text) == read


def test_a_hint_without_a_field_is_a_mistake():
    with pytest.raises(AssertionError, match="names no field"):
        hint("or not")


def test_published_texts_are_plain_and_spelled_as_on_the_command_line():
    text = published("no" + hint(": " + GIVE) + naming("files"))
    assert text == "no: give it with --node-memory 64Gi, or wait-f"
    assert type(text) is str
    assert stated_with("kubelet_config") == "--kubelet-config"


@pytest.mark.parametrize("encoded", [json_bytes, yaml_bytes])
def test_a_text_that_is_encoded_is_published(encoded):
    problem = Problem("a.yaml", 1, 2, Severity.WARNING, "", "skipped", "add " + naming("render"))
    assert b"add --render" in encoded(problem)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_text_and_an_error_with_it_come_back_from_another_process(protocol: int):
    error = pickle.loads(pickle.dumps(InvalidArgument("it is 0", where=naming("cores"), fix=GIVE), protocol))  # noqa: S301
    assert (str(error), error.fix.fields) == (f"cores: it is 0 ({GIVE})", GIVE.fields)


def test_errors_are_worded_for_their_reader_and_a_fix_without_words_is_none():
    fix = hint("raise " + naming("cores"))
    assert InvalidArgument("too few", fix=fix).worded(_spelled) == "too few"
    assert InvalidArgument("none", where=naming("node_memory"), fix=GIVE).worded(_spelled) == (
        "NODE_MEMORY: none (give it with NODE_MEMORY, or wait)"
    )
    assert HostError("full: " + GIVE).worded(_spelled) == "full: give it with NODE_MEMORY, or wait"
    assert str(HostError()) == ""


def test_problems_are_worded_for_their_reader():
    problem = Problem("a.yaml", 1, 2, Severity.WARNING, "", "skipped", hint("add " + naming("cores")))
    assert str(problem) == "a.yaml:1:2: warning: skipped (add cores)"
    assert problem.worded(_spelled) == "a.yaml:1:2: warning: skipped"
