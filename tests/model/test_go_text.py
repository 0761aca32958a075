from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.model.go_text import divide_float32, parse_duration_ns, parse_float32


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("+5", 5.0),
        ("1e1", 10.0),
        ("1_0", 10.0),
        ("0x1p-2", 0.25),
        ("0X_1.8P0", 1.5),
        ("33.33", 33.33000183105469),
        ("99.99999999", 100.0),
        ("1e-400", 0.0),
        ("1e-999999999", 0.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        # Half way between two 32-bit floats plus a little: rounding through 64 bits would lose the little.
        ("1.000000059604644775390625000000000000000000000000001", 1.0000001192092896),
        ("1.000000059604644775390625", 1.0),
    ],
)
def test_a_float_is_read_as_go_reads_it_into_32_bits(text, value):
    assert parse_float32(text) == value


def test_not_a_number_is_a_number_to_go():
    assert math.isnan(parse_float32("NaN"))


@pytest.mark.parametrize(
    "text", ["", "e", "1__0", "_1", "1_", "1._0", "1e_3", "0x1", "0x", "1Gi", " 10", "10 ", "+nan", "1e", "١"]
)
def test_what_go_does_not_take_for_a_float_is_refused_in_its_words(text):
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_float32(text)


@pytest.mark.parametrize("text", ["1e400", "3.4028236e38", "-1e39", "1e999999999", "0x1p128"])
def test_a_float_too_large_for_32_bits_is_out_of_range(text):
    with pytest.raises(ValueError, match="value out of range"):
        parse_float32(text)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_32_bit_float_survives_the_round_trip(value):
    """And a division by 100 is the one the hardware does."""
    assert parse_float32(repr(value)) == value
    quotient = struct.unpack("f", struct.pack("f", value / 100))[0]
    assert divide_float32(value, 100) == quotient


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0s", 0),
        ("30s", 30 * 10**9),
        ("1m30s", 90 * 10**9),
        ("1.5h", 5400 * 10**9),
        (".5m", 30 * 10**9),
        ("1.s", 10**9),
        ("1h1h", 7200 * 10**9),
        ("+500us", 500_000),
        ("3µs", 3000),
        ("3μs", 3000),
        ("-100ms", -(10**8)),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("-2562047h47m16.854775808s", -(2**63)),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text, nanoseconds):
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("+", 'time: invalid duration "+"'),
        ("abc", 'time: invalid duration "abc"'),
        (".s", 'time: invalid duration ".s"'),
        ("90", 'time: missing unit in duration "90"'),
        ("1..5s", 'time: missing unit in duration "1..5s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("30 s", 'time: unknown unit " s" in duration "30 s"'),
        ("1m-30s", 'time: unknown unit "m-" in duration "1m-30s"'),
        ("99999999h", 'time: invalid duration "99999999h"'),
    ],
)
def test_a_bad_duration_is_refused_in_gos_words(text, message):
    with pytest.raises(ValueError, match=r"^time: ") as error:
        parse_duration_ns(text)
    assert str(error.value) == message


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours, minutes, seconds):
    assert parse_duration_ns(f"{hours}h{minutes}m{seconds}s") == (hours * 3600 + minutes * 60 + seconds) * 10**9
