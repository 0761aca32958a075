"""Where the fields of a plain YAML document are, without parsing it a second time.

Reporting about every workload of a large repository needs a position in nearly every document, and the strict reading
would take ten times as long as everything else together. This goes over the tokens of ``fastyaml`` and notes a position
for each key and item. What ``fastyaml`` would not read raises ``NotPlain`` and is left to ``strictyaml``; a property
test holds the two equal.
"""

from __future__ import annotations

from podqos.manifest import fastyaml
from podqos.manifest.fastyaml import NotPlain
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Position, position_at

_Positions = dict[FieldPath, Position]


def plain_positions(data: bytes, first_line: int = 1) -> _Positions:
    """Return where everything in the one document in ``data`` is, which begins on ``first_line``."""
    tokens = [*fastyaml.tokens(data)]
    if fastyaml.assemble(tokens) is None:
        raise NotPlain
    return _walk(tokens, first_line)


def nearest(positions: _Positions, path: FieldPath) -> Position:
    """Return where the field at ``path`` is, or its nearest ancestor that exists."""
    while path not in positions:
        path = path[:-1]
    return positions[path]


def _walk(tokens: list[fastyaml.Token], first_line: int) -> _Positions:
    """Return the positions in a document that can be read, whose nesting is therefore in order."""
    positions: _Positions = {}
    # The collection that tokens add to: its path, the column of its keys or dashes, the next index (-1: a mapping).
    path: FieldPath = ()
    column, index = -1, -1
    outer: list[tuple[FieldPath, int, int]] = []
    last: FieldPath = ()  # the last key
    number = first_line
    for head, _, _, _, block, _, other in tokens:
        line = number
        number += block.count("\n") or 1 + other.count("\n")
        _, key, (at, behind_dash, inner_dashes, _) = fastyaml.heads[head]
        if not key and not behind_dash:
            continue  # a blank line, a comment, or more of the value before
        while outer and at < column:
            path, column, index = outer.pop()
        if at > column or (behind_dash and index < 0):  # a new collection
            if not positions:
                positions[()] = (line, 1)
            else:
                outer.append((path, column, index))
                path = last
            column, index = at, 0 if behind_dash else -1
        elif index >= 0 and not behind_dash:
            path, column, index = outer.pop()
        if behind_dash:
            for inner_column in inner_dashes:
                positions[(*path, index)] = (line, inner_column + 1)
                outer.append((path, column, index + 1))
                path, column, index = (*path, index), inner_column, 0
            item = (*path, index)
            positions[item] = (line, behind_dash + 1)
            index += 1
            last = item
            if key:
                outer.append((path, column, index))
                path, column, index = item, behind_dash, -1
        if key:
            last = (*path, key)
            positions[last] = (line, column + 1)
        if other and other[0] in "[{":
            for steps, offset in fastyaml.flow_fields(other):
                positions[(*last, *steps)] = position_at(other, offset, (line, len(head) + 1))
    return positions
