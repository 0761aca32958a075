"""Computes the text changes that turn a document's value into the wanted one.

The two values are walked together with the nodes; wherever they are the same object nothing is looked at. Places
where a local change would not be local (anchors that are used elsewhere, merge keys) or where the notation is out of
the ordinary are rejected.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.edits import block_changes, flow_changes
from podqos.manifest.edits.nodes import Member, Splice, YamlKind, YamlNode, column_of
from podqos.manifest.edits.refusal import EditRefusal, Reason
from podqos.manifest.edits.writing import BlockStyle, FlowStyle, flow_value, is_scalar
from podqos.manifest.plain import FieldPath, Plain


class _Slot(Struct, frozen=True):
    """Where a value is: behind a key between lines, or anywhere in brackets, in a list or alone."""

    member: Member | None = None
    """The key, if it is one between lines."""
    flow: FlowStyle = FlowStyle()
    """How brackets around it are laid out."""


def splices(text: str, root: YamlNode, old: Plain, new: Plain, *, is_json: bool) -> list[Splice]:
    """Return how to change a text where ``root`` says ``old``, so that it says ``new``."""
    walk = _Walk(text, root, is_json=is_json)
    walk.change(root, old, new, (), _Slot(flow=FlowStyle(is_json=is_json)))
    # What goes to the same place keeps its order: the inner of two mappings that end together comes first.
    return _apart(text, sorted(walk.splices, key=lambda splice: (splice.start, splice.end)))


def _apart(text: str, found: list[Splice]) -> list[Splice]:
    """Let removals of lines take the line end before them where the one behind them is needed, or is not there."""
    joined: list[Splice] = []
    for splice in found:
        last = joined[-1] if joined else None
        if last is not None and not last.text and not splice.text and last.end == splice.start:
            joined[-1] = Splice(last.start, splice.end, "")
        else:
            joined.append(splice)
    additions = {splice.start for splice in joined if splice.start == splice.end}
    return [_shifted(text, splice, additions) for splice in joined]


def _shifted(text: str, splice: Splice, additions: set[int]) -> Splice:
    if splice.text or splice.start == splice.end or text[splice.start - 1 : splice.start] != "\n":
        return splice
    if splice.end - 1 in additions:
        return Splice(splice.start - 1, splice.end - 1, "")
    is_last_line = splice.end == len(text) and text[-1] != "\n"
    return Splice(splice.start - 1, splice.end, "") if is_last_line else splice


class _Walk:
    def __init__(self, text: str, root: YamlNode, *, is_json: bool) -> None:
        self._text = text
        self._block = BlockStyle() if is_json else block_changes.indentation(text, root)
        self._shared = {node.anchor for node in root.below() if node.kind is YamlKind.ALIAS}
        self.splices: list[Splice] = []

    def change(self, node: YamlNode, old: Plain, new: Plain, path: FieldPath, slot: _Slot) -> None:
        """Make the node say ``new``, which is another object than ``old``."""
        self._check(node, old, new, path)
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and node.kind is YamlKind.SEQUENCE:
            for index, item in enumerate(node.items):
                if old[index] is not new[index]:
                    self.change(item, old[index], new[index], (*path, index), _Slot(flow=slot.flow))
        elif isinstance(old, dict) and isinstance(new, dict) and node.kind is YamlKind.MAPPING:
            self._change_mapping(node, old, new, path, slot)
        else:
            self._replace(node, new, path, slot)

    def _check(self, node: YamlNode, old: Plain, new: Plain, path: FieldPath) -> None:
        if node.has_tag:
            raise EditRefusal(Reason.TAGGED, path, node.start)
        if node.kind is YamlKind.ALIAS:
            if not (is_scalar(old) and is_scalar(new)):
                raise EditRefusal(Reason.SHARED, path, node.start, str(node.anchor))
        elif node.anchor is not None and node.anchor in self._shared:
            raise EditRefusal(Reason.SHARED, path, node.start, node.anchor)

    def _change_mapping(
        self, node: YamlNode, old: dict[str, Plain], new: dict[str, Plain], path: FieldPath, slot: _Slot
    ) -> None:
        members = self._members(node, path)
        for key in [*old, *new]:
            if key not in members and key in old and old[key] is not new.get(key):
                raise self._without_member(node, key, path)
        removed = [member for key, member in members.items() if key not in new]
        added = {key: value for key, value in new.items() if key not in old}
        kept = [member for member in node.members if all(member is not gone for gone in removed)]
        for member in removed:
            self._check_removal(member.value, path)
        flow = flow_changes.flow_style(self._text, node, slot.flow) if node.is_flow else slot.flow
        if not kept and removed and node.is_flow:
            outer = replace(
                flow, line_indent=flow_changes.line_indent(self._text, node.start) if flow.line_indent else None
            )
            self.splices.append(Splice(node.start, node.end, flow_value(new, outer)))
            return
        if not kept:
            self._replace(node, new, path, slot)
            return
        for key, member in members.items():
            if key in new and old[key] is not new[key]:
                inner = _Slot(flow=flow) if node.is_flow else _Slot(member)
                self.change(member.value, old[key], new[key], (*path, key), inner)
        if removed:
            self.splices += (
                flow_changes.remove_members(node, removed)
                if node.is_flow
                else block_changes.remove_members(self._text, node, removed)
            )
        if added and node.is_flow:
            self.splices += flow_changes.add_members(self._text, node, kept[-1], added, flow)
        elif added:
            self._add_lines(node, kept[-1], added, path)

    def _add_lines(self, node: YamlNode, last: Member, added: dict[str, Plain], path: FieldPath) -> None:
        named = next((member for member in node.members if member.key is not None or member.is_merge), None)
        if named is None:
            raise EditRefusal(Reason.COMPLEX_KEY, path, node.start)
        quote = flow_changes.value_quote(self._text, node)
        style = replace(self._block, key_quote=named.key_style, value_quote=quote)
        column = column_of(self._text, named.start)
        self.splices += block_changes.add_members(self._text, column, last, added, style)

    def _members(self, node: YamlNode, path: FieldPath) -> dict[str, Member]:
        """Return the members with simple keys."""
        counted = Counter(member.key for member in node.members if member.key is not None)
        for key, count in counted.items():
            if count > 1:
                raise EditRefusal(Reason.DUPLICATE_KEY, (*path, key), node.start)
        return {member.key: member for member in node.members if member.key is not None}

    def _without_member(self, node: YamlNode, key: str, path: FieldPath) -> EditRefusal:
        """Return why a key that the mapping has is not among its members."""
        is_merged = any(member.is_merge for member in node.members)
        is_complex = any(member.key is None and not member.is_merge for member in node.members)
        reason = Reason.MERGED if is_merged and not is_complex else Reason.COMPLEX_KEY
        return EditRefusal(reason, (*path, key), node.start)

    def _replace(self, node: YamlNode, new: Plain, path: FieldPath, slot: _Slot) -> None:
        self._check_removal(node, path)
        if slot.member is None:
            if node.is_block:
                raise EditRefusal(Reason.UNSUPPORTED, path, node.start)
            written = flow_value(new, replace(slot.flow, value_quote=node.style))
            self.splices.append(Splice(node.start, node.end, written if node.end > node.start else f" {written}"))
            return
        after_colon = block_changes.colon_end(self._text, slot.member)
        if after_colon is None:
            raise EditRefusal(Reason.COMPLEX_KEY, path, slot.member.start)
        self.splices += block_changes.replace_value(self._text, slot.member, after_colon, new, self._block)

    def _check_removal(self, node: YamlNode, path: FieldPath) -> None:
        """Refuse to remove an anchor that is used elsewhere."""
        for below in node.below():
            if below.kind is not YamlKind.ALIAS and below.anchor is not None and below.anchor in self._shared:
                raise EditRefusal(Reason.SHARED, path, below.start, below.anchor)
