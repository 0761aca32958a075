"""Objects in the midst of a text: YAML or JSON after prose, between fences of Markdown, quoted in a mail, before a log.

Each object stays at its line, so that messages about it name the line of the text. One that cannot be parsed is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from podqos.errors import InputError
from podqos.manifest.documents import plain_documents
from podqos.objects.kubectl_text.json_parts import is_incomplete_pod, json_end, parts_of
from podqos.objects.kubectl_text.lines import Line, Lines
from podqos.objects.kubectl_text.pasted import NOTHING, Pasted

_MOST_FAILED = 100
_FIELDS = r"(?:apiVersion|kind|metadata|items)"
_YAML = re.compile(rf"(?:- )?{_FIELDS}:(?:\s|$)")
_TOP = re.compile(r"(?:- )?[a-z][A-Za-z]{1,60}:(?:\s|$)|- |#|---(?:\s|$)|\.\.\.$")
_KIND = re.compile(r"(?:- )?kind: [A-Z][A-Za-z]{1,60}$")
_JSON = re.compile(r"[\[{]")
_JSON_FIELDS = re.compile(rf'\s{{0,40}}\[?\s{{0,40}}\{{\s{{0,40}}"{_FIELDS}"\s{{0,4}}:')
_ENOUGH = frozenset(("apiVersion", "metadata", "items"))
_ELISION = re.compile(r"\s{0,80}(?:- )?(?:…|\.\.\.|\[\.\.\.\]|<snip>)\s{0,80}$")
_MOST_TRIED_BYTES = 1 << 16
"""A larger object is not parsed twice; what is wrong with it is reported."""
_AUDIT = "audit.k8s.io"


def embedded_objects(text: str) -> tuple[str, str]:
    """Return the objects of a text, each at its line, and the text without them; both have as many lines."""
    lines = Lines(text)
    objects, rest = [""] * len(lines), text.split("\n")
    is_first = True
    for start, end, own in _regions(lines):
        first = own[0]
        # The line before is none of an object's: it separates.
        if not is_first and start > 0 and not objects[start - 1].strip():
            objects[start - 1] = "---"
        elif not is_first and not first.startswith("---"):
            first = f"---\n{first}"
        is_first = False
        objects[start:end] = [first, *own[1:]]
        rest[start:end] = [""] * (end - start)
    return "\n".join(objects), "\n".join(rest)


def _regions(lines: Sequence[Line]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield where objects begin and end, and their lines without what is around them."""
    place = failed = 0
    while place < len(lines) and failed < _MOST_FAILED:
        line = lines[place]
        if not line.is_break and _YAML.match(line.text):
            end = _end_of_yaml(lines, place)
            own = [_dedented(other, line.indent) for other in lines[place:end]]
            if _is_yaml(own):
                yield place, end, _without_dashes(own)
            else:
                failed += 1
            place = end
            continue
        if not line.is_break and _JSON.match(line.text):
            ahead = "\n".join(other.text for other in lines[place : place + 4])
            if _JSON_FIELDS.match(ahead) and _AUDIT not in line.text[:4096]:
                end = _end_of_json(lines, place)
                if end > place:
                    yield place, end, [_dedented(other, line.indent) for other in lines[place:end]]
                    place = end
                    continue
                failed += 1
        place += 1


def incomplete_pods(lines: Sequence[Line], start: int) -> tuple[Pasted, int]:
    """Return the pods in YAML that begins at a line, of which parts were left out, and where the text goes on.

    All that is left may be a status.
    """
    is_status = lines[start].text == "status:"
    if not (is_status or _YAML.match(lines[start].text)):
        return NOTHING, start
    end = _end_of_yaml(lines, start)
    data = "\n".join(_dedented(line, lines[start].indent) for line in lines[start:end]).encode()
    if len(data) > _MOST_TRIED_BYTES or b"status" not in data:
        return NOTHING, start
    try:
        values = [document.value for document in plain_documents("", data)]
    except InputError:
        return NOTHING, start
    paste = parts_of(values) if is_status or any(map(is_incomplete_pod, values)) else NOTHING
    return (paste, end) if paste is not NOTHING else (NOTHING, start)


def _without_dashes(own: list[str]) -> list[str]:
    """Return the objects of a list as documents, in as many strings as there were lines."""
    if not own[0].startswith("- ") or not all(line.startswith(("- ", "  ")) for line in own if line):
        return own
    starts = [place for place, line in enumerate(own) if line.startswith("- ")]
    return ["---\n" * (place in starts[1:]) + line[2:] for place, line in enumerate(own)]


def _dedented(line: Line, by: int) -> str:
    return " " * max(0, line.indent - by) + line.text if line.text else ""


def _end_of_yaml(lines: Sequence[Line], start: int) -> int:
    """Return where an object ends: at a fence, or at a line that is no further field of it."""
    base, end = lines[start].indent, start + 1
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if line.is_break:
            break
        if line.text and line.indent <= base and not (line.indent == base and _TOP.match(line.text)):
            break
        if line.text:
            end = place + 1
    return end


def _is_yaml(lines: Sequence[str]) -> bool:
    if not any(_KIND.match(line.strip()) for line in lines):
        return False
    data = "\n".join(lines).encode()
    if len(data) > _MOST_TRIED_BYTES:
        heads = sum(line.startswith("apiVersion:") for line in lines)
        marks = sum(line.startswith("---") for line in lines)
        return heads <= marks + 1 and not any(_ELISION.match(line) for line in lines)
    try:
        documents = plain_documents("", data)
    except InputError:
        return False
    values = [document.value for document in documents]
    if any(isinstance(value, dict) and _ENOUGH.isdisjoint(value) for value in values):
        return False  # what an event is about, and the like
    return all(isinstance(value, dict | list) and not is_incomplete_pod(value) for value in values)


def _end_of_json(lines: Sequence[Line], start: int) -> int:
    """Return the line after a JSON value; the one it begins at if it is none."""
    end, text = json_end(lines, start, len(lines))
    if '"kind"' not in text:
        return start
    try:
        value, length = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return start
    is_event = isinstance(value, dict) and "kind" not in value and "involvedObject" in value  # as exporters write it
    return end if not (text[length:].strip() or is_event or is_incomplete_pod(value)) else start
