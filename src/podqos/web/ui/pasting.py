"""The autopsy of a text that was pasted into the page: what ``podqos autopsy -`` answers.

The text is an argument and nothing else: it is not written to a file, not kept, and no name in it is opened.
"""

from __future__ import annotations

import os
import shlex

from msgspec.structs import replace

from podqos.answers.page.pasted import PastedAutopsy
from podqos.answers.page.session import problem_infos
from podqos.answers.page.source import PageSource
from podqos.errors import InputError
from podqos.library.autopsy import autopsy
from podqos.model.profile import LATEST
from podqos.naming import stated_with
from podqos.objects.cluster_snapshot import is_cluster_snapshot
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.reading.autopsy_inputs import told_apart, what_is_given
from podqos.reading.loading import load
from podqos.reading.logs import Log
from podqos.words.autopsy_story import page_of

PASTED = "pasted"
_GZIP = b"\x1f\x8b"
_MOST_NAMED = 4
"""More files are named by their directory."""


def pasted_autopsy(text: bytes, source: PageSource | None) -> PastedAutopsy:
    """Return what a text tells; ``source`` may know the pods in it. Raise ``InputError`` if it cannot be read."""
    if not text.strip():
        raise InputError("it is empty", where=PASTED, fix="paste a kernel log, or what kubectl prints about a pod")
    if text.startswith((b"{", _GZIP)) and is_cluster_snapshot(text):
        what = "compressed" if text.startswith(_GZIP) else "a snapshot of a cluster"
        raise InputError(what, where=PASTED, fix="open it as a file")
    files, logs = told_apart([Log(PASTED, text)])
    cluster = None if source is None or files else source.cluster
    manifests = () if source is None else source.files
    objects: Objects | None = None
    if cluster is None:
        objects = (
            load(Inputs([*manifests, *files]), full_statuses=True)
            if files
            else None
            if source is None
            else source.objects
        )
    profile = LATEST if cluster is None else cluster.profile
    read = what_is_given(Inputs([*manifests, *(replace(file, path=STDIN) for file in files)]), logs)
    found = autopsy(logs, objects=objects, cluster=cluster, profile=profile, read=read)
    problems = () if objects is None or not files else problem_infos(objects.problems, only=PASTED)
    return PastedAutopsy(page_of(found), command(source, has_objects=bool(files)), problems)


def command(source: PageSource | None, *, has_objects: bool) -> str:
    """Return the command that gives the same answer."""
    return shlex.join(["podqos", "autopsy", STDIN, *([] if source is None else _known(source, has_objects))])


def _known(source: PageSource, has_objects: bool) -> list[str]:
    """Return the options that name the pods of a source; objects cannot be combined with a cluster."""
    if source.cluster is not None:
        if has_objects:
            return []
        is_file = bool(source.looked_at or source.size_bytes)
        return [stated_with("snapshot"), source.cluster.source] if is_file else list(source.known_by)
    paths = [file.path for file in source.files]
    if len(paths) > _MOST_NAMED:
        paths = [os.path.commonpath([os.path.dirname(path) for path in paths]) or "."]
    return [part for path in paths for part in (stated_with("files"), path)]
