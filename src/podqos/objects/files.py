"""The files of a command, as values."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption

STDIN = "-"


class InputFile(Struct, frozen=True):
    """A file to read."""

    path: str
    scope: str | None = None
    """The directory that was walked to find it, to whose objects its policies apply; None if it was named."""
    data: bytes | None = None
    """Its contents, if already rendered or read."""
    cluster: str = ""
    """The name of the cluster that this list of objects comes from, without lines and columns; empty for a file."""
    root: str = ""
    """The directory that was named, if it was found by walking that."""


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
