"""One chunk of a text being edited: its current values, the wanted values, and the changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from podqos.manifest.decode import PLAIN_DECODER, REFUSALS
from podqos.manifest.edits.nodes import Splice, YamlKind, YamlNode, json_value, yaml_document
from podqos.manifest.edits.refusal import EditRefusal, Reason
from podqos.manifest.edits.splices import splices
from podqos.manifest.edits.values import with_field
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.strictyaml import read_documents
from podqos.manifest.text import Chunk, decode

_NOT_BLANK = re.compile(r"[^ \t\r\n]")
_TEMPLATE = "{{"


def chunk_values(text: bytes, chunk: Chunk) -> list[Plain]:
    """Return what the documents of a chunk say; raise ``EditRefusal`` if one of them is not in order."""
    piece = text[chunk.start : chunk.end]
    try:
        decode(piece, chunk.origin)
        if chunk.notation == "json":
            return [PLAIN_DECODER.decode(piece)]
        values = []
        for document in read_documents(piece):
            for problem in document.problems:
                raise problem
            values.append(document.value)
    except (SyntaxProblem, *REFUSALS):
        raise EditRefusal(Reason.UNREADABLE) from None
    return values


class EditableChunk:
    """Collects edits of fields, and returns the text changes they need."""

    def __init__(self, text: bytes, chunk: Chunk) -> None:
        self.chunk = chunk
        self._values = chunk_values(text, chunk)
        self.string = text[chunk.start : chunk.end].decode()
        self.meant = list(self._values)
        """The wanted value of each document."""

    def want(self, document: int, path: FieldPath, value: Plain) -> None:
        """Set a field, or remove it where ``value`` is None."""
        self.meant[document] = with_field(self.meant[document], path, value)

    def splices(self, document: int, objects: Iterable[FieldPath]) -> list[Splice]:
        """Return how to change the text of a document, of which ``objects`` are edited; raise ``EditRefusal``."""
        old, new = self._values[document], self.meant[document]
        if old is new:
            return []
        is_json = self.chunk.notation == "json"
        if is_json:
            begin = _NOT_BLANK.search(self.string)
            assert begin is not None
            root = json_value(self.string, begin.start(), old, new)
        else:
            root = yaml_document(self.string, document)
        for path in dict.fromkeys(objects):
            self._refuse_template(_node_at(root, path), path)
        return splices(self.string, root, old, new, is_json=is_json)

    def _refuse_template(self, node: YamlNode, path: FieldPath) -> None:
        """Reject an object that is rendered later. Block scalars may hold templates of anything."""
        for start, end in _outside_block_scalars(node):
            found = self.string.find(_TEMPLATE, start, end)
            if found >= 0:
                raise EditRefusal(Reason.TEMPLATE, path, found)


def _node_at(node: YamlNode, path: FieldPath) -> YamlNode:
    """Return the node at a path, or the last one on the way that is written out."""
    for step in path:
        below: list[YamlNode] = [member.value for member in node.members if member.key == step]
        if node.kind is YamlKind.SEQUENCE and isinstance(step, int):
            below = node.items[step : step + 1]
        if len(below) != 1:
            break
        node = below[0]
    return node


def _outside_block_scalars(node: YamlNode) -> Iterator[tuple[int, int]]:
    start = node.start
    scalars = [below for below in node.below() if below.style in ("|", ">")]
    for scalar in sorted(scalars, key=lambda below: below.start):
        yield start, scalar.start
        start = scalar.end
    yield start, node.end
