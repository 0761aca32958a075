"""Unquoted scalars mean what they mean to Kubernetes: YAML 1.1 by go-yaml v2, then JSON by Go."""

from __future__ import annotations

import pytest

from podqos.manifest.plain import Number
from podqos.manifest.scalars import UnfitScalar, resolve, resolve_key, resolve_tagged

TAG = "tag:yaml.org,2002:"

MEANINGS = {
    # booleans and nulls, in the spellings of YAML 1.1
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{text: text for text in ("yEs", "tRue", "nULL", "Y ", "nan", "inf", "=", "<<", "a", "é")},
    # integers
    "0": 0, "-0": 0, "+1": 1, "12": 12, "010": 8, "-010": -8, "0o17": 15, "0O17": 15, "0x1F": 31, "0X1f": 31,
    "0b101": 5, "-0b11": -3, "1_000": 1000, "1__0": 10, "0_": 0, "-9223372036854775808": -(2**63),
    "18446744073709551615": 2**64 - 1, "0xFFFFFFFFFFFFFFFFFF": 2**72 - 1,
    # floats that JSON writes as integers
    "08": 8, "09": 9, "1.": 1, "1.0": 1, "1e3": 1000, "-1E2": -100, "99999999999999999999": 10**20,
    # texts that only look like numbers
    **{text: text for text in ("0x", "0b2", "0o8", "1e", "-", "+", ".", "-.", "_1", "._5", "1.2.3", "1e400", ".1e999")},
    **{text: text for text in ("12:30", "2026-01-01", "2026-01-01T00:00:00Z", "250m", "1Gi", "1-2", "+a", "0x1G")},
}  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), MEANINGS.items(), ids=[text or "empty" for text in MEANINGS])
def test_scalars_are_resolved_like_go_yaml_does(text: str, meaning: object):
    value = resolve(text)
    assert (type(value), value) == (type(meaning), meaning)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.5", "0.5"), (".5", "0.5"), ("+.5", "0.5"), ("-.5", "-0.5"), ("1.50", "1.5"), ("1_0.5_0", "10.5"),
        (".5_0", "0.5"), ("08.5", "8.5"), ("1.5e3", None), ("1e21", "1e+21"), ("1.5e-7", "1.5e-7"), ("1e-7", "1e-7"),
        ("1e-10", "1e-10"), ("0.000001", "0.000001"), ("1234567.25", "1234567.25"),
        ("0777777777777777777777777", "7.777777777777778e+23"),
    ],
)  # fmt: skip
def test_floats_carry_the_text_that_go_would_print(text: str, written: str | None):
    value = resolve(text)
    if written is None:
        assert value == 1500
        assert isinstance(value, int)
    else:
        assert isinstance(value, Number)
        assert value.text == written


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN", ".NAN"])
def test_what_json_cannot_carry_is_refused(text: str):
    with pytest.raises(UnfitScalar):
        resolve(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [("a", "a"), ("on", "true"), ("n", "false"), ("010", "8"), ("1.50", "1.5"), ("0.1", "0.1"), ("1.0", "1"),
     ("1e-5", "1e-05"), ("1e39", ".inf"), ("-1e39", "-.inf")],
)  # fmt: skip
def test_keys_become_strings(text: str, key: str):
    assert resolve_key(text) == key


def test_null_cannot_be_a_key():
    with pytest.raises(UnfitScalar, match="null"):
        resolve_key("~")


@pytest.mark.parametrize(
    ("text", "tag", "meaning"),
    [
        ("5", TAG + "str", "5"),
        ("yes", TAG + "str", "yes"),
        ("2026-01-01", TAG + "timestamp", "2026-01-01"),
        ("5", TAG + "int", 5),
        ("5", TAG + "float", 5),
        ("on", TAG + "bool", True),
        ("", TAG + "null", None),
        ("aGk=", TAG + "binary", "hi"),
        ("5", "!mine", "5"),
        ("5", "!", "5"),
    ],
)
def test_tags_decide(text: str, tag: str, meaning: object):
    value = resolve_tagged(text, tag)
    assert (type(value), value) == (type(meaning), meaning)


@pytest.mark.parametrize(("text", "tag"), [("a", "int"), ("1", "bool"), ("a", "null"), ("a", "float"), ("a", "binary")])
def test_tags_that_do_not_fit_are_refused(text: str, tag: str):
    with pytest.raises(UnfitScalar):
        resolve_tagged(text, TAG + tag)
