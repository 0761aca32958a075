"""Changes inside brackets: JSON, and YAML's flow style.

What is added goes behind the last member, laid out as that one is: on its line, or on a line of its own with the same
indentation, with the same spaces around commas and colons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from podqos.manifest.edits.nodes import Member, Splice, YamlKind, YamlNode, line_end
from podqos.manifest.edits.writing import FlowStyle, flow_member, reads_as_itself
from podqos.manifest.plain import Plain

_BEHIND_VALUE = re.compile(r"[ \t]*(,?)[ \t]*(?:(?<=[ \t])#[^\n]*)?(?=\n|\Z)")
_ONE_LINE_GAP = re.compile(r"[ \t]*:[ \t]*")


def flow_style(text: str, node: YamlNode, outer: FlowStyle) -> FlowStyle:
    """Return how a mapping in brackets is laid out; ``outer`` is how the one around it is."""
    if not node.members:
        return outer
    last = node.members[-1]
    indent = _indent_before(text, last.start)
    unit = outer.unit
    if indent is not None:
        around = line_indent(text, node.start)
        unit = indent.removeprefix(around) or unit
    gap = text[last.key_end : last.value.start]
    colon = gap if _ONE_LINE_GAP.fullmatch(gap) else outer.colon
    comma = "," if colon.endswith(":") else ", "
    if len(node.members) > 1:
        between = text[node.members[-2].value.end : last.start]
        comma = between if re.fullmatch(r"[ \t]*,[ \t]*", between) else comma
    return FlowStyle(
        outer.is_json, indent, unit, comma, colon, key_quote=last.key_style, value_quote=value_quote(text, node)
    )


def value_quote(text: str, node: YamlNode) -> str:
    """Return the quotes that a mapping puts around texts that do not need them."""
    for member in reversed(node.members):
        value = member.value
        if value.kind is YamlKind.SCALAR and value.style in ("'", '"'):
            if reads_as_itself(text[value.start + 1 : value.end - 1]):
                return value.style
        elif value.kind is YamlKind.SCALAR and value.end > value.start:
            return ""
    return ""


def add_members(
    text: str, node: YamlNode, last: Member, new: Mapping[str, Plain], style: FlowStyle
) -> Iterator[Splice]:
    """Add members behind ``last``, the last one that is kept."""
    written = [flow_member(key, value, style) for key, value in new.items()]
    end = last.value.end
    if style.line_indent is None:
        yield Splice(end, end, "".join(f"{style.comma}{member}" for member in written))
        return
    lines = ",".join(f"\n{style.line_indent}{member}" for member in written)
    rest = _BEHIND_VALUE.match(text, end)
    if style.is_json or rest is None or last is not node.members[-1]:
        yield Splice(end, end, f",{lines}")
        return
    behind = line_end(text, end)
    if rest[1]:
        yield Splice(behind, behind, f"{lines},")
    else:
        yield Splice(end, end, ",")
        yield Splice(behind, behind, lines)


def remove_members(node: YamlNode, removed: Iterable[Member]) -> Iterator[Splice]:
    """Remove members together with their commas; at least one stays."""
    gone = {id(member) for member in removed}
    members = node.members
    kept_before = False
    for index, member in enumerate(members):
        if id(member) not in gone:
            kept_before = True
        elif kept_before:
            yield Splice(members[index - 1].value.end, member.value.end, "")
        else:
            yield Splice(member.start, members[index + 1].start, "")


def _indent_before(text: str, offset: int) -> str | None:
    """Return the spaces before an offset if nothing else is there on its line."""
    start = text.rfind("\n", 0, offset) + 1
    before = text[start:offset]
    return before if start and not before.strip(" \t") else None


def line_indent(text: str, offset: int) -> str:
    """Return what the line of an offset begins with."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
