"""The error tree, split by whose fault it is.

    PodqosError
    ├── InputError                what the user gave us; carries where, what and how to fix it
    │   ├── InvalidQuantity       a resource amount that Kubernetes would not parse
    │   ├── InvalidManifest       a document or a field of it
    │   ├── InvalidConfiguration  a kubelet setting with which the kubelet would not start
    │   └── InvalidArgument       a value of a request: ``where`` is the field
    │       └── InvalidOption     the same on the command line, said by ``cli``
    ├── HostError                 the machine: a file that cannot be read, a feature that is missing
    └── ClusterError              a cluster, or whatever else answers over the network
        ├── Unreachable           no complete response: no connection, no trust, or a timeout
        ├── BadAnswer             a response that makes no sense
        └── Refused               the server rejected the request; carries the HTTP status
            ├── Unauthorized      401: not authenticated
            ├── Forbidden         403: not allowed; carries the RBAC that would allow it
            └── NotFound          404: no such object, or no such API

Our own bugs are assertions, and whatever else Python raises. The command line and servers report them as bugs; where
documents are looked at one by one, a bug only costs the answer about its own (``isolated`` in ``manifest.problems``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Spelled = Callable[[str], str]
"""Returns a text with the fields that it names (``naming``) as the reader spells them."""


def bug_in_words(error: BaseException) -> str:
    """Return what an unexpected exception is and where it was raised, in a few words."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = ""
    if last is not None:
        path = last.tb_frame.f_code.co_filename.replace("\\", "/")
        where = f" at {path.rpartition('/')[2]}:{last.tb_lineno}"
    return f"{type(error).__name__}{where}: {error}".rstrip(": ")


class PodqosError(Exception):
    """Base of everything podqos raises on purpose."""

    def worded(self, spelled: Spelled = str) -> str:
        """Return what is wrong in one line, in a reader's own spelling."""
        return spelled(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        """One line, with fields as a program names them."""
        return self.worded()


class _PlacedError(PodqosError):
    """An error in three parts: what is wrong, where, and how to fix it."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def worded(self, spelled: Spelled = str) -> str:
        """Return in one line: where, what, how to fix."""
        where, what, fix = map(spelled, (self.where, self.what, self.fix))
        place = f"{where}: " if where else ""
        mend = f" ({fix})" if fix else ""
        return f"{place}{what}{mend}"


class InputError(_PlacedError):
    """The input is at fault.

    ``what`` says what is wrong, ``where`` is a file position or field path, ``fix`` says how to fix it.
    """


class InvalidQuantity(InputError, ValueError):
    """A resource amount that Kubernetes would not parse.

    It is a ``ValueError`` too, so that the decoder reports it with the path of the field.
    """


class InvalidManifest(InputError):
    """A document, or a field of it, that Kubernetes would reject."""


class InvalidConfiguration(InputError):
    """A kubelet setting with which the kubelet would not start."""

    more: tuple[InvalidConfiguration, ...] = ()
    """What else is wrong with the same settings."""
    rest: object = None
    """The settings without what is wrong, where they are looked at further."""

    @classmethod
    def of(cls, errors: Iterable[InvalidConfiguration]) -> InvalidConfiguration | None:
        """Return all errors as one, each once; None if there are none."""
        first, *more = {(error.where, error.what): error for error in errors}.values() or (None,)
        if first is not None:
            first.more = tuple(more)
        return first

    @property
    def all(self) -> tuple[InvalidConfiguration, ...]:
        """Each on its own."""
        return (self, *self.more)

    def placed(self, where: Spelled, fix: Spelled = lambda text: text) -> InvalidConfiguration:
        """Return the same errors, named as ``where`` and ``fix`` say."""
        placed = [InvalidConfiguration(each.what, where=where(each.where), fix=fix(each.fix)) for each in self.all]
        placed[0].more = tuple(placed[1:])
        return placed[0]


class InvalidArgument(InputError):
    """A value that makes no sense in the field of a request, or the parameter of a function, that ``where`` names."""


class InvalidOption(InvalidArgument):
    """A value given on the command line that makes no sense; only ``cli`` knows options by their names."""


class HostError(PodqosError):
    """The machine is at fault: a file that cannot be read, a feature that is missing."""


class ClusterError(_PlacedError):
    """A cluster is at fault, or whatever else answers over the network; ``where`` is its address."""


class Unreachable(ClusterError):
    """No complete response: the connection was refused, the certificate is not trusted, or it timed out."""


class BadAnswer(ClusterError):
    """A response came, but not one that this server should send."""


class Refused(ClusterError):
    """The server rejected the request."""

    def __init__(self, what: str, *, status: int, where: str = "", fix: str = "", said: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status
        self.said = said
        """The server's own words, on one line."""


class Unauthorized(Refused):
    """401: the request is not authenticated."""


class Forbidden(Refused):
    """403: the user is authenticated but not allowed to do this.

    ``role`` holds the objects, as YAML, that would allow it, ``user`` is who asked; empty if that is unknown.
    """

    def __init__(
        self, what: str, *, where: str = "", fix: str = "", role: str = "", user: str = "", said: str = ""
    ) -> None:
        super().__init__(what, status=403, where=where, fix=fix, said=said)
        self.role = role
        self.user = user


class NotFound(Refused):
    """404: no such object, or no such API."""
