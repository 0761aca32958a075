"""Amounts: beyond the conformance vectors, the properties that hold for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given

from podqos.errors import InvalidQuantity
from podqos.model.quantity import ZERO, Quantity
from strategies import quantities, quantity_texts


@given(quantities())
def test_canonical_text_reads_back_as_the_same_amount(quantity):
    again = Quantity.parse(quantity.canonical())
    assert again == quantity
    assert again.canonical() == quantity.canonical()


@given(quantity_texts())
def test_printed_text_reads_back_as_the_same_amount(text):
    quantity = Quantity.parse(text)
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities(), quantities())
def test_order_agrees_with_the_sign_of_the_difference(a, b):
    assert (a > b, a == b, a < b) == ((a - b).sign > 0, (a - b).sign == 0, (a - b).sign < 0)


@given(quantities(), quantities())
def test_addition_commutes_and_subtraction_undoes_it(a, b):
    assert a + b == b + a
    assert (a + b) - b == a


@given(quantities())
def test_whole_and_milli_values_are_rounded_away_from_zero(quantity):
    units = -(-abs(quantity.nanos) // 10**9)
    # What 64 bits do not hold is the most that they do.
    assert quantity.value == (min(units, 2**63 - 1) if quantity.nanos > 0 else max(-units, -(2**63)))
    assert abs(quantity.milli_value) * 10**6 - abs(quantity.nanos) in range(10**6)


@given(quantities())
def test_rounding_to_milli_never_loses_anything_and_settles(quantity):
    rounded = quantity.rounded_up_to_milli()
    assert abs(rounded.nanos) >= abs(quantity.nanos)
    assert rounded.rounded_up_to_milli() == rounded


@given(quantities(), quantities())
def test_equal_amounts_hash_alike_whatever_their_notation(a, b):
    assert (a == b) <= (hash(a) == hash(b))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.1Gi", "107374182400m"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("1e3", "1e3"),
        ("1000E", "1000E"),
        ("0.5Ki", "512"),
        ("Mi", "0"),
        (".", "0"),
    ],
)
def test_canonical_form_has_no_fraction_and_the_largest_unit(text, canonical):
    assert Quantity.parse(text).canonical() == canonical


@pytest.mark.parametrize("text", ["", " 1", "1 ", "128mi", "128MB", "1K", "0x10", "1_000", "1,5", "١", "1e", "--1"])
def test_what_kubernetes_does_not_parse_is_refused(text):
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["Ei", "+Ei", "-Pi", "Pi", ".Ei", "e-10", "+e-12", ".e-9n"])
def test_a_suffix_without_digits_is_no_quantity_where_upstream_leaves_its_fast_path(text):
    """``Ti`` still is one, and means zero."""
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["Ti", "+Ki", "m", "e3", "e-9", "0Ei", "-00Pi", "0e-10", ".0Ei"])
def test_a_text_with_a_zero_or_a_small_suffix_is_zero(text):
    assert Quantity.parse(text) == ZERO


@pytest.mark.parametrize("text", ["+1", "007", "1.", "1E3", "+100m"])
def test_an_odd_spelling_is_kept_as_it_is(text):
    """So it is stored, and so it is printed."""
    assert str(Quantity.parse(text)) == text


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "1e9999", "9" * 10_000, "9" * 3_000])
def test_numbers_made_to_exhaust_memory_are_refused(text):
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


def test_zero_is_false_and_everything_else_true():
    assert not ZERO
    assert Quantity.parse("1n")
