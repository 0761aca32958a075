"""Read a manifest: every pod in it, everything else it holds, and everything wrong with it.

A text is split into chunks (``text``). A chunk becomes plain values (``fastyaml`` or ``strictyaml``;
``jsonreading``), and these become objects and workloads (``objects``). YAML with something to report is read again by
the strict parser, which knows positions. So it is with every document, also one that holds neither pods nor policies:
kubectl fails on it if it is broken.

A manifest that lost its indentation, as when copied from a page, is one error instead of what follows from it. The
sign is a key of ``metadata`` that is next to it instead of below. Such a text is sometimes broken YAML and sometimes
an object full of unknown fields and of keys that are set twice.

Files are opened by the caller. Every text gives a ``Reading``. What a plain YAML file does not need is imported lazily.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from podqos.manifest.contents import Collector, Reading
from podqos.manifest.fastyaml import NotPlain, read_plain
from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import FieldProblem, Position, Severity, SyntaxProblem, position_at
from podqos.manifest.text import Chunk, begins_like_json, chunks, normalise

NO_DOCUMENTS = "contains no documents"
_OF_OBJECTS = "apiVersion"
_MARKED = re.compile(r".*[^\w\"'-]apiVersion|[+>]\s*apiVersion", re.DOTALL)
# Others, such as namespace and labels, are there by right in a Kustomization.
_BELOW_METADATA = ("name", "generateName")
_BESIDE_METADATA = re.compile(
    rf"(?m)^( *)metadata:[ \t]*(?:#.*)?\r?\n(?:\1[a-z]\w*:.*\n){{0,4}}?\1({'|'.join(_BELOW_METADATA)}):"
)


def read(source: str, data: bytes, *, full_statuses: bool = False) -> Reading:
    """Return everything in the text ``data``; ``source`` is the name to report it under.

    ``full_statuses``: pods that an API server keeps are ``FatedPod``, where their status is in order.
    """
    collector = Collector(source)
    try:
        text = normalise(data)
    except SyntaxProblem as problem:
        collector.add_syntax_problem(problem)
        return collector.reading()
    if begins_like_json(text):
        from podqos.manifest.jsonreading import read_live_pods

        pods = read_live_pods(source, text, full_statuses=full_statuses)
        if pods is not None:
            return pods
    for chunk in chunks(text):
        if chunk.notation == "json":
            from podqos.manifest.jsonreading import read_json

            not_json = read_json(text, chunk, collector, full_statuses=full_statuses)
            if not_json is not None:  # kubectl then tries YAML, too: {"kind": Pod, …}
                _read_yaml_strictly(text, replace(chunk, notation="yaml"), collector, not_json)
        else:
            _read_yaml(text, chunk, collector, full_statuses=full_statuses)
    if collector.is_empty:
        collector.add_problem(FieldProblem((), NO_DOCUMENTS, severity=Severity.WARNING), (1, 1))
    return collector.reading()


def _read_yaml(text: bytes, chunk: Chunk, collector: Collector, *, full_statuses: bool) -> None:
    own = text[chunk.start : chunk.end]
    plain = Collector("")
    try:
        value = read_plain(own, skims=True)
        objects = objects_in(value, name=collector.name_for_snippet)
        is_plain = not (_key_beside_metadata(value) or _has_marks(value))
        for found in objects if is_plain else ():
            what = interpret(found, full_status=full_statuses)
            if what.findings:
                is_plain = False
                break
            plain.add_object(found, what, found.place(chunk), _nowhere)
    except NotPlain:
        is_plain = False
    if not is_plain:
        _read_yaml_strictly(text, chunk, collector)
        return
    collector.count_document()
    collector.take(plain)


def _nowhere(_path: FieldPath) -> Position:
    raise AssertionError("only the strict reading reports")


def _read_yaml_strictly(text: bytes, chunk: Chunk, collector: Collector, not_json: SyntaxProblem | None = None) -> None:
    """Read a chunk, and report what is wrong with it; why it is ``not_json`` rather than why it is not YAML."""
    from podqos.manifest.strictyaml import read_documents

    try:
        for number, document in enumerate(read_documents(text[chunk.start : chunk.end], chunk.origin[0])):
            if key := _key_beside_metadata(document.value):
                collector.count_document()
                collector.add_syntax_problem(_lost_indentation(document.locate((key,)), key))
                continue
            for problem in document.problems:
                collector.add_syntax_problem(problem, is_strict=_configures_kubelet(document.value))
            if _has_marks(document.value):
                collector.count_document()
                collector.add_syntax_problem(_marked(text[chunk.start : chunk.end].decode(), chunk.origin[0]))
                continue
            if document.value is None:
                continue
            collector.count_document()
            if not document.has_value:
                continue
            for found in objects_in(document.value, name=collector.name_for_snippet):
                collector.add_object(found, interpret(found), found.place(chunk, number), document.locate)
    except SyntaxProblem as problem:
        lost = _lost_indentation_in(text[chunk.start : chunk.end].decode(errors="replace"), chunk.origin[0])
        collector.add_syntax_problem(not_json or lost or problem)


def _configures_kubelet(value: Plain) -> bool:
    """Whether every command that takes it would reject it."""
    from podqos.manifest.kubelet import holds_settings

    return holds_settings(value)


def _has_marks(value: Plain) -> bool:
    """Whether an object has something before its keys, such as the + of a diff; to YAML that is a part of them."""
    if isinstance(value, str):
        return _OF_OBJECTS in value
    return isinstance(value, dict) and _OF_OBJECTS not in value and any(map(_MARKED.fullmatch, value))


def _marked(text: str, first_line: int) -> SyntaxProblem:
    """Return the error about an object with marks before its keys."""
    from podqos.manifest.pasted import paste_hint

    fix = paste_hint(text, 0, 0, first_line) or "begin each line with its key, and write a space after the colon"
    return SyntaxProblem((first_line, 1), "this is not an object: no apiVersion at the beginning of a line", fix)


def _key_beside_metadata(value: Plain) -> str:
    """Return the key of ``metadata`` that is next to it in an object; empty if there is none."""
    if not isinstance(value, dict) or "kind" not in value or value.get("metadata", "") is not None:
        return ""
    return next((key for key in _BELOW_METADATA if key in value), "")


def _lost_indentation(position: Position, key: str) -> SyntaxProblem:
    """Return the error about the key that is next to ``metadata``."""
    what = f'the indentation is wrong: "{key}" is next to "metadata", not below it'
    return SyntaxProblem(position, what, "indent it, and everything below metadata and spec, by two spaces")


def _lost_indentation_in(text: str, first_line: int) -> SyntaxProblem | None:
    """Return the same of a text that is not YAML, and begins on ``first_line``; None: that is not why."""
    found = _BESIDE_METADATA.search(text)
    return None if found is None else _lost_indentation(position_at(text, found.start(2), (first_line, 1)), found[2])
