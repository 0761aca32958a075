"""Warns about kubelet settings that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.manifest.kubelet import KubeletSettings
from podqos.manifest.plain import format_path
from podqos.manifest.problems import Problem, Severity
from podqos.model.kubelet_ignored import Reader
from podqos.words.kubelet import ignored_words


def ignored_problems(
    settings: KubeletSettings,
    source: str,
    place: tuple[int, int] = (0, 0),
    reader: Reader = "plan",
    version: tuple[int, int] | None = None,
) -> Iterator[Problem]:
    """Yield the one warning about settings that have no effect in a version, if there are any."""
    words = ignored_words(settings.ignored_by(reader, version))
    if words:
        yield Problem(source, *place, Severity.WARNING, format_path(settings.notation.path), words)
