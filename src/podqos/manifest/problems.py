"""Problems of an input: where, what, and how to fix it.

A reading returns each ``Problem`` as one line; exceptions and findings inside the package carry the same parts before
file names and positions are known.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.errors import PodqosError, Spelled, bug_in_words
from podqos.manifest.plain import FieldPath

Position = tuple[int, int]
"""Line and column, both counted from one."""


class Severity(StrEnum):
    """The severity: an error leaves the object out, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Struct, frozen=True, order=True):
    """A problem of an input; sorted by position."""

    source: str
    line: int
    column: int
    severity: Severity
    field: str
    """Path of the field, empty if it is not about a field."""
    what: str
    fix: str = ""
    subject: str = ""
    """Kind and name of the object, where that says where it is: it comes from a cluster and has no line or column."""
    traceback: str = ""
    """Of the exception, if this is a bug of podqos."""
    details: tuple[str, ...] = ()
    """What another program said about it, line by line."""

    def __str__(self) -> str:
        """One line: where, what, how to fix; details are indented below it."""
        return self.worded()

    def worded(self, spelled: Spelled = str) -> str:
        """Return one line, with the fields of requests that it names in a reader's spelling."""
        field = f"{self.field}: " if self.field else ""
        how = spelled(self.fix)
        fix = f" ({how})" if how else ""
        # Neither a file that cannot be opened nor a cluster has lines.
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        place = f"{place}: {self.subject}" if self.subject else place
        text = f"{place}: {self.severity}: {field}{spelled(self.what)}{fix}"
        return "\n    ".join(map(_printable, (text, *self.details)))


def _printable(text: str) -> str:
    """Return a line that quotes the input: that must not break the line or talk to the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class FieldProblem(Struct, frozen=True):
    """Something wrong with a field of an object, before it is known where that is in the text."""

    path: FieldPath
    what: str
    fix: str = ""
    severity: Severity = Severity.ERROR


class SyntaxProblem(Exception):
    """Something wrong with the notation of a document; unless ``keeps_value``, it cannot be read."""

    def __init__(self, position: Position, what: str, fix: str = "", *, keeps_value: bool = False) -> None:
        super().__init__(what)
        self.position = position
        self.what = what
        self.fix = fix
        self.keeps_value = keeps_value


class Isolated:
    """Makes an exception a problem of the one document that is looked at, so that it does not take the others down.

    An unexpected exception is a bug of ours. ``about`` says what was being done.
    """

    def __init__(
        self, problems: list[Problem], source: str, position: Position = (1, 1), subject: str = "", about: str = ""
    ) -> None:
        self._problems = problems
        self._place = source, *position
        self._subject = subject
        self._about = about

    def __enter__(self) -> None:
        """Begin to look at the document."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Add the problem; errors that are raised on purpose are not about a document."""
        if isinstance(error, SyntaxProblem):
            place = self._place[0], *error.position
            problem = Problem(*place, Severity.ERROR, "", error.what, error.fix, self._subject)
        elif isinstance(error, Exception) and not isinstance(error, (PodqosError, OSError, MemoryError)):
            import traceback

            what, lines = f"internal error{self._about}: {bug_in_words(error)}", traceback.format_exception(error)
            fix = "the rest is unaffected"
            problem = Problem(*self._place, Severity.ERROR, "", what, fix, self._subject, "".join(lines))
        else:
            return False
        self._problems.append(problem)
        return True


def position_at(text: str, offset: int, origin: Position = (1, 1)) -> Position:
    """Return line and column of an offset in a text that itself begins at ``origin``."""
    line, column = origin
    line_start = text.rfind("\n", 0, offset) + 1
    return line + text.count("\n", 0, offset), offset - line_start + (1 if line_start else column)
