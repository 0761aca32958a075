"""Tells of the settings in a kubelet's configuration that change no answer, as a warning about the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podqos.manifest.problems import Problem, Severity
from podqos.model.kubelet_ignored import Reader, ignored_settings
from podqos.report.kubelet_words import ignored_words


def ignored_problems(
    document: Mapping[str, object], source: str, place: tuple[int, int] = (0, 0), reader: Reader = "plan"
) -> Iterator[Problem]:
    """Yield the one warning about a configuration that was accepted, if there is anything to tell."""
    words = ignored_words(ignored_settings(document, reader))
    if words:
        yield Problem(source, *place, Severity.WARNING, "", words)
