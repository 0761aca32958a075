"""What a document should say: its value with edits in it, and whether two values are the same.

Values are changed by copying along the path, so whatever an edit does not touch stays the very same object, and an edit
that changes nothing returns what it was given.
"""

from __future__ import annotations

from podqos.manifest.edits.refusal import EditRefusal, Reason
from podqos.manifest.plain import FieldPath, Number, Plain


def with_field(value: Plain, path: FieldPath, wanted: Plain, done: FieldPath = ()) -> Plain:
    """Return ``value`` with the field at ``path`` set, or removed where ``wanted`` is None; parents are made."""
    if not path:
        return value if same(value, wanted) else wanted
    step, rest = path[0], path[1:]
    if isinstance(value, list) or (value is None and isinstance(step, int)):
        return _with_item(value or [], path, wanted, done)
    if value is None:
        if wanted is None:
            return None
        value = {}
    if not isinstance(value, dict):
        raise EditRefusal(Reason.NOT_A_MAPPING, done)
    key = str(step)
    if wanted is None and (key not in value or not rest):
        return {name: item for name, item in value.items() if name != key} if key in value else value
    item = with_field(value.get(key), rest, wanted, (*done, key))
    return value if key in value and item is value[key] else {**value, key: item}


def _with_item(items: list[Plain], path: FieldPath, wanted: Plain, done: FieldPath) -> Plain:
    step, rest = path[0], path[1:]
    if not isinstance(step, int) or step >= len(items):
        raise EditRefusal(Reason.NO_SUCH_ITEM, done)
    if wanted is None and not rest:
        raise EditRefusal(Reason.UNSUPPORTED, (*done, step))
    item = with_field(items[step], rest, wanted, (*done, step))
    return items if item is items[step] else [*items[:step], item, *items[step + 1 :]]


def same(one: Plain, other: Plain) -> bool:
    """Whether two values say the same, numbers by type and text; the order of keys does not matter."""
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            waiting += [(item, right[key]) for key, item in left.items()]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            waiting += zip(left, right, strict=True)
        elif isinstance(left, Number) and isinstance(right, Number):
            if left.text != right.text:
                return False
        elif left != right:
            return False
    return True
