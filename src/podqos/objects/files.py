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
    """The directory that was walked to find it, whose objects its policies apply to; None: it was named."""
    data: bytes | None = None
    """What it holds, where that was rendered or read already."""
    cluster: str = ""
    """The name of the cluster that it is a list of objects of, which have no line or column; empty: a file."""


class Inputs(Struct, frozen=True):
    """The files of a command, and what was left out on the way to them."""

    files: list[InputFile]
    problems: list[Problem] = []
    assumptions: tuple[Assumption, ...] = ()
    """What is taken not to be there because a cluster does not let it be read."""

    @property
    def paths(self) -> list[str]:
        """The names of the files."""
        return [file.path for file in self.files]

    @property
    def places(self) -> Iterable[str]:
        """Where the files were found: the directories that were walked, and files that were named."""
        return dict.fromkeys(file.scope or file.path for file in self.files)

    def only(self, files: Iterable[InputFile]) -> Inputs:
        """Return the same with other files."""
        return Inputs(list(files), self.problems, self.assumptions)
