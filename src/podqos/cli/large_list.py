"""A large list of pods, as ``kubectl get pods -o json`` prints it, cut so that every core reads a part of it.

kubectl indents by four, so the items of a list stand at eight: a line ``        },`` followed by ``        {`` is a
boundary between two of them and cannot be anything else (text in JSON holds no line ends). Each part is made a list of
its own by writing brackets over the commas around it, in a private mapping of the file: nothing is copied and the file
is not touched.

Whatever does not look like that, and whatever cannot be read at once, is left to the ordinary reading of the file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from podqos.manifest.jsonreading import live_pods
from podqos.model.pod import Pod

# Below this a second process costs more than it saves.
_LARGE_BYTES = 8 << 20
_BOUNDARY = b"\n        },\n        {\n"
_COMMA = _BOUNDARY.index(b",")
_HEAD = b'{\n    "apiVersion": "v1",\n    "items": ['
_TAILS = (b'\n    ],\n    "kind": "List",', b'\n    ],\n    "kind": "PodList",')
_TAIL_BYTES = 4096


class Part(Struct, frozen=True):
    """One stretch of items: the offsets of the bytes that become its brackets."""

    text: mmap.mmap
    opening: int
    closing: int


def cut(path: str, count: int) -> list[Part]:
    """Return about ``count`` parts of the list in a file; none if it is not such a list or not worth it."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < _LARGE_BYTES:
                return []
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return []
    end = max(text.rfind(tail, max(0, len(text) - _TAIL_BYTES)) for tail in _TAILS)
    if text[: len(_HEAD)] != _HEAD or end < 0:
        return []
    bounds = [len(_HEAD) - 1]
    for number in range(1, count):
        boundary = text.find(_BOUNDARY, len(text) * number // count)
        if boundary >= 0 and boundary + _COMMA > bounds[-1]:
            bounds.append(boundary + _COMMA)
    bounds.append(end + _TAILS[0].index(b"]"))
    return [Part(text, opening, closing) for opening, closing in pairwise(bounds)]


def read_part(part: Part) -> Sequence[Pod] | None:
    """Return the pods of one part; None if they are not all plain live pods."""
    text, opening, closing = part.text, part.opening, part.closing
    text[opening : opening + 1] = b"["
    text[closing : closing + 1] = b"]"
    return live_pods(memoryview(text)[opening : closing + 1])
