"""``podqos explain -o csv`` of a large list of pods, as ``kubectl get pods -o json`` or the API server prints it.

It is the one answer with a way of its own: a whole cluster's list is read, decided and printed by all cores in less
than half the time that ``json.load`` takes, which is three times as fast as the way of all other outputs.

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
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct

from podqos.cli.output import print_csv, say_assumptions
from podqos.cli.streams import for_programs
from podqos.controls import cell
from podqos.manifest.jsonreading import is_pod_list, live_pods
from podqos.model.assumption import of_version
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.objects.assumptions import node_memory
from podqos.orders.decision import ExplainSettings, PodDecision, decide
from podqos.parallel import fan_out, usable_cores
from podqos.qos.cgroup_settings import stock_node
from podqos.questions.explain import CSV_HEADERS

# Below this a second process costs more than it saves.
_LARGE_BYTES = 8 << 20
# Where the items begin, and the first item up to its metadata.
_ITEMS = re.compile(rb'"items"[ \t\r\n]*+:[ \t\r\n]*+(\[)([ \t\r\n]*+)(\{[^{}\[\]]{0,200}?"metadata"[ \t\r\n]*+:)')
_PEEK_BYTES = 65_536
_TAIL_BYTES = 4096


# Names as Kubernetes has them need no quotes, and are no formulas.
_PLAIN_ROWS = re.compile(r"(?:(?:[a-z0-9][a-z0-9.-]*,){3}[A-Za-z]+,(?:-?[0-9]+)?\n)*")


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


def explained_list(
    path: str, memory_bytes: int | None, profile: Profile, *, has_header: bool = True
) -> set[QOSClass] | None:
    """Print a row per container, and return the classes of the pods; None where the file is to be read as a whole."""
    memory_bytes, assumptions = node_memory(memory_bytes, ())
    settings = ExplainSettings(stock_node(memory_bytes, profile=profile), profile)
    parts = cut(path, usable_cores())
    found = [each for each in fan_out(partial(_explained, settings=settings), parts, len(parts)) if each is not None]
    if not parts or len(found) != len(parts):
        return None
    for_programs()
    print_csv(CSV_HEADERS if has_header else (), (), has_header=has_header)
    sys.stdout.writelines(rows for rows, _ in found)
    sys.stdout.flush()
    say_assumptions((*of_version(profile), *assumptions))
    return {qos_class for _, classes in found for qos_class in classes}


def _explained(part: ListPart, settings: ExplainSettings) -> tuple[str, set[QOSClass]] | None:
    """Return the rows of one part and the classes in them; None where the file has to be read as a whole."""
    pods = read_part(part)
    if pods is None:
        return None
    decisions = [decide(pod, settings) for pod in pods]
    return _rows(decisions), {decision.qos_class for decision in decisions}


def _rows(decisions: Sequence[PodDecision]) -> str:
    lines = []
    for decision in decisions:
        metadata, qos_class = decision.pod.metadata, decision.qos_class.value
        start = f"{metadata.namespace_or_default},{metadata.name or metadata.generate_name}"
        is_windows = decision.pod.is_windows
        lines += [
            f"{start},{score.container},{qos_class},{'' if is_windows else score.value}\n"
            for score in decision.oom_scores
        ]
    text = "".join(lines)
    if _PLAIN_ROWS.fullmatch(text):
        return text
    from csv import writer
    from io import StringIO

    quoted = StringIO()
    writer(quoted, lineterminator="\n").writerows(
        map(
            cell,
            (
                decision.pod.metadata.namespace_or_default,
                decision.pod.metadata.name or decision.pod.metadata.generate_name,
                score.container,
                decision.qos_class.value,
                "" if decision.pod.is_windows else score.value,
            ),
        )
        for decision in decisions
        for score in decision.oom_scores
    )
    return quoted.getvalue()
