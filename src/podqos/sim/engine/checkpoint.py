"""A moment of a simulation that can be returned to, as often as needed.

The objects of a simulation refer to each other, also through the actions that they have planned, so a copy would have to
be a copy of everything. Instead, what every object holds is noted once, and put back where it has changed. That takes
as long as looking at all of them, however much has happened since. Frozen structs are values: they never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from msgspec import Struct

_VALUES = (int, float, str, bytes, type(None), Enum, type, BuiltinFunctionType, range)
_Getter = Callable[[Any], tuple[Any, ...]]


class Checkpoint:
    """What everything that can be reached from some objects holds now."""

    def __init__(self, *roots: object) -> None:
        self._objects: list[tuple[Any, _Getter, tuple[Any, ...]]] = []
        self._lists: list[tuple[list[Any], tuple[Any, ...]]] = []
        self._sets: list[tuple[set[Any], frozenset[Any]]] = []
        self._dicts: list[tuple[dict[Any, Any], tuple[Any, ...]]] = []
        getters: dict[type, _Getter | None] = {}
        known: dict[int, object] = {}
        found: list[object] = list(roots)
        while found:
            each = found.pop()
            if id(each) in known or isinstance(each, _VALUES):
                continue
            known[id(each)] = each
            found += self._note(each, getters)

    def _note(self, each: object, getters: dict[type, _Getter | None]) -> Iterable[object]:
        """Note what an object holds, and return that."""
        match each:
            case tuple() | frozenset():
                return each
            case list():
                self._lists.append((each, tuple(each)))
                return each
            case set():
                self._sets.append((each, frozenset(each)))
                return each
            case dict():
                self._dicts.append((each, tuple(each.items())))
                return (*each, *each.values())
            case partial():
                return (each.func, *each.args, *each.keywords.values())
            case MethodType():
                return (each.__self__, each.__func__)
            case FunctionType():
                return [cell.cell_contents for cell in each.__closure__ or ()]
        kind = type(each)
        if kind not in getters:
            getters[kind] = _getter(kind)
        getter = getters[kind]
        held: tuple[object, ...] = ()
        if getter is not None:
            held = getter(each)
            self._objects.append((each, getter, held))
        own = getattr(each, "__dict__", None)
        return held if own is None else (*held, own)

    def restore(self) -> None:
        """Put everything back."""
        for each, getter, held in self._objects:
            if getter(each) != held:
                for name, value in zip(_names(type(each)), held, strict=True):
                    setattr(each, name, value)
        for items, were in self._lists:
            items[:] = were
        for members, had in self._sets:
            if members != had:
                members.clear()
                members.update(had)
        for mapping, pairs in self._dicts:
            if tuple(mapping.items()) != pairs:
                mapping.clear()
                mapping.update(pairs)


def _names(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class; an ordinary object has its ``__dict__`` instead."""
    if issubclass(kind, Struct):
        return () if kind.__struct_config__.frozen else kind.__struct_fields__
    return tuple(name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ()))


def _getter(kind: type) -> _Getter | None:
    match _names(kind):
        case ():
            return None
        case (name,):
            one = attrgetter(name)
            return lambda each: (one(each),)
        case names:
            return attrgetter(*names)
