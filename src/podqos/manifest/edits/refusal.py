"""Why a text is not edited: the reasons, and the exception that carries one."""

from __future__ import annotations

from enum import StrEnum

from podqos.manifest.plain import FieldPath


class Reason(StrEnum):
    """Why a text is left as it is."""

    TEMPLATE = "template"
    """It is the source of something that is rendered."""
    UNREADABLE = "unreadable"
    """It cannot be read as YAML or JSON."""
    NO_SUCH_OBJECT = "noSuchObject"
    """The object is not there."""
    NO_SUCH_ITEM = "noSuchItem"
    """The field is below an item that a list does not have."""
    NOT_A_MAPPING = "notAMapping"
    """The field is below something that has no fields."""
    CONFLICT = "conflict"
    """Two edits want different values."""
    SHARED = "shared"
    """An anchor shares the value between several places."""
    MERGED = "merged"
    """A merge key brings the value in from elsewhere."""
    TAGGED = "tagged"
    """The value has a tag."""
    COMPLEX_KEY = "complexKey"
    """The key is not plain text on one line."""
    DUPLICATE_KEY = "duplicateKey"
    """The key is set twice."""
    UNSUPPORTED = "unsupported"
    """It is a change that is not made in place: to the object as a whole, or to the items of a list of lists."""
    NOT_AS_MEANT = "notAsMeant"
    """The new text would have another value, or be invalid."""
    NO_BETTER = "noBetter"
    """The new text would have as many problems as before."""


class EditRefusal(Exception):
    """A place in a document that cannot be edited."""

    def __init__(self, reason: Reason, path: FieldPath = (), offset: int | None = None, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.offset = offset
        self.name = name
