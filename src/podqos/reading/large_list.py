"""A large list of pods, as ``kubectl get pods -o json`` or the API server prints it, cut so that all cores can read it.

All items of such a list begin alike, so ``},`` followed by the beginning of the first item is a boundary between two of
them. Each part is made a list of its own by writing brackets over the commas around it, in a private mapping of the
file: nothing is copied and the file is not touched. A cut in a wrong place leaves brackets unbalanced, which shows when
the part is read.

Whatever does not look like that, and whatever cannot be read at once, is left to the ordinary reading of the file.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from podqos.manifest.jsonreading import is_pod_list, live_pods
from podqos.model.pod import Pod

# Below this a second process costs more than it saves.
_LARGE_BYTES = 8 << 20
# Where the items begin, and the first item up to its metadata.
_ITEMS = re.compile(rb'"items"[ \t\r\n]*+:[ \t\r\n]*+(\[)([ \t\r\n]*+)(\{[^{}\[\]]{0,200}?"metadata"[ \t\r\n]*+:)')
_PEEK_BYTES = 65_536
_TAIL_BYTES = 4096


class ListPart(Struct, frozen=True):
    """One stretch of items: the offsets of the bytes that become its brackets."""

    text: mmap.mmap
    opening: int
    closing: int


def cut(path: str, count: int) -> list[ListPart]:
    """Return about ``count`` parts of the list in a file; none if it is not such a list or not worth it."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < _LARGE_BYTES:
                return []
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return []
    items = _ITEMS.search(text, 0, _PEEK_BYTES)
    closing = text.rfind(b"]", max(0, len(text) - _TAIL_BYTES))
    if items is None or closing < items.end():
        return []
    opening = items.start(1)
    if not is_pod_list(text[:opening] + b"[]" + text[closing + 1 :], items[3]):
        return []
    # Compact JSON is written with and without a space after the comma.
    separators = (b"}," + blank + items[3] for blank in dict.fromkeys((items[2], b"", b" ")))
    separator = next((found for found in separators if text.find(found, items.end()) >= 0), b"")
    bounds = [opening]
    for number in range(1, count) if separator else ():
        boundary = text.find(separator, len(text) * number // count)
        if boundary > bounds[-1]:
            bounds.append(boundary + separator.index(b","))
    bounds.append(closing)
    return [ListPart(text, *ends) for ends in pairwise(bounds)]


def read_part(part: ListPart) -> Sequence[Pod] | None:
    """Return the pods of one part; None if they are not all plain live pods."""
    text, opening, closing = part.text, part.opening, part.closing
    text[opening : opening + 1] = b"["
    text[closing : closing + 1] = b"]"
    return live_pods(memoryview(text)[opening : closing + 1])
