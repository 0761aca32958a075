"""Where the fields of a plain YAML document stand, without parsing it a second time.

Whoever reports about every workload of a large repository asks for a position in nearly every document, and the
strict reading would take ten times as long as everything else together. This goes over the lines as ``fastyaml``
does, which knows most of them already, and notes a position for each key and item. What ``fastyaml`` would not read,
and texts with scalars over several lines, raise ``NotPlain`` and are left to ``strictyaml``; a property test holds the
two equal.
"""

from __future__ import annotations

from functools import lru_cache

from podqos.manifest import fastyaml
from podqos.manifest.fastyaml import NotPlain
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Position

_Positions = dict[FieldPath, Position]


def plain_positions(data: bytes, first_line: int = 1) -> _Positions:
    """Return where everything in the one document in ``data`` stands, which begins on ``first_line``."""
    text = fastyaml.plain_text(data)
    if "\t" in text or fastyaml.spans_lines(text):
        raise NotPlain
    positions = _walk(text.split("\n"), first_line)
    if not positions:
        raise NotPlain
    return positions


def nearest(positions: _Positions, path: FieldPath) -> Position:
    """Return where the field at ``path`` stands, or its nearest ancestor that exists."""
    while path not in positions:
        path = path[:-1]
    return positions[path]


def _walk(lines: list[str], first_line: int) -> _Positions:
    positions: _Positions = {}
    # The collection that lines add to: its path, the column of its keys or dashes, the next index (-1: a mapping).
    path: FieldPath = ()
    column, index = -2, -1  # nothing stands there: a line that says nothing has column -1
    outer: list[tuple[FieldPath, int, int]] = []
    bare: FieldPath | None = None  # the key on the last line that said something, if a collection may follow
    text_before = ""
    remembered = fastyaml.remembered_lines
    for number, text in enumerate(lines, start=first_line):
        action, at, key, _, behind_dash = remembered[text]
        if at == column and index < 0 and action <= fastyaml.SETS_BARE_KEY:  # most lines
            field = (*path, key)
            if field in positions:
                raise NotPlain
            positions[field] = (number, column + 1)
            bare = field if action == fastyaml.SETS_BARE_KEY else None
            text_before = text
            continue
        if action == fastyaml.CONTINUES:
            if at <= column or not fastyaml.is_open_ended(text_before):
                raise NotPlain
        elif action != fastyaml.SAYS_NOTHING:
            if at < column:
                while outer and at < column:
                    path, column, index = outer.pop()
                if at != column:
                    raise NotPlain
                bare = None
            if at > column or (behind_dash and index < 0):
                if bare is not None:
                    outer.append((path, column, index))
                    path = bare
                elif not positions and at == 0:
                    positions[()] = (number, 1)
                else:
                    raise NotPlain
                column, index = at, 0 if behind_dash else -1
            elif index >= 0 and not behind_dash:
                if not outer or outer[-1][1] != at:
                    raise NotPlain
                path, column, index = outer.pop()
            if behind_dash:
                item = (*path, index)
                positions[item] = (number, behind_dash + 1)
                index += 1
                if key:
                    outer.append((path, column, index))
                    path, column, index = item, behind_dash, -1
            field = path if not key else (*path, key)
            if key:
                if field in positions:
                    raise NotPlain
                positions[field] = (number, column + 1)
            if action > fastyaml.TAKES_VALUE:
                for step, start in _flow_positions(text):
                    positions[(*(field if key else item), step)] = (number, start)
            bare = field if action in fastyaml.ENDS_IN_BARE_KEY else None
        text_before = text
    return positions


@lru_cache(maxsize=10_000)
def _flow_positions(text: str) -> tuple[tuple[str | int, int], ...]:
    """Return the keys or indexes in the flow collection of a line, each with its column."""
    return tuple(fastyaml.flow_columns(text))
