"""The error tree, split by whose fault it is.

    PodqosError
    ├── InputError                what the user gave us; carries where, what and how to mend it
    │   ├── InvalidQuantity       a resource amount that Kubernetes would not parse
    │   ├── InvalidManifest       a document or a field of it
    │   ├── InvalidConfiguration  a kubelet setting with which the kubelet would not start
    │   └── InvalidOption         a value on the command line
    └── HostError                 the machine: a file that cannot be read, a feature that is missing

Our own bugs are assertions and are never caught.
"""

from __future__ import annotations


class PodqosError(Exception):
    """Base of everything podqos raises on purpose."""


class InputError(PodqosError):
    """The input is at fault.

    ``what`` says what is wrong, ``where`` is a file position or field path, ``fix`` says how to mend it.
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        """One line: where, what, how to fix."""
        place = f"{self.where}: " if self.where else ""
        mend = f" ({self.fix})" if self.fix else ""
        return f"{place}{self.what}{mend}"


class InvalidQuantity(InputError, ValueError):
    """A resource amount that Kubernetes would not parse.

    It is a ``ValueError`` too, so that the decoder reports it with the path of the field.
    """


class InvalidManifest(InputError):
    """A document, or a field of it, that Kubernetes would not accept."""


class InvalidConfiguration(InputError):
    """A kubelet setting with which the kubelet would not start."""


class InvalidOption(InputError):
    """A value given on the command line that makes no sense."""


class HostError(PodqosError):
    """The machine is at fault: a file that cannot be read, a feature that is missing."""
