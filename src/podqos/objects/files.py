"""The files of a command, as values."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption
from podqos.objects.purposes import Purpose

STDIN = "-"
RENDERED = " (rendered)"
"""Follows the name of the file that rendered text comes from; its lines are those of the rendered text."""


def file_behind(source: str) -> str | None:
    """Return the file in the repository that rendered text comes from; None if the text was not rendered."""
    return source.removesuffix(RENDERED) if source.endswith(RENDERED) else None


class InputFile(Struct, frozen=True):
    """A file to read."""

    path: str
    scope: str | None = None
    """The directory that was walked to find it, to whose objects its policies apply; None if it was named."""
    data: bytes | None = None
    """Its contents, if already rendered or read."""
    cluster: str = ""
    """The name of the cluster that this list of objects comes from, without lines and columns; empty for a file."""
    purpose: Purpose | None = None
    """What it is for if not to be applied, by the directory it was found in."""


class Inputs(Struct, frozen=True):
    """The files of a command, and what was left out."""

    files: list[InputFile]
    problems: list[Problem] = []
    assumptions: tuple[Assumption, ...] = ()
    """What is assumed not to exist because reading it is forbidden."""

    @property
    def paths(self) -> list[str]:
        """The names of the files."""
        return [file.path for file in self.files]

    @property
    def places(self) -> Iterable[str]:
        """Where the files were found: walked directories and named files."""
        return dict.fromkeys(file.scope or file.path for file in self.files)

    def only(self, files: Iterable[InputFile]) -> Inputs:
        """Return the same with other files."""
        return Inputs(list(files), self.problems, self.assumptions)
