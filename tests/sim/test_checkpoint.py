"""A checkpoint puts back whatever has changed in the objects it was made of, in place."""

from __future__ import annotations

from collections import deque
from functools import partial

import pytest
from msgspec import Struct

from podqos.sim.engine.checkpoint import Checkpoint


class Slotted:
    __slots__ = ("count", "items", "others")

    def __init__(self) -> None:
        self.count = 1
        self.items = [1, 2]
        self.others: dict[str, object] = {"a": 1, "b": {3}}


class Tally(Struct):
    count: int = 0


class Holder:
    """An object of an ordinary class."""

    def __init__(self) -> None:
        self.slotted = Slotted()
        self.tally = Tally()

    def add(self) -> None:
        self.tally.count += 1


Holder.__module__ = "podqos.test"


def test_attributes_lists_sets_and_structs_are_put_back():
    holder = Holder()
    slotted, tally = holder.slotted, holder.tally
    checkpoint = Checkpoint(holder)
    slotted.count, slotted.items, tally.count = 5, [9], 7
    holder.slotted, holder.tally = Slotted(), Tally(8)
    holder.added = True
    checkpoint.restore()
    assert (holder.slotted, holder.tally) == (slotted, tally)
    assert (slotted.count, slotted.items, tally.count) == (1, [1, 2], 0)
    assert not hasattr(holder, "added")


def test_a_collection_keeps_its_identity_even_if_an_equal_one_took_its_place():
    slotted = Slotted()
    items, inner = slotted.items, slotted.others["b"]
    checkpoint = Checkpoint(slotted)
    slotted.items, slotted.others["b"] = [1, 2], {3}
    checkpoint.restore()
    assert slotted.items is items
    assert slotted.others["b"] is inner


def test_a_dictionary_gets_back_its_order():
    slotted = Slotted()
    checkpoint = Checkpoint(slotted)
    slotted.others["a"] = slotted.others.pop("a")
    assert list(slotted.others) == ["b", "a"]
    checkpoint.restore()
    assert list(slotted.others) == ["a", "b"]


def test_what_planned_actions_refer_to_is_found():
    method, closed_over, bound = Holder(), Slotted(), Slotted()

    def action() -> None:
        closed_over.count += 1

    checkpoint = Checkpoint([method.add, action, partial(print, bound)])
    method.add()
    action()
    bound.count = 3
    checkpoint.restore()
    assert (method.tally.count, closed_over.count, bound.count) == (0, 1, 1)


def test_it_can_be_returned_to_again_and_again():
    slotted = Slotted()
    checkpoint = Checkpoint(slotted)
    for _ in range(3):
        slotted.count += 1
        slotted.items.append(slotted.count)
        slotted.others.clear()
        checkpoint.restore()
        assert (slotted.count, slotted.items, list(slotted.others)) == (1, [1, 2], ["a", "b"])


def test_what_cannot_be_put_back_is_refused():
    with pytest.raises(AssertionError, match="what deque holds cannot be put back"):
        Checkpoint([deque()])
