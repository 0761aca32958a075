"""A moment of a simulation that can be returned to, as often as needed.

The objects of a simulation refer to each other, also through the actions that they have planned, so a copy would have
to be a copy of everything. Instead, what every object holds is noted once, and put back where it has changed. That
takes as long as looking at all of them, however much has happened since. Frozen structs are values: they never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from operator import attrgetter, setitem
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from msgspec import Struct

_VALUES = (int, float, str, bytes, type(None), Enum, type, BuiltinFunctionType)
_COLLECTIONS = (list, set, dict)
_Getter = Callable[[Any], tuple[Any, ...]]


class Checkpoint:
    """What everything that can be reached from some objects holds now."""

    def __init__(self, *roots: object) -> None:
        self._objects: list[tuple[Any, _Getter, tuple[str, ...], tuple[Any, ...]]] = []
        self._lists: list[tuple[list[Any], tuple[Any, ...]]] = []
        self._sets: list[tuple[set[Any], frozenset[Any]]] = []
        self._dicts: list[tuple[dict[Any, Any], tuple[Any, ...]]] = []
        self._collections: list[tuple[Callable[[Any, Any, Any], None], Any, Any, Any]] = []
        """Collections that others hold. One may equal another that has taken its place, and is not the same."""
        getters: dict[type, tuple[_Getter, tuple[str, ...]]] = {}
        known: dict[int, object] = {}
        found: list[object] = list(roots)
        while found:
            each = found.pop()
            if id(each) not in known and not isinstance(each, _VALUES):
                known[id(each)] = each
                found += self._note(each, getters)

    def restore(self) -> None:
        """Put everything back."""
        for each, getter, names, held in self._objects:
            if getter(each) != held:
                for name, value in zip(names, held, strict=True):
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
        for put, holder, key, value in self._collections:
            put(holder, key, value)

    def _note(self, each: object, getters: dict[type, tuple[_Getter, tuple[str, ...]]]) -> Iterable[object]:
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
                self._note_collections(setitem, each, each.items())
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
        getter, names = getters[kind]
        held = getter(each)
        if names:
            self._objects.append((each, getter, names, held))
            self._note_collections(setattr, each, zip(names, held, strict=True))
        return (*held, getattr(each, "__dict__", None))

    def _note_collections(
        self, put: Callable[[Any, Any, Any], None], holder: object, held: Iterable[tuple[Any, Any]]
    ) -> None:
        self._collections += ((put, holder, key, value) for key, value in held if isinstance(value, _COLLECTIONS))


def _getter(kind: type) -> tuple[_Getter, tuple[str, ...]]:
    """Return how to get what an object holds beside its ``__dict__``, and the names of that."""
    if issubclass(kind, Struct):
        names = () if kind.__struct_config__.frozen else kind.__struct_fields__
    else:
        names = tuple(name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ()))
        is_known = names or kind.__module__.startswith("podqos.")
        assert is_known, f"what {kind.__qualname__} holds cannot be put back"
    match names:
        case ():
            return lambda _: (), ()
        case (name,):
            one = attrgetter(name)
            return lambda each: (one(each),), names
        case _:
            return attrgetter(*names), names
