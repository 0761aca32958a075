"""Rows of tables without headings: what a jsonpath or a template prints of pods, and containers as k9s shows them.

A row is one if every word of it is a name, a code, a number or a time, and the pod is told from its namespace and its
container by its name. In prose there are other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from podqos.model.pod import ObjectMeta
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FullPodStatus
from podqos.objects.kubectl_text.pasted import PastedPod

_KILLED = "OOMKilled"
_MOST_ROWS = 1_000
_MOST_LINES = 5_000
_MOST_WORDS = 12
_LINE = re.compile(r"^[^\n]{0,300}\bOOMKilled\b[^\n]{0,200}$", re.MULTILINE)
_NAME = re.compile(r"(?:([a-z0-9][a-z0-9-]{0,62})/)?([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$")
_OF_POD = re.compile(r"-(?:[a-z0-9]{0,10}\d[a-z0-9]{0,10}|[bcdfghjklmnpqrstvwxz2456789]{5})$")
"""How the names of pods end that controllers make."""
_PROSE = frozenset(
    (
        *("was", "is", "are", "got", "has", "been", "were", "and", "the", "by", "in", "of", "on", "a", "an", "with"),
        *("pod", "pods", "container", "containers", "keeps", "being", "gets", "get", "still", "again", "for", "to"),
        *("after", "from", "because", "not", "no", "be", "it", "its", "or", "as", "at", "how", "why", "due", "when"),
    )
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$")
_SEPARATORS = re.compile(r"[\s,;|]+|(?<=[a-z0-9]): ")
_WRAPPED = "[]()\"'"
_STATUS = frozenset(("Running", "Pending", "Failed", "Succeeded", "Error", "Completed", "Terminated", "<none>", "true",
                     "false", "null"))  # fmt: skip
_OF_CONTAINER = re.compile(
    r"^\s{0,40}(?P<name>[a-z0-9][a-z0-9-]{0,62})\s{1,80}(?:[●○•]\s{1,80})?(?P<image>\S{1,400}[:/@]\S{1,400})\s{1,80}"
    r"(?:true|false)\s{1,80}OOMKilled\s{1,80}(?:(?:true|false)\s{1,80})?(?P<restarts>\d{1,9})(?=\s|$)"
)
_TITLE = re.compile(r"Containers\((?:([a-z0-9-]{1,63})/)?([a-z0-9][a-z0-9.-]{0,252})\)\[\d{1,6}\]", re.IGNORECASE)


def rows_of(text: str) -> Iterator[PastedPod]:
    """Yield the pods of rows that say OOMKilled."""
    found = 0
    for line in islice(_LINE.finditer(text), _MOST_LINES):
        pod = _of_k9s(text, line) or _of_words(line[0])
        if pod is not None:
            yield pod
            found += 1
            if found == _MOST_ROWS:
                return


def _of_k9s(text: str, line: re.Match[str]) -> PastedPod | None:
    """Return the pod of a container of which k9s shows the row; its title names the pod."""
    shown = _OF_CONTAINER.match(line[0])
    if shown is None:
        return None
    titles = [*_TITLE.finditer(text, max(0, line.start() - 8_000), line.start())]
    namespace, name = (titles[-1][1] or "", titles[-1][2]) if titles else ("", "")
    ended = ContainerTerminated(reason=_KILLED, exit_code=None)
    return _as_pod(namespace, name, shown["name"], ended, int(shown["restarts"]))


def _of_words(line: str) -> PastedPod | None:
    if line.lstrip().startswith("|"):
        return None  # a table of Markdown's: its columns have names
    words = [word for part in _SEPARATORS.split(line.strip()) if (word := part.strip(_WRAPPED))]
    if not 2 <= len(words) <= _MOST_WORDS or words.count(_KILLED) != 1:
        return None
    names, code, at = [], 0, ""
    for word in words:
        if word.isascii() and word.isdecimal() and len(word) < 6:
            code = 137 if word == "137" else code
        elif _TIME.match(word):
            at = word  # the last one is when it ended
        elif word not in _STATUS and word != _KILLED:
            named = _NAME.match(word)
            if named is None or word in _PROSE:
                return None
            names.append((named[1] or "", named[2]))
    return _named(names, words.index(_KILLED), code, at)


def _named(names: list[tuple[str, str]], before: int, code: int, at: str) -> PastedPod | None:
    """Return the pod among names: what is before it is its namespace, what is after it its container."""
    pods = [place for place, (namespace, name) in enumerate(names) if namespace or _OF_POD.search(name)]
    if len(pods) != 1 or not before:
        return None
    (place,) = pods
    namespace, name = names[place]
    others = names[place + 1 :]
    if place > 1 or len(others) > 1 or (place and namespace):
        return None
    # Without a namespace it may be one itself.
    container = others[0][1] if others and (place or namespace) else ""
    ended = ContainerTerminated(reason=_KILLED, exit_code=code or None, finished_at=at or None)
    return _as_pod(names[0][1] if place else namespace, name, container, ended)


def _as_pod(namespace: str, name: str, container: str, ended: ContainerTerminated, restarts: int = 0) -> PastedPod:
    status = ContainerStatus(name=container, restart_count=restarts, last_state=ContainerState(terminated=ended))
    return PastedPod(ObjectMeta(name=name, namespace=namespace), status=FullPodStatus(container_statuses=(status,)))
