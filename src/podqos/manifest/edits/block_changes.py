"""Changes between lines: YAML's block style, where indentation holds things together.

What is added goes on lines of its own below the last member, what is removed takes its lines along, and comments stay
where they are unless they are among the lines of something that goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from podqos.manifest.edits.nodes import Member, Splice, YamlKind, YamlNode, column_of, line_end
from podqos.manifest.edits.writing import BlockStyle, block_lines, is_empty, is_scalar, scalar
from podqos.manifest.plain import Plain

_COLON = re.compile(r"[ \t]*:")
_COMMENT_LINE = re.compile(r"\n( *)#[^\n]*")
_ANCHOR = re.compile(r"(?:[ \t]*&[^\s,\[\]{}]+)?")


def indentation(text: str, root: YamlNode) -> BlockStyle:
    """Return how a document indents: as it does most often."""
    units: Counter[int] = Counter()
    offsets: Counter[int] = Counter()
    for node in root.below():
        if node.kind is not YamlKind.MAPPING or node.is_flow:
            continue
        for member in node.members:
            deeper = column_of(text, member.value.start) - column_of(text, member.start)
            if member.value.is_block:
                (units if member.value.kind is YamlKind.MAPPING else offsets)[deeper] += 1
    return BlockStyle(_most_common(units, 2), _most_common(offsets, 0))


def _most_common(counted: Counter[int], default: int) -> int:
    return min(counted, key=lambda columns: (-counted[columns], columns), default=default)


def colon_end(text: str, member: Member) -> int | None:
    """Return what follows the colon of a key, or None if there is none."""
    colon = _COLON.match(text, member.key_end)
    return None if colon is None else colon.end()


def add_members(text: str, column: int, last: Member, new: Mapping[str, Plain], style: BlockStyle) -> Iterator[Splice]:
    """Add members below ``last`` and the comments that are indented like what is in it."""
    end = line_end(text, last.value.end)
    while (comment := _COMMENT_LINE.match(text, end)) and len(comment[1]) > column:
        end = comment.end()
    yield Splice(end, end, "".join(f"\n{line}" for line in block_lines(new, column, style)))


def replace_value(text: str, member: Member, after_colon: int, new: Plain, style: BlockStyle) -> Iterator[Splice]:
    """Put another value behind a key."""
    node = member.value
    if is_scalar(new) or is_empty(new):
        written = scalar(new, node.style)
        if node.is_block:
            anchor = _ANCHOR.match(text, after_colon)
            assert anchor is not None
            yield Splice(anchor.end(), anchor.end(), f" {written}")
            yield Splice(line_end(text, after_colon), line_end(text, node.end), "")
        else:
            yield Splice(node.start, node.end, written if node.end > node.start else f" {written}")
        return
    _, *lines = block_lines({"": new}, column_of(text, member.start), style)
    below = "".join(f"\n{line}" for line in lines)
    start = len(text[: node.start].rstrip(" \t"))
    if node.is_block:
        yield Splice(line_end(text, after_colon), line_end(text, node.end), below)
    elif text[start - 1] == "\n":
        yield Splice(start - 1, node.end, below)
    else:
        if node.end > node.start:
            yield Splice(start, node.end, "")
        end = line_end(text, node.end)
        yield Splice(end, end, below)


def remove_members(text: str, node: YamlNode, removed: Iterable[Member]) -> Iterator[Splice]:
    """Remove members with their lines; at least one stays."""
    gone = {id(member) for member in removed}
    first = node.members[0]
    kept = next(member for member in node.members if id(member) not in gone)
    shares_line = bool(text[first.start - column_of(text, first.start) : first.start].strip(" \t"))
    if shares_line and id(first) in gone:
        yield Splice(first.start, kept.start, "")
    for member in node.members:
        if id(member) not in gone or (shares_line and member.start < kept.start):
            continue
        start = member.start - column_of(text, member.start)
        end = line_end(text, member.value.end)
        yield Splice(start, min(end + 1, len(text)), "")
